"""An Arrow stream from a file, looked at before a library reads it: how many rows it declares, and that none is packed.

A stream is a sequence of messages: a mark, the size of the metadata, the metadata (a flatbuffer), and a body whose size
the metadata give. Libraries allocate what a message declares, and inflate bodies that are compressed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MARK = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_BODY_SIZE, _KIND, _HEADER = 3, 1, 2  # fields of a message
_LENGTH, _COMPRESSION = 0, 3  # fields of a batch of records
_DATA = 1  # field of a dictionary: its batch of records


def check_stream(content: bytes, rows: int | None) -> None:
    """Refuse a stream that does not have these rows, if known, or whose bodies are compressed or not there."""
    total = 0
    for kind, metadata, header in _messages(content):
        batch = _table(metadata, header, _DATA) if kind == _DICTIONARY else header
        if kind not in (_DICTIONARY, _RECORDS):
            continue
        if _field(metadata, batch, _COMPRESSION) is not None:
            raise ValueError("a column is compressed inside")
        length = _number(metadata, batch, _LENGTH, "<q")
        if not 0 <= length <= 8 * len(content):
            raise ValueError("a column declares more values than it can hold")
        total += length if kind == _RECORDS else 0
    if rows is not None and total != rows:
        raise ValueError(f"a column declares {total} values instead of {rows}")


def _messages(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The kind of each message, its metadata, and where its header is in them."""
    at = 0
    while at + 8 <= len(content):
        mark, size = struct.unpack_from("<II", content, at)
        if mark != _MARK or size > len(content) - at - 8:
            raise ValueError("it is no Arrow stream")
        if size == 0:
            if at + 8 < len(content):
                raise ValueError("something follows the end of an Arrow stream")
            return
        metadata = content[at + 8 : at + 8 + size]
        message = _offset(metadata, 0)
        body = _number(metadata, message, _BODY_SIZE, "<q")
        at += 8 + size + body
        if body < 0 or at > len(content):
            raise ValueError("it declares more bytes than it has")
        yield _number(metadata, message, _KIND, "<B"), metadata, _table(metadata, message, _HEADER)


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it is left out."""
    (back,) = struct.unpack_from("<i", metadata, table)
    directory = table - back
    if directory < 0:
        raise ValueError("it is no Arrow stream")
    (size,) = struct.unpack_from("<H", metadata, directory)
    if 4 + 2 * number + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, directory + 4 + 2 * number)
    return table + offset if offset else None


def _number(metadata: bytes, table: int, number: int, kind: str) -> int:
    at = _field(metadata, table, number)
    return 0 if at is None else int(struct.unpack_from(kind, metadata, at)[0])


def _table(metadata: bytes, table: int, number: int) -> int:
    at = _field(metadata, table, number)
    if at is None:
        raise ValueError("it is no Arrow stream")
    return _offset(metadata, at)


def _offset(metadata: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", metadata, at)[0])
