"""The schema of an Arrow file or stream, checked before polars reads it, as in `parquet_footer`.

The footer of a file, and each message of a stream, is a FlatBuffer: tables point to a list of where their fields are,
and to other tables further on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

from fairmaxent.data.arrow_stream import stream_size
from fairmaxent.data.limits import check_file_columns
from fairmaxent.errors import StorageError, first_line
from fairmaxent.files.content import most_inflated, too_inflated
from fairmaxent.files.parquet_footer import DEEPEST

CELL_MEMORY = 8  # bytes of a cell, at least
_MAGIC = b"ARROW1"  # the first and the last bytes
_MOST_FIELDS = 1 << 20
# Which field of its table each of them is.
_SCHEMA_OF_FOOTER, _FIELDS_OF_SCHEMA, _CHILDREN_OF_FIELD = 1, 1, 5


def check_arrow_footer(content: bytes, path: object) -> None:
    """Refuse a file whose footer is damaged, or whose columns hold others inside others without end."""
    if len(content) < 10 or not content.endswith(_MAGIC):
        raise _damaged(path)
    end = len(content) - 10
    try:
        footer = content[max(end - _number("<I", content, end), 0) : end]
        schema = _pointer(footer, _number("<I", footer, 0), _SCHEMA_OF_FOOTER)
        depth = 0 if schema is None else _depth(footer, schema)
    except struct.error as problem:
        raise _damaged(path) from problem
    _check_depth(depth, path)


def check_arrow_stream(content: bytes, path: object) -> float:
    """Refuse a stream in the same way, and one that would be too large; return the memory that it will take."""
    try:
        size = stream_size(content)
        depth, columns = _depth(*size.schema), sum(1 for _ in _tables(*size.schema, _FIELDS_OF_SCHEMA))
    except (struct.error, ValueError) as problem:
        raise StorageError(
            f"{path} is a damaged Arrow stream ({first_line(problem)}); write or download it again"
        ) from problem
    _check_depth(depth, path)
    check_file_columns(columns, path)
    if size.unpacked > most_inflated(content):
        raise too_inflated(content, path)
    return float(len(content) + max(size.unpacked, CELL_MEMORY * columns * size.rows))


def _check_depth(depth: int, path: object) -> None:
    if depth > DEEPEST:
        raise StorageError(
            f"{path} has columns with more than {DEEPEST} others inside each other; each cell must be a single number, "
            "text, truth value or date: unpack the columns"
        )


def _damaged(path: object) -> StorageError:
    return StorageError(f"{path} is a damaged Arrow file: its end cannot be read; write or download it again")


def _depth(footer: bytes, schema: int) -> int:
    """How many columns are inside each other at most; beyond the limit if there are too many of them to look at."""
    waiting = [(field, 1) for field in islice(_tables(footer, schema, _FIELDS_OF_SCHEMA), _MOST_FIELDS)]
    deepest = seen = 0
    while waiting:
        field, depth = waiting.pop()
        seen += 1
        deepest = max(deepest, depth)
        if deepest > DEEPEST or seen > _MOST_FIELDS:
            return DEEPEST + 1
        waiting += [(child, depth + 1) for child in _tables(footer, field, _CHILDREN_OF_FIELD)]
    return deepest


def _tables(footer: bytes, table: int, field: int) -> Iterator[int]:
    """Where the tables in a list stand."""
    start = _pointer(footer, table, field)
    if start is None:
        return
    for number in range(_number("<I", footer, start)):
        at = start + 4 + 4 * number
        yield at + _number("<I", footer, at)


def _pointer(footer: bytes, table: int, field: int) -> int | None:
    """Where a field of a table points to; None if the table does not have it."""
    offsets = table - _number("<i", footer, table)
    if offsets < 0 or 4 + 2 * field >= _number("<H", footer, offsets):
        return None
    offset = _number("<H", footer, offsets + 4 + 2 * field)
    at = table + offset
    return at + _number("<I", footer, at) if offset else None


def _number(kind: str, footer: bytes, at: int) -> int:
    return int(struct.unpack_from(kind, footer, at)[0])
