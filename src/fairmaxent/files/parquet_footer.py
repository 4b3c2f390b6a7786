"""The schema in the footer of a Parquet file, checked before polars reads it.

Polars reads groups inside groups by recursion, and a file can declare more of them than any stack can hold: the process
would end without a word. So the schema, and nothing else, is read here first, in Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from fairmaxent.errors import StorageError

DEEPEST = 64  # groups inside groups; fairmaxent can use none
_MAGIC = b"PAR1"
_SCHEMA = 2  # the field of the footer
_CHILDREN = 5  # the field of an element of the schema
# Types of the compact protocol.
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_IN_THE_HEADER, _NUMBERS = (1, 2), (4, 5, 6)


def check_footer(file: BinaryIO, path: object) -> None:
    """Refuse a file whose footer is damaged, or whose columns hold groups inside groups without end."""
    damaged = StorageError(f"cannot read {path} as parquet (its end is damaged); write or download it again")
    try:
        file.seek(-8, 2)
        size, magic = struct.unpack("<I4s", file.read(8))
        file.seek(-8 - size, 2)
        footer = _Reader(file.read(size))
        depth = _depth(footer.schema())
    except (OSError, IndexError, struct.error) as problem:
        raise damaged from problem
    if magic != _MAGIC:
        raise damaged
    if depth > DEEPEST:
        raise StorageError(
            f"{path} has columns with more than {DEEPEST} groups inside groups; each cell must be a single number, "
            "text, truth value or date: unpack the columns"
        )


def _depth(children: Iterator[int]) -> int:
    """The largest number of groups inside each other, from how many children each element has, parents first."""
    deepest, open_groups = 0, [1]
    for count in children:
        while open_groups and not open_groups[-1]:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        if count > 0:
            open_groups.append(count)
        deepest = max(deepest, len(open_groups) - 1)
        if deepest > DEEPEST:
            break
    return deepest


class _Reader:
    """Reads what it is asked for from the compact protocol, and skips the rest."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def schema(self) -> Iterator[int]:
        """The number of children of each element of the schema."""
        for field, kind in self._fields():
            if field == _SCHEMA and kind == _LIST:
                for _ in range(self._list_size()):
                    yield self._children()
                return
            self._skip(kind, 0)

    def _children(self) -> int:
        count = 0
        for field, kind in self._fields():
            if field == _CHILDREN and kind in _NUMBERS:
                number = self._varint()
                count = number >> 1 ^ -(number & 1)  # zigzag
            else:
                self._skip(kind, 0)
        return count

    def _fields(self) -> Iterator[tuple[int, int]]:
        field = 0
        while header := self._byte():
            if header >> 4:
                field += header >> 4
            else:
                number = self._varint()
                field = number >> 1 ^ -(number & 1)
            yield field, header & 15

    def _skip(self, kind: int, depth: int) -> None:
        if depth > DEEPEST:
            raise IndexError("too deep")
        if kind in _NUMBERS:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            inner = self.content[self.at] & 15
            for _ in range(self._list_size()):
                self._skip(inner, depth + 1)
        elif kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind not in _IN_THE_HEADER:
            raise IndexError("no such type")

    def _list_size(self) -> int:
        short = self._byte() >> 4
        return self._varint() if short == 15 else short

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise IndexError("no such number")

    def _byte(self) -> int:
        byte = self.content[self.at]
        self.at += 1
        return byte
