"""CSV files as people write them, read into a polars table: encoding, delimiter, names, gaps and types are detected.

Polars reads regular files, which is fast. Python's csv module reads unusual ones (odd quotes, empty lines, rows of
unequal length); it also knows the line number that an error message needs.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from fairmaxent.data.frames import load_library
from fairmaxent.data.library_errors import is_foreign
from fairmaxent.data.limits import LONGEST_CELL, need_memory
from fairmaxent.errors import ColumnError, InputError, LimitError, Option, StorageError, check_choice

DELIMITERS = ",;\t|"
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
Decimal = Literal[",", "."]

_Parser = Callable[[Any, Any], Any]

_SNIFFED = 50  # lines
_NEWLINE, _QUOTE = ord("\n"), ord('"')
# Bytes of memory, at the peak, for each byte of text and for each cell; the last if Python's csv module reads it.
_BYTE_MEMORY, _CELL_MEMORY, _SLOW_CELL_MEMORY = 6, 24, 100


def read_csv(
    content: bytes,
    path: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    missing: Sequence[str] = MISSING,
    columns: Sequence[str] | None = None,
) -> tuple[Any, list[str]]:
    """Return the table and notes on how it was read; the options are documented in `files.tables.read_table`."""
    _need_memory(len(content), 0, path)
    text, notes = _decode(content, path, encoding)
    if not text.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    with _long_cells():
        separator = _check_delimiter(delimiter) if delimiter is not None else _sniff(text)
        header, lines = _first_record(text, separator, path)
    _need_memory(len(content), _CELL_MEMORY * text.count(separator), path)
    names = _names(header if columns is None else columns, path, notes)
    if len(header) != len(names):
        raise ColumnError(f"{path} has {len(header)} columns and {len(names)} names were given; name every column")
    skipped = lines if columns is None else 0
    cells = _fast(text, names, separator, skipped) if skipped <= 1 else None
    if cells is None:
        _need_memory(len(content), _SLOW_CELL_MEMORY * text.count(separator), path)
        with _long_cells():
            cells = _slow(text, names, separator, skipped, path)
    notes += _joined_lines(text, separator, len(names), len(cells) + skipped, path)
    return _typed(cells, ["", *missing], _marks(decimal, separator), notes), notes


def _need_memory(size: int, more: float, path: str) -> None:
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


def _marks(decimal: Decimal | None, separator: str) -> str:
    """Which decimal marks numbers may have. If the comma separates cells, it is not one unless asked for."""
    if decimal is not None:
        check_choice("decimal", decimal, Decimal)
        return decimal
    return "." if separator == "," else ".,"


# ---------------------------------------------------------------- text


def _decode(content: bytes, path: str, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text with Unix line ends, and a note on its encoding if that is not UTF-8."""
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
    return text.removeprefix("\ufeff"), [] if used == "utf-8" else [f"{path} was read as {used}"]


def _encoding_of(content: bytes) -> str:
    """UTF-8 if that is possible, UTF-16 by its mark or its zeros, else the usual encoding of old Windows files."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
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


def _check_delimiter(delimiter: str) -> str:
    wanted = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(wanted) != 1 or wanted in '"\n' or ord(wanted) > 127:
        raise InputError(Option("delimiter"), f" is {delimiter!r}; pass one character, such as , or ; or \\t")
    return wanted


def _sniff(text: str) -> str:
    """Choose the delimiter that splits the first lines into the most columns, the same number in each line."""
    start = "\n".join(text.split("\n", _SNIFFED)[:_SNIFFED])

    def score(delimiter: str) -> tuple[bool, int]:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter, skipinitialspace=True)
        try:
            sizes = [len(row) for row in rows if row]
        except csv.Error:  # a cell beyond the limit
            return False, 0
        return len(set(sizes[:-1] or sizes)) == 1 and sizes[0] > 1, sizes[0]

    return max(DELIMITERS, key=score)  # the first of equals: the comma


def _records(text: str, separator: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """The records that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as problem:
        if "field limit" in str(problem):
            raise LimitError(
                f"{path}: up to line {reader.line_num}, a cell has more than {LONGEST_CELL:,} characters, which is the "
                "limit; a quote before it may never be closed: close it, or double a quote inside a cell"
            ) from problem
        raise StorageError(
            f"{path}, line {reader.line_num}: the quotes do not match ({problem}); close them, "
            "or double a quote inside a cell"
        ) from problem


def _first_record(text: str, separator: str, path: str) -> tuple[list[str], int]:
    """The first record that is not empty, and the number of its last line."""
    lines, record = next(_records(text, separator, path))
    return record, lines


def _names(given: Sequence[str], path: str, notes: list[str]) -> list[str]:
    """Names without spaces around them; a column without a name is numbered."""
    names = [name.strip() or f"column_{number}" for number, name in enumerate(given, 1)]
    unnamed = [name for name, original in zip(names, given, strict=True) if not original.strip()]
    if unnamed:
        notes.append(f"{path} has columns without a name, which are called {', '.join(unnamed)} here")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            raise ColumnError(
                f"{path}: columns {first[name]} and {number} are both called {name!r}; rename one. "
                "If the first line holds data instead of names, name the columns with ",
                Option("columns"),
            )
    return names


# ---------------------------------------------------------------- cells


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


def _slow(text: str, names: Sequence[str], separator: str, skipped: int, path: str) -> Any:
    """Read all cells as text with Python's csv module, or raise an error that names the line."""
    polars = load_library("polars")
    records = []
    for line, record in _records(text, separator, path):
        if line <= skipped:
            continue
        if len(record) != len(names):
            raise StorageError(
                f"{path}, line {line}: {len(record)} {'cell' if len(record) == 1 else 'cells'}, but there are "
                f"{len(names)} columns ({_shown(names)}); repair the line, or set ",
                Option("delimiter"),
            )
        records.append(record)
    return polars.DataFrame(records, schema=dict.fromkeys(names, polars.String), orient="row")


def _joined_lines(text: str, separator: str, width: int, records: int, path: str) -> list[str]:
    """Refuse, or note in a table of two columns, rows that may be several: those that stray quotes make one.

    A cell in quotes may have several lines. But if each line of the file has all cells by itself, the quotes probably
    stand for inches. Two columns can be a name and an address, whose last line has a comma as well.
    """
    if width == 1 or text.count("\n") < records:
        return []
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) <= records or not all(line.count(separator) == width - 1 for _, line in lines):
        return []
    first = next(number for number, line in lines if line.count('"') % 2)
    what = f"line {first}: a quote opens a cell that goes on in the next line, although every line has {width} cells"
    if width == 2:
        return [f"{path}, {what}; if the quote is part of a cell, double it, and put quotes around the cell"]
    raise StorageError(f"{path}, {what}; if the quote is part of a cell, double it, and put quotes around the cell")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


# ---------------------------------------------------------------- values


def _typed(cells: Any, missing: Sequence[str], marks: str, notes: list[str]) -> Any:
    """Strip spaces, read markers as missing, and give each column the type that all its cells have."""
    polars = load_library("polars")
    stripped = cells.select(polars.all().str.strip_chars())
    present = stripped.select(polars.when(~polars.all().is_in(list(missing))).then(polars.all()))
    notes.extend(_missing_notes(stripped, [marker for marker in missing if marker]))
    typed = [_infer(column, polars, marks) for column in present]
    if marks == ".," and any(parse in _COMMA_NUMBERS for _, parse in typed):
        typed = [_infer(column, polars, ",.") for column in present]  # then the point in 1.234 separates thousands
    notes.extend(_european_notes(typed))
    return polars.DataFrame([column for column, _ in typed])


def _missing_notes(stripped: Any, markers: Sequence[str]) -> Iterator[str]:
    """Say which markers were read as a missing value, in which columns, and how often."""
    marked = [column for column in stripped if column.is_in(list(markers)).any()]
    for marker in markers:
        counts = {column.name: int((column == marker).sum()) for column in marked}
        columns = [f"{name} {count:,}" for name, count in counts.items() if count]
        if columns:
            yield f"{marker!r} was read as missing ({', '.join(columns)})"


def _european_notes(typed: Sequence[tuple[Any, _Parser | None]]) -> Iterator[str]:
    """Say which columns were read by European conventions, which fairmaxent does not use when it writes."""
    numbers = [column.name for column, parse in typed if parse in _COMMA_NUMBERS]
    dates = [column.name for column, parse in typed if parse is _european_date]
    if numbers:
        yield f"a comma was read as the decimal mark, and a point as the thousands separator ({', '.join(numbers)})"
    if dates:
        yield f"dates were read as day.month.year ({', '.join(dates)})"


def _infer(column: Any, polars: Any, marks: str) -> tuple[Any, _Parser | None]:
    """The column as integers, numbers, Booleans, dates or times if every cell is one, else as text."""
    cells = column.drop_nulls()
    numbers = [parse for mark in marks for parse in (_COMMA_NUMBERS if mark == "," else (_number,))]
    for parse in (_whole, *numbers, *_OTHERS):
        if len(cells) and parse(cells[:1], polars).null_count() == 0:
            parsed = parse(column, polars)
            if parsed.null_count() == column.null_count():
                return parsed, parse
    return column, None


def _whole(column: Any, polars: Any) -> Any:
    """Integers; 007 is a code, not a number."""
    return column.set(column.str.contains(_CODE), None).cast(polars.Int64, strict=False)


def _number(column: Any, polars: Any) -> Any:
    return column.set(column.str.contains(_CODE), None).cast(polars.Float64, strict=False)


def _thousands(column: Any, polars: Any) -> Any:
    """Integers such as 1.234, with points that separate thousands."""
    text = column.set(~column.str.contains(_POINTED), None).str.replace_all(".", "", literal=True)
    return text.cast(polars.Int64, strict=False)


def _comma_number(column: Any, polars: Any) -> Any:
    """Numbers such as 1,5 or 1.234,5."""
    text = column.set(~column.str.contains(_COMMA), None).str.replace_all(".", "", literal=True)
    return text.str.replace(",", ".", literal=True).cast(polars.Float64, strict=False)


def _truth(column: Any, polars: Any) -> Any:
    return column.replace_strict({"true": True, "false": False}, default=None, return_dtype=polars.Boolean)


def _date(column: Any, polars: Any) -> Any:
    return column.set(~column.str.contains(_DAY), None).str.to_date("%Y-%m-%d", strict=False)


def _european_date(column: Any, polars: Any) -> Any:
    return column.set(~column.str.contains(_EUROPEAN_DAY), None).str.to_date("%d.%m.%Y", strict=False)


def _time(column: Any, polars: Any) -> Any:
    text = column.set(~column.str.contains(_MOMENT), None).str.replace(" ", "T")
    return text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us")


_CODE = r"^[+-]?(0\d|\d{16,}$)"  # leading zeros, or more digits than a number can hold
_DAY = r"^\d{4}-\d\d-\d\d$"
_MOMENT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_POINTED = r"^[+-]?(0|[1-9]\d{0,2}(\.\d{3})*)$"
_COMMA = r"^[+-]?(0|[1-9]\d{0,14}|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?$"
_EUROPEAN_DAY = r"^\d{1,2}\.\d{1,2}\.\d{4}$"
_COMMA_NUMBERS = (_thousands, _comma_number)
_OTHERS = (_truth, _date, _european_date, _time)
