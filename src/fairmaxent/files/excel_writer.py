"""Tables written as Excel workbooks, row by row: numbers and dates with their types,
texts never as formulas or links.

The file depends on the table only, not on when it is written.
"""

import datetime as dt
import itertools
import re
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import IO, Any
from xml.sax.saxutils import escape

from fairmaxent.data.frames import load_library
from fairmaxent.errors import LimitError, cut

# of a sheet
_MOST_ROWS = 1_048_576
_MOST_COLUMNS = 16_384
_LONGEST_CELL = 32_767
_INSTEAD = "write the table as CSV or Parquet"
_BATCH = 10_000  # rows
_EPOCH = dt.date(1899, 12, 30)
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY = dt.date(1900, 3, 1)  # before this, Excel counts days wrongly or not at all
_MOST_WHOLE = 10**15  # beyond this, Excel shows zeros in place of digits
_STYLES = {"date": 1, "moment": 2, "time": 3}  # of workbook.toml
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_START = (
    "<worksheet"
    ' xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
)
_TEXT_START = '" t="inlineStr"><is><t xml:space="preserve">'
_TEXT_END = "</t></is></c>"
# What XML cannot hold, a carriage return, which it would change, and what looks like
# such an escape already.
_ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)"
)


def write_xlsx(
    lazy: Any,
    file: IO[bytes],
    compression: str,
    form: object,
    schema: object,
    format: str,
) -> tuple[str, ...]:
    """Write a lazy frame to an open file, and return what could not be kept; ``form``:
    the input is a workbook, too.
    """
    table = lazy.collect()
    check_sheet_rows(len(table))
    if table.width > _MOST_COLUMNS:
        raise LimitError(f"a sheet has at most {_MOST_COLUMNS:,} columns; {_INSTEAD}")
    kinds = [_kind(column) for column in table]
    as_text = [
        not _fits(column, kind) for column, kind in zip(table, kinds, strict=True)
    ]
    kinds = [
        "text" if changed else kind
        for kind, changed in zip(kinds, as_text, strict=True)
    ]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        fixed = (
            resources.files("fairmaxent.files")
            .joinpath("workbook.toml")
            .read_text("utf-8")
        )
        for name, text in tomllib.loads(fixed).items():
            archive.writestr(_entry(name), _DECLARATION + text.replace("\n", ""))
        with archive.open(
            _entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True
        ) as sheet:
            for text in _sheet(table, kinds):
                sheet.write(text.encode())
    changed = ", ".join(
        repr(cut(name)) for name in itertools.compress(table.columns, as_text)
    )
    lost = (
        "only the table was written; titles, number formats, formulas and other sheets"
        " of the input were not kept"
    )
    what = (
        f"a sheet cannot hold the numbers or dates of {changed}, so they were written"
        " as text"
    )
    return tuple(
        note for note, is_true in ((what, changed), (lost, form is not None)) if is_true
    )


def check_sheet_rows(rows: int) -> None:
    """Refuse more rows than fit in a sheet below a header."""
    if rows >= _MOST_ROWS:
        raise LimitError(
            f"a sheet has at most {_MOST_ROWS:,} rows, and {rows:,} below a header are"
            f" more; {_INSTEAD}"
        )


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _kind(column: Any) -> str:
    """How the cells of a column would be written."""
    polars = load_library("polars")
    dtype = column.dtype
    if dtype == polars.Datetime and dtype.time_zone is not None:
        return "text"
    kinds = {
        polars.Boolean: "truth",
        polars.Date: "date",
        polars.Datetime: "moment",
        polars.Time: "time",
    }
    if dtype.is_integer() or dtype.is_float():
        return "number"
    return kinds.get(dtype.base_type(), "text")


def _fits(column: Any, kind: str) -> bool:
    """Whether a sheet can hold all values of a column to the last digit."""
    if kind == "number" and column.dtype.is_integer():
        return not ((column >= _MOST_WHOLE) | (column <= -_MOST_WHOLE)).any()
    if kind == "number":
        return not column.is_infinite().any()
    if kind in ("text", "truth", "time") or not column.drop_nulls().len():
        return True
    exact = kind == "date" or (column.dt.microsecond() % 1000 == 0).all()
    return bool(exact and column.dt.date().min() >= _FIRST_DAY)


def _cells(column: Any, kind: str) -> tuple[str, str, list[str | None]]:
    """The beginning and the end of each cell of a column as XML, and what stands
    between; None for a missing value.
    """
    polars = load_library("polars")
    if kind == "text":
        is_time = column.dtype == polars.Datetime
        if is_time:
            texts = column.dt.strftime("%Y-%m-%d %H:%M:%S%.f")
        else:
            texts = column.cast(polars.String)
        return (
            _TEXT_START,
            _TEXT_END,
            [
                None if text is None else _text(text, column.name)
                for text in texts.to_list()
            ],
        )
    if kind in _STYLES:
        style = f' s="{_STYLES[kind]}"'
    else:
        style = ' t="b"' if kind == "truth" else ""
    values = _numbers(column, kind, polars).to_list()
    return (
        f'"{style}><v>',
        "</v></c>",
        [None if value is None or value != value else repr(value) for value in values],
    )


def _numbers(column: Any, kind: str, polars: Any) -> Any:
    """The values as a sheet stores them: dates as days since the epoch, times as parts
    of a day.
    """
    if kind == "truth":
        return column.cast(polars.Int8)
    if kind == "date":
        return (column - _EPOCH).dt.total_days()
    if kind == "moment":
        since = column.cast(polars.Datetime("us")) - dt.datetime.combine(
            _EPOCH, dt.time()
        )
        return since.dt.total_microseconds() / _DAY
    if kind == "time":
        return column.cast(polars.Int64) / (1000 * _DAY)
    return column


def _text(text: str, name: str) -> str:
    if len(text) > _LONGEST_CELL:
        what = (
            f"a cell of a sheet has at most {_LONGEST_CELL:,} characters, and one in"
            f" column {cut(name)!r} has more"
        )
        raise LimitError(f"{what}; {_INSTEAD}")
    return escape(_ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text))


def _sheet(table: Any, kinds: Sequence[str]) -> Iterator[str]:
    yield _DECLARATION + _SHEET_START
    starts = [f'<c r="{_letters(index)}' for index in range(len(kinds))]
    yield from _rows(
        [(_TEXT_START, _TEXT_END, [_text(name, name)]) for name in table.columns],
        starts,
        1,
    )
    number = 2
    for piece in table.iter_slices(_BATCH):
        held = [_cells(column, kind) for column, kind in zip(piece, kinds, strict=True)]
        yield "".join(_rows(held, starts, number))
        number += len(piece)
    yield "</sheetData></worksheet>"


def _rows(
    held: Sequence[tuple[str, str, Sequence[str | None]]],
    letters: Sequence[str],
    first: int,
) -> Iterator[str]:
    around = [
        (letter, start, end)
        for letter, (start, end, _) in zip(letters, held, strict=True)
    ]
    for number, row in enumerate(
        zip(*(values for _, _, values in held), strict=True), first
    ):
        both = zip(around, row, strict=True)
        cells = [
            f"{letter}{number}{start}{value}{end}"
            for (letter, start, end), value in both
            if value is not None
        ]
        yield f'<row r="{number}">{"".join(cells)}</row>'


def _letters(column: int) -> str:
    """The name of a column, counted from 0.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    letters = chr(65 + column % 26)
    if column < 26:
        return letters
    return _letters(column // 26 - 1) + letters
