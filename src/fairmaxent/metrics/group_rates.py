"""Rates of a frame, of predictions, or of a fitted distribution, with intervals and the groups behind them.

Definitions 2.1 and 2.2 are in `fairness.rates`, intervals in `intervals`; this module takes the groups from the user's
columns and reports which of them make a rate low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import GroupsOption
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows
from fairmaxent.errors import InputError, LevelError, did_you_mean
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.fairness.rates import (
    WorstPair,
    group_shares,
    outcome_rates,
    representation_pair,
    statistical_pair,
)
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.groups import (
    Groups,
    Levels,
    MeasuredRows,
    compared_weights,
    favourable_codes,
    groupings_of,
    groups_of,
    is_distribution,
    levels_of,
    open_rows,
    outcome_column,
    probabilities_of,
    refuse_protected,
    source_of,
)
from fairmaxent.metrics.intervals import (
    ComparedRates,
    Interval,
    check_confidence,
    interval_text,
    ratio_interval,
    share_interval,
)

_TINY = 1e-150  # in place of no weight at all, so that its square is not zero


@dataclass(frozen=True)
class GroupRate:
    """One group's share P(g) (`outcome` is None) or rate, such as P(y | g), and the number of rows behind it."""

    columns: tuple[str, ...]
    group: tuple[object, ...]
    outcome: object
    rate: float
    count: int | None
    interval: Interval | None


@dataclass(frozen=True)
class Pair:
    """The groups that determine a rate: the lowest and the highest, for this outcome."""

    columns: tuple[str, ...]
    outcome: object
    lowest: tuple[object, ...]
    highest: tuple[object, ...]


class Number:
    """A result that can be used like a number: its `value`."""

    value: float

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, how: str) -> str:
        return format(self.value, how) if how else str(self)

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __le__(self, other: float) -> bool:
        return self.value <= float(other)

    def __ge__(self, other: float) -> bool:
        return self.value >= float(other)


@dataclass(frozen=True)
class Rate(Number):
    """The worst ratio between two groups, its confidence interval (None: exact), and the rate of every group.

    Groups that have no weight in the relevant rows have no rate: they are not compared, and listed in `left_out`.
    """

    value: float
    interval: Interval | None
    worst: Pair
    groups: tuple[GroupRate, ...]
    left_out: tuple[GroupRate, ...] = ()

    @property
    def difference(self) -> float:
        """The largest difference between the rates of two groups, for the same outcome."""
        compared: dict[tuple[object, object], list[float]] = {}
        for group in self.groups:
            compared.setdefault((group.columns, group.outcome), []).append(group.rate)
        return max(max(rates) - min(rates) for rates in compared.values())

    def __str__(self) -> str:
        return f"{self.value:.3f}{interval_text(self.interval)}: {pair_text(self.worst)}{left_out_text(self.left_out)}"


def group_text(group: tuple[object, ...]) -> str:
    """Name a group by its levels."""
    return " × ".join(map(value_text, group))


def left_out_text(groups: Sequence[GroupRate]) -> str:
    """The groups that were not compared, in words to be put after a comparison."""
    names = sorted({group_text(group.group) for group in groups})
    return f"; not compared: {', '.join(names)}" if names else ""


def pair_text(pair: Pair) -> str:
    """The groups that are compared, of which columns, and for which outcome, in words."""
    about = "" if pair.outcome is None else f" for outcome {value_text(pair.outcome)}"
    lowest, highest = group_text(pair.lowest), group_text(pair.highest)
    groups = "all groups equal" if lowest == highest else f"{lowest} against {highest}"
    return f"{' × '.join(pair.columns)}, {groups}{about}"


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A table of outcome × groups for one grouping, and the numbers of rows that it is estimated from."""

    columns: tuple[str, ...]
    groups: list[tuple[object, ...]]
    outcomes: list[object]
    favourable: list[int]  # codes of the outcomes that are compared
    table: Reals
    counts: Codes | None  # rows of each group; None: the table is exact
    effective: EffectiveCounts  # of each favourable outcome (axis 0) in each group

    @property
    def is_of_shares(self) -> bool:
        """Whether group shares P(g) are compared; otherwise rates P(y | g) are."""
        return len(self.outcomes) == 1 and self.outcomes[0] is None

    @property
    def rates(self) -> Reals:
        """P(y | g) of the favourable outcomes, or P(g); NaN in groups without mass."""
        if self.is_of_shares:
            shares = group_shares(self.table, (1,))
            return np.where(shares > 0, shares, np.nan)[np.newaxis]
        return outcome_rates(self.table, (1,))[self.favourable]

    def worst_pair(self) -> WorstPair:
        """The lowest and the highest group, for the worst of the favourable outcomes."""
        if self.is_of_shares:
            return representation_pair(self.table, (1,))
        return statistical_pair(self.table, (1,), self.favourable)

    def comparisons(self) -> Iterator[ComparedRates]:
        """The groups that have a rate, for each favourable outcome."""
        for number, row in enumerate(self.rates):
            counts = self.effective.of_outcomes(number)[~np.isnan(row)]
            # The rates of the second of two outcomes follow from those of the first.
            repeats = number == 1 and len(self.outcomes) == 2
            yield ComparedRates(counts, are_shares=self.is_of_shares, repeats=repeats)

    def count(self, group: int) -> int | None:
        """Rows of a group; None: the table is exact."""
        return None if self.counts is None else int(self.counts[group])


def representation_rate(
    data: Any,
    protected: str | Sequence[str],
    *,
    groups: GroupsOption = "each",
    weight: Any = None,
    missing: MissingOption = "keep",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Smallest over largest share of a group, min P(g) / max P(g) (Definition 2.1).

    `data` is a frame, or a fit or its distribution (then the rate is exact). Of several protected columns the worst one
    counts; ``groups="joint"`` compares their intersections. A group without any rows is unknown here and is not
    compared, and neither are missing values, unless ``missing="compare"`` makes a group of them. `weight` is a column,
    or one number per row, such as ``fit.weights()``. With a `domain`, such as ``fit.domain``, its levels (e.g. bins)
    are compared instead of values.
    """
    data = source_of(data)
    parts = []
    for columns in groupings_of(protected, groups):
        rows = open_rows(data, columns, weight)
        group, labels = row_groups = groups_of(rows.frame, columns, None if rows.exact else domain)
        weights = compared_weights(rows.weights, row_groups, missing)
        sums = WeightSums.of(np.zeros_like(group), group, weights, (1, len(labels)))
        counts = None if rows.exact else np.bincount(group, minlength=len(labels))
        parts.append(GroupedTable(columns, labels, [None], [0], sums.weight, counts, sums.groups_against_others()))
    return compare(parts, confidence)


def statistical_rate(
    data: Any,
    outcome: Any,
    protected: str | Sequence[str],
    *,
    favourable: object = None,
    as_probability: bool = False,
    groups: GroupsOption = "each",
    weight: Any = None,
    missing: MissingOption = "keep",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio of P(y | g) between two groups over the favourable outcomes (Definition 2.2).

    `outcome` is a column, or an array with one prediction per row; with ``as_probability`` it holds the probability of
    the favourable outcome, and groups are compared by their means. `favourable` is a level, a list of levels, or None
    for every level, each compared on its own. Rows with a missing outcome do not count, unless it is favourable, or
    ``missing="compare"`` makes a level of it. The other options are as in `representation_rate`.
    """
    data = source_of(data)
    exact = is_distribution(data)
    if exact and (as_probability or not isinstance(outcome, str)):
        raise InputError("a fitted distribution has no rows to predict; name its outcome column, or pass a frame")
    parts = []
    for columns in groupings_of(protected, groups):
        refuse_protected(outcome, columns)
        rows = open_rows(data, (outcome, *columns) if exact else columns, weight)
        values = outcome_column(rows.frame, outcome)
        levels = None if exact else domain
        row_groups = groups_of(rows.frame, columns, levels)
        if as_probability:
            weights = compared_weights(rows.weights, row_groups, missing)
            parts.append(_by_mean(replace(rows, weights=weights), values, row_groups, columns, favourable))
        else:
            outcomes = levels_of(values, levels)
            weights = compared_weights(rows.weights, row_groups, missing, outcomes, favourable)
            parts.append(_by_count(replace(rows, weights=weights), outcomes, row_groups, columns, favourable))
    return compare(parts, confidence)


# ---------------------------------------------------------------- counting


def _by_count(
    rows: MeasuredRows, levels: Levels, groups: Groups, columns: tuple[str, ...], favourable: object
) -> GroupedTable:
    """Add up the weights of each outcome in each group."""
    group, labels = groups
    codes, outcomes = levels
    sums = WeightSums.of(codes, group, rows.weights, (len(outcomes), len(labels)))
    chosen = favourable_codes(outcomes, favourable)
    if favourable is None:  # an outcome that nobody compared has is left out, such as missing
        chosen = [code for code in chosen if sums.weight[code].any()]
    if favourable is not None and not sums.weight[chosen].sum(axis=1).all():
        raise LevelError(f"no row has the outcome {favourable!r}; {did_you_mean(favourable, outcomes)}")
    counts = None if rows.exact else np.bincount(group, minlength=len(labels))
    effective = sums.outcomes_against_others().of_outcomes(chosen)
    return GroupedTable(columns, labels, outcomes, chosen, sums.weight, counts, effective)


def by_positive(
    positive: Mask, weights: Reals, groups: Groups, columns: tuple[str, ...], outcome: object
) -> GroupedTable:
    """Add up the weights of the rows that have an outcome, and of those that have not, in each group."""
    group, labels = groups
    sums = WeightSums.of((~positive).astype(np.intp), group, weights, (2, len(labels)))
    counts = np.bincount(group, minlength=len(labels))
    effective = sums.outcomes_against_others().of_outcomes([0])
    return GroupedTable(columns, labels, [outcome, None], [0], sums.weight, counts, effective)


def _by_mean(
    rows: MeasuredRows, values: frames.Column, groups: Groups, columns: tuple[str, ...], favourable: object
) -> GroupedTable:
    """Add up the probabilities of the favourable outcome in each group."""
    group, labels = groups
    chance = probabilities_of(values)
    if ((chance == 0) | (chance == 1)).all():
        return by_positive(chance == 1, rows.weights, groups, columns, favourable)
    mass, positive = (tally(group, rows.weights * value, len(labels)) for value in (1.0, chance))
    mean = positive / np.maximum(mass, np.finfo(float).tiny)
    squares, deviations = (
        tally(group, rows.weights**2 * value, len(labels)) for value in (1.0, (chance - mean[group]) ** 2)
    )
    sizes = _sizes_of_means(mean, effective_rows(mass, squares), deviations / np.maximum(mass, _TINY) ** 2)
    counts = np.bincount(group, minlength=len(labels))
    effective = EffectiveCounts.of_rates(mean[np.newaxis], sizes[np.newaxis])
    return GroupedTable(
        columns, labels, [favourable, None], [0], np.stack([positive, mass - positive]), counts, effective
    )


def _sizes_of_means(mean: Reals, rows: Reals, variance: Reals) -> Reals:
    """Number of labels whose mean would have the same error as that of probabilities, which vary less than labels.

    The variance is linearised (Taylor), and widened like Student's t because it is estimated from few rows.
    """
    freedom = rows - 1
    widened = variance * (rows / np.maximum(rows - 1, 1e-9)) * freedom / np.maximum(freedom - 2, 1e-9)
    return np.maximum(rows, mean * (1 - mean) / np.maximum(widened, 1e-300))


# ---------------------------------------------------------------- comparing


def compare(parts: list[GroupedTable], confidence: float) -> Rate:
    """Take the worst pair over all groupings and favourable outcomes."""
    check_confidence(confidence)
    pairs = [part.worst_pair() for part in parts]
    worst = min(range(len(parts)), key=lambda number: pairs[number].rate)
    part, pair = parts[worst], pairs[worst]
    lowest, highest = part.groups[pair.lowest[0]], part.groups[pair.highest[0]]
    outcome = None if pair.outcome is None else part.outcomes[pair.outcome]
    comparisons = [compared for part in parts for compared in part.comparisons()]
    return Rate(
        pair.rate,
        ratio_interval(comparisons, pair.rate, confidence) if part.counts is not None else None,
        Pair(part.columns, outcome, lowest, highest),
        tuple(group for part in parts for group in _group_rates(part, confidence)),
        tuple(group for part in parts for group in _left_out(part)),
    )


def _left_out(part: GroupedTable) -> Iterator[GroupRate]:
    """The groups without a rate."""
    for row, column in np.argwhere(np.isnan(part.rates)):
        label = part.outcomes[part.favourable[row]]
        yield GroupRate(part.columns, part.groups[column], label, math.nan, part.count(int(column)), None)


def _group_rates(part: GroupedTable, confidence: float) -> Iterator[GroupRate]:
    """The groups with a rate, each with its interval unless the table is exact."""
    values = part.rates
    low, high = share_interval(part.effective, confidence)
    for row, outcome in enumerate(part.favourable):
        for column in np.flatnonzero(~np.isnan(values[row])):
            count = part.count(int(column))
            ends = None if part.counts is None else (float(low[row, column]), float(high[row, column]))
            label = part.outcomes[outcome]
            yield GroupRate(part.columns, part.groups[column], label, float(values[row, column]), count, ends)
