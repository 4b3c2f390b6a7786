"""Footers: what offices write below a table. Sums and remarks are read as rows, with a note, or left out if asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError, Option, cut
from fairmaxent.files.cell_kinds import Remark

_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|all)[ -]?)?totals?|totaux|totale|totaal|sums?|somme|suma|summen?|(?:zwischen|gesamt)summe"
    r"|gesamt|insgesamt",
    re.IGNORECASE,
)
_NO_VALUE = ' \t\r\n;,|"'  # characters of a line without any value
_FEW = 2  # columns, too few to tell a remark from a row


def check_skip_last(skip_last: int | None, path: str) -> None:
    """Refuse a number of rows that cannot be left out."""
    if skip_last is not None and skip_last < 0:
        raise InputError(Option("skip_last"), f" is {skip_last}; give the number of rows below the table in {path}")


def without_last_lines(text: str, count: int | None) -> str:
    """Leave out the last lines of a CSV; those without a value do not count."""
    end, left = len(text), count or 0
    while left and end:
        start = text.rfind("\n", 0, end - 1) + 1
        left -= bool(text[start:end].strip(_NO_VALUE))
        end = start
    return text[:end]


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


def footer_remarks(frame: Any, path: str) -> Iterator[Remark]:
    """Say that the last row looks like a sum of the others, or like a remark below the table."""
    last = frame.row(-1) if len(frame) > 1 else ()
    filled = [value for value in last if value is not None]
    text = filled[0].strip(" :.") if filled and isinstance(filled[0], str) else ""
    if text and _TOTAL.fullmatch(text):
        what = (
            f"the last row of {path} begins with {cut(text)!r} and was read as data; if it is a sum, leave it out with "
        )
        yield (what, Option("skip_last", 1))
    elif len(filled) == 1 and len(last) > _FEW and text:
        what = f"the last row of {path} only has a text and was read as data; if it is a remark, leave it out with "
        yield (what, Option("skip_last", 1))
