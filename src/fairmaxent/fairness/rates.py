"""Rates of a table: representation rate (Definition 2.1) and statistical rate (Definition 2.2).

A table holds probabilities or counts: axis 0 is the outcome, the other axes are protected attributes.
A *grouping* is a tuple of protected axes; its groups are the levels of one axis, or the intersections of
several. Groups without mass are not compared. The last axes of a grouping may be *strata*: then groups are compared
with the others of their stratum only, and the worst stratum counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.errors import RateError

LEAST_RATE = 1e-6  # that can be asked for: below, what is asked is lost in rounding
_TIE = 1e-9  # values that differ by less, relatively, are equal

Grouping = tuple[int, ...]


class OutcomeGrouping(tuple[int, ...]):
    """A grouping whose rates are about another outcome than that of axis 0: the one of the axis `outcome`."""

    outcome: int

    def __new__(cls, axes: Iterable[int], outcome: int = 0) -> OutcomeGrouping:
        """Take the axes of the groups, and the axis of the outcome."""
        grouping = super().__new__(cls, axes)
        grouping.outcome = outcome
        return grouping


def outcome_axis(grouping: Grouping) -> int:
    """The axis of the outcome that the rates of a grouping are about."""
    return grouping.outcome if isinstance(grouping, OutcomeGrouping) else 0


@dataclass(frozen=True)
class WorstPair:
    """The two groups that determine a rate, which is the lowest group's value over the highest's."""

    rate: float
    outcome: int | None  # whose rates are compared; None: shares are
    lowest: tuple[int, ...]
    highest: tuple[int, ...]


def check_rate(name: object, rate: float, *, hint: object = "") -> float:
    """Refuse a wanted rate outside (0, 1]; `name` and `hint` are parts of the message, as errors take them."""
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate <= 1:
        percent = f"; write {rate / 100:g} for {rate:g} %" if isinstance(rate, Real) and 1 < rate <= 100 else ""
        raise RateError(name, f" is {rate!r}; a rate must be above 0 and at most 1{percent}", hint)
    if rate < LEAST_RATE:
        raise RateError(name, f" is {rate!r}; a rate below {LEAST_RATE:g} asks for next to nothing", hint)
    return float(rate)


def smallest_over_largest(rates: Reals, *, if_all_zero: float = 1.0) -> Reals:
    """Ratio of the smallest to the largest group rate, the groups being the last axis.

    A rate of NaN means that the group has none: it is not compared, and without any rate the ratio is NaN. If every
    rate is zero (nobody has the outcome), the ratio is `if_all_zero`: 1 because all groups are treated the same way,
    or NaN if nothing can be compared then.

    >>> smallest_over_largest(np.array([[0.2, 0.4, np.nan], [0.0, 0.0, np.nan], [np.nan, np.nan, np.nan]]))
    array([0.5, 1. , nan])
    >>> float(smallest_over_largest(np.zeros(2), if_all_zero=np.nan))
    nan
    """
    smallest = np.fmin.reduce(rates, axis=-1, initial=np.nan)
    largest = np.fmax.reduce(rates, axis=-1, initial=np.nan)
    otherwise = np.where(np.isnan(largest), np.nan, if_all_zero)
    return np.asarray(np.divide(smallest, largest, out=otherwise, where=largest > 0))


def group_table(table: Reals, grouping: Grouping) -> Reals:
    """Sum a table to outcome × groups, with the groups' axes in the order of the grouping."""
    if axis := outcome_axis(grouping):
        table = np.swapaxes(table, 0, axis)
    moved = np.moveaxis(table, grouping, tuple(range(1, len(grouping) + 1)))
    summed: Reals = moved.sum(axis=tuple(range(len(grouping) + 1, table.ndim)))
    return summed


def group_shares(table: Reals, grouping: Grouping) -> Reals:
    """Share P(g) of each group g.

    >>> group_shares(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,))
    array([0.8, 0.2])
    """
    mass: Reals = group_table(table, grouping).sum(axis=0)
    return np.asarray(mass / mass.sum())


def outcome_rates(table: Reals, grouping: Grouping) -> Reals:
    """Rate P(y | g) of each outcome y in each group g; NaN in a group without mass.

    >>> outcome_rates(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,))
    array([[0.375, 0.5  ],
           [0.625, 0.5  ]])
    """
    mass = group_table(table, grouping)
    total = mass.sum(axis=0)
    return np.asarray(np.divide(mass, total, out=np.full_like(mass, np.nan), where=total > 0))


def representation_pair(table: Reals, grouping: Grouping, *, strata: int = 0) -> WorstPair:
    """Return the smallest and the largest group, and their representation rate; the last axes may be ``strata``."""
    shares = group_shares(table, grouping)
    return _pair(np.where(shares > 0, shares, np.nan), outcome=None, strata=strata)


def statistical_pair(table: Reals, grouping: Grouping, outcomes: Sequence[int], *, strata: int = 0) -> WorstPair:
    """Return the pair of groups and the outcome that determine the statistical rate; the first on a tie."""
    rates = outcome_rates(table, grouping)
    pairs = [_pair(rates[y], outcome=y, strata=strata) for y in outcomes]
    return pairs[first_smallest([pair.rate for pair in pairs])]


def representation_rate(table: Reals, grouping: Grouping, *, strata: int = 0) -> float:
    """Smallest over largest group share, min P(g) / max P(g) (Definition 2.1).

    >>> representation_rate(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,))
    0.25
    """
    return representation_pair(table, grouping, strata=strata).rate


def statistical_rate(table: Reals, grouping: Grouping, outcomes: Sequence[int], *, strata: int = 0) -> float:
    """Smallest of min P(y | g) / max P(y | g) over the given outcomes y (Definition 2.2).

    >>> statistical_rate(np.array([[3.0, 1.0], [5.0, 1.0]]), (1,), [0])
    0.75
    """
    return statistical_pair(table, grouping, outcomes, strata=strata).rate


def rates_of_many(
    tables: Reals, model: Reals, grouping: Grouping, outcomes: Sequence[int], *, strata: int = 0
) -> tuple[Reals, Reals]:
    """Representation and statistical rate of each table in a stack (first axis), all drawn from one model.

    A group that the model has but a table lacks has share zero in that table, and no rate of an outcome.
    """
    known = by_stratum(group_shares(model, grouping), strata) > 0
    if axis := outcome_axis(grouping):
        tables = np.swapaxes(tables, 1, axis + 1)
    moved = np.moveaxis(tables, [axis + 1 for axis in grouping], range(2, 2 + len(grouping)))
    mass = moved.sum(axis=tuple(range(2 + len(grouping), moved.ndim)))
    mass = by_stratum(mass, strata, first=2)
    total = np.where(known, mass.sum(axis=1), np.nan)
    rates = mass[:, list(outcomes)] / np.where(total > 0, total, np.nan)[:, np.newaxis]
    shares, given = smallest_over_largest(total), smallest_over_largest(rates)
    return np.fmin.reduce(shares, axis=-1), np.fmin.reduce(given.reshape(len(tables), -1), axis=-1)


def by_stratum(values: Reals, strata: int, *, first: int = 0) -> Reals:
    """Lay the values of groups out as (…, strata, groups); the axes of a grouping begin at ``first``.

    >>> by_stratum(np.array([[0.1, 0.2], [0.3, 0.4]]), 1)
    array([[0.1, 0.3],
           [0.2, 0.4]])
    """
    kept, end = values.shape[:first], values.ndim - strata
    within = int(np.prod(values.shape[end:]))
    return np.asarray(np.swapaxes(values.reshape(*kept, -1, within), -1, -2))


def worst_ratio(values: Reals, strata: int, *, if_all_zero: float = 1.0) -> float:
    """Smallest over the strata of the smallest over the largest value of a group; NaN is ignored, and if all is NaN."""
    ratios = smallest_over_largest(by_stratum(values, strata), if_all_zero=if_all_zero)
    return float(np.fmin.reduce(ratios))


def _pair(values: Reals, *, outcome: int | None, strata: int) -> WorstPair:
    """The groups with the smallest and the largest value in the worst stratum; NaN is ignored."""
    rows = by_stratum(values, strata)
    ratios = smallest_over_largest(rows)
    worst = first_smallest(ratios)
    ends = (first_smallest(rows[worst]), first_largest(rows[worst]))
    lowest, highest = (np.unravel_index(end * len(rows) + worst, values.shape) for end in ends)
    return WorstPair(float(ratios[worst]), outcome, tuple(map(int, lowest)), tuple(map(int, highest)))


def first_smallest(values: Sequence[float] | Reals) -> int:
    """Where the smallest value is; NaN is ignored.

    Of values that differ by rounding only it is the first: which of them is smaller is another one on each machine.

    >>> first_smallest([0.3, 0.2 + 1e-16, 0.2])
    1
    """
    values = np.asarray(values)
    least = values[np.nanargmin(values)]
    return int(np.argmax(values <= least + _TIE * abs(least)))


def first_largest(values: Sequence[float] | Reals) -> int:
    """Where the largest value is; see `first_smallest`."""
    return first_smallest(-np.asarray(values))
