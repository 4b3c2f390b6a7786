"""Documents as Markdown, for a repository or a wiki."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from fairmaxent.document.blocks import Block, Code, Document, Heading, Listing, Note, Paragraph, Picture, Table
from fairmaxent.plain_text import isolated, visible

# Characters that would begin markup; each is written as text.
_MARKUP = re.compile(r"([\\`*_\[\]|#~$])")


def to_markdown(document: Document) -> str:
    """Write a document."""
    return "\n\n".join(_parts(document)) + "\n"


def _parts(document: Document) -> Iterator[str]:
    yield f"# {escaped(f'{document.kind}: {document.title}')}"
    yield _listing(f"{name}: {value}" for name, value in document.filing)
    yield escaped(document.summary)
    if document.warning is not None:
        yield from _block(document.warning)
    for section in document.first_page:
        yield from (f"## {escaped(section.title)}", *markdown_blocks(section.blocks))
    if document.appendix:
        yield "## Appendix"
    for section in document.appendix:
        yield from (f"### {escaped(section.title)}", *markdown_blocks(section.blocks))
    yield escaped(document.footer)


def markdown_blocks(blocks: Iterable[Block]) -> Iterator[str]:
    """Write blocks, each as a part of its own."""
    for block in blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"#### {escaped(text)}"
        case Paragraph(text):
            yield escaped(text)
        case Listing(items):
            yield _listing(items)
        case Table():
            yield from (f"#### {escaped(block.label)}", escaped(block.about)) if block.shares else ()
            yield _table(block.heads, block.rows)
        case Note(lead, items):
            yield f"**{escaped(lead)}**"
            yield from (_listing(items),) if items else ()
        case Picture(caption, _, numbers):
            yield from () if numbers is None else (escaped(f"{caption}:"), _table(numbers.heads, numbers.rows))
        case Code(text):  # indented, which no content can end
            yield "\n".join(f"    {line}" for line in visible(text).splitlines())


def _listing(items: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(item)}" for item in items)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [
        [escaped(head) for head in heads],
        ["---"] * len(heads),
        *([escaped(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(raw: str) -> str:
    """Write any text so that Markdown shows it as it is, on one line.

    >>> escaped("<b> a|b")
    '&lt;b&gt; a\\\\|b'
    """
    return _MARKUP.sub(r"\\\1", html.escape(isolated(" ".join(raw.splitlines())), quote=False))
