"""Tables written as Excel workbooks, row by row: numbers and dates with their types, texts never as formulas or links.

The file depends on the table only, not on when it is written.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal
from xml.sax.saxutils import escape, quoteattr

from fairmaxent.data.frames import load_library
from fairmaxent.errors import LimitError, cut
from fairmaxent.files.form import SheetForm
from fairmaxent.files.xlsx_values import kind_of_format
from fairmaxent.files.xlsx_workbook import MOST_SHEET_COLUMNS

MOST_SHEET_ROWS = 1_048_576
"""How many rows a sheet can have."""
LONGEST_SHEET_CELL = 32_767
"""How many characters a cell can have."""

_PLAIN = SheetForm("xlsx", "Table")
_BATCH = 10_000  # rows
_FIRST_STYLE = 164  # the first number of a format that is not built in
_EPOCH = dt.datetime(1899, 12, 30)
_FIRST_DAY = dt.date(1900, 3, 1)  # before this, Excel counts days wrongly or not at all
_MOST_WHOLE = 10**15  # beyond this, Excel shows zeros in place of digits
_DEFAULTS = {"date": "yyyy-mm-dd", "moment": "yyyy-mm-dd hh:mm:ss", "time": "hh:mm:ss"}
_TIMES = (dt.date, dt.time)
# What XML cannot hold, a carriage return, which it would change, and what looks like such an escape already.
_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def write_xlsx(frame: Any, file: IO[bytes], form: SheetForm | None = None) -> tuple[str, ...]:
    """Write a polars table or lazy frame to an open file, and return what could not be written as it was."""
    form, table = form or _PLAIN, frame.lazy().collect()
    check_sheet_rows(len(table) + len(form.title))
    if table.width + form.first_column > MOST_SHEET_COLUMNS:
        raise LimitError(f"a sheet has at most {MOST_SHEET_COLUMNS:,} columns; write the table as CSV or Parquet")
    plans = [_plan(column, form.columns.get(column.name)) for column in table]
    titles = (_DEFAULTS[_title_kind(value)] for row in form.title for value in row if isinstance(value, _TIMES))
    codes = list(dict.fromkeys([*(plan.code for plan in plans if plan.code), *titles]))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _FIXED.items():
            _add(archive, name, text)
        _add(archive, "xl/workbook.xml", _WORKBOOK.format(name=quoteattr(_escaped(form.sheet))))
        _add(archive, "xl/styles.xml", _styles(codes))
        with archive.open(_entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as sheet:
            for text in _sheet(table, plans, codes, form):
                sheet.write(text.encode())
    return tuple(_notes(plans, form))


def _notes(plans: Sequence[_Plan], form: SheetForm) -> Iterator[str]:
    """Say what could not be written as it was."""
    as_text = [repr(cut(plan.name)) for plan in plans if plan.is_changed]
    if as_text:
        yield f"a sheet cannot hold the numbers or dates of {', '.join(as_text)}, so they were written as text"
    if form.lost:
        yield f"only the table and its titles were written; {_listed(form.lost)} of the input were not kept"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def check_sheet_rows(rows: int) -> None:
    """Refuse more rows than fit in a sheet below a header."""
    if rows >= MOST_SHEET_ROWS:
        raise LimitError(
            f"a sheet has at most {MOST_SHEET_ROWS:,} rows, and {rows:,} below a header are too many; write the table "
            "as CSV or Parquet"
        )


# ---------------------------------------------------------------- cells


@dataclass(frozen=True)
class _Plan:
    """How a column is written: as which type, in which number format."""

    name: str
    kind: Literal["text", "truth", "number", "date", "moment", "time"]
    code: str | None = None
    is_changed: bool = False  # it is text, because a sheet has no such numbers or dates


def _plan(column: Any, code: str | None) -> _Plan:
    """How to write a column, whose number format in the input was this."""
    kind = _kind(column)
    if kind in ("text", "truth"):
        return _Plan(column.name, kind)
    if not _fits(column, kind):
        return _Plan(column.name, "text", is_changed=True)
    shown = None if code is None else kind_of_format(_FIRST_STYLE, {_FIRST_STYLE: code})
    keeps = shown == kind or (kind == "moment" and shown == "date")
    return _Plan(column.name, kind, code if keeps else _DEFAULTS.get(kind))


def _kind(column: Any) -> Literal["text", "truth", "number", "date", "moment", "time"]:
    polars = load_library("polars")
    dtype = column.dtype
    if dtype == polars.Boolean:
        return "truth"
    if dtype.is_integer() or dtype.is_float():
        return "number"
    if dtype == polars.Date:
        return "date"
    if dtype == polars.Datetime and dtype.time_zone is None:
        return "moment"
    return "time" if dtype == polars.Time else "text"


def _fits(column: Any, kind: str) -> bool:
    """Whether a sheet can hold all values of a column to the last digit."""
    if kind == "number" and column.dtype.is_integer():
        return not ((column >= _MOST_WHOLE) | (column <= -_MOST_WHOLE)).any()
    if kind == "number":
        return not column.is_infinite().any()
    if kind == "time" or not column.drop_nulls().len():
        return True
    if kind == "moment" and (column.dt.microsecond() % 1000 != 0).any():
        return False
    return bool(column.dt.date().min() >= _FIRST_DAY)


def _cells(column: Any, plan: _Plan) -> tuple[str, list[str | None]]:
    """The type of the cells of a column, and what each holds as XML; None for a missing value."""
    if plan.kind == "text":
        texts = _as_text(column).to_list()
        return "inlineStr", [None if text is None else _text(text, plan.name) for text in texts]
    write = _WRITE[plan.kind]
    return "b" if plan.kind == "truth" else "n", [
        None if value is None or value != value else write(value) for value in column.to_list()
    ]


def _as_text(column: Any) -> Any:
    polars = load_library("polars")
    if column.dtype == polars.Datetime:
        return column.dt.strftime("%Y-%m-%d %H:%M:%S%.f")
    return column.cast(polars.String)


def _days(value: dt.date) -> str:
    if not isinstance(value, dt.datetime):
        return str((value - _EPOCH.date()).days)
    gap = value - _EPOCH
    return repr(gap.days + _fraction(value.time()))


def _fraction(value: dt.time) -> float:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) / 86_400_000_000


_WRITE: dict[str, Callable[[Any], str]] = {
    "truth": lambda value: "1" if value else "0",
    "number": repr,
    "date": _days,
    "moment": _days,
    "time": lambda value: repr(_fraction(value)),
}


def _text(text: str, name: str) -> str:
    if len(text) > LONGEST_SHEET_CELL:
        raise LimitError(
            f"a cell of a sheet has at most {LONGEST_SHEET_CELL:,} characters, and one in column {cut(name)!r} has "
            f"{len(text):,}; write the table as CSV or Parquet"
        )
    return escape(_escaped(text))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


# ---------------------------------------------------------------- sheet


def _sheet(table: Any, plans: Sequence[_Plan], codes: Sequence[str], form: SheetForm) -> Iterator[str]:
    yield _SHEET_START
    number = 0
    for number, row in enumerate(form.title, 1):
        cells = (_value_cell(f"{_letters(column)}{number}", value, codes) for column, value in enumerate(row))
        yield _row(number, [*cells])
    letters = [_letters(form.first_column + index) for index in range(len(plans))]
    if form.has_header:
        number += 1
        texts = zip(letters, (_text(plan.name, plan.name) for plan in plans), strict=True)
        yield _row(number, [_cell(f"{letter}{number}", "inlineStr", text, 0) for letter, text in texts])
    for piece in table.iter_slices(_BATCH):
        yield "".join(_rows(piece, plans, codes, letters, number))
        number += len(piece)
    yield "</sheetData></worksheet>"


def _rows(
    piece: Any, plans: Sequence[_Plan], codes: Sequence[str], letters: Sequence[str], above: int
) -> Iterator[str]:
    held = [_cells(column, plan) for column, plan in zip(piece, plans, strict=True)]
    styles = [codes.index(plan.code) + 1 if plan.code else 0 for plan in plans]
    kinds = [kind for kind, _ in held]
    for number, row in enumerate(zip(*(values for _, values in held), strict=True), above + 1):
        cells = [
            _cell(f"{letter}{number}", kind, value, style)
            for letter, kind, value, style in zip(letters, kinds, row, styles, strict=True)
            if value is not None
        ]
        yield _row(number, cells)


def _row(number: int, cells: Sequence[str]) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def _cell(reference: str, kind: str, value: str, style: int) -> str:
    look = f' s="{style}"' if style else ""
    if kind == "inlineStr":
        return f'<c r="{reference}"{look} t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'
    typed = "" if kind == "n" else f' t="{kind}"'
    return f'<c r="{reference}"{look}{typed}><v>{value}</v></c>'


def _title_kind(value: object) -> str:
    return "moment" if isinstance(value, dt.datetime) else "date" if isinstance(value, dt.date) else "time"


def _value_cell(reference: str, value: object, codes: Sequence[str]) -> str:
    """A cell of a title row."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return _cell(reference, "b", "1" if value else "0", 0)
    if isinstance(value, int | float):
        return _cell(reference, "n", repr(value), 0)
    if isinstance(value, _TIMES):
        kind = _title_kind(value)
        return _cell(reference, "n", _WRITE[kind](value), codes.index(_DEFAULTS[kind]) + 1)
    return _cell(reference, "inlineStr", _text(str(value), "title"), 0)


def _letters(column: int) -> str:
    """The name of a column, counted from 0.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


# ---------------------------------------------------------------- parts


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(_entry(name), _DECLARATION + text)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _styles(codes: Sequence[str]) -> str:
    formats = "".join(
        f'<numFmt numFmtId="{number}" formatCode={quoteattr(code)}/>' for number, code in enumerate(codes, _FIRST_STYLE)
    )
    looks = "".join(
        f'<xf numFmtId="{number}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        for number in range(_FIRST_STYLE, _FIRST_STYLE + len(codes))
    )
    return _STYLES.format(
        formats=f'<numFmts count="{len(codes)}">{formats}</numFmts>' if codes else "", looks=looks, count=len(codes) + 1
    )


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FIXED = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_DOCUMENT}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_DOCUMENT}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_DOCUMENT}/styles" Target="styles.xml"/></Relationships>',
}
_WORKBOOK = (
    f'<workbook xmlns="{_MAIN}" xmlns:r="{_DOCUMENT}"><sheets>'
    '<sheet name={name} sheetId="1" r:id="rId1"/></sheets></workbook>'
)
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}">{{formats}}<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="{count}"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>{looks}</cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_SHEET_START = f'{_DECLARATION}<worksheet xmlns="{_MAIN}"><sheetData>'
