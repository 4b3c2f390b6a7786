"""What stands around a table: titles, the names of its columns, sums and remarks.

Titles above a header are recognised only if nothing else can be meant. A last row is
left out only if it is called a total and holds sums; other sums, and remarks, are read
as rows, with a note.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fairmaxent.data import limits
from fairmaxent.data.frames import load_library
from fairmaxent.data.identifiers import is_total
from fairmaxent.errors import ColumnError, Option
from fairmaxent.files.reading import FileReading, Remark

Cells = Sequence[str]
_MOST_TITLES = 20  # records above a header that are looked at
# a number, an amount, a date or a time
_VALUE = re.compile(r"[-+(]?[^\w\s]{0,2}\s?\d[\d.,:/'’\s%-]*\)?[^\w\s]?")
_PAIR = 2  # columns, too few to tell a remark from a row
_ENOUGH = 3  # rows that can show that a line is one of them
# of the rows are as wide as the header; for the others there is an error, which names
# the line
_MOSTLY = 0.7


def title_count(records: Sequence[Cells]) -> int:
    """Return how many of the first records stand above the header: 0 unless that is
    unambiguous.

    A title, or a band such as "Person" over several columns, has at most half of the
    table's cells. The header comes directly after it; each of its cells is filled, none
    is a number or a date, no two are equal, and none occurs again below. Most records
    after it, and the first of them, have as many cells.

    >>> table = [["name", "sex", "pay"], ["Ann", "F", "10"], ["Bob", "M", "20"]]
    >>> title_count([["Staff 2025"], *table])
    1
    >>> title_count(table)
    0
    """
    half = (max(map(len, records), default=0) + 1) // 2
    for count in range(min(_MOST_TITLES, len(records) - 2) + 1):
        if count and _is_header(records[count], records[:count], records[count + 1 :]):
            return count
        if sum(bool(cell.strip()) for cell in records[count]) > half:
            return 0
    return 0


def _is_header(record: Cells, above: Sequence[Cells], below: Sequence[Cells]) -> bool:
    """Whether it holds names, is as wide as the records below, and does not look like
    one of them.
    """
    names = [cell.strip() for cell in record]
    width = len(record)
    if (
        width < _PAIR
        or not all(names)
        or len(set(names)) < width
        or any(map(_VALUE.fullmatch, names))
    ):
        return False
    as_wide = [len(other) == width for other in below]
    if not all(as_wide[:_ENOUGH]) or sum(as_wide) < _MOSTLY * len(below):
        return False
    if width == _PAIR and any(len(title) == width for title in above):
        # "name," can be a header of two columns, one without a name, unless a column of
        # numbers begins below.
        columns = zip(*(other for other in below if len(other) == width), strict=True)
        values = (
            sum(bool(_VALUE.fullmatch(cell.strip())) for cell in cells)
            for cells in columns
        )
        return any(count > _MOSTLY * len(below) for count in values)
    if len(below) < _ENOUGH:
        return all(len(title) < width for title in above)
    return not any(
        name == cell.strip()
        for other in below
        for name, cell in zip(names, other, strict=False)
    )


def column_names(
    header: Cells,
    reading: FileReading,
    path: str,
    remarks: list[Remark],
    below_titles: str,
) -> list[str]:
    """Names as given or as in the header, without spaces around them; a column without
    a name is numbered.

    ``below_titles`` is where the header stands, if what is above it was taken for a
    title.
    """
    if reading.columns is None:
        given = header
    else:
        given = reading.columns
    if len(given) != len(header):
        sizes = f"{len(header)} columns and {len(given)} names were given"
        raise ColumnError(f"{path} has {sizes}; name every column")
    limits.check_file_columns(len(given), path)
    names = [name.strip() or f"column_{number}" for number, name in enumerate(given, 1)]
    unnamed = [
        name
        for name, original in zip(names, given, strict=True)
        if not original.strip()
    ]
    if unnamed:
        what = (
            f"{path} has columns without a name, which are called {', '.join(unnamed)}"
            " here"
        )
        below: Remark = (
            f"{what}; if the names stand further down, set ",
            Option("skip_lines", 1),
        )
        remarks.append(what if len(unnamed) == 1 else below)
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            twice = (
                f"{path}: columns {first[name]} and {number} are both called {name!r};"
                " rename one. "
            )
            name_them = (
                "If the first line holds data instead of names, name the columns with ",
                Option("columns"),
            )
            skip = ("; if the names stand further down, set ", Option("skip_lines", 1))
            raise ColumnError(twice, *name_them, *skip)
    if below_titles:
        some = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        what = (
            f"the header of {path} ({some}) is in {below_titles}, and what stands above"
            " it is taken for a title; if "
        )
        remarks.append((f"{what}it is not, set ", Option("skip_lines", 0)))
    return names


def remarks_around(frame: Any, path: str, reading: FileReading) -> Iterator[Remark]:
    """Say that the first row may be data and not names, and that the last may be a sum
    or a remark below the table.
    """
    texts = [
        column
        for column in frame.iter_columns()
        if column.dtype == load_library("polars").String
    ]
    if (
        reading.columns is None
        and sum((column == column.name).any() for column in texts) > 1
    ):
        what = (
            f"the first row of {path} looks like data, but was read as names of"
            " columns; if so, name the columns in "
        )
        yield (what, Option("columns"))
    if reading.skip_last is None:
        last = frame.tail(min(_ENOUGH, len(frame) - 1)).rows()[::-1]
    else:
        last = []
    count = next(
        (count for count, row in enumerate(last) if not _is_remark(row)), len(last)
    )
    if count:
        what = (
            f"the end of {path} looks like a sum or a remark, and was read as data; if"
            " it is one, leave out "
        )
        yield (
            f"{what}{'the last row' if count == 1 else f'the last {count} rows'} with ",
            Option("skip_last", count),
        )


def _is_remark(row: Sequence[Any]) -> bool:
    filled = [value for value in row if value is not None]
    is_alone = len(filled) == 1 and len(row) > _PAIR
    return (
        bool(filled)
        and isinstance(filled[0], str)
        and (is_alone or is_total(filled[0]))
    )


def ends_with_sums(frame: Any) -> bool:
    """Whether the last row is called a total, and holds the sum of a column of numbers
    or is half empty.
    """
    numbers = [
        column
        for column in frame.iter_columns()
        if column.dtype.is_numeric() and column[-1]
    ]
    sums = any(
        abs(column[-1] - column[:-1].sum()) <= 1e-9 * abs(column[-1])
        for column in numbers
    )
    filled = [str(value) for value in frame.row(-1) if value is not None]
    return (
        bool(filled)
        and is_total(filled[0])
        and (sums or 2 * len(filled) <= frame.width > _PAIR)
    )
