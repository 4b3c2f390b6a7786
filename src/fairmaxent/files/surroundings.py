"""What stands around a table: titles, the names of its columns, sums and remarks.

Titles above a header are recognised only if nothing else can be meant. A last row is
left out only if it is called a total and holds sums; other sums, and remarks, are read
as rows, with a note.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fairmaxent.data import limits
from fairmaxent.data.frames import load_library
from fairmaxent.data.identifiers import is_total
from fairmaxent.data.table import NameList
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.files.reading import FileReading, Remark

Cells = Sequence[str]
_MOST_TITLES = 20  # records above a header that are looked at
# a number, an amount, a date or a time
_VALUE = re.compile(r"[-+(]?[^\w\s]{0,2}\s?\d[\d.,:/'’\s%-]*\)?[^\w\s]?")
_PAIR = 2  # columns, too few to tell a remark from a row
_MOST_REMARKS = 50  # rows below a table that are looked at
_MOST_LABELS = 5_000  # among which a total is looked for
_EXACT = 1e-9  # of a sum
_ENOUGH = 3  # rows that can show that a line is one of them
# of the rows are as wide as the header; for the others there is an error, which names
# the line
_MOSTLY = 0.7


def title_count(records: Sequence[Cells]) -> int:
    """Return how many of the first records stand above the header, if that is clear.

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
        if count and is_header(records[count], records[:count], records[count + 1 :]):
            return count
        if sum(bool(cell.strip()) for cell in records[count]) > half:
            return 0
    return 0


def names_below(records: Sequence[Cells]) -> int:
    """Return how many records stand above one that can be the header, 0 if none can.

    Unlike a title, what stands above it may have as many cells.
    """
    for count in range(1, min(_MOST_TITLES, len(records) - 2) + 1):
        if is_header(records[count], records[:count], records[count + 1 :]):
            return count
    return 0


def is_header(record: Cells, above: Sequence[Cells], below: Sequence[Cells]) -> bool:
    """Whether it holds names, is as wide as the records below, and is none of them."""
    names = [cell.strip() for cell in record]
    width = len(record)
    if width < _PAIR or not all(names) or len(set(names)) < width:
        return False
    if any(map(_VALUE.fullmatch, names)):
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
    further_down: Callable[[], Option | None] = lambda: None,
) -> list[str]:
    """Names as given or as in the header; a column without a name is numbered.

    ``below_titles`` is where the header stands, if what is above it was taken for a
    title. ``further_down`` looks for a header below this one, and how to say it.
    """
    given = header
    if reading.columns is not None:
        given = reading.columns
    if len(given) != len(header):
        sizes = f"{len(header)} columns and {len(given)} names were given"
        raise ColumnError(f"{path} has {sizes}; name every column")

    limits.check_file_columns(len(given), path)
    names = [name.strip() for name in given]
    unnamed = []
    for place, name in enumerate(names):
        if not name:
            names[place] = f"column_{place + 1}"
            unnamed.append(names[place])

    if unnamed:
        what = (
            f"{path} has columns without a name, which are called {', '.join(unnamed)}"
            " here"
        )
        remarks.append((what, *_further_down_advice(further_down())))

    _refuse_repeated(names, path, further_down)
    if below_titles:
        some = ", ".join(names[:3])
        if len(names) > 3:
            some += ", …"
        remarks.append(
            (
                f"the header of {path} ({some}) is in {below_titles}, and what stands"
                " above it is taken for a title; if it is not, set ",
                Option("skip_lines", 0),
            )
        )
    return names


def _refuse_repeated(
    names: NameList, path: str, further_down: Callable[[], Option | None]
) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            raise ColumnError(
                f"{path}: columns {first[name]} and {number} are both called {name!r};"
                " rename one. If the first line holds data instead of names, name the"
                " columns with ",
                Option("columns"),
                *_further_down_advice(further_down()),
            )


def _further_down_advice(below: Option | None) -> tuple[object, ...]:
    """What to set if the names stand further down, if they can."""
    if below is None:
        return ()
    return ("; if the names stand further down, set ", below)


def nothing_left(path: str) -> InputError:
    """The error for a table of which all rows are skipped."""
    return InputError(
        f"{path} has no table beside the rows that are skipped; set ",
        Option("skip_lines"),
        " or ",
        Option("skip_last"),
        " to fewer",
    )


def remarks_around(frame: Any, path: str, reading: FileReading) -> Iterator[Remark]:
    """Say that the first row may be data, not names, or the last a sum or a remark."""
    polars = load_library("polars")
    texts = [column for column in frame.iter_columns() if column.dtype == polars.String]
    repeated = sum((column == column.name).any() for column in texts)
    if reading.columns is None and repeated > 1:
        yield (
            f"the first row of {path} looks like data, but was read as names of"
            " columns; if so, name the columns in ",
            Option("columns"),
        )

    count = 0
    if reading.skip_last is None:
        count = _remark_count(frame)
    if count:
        rows = "the last row" if count == 1 else f"the last {count} rows"
        yield (
            f"the end of {path} looks like a sum or a remark, and was read as data; if"
            f" it is one, leave out {rows} with ",
            Option("skip_last", count),
        )


def _remark_count(frame: Any) -> int:
    """How many of the last rows are sums or remarks."""
    last = frame.tail(min(_MOST_REMARKS, len(frame) - 1)).rows()[::-1]
    return len([*itertools.takewhile(_is_remark, last)])


def _is_remark(row: Sequence[Any]) -> bool:
    filled = [value for value in row if value is not None]
    if not filled or not isinstance(filled[0], str):
        return False
    is_alone = len(filled) == 1 and len(row) > _PAIR
    return is_alone or is_total(filled[0])


class Sums(NamedTuple):
    """Rows that are sums of others: where they stand between them, and how many last.

    Sums below which a remark stands are counted as remarks, too.
    """

    inside: list[int]
    at_end: int


def find_sums(frame: Any) -> Sums:
    """Find the rows that are called a total, and are half empty or hold a sum.

    That is one of the rows since the last total, or of all rows above.
    """
    numbers = [column for column in frame.iter_columns() if column.dtype.is_numeric()]
    whole = [0.0] * len(numbers)
    found = []
    start = 0
    for row in _called_totals(frame):
        since = [column[start:row].sum() for column in numbers]
        whole = [before + more for before, more in zip(whole, since, strict=True)]
        amounts = [column[row] for column in numbers]
        filled = sum(value is not None for value in frame.row(row))
        is_half_empty = 2 * filled <= frame.width > _PAIR
        if is_half_empty or _are_close(amounts, since) or _are_close(amounts, whole):
            found.append(row)
        start = row + 1
    count = _remark_count(frame)
    inside = [row for row in found if row < len(frame) - count]
    at_end = len(found) - len(inside)
    if at_end < count:
        at_end = 0
    return Sums(inside, at_end)


def _called_totals(frame: Any) -> list[int]:
    """The rows whose first text is a word for a total; of very many, the last."""
    polars = load_library("polars")
    texts = [column for column in frame.iter_columns() if column.dtype == polars.String]
    if not texts:
        return []
    labels = frame.select(polars.coalesce(*(column.name for column in texts)))
    label = labels.to_series()
    known = label.unique()
    if len(known) > _MOST_LABELS:
        known = label.tail(_MOST_REMARKS).unique()
    totals = [text for text in known if text is not None and is_total(text)]
    return list(label.is_in(totals).arg_true())


def _are_close(amounts: Sequence[float | None], sums: Sequence[float]) -> bool:
    """Whether an amount that is not zero is its sum."""
    return any(
        abs(amount - total) <= _EXACT * abs(amount)
        for amount, total in zip(amounts, sums, strict=True)
        if amount
    )
