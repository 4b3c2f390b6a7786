"""Tables in Excel workbooks, read into polars: the sheet, the header and the types are detected."""

from __future__ import annotations

import datetime as dt
import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import need_memory
from fairmaxent.errors import ColumnError, InputError, Option, cut
from fairmaxent.files.cell_kinds import MISSING, Conventions, Decimal, Remark, Typed, missing_remarks, typed_table
from fairmaxent.files.date_forms import DateOrder
from fairmaxent.files.footer import check_skip_last, footer_remarks
from fairmaxent.files.form import SheetForm
from fairmaxent.files.header import column_names, row_remark, title_count, title_remark
from fairmaxent.files.xlsx_values import CellValue, ErrorValue, text_of_value
from fairmaxent.files.xlsx_workbook import SheetCells, SheetName, Workbook, open_workbook

_LOOKED_AT = 50  # rows
_MOST_TITLE_ROWS = 100  # that a result can have above its header
_SHOWN = 5  # names of sheets
_CELL_MEMORY = 100  # bytes
_WHOLE = 2**53  # beyond this, a number does not have all digits

_Value = CellValue | ErrorValue


def read_xlsx(
    content: bytes,
    path: str,
    *,
    sheet: str | int | None = None,
    decimal: Decimal | None = None,
    date_order: DateOrder | None = None,
    missing: Sequence[str] = MISSING,
    columns: Sequence[str] | None = None,
    skip_lines: int | None = None,
    skip_last: int | None = None,
    texts: Collection[str] = (),
) -> tuple[Any, list[Remark], SheetForm]:
    """Return the table, notes on how it was read, and its form; `files.tables.read_table` documents the options."""
    workbook = open_workbook(content, path)
    chosen, cells = _choose(workbook, sheet)
    if not cells.rows:
        raise InputError(f"the sheet {cut(chosen.name)!r} of {path} is empty; choose another with ", Option("sheet"))
    remarks: list[Remark] = [] if sheet is not None else [*_sheet_remarks(workbook, chosen)]
    check_skip_last(skip_last, path)
    region = _region(cells, path, columns, (skip_lines, skip_last or 0), remarks)
    # Many cells can share a long text.
    workbook.package.account(
        sum(len(text) for column in region.values.values() for text in column if type(text) is str)
    )
    typed, read = _typed(region, set(missing), Conventions("", decimal, date_order, texts))
    remarks += [*read, *typed.remarks]
    frame = typed.frame
    remarks += row_remark(frame, path) if columns is None else ()
    remarks += footer_remarks(frame, path) if skip_last is None else ()
    return frame, remarks, _form(workbook, chosen, cells, region, has_header=columns is None)


# ---------------------------------------------------------------- sheets


def _choose(workbook: Workbook, wanted: str | int | None) -> tuple[SheetName, SheetCells]:
    """The sheet that is asked for, or the first that holds a table: two rows and two columns at least."""
    if wanted is not None:
        chosen = workbook.sheet(wanted)
        return chosen, workbook.cells(chosen)
    best: tuple[SheetName, SheetCells] | None = None
    for sheet in sorted(workbook.sheets, key=lambda sheet: sheet.is_hidden):
        cells = workbook.cells(sheet)
        if sum(len(row) > 1 for row in cells.rows.values()) > 1:
            return sheet, cells
        if best is None or (not best[1].rows and cells.rows):
            best = sheet, cells
    assert best is not None  # a workbook has sheets
    return best


def _sheet_remarks(workbook: Workbook, chosen: SheetName) -> Iterator[Remark]:
    """Say which sheet was read if there are several."""
    others = [repr(cut(sheet.name)) for sheet in workbook.sheets if sheet is not chosen]
    if others:
        shown = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
        yield (
            f"{workbook.package.path} has {len(workbook.sheets)} sheets, and {cut(chosen.name)!r} was read; to read "
            f"{shown}, set ",
            Option("sheet"),
        )


# ---------------------------------------------------------------- the table in a sheet


@dataclass(frozen=True, eq=False)
class _Region:
    """Where the table is in its sheet, and its columns."""

    names: tuple[str, ...]
    columns: tuple[int, ...]  # of the sheet
    header: int  # its row; or the first row, if there is none
    rows: tuple[int, ...]
    values: dict[str, list[_Value | None]] = field(repr=False)


def _region(
    cells: SheetCells,
    path: str,
    columns: Sequence[str] | None,
    skipped: tuple[int | None, int],
    remarks: list[Remark],
) -> _Region:
    """Find the header and the rows below it; ``skipped`` rows stand above the header, and below the table."""
    skip_lines, skip_last = skipped
    rows = [row for row in cells.rows if row >= (skip_lines or 0)]
    if not rows:
        raise InputError(f"{path} has no table after {skip_lines} rows; set ", Option("skip_lines"), " to fewer")
    if skip_last >= len(rows):
        raise InputError(f"{path} has no table above its last {skip_last} rows; set ", Option("skip_last"), " to fewer")
    rows = rows[: len(rows) - skip_last]
    titles = 0
    if skip_lines is None and columns is None:
        titles = title_count([*_records(cells, rows[:_LOOKED_AT])])
    header, below = rows[titles], rows[titles + (columns is None) :]
    used = sorted({column for row in (header, *below) for column in cells.rows[row]})
    need_memory(float(_CELL_MEMORY * len(used) * len(below)), f"reading {path}", "remove cells beside the table")
    names = _names(cells.rows[header], used, path, columns, remarks)
    if titles:
        remarks.append(title_remark(path, f"row {header + 1}", names))
    remarks += _gap_remarks(below, path)
    filled = {row: dict(cells.rows[row]) for row in below} if cells.merged else cells.rows
    remarks += _fill_merged(cells, filled, below, used, path)
    remarks += _formula_remarks(cells, below, dict(zip(used, names, strict=True)))
    values = {name: [filled[row].get(column) for row in below] for name, column in zip(names, used, strict=True)}
    return _Region(tuple(names), tuple(used), header, tuple(below), values)


def _records(cells: SheetCells, rows: Sequence[int]) -> Iterator[list[str]]:
    """Rows as texts, all as wide as the widest."""
    first = min(column for row in rows for column in cells.rows[row])
    last = max(column for row in rows for column in cells.rows[row])
    for row in rows:
        held = cells.rows[row]
        yield [text_of_value(held[column]) if column in held else "" for column in range(first, last + 1)]


def _names(
    header: Mapping[int, _Value], used: Sequence[int], path: str, given: Sequence[str] | None, remarks: list[Remark]
) -> list[str]:
    if given is not None and len(given) != len(used):
        raise ColumnError(f"{path} has {len(used)} columns and {len(given)} names were given; name every column")
    texts = [text_of_value(header[column]) if column in header else "" for column in used]
    return column_names(texts if given is None else given, path, remarks)


def _gap_remarks(rows: Sequence[int], path: str) -> Iterator[str]:
    """Say that rows stand below an empty one, where another table may begin."""
    gap = next((row for row, following in itertools.pairwise(rows) if following != row + 1), None)
    if gap is not None:
        yield f"row {gap + 2} of the sheet in {path} is empty; the rows below it were read as part of the same table"


def _fill_merged(
    cells: SheetCells,
    filled: dict[int, dict[int, _Value]],
    rows: Sequence[int],
    used: Sequence[int],
    path: str,
) -> Iterator[str]:
    """Give each cell of a merged range the value that people see there."""
    room, count = len(rows) * len(used), 0
    for first_row, last_row, first_column, last_column in cells.merged:
        if not rows or last_row < rows[0]:
            continue
        value = cells.rows.get(first_row, {}).get(first_column)
        columns = _between(used, first_column, last_column)
        inside = _between(rows, first_row, last_row)
        room -= len(columns) * len(inside)
        if room < 0:  # merged ranges do not overlap in a workbook that Excel wrote
            return
        if value is not None:
            count += 1
            for row in inside:
                filled[row].update(dict.fromkeys(columns, value))
    if count:
        ranges = "1 merged range" if count == 1 else f"{count:,} merged ranges"
        yield f"{path} has {ranges} of cells in its rows; each cell was read with the value of its range"


def _between(ascending: Sequence[int], first: int, last: int) -> Sequence[int]:
    return ascending[bisect_left(ascending, first) : bisect_right(ascending, last)]


def _formula_remarks(cells: SheetCells, rows: Sequence[int], names: Mapping[int, str]) -> Iterator[str]:
    """Say that formulas have no value yet, because no spreadsheet has computed them."""
    inside = set(rows) if cells.without_value else set()
    lacking = Counter(column for row, column in cells.without_value if row in inside and column in names)
    if lacking:
        columns = ", ".join(f"{names[column]} {lacking[column]:,}" for column in sorted(lacking))
        yield (
            f"formulas without a stored value were read as missing ({columns}); open the workbook in a spreadsheet "
            "and save it to compute them"
        )


# ---------------------------------------------------------------- values


def _typed(region: _Region, missing: set[str], conventions: Conventions) -> tuple[Typed, list[Remark]]:
    """Give each column the type that all its cells have; texts are read as those of a CSV are."""
    polars = load_library("polars")
    counts: dict[str, dict[str, int]] = {}
    columns: dict[str, Any] = {}
    mixed: list[str] = []
    for name, values in region.values.items():
        present = _without_missing(name, values, missing, counts)
        column = None if name in conventions.texts else _column(name, present, polars)
        if column is None:
            written = [None if value is None else text_of_value(value) for value in present]
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


def _without_missing(
    name: str, values: Sequence[_Value | None], missing: set[str], counts: dict[str, dict[str, int]]
) -> list[CellValue | None]:
    """The values without markers of missing ones and errors, which are counted."""
    present: list[CellValue | None] = []
    for value in values:
        marker = value.code if isinstance(value, ErrorValue) else value.strip() if isinstance(value, str) else None
        if marker is not None and (isinstance(value, ErrorValue) or marker in missing):
            by_name = counts.setdefault(cut(marker), {})
            by_name[name] = by_name.get(name, 0) + 1
            present.append(None)
        else:
            present.append(value)  # type: ignore[arg-type]  # errors are handled above
    return present


def _column(name: str, values: Sequence[CellValue | None], polars: Any) -> Any | None:
    """The values as a column of their type; None if they are texts, or of several types."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds or str in kinds:
        return None
    if kinds == {bool}:
        return polars.Series(name, values, dtype=polars.Boolean)
    if kinds <= {int, float}:
        whole = all(value is None or (value == int(value) and abs(value) < _WHOLE) for value in values)  # type: ignore[arg-type]
        kept = [None if value is None else int(value) for value in values] if whole else values  # type: ignore[arg-type]
        return polars.Series(name, kept, dtype=polars.Int64 if whole else polars.Float64, strict=False)
    if kinds == {dt.date}:
        return polars.Series(name, values, dtype=polars.Date)
    if kinds == {dt.time}:
        return polars.Series(name, values, dtype=polars.Time)
    if kinds <= {dt.date, dt.datetime}:
        moments = [dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value for value in values]
        return polars.Series(name, moments, dtype=polars.Datetime("us"))
    return None


# ---------------------------------------------------------------- form


def _form(workbook: Workbook, sheet: SheetName, cells: SheetCells, region: _Region, *, has_header: bool) -> SheetForm:
    """What to keep, and what cannot be kept, if a result is to be written in the same form."""
    above = [row for row in cells.rows if row < region.header]
    in_place = range(region.header) if region.header <= _MOST_TITLE_ROWS else above[:_MOST_TITLE_ROWS]
    title = [_title_row(cells.rows.get(row, {})) for row in in_place]
    formats, below = {}, range(region.rows[0], region.rows[-1] + 1) if region.rows else range(0)
    for name, column in zip(region.names, region.columns, strict=True):
        styles = Counter(held[column] for row, held in cells.formats.items() if row in below and column in held)
        code = workbook.format_code(styles.most_common(1)[0][0]) if styles else None
        if code is not None:
            formats[name] = code
    lost = {
        "formulas": cells.formulas,
        "merged cells": cells.merged,
        "macros": workbook.has_macros,
        "the other sheets": len(workbook.sheets) > 1,
    }
    return SheetForm(
        "xlsx",
        sheet.name,
        tuple(title),
        region.columns[0],
        has_header,
        formats,
        ("colours", "column widths", *(what for what, is_there in lost.items() if is_there)),
    )


def _title_row(held: Mapping[int, _Value]) -> tuple[Any, ...]:
    last = max(held, default=-1)
    values = [held.get(column) for column in range(last + 1)]
    return tuple(value.code if isinstance(value, ErrorValue) else value for value in values)
