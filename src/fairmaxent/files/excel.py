"""Tables in Excel workbooks, read with calamine: the sheet, the header and the types
are detected.

Nothing in a workbook is run or fetched: formulas count by the value stored with them,
links and macros are not read. Errors such as #N/A, and formulas that no spreadsheet has
computed, are empty cells.
"""

import datetime as dt
import io
import itertools
import re
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import need_memory
from fairmaxent.document.words import counted
from fairmaxent.errors import InputError, Option, StorageError, cut, did_you_mean
from fairmaxent.files.cells import Typed, missing_remarks, typed_table
from fairmaxent.files.content import check_growth
from fairmaxent.files.reading import FileReading, Remark, TableForm
from fairmaxent.files.surroundings import column_names, remarks_around, title_count

# rows, and names of sheets
_LOOKED_AT = 50
_SHOWN = 5
# bytes of memory for each byte of XML, and for each cell
_XML_MEMORY = 8
_CELL_MEMORY = 100
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
)
_DIMENSION = re.compile(rb'<dimension ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')

_Value = str | int | float | bool | dt.date | dt.datetime | dt.time


class _SheetCells(NamedTuple):
    """The cells of a sheet that hold something, by row and column; both are numbered
    from 0.
    """

    rows: dict[int, dict[int, _Value]]
    # the first and the last cell of each range
    merged: list[tuple[tuple[int, int], tuple[int, int]]]


def read_xlsx(
    content: bytes, path: str, reading: FileReading, format: str
) -> tuple[Any, list[Remark], TableForm]:
    """Read a table from the content of a workbook."""
    remarks: list[Remark] = []
    with _damage(path):
        cells = _choose(content, reading.sheet, path, remarks)
    columns, above = _columns(cells, path, reading, remarks)
    typed = _typed(columns, reading, remarks)
    remarks += [*typed.remarks, *remarks_around(typed.frame, path, reading)]
    return (
        typed.frame,
        remarks,
        TableForm(format, found=(("skip_lines", str(above)),) if above else ()),
    )


def _damage(path: str) -> AbstractContextManager[None]:
    also = (load_library("python_calamine").CalamineError, *_OF_DAMAGE)
    return library_errors(
        f"{path} is a damaged Excel workbook",
        "save it again, or save the sheet as CSV",
        *also,
    )


def cells_by_row(
    content: bytes,
    path: str,
    reading: FileReading,
    declared: Collection[str],
    format: str,
) -> tuple[Any, None, TableForm]:
    """Read each row by itself: the cells as they are, below the names in the first row
    of the first sheet.

    Nothing is detected, and merged cells are not filled, so that no row changes how
    another is read. Columns that are not ``declared`` are typed.
    """
    polars = load_library("polars")
    with _damage(path):
        cells = _choose(content, reading.sheet, path, [], only_first=True).rows
    rows = [row for row in cells if row >= (reading.skip_lines or 0)]
    rows = rows[: max(len(rows) - (reading.skip_last or 0), 0)]
    header = list(reading.columns or ())
    used = list(range(len(reading.columns or ())))
    if not header and rows:
        used = sorted(cells[rows[0]])
        header = _texts(cells[rows.pop(0)], used)
    if not header:
        raise InputError(
            f"{path} has no row with the names of its columns; set ", Option("columns")
        )
    names = column_names(header, reading, path, [], "")
    filled = [
        cells[row] for row in rows if any(column in cells[row] for column in used)
    ]
    columns: dict[str, Any] = {
        name: [row.get(at) for row in filled]
        for name, at in zip(names, used, strict=True)
    }
    columns |= _typed(
        {name: columns[name] for name in names if name not in declared}, reading, []
    ).columns
    for name in (name for name in names if name in declared):
        stripped = [
            cell.strip() if isinstance(cell, str) else cell for cell in columns[name]
        ]
        columns[name] = polars.Series(name, stripped, dtype=polars.Object)
    return polars.DataFrame(list(columns.values())), None, TableForm(format)


def _open(content: bytes, path: str) -> Any:
    """Open a workbook; its sheets are listed, but not read."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    # OpenDocument, .xlsb, or files in it
    if "[Content_Types].xml" not in sizes or "xl/workbook.xml" not in sizes:
        raise StorageError(
            f"{path} is a zip archive, but not an Excel workbook; save it as .xlsx or"
            " CSV, or unpack it"
        )
    check_growth(sum(sizes.values()), content, path, "save the sheet as CSV")
    need_memory(
        _XML_MEMORY * max(sizes.values()),
        f"reading {path}",
        "save the sheet as CSV, take a part of the rows",
    )
    # calamine makes room for all cells up to the last, also if most are empty
    for name in sizes:
        if name.startswith("xl/worksheets/") and (
            found := _DIMENSION.search(archive.open(name).read(4000))
        ):
            width = _column_number(found[3]) - _column_number(found[1]) + 1
            size = float(_CELL_MEMORY * width * (int(found[4]) - int(found[2]) + 1))
            need_memory(size, f"reading {path}", "remove cells beside the table")
    return load_library("python_calamine").CalamineWorkbook.from_filelike(
        io.BytesIO(content)
    )


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _choose(
    content: bytes,
    wanted: str | int | None,
    path: str,
    remarks: list[Remark],
    *,
    only_first: bool = False,
) -> _SheetCells:
    """The sheet that is asked for, or the first, or the first that holds a table: two
    rows and two columns at least.
    """
    calamine = load_library("python_calamine")
    workbook = _open(content, path)
    # By name: their numbers count sheets that only show a chart, too.
    sheets = [
        sheet
        for sheet in workbook.sheets_metadata
        if sheet.typ == calamine.SheetTypeEnum.WorkSheet
    ]
    if not sheets:
        raise StorageError(
            f"{path} is not an Excel workbook with sheets; save the sheet as CSV"
        )
    names = [sheet.name for sheet in sheets]
    visible_first = sorted(
        sheets, key=lambda sheet: sheet.visible != calamine.SheetVisibleEnum.Visible
    )
    candidates = [sheet.name for sheet in visible_first][: 1 if only_first else None]
    if wanted is not None:  # by its name, or else by its number
        if str(wanted).isdecimal() and len(str(wanted)) < 9:
            number = int(wanted)
        else:
            number = 0
        if wanted in names:
            candidates = [str(wanted)]
        else:
            candidates = names[max(number - 1, 0) : number]
    if not candidates:
        raise InputError(
            Option("sheet"),
            f" is {wanted!r}, which {path} does not have;"
            f" {did_you_mean(wanted, names)}",
        )
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
        shown = ", ".join(others[:_SHOWN]) + (
            f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        )
        what = (
            f"{path} has {len(names)} sheets, and {cut(chosen)!r} was read; to read"
            f" {shown}, set "
        )
        remarks.append((what, Option("sheet")))
    if not cells.rows:
        raise InputError(
            f"the sheet {cut(chosen)!r} of {path} is empty; choose another with ",
            Option("sheet"),
        )
    return cells


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
    """What a cell holds; None if it is blank. Numbers come without a decimal point if
    they are whole.
    """
    kind = type(value)
    if kind is str:
        return value if value.strip() else None
    if kind is float:
        if value.is_integer() and abs(value) < _WHOLE:
            return int(value)
        return float(value)
    if kind is dt.timedelta:
        plain: _Value = value / dt.timedelta(days=1)
    else:
        plain = value
    return plain


def _columns(
    cells: _SheetCells, path: str, reading: FileReading, remarks: list[Remark]
) -> tuple[dict[str, list[_Value | None]], int]:
    """Find the header, and return the columns below it, and how many rows are above it,
    if they were detected.
    """
    skip_lines = reading.skip_lines
    skip_last = reading.skip_last or 0
    given = reading.columns
    rows = [row for row in cells.rows if row >= (skip_lines or 0)]
    rows = rows[: max(len(rows) - skip_last, 0)]
    if not rows:
        what = f"{path} has no table beside the rows that are skipped; set "
        raise InputError(
            what, Option("skip_lines"), " or ", Option("skip_last"), " to fewer"
        )
    # a name as high as the band beside it is a name of both rows
    for (top, column), (bottom, last) in cells.merged:
        for row in (
            rows[:_LOOKED_AT]
            if column == last and column in cells.rows.get(top, {})
            else ()
        ):
            if top < row <= bottom:
                cells.rows[row].setdefault(column, cells.rows[top][column])
    titles = 0
    if skip_lines is None and given is None:
        looked_at = rows[:_LOOKED_AT]
        filled = {column for row in looked_at for column in cells.rows[row]}
        titles = title_count(
            [
                _texts(cells.rows[row], range(min(filled), max(filled) + 1))
                for row in looked_at
            ]
        )
    header = rows[titles]
    below = rows[titles + (given is None) :]
    used = sorted({column for row in (header, *below) for column in cells.rows[row]})
    if titles:
        where = f"row {header + 1}"
    else:
        where = ""
    names = column_names(
        _texts(cells.rows[header], used), reading, path, remarks, where
    )
    gap = next(
        (row for row, following in itertools.pairwise(below) if following != row + 1),
        None,
    )
    if gap is not None:
        what = f"row {gap + 2} of the sheet in {path} is empty"
        remarks.append(f"{what}; the rows below it were read as part of the same table")
    remarks += _fill_merged(cells, below, used, path)
    columns = {
        name: [cells.rows[row].get(column) for row in below]
        for name, column in zip(names, used, strict=True)
    }
    return columns, header if titles else 0


def _texts(row: Mapping[int, _Value], columns: Sequence[int]) -> list[str]:
    return [_text_of(row[column]) if column in row else "" for column in columns]


def _fill_merged(
    cells: _SheetCells, rows: Sequence[int], used: Sequence[int], path: str
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
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def _typed(
    by_name: Mapping[str, list[_Value | None]],
    reading: FileReading,
    remarks: list[Remark],
) -> Typed:
    """Give each column the type that all its cells have; texts are read as those of a
    CSV are.
    """
    polars = load_library("polars")
    missing = set(reading.markers)
    counts: dict[str, dict[str, int]] = {}
    columns: dict[str, Any] = {}
    mixed: list[str] = []
    for name, values in by_name.items():
        is_missing = [
            isinstance(value, str) and value.strip() in missing for value in values
        ]
        for marker, count in Counter(
            str(value).strip() for value in itertools.compress(values, is_missing)
        ).items():
            counts.setdefault(cut(marker), {})[name] = count
        present = [
            None if gap else value
            for value, gap in zip(values, is_missing, strict=True)
        ]
        column = _column(name, present, polars)
        if column is None:
            written = [None if value is None else _text_of(value) for value in present]
            if any(not isinstance(value, str | None) for value in present):
                mixed += [name]
            column = polars.Series(name, written, dtype=polars.String)
        columns[name] = column
    written_out = [
        name for name, column in columns.items() if column.dtype == polars.String
    ]
    remarks += missing_remarks(counts)
    if mixed:
        remarks.append(
            "numbers and text are mixed, so these columns were read as text"
            f" ({', '.join(mixed)})"
        )
    if not written_out:
        return Typed(columns, {})
    typed = typed_table(
        polars.DataFrame([columns[name] for name in written_out]), [""], reading
    )
    typed.columns = {
        name: typed.columns.get(name, column) for name, column in columns.items()
    }
    as_numbers = [
        name
        for name in written_out
        if typed.columns[name].dtype.is_numeric() and name not in mixed
    ]
    if as_numbers:
        remarks.append(
            f"numbers stored as text were read as numbers ({', '.join(as_numbers)})"
        )
    return typed


def _column(name: str, values: Sequence[Any], polars: Any) -> Any | None:
    """The values as a column of their type; None if they are texts, or of several
    types.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds & {dt.date, dt.datetime} and dt.time in kinds:
        values = [_DAY_ZERO if value == dt.time() else value for value in values]
        kinds = {type(value) for value in values if value is not None}
    if kinds == {dt.date, dt.datetime}:
        values = [
            dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value
            for value in values
        ]
        kinds = {dt.datetime}
    types = {
        int: polars.Int64,
        bool: polars.Boolean,
        float: polars.Float64,
        dt.time: polars.Time,
        dt.date: polars.Date,
    }
    types[dt.datetime] = polars.Datetime("us")
    if kinds == {int, float}:
        kind = float
    elif len(kinds) == 1:
        kind = next(iter(kinds))
    else:
        kind = str
    if kind in types:
        return polars.Series(name, values, dtype=types[kind], strict=False)
    return None
