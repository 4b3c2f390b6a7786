"""Footers: what offices write below a table. Sums and remarks are read as rows, and a note says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import cut

_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|all)[ -]?)?totals?|totaux|totale|totaal|sums?|somme|suma|summen?|(?:zwischen|gesamt)summe"
    r"|gesamt|insgesamt",
    re.IGNORECASE,
)
_FEW = 2  # columns, too few to tell a remark from a row


def without_empty_end(frame: Any, path: str) -> tuple[Any, tuple[str, ...]]:
    """Leave out rows without any value at the end, which spreadsheets write for cells that once were filled."""
    if frame.width == 1 or not len(frame) or any(value is not None for value in frame.row(-1)):
        return frame, ()
    polars = load_library("polars")
    filled = frame.select(~polars.all_horizontal(polars.all().is_null())).to_series().arg_true()
    rows = int(filled[-1]) + 1 if len(filled) else 0
    empty = len(frame) - rows
    what = "an empty row was" if empty == 1 else f"{empty:,} empty rows were"
    return frame.head(rows), (f"{what} left out at the end of {path}",)


def footer_remarks(frame: Any, path: str) -> Iterator[str]:
    """Say that the last row looks like a sum of the others, or like a remark below the table."""
    last = frame.row(-1) if len(frame) > 1 else ()
    filled = [value for value in last if value is not None]
    text = filled[0].strip(" :.") if filled and isinstance(filled[0], str) else ""
    if text and _TOTAL.fullmatch(text):
        yield f"the last row of {path} begins with {cut(text)!r} and was read as data; if it is a sum, remove it"
    elif len(filled) == 1 and len(last) > _FEW and text:
        yield f"the last row of {path} only has {cut(text)!r} and was read as data; if it is a remark, remove it"
