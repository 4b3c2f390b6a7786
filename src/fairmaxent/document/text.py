"""Blocks as plain text, for a terminal or a file, and documents as Markdown."""

import html
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from fairmaxent.document import (
    Block,
    Code,
    Document,
    Heading,
    Listing,
    Note,
    Paragraph,
    Table,
)
from fairmaxent.document.words import numeric_columns
from fairmaxent.plain_text import isolated, visible

# Characters that would begin markup; each is written as text.
_MARKUP = re.compile(r"([\\`*_\[\]|#~$])")


def to_text(blocks: Iterable[Block], *, width: int | None = None) -> str:
    """Write blocks one below the other, with sentences wrapped if there is a width."""
    return "\n".join(line for block in blocks for line in _lines(block, width))


def sections_text(
    sections: Iterable[Iterable[Block]], *, width: int | None = None
) -> str:
    """Write groups of blocks, unless empty, with an empty line between them."""
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
        case Code(text):
            yield from (f"    {visible(line)}" for line in text.splitlines())


def _wrapped(text: str, width: int | None, indent: str = "") -> str:
    line = on_one_line(text)
    if width is None:
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side, those of numbers to the right.

    >>> rows = [["Female", "25 %"], ["Male", "7.5 %"]]
    >>> print("\\n".join(table_lines(["group", "share"], rows)))
    group   share
    Female   25 %
    Male    7.5 %
    """
    numeric = numeric_columns(rows, len(heads))
    cells = [[on_one_line(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = []
    for row in cells:
        placed = zip(
            row,
            widths,
            numeric,
            strict=True,
        )
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in placed
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def on_one_line(text: str) -> str:
    """Text from data as it may be shown, with its line ends as signs."""
    return visible("⏎".join(text.splitlines()))


def to_markdown(document: Document) -> str:
    """Write a document."""
    return "\n\n".join(filter(None, _parts(document))) + "\n"


def _parts(document: Document) -> Iterator[str]:
    yield f"# {escaped(f'{document.kind}: {document.title}')}"
    yield _listing(f"{name}: {value}" for name, value in document.filing)
    yield escaped(document.summary)
    for section in document.first_page:
        yield from (f"## {escaped(section.title)}", *map(_markdown, section.blocks))
    yield "## Appendix" if document.appendix else ""
    for section in document.appendix:
        yield from (f"### {escaped(section.title)}", *map(_markdown, section.blocks))
    yield escaped(document.footer)


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"#### {escaped(text)}"
        case Paragraph(text):
            return escaped(text)
        case Listing(items):
            return _listing(items)
        case Table():
            if not block.shares:
                return _table(block)
            head = f"#### {escaped(block.label)}\n\n{escaped(block.about)}"
            return f"{head}\n\n{_table(block)}"
        case Note(lead, items):
            shown = f"**{escaped(lead)}**"
            if items:
                shown += f"\n\n{_listing(items)}"
            return shown
        case Code(text):  # indented, which no content can end
            return "\n".join(f"    {line}" for line in visible(text).splitlines())


def _listing(items: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(item)}" for item in items)


def _table(table: Table) -> str:
    heads, *rows = (
        [escaped(cell) for cell in line] for line in (table.heads, *table.rows)
    )
    return "\n".join(
        f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows)
    )


def escaped(raw: str) -> str:
    """Write any text so that Markdown shows it as it is, on one line."""
    return _MARKUP.sub(
        r"\\\1", html.escape(isolated(" ".join(raw.splitlines())), quote=False)
    )
