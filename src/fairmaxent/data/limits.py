"""Limits: how much fairmaxent takes on, so that nothing exhausts a machine.

They are listed in docs/reference/limits.md. What would take more memory than is allowed
is refused before it is allocated. Allowed is what the machine or the container has, or
what `max_memory` says. Needs are estimates: they are meant to be right within a factor
of two.
"""

import contextlib
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.errors import LimitError, Option, checked_number

Array = NDArray[Any]

MOST_COLUMNS = 2_000
MOST_FILE_COLUMNS = 16_384  # of a file from which columns are dropped
# of a table of two columns and the root, numbered by 32-bit integers
MOST_CELLS = (1 << 31) - 1
LONGEST_CELL = 1 << 24  # characters of a CSV
MOST_INFLATION = 200  # times the size of a compressed file
FREELY_INFLATED = 1 << 25  # bytes that a compressed file of any size may become

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}
_UNITS |= {f"{unit}I": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*")
_INFINITE = float("inf")
_LARGEST = float(np.finfo(np.float64).max)
_given: ContextVar[float | None] = ContextVar("max_memory", default=None)

# An Arrow stream is a sequence of messages: a mark, the size of the metadata, the
# metadata (a flatbuffer), and a body whose size the metadata give. Libraries allocate
# what a message declares, and inflate bodies that are compressed, so a stream from a
# file is looked at before a library reads it.
_MARK = 0xFFFFFFFF
# kinds of messages
_DICTIONARY = 2
_RECORDS = 3
# fields of a message
_BODY_SIZE = 3
_KIND = 1
_HEADER = 2
# fields of a batch of records
_LENGTH = 0
_COMPRESSION = 3
_DATA = 1  # field of a dictionary: its batch of records


@contextlib.contextmanager
def max_memory(limit: float | str) -> Iterator[None]:
    """Refuse, inside this context, what is expected to take more memory.

    The limit is in bytes, or a text such as ``"4GB"``.
    """
    token = _given.set(read_memory(limit))
    try:
        yield
    finally:
        _given.reset(token)


def read_memory(limit: float | str) -> float:
    """Read an amount of memory in bytes.

    >>> read_memory("1.5 GB"), read_memory("512MiB"), read_memory(1e9)
    (1500000000.0, 536870912.0, 1000000000.0)
    """
    if isinstance(limit, str):
        match = _AMOUNT.fullmatch(limit.upper())
        if match and match[2] in _UNITS:
            limit = float(match[1]) * _UNITS[match[2]]
    return checked_number(
        "max_memory",
        limit,
        "be an amount such as 4GB or 512MB",
        lambda size: 0 < size < _INFINITE,
    )


def memory_limit() -> float:
    """How many bytes may be used."""
    given = _given.get()
    if given is None:
        return _of_this_machine()
    return given


def need_memory(needed: float, what: str, remedy: object) -> None:
    """Refuse what takes more memory than is allowed."""
    limit = memory_limit()
    if needed > limit:
        raise LimitError(
            f"{what} would take about {memory_text(needed)} of memory, and the limit is"
            f" {memory_text(limit)}; ",
            remedy,
            ", or raise the limit with ",
            Option("max_memory"),
        )


def check_columns(count: int) -> None:
    """Refuse more columns than can be compared with each other."""
    if count > MOST_COLUMNS:
        raise LimitError(
            f"the table has {count:,} columns, and fairmaxent compares every pair of"
            f" them, so the limit is {MOST_COLUMNS:,}; drop the columns that do not"
            " matter"
        )


def check_file_columns(count: int, path: object) -> None:
    """Refuse a file with more columns than anybody can choose from."""
    if count > MOST_FILE_COLUMNS:
        raise LimitError(
            f"{path} has {count:,} columns, and the limit is {MOST_FILE_COLUMNS:,};"
            " leave out columns before you pass the table"
        )


def memory_text(amount: float) -> str:
    """Write bytes the way people say them: 80.0 GB."""
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    unit, size = next((unit for unit in units if amount >= unit[1]), units[-1])
    return f"{amount / size:,.1f} {unit}"


@cache
def _of_this_machine() -> float:
    """The memory of the machine, the container or the process: the least of them."""
    found = [_INFINITE]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    for path in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ):
        # "max" is no number
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            found.append(float(file.read()))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(float(limit))
    return min(found)


def sound(
    array: Array,
    kind: str,
    shape: Sequence[int],
    *,
    low: float = -_LARGEST,
    high: float = _LARGEST,
) -> Array:
    """An array that has this kind (numpy's letter), shape and range; NaN is in none."""
    # Shorter floats become float64: shares that add up to one in float32 need not do so
    # for NumPy's generators.
    if array.dtype.kind != kind or array.shape != tuple(shape):
        raise ValueError(
            f"expected {kind} of shape {tuple(shape)}, found {array.dtype} of shape"
            f" {array.shape}"
        )
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(
            f"expected numbers from {low} to {high}, found {array.min()} to"
            f" {array.max()}"
        )
    if kind == "f":
        return array.astype(float, copy=False)
    return array


def masses(array: Array, *shape: int) -> Array:
    """Return numbers that are not negative."""
    return sound(
        array,
        "f",
        shape,
        low=0,
    )


def logarithms(array: Array, *shape: int) -> Array:
    """Return logarithms of numbers that may be zero."""
    return sound(
        array,
        "f",
        shape,
        low=-np.inf,
    )


def check_stream(content: bytes) -> None:
    """Refuse a stream that declares more values than it can hold.

    Its bodies have to be there, and not compressed.
    """
    rows, is_compressed = declared_size(content)
    if is_compressed or rows > 8 * len(content):
        raise ValueError(
            "a column is compressed inside, or declares more values than it can hold"
        )


def declared_size(content: bytes) -> tuple[int, bool]:
    """How many rows a stream declares, and whether some of them are compressed."""
    at = total = 0
    is_compressed = False
    while at + 8 <= len(content):
        mark, size = struct.unpack_from("<II", content, at)
        metadata = content[at + 8 : at + 8 + size]
        at = at + 8 + size
        if mark != _MARK or at > len(content) or (size == 0 and at < len(content)):
            raise ValueError("it is no Arrow stream")
        if size == 0:
            break
        (message,) = struct.unpack_from("<I", metadata)
        body = _number(metadata, message, _BODY_SIZE, "<q")
        kind = _number(metadata, message, _KIND, "<B")
        at += body
        if body < 0 or at > len(content):
            raise ValueError("it declares more bytes than it has")
        batch = _table(metadata, message, _HEADER)
        if kind in (_DICTIONARY, _RECORDS):
            if kind == _DICTIONARY:
                batch = _table(metadata, batch, _DATA)
            length = _number(metadata, batch, _LENGTH, "<q")
            if length < 0:
                raise ValueError("it declares fewer rows than none")
            total += length
            is_compressed |= _field(metadata, batch, _COMPRESSION) is not None
    return total, is_compressed


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it is left out."""
    directory = table - int(struct.unpack_from("<i", metadata, table)[0])
    if directory < 0:
        raise ValueError("it is no Arrow stream")
    place = 4 + 2 * number
    if place + 2 > struct.unpack_from("<H", metadata, directory)[0]:
        return None
    offset = int(struct.unpack_from("<H", metadata, directory + place)[0])
    if offset:
        return table + offset
    return None


def _number(
    metadata: bytes,
    table: int,
    field: int,
    kind: str,
) -> int:
    at = _field(metadata, table, field)
    if at is None:
        return 0
    return int(struct.unpack_from(kind, metadata, at)[0])


def _table(metadata: bytes, table: int, number: int) -> int:
    at = _field(metadata, table, number)
    if at is None:
        raise ValueError("it is no Arrow stream")
    return at + int(struct.unpack_from("<I", metadata, at)[0])
