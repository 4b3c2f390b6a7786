"""Calibration by group: whether a probability means the same for everybody.

Of the people of a group with p = 0.3, three in ten should have the outcome y. P(Y = y | g) − the mean of p in g is the
group's *surplus*; the *gap* is the largest difference between two groups' surpluses. A group's *expected calibration
error* is |P(Y = y | bin) − the mean of p in the bin|, averaged over bins of equal weight over all rows together. Chance
alone makes it positive, and more so in small groups: `by_chance` is its mean if the probabilities were exactly right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption
from fairmaxent.data.table import Codes, Mask, Reals, effective_rows, tally
from fairmaxent.errors import InputError
from fairmaxent.fairness.rates import MissingOption
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.group_rates import Pair, group_text, pair_text
from fairmaxent.metrics.groups import Comparison, GroupedRows, Label, one_favourable, outcome_column, probabilities_of
from fairmaxent.metrics.intervals import (
    Compared,
    Interval,
    check_confidence,
    difference_ends,
    interval_text,
    share_interval,
    widened,
)

ScoredRows = tuple[Mask, Reals, Reals]  # whether rows have the outcome, their probabilities, their weights


@dataclass(frozen=True)
class GroupCalibration:
    """One group: mean probability, share with the outcome and its interval, expected calibration error."""

    columns: tuple[str, ...]
    group: Label
    predicted: float
    observed: float
    count: int
    interval: Interval
    error: float
    by_chance: float

    @property
    def surplus(self) -> float:
        """The observed share minus the mean probability."""
        return self.observed - self.predicted


@dataclass(frozen=True)
class Calibration:
    """The largest gap between two groups, with its interval, and the calibration of every group.

    `worst.lowest` is the group whose probabilities are too high compared with those of `worst.highest`.
    """

    gap: float
    interval: Interval
    worst: Pair
    groups: tuple[GroupCalibration, ...]

    @property
    def error(self) -> float:
        """The expected calibration error of the worst group."""
        return max(group.error for group in self.groups)

    def __str__(self) -> str:
        worst = max(self.groups, key=lambda group: group.error)
        error = f"error {worst.error:.3f} ({worst.by_chance:.3f} by chance alone) in {group_text(worst.group)}"
        return f"gap {self.gap:.3f}{interval_text(self.interval)}: {pair_text(self.worst)}; {error}"


def calibration(
    frame: Any,
    outcome: Any,
    probabilities: Any,
    protected: str | Sequence[str],
    *,
    favourable: object,
    bins: int = 10,
    groups: GroupsOption = "each",
    weight: Any = None,
    missing: MissingOption = "ignore",
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Calibration:
    """Compare predictions with what happened, in each group: the mean probability with the observed share.

    `outcome` is what happened, and `probabilities` are those of the outcome `favourable`, one level: each is a column
    of the frame, or an array with one value per row. The result has the largest `gap` between two groups in observed
    share minus mean probability, and for each group its calibration `error` over `bins` of equal weight, with the error
    to expect by chance alone. The other options are as in `representation_rate`.
    """
    check_confidence(confidence)
    if not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}; pass the number of bins, at least 1, e.g. 10")
    compared = Comparison(protected, groups, weight, missing, domain, outcome=outcome, favourable=favourable)
    rows = compared.open(frame)
    codes, outcomes = rows.levels
    code = one_favourable(outcomes, favourable)
    chance = probabilities_of(outcome_column(rows.frame, probabilities, what="probabilities"))
    scored = codes == code, chance, quantile_bins(chance, rows.weights, bins)
    groupings = [_calibrate(*scored, compared.group(rows, columns), confidence) for columns in compared.groupings]
    by_surplus = attrgetter("surplus")
    extremes = [(min(found, key=by_surplus), max(found, key=by_surplus)) for found, _ in groupings]
    lowest, highest = max(extremes, key=lambda pair: pair[1].surplus - pair[0].surplus)
    gap = highest.surplus - lowest.surplus
    return Calibration(
        gap,
        widened(difference_ends([surpluses for _, surpluses in groupings], confidence), gap),
        Pair(lowest.columns, outcomes[code], lowest.group, highest.group),
        tuple(group for found, _ in groupings for group in found),
    )


def quantile_bins(score: Reals, weights: Reals, bins: int) -> Codes:
    """Bin of each row, so that all bins have about the same weight; equal scores share a bin, and bins may be empty.

    >>> quantile_bins(np.array([0.1, 0.2, 0.2, 0.3]), np.ones(4), 2)
    array([0, 0, 0, 1])
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weights[order])
    wanted = cumulative[-1] * np.arange(1, bins) / bins * (1 - 1e-12)  # bins must not hang on how weights add up
    return np.searchsorted(score[order][np.searchsorted(cumulative, wanted)], score)


def _calibrate(
    positive: Mask, chance: Reals, bin_of: Codes, rows: GroupedRows, confidence: float
) -> tuple[list[GroupCalibration], Compared]:
    """The calibration of every group that has weight, and their surpluses as they are compared."""
    sums = WeightSums.of_positives(positive, rows.group, rows.weights, len(rows.labels))
    counts = sums.outcomes_against_others()[0, :]
    low, high = share_interval(counts, confidence)
    groups, scored = [], {}
    for number in np.flatnonzero(sums.weight.sum(axis=0)):
        own = rows.group == number
        weights, bins = rows.weights[own], bin_of[own]
        scored[number] = happened, promised, _ = positive[own], chance[own], weights
        mass = float(weights.sum())
        surpluses = tally(bins, weights * (happened - promised), 0)
        # If the probabilities were exact, a bin's surplus would be nearly normal, and E|x| = σ·√(2/π).
        variance = tally(bins, weights**2 * promised * (1 - promised), 0)
        groups.append(
            GroupCalibration(
                rows.columns,
                rows.labels[number],
                predicted=float(weights @ promised) / mass,
                observed=float(weights @ happened) / mass,
                count=len(weights),
                interval=(float(low[number]), float(high[number])),
                error=float(np.abs(surpluses).sum()) / mass,
                by_chance=float(np.sqrt(variance * 2 / np.pi).sum()) / mass,
            )
        )
    return groups, compared_surpluses(counts[list(scored)], list(scored.values()))


def compared_surpluses(counts: EffectiveCounts, rows: Sequence[ScoredRows]) -> Compared:
    """The surpluses of groups as they are compared, given the effective counts of the outcome and the rows of each.

    If the probabilities predict the outcome, the surplus varies less than the observed share: counts become larger. If
    they vary for no reason, it varies more: this is added. Variances are linearised (Taylor).
    """
    both = [_variances(counts[..., group], *part) for group, part in enumerate(rows)]
    factors, added = (np.stack(part, axis=-1) for part in zip(*both, strict=True))
    expected = np.stack([weighted_mean(chance, weights) for _, chance, weights in rows], axis=-1)
    return Compared(counts.scaled(factors), expected=expected, added=added)


def _variances(counts: EffectiveCounts, positive: Mask, chance: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """How many times as many rows the probabilities are worth, and the variance that they add."""
    # Linearised variance Σw²(x − x̄)² / (Σw)² of a weighted mean x̄.
    deviations = (weights * (x - weighted_mean(x, weights)[..., np.newaxis]) for x in (positive - chance, positive))
    surplus, share = ((part**2).sum(axis=-1) / weights.sum(axis=-1) ** 2 for part in deviations)
    half_a_row_more = EffectiveCounts(counts.positives + 0.5, counts.negatives + 0.5, counts.weight_ratio)
    reference = half_a_row_more.rates * (1 - half_a_row_more.rates) / half_a_row_more.sizes
    # At least what exact probabilities would leave, in case few rows happen to agree.
    mean = weighted_mean(chance, weights)
    unexplained = (chance * (1 - chance)).mean(axis=-1) / np.maximum(mean * (1 - mean), 1e-300)
    left = np.clip((reference + surplus - share) / reference, np.clip(unexplained, 1e-9, 1.0), 1.0)
    freedom = effective_rows(weights.sum(axis=-1), (weights**2).sum(axis=-1)) - 1
    wider = (freedom + 1) / np.maximum(freedom - 2, 0.5)  # like Student's t, because the variance is estimated
    return 1 / left, np.maximum(surplus - share, 0.0) * wider


def weighted_mean(values: Reals | Mask, weights: Reals) -> Reals:
    """Weighted mean of rows along the last axis."""
    return np.asarray((weights * values).sum(axis=-1) / weights.sum(axis=-1))
