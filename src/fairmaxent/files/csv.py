"""CSV files as people write them: encoding, delimiter, names and types are detected.

Polars reads regular files, which is fast. Python's csv module reads unusual ones (odd
quotes, empty lines, rows of unequal length); it also knows the line number that an
error message needs.
"""

import codecs
import csv
import gzip
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from fairmaxent.data.frames import is_foreign, load_library
from fairmaxent.data.levels import Notes
from fairmaxent.data.limits import LONGEST_CELL
from fairmaxent.data.table import NameList
from fairmaxent.document.words import counted
from fairmaxent.errors import LimitError, Option, StorageError, unfit
from fairmaxent.files.cells import typed_table
from fairmaxent.files.content import need_room
from fairmaxent.files.encodings import guessed, unknown_encoding
from fairmaxent.files.reading import FileReading, Remark, TableForm
from fairmaxent.files.surroundings import (
    Cells,
    column_names,
    names_below,
    nothing_left,
    remarks_around,
    title_count,
)

polars = load_library("polars")

DELIMITERS = ",;\t|"
USUAL = {"tsv": "\t"}  # what separates cells, in formats that say so
SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[^\n"])"?[ \t]*(?:\n|$)', re.IGNORECASE)
NO_VALUE = ' \t\r\n;,|"'  # characters of a line without any value
_SNIFFED = 50  # lines
_NEWLINE = ord("\n")
_QUOTE = ord('"')
# Bytes of memory, at the peak, for each byte of text and for each cell; the last if
# Python's csv module reads it.
BYTE_MEMORY = 6
CELL_MEMORY = 24
_SLOW_CELL_MEMORY = 100


class _Layout(NamedTuple):
    """Where in a text the table stands."""

    separator: str  # of cells
    separator_line: str  # the first line, if it says what separates cells
    above: int  # lines above the header
    has_titles: bool  # which were detected


def read_csv(
    content: bytes,
    path: str,
    reading: FileReading,
    format: str,
) -> tuple[Any, list[Remark], TableForm]:
    """Read a table from the content of a file."""
    csv.field_size_limit(LONGEST_CELL)  # of the whole process, by default 128 KiB
    need_room(BYTE_MEMORY * len(content), path)
    guess = guessed(content, reading.encoding)
    encoding = guess.encoding
    whole = _decode(content, path, encoding)
    text = _without_last_lines(whole, reading.skip_last or 0)
    layout = _find_layout(text, reading, USUAL.get(format))
    separator = layout.separator
    remarks = guess.remarks(path)
    if layout.separator_line and reading.skip_lines is None:
        remarks.append(
            f"{path} says in its first line what separates the cells"
            f" ({layout.separator_line.strip()})"
        )

    cells = _read_cells(text, layout, reading, path, remarks)
    typed = typed_table(cells, ["", *reading.markers], reading, separator)
    frame, empty = _without_empty_end(typed.frame, path)
    remarks += [*typed.remarks, *empty, *remarks_around(frame, path, reading)]

    name = codecs.lookup(encoding).name
    if content.startswith(codecs.BOM_UTF8):
        name = "utf-8-sig"
    found = []
    if not name.startswith("utf"):
        found.append(("encoding", name))
    if layout.has_titles:
        found.append(("skip_lines", str(layout.above)))
    form = TableForm(
        format=format,
        separator=separator,
        # Where a semicolon separates the cells, the comma is taken, and is the decimal
        # mark even if no number shows it.
        decimal=typed.decimal or ("," if separator == ";" else "."),
        encoding=name,
        dates=typed.dates,
        found=tuple(found),
    )
    return frame, remarks, form


def _decode(content: bytes, path: str, encoding: str) -> str:
    """Return the text, with Unix line ends and without a mark."""
    try:
        text = content.decode(encoding)
    except LookupError as problem:
        raise unknown_encoding(encoding) from problem
    except UnicodeDecodeError as problem:
        raise StorageError(
            f"{path} is not {encoding}: byte {problem.start + 1} cannot be read"
            f" ({problem.reason}); set ",
            Option("encoding"),
        ) from problem

    if "\0" in text:
        raise StorageError(
            f"{path} is not text (byte {text.index(chr(0)) + 1} is zero); pass a table,"
            " e.g. a CSV file"
        )

    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff")


def _without_last_lines(text: str, count: int) -> str:
    """Leave out the last lines; those without a value do not count."""
    end = len(text)
    while count and end:
        start = text.rfind("\n", 0, end - 1) + 1
        count -= bool(text[start:end].strip(NO_VALUE))
        end = start
    return text[:end]


def _line_start(text: str, lines: int) -> int:
    """Return where a text goes on after this many lines; its length if it is over."""
    position = 0
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


def _find_layout(text: str, reading: FileReading, usual: str | None) -> _Layout:
    """Find what separates the cells, and how many lines stand above the header."""
    line = SEPARATOR_LINE.match(text)
    skipped = max(reading.skip_lines or 0, int(line is not None))
    start = _line_start(text, skipped)
    separators = possible_separators(reading.delimiter, usual, line and line[1])
    beginnings = {mark: _beginning(text[start:], mark) for mark in separators}
    # the first of equals: the comma
    separator = max(separators, key=lambda mark: _regular_width(beginnings[mark]))
    title_lines = 0
    if reading.skip_lines is None and reading.columns is None:
        # if there is more, the last may be incomplete
        is_cut = text.count("\n", start) > _SNIFFED
        titles = {
            mark: title_count([cells for _, cells in found[: -1 if is_cut else None]])
            for mark, found in beginnings.items()
        }
        is_regular, _ = _regular_width(beginnings[separator])
        if not is_regular:
            titled = [mark for mark in separators if titles[mark]]
            separator = min(titled, key=lambda mark: titles[mark], default=separator)
        if titles[separator]:
            title_lines, _ = beginnings[separator][titles[separator]]
    return _Layout(
        separator=separator,
        separator_line=line[0] if line else "",
        above=skipped + title_lines,
        has_titles=title_lines > 0,
    )


def possible_separators(*given: str | None) -> str:
    """The first separator that is given, or all that there can be."""
    first = next((mark for mark in given if mark is not None), None)
    if first is None:
        return DELIMITERS
    separator = {"\\t": "\t", "tab": "\t"}.get(first, first)
    if len(separator) != 1 or separator in '"\n' or ord(separator) > 127:
        raise unfit("delimiter", first, "pass one character, such as , or ; or \\t")
    return separator


def _beginning(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first records that are not empty, each with the number of lines before it.

    The last may be cut off.
    """
    start = text[: _line_start(text, _SNIFFED)]
    reader = csv.reader(
        io.StringIO(start, newline=""), delimiter=separator, skipinitialspace=True
    )
    records = []
    before = 0
    try:
        for record in reader:
            if record:
                records.append((before, record))
            before = reader.line_num
    except csv.Error:  # a cell beyond the limit
        return []
    return records


def _regular_width(records: Sequence[tuple[int, Cells]]) -> tuple[bool, int]:
    """Whether all records have as many cells, more than one, and how many there are."""
    sizes = [len(record) for _, record in records] or [0]
    whole = sizes[:-1] or sizes
    is_regular = len(set(whole)) == 1 and sizes[0] > 1
    return is_regular, sizes[0]


def _read_cells(
    whole: str,
    layout: _Layout,
    reading: FileReading,
    path: str,
    remarks: list[Remark],
) -> Any:
    """Read the table in a text as a polars table of text."""
    separator = layout.separator
    above = layout.above
    text = whole[_line_start(whole, above) :]
    lines, header = next(_records(text, separator, path, above), (0, []))
    if not header:
        raise nothing_left(path)

    bytes_needed = BYTE_MEMORY * len(text)
    cell_count = text.count(separator)
    need_room(bytes_needed + CELL_MEMORY * cell_count, path)
    titled = f"line {above + 1}" if layout.has_titles else ""

    def further_down() -> Option | None:
        records = [*itertools.islice(_records(text, separator, path, above), _SNIFFED)]
        count = names_below([record for _, record in records])
        if not count:
            return None
        line, _ = records[count - 1]
        return Option("skip_lines", above + line)

    names = column_names(header, reading, path, remarks, titled, further_down)
    skipped = lines if reading.columns is None else 0
    cells = None
    if skipped <= 1:
        cells = _fast(text, names, separator, skipped)
    if cells is None:
        need_room(bytes_needed + _SLOW_CELL_MEMORY * cell_count, path)
        cells = _slow(text, names, separator, skipped, path, above)
    records = len(cells) + skipped
    remarks += _joined_lines(text, separator, len(names), records, path, above)
    return cells


def _records(
    text: str,
    separator: str,
    path: str,
    above: int,
) -> Iterator[tuple[int, list[str]]]:
    """The records that are not empty, each with the number of its last line.

    ``above`` the text, lines were skipped.
    """
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        skipinitialspace=True,
        strict=True,
    )
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as problem:
        kind = LimitError if "field limit" in str(problem) else StorageError
        raise kind(
            f"{path}, line {above + reader.line_num}: the quotes do not match, or a"
            f" cell has more than the limit of {LONGEST_CELL:,} characters ({problem});"
            " close the quotes, or double a quote inside a cell"
        ) from problem


def _fast(
    text: str,
    names: NameList,
    separator: str,
    skipped: int,
) -> Any:
    """Read all cells as text with polars; None if the file is too irregular for it."""
    # in a single column, polars reads an empty line as an empty cell
    if ' "' in text or len(names) == 1:
        return None
    body = text.rstrip("\n").encode()
    numbers = np.frombuffer(body + b"\n", dtype=np.uint8)
    records = _regular_records(numbers, ord(separator), len(names))
    if records is None:
        return None
    try:
        cells = polars.read_csv(
            body,
            has_header=False,
            skip_lines=skipped,
            separator=separator,
            schema=dict.fromkeys(names, polars.String),
        )
    except BaseException as problem:
        if is_foreign(problem):
            return None
        raise
    if len(cells) != records - skipped:
        return None
    return cells


def _regular_records(
    body: np.ndarray[Any, np.dtype[np.uint8]], separator: int, width: int
) -> int | None:
    """Count the records, if each has one cell for each name.

    Delimiters and line ends inside quotes do not count. None if a record has more or
    fewer cells, or if a quote stands anywhere but at the ends of a cell (5" or "5"
    wide): two such quotes would hide the line ends between them.
    """
    is_quote = body == _QUOTE
    outside = ~np.logical_xor.accumulate(is_quote)
    if not outside[-1]:
        return None
    quotes = np.flatnonzero(is_quote)
    opening = quotes[::2]
    closing = quotes[1::2]
    beside = np.concatenate([body[opening[opening > 0] - 1], body[closing + 1]])
    if not np.isin(beside, (separator, _NEWLINE, _QUOTE)).all():
        return None
    ends = np.flatnonzero((body == _NEWLINE) & outside)
    splits = np.flatnonzero((body == separator) & outside)
    splits_in_each = np.diff(np.searchsorted(splits, ends), prepend=0)
    if not (splits_in_each == width - 1).all():
        return None
    return len(ends)


def _slow(
    text: str,
    names: NameList,
    separator: str,
    skipped: int,
    path: str,
    above: int,
) -> Any:
    """Read all cells as text with Python's csv module, or name the line that fails."""
    records: list[list[str]] = []
    for line, record in _records(text, separator, path, above):
        if line <= skipped:
            continue
        if len(record) != len(names):
            where = f"{path}, line {above + line}"
            raise misfit(
                where,
                record,
                names,
                is_first=not records,
            )
        records.append(record)
    return polars.DataFrame(
        records, schema=dict.fromkeys(names, polars.String), orient="row"
    )


def misfit(
    where: str,
    record: Cells,
    names: NameList,
    *,
    is_first: bool,
) -> StorageError:
    """The error for a line that has not one cell for each name.

    It names neither: the file may be no table, and hold something else.
    """
    has = counted(len(record), "cell") if record else "quotes that do not match"
    return StorageError(
        f"{where}: {has}, but {counted(len(names), 'column')}; repair the line, or"
        " set ",
        Option("delimiter"),
        ", or ",
        Option("skip_lines" if is_first else "skip_last"),
        " if it is no row of the table",
    )


def _joined_lines(
    text: str,
    separator: str,
    width: int,
    records: int,
    path: str,
    above: int,
) -> list[Remark]:
    """Refuse rows that may be several: those that stray quotes make one.

    If each line has all cells, the quotes probably stand for inches. Two columns can be
    a name and an address: of these there is only a note.
    """
    if width == 1 or text.count("\n") < records:
        return []
    lines = {
        number: line
        for number, line in enumerate(text.split("\n"), above + 1)
        if line.strip()
    }
    if len(lines) <= records:
        return []
    if not all(line.count(separator) == width - 1 for line in lines.values()):
        return []
    first = next(number for number, line in lines.items() if line.count('"') % 2)
    what = (
        f"{path}, line {first}: a quote opens a cell that goes on in the next line,"
        f" although every line has {width} cells; if the quote is part of a cell,"
        " double it, and put quotes around the cell"
    )
    if width > 2:
        raise StorageError(what)
    return [what]


def _without_empty_end(frame: Any, path: str) -> tuple[Any, Notes]:
    """Leave out rows at the end without any value, which spreadsheets leave behind."""
    if frame.width == 1 or not len(frame):
        return frame, ()
    if any(value is not None for value in frame.row(-1)):
        return frame, ()
    is_filled = ~polars.all_horizontal(polars.all().is_null())
    filled = frame.select(is_filled).to_series().arg_true()
    rows = filled[-1] + 1 if len(filled) else 0
    note = f"{path} ends with {counted(len(frame) - rows, 'empty row')}, left out"
    return frame.head(rows), (note,)


def write_csv(
    lazy: Any,
    file: IO[bytes],
    *,
    compression: str,
    form: TableForm | None,
    format: str,
    **_: object,
) -> Notes:
    """Write a lazy frame in the form of its input; return what could not be kept."""
    form = form or TableForm(format, USUAL.get(format, ","))
    has_comma = form.decimal == ","
    how = {
        "separator": form.separator,
        "decimal_comma": has_comma,
        # 1e-7 has no comma, so it might be a text
        "float_scientific": False if has_comma else None,
        "datetime_format": "%Y-%m-%dT%H:%M:%S%.f",
        "check_extension": False,
    }
    if form.encoding == "utf-8":
        lazy.sink_csv(file, compression=compression, **how)
        return ()

    buffer = io.BytesIO()
    lazy.sink_csv(buffer, **how)
    text = buffer.getvalue().decode()
    notes: Notes = ()
    try:
        content = text.encode(form.encoding)
    except UnicodeEncodeError as problem:
        content = text.encode()
        lacking = text[problem.start]
        notes = (
            f"{form.encoding} has no character {lacking!r}, so the table was written"
            " as utf-8",
        )

    if compression == "gzip":
        content = gzip.compress(content, mtime=0)
    file.write(content)
    return notes
