"""The bytes of a file: read within the memory that there is, and decompressed.

A pipe can be read only once, so nothing looks into a file before this does, unless it
is a regular file.
"""

import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable
from typing import Any

from fairmaxent.data import limits
from fairmaxent.errors import LimitError, Option, StorageError
from fairmaxent.files.reading import STANDARD, Name

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
# bytes of memory that each byte of a table takes, whatever its format
_LEAST_MEMORY = 3


def read_content(path: Name) -> bytes:
    """Read a file, or stdin for ``"-"``, and decompress it if it is gzip."""
    content = _raw(path)
    if not content.startswith(_GZIP):
        return content

    def check(size: int) -> None:
        check_growth(size, content, path, "if you trust the file, decompress it first")

    try:
        with gzip.open(io.BytesIO(content)) as file:
            return _read_all(file, check)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise StorageError(
            f"{path} is a damaged gzip file ({problem}); download or write it again"
        ) from problem


def file_sha256(path: Name) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise StorageError(
            f"cannot read {path}: {reason_of(problem)}; check its path"
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
    """Read a stream of unknown size, as far as the check of its size allows."""
    buffer = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        buffer.write(chunk)
        check(buffer.tell())
    return buffer.getvalue()


def reason_of(problem: OSError | ValueError) -> str:
    """What the system says, without the path; ValueError: it has a null character."""
    return str(getattr(problem, "strerror", None) or problem)


def need_room(needed: float, path: object) -> None:
    """Refuse a file that would take too much memory."""
    limits.need_memory(
        needed, f"reading {path}", "leave out columns, take a part of the rows"
    )


def check_growth(
    size: int,
    content: bytes,
    path: object,
    remedy: str,
) -> None:
    """Refuse a compressed file of which few bytes stand for too many."""
    by_size = max(limits.FREELY_INFLATED, limits.MOST_INFLATION * len(content))
    by_memory = limits.memory_limit() / _LEAST_MEMORY
    most = min(by_size, by_memory)
    if size <= most:
        return
    advice: tuple[object, ...] = (remedy,)
    if by_memory < by_size:
        advice = (
            "take a part of the rows, or raise the limit with ",
            Option("max_memory"),
        )

    raise LimitError(
        f"{path} has {limits.memory_text(len(content))}, and would have more than"
        f" {limits.memory_text(most)} once decompressed, which is beyond the limit; ",
        *advice,
    )
