"""Blocks of a sheet: cells between empty columns, one of which is the table.

Blocks belong to one table if their headers stand in the same row. The table is what has
the most rows of two cells or more; what follows below an empty row is a part of it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairmaxent.errors import unfit
from fairmaxent.files.excel_archive import column_letters, column_number

Rows = Mapping[int, Mapping[int, Any]]  # the values of cells, by row and column
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_PAIR = 2  # cells of a row of a table, and rows of a table, at least
_MOSTLY = 0.7  # of the rows of a table are beside what belongs to it


class Block(NamedTuple):
    """A rectangle of cells, by its first and its last, numbered from 0."""

    top: int
    left: int
    bottom: int
    right: int

    def __str__(self) -> str:
        first = f"{column_letters(self.left)}{self.top + 1}"
        last = f"{column_letters(self.right)}{self.bottom + 1}"
        if first == last:
            return first
        return f"{first}:{last}"

    def inside(self, rows: Rows) -> dict[int, dict[int, Any]]:
        """The cells of a sheet that are in it; rows without any are left out."""
        found = {}
        for row, values in rows.items():
            if self.top <= row <= self.bottom:
                kept = {
                    column: value
                    for column, value in values.items()
                    if self.left <= column <= self.right
                }
                if kept:
                    found[row] = kept
        return found


def read_range(text: str) -> Block:
    """Read a range as spreadsheets write it.

    >>> read_range("A5:L945"), str(read_range("a5:l945"))
    (Block(top=4, left=0, bottom=944, right=11), 'A5:L945')
    """
    found = _RANGE.fullmatch(text.strip().upper())
    if found is not None:
        block = Block(
            top=int(found[2]) - 1,
            left=column_number(found[1]),
            bottom=int(found[4]) - 1,
            right=column_number(found[3]),
        )
        if 0 <= block.top <= block.bottom and block.left <= block.right:
            return block
    raise unfit(
        "range", text, "name the first and the last cell of the table, such as A5:L945"
    )


class Found(NamedTuple):
    """The table of a sheet, and what stands beside and below it."""

    rows: dict[int, dict[int, Any]]
    block: Block
    joined: list[Block]  # that an empty column parts, though they are one table
    apart: list[Block]  # that do not belong to it


def find_table(rows: Rows) -> Found:
    """Find the cells that are the table of a sheet; it has one cell at least."""
    parts = _parts(rows)
    table = max(parts, key=_size)
    joined = []
    apart = []
    for part in parts:
        if part is table or _belongs(part, table):
            joined.append(part)
        else:
            apart.append(part)

    whole: dict[int, dict[int, Any]] = {}
    for part in joined:
        for row, values in part.items():
            whole[row] = {**whole.get(row, {}), **values}
    block = _block(whole)
    beside = [_block(part) for part in apart]
    return Found(
        rows=dict(sorted(whole.items())),
        block=block,
        joined=[_block(part) for part in joined],
        apart=[other for other in beside if other.bottom >= block.top],
    )


def is_table(rows: Rows, block: Block) -> bool:
    """Whether a block has two rows of two cells at least."""
    return _size(block.inside(rows)) >= _PAIR


def _block(rows: Rows) -> Block:
    return Block(
        top=min(rows),
        left=min(map(min, rows.values())),
        bottom=max(rows),
        right=max(map(max, rows.values())),
    )


def _size(rows: Rows) -> int:
    """How many rows have two cells or more."""
    return sum(len(values) >= _PAIR for values in rows.values())


def _parts(rows: Rows) -> list[Rows]:
    """The cells between empty columns."""
    columns = sorted(set().union(*rows.values()))
    starts = [place for place in columns if place - 1 not in columns]
    ends = [place for place in columns if place + 1 not in columns]
    if len(starts) == 1:
        return [rows]
    height = max(rows)
    return [
        Block(0, start, height, end).inside(rows)
        for start, end in zip(starts, ends, strict=True)
    ]


def _header(rows: Rows) -> int:
    """The first row with more than half of the cells of the longest."""
    longest = max(map(len, rows.values()))
    return next(row for row, values in rows.items() if len(values) > longest / 2)


def _belongs(part: Rows, table: Rows) -> bool:
    """Whether a part has other names in the header's row, and does not end early.

    It may have gaps, such as a column of remarks.
    """
    header = _header(table)
    if _header(part) != header:
        return False
    names = part[header].values()
    if not all(isinstance(name, str) for name in names):
        return False
    if set(names) & set(table[header].values()):
        return False
    height = max(table) - header + 1
    reached = max(part) - header + 1
    count = sum(row >= header for row in part)
    return reached >= _MOSTLY * height or count < reached
