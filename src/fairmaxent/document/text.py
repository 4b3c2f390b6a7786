"""Blocks as plain text, which reads well in a terminal, in a pipe and in a file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from fairmaxent.document.blocks import Block, Code, Heading, Listing, Note, Paragraph, Picture, Table, numeric_columns
from fairmaxent.plain_text import visible


def to_text(blocks: Iterable[Block], *, width: int | None = None) -> str:
    """Write blocks one below the other; sentences are wrapped if there is a ``width``."""
    return "\n".join(line for block in blocks for line in _lines(block, width))


def sections_text(sections: Iterable[Iterable[Block]], *, width: int | None = None) -> str:
    """Write groups of blocks with an empty line between them; groups without blocks are left out."""
    texts = (to_text(section, width=width) for section in sections)
    return "\n\n".join(text for text in texts if text)


def _lines(block: Block, width: int | None) -> Iterator[str]:
    match block:
        case Heading(text) | Paragraph(text):
            yield _wrapped(text, width)
        case Listing(items):
            yield from (_wrapped(f"- {item}", width, "  ") for item in items)
        case Note(lead, items):
            yield _wrapped(" ".join([lead, *items]), width, "  ")
        case Table():
            yield from table_lines(block.heads, block.rows)
        case Picture(_, _, numbers):
            yield from () if numbers is None else table_lines(numbers.heads, numbers.rows)
        case Code(text):
            yield from (f"    {visible(line)}" for line in text.splitlines())


def _wrapped(text: str, width: int | None, indent: str = "") -> str:
    line = on_one_line(text)
    return line if width is None else textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False)


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side, those of numbers to the right.

    >>> print("\\n".join(table_lines(["group", "share"], [["Female", "25 %"], ["Male", "7.5 %"]])))
    group   share
    Female   25 %
    Male    7.5 %
    """
    numeric = numeric_columns(rows, len(heads))
    cells = [[on_one_line(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]


def on_one_line(text: str) -> str:
    """Text from data as it may be shown, with its line ends as signs.

    >>> on_one_line("two\\nlines")
    'two⏎lines'
    """
    return visible("⏎".join(text.splitlines()))
