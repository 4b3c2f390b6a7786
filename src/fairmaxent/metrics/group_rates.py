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

from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import GroupsOption, WithinOption, read_within
from fairmaxent.data.table import tally
from fairmaxent.errors import InputError, LevelError, Option, did_you_mean_level
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.fairness.rates import first_smallest
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.grouped_table import GroupedTable, by_count, by_mean
from fairmaxent.metrics.groups import (
    Levels,
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
    Interval,
    check_confidence,
    interval_text,
    ratio_interval,
    share_interval,
)
from fairmaxent.metrics.row_strata import StratumLevels, refuse_roles, strata_of, stratum_text


@dataclass(frozen=True)
class GroupRate:
    """One group's share P(g) (`outcome` is None) or rate, such as P(y | g), and the number of rows behind it.

    If groups are compared within strata, `stratum` names the columns and values of this one.
    """

    columns: tuple[str, ...]
    group: tuple[object, ...]
    outcome: object
    rate: float
    count: int | None
    interval: Interval | None
    stratum: StratumLevels = ()


@dataclass(frozen=True)
class Pair:
    """The groups that determine a rate: the lowest and the highest, for this outcome."""

    columns: tuple[str, ...]
    outcome: object
    lowest: tuple[object, ...]
    highest: tuple[object, ...]
    stratum: StratumLevels = ()


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
    Within strata, so are groups that are alone in theirs.
    """

    value: float
    interval: Interval | None
    worst: Pair
    groups: tuple[GroupRate, ...]
    left_out: tuple[GroupRate, ...] = ()

    @property
    def difference(self) -> float:
        """The largest difference between the rates of two groups, for the same outcome."""
        compared: dict[tuple[object, ...], list[float]] = {}
        for group in self.groups:
            compared.setdefault((group.columns, group.outcome, group.stratum), []).append(group.rate)
        return max(max(rates) - min(rates) for rates in compared.values())

    def __str__(self) -> str:
        return f"{self.value:.3f}{interval_text(self.interval)}: {pair_text(self.worst)}{left_out_text(self.left_out)}"


def group_text(group: tuple[object, ...]) -> str:
    """Name a group by its levels."""
    return " × ".join(map(value_text, group))


def left_out_text(groups: Sequence[GroupRate]) -> str:
    """The groups that were not compared, in words to be put after a comparison."""
    names = sorted({group_text(group.group) + stratum_text(group.stratum) for group in groups})
    return f"; not compared: {', '.join(names)}" if names else ""


def pair_text(pair: Pair) -> str:
    """The groups that are compared, of which columns, and for which outcome, in words."""
    about = "" if pair.outcome is None else f" for outcome {value_text(pair.outcome)}"
    lowest, highest = group_text(pair.lowest), group_text(pair.highest)
    groups = "all groups equal" if lowest == highest else f"{lowest} against {highest}"
    return f"{' × '.join(pair.columns)}, {groups}{about}{stratum_text(pair.stratum)}"


def representation_rate(
    data: Any,
    protected: str | Sequence[str],
    *,
    groups: GroupsOption = "each",
    within: WithinOption = None,
    weight: Any = None,
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Smallest over largest share of a group, min P(g) / max P(g) (Definition 2.1).

    `data` is a frame, or a fit or its distribution (then the rate is exact). Of several protected columns the worst one
    counts; ``groups="joint"`` compares their intersections. A group without any rows is unknown here and is not
    compared, and neither are missing values, unless ``missing="compare"`` makes a group of them. `weight` is a column,
    or one number per row, such as ``fit.weights()``. With a `domain`, such as ``fit.domain``, its levels (e.g. bins)
    are compared instead of values. `within` is as in :func:`fairmaxent.debias`: groups are compared with those of their
    own stratum, and the worst stratum counts.
    """
    data = source_of(data)
    parts = []
    for columns in groupings_of(protected, groups):
        refuse_roles(within, None, columns)
        rows = open_rows(data, (*columns, *read_within(within)), weight)
        levels = None if rows.exact else domain
        row_groups = groups_of(rows.frame, columns, levels)
        weights = compared_weights(rows.weights, row_groups, missing)
        for stratum in strata_of(rows, within, levels, missing):
            group, labels = stratum.of(row_groups)
            sums = WeightSums.of(np.zeros_like(group), group, weights[stratum.rows], (1, len(labels)))
            counts = None if rows.exact else np.bincount(group, minlength=len(labels))
            effective = sums.groups_against_others()
            parts.append(GroupedTable(columns, labels, [None], [0], sums.weight, counts, effective, stratum.levels))
    return compare(parts, confidence)


def statistical_rate(
    data: Any,
    outcome: Any,
    protected: str | Sequence[str],
    *,
    favourable: object = None,
    as_probability: bool = False,
    groups: GroupsOption = "each",
    within: WithinOption = None,
    weight: Any = None,
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Rate:
    """Worst ratio of P(y | g) between two groups over the favourable outcomes (Definition 2.2).

    `outcome` is a column, or an array with one prediction per row; with ``as_probability`` it holds the probability of
    the favourable outcome, and groups are compared by their means. `favourable` is a level, a list of levels, or None
    for every level, each compared on its own. Rows with a missing outcome do not count, unless it is favourable, or
    ``missing="compare"`` makes a level of it. The other options are as in `representation_rate`. With a recorded
    decision as the outcome and the true label as the column, ``within={"label": "yes"}`` is equal opportunity.
    """
    data = source_of(data)
    exact = is_distribution(data)
    if exact and (as_probability or not isinstance(outcome, str)):
        raise InputError("a fitted distribution has no rows to predict; name its outcome column, or pass a frame")
    parts = []
    for columns in groupings_of(protected, groups):
        refuse_protected(outcome, columns)
        refuse_roles(within, outcome, columns)
        rows = open_rows(data, (outcome, *columns, *read_within(within)) if exact else columns, weight)
        values = outcome_column(rows.frame, outcome)
        levels = None if exact else domain
        row_groups = groups_of(rows.frame, columns, levels)
        strata = strata_of(rows, within, levels, missing)
        if as_probability:
            weights = compared_weights(rows.weights, row_groups, missing)
            chance = probabilities_of(values)
            parts += [by_mean(weights, chance, row_groups, columns, favourable, stratum) for stratum in strata]
        else:
            outcomes = levels_of(values, levels)
            weights = compared_weights(rows.weights, row_groups, missing, outcomes, favourable)
            _refuse_nobody(outcomes, weights, favourable)
            weighted = replace(rows, weights=weights)
            parts += [by_count(weighted, outcomes, row_groups, columns, favourable, stratum) for stratum in strata]
    return compare(parts, confidence)


def _refuse_nobody(levels: Levels, weights: Reals, favourable: object) -> None:
    """Refuse a favourable outcome that no row has."""
    codes, outcomes = levels
    chosen = favourable_codes(outcomes, favourable)
    if favourable is not None and not tally(codes, weights, len(outcomes))[chosen].all():
        raise LevelError(f"no row has the outcome {favourable!r}; {did_you_mean_level(favourable, outcomes)}")


# ---------------------------------------------------------------- comparing


def compare(parts: list[GroupedTable], confidence: float) -> Rate:
    """Take the worst pair over all groupings, strata and favourable outcomes."""
    check_confidence(confidence)
    parts = [part for part in parts if part.table.any() or not part.stratum]
    _refuse_no_rows(parts)
    alone = [part for part in parts if part.stratum and np.count_nonzero(~np.isnan(part.rates[0])) < 2]
    parts = [part for part in parts if part not in alone]
    if not parts:
        raise LevelError(
            "no stratum has rows of more than one group, so there is nothing to compare; compare within other columns, "
            "or leave ",
            Option("within"),
            " out",
        )
    pairs = [part.worst_pair() for part in parts]
    worst = first_smallest([pair.rate for pair in pairs])
    part, pair = parts[worst], pairs[worst]
    lowest, highest = part.groups[pair.lowest[0]], part.groups[pair.highest[0]]
    outcome = None if pair.outcome is None else part.outcomes[pair.outcome]
    comparisons = [compared for part in parts for compared in part.comparisons()]
    return Rate(
        pair.rate,
        ratio_interval(comparisons, pair.rate, confidence) if part.counts is not None else None,
        Pair(part.columns, outcome, lowest, highest, part.stratum),
        tuple(group for part in parts for group in _group_rates(part, confidence)),
        (
            *(group for part in parts for group in _left_out(part)),
            *(group for part in alone for group in _group_rates(part, confidence)),
        ),
    )


def _refuse_no_rows(parts: list[GroupedTable]) -> None:
    """Refuse groupings of which no row that counts has a group, or none an outcome beside it."""
    empty = next((part for part in parts if not part.table.any()), None)
    if empty is not None:
        names = " × ".join(map(repr, empty.columns))
        what = f"a group of {names}" if empty.is_of_shares else f"both an outcome and a group of {names}"
        raise LevelError(f"no row has {what}, so there is nothing to compare; name other columns, or fill their gaps")


def _left_out(part: GroupedTable) -> Iterator[GroupRate]:
    """The groups without a rate."""
    for row, column in np.argwhere(np.isnan(part.rates)):
        label = part.outcomes[part.favourable[row]]
        count = part.count(int(column))
        yield GroupRate(part.columns, part.groups[column], label, math.nan, count, None, part.stratum)


def _group_rates(part: GroupedTable, confidence: float) -> Iterator[GroupRate]:
    """The groups with a rate, each with its interval unless the table is exact."""
    values = part.rates
    low, high = share_interval(part.effective, confidence)
    for row, outcome in enumerate(part.favourable):
        for column in np.flatnonzero(~np.isnan(values[row])):
            count = part.count(int(column))
            ends = None if part.counts is None else (float(low[row, column]), float(high[row, column]))
            label = part.outcomes[outcome]
            rate = float(values[row, column])
            yield GroupRate(part.columns, part.groups[column], label, rate, count, ends, part.stratum)
