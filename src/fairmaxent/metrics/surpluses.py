"""Surpluses: what was observed in each group, minus what was predicted.

Calibration compares them instead of rates: P(Y = y | g) minus the mean probability that
was predicted for the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, effective_rows, tally
from fairmaxent.errors import InputError
from fairmaxent.metrics import intervals
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.group_rates import Pair, Spoken, group_text
from fairmaxent.metrics.groups import Columns, Comparison, GroupedRows, Label

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
    interval: intervals.Interval
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
    `worst.highest`.
    """

    gap: float
    interval: intervals.Interval
    worst: Pair
    groups: tuple[GroupCalibration, ...]

    @property
    def error(self) -> float:
        """The expected calibration error of the worst group."""
        return max(group.error for group in self.groups)

    def _words(self) -> str:
        worst = max(self.groups, key=lambda group: group.error)
        return (
            f"gap {self.gap:.3f}{intervals.interval_text(self.interval)}: {self.worst};"
            f" error {worst.error:.3f} ({worst.by_chance:.3f} by chance alone) in"
            f" {group_text(worst.group)}"
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
    compared: Comparison,
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
    rows = compared.open(frame)
    codes, outcomes = rows.levels
    code = rows.one_favourable(compared.favourable)
    chance = rows.probabilities(probabilities, what="probabilities")
    bin_of = quantile_bins(chance, rows.weights, bins)
    groups: list[GroupCalibration] = []
    comparisons = []
    extremes = []
    for columns in compared.groupings:
        grouped = compared.group(rows, columns)
        found, surpluses = _calibrated(
            codes == code, chance, bin_of, grouped, confidence
        )
        groups += found
        comparisons.append(surpluses)
        by_surplus = attrgetter("surplus")
        extremes.append((min(found, key=by_surplus), max(found, key=by_surplus)))
    lowest, highest = max(extremes, key=lambda pair: pair[1].surplus - pair[0].surplus)
    gap = highest.surplus - lowest.surplus
    ends = intervals.difference_ends(comparisons, confidence)
    return Calibration(
        gap=gap,
        interval=intervals.widened(ends, gap),
        worst=Pair(lowest.columns, outcomes[code], lowest.group, highest.group),
        groups=tuple(groups),
    )


def _calibrated(
    positive: Mask,
    chance: Reals,
    bin_of: Codes,
    rows: GroupedRows,
    confidence: float,
) -> tuple[list[GroupCalibration], intervals.Compared]:
    """The calibration of every group that has weight, and their surpluses."""
    sums = WeightSums.of(1 - positive, rows.group, rows.weights, (2, len(rows.labels)))
    counts = sums.against_others()[0, :]
    low, high = intervals.share_interval(counts, confidence)
    groups = []
    scored = {}
    for number in np.flatnonzero(sums.weight.sum(axis=0)):
        own = rows.group == number
        weights = rows.weights[own]
        bins = bin_of[own]
        happened = positive[own]
        promised = chance[own]
        scored[number] = (happened, promised, weights)
        mass = float(weights.sum())
        surpluses = tally(bins, weights * (happened - promised), 0)
        # If the probabilities were exact, a bin's surplus would be nearly normal, and
        # E|x| = σ·√(2/π).
        variance = tally(bins, weights**2 * promised * (1 - promised), 0)
        by_chance = np.sqrt(variance * 2 / np.pi)
        calibrated = GroupCalibration(
            columns=rows.columns,
            group=rows.labels[number],
            predicted=float(weights @ promised) / mass,
            observed=float(weights @ happened) / mass,
            count=len(weights),
            interval=(float(low[number]), float(high[number])),
            error=float(np.abs(surpluses).sum()) / mass,
            by_chance=float(by_chance.sum()) / mass,
        )
        groups.append(calibrated)
    return groups, compared_surpluses(counts[list(scored)], list(scored.values()))


def compared_surpluses(
    counts: EffectiveCounts, rows: Sequence[ScoredRows]
) -> intervals.Compared:
    """The surpluses of groups as they are compared.

    Given the effective counts of the outcome and the rows of each.
    """
    # If the probabilities predict the outcome, the surplus varies less than the
    # observed share: counts become larger. If they vary for no reason, it varies more:
    # this is added. Variances are linearised (Taylor).
    both = [_variances(counts[..., group], *part) for group, part in enumerate(rows)]
    factors, added = (np.stack(part, axis=-1) for part in zip(*both, strict=True))
    expected = [weighted_mean(chance, weights) for _, chance, weights in rows]
    return intervals.Compared(
        counts.times(factors), expected=np.stack(expected, axis=-1), added=added
    )


def _variances(
    counts: EffectiveCounts,
    positive: Mask,
    chance: Reals,
    weights: Reals,
) -> tuple[Reals, Reals]:
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
