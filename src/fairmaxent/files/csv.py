"""CSV files as people write them: encoding, delimiter, names, gaps and types are detected.

Polars reads regular files, which is fast. Python's csv module reads unusual ones (odd quotes, empty lines, rows of
unequal length); it also knows the line number that an error message needs.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.frames import is_foreign, load_library
from fairmaxent.data.limits import LONGEST_CELL, need_memory
from fairmaxent.errors import ColumnError, InputError, LimitError, Option, StorageError
from fairmaxent.files.cells import Conventions, typed_table
from fairmaxent.files.header import (
    column_names,
    footer_remarks,
    row_remark,
    some_names,
    title_count,
    title_remark,
    without_empty_end,
    without_last_lines,
)
from fairmaxent.files.reading import BYTE_MARKS, MISSING, Reading, Remark, TableFile, TableForm

DELIMITERS = ",;\t|"

_SNIFFED = 50  # lines
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[^\n"])"?[ \t]*(?:\n|$)', re.IGNORECASE)
_NEWLINE, _QUOTE = ord("\n"), ord('"')
# Bytes of memory, at the peak, for each byte of text and for each cell; the last if Python's csv module reads it.
_BYTE_MEMORY, _CELL_MEMORY, _SLOW_CELL_MEMORY = 6, 24, 100


def read_csv(
    content: bytes, path: str, reading: Reading, texts: Collection[str] = (), format: str = "csv"
) -> TableFile:
    """Read a table from the content of a file; ``texts`` are columns that stay text."""
    _need_memory(len(content), 0, path)
    decoded = _decode(content, path, reading.encoding)
    text = without_last_lines(decoded.text, reading.skip_last)
    if not text.strip() and decoded.text.strip():
        above = f"{path} has no table above its last {reading.skip_last} rows; set "
        raise InputError(above, Option("skip_last"), " to fewer")
    if not text.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    has_header = reading.columns is None
    delimiter = "\t" if format == "tsv" and reading.delimiter is None else reading.delimiter
    with _long_cells():
        layout = _find_layout(text, delimiter, reading.skip_lines, has_header=has_header)
    remarks: list[Remark] = [*decoded.notes]
    cells = _read_cells(text[layout.start :], layout, reading.columns, len(content), path, remarks)
    remarks += layout.remarks(path, cells.columns) if reading.skip_lines is None else ()
    conventions = Conventions(layout.separator, reading.decimal, reading.date_order, texts)
    typed = typed_table(cells, ["", *(reading.missing or MISSING)], conventions)
    frame, empty = without_empty_end(typed.frame, path)
    remarks += row_remark(frame, path) if has_header else ()
    remarks += [*typed.remarks, *empty, *(footer_remarks(frame, path) if reading.skip_last is None else ())]
    # Where a semicolon separates the cells, the comma is taken, and is the decimal mark even if no number shows it.
    decimal = typed.decimal or ("," if layout.separator == ";" else ".")
    form = TableForm(format, layout.separator, decimal, decoded.encoding, decoded.has_mark)
    return TableFile(frame, tuple(remarks), form=form)


# ---------------------------------------------------------------- text


@dataclass(frozen=True)
class _Text:
    """A text with Unix line ends and without a byte order mark, and how its bytes were."""

    text: str
    encoding: str
    has_mark: bool
    notes: tuple[str, ...]


def _decode(content: bytes, path: str, encoding: str | None) -> _Text:
    """Return the text, and a note on its encoding if that is not UTF-8."""
    used = encoding or _encoding_of(content)
    try:
        text = content.decode(used)
    except LookupError as problem:
        raise InputError(
            Option("encoding"), f" {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1"
        ) from problem
    except UnicodeDecodeError as problem:
        raise StorageError(
            f"{path} is not {used}: byte {problem.start + 1} cannot be read ({problem.reason}); set ",
            Option("encoding"),
        ) from problem
    if "\0" in text:
        raise StorageError(f"{path} is not text (byte {text.index(chr(0)) + 1} is zero); pass a table, e.g. a CSV file")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    name, has_mark = _name_and_mark(content, used)
    notes = () if used == "utf-8" else (f"{path} was read as {used}",)
    return _Text(text.removeprefix("\ufeff"), name, has_mark, notes)


def _name_and_mark(content: bytes, used: str) -> tuple[str, bool]:
    """The encoding that writes the same bytes but for the byte order mark, and whether there is one."""
    name = codecs.lookup(used).name
    if name.startswith("utf"):
        for exact, mark in BYTE_MARKS.items():
            if content.startswith(mark):
                return exact, True
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(name, name), False


def _encoding_of(content: bytes) -> str:
    """UTF-8 if that is possible, UTF-16 by its mark or its zeros, else the usual encoding of old Windows files."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = content[:1000]
    for zeros, name in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if len(start) > 3 and zeros.count(0) > 0.8 * len(zeros):
            return name
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        undefined = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
        return "latin-1" if any(byte in content for byte in undefined) else "cp1252"
    return "utf-8"


def _declared_separator(text: str) -> tuple[str, str | None]:
    """Return the first line if it says what separates the cells (sep=;), and what it says.

    >>> _declared_separator("sep=;\\na;b"), _declared_separator("a;b")
    (('sep=;\\n', ';'), ('', None))
    """
    match = _SEPARATOR_LINE.match(text)
    if match is None:
        return "", None
    return match[0], "\t" if match[1] == "\\t" else match[1]


def _line_start(text: str, lines: int) -> int:
    """Return where a text goes on after this many lines; its length if it has no more."""
    position = 0
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


# ---------------------------------------------------------------- layout


@dataclass(frozen=True)
class _Layout:
    """Where the table begins in the text, and what separates its cells."""

    separator: str
    separator_line: str  # such as "sep=;", with its line end
    start: int  # of the table, in characters
    lines: int  # before it

    def remarks(self, path: str, header: Sequence[str]) -> Iterator[Remark]:
        """Say what was skipped unasked."""
        if self.separator_line:
            yield f"{path} says in its first line what separates the cells ({self.separator_line.strip()})"
        if self.lines > bool(self.separator_line):
            yield title_remark(path, f"line {self.lines + 1}", header)


def _find_layout(text: str, delimiter: str | None, skip_lines: int | None, *, has_header: bool) -> _Layout:
    """Find out what separates the cells, and skip lines above the header: as many as asked, or titles."""
    first, declared = _declared_separator(text)
    skipped = max(skip_lines or 0, 1 if first else 0)
    start = _line_start(text, skipped)
    if delimiter is not None or declared is not None:
        separators = _check_delimiter(declared or "" if delimiter is None else delimiter)
    else:
        separators = DELIMITERS
    beginnings = {separator: _beginning(text[start:], separator) for separator in separators}
    separator = max(separators, key=lambda mark: _regular_width(beginnings[mark]))  # the first of equals: the comma
    if skip_lines is None and has_header:
        whole = -1 if text.count("\n", start) > _SNIFFED else None  # if there is more, the last may be incomplete
        by_titles = {mark: title_count([cells for _, cells in found[:whole]]) for mark, found in beginnings.items()}
        if not _regular_width(beginnings[separator])[0]:
            titled = [mark for mark in separators if by_titles[mark]]
            separator = min(titled, key=lambda mark: by_titles[mark], default=separator)
        if by_titles[separator]:
            skipped += beginnings[separator][by_titles[separator]][0]
            start = _line_start(text, skipped)
    return _Layout(separator, first, start, skipped)


def _beginning(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first records that are not empty, each with the number of lines before it; the last may be cut off."""
    start = text[: _line_start(text, _SNIFFED)]
    reader = csv.reader(io.StringIO(start, newline=""), delimiter=separator, skipinitialspace=True)
    records, before = [], 0
    try:
        for record in reader:
            if record:
                records.append((before, record))
            before = reader.line_num
    except csv.Error:  # a cell beyond the limit
        return []
    return records


def _regular_width(records: Sequence[tuple[int, Sequence[str]]]) -> tuple[bool, int]:
    """Whether all records have the same number of cells, more than one, and how many the first has."""
    sizes = [len(record) for _, record in records]
    if not sizes:
        return False, 0
    return len(set(sizes[:-1] or sizes)) == 1 and sizes[0] > 1, sizes[0]


def _check_delimiter(delimiter: str) -> str:
    wanted = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(wanted) != 1 or wanted in '"\n' or ord(wanted) > 127:
        raise InputError(Option("delimiter"), f" is {delimiter!r}; pass one character, such as , or ; or \\t")
    return wanted


# ---------------------------------------------------------------- cells


def _read_cells(
    text: str, layout: _Layout, columns: Sequence[str] | None, size: int, path: str, remarks: list[Remark]
) -> Any:
    """Read the table in a text, from a file of this size, as a polars table of text."""
    separator = layout.separator
    with _long_cells():
        header, lines = _first_record(text, separator, path, layout.lines)
    _need_memory(size, _CELL_MEMORY * text.count(separator), path)
    names = column_names(header if columns is None else columns, path, remarks)
    if len(header) != len(names):
        raise ColumnError(f"{path} has {len(header)} columns and {len(names)} names were given; name every column")
    skipped = lines if columns is None else 0
    cells = _fast(text, names, separator, skipped) if skipped <= 1 else None
    if cells is None:
        _need_memory(size, _SLOW_CELL_MEMORY * text.count(separator), path)
        with _long_cells():
            cells = _slow(text, names, separator, skipped, path, layout.lines)
    remarks += _joined_lines(text, separator, len(names), len(cells) + skipped, path, layout.lines)
    return cells


def _need_memory(size: int, more: float, path: str) -> None:
    """Refuse a file of this size if reading it would take too much memory."""
    need_memory(
        _BYTE_MEMORY * size + more, f"reading {path}", "leave out columns, take a part of the rows, use Parquet"
    )


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
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
