"""The content of a file: read once, decompressed, and refused if it is too large.

A pipe can be read only once, so nothing looks into a file before this does, unless it is a regular file.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fairmaxent.data.frames import library_errors, load_library
from fairmaxent.data.limits import FREELY_INFLATED, MOST_INFLATION, memory_limit, memory_text, need_memory
from fairmaxent.errors import LimitError, Option, StorageError, did_you_mean
from fairmaxent.files.atomic import reason_of
from fairmaxent.files.formats import STANDARD

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
_LEAST_MEMORY = 3  # bytes of memory that each byte of a table takes, whatever its format
_GZIP_FORMAT = 31  # what zlib calls a window of 15 bits inside a gzip file
_SKIPPABLE = b"\x2a\x4d\x18"  # the last bytes that begin a part of a zstd file without content
_LARGEST_BLOCK = 1 << 17  # of a zstd file, decompressed


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Read a file, or stdin for ``"-"``, and decompress it if it is compressed with gzip or zstd."""
    content = _raw(path)
    if content.startswith(_GZIP):
        return _from_gzip(content, path)
    return _from_zstd(content, path) if content.startswith(_ZSTD) else content


# ---------------------------------------------------------------- bytes


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
    first = stream.read(_CHUNK)
    if first and not first.strip(b"\0"):
        raise StorageError(f"{name} is not a table: it begins with {len(first):,} zeros; pass a table, e.g. a CSV file")
    buffer, most = io.BytesIO(), memory_limit() / _LEAST_MEMORY
    chunk = first
    while chunk:
        buffer.write(chunk)
        if buffer.tell() > most:
            raise LimitError(
                f"{name} does not end within {memory_text(most)}, and each byte of a table takes at least "
                f"{_LEAST_MEMORY} of memory; take a part of the rows, or raise the limit with ",
                Option("max_memory"),
            )
        chunk = stream.read(_CHUNK)
    return buffer.getvalue()


def _nearby(path: Path) -> str:
    """Suggest what a mistyped path may have meant."""
    with contextlib.suppress(OSError, ValueError):
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
        hint = did_you_mean(path.name, names)
        if not path.exists() and hint.startswith("did you mean"):
            return hint
    return "check the path and its permissions"


# ---------------------------------------------------------------- decompression


def most_inflated(content: bytes) -> int:
    """How many bytes a compressed file may become."""
    return int(min(_most_by_size(content), memory_limit() / _LEAST_MEMORY))


def _most_by_size(content: bytes) -> int:
    return max(FREELY_INFLATED, MOST_INFLATION * len(content))


def too_inflated(content: bytes, path: object) -> LimitError:
    """Say that a compressed file would become too large."""
    most = most_inflated(content)
    by_memory = ("take a part of the rows, or raise the limit with ", Option("max_memory"))
    return LimitError(
        f"{path} has {memory_text(len(content))}, and would have more than {memory_text(most)} once decompressed, "
        "which is beyond the limit; ",
        by_memory if most < _most_by_size(content) else "if you trust the file, decompress it first",
    )


def too_long_texts(path: object, *, size: int, texts: int, most: int) -> LimitError:
    """Say that a few long texts stand in so many cells that a small file stands for a huge table."""
    return LimitError(
        f"{path} has {memory_text(size)}, and would have {memory_text(texts)} if each cell had a text of its own, "
        f"which is beyond the limit of {memory_text(most)}; leave out the column of long texts"
    )


def _from_gzip(content: bytes, path: object) -> bytes:
    """Decompress a gzip file, which may have several members; zeros may follow the last."""
    buffer, most = io.BytesIO(), most_inflated(content)
    try:
        for part in _gzip_parts(content, most + 1):
            buffer.write(part)
            if buffer.tell() > most:
                raise too_inflated(content, path)
    except zlib.error as problem:
        raise StorageError(f"{path} is a damaged gzip file ({problem}); download or write it again") from problem
    return buffer.getvalue()


def _gzip_parts(content: bytes, largest: int) -> Iterator[bytes]:
    """Decompress a piece at a time; a file can have many members, so what follows one must not be copied each time."""
    member, rest = None, b""
    for start in range(0, len(content), _CHUNK):
        rest += content[start : start + _CHUNK]
        while rest := rest if member else rest.lstrip(b"\0"):
            member = member or zlib.decompressobj(wbits=_GZIP_FORMAT)
            yield member.decompress(rest, largest)
            rest = member.unused_data
            if not member.eof:
                break
            member = None
    if member is not None:
        raise zlib.error("its end is missing")


def _from_zstd(content: bytes, path: object) -> bytes:
    """Let polars decompress lines of UTF-8; Python has zstd only since version 3.14."""
    try:
        most = sum(_zstd_blocks(content))
    except IndexError as problem:
        raise StorageError(
            f"{path} is a damaged zstd file (its end is missing); download or write it again"
        ) from problem
    if most > most_inflated(content):
        raise too_inflated(content, path)

    def explain(why: str) -> StorageError:
        return StorageError(f"cannot decompress {path} as lines of UTF-8 ({why}); decompress it first: zstd -d")

    with library_errors(explain, OSError):
        lines = load_library("polars").read_lines(content).to_series()
    return "\n".join(lines.to_list()).encode()


def _zstd_blocks(content: bytes) -> Iterator[int]:
    """The most bytes that each block of a zstd file can stand for, without decompressing any (RFC 8878, section 3).

    A frame has a header of 2 to 14 bytes after the magic number, blocks of 3 bytes and their content, and a checksum.
    """
    position = 0
    while (magic := content[position : position + 4]) == _ZSTD or magic[1:] == _SKIPPABLE:
        if magic != _ZSTD:
            position += 8 + int.from_bytes(content[position + 4 : position + 8], "little")
            continue
        descriptor = content[position + 4]
        single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        size = (single, 2, 4, 8)[descriptor >> 6]
        position += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size
        last = False
        while not last:
            header = int.from_bytes((content[position], content[position + 1], content[position + 2]), "little")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            repeats, is_compressed = kind == 1, kind == 2
            yield _LARGEST_BLOCK if is_compressed else size
            position += 3 + (1 if repeats else size)
        position += 4 * checksum
