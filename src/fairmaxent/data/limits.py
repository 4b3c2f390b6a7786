"""Limits: how much fairmaxent takes on, so that no table can exhaust a machine; docs/limits.md lists all of them.

What would take more memory than is allowed is refused before it is allocated. Allowed is what the machine or the
container has, or what `max_memory` says. Needs are estimates: they are meant to be right within a factor of two.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache

from fairmaxent.errors import InputError, LimitError, Option

MOST_COLUMNS = 2_000
MOST_FILE_COLUMNS = 16_384  # of a file from which columns are dropped
MOST_CELLS = (1 << 31) - 1  # of a table of two columns and the root, numbered by 32-bit integers
LONGEST_CELL = 1 << 24  # characters of a CSV
MOST_INFLATION = 200  # times the size of a compressed file
FREELY_INFLATED = 1 << 27  # bytes that a compressed file of any size may become

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}

_given: ContextVar[float | None] = ContextVar("max_memory", default=None)


@contextlib.contextmanager
def max_memory(limit: float | str) -> Iterator[None]:
    """Refuse, inside this context, what is expected to take more memory: bytes, or a text such as ``"4GB"``.

    >>> with max_memory("2GB"):
    ...     memory_text(memory_limit())
    '2.0 GB'
    """
    token = _given.set(read_memory(limit))
    try:
        yield
    finally:
        _given.reset(token)


def read_memory(limit: float | str) -> float:
    """Read an amount of memory.

    >>> read_memory("1.5 GB"), read_memory("512MiB"), read_memory(1e9)
    (1500000000.0, 536870912.0, 1000000000.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", str(limit).upper())
    if isinstance(limit, str):
        amount = float(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else 0.0
    else:
        amount = float(limit)
    if not 0 < amount < float("inf"):
        raise InputError(Option("max_memory"), f" is {limit!r}; give an amount such as 4GB or 512MB")
    return amount


def memory_limit() -> float:
    """How many bytes may be used."""
    given = _given.get()
    return _of_this_machine() if given is None else given


def need_memory(needed: float, what: str, remedy: object) -> None:
    """Refuse what takes more memory than is allowed."""
    limit = memory_limit()
    if needed > limit:
        raise LimitError(
            f"{what} would take about {memory_text(needed)} of memory, and the limit is {memory_text(limit)}; ",
            remedy,
            ", or raise the limit with ",
            Option("max_memory"),
        )


def check_columns(count: int) -> None:
    """Refuse more columns than can be compared with each other."""
    if count > MOST_COLUMNS:
        raise LimitError(
            f"the table has {count:,} columns, and fairmaxent compares every pair of them, so the limit is "
            f"{MOST_COLUMNS:,}; drop the columns that do not matter"
        )


def check_file_columns(count: int, path: object) -> None:
    """Refuse a file with more columns than anybody can choose from."""
    if count > MOST_FILE_COLUMNS:
        raise LimitError(
            f"{path} has {count:,} columns, and the limit is {MOST_FILE_COLUMNS:,}; leave out columns before you pass "
            "the table"
        )


def memory_text(amount: float) -> str:
    """Write bytes the way people say them.

    >>> memory_text(80_000_000_000), memory_text(1_500_000)
    ('80.0 GB', '1.5 MB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if amount >= size:
            return f"{amount / size:,.1f} {unit}"
    return f"{amount / 1e3:,.1f} kB"


@cache
def _of_this_machine() -> float:
    """The memory of the machine, of the container, or of the process if that is limited: the least of them."""
    found = [float("inf")]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not on Windows
        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError), open(path) as file:  # "max" is no number
            found.append(float(file.read()))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found.append(float("inf") if limit == resource.RLIM_INFINITY else float(limit))
    return min(found)
