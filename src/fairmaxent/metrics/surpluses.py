"""Surpluses: what was observed in each group, minus what was predicted.

Calibration compares them instead of rates: P(Y = y | g) minus the mean probability that
was predicted for the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, effective_rows, tally
from fairmaxent.errors import InputError
from fairmaxent.metrics import intervals
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.group_rates import GroupedTable, worst_rate
from fairmaxent.metrics.groups import Comparison
from fairmaxent.metrics.rates import GroupRate, Pair, Spoken, group_text, set_apart_text
from fairmaxent.metrics.rows import Columns, GroupedRows, Label, MeasuredRows

# whether rows have the outcome, their probabilities, their weights
ScoredRows = tuple[Mask, Reals, Reals]


@dataclass(frozen=True)
class GroupCalibration:
    """One group: what was predicted, what was observed, and how far they differ.

    Mean probability, share with the outcome and its interval, expected calibration
    error.
    """

    columns: Columns
    group: Label
    predicted: float
    observed: float
    count: int
    interval: intervals.Interval | None
    error: float
    by_chance: float

    @property
    def surplus(self) -> float:
        """The observed share minus the mean probability."""
        return self.observed - self.predicted


@dataclass(frozen=True)
class Calibration(Spoken):
    """The largest gap between two groups, and the calibration of every group.

    `worst.lowest` is the group whose probabilities are too high compared with those of
    `worst.highest`. Groups that are too small to decide anything are in `set_apart`,
    with their observed shares. The gap is NaN if they leave nothing to compare.
    """

    gap: float
    interval: intervals.Interval | None
    worst: Pair
    groups: tuple[GroupCalibration, ...]
    set_apart: tuple[GroupRate, ...] = ()

    @property
    def error(self) -> float:
        """The expected calibration error of the worst group."""
        return max((group.error for group in self.groups), default=np.nan)

    def _words(self) -> str:
        apart = set_apart_text(self.set_apart)
        if np.isnan(self.gap):
            return f"nothing to compare: {' × '.join(self.worst.columns)}{apart}"
        worst = max(self.groups, key=lambda group: group.error)
        return (
            f"gap {self.gap:.3f}{intervals.interval_text(self.interval)}: {self.worst};"
            f" error {worst.error:.3f} ({worst.by_chance:.3f} by chance alone) in"
            f" {group_text(worst.group)}{apart}"
        )


def quantile_bins(score: Reals, weights: Reals, bins: int) -> Codes:
    """Bin of each row, so that all bins have about the same weight.

    Equal scores share a bin, and bins may be empty.
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weights[order])
    # bins must not hang on how weights add up
    wanted = cumulative[-1] * np.arange(1, bins) / bins * (1 - 1e-12)
    return np.searchsorted(score[order][np.searchsorted(cumulative, wanted)], score)


def calibrate(
    comparison: Comparison,
    frame: Any,
    probabilities: Any,
    bins: int,
    confidence: float,
) -> Calibration:
    """Compare probabilities with what happened, in each group that has weight."""
    intervals.check_confidence(confidence)
    if not isinstance(bins, int) or bins < 1:
        raise InputError(
            f"bins is {bins!r}; pass the number of bins, at least 1, e.g. 10"
        )
    rows = comparison.open(frame)
    positive = rows.levels[0] == rows.one_favourable(comparison.compare.favourable)
    chance = rows.probabilities(probabilities, what="probabilities")
    bin_of = quantile_bins(chance, rows.weights, bins)
    tables = surplus_tables(comparison, rows, chance)
    groups = [
        _calibrated(one, positive, chance, bin_of, table.rows)
        for table in tables
        for one in table.listed(table.is_large, confidence)
    ]
    found = worst_rate(tables, confidence)
    return Calibration(
        gap=found.value,
        interval=found.interval,
        worst=found.worst,
        groups=tuple(groups),
        set_apart=found.set_apart,
    )


def _calibrated(
    found: GroupRate,
    positive: Mask,
    chance: Reals,
    bin_of: Codes,
    rows: GroupedRows,
) -> GroupCalibration:
    """The calibration of a group that has weight."""
    own = rows.group == rows.labels.index(found.group)
    weights = rows.weights[own]
    bins = bin_of[own]
    promised = chance[own]
    mass = float(weights.sum())
    surpluses = tally(bins, weights * (positive[own] - promised), 0)
    # If the probabilities were exact, a bin's surplus would be nearly normal, and
    # E|x| = σ·√(2/π).
    variance = tally(bins, weights**2 * promised * (1 - promised), 0)
    by_chance = np.sqrt(variance * 2 / np.pi)
    return GroupCalibration(
        columns=found.columns,
        group=found.group,
        predicted=float(weights @ promised) / mass,
        observed=found.rate,
        count=len(weights),
        interval=found.interval,
        error=float(np.abs(surpluses).sum()) / mass,
        by_chance=float(by_chance.sum()) / mass,
    )


def surplus_tables(
    comparison: Comparison, rows: MeasuredRows, chance: Reals
) -> list[GroupedTable]:
    """What is compared, by grouping and stratum."""
    codes, outcomes = rows.levels
    code = rows.one_favourable(comparison.compare.favourable)
    return [
        _surplus_table(
            part, codes[part.rows] == code, chance[part.rows], outcomes[code]
        )
        for part in comparison.parts(rows)
    ]


def _surplus_table(
    rows: GroupedRows, positive: Mask, chance: Reals, outcome: object
) -> GroupedTable:
    """Observed shares, compared by how far they are above what was predicted."""
    rows.refuse_likely("calibration")
    table = GroupedTable.of_positives(rows, positive, outcome)
    shape = table.rates.shape
    expected = np.zeros(shape)
    factors = np.ones(shape)
    added = np.zeros(shape)
    scored = {}
    for number in np.flatnonzero(table.has_rate[0]):
        own = rows.group == number
        scored[number] = (positive[own], chance[own], rows.weights[own])
    if scored:
        groups = list(scored)
        found = surpluses_of(table.effective[0, groups], list(scored.values()))
        expected[0, groups] = found.expected
        factors[0, groups] = found.factors
        added[0, groups] = found.added
    return replace(table, surpluses=intervals.Surpluses(expected, factors, added))


def surpluses_of(
    counts: EffectiveCounts, rows: Sequence[ScoredRows]
) -> intervals.Surpluses:
    """The surpluses of groups: the effective counts of the outcome, and the rows."""
    # If the probabilities predict the outcome, the surplus varies less than the
    # observed share: counts become larger. If they vary for no reason, it varies more:
    # this is added. Variances are linearised (Taylor).
    both = [_variances(counts[..., group], *part) for group, part in enumerate(rows)]
    factors, added = (np.stack(part, axis=-1) for part in zip(*both, strict=True))
    expected = [weighted_mean(chance, weights) for _, chance, weights in rows]
    return intervals.Surpluses(np.stack(expected, axis=-1), factors, added)


def _variances(
    counts: EffectiveCounts,
    positive: Mask,
    chance: Reals,
    weights: Reals,
) -> intervals.Ends:
    """How many times the rows probabilities are worth, and the variance they add."""
    surplus = _mean_variance(positive - chance, weights)
    share = _mean_variance(positive, weights)
    # Half a row more of either, so that it is never 0.
    more = EffectiveCounts(
        counts.positives + 0.5, counts.negatives + 0.5, counts.weight_ratio
    )
    reference = more.rates * (1 - more.rates) / more.sizes
    # At least what exact probabilities would leave, in case few rows happen to agree.
    mean = weighted_mean(chance, weights)
    spread = np.maximum(mean * (1 - mean), 1e-300)
    unexplained = np.clip((chance * (1 - chance)).mean(axis=-1) / spread, 1e-9, 1.0)
    left = np.clip((reference + surplus - share) / reference, unexplained, 1.0)
    freedom = effective_rows(weights.sum(axis=-1), (weights**2).sum(axis=-1)) - 1
    # like Student's t, because the variance is estimated
    wider = (freedom + 1) / np.maximum(freedom - 2, 0.5)
    return 1 / left, np.maximum(surplus - share, 0.0) * wider


def _mean_variance(values: Reals | Mask, weights: Reals) -> Reals:
    """Linearised variance Σw²(x − x̄)² / (Σw)² of a weighted mean x̄."""
    deviations = weights * (values - weighted_mean(values, weights)[..., None])
    return (deviations**2).sum(axis=-1) / weights.sum(axis=-1) ** 2


def weighted_mean(values: Reals | Mask, weights: Reals) -> Reals:
    """Weighted mean of rows along the last axis."""
    return (weights * values).sum(axis=-1) / weights.sum(axis=-1)
