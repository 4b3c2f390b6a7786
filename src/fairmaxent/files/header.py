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
from fairmaxent.files.reading import Remark

MOST_TITLES = 20
"""How many records above a header are looked at."""

_VALUE = re.compile(r"[-+(]?[^\w\s]{0,2}\s?\d[\d.,:/'’\s%-]*\)?[^\w\s]?")  # a number, an amount, a date or a time
_PAIR = 2  # columns
_ENOUGH = 3  # rows that can show that a line is one of them
_MOSTLY = 0.7  # of the rows are as wide as the header; for the others there is an error, which names the line
_TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|all)[ -]?)?totals?|totaux|totale|totaal|sums?|somme|suma|summen?|(?:zwischen|gesamt)summe"
    r"|gesamt|insgesamt",
    re.IGNORECASE,
)
_NO_VALUE = ' \t\r\n;,|"'  # characters of a line without any value
_FEW = 2  # columns, too few to tell a remark from a row

Cells = Sequence[str]
# ---------------------------------------------------------------- above


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
    for count in range(min(MOST_TITLES, len(records) - 2) + 1):
        width = len(records[count])
        if count and _is_header(records[count]) and _fits(records, count, width):
            return count
        if not _may_be_title(records[count], records):
            return 0
    return 0


def _may_be_title(record: Cells, records: Sequence[Cells]) -> bool:
    """Whether it has at most half of the cells of a table (two of three), and only at the left."""
    filled = [bool(cell.strip()) for cell in record]
    count = sum(filled)
    return count <= (max(map(len, records)) + 1) // 2 and all(filled[:count])


def _is_header(record: Cells) -> bool:
    names = [cell.strip() for cell in record]
    return len(names) > 1 and all(names) and len(set(names)) == len(names) and not any(map(_VALUE.fullmatch, names))


def _fits(records: Sequence[Cells], count: int, width: int) -> bool:
    """Whether the record after the titles is as wide as all records below, and does not look like one of them."""
    below = records[count + 1 :]
    as_wide = [len(record) == width for record in below]
    if not all(as_wide[:_ENOUGH]) or sum(as_wide) < _MOSTLY * len(below):
        return False
    if width == _PAIR and any(len(record) == width for record in records[:count]):
        # "name," can be a header of two columns, one without a name, unless a column of numbers begins below.
        columns = zip(*(record for record in below if len(record) == width), strict=True)
        return any(
            sum(bool(_VALUE.fullmatch(cell.strip())) for cell in cells) > _MOSTLY * len(below) for cells in columns
        )
    if len(below) < _ENOUGH:
        return all(len(record) < width for record in records[:count])
    return not any(
        name.strip() == cell.strip() for record in below for name, cell in zip(records[count], record, strict=False)
    )


def title_remark(path: str, where: str, names: Cells) -> Remark:
    """Say that what stands above the header was taken for a title."""
    return (
        f"the header of {path} ({some_names(names)}) is in {where}, and what stands above it is taken for a title; if "
        "it is not, set ",
        Option("skip_lines", 0),
    )


def row_remark(frame: Any, path: str) -> Iterator[Remark]:
    """Say that the first line may be a row, and not names of columns: several are called like one of their values."""
    texts = (column for column in frame.iter_columns() if column.dtype == load_library("polars").String)
    if sum((column == column.name).any() for column in texts) > 1:
        what = f"the first row of {path} looks like data, but was read as names of columns; if so, name the columns in "
        yield (what, Option("columns"))


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


# ---------------------------------------------------------------- below


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
