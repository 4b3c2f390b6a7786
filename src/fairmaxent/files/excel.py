"""Tables in Excel workbooks: the sheet, the header and the types are detected.

Nothing in a workbook is run or fetched: formulas count by the value stored with them,
links and macros are not read. Errors such as #N/A, and formulas that no spreadsheet has
computed, are empty cells.
"""

import datetime as dt
import io
import itertools
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from xml.parsers import expat

from fairmaxent.data.declaration import at_midnight, one_type
from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.document.words import counted
from fairmaxent.errors import (
    InputError,
    Option,
    StorageError,
    cut,
    did_you_mean,
    first_of,
)
from fairmaxent.files.block import Block, Found, find_table, is_table, read_range
from fairmaxent.files.cells import Typed, missing_remarks, typed_table
from fairmaxent.files.excel_archive import plain_archive
from fairmaxent.files.reading import FileReading, FoundOptions, Remark, TableForm
from fairmaxent.files.surroundings import (
    column_names,
    is_header,
    names_below,
    nothing_left,
    remarks_around,
    title_count,
)
from fairmaxent.plain_text import Values

polars = load_library("polars")

# rows, and names of sheets
_LOOKED_AT = 50
_SHOWN = 5
_WHOLE = 2**53  # beyond this, a number does not have all digits
# what Excel shows as 0 January 1900, where a date was never filled in
_DAY_ZERO = dt.date(1899, 12, 31)
# What else a damaged workbook raises.
_OF_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    OSError,
    EOFError,
    LookupError,
    ValueError,
    ArithmeticError,
    expat.ExpatError,
)

_Value = str | int | float | bool | dt.date | dt.datetime | dt.time


class _SheetCells(NamedTuple):
    """The cells of a sheet that hold something, by row and column, numbered from 0."""

    rows: dict[int, dict[int, _Value]]
    # the first and the last cell of each range
    merged: list[tuple[tuple[int, int], tuple[int, int]]]


def read_xlsx(
    content: bytes,
    path: str,
    reading: FileReading,
    format: str,
) -> tuple[Any, list[Remark], TableForm]:
    """Read a table from the content of a workbook."""
    remarks: list[Remark] = []
    with _damage(path):
        cells = _choose(content, reading, path, remarks)
    columns, found = _columns(cells, path, reading, remarks)
    typed = _typed(columns, reading, remarks)
    remarks += [*typed.remarks, *remarks_around(typed.frame, path, reading)]
    return typed.frame, remarks, TableForm(format, found=found)


def _damage(path: str) -> AbstractContextManager[None]:
    return library_errors(
        f"{path} is a damaged Excel workbook",
        "save it again, or save the sheet as CSV",
        load_library("python_calamine").CalamineError,
        *_OF_DAMAGE,
    )


def cells_by_row(
    content: bytes,
    path: str,
    reading: FileReading,
    declared: Collection[str],
    format: str,
) -> tuple[Any, None, TableForm]:
    """Read each row by itself: the cells as they are, below the names in the first row.

    Nothing is detected, and merged cells are not filled, so that no row changes how
    another is read. Columns that are not ``declared`` are typed.
    """
    with _damage(path):
        sheet = _choose(
            content,
            reading,
            path,
            remarks=[],
            only_first=True,
        )
    cells = sheet.rows
    rows = _rows_asked(cells, reading)
    header = list(reading.columns or ())
    used = list(range(len(header)))
    if not header and rows:
        first = cells[rows.pop(0)]
        used = sorted(first)
        header = _texts(first, used)

    if not header:
        raise InputError(
            f"{path} has no row with the names of its columns; set ", Option("columns")
        )

    names = column_names(
        header,
        reading,
        path,
        remarks=[],
        below_titles="",
    )
    filled = [cells[row] for row in rows if cells[row].keys() & used]
    columns: Values = {
        name: [row.get(place) for row in filled]
        for name, place in zip(names, used, strict=True)
    }
    undeclared = {name: columns[name] for name in names if name not in declared}
    columns |= _typed(undeclared, reading, remarks=[]).columns
    for name in names:
        if name in declared:
            columns[name] = polars.Series(name, columns[name], dtype=polars.Object)
    return polars.DataFrame(list(columns.values())), None, TableForm(format)


def _rows_asked(cells: Collection[int], reading: FileReading) -> list[int]:
    """The rows that are not to be skipped, above or below the table."""
    rows = [row for row in cells if row >= (reading.skip_lines or 0)]
    return rows[: max(len(rows) - (reading.skip_last or 0), 0)]


def _choose(
    content: bytes,
    reading: FileReading,
    path: str,
    remarks: list[Remark],
    *,
    only_first: bool = False,
) -> _SheetCells:
    """The sheet that is asked for, or the first, or the first that holds a table.

    A table has two rows and two columns at least. Of the sheet, the range that is asked
    for.
    """
    wanted = reading.sheet
    plain = plain_archive(content, path)
    calamine = load_library("python_calamine")
    workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(plain))
    names, candidates = _sheet_names(workbook, path)
    if only_first:
        candidates = candidates[:1]
    if wanted is not None:
        candidates = [_sheet_named(wanted, names, path)]
    chosen = candidates[0]
    cells = _SheetCells({}, [])
    for name in candidates:
        read = _sheet_cells(workbook.get_sheet_by_name(name))
        is_table = sum(len(row) > 1 for row in read.rows.values()) > 1
        if is_table or (read.rows and not cells.rows):
            chosen = name
            cells = read
        if is_table:
            break

    others = [repr(cut(name)) for name in names if name != chosen]
    if others and wanted is None:
        what = (
            f"{path} has {len(names)} sheets, and {cut(chosen)!r} was read; to read"
            f" {first_of(others, _SHOWN)}, set "
        )
        remarks.append((what, Option("sheet")))

    if not cells.rows:
        raise InputError(
            f"the sheet {cut(chosen)!r} of {path} is empty; choose another with ",
            Option("sheet"),
        )
    if reading.range is None:
        return cells
    inside = read_range(reading.range).inside(cells.rows)
    if not inside:
        raise InputError(
            Option("range"),
            f" is {reading.range!r}, where the sheet {cut(chosen)!r} of {path} is"
            f" empty; its table is in {find_table(cells.rows).block}",
        )
    return cells._replace(rows=inside)


def _sheet_names(workbook: Any, path: str) -> tuple[list[str], list[str]]:
    """The names of the sheets: as they come, and with those that are visible first.

    Their numbers would count sheets that only show a chart, too.
    """
    calamine = load_library("python_calamine")
    worksheet = calamine.SheetTypeEnum.WorkSheet
    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == worksheet]
    if not sheets:
        raise StorageError(
            f"{path} is not an Excel workbook with sheets; save the sheet as CSV"
        )

    visible = calamine.SheetVisibleEnum.Visible
    visible_first = sorted(sheets, key=lambda sheet: sheet.visible != visible)
    return [sheet.name for sheet in sheets], [sheet.name for sheet in visible_first]


def _sheet_named(wanted: str | int, names: Sequence[str], path: str) -> str:
    """The name of the sheet with this name, or else with this number."""
    if wanted in names:
        return str(wanted)
    is_number = str(wanted).isdecimal() and len(str(wanted)) < 9
    if is_number and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise InputError(
        Option("sheet"),
        f" is {wanted!r}, which {path} does not have; {did_you_mean(wanted, names)}",
    )


def _sheet_cells(sheet: Any) -> _SheetCells:
    above, left = sheet.start or (0, 0)
    rows = {}
    for number, row in enumerate(sheet.to_python(), above):
        values = {
            column: plain
            for column, value in enumerate(row, left)
            if (plain := _plain(value)) is not None
        }
        if values:
            rows[number] = values
    return _SheetCells(rows, sheet.merged_cell_ranges or [])


def _plain(value: Any) -> _Value | None:
    """What a cell holds, None if it is blank; a whole number has no decimal point."""
    if isinstance(value, str) and not value.strip():
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return int(value)
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(days=1)
    return value


def _columns(
    sheet: _SheetCells,
    path: str,
    reading: FileReading,
    remarks: list[Remark],
) -> tuple[dict[str, list[_Value | None]], FoundOptions]:
    """Find the table and its header; return its columns, and options that say where."""
    said = (reading.range, reading.skip_lines, reading.columns)
    is_detected = said == (None, None, None)
    cells = sheet
    is_apart = False
    if is_detected:
        found = find_table(sheet.rows)
        cells = sheet._replace(rows=found.rows)
        is_apart = bool(found.apart)
        remarks += _remarks_beside(found, sheet, path)
    table = _table_in(cells, path, reading, is_detected=is_detected)
    header = table.rows[0]
    below = table.rows[reading.columns is None :]
    where = ""
    options: FoundOptions = ()
    if is_detected and header > min(sheet.rows):
        where = f"row {header + 1}"
        options = (("skip_lines", str(header)),)
    if is_apart:
        options = (("range", str(table.range_of(header, table.rows[-1]).value)),)

    texts = _texts(cells.rows[header], table.used)
    names = column_names(texts, reading, path, remarks, where, table.further_down)
    for row, following in itertools.pairwise(below):
        if following != row + 1:
            remarks.append(
                (
                    f"row {row + 2} of the sheet in {path} is empty; the rows below it"
                    " were read as part of the same table; if they are not, set ",
                    table.range_of(header, row),
                    *table.advice_below(following),
                )
            )
            break

    remarks += _fill_merged(cells, below, table.used, path)
    columns = {
        name: [cells.rows[row].get(column) for row in below]
        for name, column in zip(names, table.used, strict=True)
    }
    return columns, options


class _Table(NamedTuple):
    """A table in a sheet: its rows from the header on, and its columns."""

    cells: _SheetCells
    rows: Sequence[int]
    used: Sequence[int]

    def range_of(self, first: int, last: int) -> Option:
        """The option that names some of its rows."""
        return Option("range", str(Block(first, self.used[0], last, self.used[-1])))

    def further_down(self) -> Option | None:
        """The option that names the table below another row that can be the header."""
        looked_at = self.rows[:_LOOKED_AT]
        texts = [_texts(self.cells.rows[row], self.used) for row in looked_at]
        count = names_below(texts)
        if not count:
            return None
        return self.range_of(looked_at[count], self.rows[-1])

    def advice_below(self, first: int) -> tuple[object, ...]:
        """How to read only the rows from one on, if that holds names."""
        rows = [row for row in self.rows if row >= first]
        used = sorted(set().union(*(self.cells.rows[row] for row in rows)))
        texts = [_texts(self.cells.rows[row], used) for row in rows[:_LOOKED_AT]]
        if not is_header(texts[0], [], texts[1:]):
            return ()
        part = self._replace(used=used)
        return "; to read those alone, set ", part.range_of(first, rows[-1])


def _table_in(
    cells: _SheetCells,
    path: str,
    reading: FileReading,
    *,
    is_detected: bool,
) -> _Table:
    """The table in these cells, below its titles if those are to be detected."""
    rows = _rows_asked(cells.rows, reading)
    if not rows:
        raise nothing_left(path)

    _fill_names(cells, rows[:_LOOKED_AT])
    if is_detected:
        looked_at = [cells.rows[row] for row in rows[:_LOOKED_AT]]
        across = sorted(set().union(*looked_at))
        rows = rows[title_count([_texts(row, across) for row in looked_at]) :]
    used = sorted(set().union(*(cells.rows[row] for row in rows)))
    return _Table(cells, rows, used)


def _remarks_beside(table: Found, sheet: _SheetCells, path: str) -> Iterator[Remark]:
    """Say what was left out of the sheet, and what was not though it may be another."""
    if table.apart:
        shown = first_of([*map(str, table.apart)], _SHOWN)
        what = (
            f"the table in {path} is in {table.block}, and what stands apart from it"
            f" was left out ({shown})"
        )
        tables = [block for block in table.apart if is_table(sheet.rows, block)]
        if tables:
            yield f"{what}; to read {tables[0]}, set ", Option("range", str(tables[0]))
        else:
            yield what
    wide = [block for block in table.joined if block.right > block.left]
    if len(wide) > 1:
        yield (
            f"an empty column parts the table in {path}; if {wide[0]} is a table of its"
            " own, set ",
            Option("range", str(wide[0])),
        )


def _fill_names(cells: _SheetCells, rows: Sequence[int]) -> None:
    """Give a name that is as high as the band beside it to both of their rows."""
    for (top, column), (bottom, last) in cells.merged:
        if column == last and column in cells.rows.get(top, {}):
            name = cells.rows[top][column]
            for row in rows:
                if top < row <= bottom:
                    cells.rows[row].setdefault(column, name)


def _texts(row: Mapping[int, _Value], columns: Sequence[int]) -> list[str]:
    return [_text_of(row.get(column, "")) for column in columns]


def _fill_merged(
    cells: _SheetCells,
    rows: Sequence[int],
    used: Sequence[int],
    path: str,
) -> Iterator[str]:
    """Give each cell of a merged range the value that people see there."""
    room = len(rows) * len(used)
    count = 0
    for (first_row, first_column), (last_row, last_column) in cells.merged:
        if not rows or last_row < rows[0]:
            continue
        value = cells.rows.get(first_row, {}).get(first_column)
        columns = used[
            bisect_left(used, first_column) : bisect_right(used, last_column)
        ]
        inside = rows[bisect_left(rows, first_row) : bisect_right(rows, last_row)]
        room -= len(columns) * len(inside)
        if room < 0:  # merged ranges do not overlap in a workbook that Excel wrote
            return
        if value is not None:
            count += 1
            for row in inside:
                cells.rows[row].update(dict.fromkeys(columns, value))

    if count:
        yield (
            f"{path} has {counted(count, 'merged range')} of cells; each cell was read"
            " with the value of its range"
        )


def _text_of(value: _Value) -> str:
    """A value as a CSV would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def _typed(
    by_name: Mapping[str, list[_Value | None]],
    reading: FileReading,
    remarks: list[Remark],
) -> Typed:
    """Give each column the type of all its cells; texts are read as those of a CSV."""
    missing = set(reading.markers)
    counts: dict[str, dict[str, int]] = {}
    columns: Values = {}
    texts: list[str] = []
    mixed: list[str] = []
    for name, values in by_name.items():
        present = _without_markers(name, values, missing, counts)
        columns[name] = _column(name, present)
        if columns[name] is None:
            texts.append(name)
            if any(not isinstance(value, str | None) for value in present):
                mixed.append(name)
            written = [None if value is None else _text_of(value) for value in present]
            columns[name] = polars.Series(name, written, dtype=polars.String)

    remarks += missing_remarks(counts)
    if mixed:
        remarks.append(
            "numbers and text are mixed, so these columns were read as text"
            f" ({', '.join(mixed)})"
        )

    if not texts:
        return Typed(columns, {})
    cells = polars.DataFrame([columns[name] for name in texts])
    typed = typed_table(cells, [""], reading, marked=counts)
    typed.columns = columns | typed.columns
    as_numbers = [
        name
        for name in texts
        if typed.columns[name].dtype.is_numeric() and name not in mixed
    ]
    if as_numbers:
        remarks.append(
            f"numbers stored as text were read as numbers ({', '.join(as_numbers)})"
        )
    return typed


def _without_markers(
    name: str,
    values: Sequence[_Value | None],
    markers: set[str],
    counts: dict[str, dict[str, int]],
) -> list[_Value | None]:
    """The values of a column, with None for markers, which are counted by name."""
    present: list[_Value | None] = []
    for value in values:
        if isinstance(value, str) and value.strip() in markers:
            of_marker = counts.setdefault(cut(value.strip()), {})
            of_marker[name] = of_marker.get(name, 0) + 1
            present.append(None)
        else:
            present.append(value)
    return present


def _column(name: str, values: Sequence[Any]) -> Any | None:
    """The values as a column of their type; None for texts or for several types."""
    kinds = {type(value) for value in values if value is not None}
    if kinds & {dt.date, dt.datetime} and dt.time in kinds:
        # Among dates, midnight is no time but the date 0.
        values = [_DAY_ZERO if value == dt.time() else value for value in values]
        kinds = {type(value) for value in values if value is not None}
    if kinds == {dt.date, dt.datetime}:
        values = [at_midnight(value) for value in values]

    types: dict[type | None, Any] = {
        int: polars.Int64,
        bool: polars.Boolean,
        float: polars.Float64,
        dt.time: polars.Time,
        dt.date: polars.Date,
        dt.datetime: polars.Datetime("us"),
    }
    dtype = types.get(one_type(values))
    if dtype is None:
        return None
    return polars.Series(
        name,
        values,
        dtype=dtype,
        strict=False,
    )
