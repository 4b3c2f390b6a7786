"""The schema in the footer of an Arrow file, checked before polars reads it, as in `parquet_footer`.

The footer is a FlatBuffer: tables point to a list of where their fields are, and to other tables further on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fairmaxent.errors import StorageError
from fairmaxent.files.parquet_footer import DEEPEST

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
        depth = _depth(content[max(end - _number("<I", content, end), 0) : end])
    except struct.error as problem:
        raise _damaged(path) from problem
    if depth > DEEPEST:
        raise StorageError(
            f"{path} has columns with more than {DEEPEST} others inside each other; each cell must be a single number, "
            "text, truth value or date: unpack the columns"
        )


def _damaged(path: object) -> StorageError:
    return StorageError(f"{path} is a damaged Arrow file: its end cannot be read; write or download it again")


def _depth(footer: bytes) -> int:
    """How many columns are inside each other at most; beyond the limit if there are too many of them to look at."""
    root = _number("<I", footer, 0)
    schema = _pointer(footer, root, _SCHEMA_OF_FOOTER)
    waiting = [] if schema is None else [(field, 1) for field in _tables(footer, schema, _FIELDS_OF_SCHEMA)]
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
