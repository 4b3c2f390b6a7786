"""What a Parquet file says of itself, checked before polars reads it.

Polars reads groups inside groups by recursion, and a file can declare more of them than any stack can hold. It makes
room for as many values as a page claims to have, and a damaged page can claim more than any memory can hold. In both
cases the process would end without a word. So the schema and the numbers of values are read here first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from fairmaxent.errors import StorageError
from fairmaxent.files.thrift import LIST, NUMBERS, STRUCT, ThriftReader

DEEPEST = 64  # groups inside groups; fairmaxent can use none
_MAGIC = b"PAR1"
_SCHEMA, _ROW_GROUPS = 2, 4  # fields of the footer
_CHILDREN = 5  # of an element of the schema
_CHUNKS, _META_DATA = 1, 3  # of a row group, and of each of its column chunks
_VALUES, _SIZE, _DATA, _DICTIONARY = 5, 7, 9, 11  # of the meta data of a chunk
_UNPACKED, _PACKED = 2, 3  # of the header of a page: its sizes
_DATA_PAGES, _DICTIONARY_PAGE, _COUNT = (5, 8), 7, 1  # of the same, and of these: how many values
_HEADER = 1024  # bytes that a header usually has at most; it is read again if it has more
_LONGEST_HEADER = 1 << 24
_LARGE_DICTIONARY = 1 << 16  # bytes; the texts in a smaller one are not long
_MOST_PAGES = 100_000  # that are looked at


def check_footer(file: BinaryIO, path: object) -> int:
    """Refuse a file whose footer is damaged, or whose columns or pages claim to hold what nothing can.

    Return how many bytes the texts of its large dictionaries could have at most, if each cell had its own.
    """
    damaged = StorageError(f"cannot read {path} as parquet (its end is damaged); write or download it again")
    try:
        file.seek(-8, 2)
        size, magic = struct.unpack("<I4s", file.read(8))
        file.seek(-8 - size, 2)
        footer = file.read(size)
        depth = _depth(_schema(ThriftReader(footer)))
    except (OSError, IndexError, struct.error) as problem:
        raise damaged from problem
    if magic != _MAGIC:
        raise damaged
    if depth > DEEPEST:
        raise StorageError(
            f"{path} has columns with more than {DEEPEST} groups inside groups; each cell must be a single number, "
            "text, truth value or date: unpack the columns"
        )
    pages = ((page, chunk) for chunk in _chunks(ThriftReader(footer)) for page in _pages(file, chunk))
    longest = 0
    for page, chunk in islice(pages, _MOST_PAGES):
        if not page.is_plausible(chunk):
            raise StorageError(f"cannot read {path} as parquet (a page is damaged); write or download it again")
        longest += chunk.values * page.unpacked if page.of_dictionary and page.unpacked >= _LARGE_DICTIONARY else 0
    return longest


# ---------------------------------------------------------------- the schema


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


def _schema(footer: ThriftReader) -> Iterator[int]:
    """The number of children of each element of the schema."""
    for field, kind in footer.fields():
        if field == _SCHEMA and kind == LIST:
            for _ in range(footer.list_size()):
                yield footer.numbers(_CHILDREN).get(_CHILDREN, 0)
            return
        footer.skip(kind)


# ---------------------------------------------------------------- the pages


@dataclass(frozen=True)
class _Chunk:
    """The values of one column in one group of rows, and where their pages are."""

    values: int
    begin: int
    size: int


def _chunks(footer: ThriftReader) -> Iterator[_Chunk]:
    """All chunks that the footer describes in a way that can be read; polars refuses the others itself."""
    try:
        for chunk in _lists_in(footer, _ROW_GROUPS):
            for column in _lists_in(chunk, _CHUNKS):
                yield from _chunk(column)
    except IndexError:
        return


def _lists_in(reader: ThriftReader, wanted: int) -> Iterator[ThriftReader]:
    """The reader at each element of the wanted list, which must be read before the next."""
    for field, kind in reader.fields():
        if field == wanted and kind == LIST:
            for _ in range(reader.list_size()):
                yield reader
        else:
            reader.skip(kind)


def _chunk(column: ThriftReader) -> Iterator[_Chunk]:
    for field, kind in column.fields():
        if field == _META_DATA and kind == STRUCT:
            known = column.numbers(_VALUES, _SIZE, _DATA, _DICTIONARY)
            begin = min(known.get(_DATA, 0), known.get(_DICTIONARY) or known.get(_DATA, 0))
            if known.keys() >= {_VALUES, _SIZE, _DATA} and begin > 0:
                yield _Chunk(known[_VALUES], begin, known[_SIZE])
        else:
            column.skip(kind)


def _pages(file: BinaryIO, chunk: _Chunk) -> Iterator[_Page]:
    """The pages of a chunk, up to one whose header cannot be read, which polars will say."""
    at, end = chunk.begin, chunk.begin + chunk.size
    while at < end:
        page = _page(file, at, end)
        if page is None:
            return
        yield page
        at = page.end


@dataclass(frozen=True)
class _Page:
    """What the header of a page says of it."""

    values: int | None  # None: it does not say
    of_dictionary: bool
    unpacked: int  # bytes
    end: int

    def is_plausible(self, chunk: _Chunk) -> bool:
        """Whether the page can have so many values: an entry of a dictionary takes at least a byte."""
        most = self.unpacked if self.of_dictionary else chunk.values
        return self.values is None or 0 <= self.values <= most


def _page(file: BinaryIO, at: int, end: int) -> _Page | None:
    """Read the header of a page; None if it cannot be read."""
    size = _HEADER
    while size <= _LONGEST_HEADER:
        try:
            file.seek(at)
            return _read_page(ThriftReader(file.read(min(size, end - at))), at)
        except IndexError:
            size *= 16
        except (OSError, OverflowError, ValueError):
            return None
    return None


def _read_page(header: ThriftReader, at: int) -> _Page | None:
    sizes: dict[int, int] = {}
    values, of_dictionary = None, False
    for field, kind in header.fields():
        if field in (_UNPACKED, _PACKED) and kind in NUMBERS:
            sizes[field] = header.number()
        elif field in (*_DATA_PAGES, _DICTIONARY_PAGE) and kind == STRUCT:
            values, of_dictionary = header.numbers(_COUNT).get(_COUNT), field == _DICTIONARY_PAGE
        else:
            header.skip(kind)
    packed = sizes.get(_PACKED, -1)
    return None if packed < 0 else _Page(values, of_dictionary, sizes.get(_UNPACKED, 0), at + header.at + packed)
