"""CSV as people write it, to a polars table: encoding, delimiter, names, missing values and types are found out.

Regular files take the fast way through polars. Whatever is unusual (odd quotes, empty lines, rows of unequal length)
goes through Python's own csv module, which also knows the line that an error message must name.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from fairmaxent.data.frames import load_library
from fairmaxent.errors import ColumnError, InputError, StorageError, check_choice

DELIMITERS = ",;\t|"
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
Decimal = Literal[",", "."]

_Parser = Callable[[Any, Any], Any]

_SNIFFED = 50  # lines
_NEWLINE, _QUOTE = ord("\n"), ord('"')


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
    """Return the table and notes on how it was read; the options are those of `fairmaxent.files.tables.read_table`."""
    text, notes = _decode(content, path, encoding)
    if not text.strip():
        raise InputError(f"{path} is empty; pass a table with column names and at least one row")
    separator = _check_delimiter(delimiter) if delimiter is not None else _sniff(text)
    header, lines = _first_record(text, separator, path)
    names = _names(header if columns is None else columns, path, notes)
    if len(header) != len(names):
        raise ColumnError(f"{path} has {len(header)} columns and {len(names)} names were given; name each of them")
    skipped = lines if columns is None else 0
    cells = _fast(text, names, separator, skipped) if skipped <= 1 else None
    if cells is None:
        cells = _slow(text, names, separator, skipped, path)
    return _typed(cells, ["", *missing], _marks(decimal, separator), notes), notes


def _marks(decimal: Decimal | None, separator: str) -> str:
    """Which decimal marks numbers may have; a comma that is not said and parts cells parts no numbers."""
    if decimal is not None:
        check_choice("decimal", decimal, Decimal)
        return decimal
    return "." if separator == "," else ".,"


# ---------------------------------------------------------------- text


def _decode(content: bytes, path: str, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text with unix line ends, and how it was encoded if not in UTF-8."""
    found = encoding or _encoding_of(content)
    try:
        text = content.decode(found)
    except LookupError as problem:
        raise InputError(f"encoding {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1") from problem
    except UnicodeDecodeError as problem:
        raise StorageError(
            f"{path} is not {found}: byte {problem.start + 1} cannot be read ({problem.reason}); name its encoding"
        ) from problem
    if "\0" in text:
        raise StorageError(f"{path} is not text (byte {text.index(chr(0)) + 1} is zero); pass a table, e.g. a CSV file")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff"), [] if found == "utf-8" else [f"{path} was read as {found}"]


def _encoding_of(content: bytes) -> str:
    """UTF-8 if it is that, UTF-16 by its mark or its zeros, else the usual one of old Windows files."""
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
        raise InputError(f"delimiter is {delimiter!r}; it is one character, such as , or ; or \\t")
    return wanted


def _sniff(text: str) -> str:
    """Choose the delimiter that splits the first lines into the most columns, and all of them alike."""
    start = "\n".join(text.split("\n", _SNIFFED)[:_SNIFFED])

    def score(delimiter: str) -> tuple[bool, int]:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter, skipinitialspace=True)
        sizes = [len(row) for row in rows if row]
        return len(set(sizes[:-1] or sizes)) == 1 and sizes[0] > 1, sizes[0]

    return max(DELIMITERS, key=score)  # the first of equals: the comma


def _records(text: str, separator: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Records that are not empty, each with the line it ends on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as problem:
        raise StorageError(
            f"{path}, line {reader.line_num}: the quotes do not match ({problem}); close them, or double a quote inside"
        ) from problem


def _first_record(text: str, separator: str, path: str) -> tuple[list[str], int]:
    """The first record that is not empty, and the lines up to its end."""
    lines, record = next(_records(text, separator, path))
    return record, lines


def _names(given: Sequence[str], path: str, notes: list[str]) -> list[str]:
    """Names without spaces around them; a column without one is named by its place."""
    names = [name.strip() or f"column_{place}" for place, name in enumerate(given, 1)]
    nameless = [name for name, own in zip(names, given, strict=True) if not own.strip()]
    if nameless:
        notes.append(f"{path} has columns without a name, here called {', '.join(nameless)}")
    first: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if first.setdefault(name, place) != place:
            raise ColumnError(
                f"{path}: columns {first[name]} and {place} are both called {name!r}; rename one. "
                "If the file has no line of names, give them (--columns)."
            )
    return names


# ---------------------------------------------------------------- cells


def _fast(text: str, names: Sequence[str], separator: str, skipped: int) -> Any:
    """All cells as text by polars, or None where the file is not regular enough for it to be trusted."""
    if ' "' in text or len(names) == 1:  # in a single column polars takes an empty line for an empty cell
        return None
    polars = load_library("polars")
    body = text.rstrip("\n").encode()
    if not _is_regular(np.frombuffer(body + b"\n", dtype=np.uint8), ord(separator), len(names)):
        return None
    try:
        schema = dict.fromkeys(names, polars.String)
        return polars.read_csv(body, has_header=False, skip_lines=skipped, separator=separator, schema=schema)
    except polars.exceptions.PolarsError:
        return None


def _is_regular(body: np.ndarray[Any, np.dtype[np.uint8]], separator: int, width: int) -> bool:
    """Whether every line has as many cells as there are names; between quotes nothing separates."""
    outside = ~np.logical_xor.accumulate(body == _QUOTE)
    ends = np.flatnonzero((body == _NEWLINE) & outside)
    splits = np.flatnonzero((body == separator) & outside)
    if not outside[-1]:
        return False
    return bool((np.diff(np.searchsorted(splits, ends), prepend=0) == width - 1).all())


def _slow(text: str, names: Sequence[str], separator: str, skipped: int, path: str) -> Any:
    """All cells as text by Python's csv module, or an error that names the line."""
    polars = load_library("polars")
    records = []
    for line, record in _records(text, separator, path):
        if line <= skipped:
            continue
        if len(record) != len(names):
            raise StorageError(
                f"{path}, line {line}: {len(record)} cells, and there are {len(names)} columns ({_shown(names)}); "
                "repair that line, or name the delimiter"
            )
        records.append(record)
    return polars.DataFrame(records, schema=dict.fromkeys(names, polars.String), orient="row")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


# ---------------------------------------------------------------- values


def _typed(cells: Any, missing: Sequence[str], marks: str, notes: list[str]) -> Any:
    """Cells without spaces around them, markers as missing, and each column of the kind that all of it has."""
    polars = load_library("polars")
    stripped = cells.select(polars.all().str.strip_chars())
    present = stripped.select(polars.when(~polars.all().is_in(list(missing))).then(polars.all()))
    notes.extend(_missing_notes(stripped, [marker for marker in missing if marker]))
    found = [_infer(column, polars, marks) for column in present]
    if marks == ".," and any(parse in _COMMA_NUMBERS for _, parse in found):
        found = [_infer(column, polars, ",.") for column in present]  # then 1.234 is a thousand, too
    notes.extend(_european_notes(found))
    return polars.DataFrame([column for column, _ in found])


def _missing_notes(stripped: Any, markers: Sequence[str]) -> Iterator[str]:
    """Say which markers stood for a missing value, where, and how often."""
    marked = [column for column in stripped if column.is_in(list(markers)).any()]
    for marker in markers:
        counts = {column.name: int((column == marker).sum()) for column in marked}
        found = [f"{name} {count:,}" for name, count in counts.items() if count]
        if found:
            yield f"{marker!r} was read as missing ({', '.join(found)})"


def _european_notes(found: Sequence[tuple[Any, _Parser | None]]) -> Iterator[str]:
    """Say which columns were read by other customs than those that files are written by here."""
    numbers = [column.name for column, parse in found if parse in _COMMA_NUMBERS]
    dates = [column.name for column, parse in found if parse is _european_date]
    if numbers:
        yield f"a comma was read as the decimal mark, a point as parting thousands ({', '.join(numbers)})"
    if dates:
        yield f"dates were read as day.month.year ({', '.join(dates)})"


def _infer(column: Any, polars: Any, marks: str) -> tuple[Any, _Parser | None]:
    """The column as whole numbers, numbers, truth values, dates or times if every cell is one, else as text."""
    seen = column.drop_nulls()
    numbers = [parse for mark in marks for parse in (_COMMA_NUMBERS if mark == "," else (_number,))]
    for parse in (_whole, *numbers, *_OTHERS):
        if len(seen) and parse(seen[:1], polars).null_count() == 0:
            parsed = parse(column, polars)
            if parsed.null_count() == column.null_count():
                return parsed, parse
    return column, None


def _whole(column: Any, polars: Any) -> Any:
    """Whole numbers; 007 is a code, not a number."""
    return column.set(column.str.contains(_CODE), None).cast(polars.Int64, strict=False)


def _number(column: Any, polars: Any) -> Any:
    return column.set(column.str.contains(_CODE), None).cast(polars.Float64, strict=False)


def _thousands(column: Any, polars: Any) -> Any:
    """Whole numbers such as 1.234."""
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
