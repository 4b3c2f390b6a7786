"""The cells of a CSV as text: polars reads regular files, Python's csv module the others."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairmaxent.data.frames import is_foreign, load_library
from fairmaxent.data.limits import LONGEST_CELL, need_memory
from fairmaxent.errors import ColumnError, InputError, LimitError, Option, StorageError
from fairmaxent.files.cell_kinds import Remark
from fairmaxent.files.csv_layout import Layout
from fairmaxent.files.header import column_names, some_names

_NEWLINE, _QUOTE = ord("\n"), ord('"')
# Bytes of memory, at the peak, for each byte of text and for each cell; the last if Python's csv module reads it.
_BYTE_MEMORY, _CELL_MEMORY, _SLOW_CELL_MEMORY = 6, 24, 100


def read_cells(
    text: str, layout: Layout, columns: Sequence[str] | None, size: int, path: str, remarks: list[Remark]
) -> Any:
    """Read the table in a text, from a file of this size, as a polars table of text."""
    separator = layout.separator
    with long_cells():
        header, lines = _first_record(text, separator, path, layout.lines)
    need_csv_memory(size, _CELL_MEMORY * text.count(separator), path)
    names = column_names(header if columns is None else columns, path, remarks)
    if len(header) != len(names):
        raise ColumnError(f"{path} has {len(header)} columns and {len(names)} names were given; name every column")
    skipped = lines if columns is None else 0
    cells = _fast(text, names, separator, skipped) if skipped <= 1 else None
    if cells is None:
        need_csv_memory(size, _SLOW_CELL_MEMORY * text.count(separator), path)
        with long_cells():
            cells = _slow(text, names, separator, skipped, path, layout.lines)
    remarks += _joined_lines(text, separator, len(names), len(cells) + skipped, path, layout.lines)
    return cells


def need_csv_memory(size: int, more: float, path: str) -> None:
    """Refuse a file of this size if reading it would take too much memory."""
    need_memory(
        _BYTE_MEMORY * size + more, f"reading {path}", "leave out columns, take a part of the rows, use Parquet"
    )


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's csv module read cells up to our limit, which for the whole process is 128 KiB by default."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(text: str, separator: str, path: str, above: int) -> Iterator[tuple[int, list[str]]]:
    """The records that are not empty, each with the number of its last line; ``above``: lines that were skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as problem:
        if "field limit" in str(problem):
            line = above + reader.line_num
            raise LimitError(
                f"{path}: up to line {line}, a cell has more than {LONGEST_CELL:,} characters, which is the "
                "limit; a quote before it may never be closed: close it, or double a quote inside a cell"
            ) from problem
        raise StorageError(
            f"{path}, line {above + reader.line_num}: the quotes do not match ({problem}); close them, "
            "or double a quote inside a cell"
        ) from problem


def _first_record(text: str, separator: str, path: str, above: int) -> tuple[list[str], int]:
    """The first record that is not empty, and the number of its last line."""
    for lines, record in _records(text, separator, path, above):
        return record, lines
    raise InputError(
        f"{path} has no table after the {above} lines that were skipped; set ", Option("skip_lines"), " to fewer"
    )


def _fast(text: str, names: Sequence[str], separator: str, skipped: int) -> Any:
    """Read all cells as text with polars; None if the file is too irregular for polars to be trusted with it."""
    if ' "' in text or len(names) == 1:  # in a single column, polars reads an empty line as an empty cell
        return None
    polars = load_library("polars")
    body = text.rstrip("\n").encode()
    records = _regular_records(np.frombuffer(body + b"\n", dtype=np.uint8), ord(separator), len(names))
    if records is None:
        return None
    try:
        schema = dict.fromkeys(names, polars.String)
        cells = polars.read_csv(body, has_header=False, skip_lines=skipped, separator=separator, schema=schema)
    except BaseException as problem:
        if is_foreign(problem):
            return None
        raise
    return cells if len(cells) == records - skipped else None


def _regular_records(body: np.ndarray[Any, np.dtype[np.uint8]], separator: int, width: int) -> int | None:
    """Count the records if each has one cell for each name; delimiters and line ends inside quotes do not count.

    None if one has more or fewer cells, or if a quote stands anywhere but at the ends of a cell (5" or "5" wide):
    two such quotes would hide the line ends between them.
    """
    is_quote = body == _QUOTE
    outside = ~np.logical_xor.accumulate(is_quote)
    if not outside[-1]:
        return None
    quotes = np.flatnonzero(is_quote)
    opening, closing = quotes[::2], quotes[1::2]
    beside = np.concatenate([body[opening[opening > 0] - 1], body[closing + 1]])
    if not np.isin(beside, (separator, _NEWLINE, _QUOTE)).all():
        return None
    ends = np.flatnonzero((body == _NEWLINE) & outside)
    splits = np.flatnonzero((body == separator) & outside)
    regular = (np.diff(np.searchsorted(splits, ends), prepend=0) == width - 1).all()
    return len(ends) if regular else None


def _slow(text: str, names: Sequence[str], separator: str, skipped: int, path: str, above: int) -> Any:
    """Read all cells as text with Python's csv module, or raise an error that names the line."""
    polars = load_library("polars")
    records: list[list[str]] = []
    for line, record in _records(text, separator, path, above):
        if line <= skipped:
            continue
        if len(record) != len(names):
            cells = "1 cell" if len(record) == 1 else f"{len(record)} cells"
            there = "there is 1 column" if len(names) == 1 else f"there are {len(names)} columns"
            raise StorageError(
                f"{path}, line {above + line}: {cells}, but {there} ({some_names(names)}); repair the line, or set ",
                Option("delimiter"),
                *_ways_out(records, record, names),
            )
        records.append(record)
    return polars.DataFrame(records, schema=dict.fromkeys(names, polars.String), orient="row")


def _ways_out(records: list[list[str]], record: list[str], names: Sequence[str]) -> tuple[object, ...]:
    """What else may help if a line has another number of cells: it may be no row."""
    if not records:
        return (", or ", Option("skip_lines"), " if a title stands above the header")
    return (", or ", Option("skip_last"), " if it stands below the table") if len(record) < len(names) else ()


def _joined_lines(text: str, separator: str, width: int, records: int, path: str, above: int) -> list[str]:
    """Refuse, or note in a table of two columns, rows that may be several: those that stray quotes make one.

    A cell in quotes may have several lines. But if each line of the file has all cells by itself, the quotes probably
    stand for inches. Two columns can be a name and an address, whose last line has a comma as well.
    """
    if width == 1 or text.count("\n") < records:
        return []
    lines = [(number, line) for number, line in enumerate(text.split("\n"), above + 1) if line.strip()]
    if len(lines) <= records or not all(line.count(separator) == width - 1 for _, line in lines):
        return []
    first = next(number for number, line in lines if line.count('"') % 2)
    what = f"line {first}: a quote opens a cell that goes on in the next line, although every line has {width} cells"
    if width == 2:
        return [f"{path}, {what}; if the quote is part of a cell, double it, and put quotes around the cell"]
    raise StorageError(f"{path}, {what}; if the quote is part of a cell, double it, and put quotes around the cell")
