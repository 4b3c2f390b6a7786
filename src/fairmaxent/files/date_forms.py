"""Dates as people write them: 31.12.2025, 12/31/2025, 31/12/2025 14:30."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from fairmaxent.data.frames import load_library
from fairmaxent.files.amounts import LOOKED_AT, first_cell
from fairmaxent.files.form import DateForm

DateOrder = Literal["dmy", "mdy"]

_WRITTEN = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})( \d{1,2}:\d\d(?::\d\d)?)?$"
_FIRST = re.compile(_WRITTEN)
_MONTHS = 12
WORDS = {"dmy": "day{0}month{0}year", "mdy": "month{0}day{0}year"}
"""The orders in words, with the mark between the parts."""


@dataclass(frozen=True, eq=False)
class WrittenDates:
    """A column of text that may be dates, and which orders of day and month all its cells allow."""

    column: Any
    mark: str
    time: str  # the pattern of the time of day; empty: none
    orders: tuple[DateOrder, ...]
    example: str

    def read(self, order: DateOrder) -> tuple[Any, DateForm] | None:
        """Read the dates in this order; None if there is no such day as 31 February."""
        polars = load_library("polars")
        day, month = ("%d", "%m") if _is_padded(self.column, self.mark) else ("%-d", "%-m")
        parts = (day, month) if order == "dmy" else (month, day)
        pattern = self.mark.join((*parts, "%Y")) + self.time
        reading = pattern.replace("-d", "d").replace("-m", "m")
        text = self.column
        if self.time:
            parsed = text.str.to_datetime(reading, strict=False, time_unit="us")
        else:
            parsed = text.str.to_date(reading, strict=False)
        if parsed.null_count() != text.null_count():
            return None
        return parsed.cast(polars.Datetime("us")) if self.time else parsed, DateForm(pattern)


def written_dates(column: Any) -> WrittenDates | None:
    """Return what a column of text can be as dates; None if a cell is none.

    With points the day comes first; with slashes or hyphens the order must show in a day after the 12th.
    """
    polars = load_library("polars")
    first = _FIRST.fullmatch(first_cell(column) or "")
    if first is None or first[2] != first[4]:
        return None
    cells = column.drop_nulls()
    time = "" if first[6] is None else " %H:%M" if first[6].count(":") == 1 else " %H:%M:%S"
    mark = re.escape(first[2])
    clock = {"": "", " %H:%M": r" \d{1,2}:\d\d", " %H:%M:%S": r" \d{1,2}:\d\d:\d\d"}[time]
    if not cells.str.contains(rf"^\d{{1,2}}{mark}\d{{1,2}}{mark}\d{{4}}{clock}$").all():
        return None
    largest = [int(cells.str.extract(_WRITTEN, group).cast(polars.Int64).max()) for group in (1, 3)]
    orders: list[DateOrder] = []
    if largest[1] <= _MONTHS:
        orders.append("dmy")
    if largest[0] <= _MONTHS and first[2] != ".":
        orders.append("mdy")
    return WrittenDates(column, first[2], time, tuple(orders), str(cells[0])) if orders else None


def _is_padded(column: Any, mark: str) -> bool:
    """Whether days and months have two digits."""
    dot = re.escape(mark)
    return bool(column.drop_nulls().head(LOOKED_AT).str.contains(rf"^\d\d{dot}\d\d{dot}").all())


def moment_form(cells: Any) -> DateForm:
    """How times such as 2025-12-31 14:30:00 are written."""
    spaced = bool(cells.head(1).str.contains(" ", literal=True).all())
    return DateForm("%Y-%m-%d %H:%M:%S%.f" if spaced else "%Y-%m-%dT%H:%M:%S%.f")
