"""A draft of a declaration, made from a learned domain; somebody must read it before it can be called public."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.declaration import Declaration

_DIGITS = 2  # to which the outermost edges are rounded, away from the values
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
_MANY_YEARS = 20  # from which on the edges of dates are rounded to years, and otherwise to months


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: the values of columns with few of them, the edges of the bins of the others."""
    binned = [attribute for attribute in attributes if attribute.edges is not None]
    listed = [attribute for attribute in attributes if attribute.edges is None]
    declaration = Declaration.of(
        {attribute.name: _values(attribute) for attribute in listed},
        {attribute.name: _edges(attribute) for attribute in binned},
        [attribute.name for attribute in attributes if attribute.missing is not None],
    )
    return replace(declaration, draft=True)


def _values(attribute: Attribute) -> list[Any]:
    values = attribute.values.to_list()
    known = values if attribute.missing is None else values[: int(attribute.level_starts[attribute.missing])]
    return [value.item() if isinstance(value, np.generic) else value for value in known]


def _edges(attribute: Attribute) -> list[Any]:
    """The limits of the bins; whole numbers if all values are, and the outermost rounded away from the values."""
    values = _values(attribute)
    numbers = np.array([frames.number_of(value) for value in values], dtype=np.float64)
    if attribute.kind == "date":
        return _date_edges(values, numbers, attribute)
    inner = [] if attribute.edges is None else attribute.edges.tolist()
    whole = bool((numbers == np.round(numbers)).all())
    if whole:
        inner = [math.ceil(edge) for edge in inner]
    low, high = _rounded(numbers.min(), math.floor), _rounded(numbers.max(), math.ceil)
    inside = sorted({edge for edge in inner if low < edge < high})
    edges = [low, *inside, high] if low < high else [low, low + 1]
    return edges if whole else [float(edge) for edge in edges]  # of whole edges, only whole numbers are drawn


def _date_edges(values: list[Any], numbers: np.ndarray[Any, Any], attribute: Attribute) -> list[Any]:
    """The first date, the one that begins each bin, and the last, rounded to months, or to years if there are many."""
    cuts = np.searchsorted(np.asarray(attribute.edges), numbers, side="right")
    begins = [values[int(np.flatnonzero(cuts == cut)[np.argmin(numbers[cuts == cut])])] for cut in np.unique(cuts)]
    last = values[int(np.argmax(numbers))]
    step = 12 if last.year - begins[0].year >= _MANY_YEARS else 1
    months = [(moment.year * 12 + moment.month - 1) // step * step for moment in (*begins, last)]
    like = last.date() if (numbers % _DAY == 0).all() and isinstance(last, datetime.datetime) else last
    return [_month(month, like) for month in sorted({*months, months[-1] + step})]


def _month(number: int, like: datetime.date) -> datetime.date:
    """The beginning of a month, counted from the year 0, as a date or as a time like another."""
    year, month = min(number // 12, datetime.MAXYEAR), number % 12 + 1
    if isinstance(like, datetime.datetime):
        return datetime.datetime(year, month, 1, tzinfo=like.tzinfo)
    return datetime.date(year, month, 1)


def _rounded(number: float, towards: Any) -> float:
    """Round to a few digits, away from the values."""
    if number == 0:
        return 0
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - _DIGITS + 1)
    result = towards(number / unit) * unit
    return int(result) if result == int(result) else float(f"{result:.12g}")
