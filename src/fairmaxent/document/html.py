"""Documents as HTML, and their pictures as SVG: no script, no network, every text
escaped, colours from the page.
"""

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
    Picture,
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
# ---------------------------------------------------------------- pictures
_LETTER = 6.2  # about the width of a letter of the small text, in pixels
_LONGEST = 26  # letters of a name
# narrower than this in pixels, the names in a large map could not be read; it is
# scrolled instead
_READABLE = 460
_WIDTH = 320.0
_HEIGHT = 190.0
_LEFT = 52.0
_RIGHT = 14.0
_TOP = 14.0
_BOTTOM = 40.0


def to_page(document: Document, *, paper: str | None = None) -> str:
    """Write a document as one file; without a size of paper, it is printed on whatever
    there is.
    """
    style = (
        files("fairmaxent.document").joinpath("page.css").read_text(encoding="utf-8")
    )
    if paper is not None:
        style += f"@page {{ size: {paper}; }}\n"
    title = escaped(f"{document.kind}: {document.title}")
    links = "".join(
        f'<li><a href="#{part.key}">{escaped(part.short)}</a></li>\n'
        for part in document.appendix
    )
    contents = f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>'
    pairs = [
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>"
        for name, value in document.filing
    ]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>",
            f'<body style="--print:{document.print_size:.2f}">',
            (
                "<header>\n<p"
                f' class="kind">{escaped(document.kind)}</p>\n<h1>{escaped(document.title)}</h1>'
            ),
            *(
                '<dl class="filing">',
                *pairs,
                "</dl>",
                f'<p class="lede">{_sentence(document.summary)}</p>',
            ),
            "</header>\n<main>",
            *(
                _section(section, f"first-{section.key}", "answer")
                for section in document.first_page
            ),
            *(
                ['<div class="appendix">\n<h2 id="appendix">Appendix</h2>', contents]
                if document.appendix
                else []
            ),
            *(_section(section, section.key) for section in document.appendix),
            *(["</div>"] if document.appendix else []),
            f"</main>\n<footer>\n<p>{escaped(document.footer)}</p>\n</footer>\n</body>\n</html>\n",
        ]
    )


def _section(section: Section, key: str, kind: str = "") -> str:
    """A section: on the first page a question, and beside it the answer."""
    if kind:
        level, kind, (start, end) = ("h2", f' class="{kind}"', ("<div>\n", "\n</div>"))
    else:
        level, kind, (start, end) = ("h3", "", ("", ""))
    return (
        f'<section{kind} id="{key}" aria-labelledby="{key}-title">\n<{level}'
        f' id="{key}-title">{escaped(section.title)}'
        f"</{level}>\n{start}{to_html(section.blocks)}{end}\n</section>"
    )


# ---------------------------------------------------------------- blocks


def to_html(blocks: Iterable[Block]) -> str:
    """Write blocks; pictures, and tables with bars, stand side by side if they follow
    each other.
    """
    parts: list[str] = []
    for kind, members in (
        (kind, list(group)) for kind, group in groupby(blocks, key=_side_by_side)
    ):
        shown = "\n".join(map(_block, members))
        if isinstance(members[0], Table) and members[0].shares:
            key = f"{_KEY}\n"
        else:
            key = ""
        parts.append(
            shown if kind is None else f'{key}<div class="{kind}">\n{shown}\n</div>'
        )
    return "\n".join(parts)


def _side_by_side(block: Block) -> str | None:
    """The class of the place that a block shares with those beside it; None: it stands
    alone.
    """
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
            if block.shares:
                return _bars(block)
            return _grid(block)
        case Note(lead, items):
            if items:
                listed = f"\n{_listing(items)}"
            else:
                listed = ""
            return (
                '<div class="note"'
                f' role="note">\n<p><strong>{_sentence(lead)}</strong></p>{listed}\n</div>'
            )
        case Picture():
            return _figure(block)
        case Code(text):
            return f"<pre><code>{escaped(text)}</code></pre>"


def _listing(items: Sequence[str]) -> str:
    lines = "\n".join(f"<li>{_sentence(item)}</li>" for item in items)
    return f"<ul>\n{lines}\n</ul>"


def _figure(picture: Picture) -> str:
    """A large map is scrolled sideways on a phone."""
    about = escaped(picture.caption.lower())
    caption = escaped(picture.caption)
    if picture.numbers is None:
        return (
            '<figure class="card'
            f' curve">\n<figcaption>{caption}</figcaption>\n{picture.svg}\n</figure>'
        )
    return (
        f"<figure>\n<figcaption>{caption}</figcaption>\n"
        '<p class="hint">Scroll sideways to see every column.</p>\n'
        '<div class="scroll" tabindex="0" role="region" aria-label="Relations,'
        f' {about}">{picture.svg}</div>\n</figure>'
    )


def _grid(table: Table) -> str:
    """A table whose rows become blocks on a phone; roles keep it a table for a screen
    reader even then.
    """
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
                table.heads[1:], numbers[1:], cells[1:], strict=True
            )
        )
        rows.append(
            '<tr role="row"><th role="rowheader"'
            f' scope="row">{escaped(row[0])}</th>{shown}</tr>'
        )
    return (
        f'<table class="grid" role="table" aria-label="{escaped(table.label)}">\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        '<tbody role="rowgroup">\n' + "\n".join(rows) + "\n</tbody>\n</table>"
    )


def _bars(table: Table) -> str:
    """A card with a bar before and a bar after in each row, or with marks on a
    scale.
    """
    longest = (
        max(
            (share or 0.0 for pair in (*table.shares, *table.ranges) for share in pair),
            default=0.0,
        )
        or 1.0
    )
    if table.ranges:
        longest = _round_above(longest)
    scale = "".join(
        f"<span>{_number(part * longest)}%</span>"
        for part in (0, 50, 100)
        if table.ranges
    )
    heads = "".join(
        f'<th scope="col" class="n">{escaped(head)}</th>' for head in table.heads[1:]
    )
    rows = []
    for cells, pair, ends in zip(
        table.rows, table.shares, table.ranges or [()] * len(table.rows), strict=True
    ):
        places = [
            None if share is None else f"{100 * share / longest:.1f}%"
            for share in (*pair, *ends)
        ]
        bars = (
            '<span class="bar" style="width:{}"></span><span class="bar new"'
            ' style="width:{}"></span>'
        )
        if ends:
            drawn = _marks(*places)
        else:
            drawn = bars.format(*places)
        numbers = "".join(f'<td class="n">{escaped(cell)}</td>' for cell in cells[1:])
        rows.append(
            f'<tr><th scope="row">{escaped(cells[0])}</th><td'
            f' aria-hidden="true">{drawn}</td>{numbers}</tr>'
        )
    label, (kind, head) = (
        escaped(table.label),
        (("card marked", "p") if table.ranges else ("card", "h4")),
    )
    return (
        f'<article class="{kind}">\n<{head}>{label}</{head}>\n<p'
        f' class="about">{escaped(table.about)}</p>\n<table'
        f' aria-label="{label}">\n<thead><tr><th'
        f' scope="col">{escaped(table.heads[0])}</th><td'
        f' aria-hidden="true">{scale}</td>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</article>"
    )


def _marks(
    before: str | None, after: str | None, low: str | None, high: str | None
) -> str:
    """On the lines of a scale: a circle before with its range, a diamond after, and the
    way between them.
    """
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
    """Text in which typed options stay on one line, which a browser would break after
    their dashes.
    """
    return _TYPED.sub(r'<span class="option">\g<0></span>', escaped(text))


def escaped(text: str) -> str:
    """Text as HTML shows it: no markup, no letters that hide or move those beside
    them.
    """
    return html.escape(isolated(text))


def heat_map(
    names: Sequence[str], matrix: Sequence[Sequence[float]], *, title: str
) -> str:
    """Draw a square of cells, as deep as they are strong by the page's colours; each
    says its value when pointed at.
    """
    cell = max(18, min(30, 460 // len(names)))
    shown = [
        name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names
    ]
    margin = 10 + _LETTER * max(map(len, shown))
    size = margin + cell * len(names) + 4
    parts = []
    for row, values in enumerate(matrix):
        y = margin + cell * row
        middle = y + cell * 0.5 + 4
        turned = f' transform="rotate(-90 {middle:.1f} {margin - 6:.1f})"'
        parts.append(_text(shown[row], margin - 6, middle, "end", full=names[row]))
        parts.append(
            _text(shown[row], middle, margin - 6, "start", turned, full=names[row])
        )
        for column, value in enumerate(values):
            x = margin + cell * column
            if row != column:
                parts.append(
                    f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{cell - 1:.1f}"'
                    f' height="{cell - 1:.1f}" '
                    f'class="cell" style="--strength:{0.04 + 0.96 * value:.2f}">'
                    f"<title>{escaped(f'{names[row]}, {names[column]}: {value:.3f}')}</title></rect>"
                )
            if row != column and cell >= 24:
                parts.append(
                    _text(f"{100 * value:.0f}", x + cell / 2, y + cell / 2 + 3.5)
                )
    return _svg(
        size, size, title, parts, f' style="min-width:{min(size, _READABLE):.0f}px"'
    )


def curve(
    points: Sequence[tuple[float, float]],
    this_fit: float | None,
    *,
    title: str,
    across: str,
    unit: str = "",
) -> str:
    """Draw values over a share from 0 to 1, with the point that the report is about
    marked.
    """
    top = _round_above(max(0.0, *(value for _, value in points)) or 1.0)

    def place(share: float, part: float) -> tuple[float, float]:
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - part * (
            _HEIGHT - _TOP - _BOTTOM
        )

    parts = []
    for part in (0.0, 0.5, 1.0):
        x, y = place(part, part)
        parts += [
            (
                f'<line x1="{_LEFT:.1f}" x2="{_WIDTH - _RIGHT:.1f}" y1="{y:.1f}"'
                f' y2="{y:.1f}" class="grid" />'
            ),
            _text(f"{_number(part * top)}{unit}", _LEFT - 6, y + 4, "end"),
            _text(f"{part:g}", x, _HEIGHT - _BOTTOM + 16),
        ]
    parts.append(_text(across, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6))
    placed = [place(share, value / top) for share, value in points]
    parts.append(
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"'
        ' class="line" />'
    )
    for (share, value), (x, y) in zip(points, placed, strict=True):
        look = 'r="6.0" class="own"' if share == this_fit else 'r="3.5" class="dot"'
        about = escaped(f"{across} {share:g}: {_number(value)}{unit}")
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}><title>{about}</title></circle>'
        )
    return _svg(_WIDTH, _HEIGHT, title, parts)


def _round_above(highest: float) -> float:
    power = 10.0 ** math.floor(math.log10(highest))
    return power * math.ceil(highest / power - 1e-9)


def _svg(
    width: float, height: float, title: str, parts: Sequence[str], more: str = ""
) -> str:
    box = (
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
        f' aria-label="{escaped(title)}" width="{width:.0f}"'
    )
    return f"<svg {box}{more}>{''.join(parts)}</svg>"


def _text(
    text: str,
    x: float,
    y: float,
    anchor: str = "middle",
    more: str = "",
    *,
    full: str | None = None,
) -> str:
    if full in (None, text):
        title = ""
    else:
        title = f"<title>{escaped(str(full))}</title>"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}"'
        f' text-anchor="{anchor}"{more}>{escaped(text)}{title}</text>'
    )


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
