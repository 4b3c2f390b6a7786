"""The draft of a declaration, from what was learned of a table.

It holds values of the table, rounded where there are many; people read it, and change
what is not public knowledge.
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.frames import numbers_of, plain_value
from fairmaxent.data.table import Reals

_HANDFUL = 8  # bins of a column
_STEPS = (5, 2.5, 2, 1)  # times a power of ten, between edges
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
# from which on the edges of dates are rounded to years, and otherwise to months
_MANY_YEARS = 20


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: few values as they are, many by round edges."""
    levels = {}
    edges = {}
    missing = []
    for attribute in attributes:
        if attribute.edges is None:
            levels[attribute.name] = _values(attribute)
        else:
            edges[attribute.name] = _edges(attribute)
        if attribute.missing is not None:
            missing.append(attribute.name)
    return replace(Declaration.of(levels, edges, missing), draft=True)


def _values(attribute: Attribute) -> list[Any]:
    return [*map(plain_value, attribute.values.to_list()[: attribute.present])]


def _edges(attribute: Attribute) -> list[Any]:
    """A few round edges near the limits of the bins, which are people's own values.

    The outermost are beyond all values.
    """
    values = _values(attribute)
    numbers = numbers_of(values)
    limits = np.asarray(attribute.edges)
    # zero is a bin of its own, which many have, so that it is nobody's
    zero_is_alone = numbers.min() == 0 < limits[0] <= 1
    places = np.linspace(-1, len(limits), _HANDFUL + 1)[1:-1].round()
    places = places.clip(0, len(limits) - 1)
    limits = limits[np.unique(places.astype(int))]
    if attribute.kind == "date":
        return _date_edges(values, numbers, limits)
    whole = bool((numbers == np.round(numbers)).all())
    points = [float(numbers.min()), *limits.tolist(), float(numbers.max())]
    steps = [_round_step(right - left, whole=whole) for left, right in pairwise(points)]
    low = math.floor(points[0] / steps[0]) * steps[0]
    high = math.ceil(points[-1] / steps[-1]) * steps[-1]
    near = (
        round(limit / step) * step
        for limit, step in zip(limits, map(min, pairwise(steps)), strict=True)
    )
    edges = {
        float(f"{edge:.12g}") for edge in (low, *near, high) if low <= edge <= high
    }
    if whole and zero_is_alone:
        edges.add(1.0)
    if len(edges) == 1:
        edges = {low, low + steps[0]}
    ascending = sorted(edges)
    # Between whole edges, only whole numbers are drawn.
    if whole:
        return [int(edge) for edge in ascending]
    return ascending


def _round_step(gap: float, *, whole: bool) -> float:
    """The largest round number that is no larger than a gap.

    That is 1, 2, 2.5 or 5 times a power of ten; a ``whole`` number if asked.
    """
    gap = max(gap, 1.0 if whole else math.ulp(1.0))
    power = 10.0 ** math.floor(math.log10(gap))
    most = gap / power * (1 + 1e-9)  # a gap of 1.1 − 1.0 is a little less than 0.1
    return next(
        step * power
        for step in _STEPS
        if step <= most and (not whole or step * power % 1 == 0)
    )


def _date_edges(values: list[Any], numbers: Reals, limits: Reals) -> list[Any]:
    """The first date, the one that begins each bin, and the last, rounded.

    They are rounded to months, or to years if there are many.
    """
    bin_of = np.searchsorted(limits, numbers, side="right")
    begins = np.unique(bin_of, return_index=True)[1]  # values ascend
    last = values[-1]
    step = 12 if last.year - values[0].year >= _MANY_YEARS else 1
    moments = [*(values[begin] for begin in begins), last]
    months = {
        (moment.year * 12 + moment.month - 1) // step * step for moment in moments
    }
    ascending = sorted({*months, max(months) + step})
    days = [
        datetime.date(min(month // 12, datetime.MAXYEAR), month % 12 + 1, 1)
        for month in ascending
    ]
    if not (isinstance(last, datetime.datetime) and (numbers % _DAY).any()):
        return days
    return [
        datetime.datetime(
            day.year,
            day.month,
            1,
            tzinfo=last.tzinfo,
        )
        for day in days
    ]
