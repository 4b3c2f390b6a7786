"""CSV files as people write them, read into a polars table: encoding, delimiter, names, gaps and types are detected.

Polars reads regular files, which is fast. Python's csv module reads unusual ones (odd quotes, empty lines, rows of
unequal length); it also knows the line number that an error message needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fairmaxent.errors import InputError, Option
from fairmaxent.files.cell_kinds import MISSING, Conventions, Decimal, Remark, Typed, typed_table
from fairmaxent.files.csv_cells import long_cells, need_csv_memory, read_cells
from fairmaxent.files.csv_layout import Layout, find_layout
from fairmaxent.files.csv_text import CsvText, decode
from fairmaxent.files.date_forms import DateOrder
from fairmaxent.files.footer import check_skip_last, footer_remarks, without_empty_end, without_last_lines
from fairmaxent.files.form import CsvForm
from fairmaxent.files.formats import FileFormat
from fairmaxent.files.header import row_remark


def read_csv(
    content: bytes,
    path: str,
    *,
    format: FileFormat = "csv",
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    date_order: DateOrder | None = None,
    missing: Sequence[str] = MISSING,
    columns: Sequence[str] | None = None,
    skip_lines: int | None = None,
    skip_last: int | None = None,
    texts: Collection[str] = (),
) -> tuple[Any, list[Remark], CsvForm]:
    """Return the table, notes on how it was read, and its form; `files.tables.read_table` documents the options."""
    need_csv_memory(len(content), 0, path)
    decoded = decode(content, path, encoding)
    check_skip_last(skip_last, path)
    text = without_last_lines(decoded.text, skip_last)
    if not text.strip() and decoded.text.strip():
        raise InputError(f"{path} has no table above its last {skip_last} rows; set ", Option("skip_last"), " to fewer")
    if not text.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    with long_cells():
        layout = find_layout(text, delimiter, skip_lines, has_header=columns is None)
    remarks: list[Remark] = [*decoded.notes]
    cells = read_cells(text[layout.start :], layout, columns, len(content), path, remarks)
    remarks += layout.remarks(path, cells.columns) if skip_lines is None else ()
    conventions = Conventions(layout.separator, decimal, date_order, texts)
    typed = typed_table(cells, ["", *missing], conventions)
    frame, empty = without_empty_end(typed.frame, path)
    remarks += row_remark(frame, path) if columns is None else ()
    remarks += [*typed.remarks, *empty, *(footer_remarks(frame, path) if skip_last is None else ())]
    return frame, remarks, _form(format, decoded, layout, typed, has_header=columns is None)


def _form(format: FileFormat, decoded: CsvText, layout: Layout, typed: Typed, *, has_header: bool) -> CsvForm:
    """What to keep if a result is to be written in the same form."""
    return CsvForm(
        format,
        layout.separator,
        decoded.encoding,
        decoded.has_mark,
        decoded.line_end,
        layout.separator_line.rstrip("\n"),
        decoded.text[len(layout.separator_line) : layout.start],
        has_header,
        # Where a semicolon separates the cells, the comma is taken, and is the decimal mark even if no number shows it.
        typed.decimal or ("," if layout.separator == ";" else "."),
        typed.forms,
        typed.markers,
    )
