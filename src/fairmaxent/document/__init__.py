"""One document, several renderers, each of which alone knows how its format looks.

Whoever has facts makes blocks of them: six kinds, without layout; a block that would
need an option is two blocks. `text` and `html` write them. All text is data: a renderer
escapes whatever its format would take for markup. `words` writes numbers and cuts
names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fairmaxent.document.words import capital

Blocks = Iterator["Block"]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """One or several sentences."""

    text: str


@dataclass(frozen=True)
class Listing:
    """Sentences or parts of sentences, one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Heads and rows of texts; the first cell of a row names it.

    ``states`` has a word for each row ("good", "short", "bad" or none), about the
    column `state`. ``shares`` has two numbers for each row, before and after, which a
    page shows as bars; with ``ranges``, as two marks, with a line for the range that
    the number before has.
    """

    label: str  # what the table shows
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    state: int | None = None
    states: tuple[str, ...] = ()
    shares: tuple[tuple[float | None, ...], ...] = ()
    ranges: tuple[tuple[float | None, ...], ...] = ()
    about: str = ""  # what else there is to say about a table with bars

    def titled(self) -> "Table":
        """The table as reports have it: with capital heads, and without empty cells."""
        rows = tuple(tuple(cell.strip() or "–" for cell in row) for row in self.rows)
        return replace(
            self,
            heads=tuple(map(capital, self.heads)),
            rows=rows,
        )


@dataclass(frozen=True)
class Note:
    """What a reader should not miss: a sentence that stands out, and its details."""

    lead: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Code:
    """What can be typed, line by line."""

    text: str


Block = Heading | Paragraph | Listing | Table | Note | Code


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    key: str  # its name in a page
    title: str
    short: str  # its name in a table of contents
    blocks: tuple[Block, ...]

    def titled(self) -> "Section":
        """The section with its tables as reports have them."""
        return replace(
            self,
            blocks=tuple(
                one.titled() if isinstance(one, Table) else one for one in self.blocks
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Document:
    """A first page, which fits on one sheet, and an appendix."""

    kind: str  # e.g. "Fairness report"
    title: str
    filing: tuple[tuple[str, str], ...] = ()  # what it is filed under: names and values
    summary: str
    first_page: tuple[Section, ...]
    appendix: tuple[Section, ...] = ()
    footer: str = "Written by fairmaxent."
    # less than 1 if the first page needs smaller print to fit on a sheet
    print_size: float = 1.0
