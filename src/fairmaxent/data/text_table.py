"""Tables as plain text, which read well in a terminal, in a pipe and in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairmaxent.data.levels import value_text
from fairmaxent.plain_text import visible


def text_table(head: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """Columns side by side; numbers with four digits and to the right, as are the columns numbered in ``right``.

    >>> print(text_table(["group", "share"], [["Female", 0.25], ["Male", 0.75]]))
    group   share
    Female  0.2500
    Male    0.7500
    """
    cells = [[cell_text(value) for value in row] for row in (head, *rows)]
    numeric = [
        column in right or all(isinstance(row[column], int | float | None) for row in rows)
        for column in range(len(head))
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def cell_text(value: object) -> str:
    """Write a value on one line, as it may be shown; a rounding error below zero has no sign.

    >>> cell_text(-1e-9), cell_text(1234), cell_text(None), cell_text("two\\nlines")
    ('0.0000', '1,234', '–', 'two⏎lines')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{round(value, 4) + 0.0:.4f}" if math.isfinite(value) else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return visible("⏎".join(value_text(value).splitlines()))


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
