"""What a command shows: tables that read well in a terminal, in a pipe and in a file, JSON, and progress."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairmaxent.cli.streams import echo
from fairmaxent.data.levels import value_text
from fairmaxent.plain_text import escaped_json, visible


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


def as_json(record: Any) -> str:
    """Plain JSON: what is no number (infinite, NaN) is null, what has no JSON form is its text."""
    return escaped_json(json.dumps(_plain(record), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value_text(value)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Say on a terminal what is being done; a pipe or a file stays as it is."""
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        yield
        return
    with Console(stderr=True).status(Text(cell_text(text))):  # not markup: a file may be called a[b].csv
        yield


def say(text: str, *, data_on_stdout: bool) -> None:
    """Print for people; to stderr if stdout carries the data."""
    echo(text, err=data_on_stdout)
