"""Thrift's compact protocol, in which Parquet files describe themselves: reads what is asked for, skips the rest.

Anything that cannot be there raises an IndexError, as the end of the content does.
"""

from __future__ import annotations

from collections.abc import Iterator

# Types of the protocol.
NUMBERS, LIST, STRUCT = (4, 5, 6), 9, 12
_BYTE, _DOUBLE, _BINARY, _SET = 3, 7, 8, 10
_IN_THE_HEADER = (1, 2)
_DEEPEST = 64  # structures inside structures that are skipped


class ThriftReader:
    """Reads a structure from the start of some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a structure; each must be read or skipped before the next."""
        field = 0
        while header := self._byte():
            field = field + (header >> 4) if header >> 4 else self.number()
            yield field, header & 15

    def numbers(self, *names: int) -> dict[int, int]:
        """The named fields of a structure that are numbers; the others are skipped."""
        result = {}
        for field, kind in self.fields():
            if field in names and kind in NUMBERS:
                result[field] = self.number()
            else:
                self.skip(kind)
        return result

    def number(self) -> int:
        """A whole number."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)  # zigzag

    def list_size(self) -> int:
        """How many elements follow."""
        short = self._byte() >> 4
        return self._varint() if short == 15 else short

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value of this type."""
        if depth > _DEEPEST:
            raise IndexError("too deep")
        if kind in NUMBERS:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, _SET):
            inner = self.content[self.at] & 15
            count = self.list_size()
            if inner in _IN_THE_HEADER:  # in a list, a truth value takes a byte
                self.at += count
                return
            for _ in range(count):
                self.skip(inner, depth + 1)
        elif kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind not in _IN_THE_HEADER:
            raise IndexError("no such type")

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
