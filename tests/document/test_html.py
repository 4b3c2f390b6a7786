"""A page holds any text as text, whatever block it stands in."""

import pytest

from fairmaxent.document import (
    Code,
    Document,
    Heading,
    Listing,
    Note,
    Paragraph,
    Section,
    Table,
)
from fairmaxent.document.html import to_page

HOSTILE = "<script>alert('é & \"b\"')</script>"
BLOCKS = [
    Heading(HOSTILE),
    Paragraph(HOSTILE),
    Listing((HOSTILE,)),
    Table(HOSTILE, (HOSTILE, "rate"), ((HOSTILE, "1"),)),
    Note(HOSTILE, (HOSTILE,)),
    Code(HOSTILE),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_no_block_holds_markup_of_others(block):
    section = Section("key", HOSTILE, HOSTILE, (block,))
    page = to_page(
        Document(
            kind=HOSTILE,
            title=HOSTILE,
            filing=((HOSTILE, HOSTILE),),
            summary=HOSTILE,
            first_page=(section,),
            appendix=(section,),
            footer=HOSTILE,
        )
    )
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 10
