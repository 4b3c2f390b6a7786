"""Tables as plain text, which read well in a terminal, in a pipe and in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairmaxent.data.levels import value_text
from fairmaxent.document.text import on_one_line, table_lines


def text_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns side by side; numbers with four digits, and to the right.

    >>> print(text_table(["group", "share"], [["Female", 0.25], ["Male", 0.75]]))
    group   share
    Female  0.2500
    Male    0.7500
    """
    return "\n".join(table_lines(head, [[cell_text(value) for value in row] for row in rows]))


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
    return on_one_line(value_text(value))
