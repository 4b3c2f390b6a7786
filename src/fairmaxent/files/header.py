"""What offices write around a table: titles above its header, and sums and remarks below it.

Titles are recognised only if nothing else can be meant. Sums and remarks are read as rows, with a note, or left out if
asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import check_file_columns
from fairmaxent.errors import ColumnError, Option, cut
from fairmaxent.files.reading import Reading, Remark

_MOST_TITLES = 20  # records above a header that are looked at
_VALUE = re.compile(r"[-+(]?[^\w\s]{0,2}\s?\d[\d.,:/'’\s%-]*\)?[^\w\s]?")  # a number, an amount, a date or a time
_PAIR = 2  # columns, too few to tell a remark from a row
_ENOUGH = 3  # rows that can show that a line is one of them
_MOSTLY = 0.7  # of the rows are as wide as the header; for the others there is an error, which names the line
_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|all)[ -]?)?totals?|totaux|totale|totaal|sums?|somme|suma|summen?|(?:zwischen|gesamt)summe"
    r"|gesamt|insgesamt",
    re.IGNORECASE,
)

Cells = Sequence[str]


def title_count(records: Sequence[Cells]) -> int:
    """Return how many of the first records stand above the header: 0 unless that is unambiguous.

    A title has at most half of the table's cells, all at the left. The header comes directly after the titles; each
    of its cells is filled, none is a number or a date, no two are equal, and none occurs again below. Most
    records after it, and the first of them, have as many cells.

    >>> title_count([["Staff 2025"], ["name", "sex", "pay"], ["Ann", "F", "10"], ["Bob", "M", "20"]])
    1
    >>> title_count([["name", "sex", "pay"], ["Ann", "F", "10"], ["Bob", "M", "20"]])
    0
    """
    half = (max(map(len, records), default=0) + 1) // 2
    for count in range(min(_MOST_TITLES, len(records) - 2) + 1):
        if count and _is_header(records[count], records[:count], records[count + 1 :]):
            return count
        filled = [bool(cell.strip()) for cell in records[count]]
        if sum(filled) > half or not all(filled[: sum(filled)]):
            return 0
    return 0


def _is_header(record: Cells, above: Sequence[Cells], below: Sequence[Cells]) -> bool:
    """Whether it holds names, is as wide as the records below, and does not look like one of them."""
    names, width = [cell.strip() for cell in record], len(record)
    if width < _PAIR or not all(names) or len(set(names)) < width or any(map(_VALUE.fullmatch, names)):
        return False
    as_wide = [len(other) == width for other in below]
    if not all(as_wide[:_ENOUGH]) or sum(as_wide) < _MOSTLY * len(below):
        return False
    if width == _PAIR and any(len(title) == width for title in above):
        # "name," can be a header of two columns, one without a name, unless a column of numbers begins below.
        columns = zip(*(other for other in below if len(other) == width), strict=True)
        values = (sum(bool(_VALUE.fullmatch(cell.strip())) for cell in cells) for cells in columns)
        return any(count > _MOSTLY * len(below) for count in values)
    if len(below) < _ENOUGH:
        return all(len(title) < width for title in above)
    return not any(name == cell.strip() for other in below for name, cell in zip(names, other, strict=False))


def title_remark(path: str, where: str, names: Cells) -> Remark:
    """Say that what stands above the header was taken for a title."""
    return (
        f"the header of {path} ({some_names(names)}) is in {where}, and what stands above it is taken for a title; if "
        "it is not, set ",
        Option("skip_lines", 0),
    )


def some_names(names: Cells) -> str:
    """The first names of a header."""
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def column_names(given: Cells, path: str, remarks: list[Remark]) -> list[str]:
    """Names without spaces around them; a column without a name is numbered."""
    check_file_columns(len(given), path)
    names = [name.strip() or f"column_{number}" for number, name in enumerate(given, 1)]
    unnamed = [name for name, original in zip(names, given, strict=True) if not original.strip()]
    if unnamed:
        remarks.append(f"{path} has columns without a name, which are called {', '.join(unnamed)} here")
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            raise ColumnError(
                f"{path}: columns {first[name]} and {number} are both called {name!r}; rename one. "
                "If the first line holds data instead of names, name the columns with ",
                Option("columns"),
            )
    return names


def remarks_around(frame: Any, path: str, reading: Reading) -> Iterator[Remark]:
    """Say that the first row may be data and not names, and that the last may be a sum or a remark below the table."""
    texts = [column for column in frame.iter_columns() if column.dtype == load_library("polars").String]
    if reading.columns is None and sum((column == column.name).any() for column in texts) > 1:
        what = f"the first row of {path} looks like data, but was read as names of columns; if so, name the columns in "
        yield (what, Option("columns"))
    last = frame.row(-1) if len(frame) > 1 and reading.skip_last is None else ()
    filled = [value for value in last if value is not None]
    text = filled[0].strip(" :.") if filled and isinstance(filled[0], str) else ""
    what = ""
    if text and _TOTAL.fullmatch(text):
        what = f"begins with {cut(text)!r} and was read as data; if it is a sum"
    elif text and len(filled) == 1 and len(last) > _PAIR:
        what = "only has a text and was read as data; if it is a remark"
    if what:
        yield (f"the last row of {path} {what}, leave it out with ", Option("skip_last", 1))
