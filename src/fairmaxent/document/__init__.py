"""One document, several renderers: blocks say what there is to say, and each renderer alone knows how its format looks.

Whoever has facts makes blocks of them (`blocks`); `text`, `html` and `markdown` write them. All text is data: a
renderer escapes whatever its format would take for markup. `words` writes numbers and cuts names.
"""

from fairmaxent.document.blocks import (
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

__all__ = ["Block", "Code", "Document", "Heading", "Listing", "Note", "Paragraph", "Picture", "Section", "Table"]
