"""Documents as HTML: no script, no network, every text escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import groupby

from fairmaxent.document.blocks import Block, Code, Document, Heading, Listing, Note, Paragraph, Picture, Section, Table
from fairmaxent.plain_text import isolated

_TYPED = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_KEY = '<ul class="key"><li><span></span>Before</li><li><span class="new"></span>After</li></ul>'


def to_page(document: Document, *, paper: str | None = None) -> str:
    """Write a document as one file; without a size of paper, it is printed on whatever there is."""
    style = files("fairmaxent.document").joinpath("page.css").read_text(encoding="utf-8")
    style += "" if paper is None else f"@page {{ size: {paper}; }}\n"
    title = escaped(f"{document.kind}: {document.title}")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>",
            '<body class="long">' if document.is_long else "<body>",
            *_header(document),
            "<main>",
            *(_answer(section) for section in document.first_page),
            *([] if not document.appendix else _appendix(document.appendix)),
            f"</main>\n<footer>\n<p>{escaped(document.footer)}</p>\n</footer>\n</body>\n</html>\n",
        ]
    )


def _header(document: Document) -> Iterator[str]:
    yield f'<header>\n<p class="kind">{escaped(document.kind)}</p>\n<h1>{escaped(document.title)}</h1>'
    pairs = [f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in document.filing]
    yield "\n".join(['<dl class="filing">', *pairs, "</dl>"])
    yield f'<p class="lede">{_sentence(document.summary)}</p>'
    if document.warning is not None:
        yield _note(document.warning, "note alert")
    yield "</header>"


def _answer(section: Section) -> str:
    """A question of the first page, and beside it the answer."""
    key = f"first-{section.key}"
    return (
        f'<section class="answer" id="{key}" aria-labelledby="{key}-title">\n'
        f'<h2 id="{key}-title">{escaped(section.title)}</h2>\n<div>\n{to_html(section.blocks)}\n</div>\n</section>'
    )


def _appendix(sections: Sequence[Section]) -> Iterator[str]:
    yield '<div class="appendix">\n<h2 id="appendix">Appendix</h2>'
    yield _contents(sections)
    yield from map(_appendix_section, sections)
    yield "</div>"


def _appendix_section(section: Section) -> str:
    return (
        f'<section id="{section.key}" aria-labelledby="{section.key}-title">\n'
        f'<h3 id="{section.key}-title">{escaped(section.title)}</h3>\n{to_html(section.blocks)}\n</section>'
    )


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{section.key}">{escaped(section.short)}</a></li>\n' for section in sections)
    return f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>'


# ---------------------------------------------------------------- blocks


def to_html(blocks: Iterable[Block]) -> str:
    """Write blocks; pictures, and tables with bars, stand side by side if they follow each other."""
    parts: list[str] = []
    for kind, group in groupby(blocks, key=_side_by_side):
        members = list(group)
        shown = "\n".join(map(_block, members))
        key = f"{_KEY}\n" if isinstance(members[0], Table) and members[0].shares else ""
        parts.append(shown if kind is None else f'{key}<div class="{kind}">\n{shown}\n</div>')
    return "\n".join(parts)


def _side_by_side(block: Block) -> str | None:
    """The class of the place that a block shares with those beside it; None: it stands alone."""
    if isinstance(block, Table) and block.shares:
        return {3: "cards", 4: "cards two"}.get(len(block.heads), "cards one")
    if isinstance(block, Picture):
        return "cards two" if block.numbers is None else "pair"
    return None


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h4>{escaped(text)}</h4>"
        case Paragraph(text):
            return f"<p>{_sentence(text)}</p>"
        case Listing(items):
            return _listing(items)
        case Table():
            return _bars(block) if block.shares else _grid(block)
        case Note():
            return _note(block, "note")
        case Picture():
            return _figure(block)
        case Code(text):
            return f"<pre><code>{escaped(text)}</code></pre>"


def _listing(items: Sequence[str]) -> str:
    lines = "\n".join(f"<li>{_sentence(item)}</li>" for item in items)
    return f"<ul>\n{lines}\n</ul>"


def _note(note: Note, kind: str) -> str:
    items = f"\n{_listing(note.items)}" if note.items else ""
    return f'<div class="{kind}" role="note">\n<p><strong>{_sentence(note.lead)}</strong></p>{items}\n</div>'


def _figure(picture: Picture) -> str:
    """A large map is scrolled sideways on a phone."""
    caption, about = escaped(picture.caption), escaped(picture.caption.lower())
    if picture.numbers is None:
        return f'<figure class="card curve">\n<figcaption>{caption}</figcaption>\n{picture.svg}\n</figure>'
    return (
        f"<figure>\n<figcaption>{caption}</figcaption>\n"
        '<p class="hint">Scroll sideways to see every column.</p>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Relations, {about}">{picture.svg}</div>\n</figure>'
    )


def _grid(table: Table) -> str:
    """A table whose rows become blocks on a phone; roles keep it a table for a screen reader even then."""
    numbers = [' class="n"' if numeric else "" for numeric in table.numeric]
    heads = "".join(
        f'<th role="columnheader" scope="col"{number}>{escaped(head)}</th>'
        for head, number in zip(table.heads, numbers, strict=True)
    )
    rows = []
    for row, cells in enumerate(table.rows):
        shown = "".join(
            f'<td role="cell" data-label="{escaped(table.heads[column])}"{numbers[column]}>'
            f"{_marked(cells[column], table.mark(row, column))}</td>"
            for column in range(1, len(cells))
        )
        rows.append(f'<tr role="row"><th role="rowheader" scope="row">{escaped(cells[0])}</th>{shown}</tr>')
    return (
        f'<table class="grid" role="table" aria-label="{escaped(table.label)}">\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(rows) + "\n</tbody>\n</table>"
    )


def _marked(cell: str, mark: str) -> str:
    return f'<span class="{mark}">{_sentence(cell)}</span>' if mark else _sentence(cell)


def _bars(table: Table) -> str:
    """A card with a bar before and a bar after in each row."""
    longest = max((max(pair) for pair in table.shares), default=0.0) or 1.0
    columns = "".join('<col class="share">' for _ in table.heads[1:])
    heads = "".join(f'<th scope="col" class="n">{escaped(head)}</th>' for head in table.heads[1:])
    rows = []
    for cells, (before, after) in zip(table.rows, table.shares, strict=True):
        bars = (
            f'<span class="bar" style="width:{100 * before / longest:.1f}%"></span>'
            f'<span class="bar new" style="width:{100 * after / longest:.1f}%"></span>'
        )
        numbers = "".join(f'<td class="n">{escaped(cell)}</td>' for cell in cells[1:])
        rows.append(f'<tr><th scope="row">{escaped(cells[0])}</th><td aria-hidden="true">{bars}</td>{numbers}</tr>')
    return (
        f'<article class="card">\n<h4>{escaped(table.label)}</h4>\n<p class="about">{escaped(table.about)}</p>\n'
        f'<table aria-label="{escaped(table.label)}">\n'
        f'<colgroup><col class="label"><col>{columns}</colgroup>\n'
        f'<thead><tr><th scope="col">{escaped(table.heads[0])}</th><td></td>{heads}</tr></thead>\n'
        "<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>\n</article>"
    )


def _sentence(text: str) -> str:
    """Text in which typed options stay on one line, which a browser would break after their dashes."""
    return _TYPED.sub(r'<span class="option">\g<0></span>', escaped(text))


def escaped(text: str) -> str:
    """Text as HTML shows it: no markup, no letters that hide or move those beside them."""
    return html.escape(isolated(text))
