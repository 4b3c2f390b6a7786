"""Calibration by group: whether a probability means the same for everybody.

Probabilities p of an outcome y are calibrated in a group if, of its people with p = 0.3, three in ten have y. The
observed minus the predicted rate, P(Y = y | g) − the mean of p in g, is the group's *surplus*; the *gap* is the largest
difference between two groups' surpluses, and 0 means no difference. Its interval allows for every pair of groups at
once.

A group's *expected calibration error* is |P(Y = y | bin) − the mean of p in the bin|, averaged over bins. The bins have
equal weight over all rows together, so that a bin means the same in each group. The error is never negative: chance
alone makes it positive, and more so in small groups. `by_chance` is its mean if the probabilities were exactly right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows
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
class Bin:
    """Rows with probabilities from `lowest` to `highest`: their mean, the share with the outcome, and its interval."""

    lowest: float
    highest: float
    predicted: float
    observed: float
    count: int
    interval: Interval


@dataclass(frozen=True)
class GroupCalibration:
    """One group: mean probability, share with the outcome and its interval, expected calibration error, bins."""

    columns: tuple[str, ...]
    group: Label
    predicted: float
    observed: float
    count: int
    interval: Interval
    error: float
    by_chance: float
    bins: tuple[Bin, ...]

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
    rows = compared.open(frame, outcome_is="outcomes")
    codes, outcomes = rows.levels
    code = one_favourable(outcomes, favourable)
    chance = probabilities_of(outcome_column(rows.frame, probabilities, what="probabilities"))
    scored = _Scored(codes == code, chance, rows.weights, quantile_bins(chance, rows.weights, bins))
    groupings = [_calibrate(scored, compared.group(rows, columns), confidence) for columns in compared.groupings]
    return _widest(groupings, outcomes[code], confidence)


# ---------------------------------------------------------------- each group


def quantile_bins(score: Reals, weights: Reals, bins: int) -> Codes:
    """Bin of each row, so that all bins have about the same weight; equal scores share a bin, and bins may be empty.

    >>> quantile_bins(np.array([0.1, 0.2, 0.2, 0.3]), np.ones(4), 2)
    array([0, 0, 0, 1])
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weights[order])
    wanted = cumulative[-1] * np.arange(1, bins) / bins * (1 - 1e-12)  # bins must not hang on how weights add up
    return np.searchsorted(score[order][np.searchsorted(cumulative, wanted)], score)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Rows with a probability: whether they have the outcome, their weights, and their bins."""

    positive: Mask
    chance: Reals
    weights: Reals
    bin_of: Codes

    def only(self, rows: Mask) -> _Scored:
        return _Scored(self.positive[rows], self.chance[rows], self.weights[rows], self.bin_of[rows])

    @property
    def mass(self) -> float:
        return float(self.weights.sum())

    def mean(self, values: Reals | Mask) -> float:
        return float(self.weights @ values) / self.mass

    def counts(self, part: Codes, count: int) -> EffectiveCounts:
        """Effective counts of the outcome in each part of the rows."""
        return WeightSums.of_positives(self.positive, part, self.weights, count).outcomes_against_others()[0, :]

    def error(self) -> float:
        """Expected calibration error."""
        return float(np.abs(tally(self.bin_of, self.weights * (self.positive - self.chance), 0)).sum()) / self.mass

    def error_by_chance(self) -> float:
        """Mean error if the probabilities were exact: a bin's surplus is nearly normal, and E|x| = σ·√(2/π)."""
        variance = tally(self.bin_of, self.weights**2 * self.chance * (1 - self.chance), 0)
        return float(np.sqrt(variance * 2 / np.pi).sum()) / self.mass

    def bins(self, confidence: float) -> Iterator[Bin]:
        """The bins that have weight."""
        low, high = share_interval(self.counts(self.bin_of, int(self.bin_of.max()) + 1), confidence)
        for code in np.unique(self.bin_of):
            part = self.only(self.bin_of == code)
            if part.mass > 0:
                yield Bin(
                    lowest=float(part.chance.min()),
                    highest=float(part.chance.max()),
                    predicted=part.mean(part.chance),
                    observed=part.mean(part.positive),
                    count=len(part.chance),
                    interval=(float(low[code]), float(high[code])),
                )


CalibratedGroups = tuple[list[GroupCalibration], Compared]  # and their surpluses as they are compared


def _calibrate(scored: _Scored, rows: GroupedRows, confidence: float) -> CalibratedGroups:
    """The calibration of every group that has weight."""
    scored = replace(scored, weights=rows.weights)
    counts = scored.counts(rows.group, len(rows.labels))
    low, high = share_interval(counts, confidence)
    parts = {number: scored.only(rows.group == number) for number in range(len(rows.labels))}
    parts = {number: part for number, part in parts.items() if part.mass > 0}
    groups = [
        GroupCalibration(
            rows.columns,
            rows.labels[number],
            predicted=part.mean(part.chance),
            observed=part.mean(part.positive),
            count=len(part.chance),
            interval=(float(low[number]), float(high[number])),
            error=part.error(),
            by_chance=part.error_by_chance(),
            bins=tuple(part.bins(confidence)),
        )
        for number, part in parts.items()
    ]
    scored_rows = [(part.positive, part.chance, part.weights) for part in parts.values()]
    return groups, compared_surpluses(counts[list(parts)], scored_rows)


def _widest(groupings: list[CalibratedGroups], outcome: object, confidence: float) -> Calibration:
    """Take the widest gap between two groups of the same columns."""
    by_surplus = attrgetter("surplus")
    extremes = [(min(groups, key=by_surplus), max(groups, key=by_surplus)) for groups, _ in groupings]
    lowest, highest = max(extremes, key=lambda pair: pair[1].surplus - pair[0].surplus)
    gap = highest.surplus - lowest.surplus
    return Calibration(
        gap,
        widened(difference_ends([compared for _, compared in groupings], confidence), gap),
        Pair(lowest.columns, outcome, lowest.group, highest.group),
        tuple(group for groups, _ in groupings for group in groups),
    )


# ---------------------------------------------------------------- how sure a surplus is


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
    surplus, share = (variance_of_mean(values, weights) for values in (positive - chance, positive))
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


def variance_of_mean(values: Reals | Mask, weights: Reals) -> Reals:
    """Linearised variance Σw²(x − x̄)² / (Σw)² of a weighted mean x̄, of rows along the last axis."""
    deviations = weights * (values - weighted_mean(values, weights)[..., np.newaxis])
    return np.asarray((deviations**2).sum(axis=-1) / weights.sum(axis=-1) ** 2)
