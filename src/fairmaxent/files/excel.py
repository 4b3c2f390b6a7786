"""Tables in Excel workbooks, read with calamine: the sheet, the header and the types are detected.

Nothing in a workbook is run or fetched: formulas count by the value stored with them, links and macros are not read.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import itertools
import re
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import need_memory
from fairmaxent.errors import ColumnError, InputError, Option, StorageError, cut, did_you_mean
from fairmaxent.files.cells import Conventions, Typed, missing_remarks, typed_table
from fairmaxent.files.header import column_names, footer_remarks, row_remark, title_count, title_remark
from fairmaxent.files.reading import MISSING, Reading, Remark, TableFile, TableForm, check_inflated

_LOOKED_AT, _SHOWN = 50, 5  # rows, and names of sheets
_XML_MEMORY, _CELL_MEMORY = 8, 100  # bytes of memory for each byte of XML, and for each cell
_WHOLE = 2**53  # beyond this, a number does not have all digits
_PLAIN_WHOLE = 10**15  # beyond this, a number is not written with all its digits
_DAY_ZERO = dt.date(1899, 12, 31)  # what Excel shows as 0 January 1900, where a date was never filled in

_SHEET = re.compile(rb'<sheet\b[^>]*\br:id="([^"]*)"')
_RELATION = re.compile(rb"<Relationship\b[^>]*>")
_DIMENSION = re.compile(rb'<dimension ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_CELL = re.compile(rb'<c r="([A-Z]+)(\d+)"([^>/]*)>(.*?)</c>', re.DOTALL)
_STORED = re.compile(rb"<v>([^<]+)</v>")


@dataclass(frozen=True)
class _ErrorValue:
    """What a formula gives that cannot be computed, such as #N/A."""

    code: str


_Value = str | int | float | bool | dt.date | dt.datetime | dt.time | _ErrorValue


def read_xlsx(content: bytes, path: str, reading: Reading, texts: Collection[str] = ()) -> TableFile:
    """Read a table from the content of a workbook; ``texts`` are columns that stay text."""
    workbook = _open(content, path)
    chosen, cells = _choose(workbook, reading.sheet)
    if not cells.rows:
        raise InputError(f"the sheet {cut(chosen.name)!r} of {path} is empty; choose another with ", Option("sheet"))
    remarks: list[Remark] = [] if reading.sheet is not None else [*_sheet_remarks(workbook, chosen)]
    columns = _columns(cells, path, reading, remarks)
    conventions = Conventions("", reading.decimal, reading.date_order, texts)
    typed, read = _typed(columns, set(reading.missing or MISSING), conventions)
    frame = typed.frame
    remarks += [*read, *typed.remarks]
    remarks += row_remark(frame, path) if reading.columns is None else ()
    remarks += footer_remarks(frame, path) if reading.skip_last is None else ()
    return TableFile(frame, tuple(remarks), form=TableForm("xlsx"))


# ---------------------------------------------------------------- the workbook


@dataclass(frozen=True)
class _Sheet:
    """A sheet of a workbook; ``number`` counts all that the workbook lists, also those that only show a chart."""

    number: int
    name: str
    is_hidden: bool


@dataclass(eq=False)
class _SheetCells:
    """The cells of a sheet that hold something, by row and column; both are numbered from 0."""

    rows: dict[int, dict[int, _Value]]
    merged: list[tuple[tuple[int, int], tuple[int, int]]]  # the first and the last cell of each range
    uncomputed: list[tuple[int, int]] = field(default_factory=list)  # formulas without a value


@dataclass(frozen=True, eq=False)
class _Workbook:
    """A workbook, whose sheets are read when they are asked for."""

    path: str
    archive: zipfile.ZipFile
    calamine: Any
    sheets: tuple[_Sheet, ...]

    def sheet(self, wanted: str | int) -> _Sheet:
        """The sheet of this name, or else of this number."""
        by_name = {sheet.name: sheet for sheet in self.sheets}
        if wanted in by_name:
            return by_name[str(wanted)]
        number = int(wanted) if str(wanted).isdecimal() and len(str(wanted)) < 9 else 0
        if 1 <= number <= len(self.sheets):
            return self.sheets[number - 1]
        raise InputError(
            Option("sheet"), f" is {wanted!r}, which {self.path} does not have; {did_you_mean(wanted, by_name)}"
        )

    def cells(self, sheet: _Sheet) -> _SheetCells:
        """Read a sheet."""
        with _damage(self.path):
            xml = _sheet_xml(self.archive, sheet.number)
            dimension = _DIMENSION.search(xml, 0, 4000)
            if dimension is not None:  # calamine makes room for all cells up to the last, also if most are empty
                width = _column_number(dimension[3]) - _column_number(dimension[1]) + 1
                size = float(_CELL_MEMORY * width * (int(dimension[4]) - int(dimension[2]) + 1))
                need_memory(size, f"reading {self.path}", "remove cells beside the table")
            held = self.calamine.get_sheet_by_index(sheet.number)
            above, left = held.start or (0, 0)
            rows = {}
            for number, row in enumerate(held.to_python(), above):
                values = {
                    column: plain for column, value in enumerate(row, left) if (plain := _plain(value)) is not None
                }
                if values:
                    rows[number] = values
            cells = _SheetCells(rows, held.merged_cell_ranges or [])
            _look_for_formulas(xml, cells)
        return cells


def _open(content: bytes, path: str) -> _Workbook:
    """Open a workbook; its sheets are listed, but not read."""
    calamine = load_library("python_calamine")
    with _damage(path):
        archive = zipfile.ZipFile(io.BytesIO(content))
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    if "mimetype" in sizes and "content.xml" in sizes:
        raise StorageError(f"{path} is an OpenDocument file; save it as .xlsx or CSV")
    if "xl/workbook.bin" in sizes:
        raise StorageError(f"{path} is a binary Excel workbook (.xlsb); save it as .xlsx, or save the sheet as CSV")
    if "[Content_Types].xml" not in sizes or "xl/workbook.xml" not in sizes:
        raise StorageError(f"{path} is a zip archive, not an Excel workbook; unpack it, and pass the table in it")
    check_inflated(sum(sizes.values()), content, path, "save the sheet as CSV")
    need_memory(_XML_MEMORY * max(sizes.values()), f"reading {path}", "save the sheet as CSV, take a part of the rows")
    with _damage(path):
        opened = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
    sheets = tuple(
        _Sheet(number, sheet.name, sheet.visible != calamine.SheetVisibleEnum.Visible)
        for number, sheet in enumerate(opened.sheets_metadata)
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
    )
    if not sheets:
        raise StorageError(f"{path} is not an Excel workbook with sheets; save the sheet as CSV")
    return _Workbook(path, archive, opened, sheets)


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Turn what a damaged workbook raises into an error that says so."""

    def explain(why: str) -> StorageError:
        return StorageError(f"{path} is a damaged Excel workbook ({why}); save it again, or save the sheet as CSV")

    also = (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, LookupError, ValueError, ArithmeticError)
    with library_errors(explain, load_library("python_calamine").CalamineError, *also):
        yield


def _plain(value: Any) -> _Value | None:
    """What a cell holds; None if it is blank. Numbers come without a decimal point if they are whole."""
    kind = type(value)
    if kind is str:
        return value if value.strip() else None
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _PLAIN_WHOLE else float(value)
    plain: _Value = value / dt.timedelta(days=1) if kind is dt.timedelta else value
    return plain


# ---------------------------------------------------------------- what calamine does not tell


def _sheet_xml(archive: zipfile.ZipFile, number: int) -> bytes:
    """The text of a sheet; empty if it is not where workbooks usually have it."""
    names = _SHEET.findall(archive.read("xl/workbook.xml"))
    for relation in _RELATION.findall(archive.read("xl/_rels/workbook.xml.rels")):
        target = re.search(rb'Target="/?(?:xl/)?([^"]*)"', relation)
        if number < len(names) and target and b'Id="%b"' % names[number] in relation:
            part = f"xl/{target[1].decode()}"
            return archive.read(part) if part in archive.namelist() else b""
    return b""


def _look_for_formulas(xml: bytes, cells: _SheetCells) -> None:
    """Find formulas that gave an error, or that no spreadsheet has computed: for calamine, both are empty cells."""
    if b't="e"' not in xml and b"<f" not in xml:
        return
    for letters, digits, attributes, inside in _CELL.findall(xml):
        row, column, stored = int(digits) - 1, _column_number(letters), _STORED.search(inside)
        if b't="e"' in attributes and stored:
            cells.rows.setdefault(row, {})[column] = _ErrorValue(stored[1].decode())
        elif not stored and b"<f" in inside and b"<is>" not in inside:
            cells.uncomputed.append((row, column))
    cells.rows = dict(sorted(cells.rows.items()))


def _column_number(letters: bytes) -> int:
    """Number columns from 0: A, B, …, Z, AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


# ---------------------------------------------------------------- sheets


def _choose(workbook: _Workbook, wanted: str | int | None) -> tuple[_Sheet, _SheetCells]:
    """The sheet that is asked for, or the first that holds a table: two rows and two columns at least."""
    if wanted is not None:
        chosen = workbook.sheet(wanted)
        return chosen, workbook.cells(chosen)
    best: tuple[_Sheet, _SheetCells] | None = None
    for sheet in sorted(workbook.sheets, key=lambda sheet: sheet.is_hidden):
        cells = workbook.cells(sheet)
        if sum(len(row) > 1 for row in cells.rows.values()) > 1:
            return sheet, cells
        if best is None or (not best[1].rows and cells.rows):
            best = sheet, cells
    assert best is not None  # a workbook has sheets
    return best


def _sheet_remarks(workbook: _Workbook, chosen: _Sheet) -> Iterator[Remark]:
    """Say which sheet was read if there are several."""
    others = [repr(cut(sheet.name)) for sheet in workbook.sheets if sheet is not chosen]
    if others:
        shown = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
        yield (
            f"{workbook.path} has {len(workbook.sheets)} sheets, and {cut(chosen.name)!r} was read; to read "
            f"{shown}, set ",
            Option("sheet"),
        )


# ---------------------------------------------------------------- the table in a sheet


def _columns(cells: _SheetCells, path: str, reading: Reading, remarks: list[Remark]) -> dict[str, list[_Value | None]]:
    """Find the header, and return the columns below it."""
    skip_lines, skip_last, given = reading.skip_lines, reading.skip_last or 0, reading.columns
    rows = [row for row in cells.rows if row >= (skip_lines or 0)]
    if not rows:
        raise InputError(f"{path} has no table after {skip_lines} rows; set ", Option("skip_lines"), " to fewer")
    if skip_last >= len(rows):
        raise InputError(f"{path} has no table above its last {skip_last} rows; set ", Option("skip_last"), " to fewer")
    rows = rows[: len(rows) - skip_last]
    titles = title_count([*_records(cells, rows[:_LOOKED_AT])]) if skip_lines is None and given is None else 0
    header, below = rows[titles], rows[titles + (given is None) :]
    used = sorted({column for row in (header, *below) for column in cells.rows[row]})
    if given is not None and len(given) != len(used):
        raise ColumnError(f"{path} has {len(used)} columns and {len(given)} names were given; name every column")
    names = column_names(_texts(cells.rows[header], used) if given is None else given, path, remarks)
    if titles:
        remarks.append(title_remark(path, f"row {header + 1}", names))
    remarks += _gap_remarks(below, path)
    remarks += _fill_merged(cells, below, used, path)
    remarks += _formula_remarks(cells, below, dict(zip(used, names, strict=True)))
    return {name: [cells.rows[row].get(column) for row in below] for name, column in zip(names, used, strict=True)}


def _records(cells: _SheetCells, rows: Sequence[int]) -> Iterator[list[str]]:
    """Rows as texts, all as wide as the widest."""
    first = min(column for row in rows for column in cells.rows[row])
    last = max(column for row in rows for column in cells.rows[row])
    for row in rows:
        yield _texts(cells.rows[row], range(first, last + 1))


def _texts(row: Mapping[int, _Value], columns: Sequence[int]) -> list[str]:
    return [_text_of(row[column]) if column in row else "" for column in columns]


def _gap_remarks(rows: Sequence[int], path: str) -> Iterator[str]:
    """Say that rows stand below an empty one, where another table may begin."""
    gap = next((row for row, following in itertools.pairwise(rows) if following != row + 1), None)
    if gap is not None:
        yield f"row {gap + 2} of the sheet in {path} is empty; the rows below it were read as part of the same table"


def _fill_merged(cells: _SheetCells, rows: Sequence[int], used: Sequence[int], path: str) -> Iterator[str]:
    """Give each cell of a merged range the value that people see there."""
    room, count = len(rows) * len(used), 0
    for (first_row, first_column), (last_row, last_column) in cells.merged:
        if not rows or last_row < rows[0]:
            continue
        value = cells.rows.get(first_row, {}).get(first_column)
        columns = used[bisect_left(used, first_column) : bisect_right(used, last_column)]
        inside = rows[bisect_left(rows, first_row) : bisect_right(rows, last_row)]
        room -= len(columns) * len(inside)
        if room < 0:  # merged ranges do not overlap in a workbook that Excel wrote
            return
        if value is not None:
            count += 1
            for row in inside:
                cells.rows[row].update(dict.fromkeys(columns, value))
    if count:
        ranges = "1 merged range" if count == 1 else f"{count:,} merged ranges"
        yield f"{path} has {ranges} of cells in its rows; each cell was read with the value of its range"


def _formula_remarks(cells: _SheetCells, rows: Sequence[int], names: Mapping[int, str]) -> Iterator[str]:
    """Say that formulas have no value yet, because no spreadsheet has computed them."""
    inside = set(rows) if cells.uncomputed else set()
    lacking = Counter(column for row, column in cells.uncomputed if row in inside and column in names)
    if lacking:
        columns = ", ".join(f"{names[column]} {lacking[column]:,}" for column in sorted(lacking))
        yield (
            f"formulas without a stored value were read as missing ({columns}); open the workbook in a spreadsheet "
            "and save it to compute them"
        )


# ---------------------------------------------------------------- values


def _text_of(value: object) -> str:
    """A value as a CSV would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return value.code if isinstance(value, _ErrorValue) else str(value)


def _typed(
    by_name: Mapping[str, list[_Value | None]], missing: set[str], conventions: Conventions
) -> tuple[Typed, list[Remark]]:
    """Give each column the type that all its cells have; texts are read as those of a CSV are."""
    polars = load_library("polars")
    counts: dict[str, dict[str, int]] = {}
    columns: dict[str, Any] = {}
    mixed: list[str] = []
    for name, values in by_name.items():
        markers = [_marker(value, missing) for value in values]
        for marker, count in Counter(marker for marker in markers if marker is not None).items():
            counts.setdefault(marker, {})[name] = count
        present = [value if marker is None else None for value, marker in zip(values, markers, strict=True)]
        column = None if name in conventions.texts else _column(name, present, polars)
        if column is None:
            written = [None if value is None else _text_of(value) for value in present]
            is_mixed = any(not isinstance(value, str | None) for value in present) and name not in conventions.texts
            mixed += [name] if is_mixed else []
            column = polars.Series(name, written, dtype=polars.String)
        columns[name] = column
    texts = [name for name, column in columns.items() if column.dtype == polars.String]
    typed = typed_table(polars.DataFrame([columns[name] for name in texts]), [""], conventions) if texts else None
    remarks: list[Remark] = [*missing_remarks(counts)]
    if mixed:
        remarks.append(f"numbers and text are mixed, so these columns were read as text ({', '.join(mixed)})")
    if typed is None:
        return Typed(columns, {}), remarks
    typed.columns = {name: typed.columns.get(name, column) for name, column in columns.items()}
    as_numbers = [name for name in texts if typed.columns[name].dtype.is_numeric() and name not in mixed]
    if as_numbers:
        remarks.append(f"numbers stored as text were read as numbers ({', '.join(as_numbers)})")
    return typed, remarks


def _marker(value: _Value | None, missing: set[str]) -> str | None:
    """The error or the marker of a missing value that a cell holds; None if it holds neither."""
    if isinstance(value, _ErrorValue):
        return cut(value.code)
    return cut(value.strip()) if isinstance(value, str) and value.strip() in missing else None


def _column(name: str, values: Sequence[Any], polars: Any) -> Any | None:
    """The values as a column of their type; None if they are texts, or of several types."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds or str in kinds:
        return None
    if kinds == {bool}:
        return polars.Series(name, values, dtype=polars.Boolean)
    if kinds <= {int, float}:
        whole = all(value is None or (value == int(value) and abs(value) < _WHOLE) for value in values)
        kept = [None if value is None else int(value) for value in values] if whole else values
        return polars.Series(name, kept, dtype=polars.Int64 if whole else polars.Float64, strict=False)
    if kinds == {dt.time}:
        return polars.Series(name, values, dtype=polars.Time)
    if kinds & {dt.date, dt.datetime}:
        values = [_DAY_ZERO if value == dt.time() else value for value in values]
        kinds = {type(value) for value in values} - {type(None)}
    if kinds == {dt.date}:
        return polars.Series(name, values, dtype=polars.Date)
    if kinds <= {dt.date, dt.datetime}:
        moments = [dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value for value in values]
        return polars.Series(name, moments, dtype=polars.Datetime("us"))
    return None
