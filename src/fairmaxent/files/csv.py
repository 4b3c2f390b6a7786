"""CSV files as people write them: encoding, delimiter, names, gaps and types are
detected.

Polars reads regular files, which is fast. Python's csv module reads unusual ones (odd
quotes, empty lines, rows of unequal length); it also knows the line number that an
error message needs.
"""

import codecs
import csv
import gzip
import io
import re
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

import numpy as np

from fairmaxent.data.frames import is_foreign, load_library
from fairmaxent.data.limits import LONGEST_CELL
from fairmaxent.document.words import counted
from fairmaxent.errors import InputError, LimitError, Option, StorageError, cut
from fairmaxent.files.cells import typed_table
from fairmaxent.files.reading import (
    Reading,
    Remark,
    TableForm,
    column_names,
    need_room,
    remarks_around,
    title_count,
)

DELIMITERS = ",;\t|"

_SNIFFED = 50  # lines
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[^\n"])"?[ \t]*(?:\n|$)', re.IGNORECASE)
_NO_VALUE = ' \t\r\n;,|"'  # characters of a line without any value
_NO_CP1252 = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])
_NEWLINE = ord("\n")
_QUOTE = ord('"')
# Bytes of memory, at the peak, for each byte of text and for each cell; the last if
# Python's csv module reads it.
_BYTE_MEMORY = 6
_CELL_MEMORY = 24
_SLOW_CELL_MEMORY = 100


def read_csv(
    content: bytes, path: str, reading: Reading, format: str
) -> tuple[Any, list[Remark], TableForm]:
    """Read a table from the content of a file."""
    csv.field_size_limit(LONGEST_CELL)  # of the whole process, by default 128 KiB
    need_room(_BYTE_MEMORY * len(content), path)
    whole, encoding = _decode(content, path, reading.encoding)
    text = _without_last_lines(whole, reading.skip_last or 0)
    separator, separator_line, lines = _find_layout(
        text, reading, "\t" if format == "tsv" else None
    )
    if encoding == "utf-8":
        remarks: list[Remark] = []
    else:
        remarks = [f"{path} was read as {encoding}"]
    if separator_line and reading.skip_lines is None:
        remarks.append(
            f"{path} says in its first line what separates the cells"
            f" ({separator_line.strip()})"
        )
    if lines > bool(separator_line) and reading.skip_lines is None:
        titled = f"line {lines + 1}"
    else:
        titled = ""
    cells = _read_cells(text, separator, lines, titled, reading, path, remarks)
    typed = typed_table(cells, ["", *reading.markers], reading, separator)
    frame, empty = _without_empty_end(typed.frame, path)
    remarks += [*typed.remarks, *empty, *remarks_around(frame, path, reading)]
    # Where a semicolon separates the cells, the comma is taken, and is the decimal mark
    # even if no number shows it.
    decimal = typed.decimal or ("," if separator == ";" else ".")
    if content.startswith(codecs.BOM_UTF8):
        name = "utf-8-sig"
    else:
        name = codecs.lookup(encoding).name
    if name.startswith("utf"):
        found = []
    else:
        found = [("encoding", name)]
    if titled:
        found += [("skip_lines", str(lines))]
    return (
        frame,
        remarks,
        TableForm(format, separator, decimal, name, typed.dates, tuple(found)),
    )


def _decode(content: bytes, path: str, encoding: str | None) -> tuple[str, str]:
    """Return the text, with Unix line ends and without a byte order mark, and its
    encoding.
    """
    used = encoding or _encoding_of(content)
    try:
        text = content.decode(used)
    except LookupError as problem:
        raise _unknown(used) from problem
    except UnicodeDecodeError as problem:
        what = (
            f"{path} is not {used}: byte {problem.start + 1} cannot be read"
            f" ({problem.reason}); set "
        )
        raise StorageError(what, Option("encoding")) from problem
    if "\0" in text:
        raise StorageError(
            f"{path} is not text (byte {text.index(chr(0)) + 1} is zero); pass a table,"
            " e.g. a CSV file"
        )
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff"), used


def _unknown(encoding: str) -> InputError:
    return InputError(
        Option("encoding"),
        f" {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1",
    )


def _encoding_of(content: bytes) -> str:
    """UTF-8 if that is possible, UTF-16 by its mark or its zeros, else the usual
    encoding of old Windows files.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = content[:1000]
    for zeros, name in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if len(start) > 3 and zeros.count(0) > 0.8 * len(zeros):
            return name
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1" if any(byte in content for byte in _NO_CP1252) else "cp1252"
    return "utf-8"


def _without_last_lines(text: str, count: int) -> str:
    """Leave out the last lines; those without a value do not count."""
    end = len(text)
    while count and end:
        start = text.rfind("\n", 0, end - 1) + 1
        count -= bool(text[start:end].strip(_NO_VALUE))
        end = start
    return text[:end]


def _line_start(text: str, lines: int) -> int:
    """Return where a text goes on after this many lines; its length if it has no
    more.
    """
    position = 0
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if not position:
            return len(text)
    return position


def _find_layout(
    text: str, reading: Reading, usual: str | None
) -> tuple[str, str, int]:
    """What separates the cells, the line that says so, and how many lines stand above
    the header.
    """
    line = _SEPARATOR_LINE.match(text)
    skipped = max(reading.skip_lines or 0, 1 if line else 0)
    start = _line_start(text, skipped)
    separators = _separators(reading.delimiter, usual, line and line[1])
    beginnings = {
        separator: _beginning(text[start:], separator) for separator in separators
    }
    # the first of equals: the comma
    separator = max(separators, key=lambda mark: _regular_width(beginnings[mark]))
    if reading.skip_lines is None and reading.columns is None:
        # if there is more, the last may be incomplete
        whole = None
        if text.count("\n", start) > _SNIFFED:
            whole = -1
        titles = {
            mark: title_count([cells for _, cells in found[:whole]])
            for mark, found in beginnings.items()
        }
        if not _regular_width(beginnings[separator])[0]:
            titled = [mark for mark in separators if titles[mark]]
            separator = min(titled, key=lambda mark: titles[mark], default=separator)
        if titles[separator]:
            skipped += beginnings[separator][titles[separator]][0]
    return separator, line[0] if line else "", skipped


def _separators(*given: str | None) -> str:
    """The first separator that is given, or all that there can be."""
    first = next((mark for mark in given if mark is not None), None)
    if first is None:
        separators = DELIMITERS
    else:
        separators = {"\\t": "\t", "tab": "\t"}.get(first, first)
    if first is not None and (
        len(separators) != 1 or separators in '"\n' or ord(separators) > 127
    ):
        raise InputError(
            Option("delimiter"),
            f" is {first!r}; pass one character, such as , or ; or \\t",
        )
    return separators


def _beginning(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first records that are not empty, each with the number of lines before it;
    the last may be cut off.
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


def _regular_width(records: Sequence[tuple[int, Sequence[str]]]) -> tuple[bool, int]:
    """Whether all records have the same number of cells, more than one, and how many
    the first has.
    """
    sizes = [len(record) for _, record in records] or [0]
    return len(set(sizes[:-1] or sizes)) == 1 and sizes[0] > 1, sizes[0]


def _read_cells(
    whole: str,
    separator: str,
    above: int,
    titled: str,
    reading: Reading,
    path: str,
    remarks: list[Remark],
) -> Any:
    """Read the table in a text as a polars table of text; ``above`` it stand lines that
    are no part of it.
    """
    text = whole[_line_start(whole, above) :]
    lines, header = next(_records(text, separator, path, above), (0, []))
    if not header:
        what = f"{path} has no table beside the rows that are skipped; set "
        raise InputError(
            what, Option("skip_lines"), " or ", Option("skip_last"), " to fewer"
        )
    need_room(_BYTE_MEMORY * len(text) + _CELL_MEMORY * text.count(separator), path)
    names = column_names(header, reading, path, remarks, titled)
    skipped = lines if reading.columns is None else 0
    cells = None
    if skipped <= 1:
        cells = _fast(text, names, separator, skipped)
    if cells is None:
        need_room(
            _BYTE_MEMORY * len(text) + _SLOW_CELL_MEMORY * text.count(separator), path
        )
        cells = _slow(text, names, separator, skipped, path, above)
    remarks += _joined_lines(
        text, separator, len(names), len(cells) + skipped, path, above
    )
    return cells


def _records(
    text: str, separator: str, path: str, above: int
) -> Iterator[tuple[int, list[str]]]:
    """The records that are not empty, each with the number of its last line; ``above``:
    lines that were skipped.
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
        what = (
            "the quotes do not match, or a cell has more than the limit of"
            f" {LONGEST_CELL:,} characters ({problem})"
        )
        advice = "close the quotes, or double a quote inside a cell"
        raise kind(
            f"{path}, line {above + reader.line_num}: {what}; {advice}"
        ) from problem


def _fast(text: str, names: Sequence[str], separator: str, skipped: int) -> Any:
    """Read all cells as text with polars; None if the file is too irregular for polars
    to be trusted with it.
    """
    # in a single column, polars reads an empty line as an empty cell
    if ' "' in text or len(names) == 1:
        return None
    polars = load_library("polars")
    body = text.rstrip("\n").encode()
    records = _regular_records(
        np.frombuffer(body + b"\n", dtype=np.uint8), ord(separator), len(names)
    )
    if records is None:
        return None
    try:
        schema = dict.fromkeys(names, polars.String)
        cells = polars.read_csv(
            body,
            has_header=False,
            skip_lines=skipped,
            separator=separator,
            schema=schema,
        )
    except BaseException as problem:
        if is_foreign(problem):
            return None
        raise
    return cells if len(cells) == records - skipped else None


def _regular_records(
    body: np.ndarray[Any, np.dtype[np.uint8]], separator: int, width: int
) -> int | None:
    """Count the records if each has one cell for each name; delimiters and line ends
    inside quotes do not count.
    """
    # None if one has more or fewer cells, or if a quote stands anywhere but at the ends
    # of a cell (5" or "5" wide): two such quotes would hide the line ends between them.
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
    regular = (np.diff(np.searchsorted(splits, ends), prepend=0) == width - 1).all()
    if regular:
        return len(ends)
    return None


def _slow(
    text: str, names: Sequence[str], separator: str, skipped: int, path: str, above: int
) -> Any:
    """Read all cells as text with Python's csv module, or raise an error that names the
    line.
    """
    polars = load_library("polars")
    records: list[list[str]] = []
    for line, record in _records(text, separator, path, above):
        if line <= skipped:
            continue
        if len(record) != len(names):
            raise _misfit(
                f"{path}, line {above + line}", record, names, is_first=not records
            )
        records.append(record)
    return polars.DataFrame(
        records, schema=dict.fromkeys(names, polars.String), orient="row"
    )


def _misfit(
    where: str, record: Sequence[str], names: Sequence[str], *, is_first: bool
) -> StorageError:
    cells = counted(len(record), "cell")
    columns = f"{counted(len(names), 'column')} ({cut(', '.join(names))})"
    what = (
        f"{where}: {cells if record else 'quotes that do not match'}, but {columns};"
        " repair the line, or set "
    )
    skip = Option("skip_lines" if is_first else "skip_last")
    return StorageError(
        what, Option("delimiter"), ", or ", skip, " if it is no row of the table"
    )


def _joined_lines(
    text: str, separator: str, width: int, records: int, path: str, above: int
) -> list[Remark]:
    """Refuse, or note in a table of two columns, rows that may be several: those that
    stray quotes make one.
    """
    # If each line has all cells, the quotes probably stand for inches. Two columns can
    # be a name and an address.
    if width == 1 or text.count("\n") < records:
        return []
    lines = [
        (number, line)
        for number, line in enumerate(text.split("\n"), above + 1)
        if line.strip()
    ]
    if len(lines) <= records or not all(
        line.count(separator) == width - 1 for _, line in lines
    ):
        return []
    first = next(number for number, line in lines if line.count('"') % 2)
    what = (
        f"{path}, line {first}: a quote opens a cell that goes on in the next line,"
        f" although every line has {width} "
    )
    what += (
        "cells; if the quote is part of a cell, double it, and put quotes around the"
        " cell"
    )
    if width > 2:
        raise StorageError(what)
    return [what]


def _without_empty_end(frame: Any, path: str) -> tuple[Any, tuple[str, ...]]:
    """Leave out rows without any value at the end, which spreadsheets write for cells
    that once were filled.
    """
    if (
        frame.width == 1
        or not len(frame)
        or any(value is not None for value in frame.row(-1))
    ):
        return frame, ()
    polars = load_library("polars")
    filled = (
        frame.select(~polars.all_horizontal(polars.all().is_null()))
        .to_series()
        .arg_true()
    )
    if len(filled):
        rows = int(filled[-1]) + 1
    else:
        rows = 0
    return frame.head(rows), (
        f"{path} ends with {counted(len(frame) - rows, 'empty row')}, left out",
    )


# ---------------------------------------------------------------- line by line, for
# declared columns


def cells_by_line(
    content: bytes, path: str, reading: Reading, declared: Collection[str], format: str
) -> tuple[Any, StorageError | None, TableForm]:
    """Read each line by itself, as text, so that none changes how another is read; say
    which is the first misfit.

    Of the header, which is the first line, only the separator is detected. Columns that
    are not ``declared`` are typed.
    """
    csv.field_size_limit(LONGEST_CELL)
    need_room(_BYTE_MEMORY * len(content) + _CELL_MEMORY * content.count(b"\n"), path)
    lines, encoding = _decoded_lines(content, reading.encoding)
    found = _SEPARATOR_LINE.match(lines[0])
    above = max(reading.skip_lines or 0, 1 if found else 0)
    filled = [
        number
        for number, line in enumerate(lines)
        if number >= above and line.strip(_NO_VALUE)
    ]
    filled = filled[: max(len(filled) - (reading.skip_last or 0), 0)]
    separators = _separators(
        reading.delimiter, "\t" if format == "tsv" else None, found and found[1]
    )
    # if names are given, the first line is a row
    separator = separators[0]
    header = list(reading.columns or ())
    if not header and filled:
        first = lines[filled.pop(0)]
        separator = max(separators, key=lambda mark: len(_line_cells(first, mark)))
        header = _line_cells(first, separator)
    if not header:
        raise InputError(
            f"{path} has no line with the names of its columns; set ", Option("columns")
        )
    names = column_names(header, reading, path, [], "")
    cells, fits = _split_lines([lines[number] for number in filled], separator, names)
    if not fits.all():
        odd = filled[int(np.argmin(fits))]
    else:
        odd = 0
    misfit = _misfit(
        f"{path}, line {odd + 1}",
        _line_cells(lines[odd], separator),
        names,
        is_first=False,
    )
    others = cells.drop([name for name in names if name in declared])
    if others.width:
        typed = typed_table(others, ["", *reading.markers], reading, separator).columns
    else:
        typed = {}
    form = TableForm(format, separator, reading.decimal or ".", encoding)
    return cells.with_columns(**typed), None if fits.all() else misfit, form


def _decoded_lines(content: bytes, encoding: str | None) -> tuple[list[str], str]:
    """The lines, and the encoding: given, or that of the mark at the beginning; bytes
    that it lacks spoil one line.
    """
    used = encoding or (
        "utf-16"
        if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        else "utf-8"
    )
    try:
        if codecs.lookup(used).name.startswith(("utf-16", "utf-32")):
            content = content.decode(used, "replace").encode()
            used = "utf-8"
        lines = [line.decode(used, "replace") for line in content.split(b"\n")]
    except LookupError as problem:
        raise _unknown(used) from problem
    return [lines[0].removeprefix("\ufeff"), *lines[1:]], codecs.lookup(used).name


def _line_cells(line: str, separator: str) -> list[str]:
    """The cells of a line; none if its quotes do not match."""
    try:
        return next(
            csv.reader(
                [line.rstrip("\r")],
                delimiter=separator,
                skipinitialspace=True,
                strict=True,
            ),
            [],
        )
    except csv.Error:
        return []


def _split_lines(
    lines: list[str], separator: str, names: Sequence[str]
) -> tuple[Any, np.ndarray[Any, Any]]:
    """The cells of the lines that have one for each name, as a table of text, and which
    lines these are.
    """
    polars = load_library("polars")
    text = polars.Series(lines, dtype=polars.String)
    parts = text.str.split(separator)
    quoted = text.str.contains('"', literal=True)
    plain = ((parts.list.len() == len(names)) & ~quoted).to_numpy()
    split = parts.filter(plain)
    table = polars.DataFrame(
        [split.list.get(place).alias(name) for place, name in enumerate(names)]
    )
    records = {
        number: _line_cells(lines[number], separator) for number in quoted.arg_true()
    }
    records = {
        number: record
        for number, record in records.items()
        if len(record) == len(names)
    }
    if records:
        schema = dict.fromkeys(names, polars.String)
        table = table.vstack(
            polars.DataFrame(list(records.values()), schema=schema, orient="row")
        )
        order = np.argsort([*np.flatnonzero(plain), *records], kind="stable")
        plain[list(records)], table = True, table[order]
    return table.select(polars.all().str.strip_chars()), plain


def write_csv(
    lazy: Any,
    file: IO[bytes],
    compression: str,
    form: TableForm | None,
    schema: object,
    format: str,
) -> tuple[str, ...]:
    """Write a lazy frame with a separator, a decimal mark and an encoding, and return
    what could not be kept.
    """
    form = form or TableForm(format, "\t" if format == "tsv" else ",")
    how = {
        "separator": form.separator,
        "decimal_comma": form.decimal == ",",
        # 1e-7 has no comma, so it might be a text
        "float_scientific": False if form.decimal == "," else None,
        "datetime_format": "%Y-%m-%dT%H:%M:%S%.f",
        "check_extension": False,
    }
    if form.encoding == "utf-8":
        lazy.sink_csv(file, compression=compression, **how)
        return ()
    buffer = io.BytesIO()
    lazy.sink_csv(buffer, **how)
    text = buffer.getvalue().decode()
    notes: tuple[str, ...] = ()
    try:
        content = text.encode(form.encoding)
    except UnicodeEncodeError as problem:
        content = text.encode()
        notes = (
            (
                f"{form.encoding} has no character {text[problem.start]!r}, so the"
                " table was written as utf-8"
            ),
        )
    file.write(gzip.compress(content, mtime=0) if compression == "gzip" else content)
    return notes
