"""A grouped table: outcome × groups for one grouping, with the numbers of rows that it is estimated from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows
from fairmaxent.fairness.rates import (
    WorstPair,
    group_shares,
    outcome_rates,
    representation_pair,
    statistical_pair,
)
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.groups import Groups, Levels, MeasuredRows, favourable_codes
from fairmaxent.metrics.intervals import ComparedRates
from fairmaxent.metrics.row_strata import RowStratum, StratumLevels

_TINY = 1e-150  # in place of no weight at all, so that its square is not zero


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
    stratum: StratumLevels = ()

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


# ---------------------------------------------------------------- counting


def by_count(
    rows: MeasuredRows,
    levels: Levels,
    groups: Groups,
    columns: tuple[str, ...],
    favourable: object,
    stratum: RowStratum,
) -> GroupedTable:
    """Add up the weights of each outcome in each group of a stratum."""
    group, labels = stratum.of(groups)
    codes, outcomes = levels
    sums = WeightSums.of(codes[stratum.rows], group, rows.weights[stratum.rows], (len(outcomes), len(labels)))
    chosen = favourable_codes(outcomes, favourable)
    if favourable is None:  # an outcome that nobody compared has is left out, such as missing
        chosen = [code for code in chosen if sums.weight[code].any()]
    counts = None if rows.exact else np.bincount(group, minlength=len(labels))
    effective = sums.outcomes_against_others().of_outcomes(chosen)
    return GroupedTable(columns, labels, outcomes, chosen, sums.weight, counts, effective, stratum.levels)


def by_positive(
    positive: Mask,
    weights: Reals,
    groups: Groups,
    columns: tuple[str, ...],
    outcome: object,
    stratum: StratumLevels = (),
) -> GroupedTable:
    """Add up the weights of the rows that have an outcome, and of those that have not, in each group."""
    group, labels = groups
    sums = WeightSums.of((~positive).astype(np.intp), group, weights, (2, len(labels)))
    counts = np.bincount(group, minlength=len(labels))
    effective = sums.outcomes_against_others().of_outcomes([0])
    return GroupedTable(columns, labels, [outcome, None], [0], sums.weight, counts, effective, stratum)


def by_mean(
    weights: Reals,
    chances: Reals,
    groups: Groups,
    columns: tuple[str, ...],
    favourable: object,
    stratum: RowStratum,
) -> GroupedTable:
    """Add up the probabilities of the favourable outcome in each group of a stratum."""
    group, labels = stratum.of(groups)
    weight, chance = weights[stratum.rows], chances[stratum.rows]
    if ((chance == 0) | (chance == 1)).all():
        return by_positive(chance == 1, weight, (group, labels), columns, favourable, stratum.levels)
    mass, positive = (tally(group, weight * value, len(labels)) for value in (1.0, chance))
    mean = positive / np.maximum(mass, np.finfo(float).tiny)
    squares, deviations = (tally(group, weight**2 * value, len(labels)) for value in (1.0, (chance - mean[group]) ** 2))
    sizes = _sizes_of_means(mean, effective_rows(mass, squares), deviations / np.maximum(mass, _TINY) ** 2)
    counts = np.bincount(group, minlength=len(labels))
    effective = EffectiveCounts.of_rates(mean[np.newaxis], sizes[np.newaxis])
    table = np.stack([positive, mass - positive])
    return GroupedTable(columns, labels, [favourable, None], [0], table, counts, effective, stratum.levels)


def _sizes_of_means(mean: Reals, rows: Reals, variance: Reals) -> Reals:
    """Number of labels whose mean would have the same error as that of probabilities, which vary less than labels.

    The variance is linearised (Taylor), and widened like Student's t because it is estimated from few rows.
    """
    freedom = rows - 1
    widened = variance * (rows / np.maximum(rows - 1, 1e-9)) * freedom / np.maximum(freedom - 2, 1e-9)
    return np.maximum(rows, mean * (1 - mean) / np.maximum(widened, 1e-300))
