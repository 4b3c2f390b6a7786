"""Reading a file: what may be said about how it is read, its bytes, and the table that it becomes.

A pipe can be read only once, so nothing looks into a file before this does, unless it is a regular file.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from fairmaxent.data.limits import FREELY_INFLATED, MOST_INFLATION, memory_limit, memory_text, need_memory
from fairmaxent.errors import InputError, LimitError, Option, StorageError, check_choice, did_you_mean, spelled
from fairmaxent.options import documented, option

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Cells of a CSV or a sheet that stand for a missing value, unless others are named."""

STANDARD = "-"  # stdin or stdout
Decimal = Literal[",", "."]
DateOrder = Literal["dmy", "mdy"]
Remark = str | tuple[object, ...]  # a sentence, or its parts, some of which are options

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_LEAST_MEMORY = 3  # bytes of memory that each byte of a table takes, whatever its format
_MARKERS = ", ".join(mark or "empty" for mark in MISSING)


@documented
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file becomes a table; what is not given is detected."""

    input_format: str | None = option(
        None, doc="By default taken from the first bytes, then from the suffix, else CSV."
    )
    sheet: str | int | None = option(
        None,
        text="sheet",
        label="Sheet",
        help="Name or number of the sheet of an Excel workbook; by default the first that holds a table.",
    )
    skip_lines: int | None = option(
        None,
        text="whole",
        least=0,
        label="Lines above the header",
        help="How many lines (of a sheet: rows) stand above the header; titles are detected by default.",
    )
    skip_last: int | None = option(
        None,
        text="whole",
        least=0,
        label="Rows to leave out at the end",
        help="How many rows to leave out at the end, such as sums and remarks.",
    )
    delimiter: str | None = option(
        None, metavar="CHAR", label="Separator", help="Delimiter of a CSV; detected by default."
    )
    encoding: str | None = option(None, label="Encoding", help="Encoding of a CSV; detected by default.")
    decimal: Decimal | None = option(
        None,
        choices=(",", "."),
        label="Decimal mark",
        help="Decimal mark of a CSV; detected by default.",
        doc="Decimal mark of numbers in text. By default a point; if the comma does not separate cells, also a comma, "
        "in a column whose cells are all such numbers.",
    )
    date_order: DateOrder | None = option(
        None,
        choices=get_args(DateOrder),
        label="Order of dates",
        help="Whether 1/2/2025 is in February (dmy) or in January (mdy); by default other dates show it.",
    )
    missing: Sequence[str] = option(
        (),
        text="texts",
        metavar="TEXT",
        label="Marks of missing values",
        help=f"Text of a cell that means missing; repeatable. Replaces the default: {_MARKERS}.",
        page_help="Text of a cell that means missing; several are separated by commas. They replace the default: "
        f"{_MARKERS}.",
        doc="Cells of a CSV or a sheet that stand for a missing value; by default `MISSING`.",
    )
    columns: Sequence[str] | None = option(
        None,
        text="columns",
        label="Names of the columns",
        help="Names of the columns, if there is no header line; one that contains a comma goes in double quotes.",
        doc="Names of the columns, for a CSV or a sheet without a header.",
    )

    def __post_init__(self) -> None:
        for name, choices in (("decimal", Decimal), ("date_order", DateOrder)):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), choices)
        for name, what in (("skip_lines", "lines above the header"), ("skip_last", "rows below the table")):
            if (getattr(self, name) or 0) < 0:
                raise InputError(Option(name), f" is {getattr(self, name)}; give the number of {what}")


@dataclass(frozen=True)
class TableForm:
    """What a result can keep of the form of its input: the format, and how a CSV is written."""

    format: str
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"  # utf-8-sig and utf-16 begin with a mark (BOM)

    @property
    def is_office(self) -> bool:
        """Whether an office would miss it in a result written as programs do; no program writes a workbook unasked."""
        plain = self.separator in ",\t" and self.decimal == "." and self.encoding == "utf-8"
        return self.format == "xlsx" or not plain


@dataclass(frozen=True, eq=False)
class TableFile:
    """A table that was read, and what the user should know about how it was read."""

    frame: Any  # a polars DataFrame, or a LazyFrame if it is not in memory
    remarks: tuple[Remark, ...] = ()
    whole: Any = None  # the same table with the columns that were left out; None: no column was
    form: TableForm = TableForm("parquet")  # how it is written, so that a result can be written like it

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that were left out."""
        if self.whole is None:
            return ()
        kept = self.frame.collect_schema().names()
        return tuple(name for name in self.whole.collect_schema().names() if name not in kept)

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences, with options as Python spells them."""
        return self.notes_spelled(str)

    def notes_spelled(self, spell: Callable[[Option], str]) -> tuple[str, ...]:
        """The remarks as sentences, with their options spelled by ``spell``."""
        return tuple(remark if isinstance(remark, str) else spelled(remark, spell) for remark in self.remarks)


# ---------------------------------------------------------------- bytes


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Read a file, or stdin for ``"-"``, and decompress it if it is compressed with gzip."""
    content = _raw(path)
    if not content.startswith(_GZIP):
        return content
    buffer = io.BytesIO()
    try:
        with gzip.open(io.BytesIO(content)) as file:
            while part := file.read(_CHUNK):
                buffer.write(part)
                check_inflated(buffer.tell(), content, path, "if you trust the file, decompress it first")
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise StorageError(f"{path} is a damaged gzip file ({problem}); download or write it again") from problem
    return buffer.getvalue()


def _raw(path: str | os.PathLike[str]) -> bytes:
    try:
        if path == STANDARD:
            if sys.stdin is None:
                raise StorageError("stdin is closed; name a file, or pass the table through a pipe")
            return _read_stream(sys.stdin.buffer, "stdin")
        with open(path, "rb") as file:
            kind = os.fstat(file.fileno())
            if stat.S_ISREG(kind.st_mode):
                need_memory(_LEAST_MEMORY * kind.st_size, f"reading {path}", "take a part of the rows")
                return file.read()
            if stat.S_ISCHR(kind.st_mode) and not file.isatty():
                raise StorageError(f"{path} is a device, not a file; pass a table")
            return _read_stream(file, path)
    except IsADirectoryError as problem:
        raise StorageError(f"{path} is a folder; pass one of the files in it") from problem
    except (OSError, ValueError) as problem:
        if isinstance(problem, StorageError | LimitError):
            raise
        raise StorageError(f"cannot read {path}: {reason_of(problem)}; {_nearby(Path(path))}") from problem


def _read_stream(stream: BinaryIO, name: object) -> bytes:
    """Read a stream, whose size is not known, up to the limit of memory."""
    buffer, most = io.BytesIO(), memory_limit() / _LEAST_MEMORY
    while chunk := stream.read(_CHUNK):
        buffer.write(chunk)
        if buffer.tell() > most:
            raise LimitError(
                f"{name} does not end within {memory_text(most)}, and each byte of a table takes at least "
                f"{_LEAST_MEMORY} of memory; take a part of the rows, or raise the limit with ",
                Option("max_memory"),
            )
    return buffer.getvalue()


def reason_of(problem: OSError | ValueError) -> str:
    """Return what the system says, without the path; a ValueError means a null character in the path."""
    return str(getattr(problem, "strerror", None) or problem)


def _nearby(path: Path) -> str:
    """Suggest what a mistyped path may have meant."""
    with contextlib.suppress(OSError, ValueError):
        hint = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir() if entry.is_file()])
        if not path.exists() and hint.startswith("did you mean"):
            return hint
    return "check the path and its permissions"


def check_inflated(size: int, content: bytes, path: object, remedy: str) -> None:
    """Refuse a compressed file that would become too large: a few bytes can stand for many."""
    by_size = max(FREELY_INFLATED, MOST_INFLATION * len(content))
    most = min(by_size, memory_limit() / _LEAST_MEMORY)
    if size > most:
        by_memory = ("take a part of the rows, or raise the limit with ", Option("max_memory"))
        raise LimitError(
            f"{path} has {memory_text(len(content))}, and would have more than {memory_text(most)} once decompressed, "
            "which is beyond the limit; ",
            *(by_memory if most < by_size else (remedy,)),
        )
