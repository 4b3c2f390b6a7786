"""Reading a file: what may be said about how it is read, its bytes, the table that it
becomes, and what is around it.

A pipe can be read only once, so nothing looks into a file before this does, unless it
is a regular file. Titles above a header are recognised only if nothing else can be
meant. A last row is left out only if it is called a total and holds sums; other sums,
and remarks, are read as rows, with a note.
"""

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from fairmaxent.data import limits
from fairmaxent.data.declaration import DateOrder, DecimalMark
from fairmaxent.data.frames import load_library
from fairmaxent.data.identifiers import is_total
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LimitError,
    Option,
    StorageError,
    check_choice,
    spelled,
)
from fairmaxent.options import documented, option

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Cells of a CSV or a sheet that stand for a missing value, unless others are named."""

STANDARD = "-"  # stdin or stdout
Name = str | os.PathLike[str]
Remark = str | tuple[object, ...]  # a sentence, or its parts, some of which are options

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
# bytes of memory that each byte of a table takes, whatever its format
_LEAST_MEMORY = 3
_MARKERS = ", ".join(mark or "empty" for mark in MISSING)
_MOST_TITLES = 20  # records above a header that are looked at
# a number, an amount, a date or a time
_VALUE = re.compile(r"[-+(]?[^\w\s]{0,2}\s?\d[\d.,:/'’\s%-]*\)?[^\w\s]?")
_PAIR = 2  # columns, too few to tell a remark from a row
_ENOUGH = 3  # rows that can show that a line is one of them
# of the rows are as wide as the header; for the others there is an error, which names
# the line
_MOSTLY = 0.7
Cells = Sequence[str]


@documented
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file becomes a table; what is not given is detected."""

    input_format: str | None = option(
        None, doc="By default from the first bytes, then from the suffix, else CSV."
    )
    sheet: str | int | None = option(
        None,
        text="sheet",
        label="Sheet",
        help=(
            "Name or number of the sheet of an Excel workbook; by default the first"
            " that holds a table."
        ),
    )
    skip_lines: int | None = option(
        None,
        text="whole",
        least=0,
        label="Lines above the header",
        help=(
            "How many lines (of a sheet: rows) stand above the header; titles are"
            " detected by default."
        ),
    )
    skip_last: int | None = option(
        None,
        text="whole",
        least=0,
        label="Rows to leave out at the end",
        help="How many rows to leave out at the end, such as sums and remarks.",
    )
    delimiter: str | None = option(
        None,
        metavar="CHAR",
        label="Separator",
        help="Delimiter of a CSV; detected by default.",
    )
    encoding: str | None = option(
        None, label="Encoding", help="Encoding of a CSV; detected by default."
    )
    decimal: DecimalMark | None = option(
        None,
        choices=(",", "."),
        label="Decimal mark",
        help="Decimal mark of a CSV; detected by default.",
        doc=(
            "Decimal mark of numbers in text. By default a point; if the comma does not"
            " separate cells, also a comma, in a column whose cells are all such"
            " numbers."
        ),
    )
    date_order: DateOrder | None = option(
        None,
        choices=get_args(DateOrder),
        label="Order of dates",
        help=(
            "Whether 1/2/2025 is in February (dmy) or in January (mdy); by default"
            " other dates show it."
        ),
    )
    missing: Sequence[str] = option(
        (),
        text="texts",
        metavar="TEXT",
        label="Marks of missing values",
        help=(
            "Text of a cell that means missing; repeatable. Replaces the default:"
            f" {_MARKERS}."
        ),
        page_help=(
            "Text of a cell that means missing; several are separated by commas. They"
            f" replace the default: {_MARKERS}."
        ),
        doc=(
            "Cells of a CSV or a sheet that stand for a missing value; by default"
            " `MISSING`."
        ),
    )
    columns: Sequence[str] | None = option(
        None,
        text="columns",
        label="Names of the columns",
        help=(
            "Names of the columns, if there is no header line; one that contains a"
            " comma goes in double quotes."
        ),
        doc="Names of the columns, for a CSV or a sheet without a header.",
    )
    levels: Mapping[str, Mapping[str, str]] | None = option(
        None,
        text="names",
        label="Names of levels",
        help=(
            "New names for codes, 'SEX: 1=men, 2=women'; values that get the same name"
            " are merged. Repeatable."
        ),
    )

    def renamed(self, frame: Any) -> Any:
        """A polars frame, lazy or not, in which levels have the names that were given;
        the others keep theirs.
        """
        polars = load_library("polars")
        wanted = self.levels or {}
        for column, names in wanted.items():
            if column not in frame.collect_schema().names():
                raise ColumnError(
                    Option("levels"),
                    f" names {column!r}, which is not a column; check its spelling",
                )
            text = polars.col(column).cast(polars.String)
            if hasattr(frame, "collect"):
                known = names.keys()
            else:
                known = {*frame.select(text.unique()).to_series()}
            if unknown := [*names.keys() - known]:
                raise InputError(
                    Option("levels", column=column),
                    f" names {unknown[0]!r}, which no row has",
                )
            frame = frame.with_columns(text.replace(dict(names)))
        return frame

    @property
    def markers(self) -> Sequence[str]:
        """Cells that stand for a missing value."""
        return self.missing or MISSING

    def __post_init__(self) -> None:
        for name, choices in (("decimal", DecimalMark), ("date_order", DateOrder)):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), choices)
        for name, what in (
            ("skip_lines", "lines above the header"),
            ("skip_last", "rows below the table"),
        ):
            if (getattr(self, name) or 0) < 0:
                raise InputError(
                    Option(name),
                    f" is {getattr(self, name)}; give the number of {what}",
                )


@dataclass(frozen=True)
class TableForm:
    """What a result can keep of the form of its input: the format, and how a CSV is
    written.
    """

    format: str
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"  # utf-8-sig and utf-16 begin with a mark (BOM)
    dates: DateOrder | None = field(default=None, compare=False)
    # options that say what was detected
    found: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and what the user should know about how it was read."""

    frame: Any  # a polars DataFrame, or a LazyFrame if it is not in memory
    remarks: tuple[Remark, ...] = ()
    # the same table with the columns that were left out; None: no column was
    whole: Any = None
    dropped: tuple[str, ...] = ()  # the columns that were left out
    # how it is written, so that a result can be written like it
    form: TableForm = TableForm("parquet")

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences, with options as Python spells them."""
        return self.notes_spelled(str)

    def notes_spelled(self, spell: Callable[[Option], str]) -> tuple[str, ...]:
        """The remarks as sentences, with their options spelled by ``spell``."""
        return tuple(
            remark if isinstance(remark, str) else spelled(remark, spell)
            for remark in self.remarks
        )


def read_content(path: Name) -> bytes:
    """Read a file, or stdin for ``"-"``, and decompress it if it is compressed with
    gzip.
    """
    content = _raw(path)
    if not content.startswith(_GZIP):
        return content
    remedy = "if you trust the file, decompress it first"
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return _read_all(
                file, lambda size: check_growth(size, content, path, remedy)
            )
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise StorageError(
            f"{path} is a damaged gzip file ({problem}); download or write it again"
        ) from problem


def _raw(path: Name) -> bytes:
    def check(size: int) -> None:
        need_room(_LEAST_MEMORY * size, "stdin" if path == STANDARD else path)

    try:
        if path == STANDARD:
            if sys.stdin is None:
                raise StorageError(
                    "stdin is closed; name a file, or pass the table through a pipe"
                )
            return _read_all(sys.stdin.buffer, check)
        with open(path, "rb") as file:
            kind = os.fstat(file.fileno())
            check(kind.st_size)
            if stat.S_ISCHR(kind.st_mode) and not file.isatty():
                raise StorageError(f"{path} is a device, not a file; pass a table")
            if stat.S_ISREG(kind.st_mode):
                return file.read()
            return _read_all(file, check)
    except (StorageError, LimitError):
        raise
    except (OSError, ValueError) as problem:
        raise StorageError(
            f"cannot read {path}: {reason_of(problem)}; check the path and its"
            " permissions"
        ) from problem


def _read_all(stream: Any, check: Callable[[int], None]) -> bytes:
    """Read a stream, whose size is not known, as far as the check of its size
    allows.
    """
    buffer = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        buffer.write(chunk)
        check(buffer.tell())
    return buffer.getvalue()


def reason_of(problem: OSError | ValueError) -> str:
    """Return what the system says, without the path; a ValueError means a null
    character in the path.
    """
    return str(getattr(problem, "strerror", None) or problem)


def need_room(needed: float, path: object) -> None:
    """Refuse a file that would take too much memory."""
    limits.need_memory(
        needed, f"reading {path}", "leave out columns, take a part of the rows"
    )


def check_growth(size: int, content: bytes, path: object, remedy: str) -> None:
    """Refuse a compressed file that would become too large: a few bytes can stand for
    many.
    """
    by_size = max(limits.FREELY_INFLATED, limits.MOST_INFLATION * len(content))
    most = min(by_size, limits.memory_limit() / _LEAST_MEMORY)
    if size > most:
        by_memory = (
            "take a part of the rows, or raise the limit with ",
            Option("max_memory"),
        )
        here = limits.memory_text(len(content))
        there = limits.memory_text(most)
        what = (
            f"{path} has {here}, and would have more than {there} once decompressed,"
            " which is beyond the limit; "
        )
        raise LimitError(what, *(by_memory if most < by_size else (remedy,)))


def title_count(records: Sequence[Cells]) -> int:
    """Return how many of the first records stand above the header: 0 unless that is
    unambiguous.

    A title, or a band such as "Person" over several columns, has at most half of the
    table's cells. The header comes directly after it; each of its cells is filled, none
    is a number or a date, no two are equal, and none occurs again below. Most records
    after it, and the first of them, have as many cells.

    >>> title_count([["Staff 2025"], ["name", "sex", "pay"], ["Ann", "F", "10"], ["Bob", "M", "20"]])
    1
    >>> title_count([["name", "sex", "pay"], ["Ann", "F", "10"], ["Bob", "M", "20"]])
    0
    """
    half = (max(map(len, records), default=0) + 1) // 2
    for count in range(min(_MOST_TITLES, len(records) - 2) + 1):
        if count and _is_header(records[count], records[:count], records[count + 1 :]):
            return count
        if sum(bool(cell.strip()) for cell in records[count]) > half:
            return 0
    return 0


def _is_header(record: Cells, above: Sequence[Cells], below: Sequence[Cells]) -> bool:
    """Whether it holds names, is as wide as the records below, and does not look like
    one of them.
    """
    names = [cell.strip() for cell in record]
    width = len(record)
    if (
        width < _PAIR
        or not all(names)
        or len(set(names)) < width
        or any(map(_VALUE.fullmatch, names))
    ):
        return False
    as_wide = [len(other) == width for other in below]
    if not all(as_wide[:_ENOUGH]) or sum(as_wide) < _MOSTLY * len(below):
        return False
    if width == _PAIR and any(len(title) == width for title in above):
        # "name," can be a header of two columns, one without a name, unless a column of
        # numbers begins below.
        columns = zip(*(other for other in below if len(other) == width), strict=True)
        values = (
            sum(bool(_VALUE.fullmatch(cell.strip())) for cell in cells)
            for cells in columns
        )
        return any(count > _MOSTLY * len(below) for count in values)
    if len(below) < _ENOUGH:
        return all(len(title) < width for title in above)
    return not any(
        name == cell.strip()
        for other in below
        for name, cell in zip(names, other, strict=False)
    )


def column_names(
    header: Cells, reading: Reading, path: str, remarks: list[Remark], below_titles: str
) -> list[str]:
    """Names as given or as in the header, without spaces around them; a column without
    a name is numbered.

    ``below_titles`` is where the header stands, if what is above it was taken for a
    title.
    """
    if reading.columns is None:
        given = header
    else:
        given = reading.columns
    if len(given) != len(header):
        sizes = f"{len(header)} columns and {len(given)} names were given"
        raise ColumnError(f"{path} has {sizes}; name every column")
    limits.check_file_columns(len(given), path)
    names = [name.strip() or f"column_{number}" for number, name in enumerate(given, 1)]
    unnamed = [
        name
        for name, original in zip(names, given, strict=True)
        if not original.strip()
    ]
    if unnamed:
        what = (
            f"{path} has columns without a name, which are called {', '.join(unnamed)}"
            " here"
        )
        below: Remark = (
            f"{what}; if the names stand further down, set ",
            Option("skip_lines", 1),
        )
        remarks.append(what if len(unnamed) == 1 else below)
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            twice = (
                f"{path}: columns {first[name]} and {number} are both called {name!r};"
                " rename one. "
            )
            name_them = (
                "If the first line holds data instead of names, name the columns with ",
                Option("columns"),
            )
            skip = ("; if the names stand further down, set ", Option("skip_lines", 1))
            raise ColumnError(twice, *name_them, *skip)
    if below_titles:
        some = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        what = (
            f"the header of {path} ({some}) is in {below_titles}, and what stands above"
            " it is taken for a title; if "
        )
        remarks.append((f"{what}it is not, set ", Option("skip_lines", 0)))
    return names


def remarks_around(frame: Any, path: str, reading: Reading) -> Iterator[Remark]:
    """Say that the first row may be data and not names, and that the last may be a sum
    or a remark below the table.
    """
    texts = [
        column
        for column in frame.iter_columns()
        if column.dtype == load_library("polars").String
    ]
    if (
        reading.columns is None
        and sum((column == column.name).any() for column in texts) > 1
    ):
        what = (
            f"the first row of {path} looks like data, but was read as names of"
            " columns; if so, name the columns in "
        )
        yield (what, Option("columns"))
    if reading.skip_last is None:
        last = frame.tail(min(_ENOUGH, len(frame) - 1)).rows()[::-1]
    else:
        last = []
    count = next(
        (count for count, row in enumerate(last) if not _is_remark(row)), len(last)
    )
    if count:
        what = (
            f"the end of {path} looks like a sum or a remark, and was read as data; if"
            " it is one, leave out "
        )
        yield (
            f"{what}{'the last row' if count == 1 else f'the last {count} rows'} with ",
            Option("skip_last", count),
        )


def _is_remark(row: Sequence[Any]) -> bool:
    filled = [value for value in row if value is not None]
    is_alone = len(filled) == 1 and len(row) > _PAIR
    return (
        bool(filled)
        and isinstance(filled[0], str)
        and (is_alone or is_total(filled[0]))
    )


def ends_with_sums(frame: Any) -> bool:
    """Whether the last row is called a total, and holds the sum of a column of numbers
    or is half empty.
    """
    numbers = [
        column
        for column in frame.iter_columns()
        if column.dtype.is_numeric() and column[-1]
    ]
    sums = any(
        abs(column[-1] - column[:-1].sum()) <= 1e-9 * abs(column[-1])
        for column in numbers
    )
    filled = [str(value) for value in frame.row(-1) if value is not None]
    return (
        bool(filled)
        and is_total(filled[0])
        and (sums or 2 * len(filled) <= frame.width > _PAIR)
    )
