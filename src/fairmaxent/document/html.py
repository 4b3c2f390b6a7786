"""Documents as HTML: no script, no network, no markup."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby

from fairmaxent.document import (
    Block,
    Code,
    Document,
    Heading,
    Listing,
    Note,
    Paragraph,
    Section,
    Table,
)
from fairmaxent.document.words import numeric_columns
from fairmaxent.plain_text import isolated

_TYPED = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_KEY = (
    '<ul class="key"><li><span></span>Before</li><li><span'
    ' class="new"></span>After</li></ul>'
)


def to_page(document: Document) -> str:
    """Write a document as one file."""
    folder = files("fairmaxent.document")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    name = escaped(f"{document.kind}: {document.title}")
    kind = escaped(document.kind)
    title = escaped(document.title)
    filing = [
        f"<div><dt>{escaped(key)}</dt><dd>{escaped(value)}</dd></div>"
        for key, value in document.filing
    ]
    answers = [
        _section(section, f"first-{section.key}", is_answer=True)
        for section in document.first_page
    ]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{name}</title>\n<style>\n{style}</style>\n</head>",
            f'<body style="--print:{document.print_size:.2f}">',
            f'<header>\n<p class="kind">{kind}</p>\n<h1>{title}</h1>',
            '<dl class="filing">',
            *filing,
            "</dl>",
            f'<p class="lede">{_sentence(document.summary)}</p>',
            "</header>\n<main>",
            *answers,
            *_appendix(document.appendix),
            f"</main>\n<footer>\n<p>{escaped(document.footer)}</p>",
            "</footer>\n</body>\n</html>\n",
        ]
    )


def _appendix(sections: Sequence[Section]) -> list[str]:
    """The sections, and a list of them to begin with; nothing if there are none."""
    if not sections:
        return []
    links = "".join(
        f'<li><a href="#{section.key}">{escaped(section.short)}</a></li>\n'
        for section in sections
    )
    return [
        '<div class="appendix">\n<h2 id="appendix">Appendix</h2>',
        f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>',
        *(_section(section, section.key) for section in sections),
        "</div>",
    ]


def _section(section: Section, key: str, *, is_answer: bool = False) -> str:
    """A section: on the first page a question, and beside it the answer."""
    level = "h3"
    kind = ""
    content = to_html(section.blocks)
    if is_answer:
        level = "h2"
        kind = ' class="answer"'
        content = f"<div>\n{content}\n</div>"
    return (
        f'<section{kind} id="{key}" aria-labelledby="{key}-title">\n'
        f'<{level} id="{key}-title">{escaped(section.title)}</{level}>\n'
        f"{content}\n</section>"
    )


# ---------------------------------------------------------------- blocks


def to_html(blocks: Iterable[Block]) -> str:
    """Write blocks, with tables with bars side by side."""
    parts: list[str] = []
    for kind, group in groupby(blocks, key=_side_by_side):
        members = list(group)
        shown = "\n".join(map(_block, members))
        if kind is not None:
            shown = f'<div class="{kind}">\n{shown}\n</div>'
        if isinstance(members[0], Table) and members[0].shares:
            shown = f"{_KEY}\n{shown}"
        parts.append(shown)
    return "\n".join(parts)


def _side_by_side(block: Block) -> str | None:
    """The class of the place that a block shares with others; None: it stands alone."""
    if isinstance(block, Table) and block.shares:
        return {3: "cards", 4: "cards two"}.get(len(block.heads), "cards one")
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
            if block.shares:
                return _bars(block)
            return _grid(block)
        case Note(lead, items):
            shown = f"<p><strong>{_sentence(lead)}</strong></p>"
            if items:
                shown += f"\n{_listing(items)}"
            return f'<div class="note" role="note">\n{shown}\n</div>'
        case Code(text):
            return f"<pre><code>{escaped(text)}</code></pre>"


def _listing(items: Sequence[str]) -> str:
    lines = "\n".join(f"<li>{_sentence(item)}</li>" for item in items)
    return f"<ul>\n{lines}\n</ul>"


def _grid(table: Table) -> str:
    """A table whose rows become blocks on a phone, and by roles stay a table."""
    numbers = [
        ' class="n"' if numeric else ""
        for numeric in numeric_columns(table.rows, len(table.heads))
    ]
    heads = "".join(
        f'<th role="columnheader" scope="col"{number}>{escaped(head)}</th>'
        for head, number in zip(table.heads, numbers, strict=True)
    )
    rows = []
    for number, row in enumerate(table.rows):
        cells = [_sentence(cell) for cell in row]
        if table.state is not None and table.states[number]:
            cells[table.state] = (
                f'<span class="{table.states[number]}">{cells[table.state]}</span>'
            )
        shown = "".join(
            f'<td role="cell" data-label="{escaped(head)}"{right}>{cell}</td>'
            for head, right, cell in zip(
                table.heads[1:],
                numbers[1:],
                cells[1:],
                strict=True,
            )
        )
        name = f'<th role="rowheader" scope="row">{escaped(row[0])}</th>'
        rows.append(f'<tr role="row">{name}{shown}</tr>')
    return (
        f'<table class="grid" role="table" aria-label="{escaped(table.label)}">\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(rows) + "\n</tbody>\n</table>"
    )


def _bars(table: Table) -> str:
    """A card with two bars in each row, before and after, or with marks on a scale."""
    numbers = [share or 0.0 for pair in table.shares for share in pair]
    numbers += [share or 0.0 for ends in table.ranges for share in ends]
    longest = max(numbers, default=0.0) or 1.0
    kind = "card"
    head = "h4"
    scale = ""
    if table.ranges:
        kind = "card marked"
        head = "p"
        longest = _round_above(longest)
        scale = "".join(
            f"<span>{_number(part * longest)}%</span>" for part in (0, 50, 100)
        )
    heads = "".join(
        f'<th scope="col" class="n">{escaped(text)}</th>' for text in table.heads[1:]
    )
    rows = []
    for number, (name, *cells) in enumerate(table.rows):
        drawn = _drawn(table, number, longest)
        shown = "".join(f'<td class="n">{escaped(cell)}</td>' for cell in cells)
        rows.append(
            f'<tr><th scope="row">{escaped(name)}</th>'
            f'<td aria-hidden="true">{drawn}</td>{shown}</tr>'
        )
    label = escaped(table.label)
    return (
        f'<article class="{kind}">\n<{head}>{label}</{head}>\n'
        f'<p class="about">{escaped(table.about)}</p>\n'
        f'<table aria-label="{label}">\n'
        f'<thead><tr><th scope="col">{escaped(table.heads[0])}</th>'
        f'<td aria-hidden="true">{scale}</td>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</article>"
    )


def _drawn(table: Table, number: int, longest: float) -> str:
    """The bars or marks of a row."""
    shares = table.shares[number]
    if table.ranges:
        shares += table.ranges[number]
    places = [
        None if share is None else f"{100 * share / longest:.1f}%" for share in shares
    ]
    if table.ranges:
        return _marks(*places)
    before, after = places
    return (
        f'<span class="bar" style="width:{before}"></span>'
        f'<span class="bar new" style="width:{after}"></span>'
    )


def _marks(
    before: str | None,
    after: str | None,
    low: str | None,
    high: str | None,
) -> str:
    """On a scale: a circle before with its range, a diamond after, the way between."""
    parts = [
        f'<line x1="{x}%" x2="{x}%" y1="0" y2="100%" class="grid" />'
        for x in (0, 50, 100)
    ]
    ways = [
        way for way in ((before, after, "way"), (low, high, "range")) if None not in way
    ]
    parts += [
        f'<line x1="{x}" x2="{to}" y1="50%" y2="50%" class="{kind}" />'
        for x, to, kind in ways
    ]
    if before is not None:
        parts += [f'<circle cx="{before}" cy="50%" r="4.5" class="old" />']
    if after is not None:
        parts += [f'<rect x="{after}" y="50%" width="8.5" height="8.5" class="new" />']
    return f"<svg>{''.join(parts)}</svg>"


def _sentence(text: str) -> str:
    """Text in which typed options stay on one line, unbroken after their dashes."""
    return _TYPED.sub(r'<span class="option">\g<0></span>', escaped(text))


def escaped(text: str) -> str:
    """Text as HTML shows it: no markup, no letters that hide or move others."""
    return html.escape(isolated(text))


def _round_above(highest: float) -> float:
    power = 10.0 ** math.floor(math.log10(highest))
    return power * math.ceil(highest / power - 1e-9)


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
