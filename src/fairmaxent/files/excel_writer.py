"""Tables written as Excel workbooks, row by row.

Numbers and dates have their types, and texts are never formulas or links. The file
depends on the table only, not on when it is written.
"""

import datetime as dt
import math
import re
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import escape

from fairmaxent.data.frames import load_library
from fairmaxent.data.levels import Notes
from fairmaxent.errors import LimitError, cut
from fairmaxent.files.excel_archive import column_letters

# Limits of a sheet.
_MOST_ROWS = 1_048_576
_MOST_COLUMNS = 16_384
_LONGEST_CELL = 32_767
_INSTEAD = "write the table as CSV or Parquet"
_BATCH = 10_000  # rows
_EPOCH = dt.date(1899, 12, 30)
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY = dt.date(1900, 3, 1)  # before this, Excel counts days wrongly or not at all
_MOST_WHOLE = 10**15  # beyond this, Excel shows zeros in place of digits
_STYLES = {
    "date": 1,
    "moment": 2,
    "time": 3,
}  # of workbook.toml
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_START = (
    "<worksheet"
    ' xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
)
# What XML cannot hold, a carriage return, which it would change, and what looks like
# such an escape already.
_ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)"
)


class _Cells(NamedTuple):
    """The cells of a column as XML."""

    start: str
    values: list[str | None]  # what stands between; None for a missing value
    end: str


def write_xlsx(lazy: Any, file: IO[bytes], *, form: object, **_: object) -> Notes:
    """Write a lazy frame to an open file, and return what could not be kept.

    ``form``: the input is a workbook, too.
    """
    table = lazy.collect()
    check_sheet_rows(len(table))
    if table.width > _MOST_COLUMNS:
        raise LimitError(f"a sheet has at most {_MOST_COLUMNS:,} columns; {_INSTEAD}")
    kinds = [_kind(column) for column in table]
    as_text = []
    for number, column in enumerate(table):
        if not _fits(column, kinds[number]):
            kinds[number] = "text"
            as_text.append(repr(cut(column.name)))

    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = resources.files("fairmaxent.files").joinpath("workbook.toml")
        for name, text in tomllib.loads(parts.read_text("utf-8")).items():
            archive.writestr(_entry(name), _DECLARATION + text.replace("\n", ""))
        entry = _entry("xl/worksheets/sheet1.xml")
        with archive.open(entry, "w", force_zip64=True) as sheet:
            for text in _sheet(table, kinds):
                sheet.write(text.encode())

    notes = []
    if as_text:
        notes.append(
            f"a sheet cannot hold the numbers or dates of {', '.join(as_text)}, so they"
            " were written as text"
        )

    if form is not None:
        notes.append(
            "only the table was written; titles, number formats, formulas and other"
            " sheets of the input were not kept"
        )
    return tuple(notes)


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


def _cells(column: Any, kind: str) -> _Cells:
    """The cells of a column as XML."""
    polars = load_library("polars")
    if kind == "text":
        if column.dtype == polars.Datetime:
            texts = column.dt.strftime("%Y-%m-%d %H:%M:%S%.f")
        else:
            texts = column.cast(polars.String)
        return _text_cells(texts.to_list(), column.name)

    style = ""
    if kind in _STYLES:
        style = f' s="{_STYLES[kind]}"'
    elif kind == "truth":
        style = ' t="b"'

    values = _numbers(column, kind, polars).to_list()
    return _Cells(
        start=f'"{style}><v>',
        values=[
            None if value is None or math.isnan(value) else repr(value)
            for value in values
        ],
        end="</v></c>",
    )


def _text_cells(texts: Sequence[str | None], name: str) -> _Cells:
    return _Cells(
        start='" t="inlineStr"><is><t xml:space="preserve">',
        values=[None if text is None else _text(text, name) for text in texts],
        end="</t></is></c>",
    )


def _numbers(column: Any, kind: str, polars: Any) -> Any:
    """The values as a sheet stores them: dates as days, times as parts of a day."""
    if kind == "truth":
        return column.cast(polars.Int8)
    if kind == "date":
        return (column - _EPOCH).dt.total_days()
    if kind == "moment":
        midnight = dt.datetime.combine(_EPOCH, dt.time())
        since = column.cast(polars.Datetime("us")) - midnight
        return since.dt.total_microseconds() / _DAY

    if kind == "time":
        return column.cast(polars.Int64) / (1000 * _DAY)
    return column


def _text(text: str, name: str) -> str:
    if len(text) > _LONGEST_CELL:
        raise LimitError(
            f"a cell of a sheet has at most {_LONGEST_CELL:,} characters, and one in"
            f" column {cut(name)!r} has more; {_INSTEAD}"
        )
    return escape(_ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text))


def _sheet(table: Any, kinds: Sequence[str]) -> Iterator[str]:
    yield _DECLARATION + _SHEET_START
    yield from _rows([_text_cells([name], name) for name in table.columns], 1)
    number = 2
    for piece in table.iter_slices(_BATCH):
        columns = [_cells(*pair) for pair in zip(piece, kinds, strict=True)]
        yield "".join(_rows(columns, number))
        number += len(piece)

    yield "</sheetData></worksheet>"


def _rows(columns: Sequence[_Cells], first: int) -> Iterator[str]:
    """The rows as XML; the first has this number."""
    around = [
        (f'<c r="{column_letters(place)}', cells.start, cells.end)
        for place, cells in enumerate(columns)
    ]
    rows = zip(*(cells.values for cells in columns), strict=True)
    for number, row in enumerate(rows, first):
        cells = [
            f"{reference}{number}{start}{value}{end}"
            for (reference, start, end), value in zip(around, row, strict=True)
            if value is not None
        ]
        yield f'<row r="{number}">{"".join(cells)}</row>'
