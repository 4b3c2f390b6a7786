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

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption
from fairmaxent.data.table import tally
from fairmaxent.data.weights import effective_rows
from fairmaxent.errors import InputError
from fairmaxent.metrics.group_rates import Pair, group_text, pair_text
from fairmaxent.metrics.groups import (
    groupings_of,
    groups_of,
    levels_of,
    one_favourable,
    open_sample,
    outcome_column,
    probabilities_of,
    refuse_protected,
)
from fairmaxent.metrics.intervals import (
    Interval,
    check_confidence,
    difference_interval,
    interval_text,
    normal_quantile,
    wilson_interval,
)
from fairmaxent.metrics.scorecard import calibration_errors, quantile_bins


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
    group: tuple[object, ...]
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

    @property
    def size(self) -> float:
        """Effective number of rows (Σw)² / Σw²."""
        return float(effective_rows(self.mass, float(self.weights @ self.weights)))

    def mean(self, values: Reals | Mask) -> float:
        return float(self.weights @ values) / self.mass

    def observed_interval(self, z: float) -> Interval:
        low, high = wilson_interval(np.array(self.mean(self.positive)), np.array(self.size), z)
        return float(low), float(high)

    def error(self) -> float:
        one_group = np.zeros(len(self.chance), dtype=np.intp)
        return float(calibration_errors(self.positive, self.chance, one_group, self.weights, self.bin_of, 1)[0])

    def error_by_chance(self) -> float:
        """Mean error if the probabilities were exact: a bin's surplus is nearly normal, and E|x| = σ·√(2/π)."""
        variance = tally(self.bin_of, self.weights**2 * self.chance * (1 - self.chance), 0)
        return float(np.sqrt(variance * 2 / np.pi).sum()) / self.mass

    def surplus_variance(self) -> float:
        """Variance of the surplus; at least what exact probabilities would give, in case few rows happen to agree."""
        surplus = self.positive - self.chance
        spread = self.mean((surplus - self.mean(surplus)) ** 2)
        freedom = self.size - 1
        return max(spread, self.mean(self.chance * (1 - self.chance))) / freedom if freedom > 1e-9 else np.inf


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
    domain: Domain | None = None,
    confidence: float = 0.95,
) -> Calibration:
    """Compare predictions with what happened, in each group: the mean probability with the observed share.

    `outcome` is what happened, and `probabilities` are those of the outcome `favourable`, one level: each is a column
    of the frame, or an array with one value per row. The result has the largest `gap` between two groups in observed
    share minus mean probability, and for each group its calibration `error` over `bins` of equal weight, with the error
    to expect by chance alone. A row whose outcome is missing counts as one without the favourable outcome. The other
    options are as in `representation_rate`.
    """
    check_confidence(confidence)
    if not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}; pass the number of bins, at least 1, e.g. 10")
    rows = open_sample(frame, weight)
    truth, outcomes = levels_of(outcome_column(rows.frame, outcome, what="outcomes"), domain)
    code = one_favourable(outcomes, favourable)
    chance = probabilities_of(outcome_column(rows.frame, probabilities, what="probabilities"))
    scored = _Scored(truth == code, chance, rows.weights, quantile_bins(chance, rows.weights, bins))
    z = normal_quantile((1 + confidence) / 2)
    calibrated = []
    for columns in groupings_of(protected, groups):
        refuse_protected(outcome, columns)
        group, labels = groups_of(rows.frame, columns, domain)
        for number, label in enumerate(labels):
            part = scored.only(group == number)
            if part.mass > 0:
                calibrated.append((_describe(part, columns, label, z), part.surplus_variance()))
    return _widest(calibrated, outcomes[code], confidence)


def _describe(rows: _Scored, columns: tuple[str, ...], group: tuple[object, ...], z: float) -> GroupCalibration:
    """The calibration of one group's rows, over all and bin by bin."""
    parts = [rows.only(rows.bin_of == code) for code in np.unique(rows.bin_of)]
    return GroupCalibration(
        columns,
        group,
        predicted=rows.mean(rows.chance),
        observed=rows.mean(rows.positive),
        count=len(rows.chance),
        interval=rows.observed_interval(z),
        error=rows.error(),
        by_chance=rows.error_by_chance(),
        bins=tuple(_bin(part, z) for part in parts if part.mass > 0),
    )


def _bin(rows: _Scored, z: float) -> Bin:
    return Bin(
        lowest=float(rows.chance.min()),
        highest=float(rows.chance.max()),
        predicted=rows.mean(rows.chance),
        observed=rows.mean(rows.positive),
        count=len(rows.chance),
        interval=rows.observed_interval(z),
    )


def _widest(calibrated: list[tuple[GroupCalibration, float]], outcome: object, confidence: float) -> Calibration:
    """Take the widest gap over all pairs of groups, given each group and the variance of its surplus."""
    groups = tuple(group for group, _ in calibrated)
    pairs = [(a, b) for a, b in combinations(calibrated, 2) if a[0].columns == b[0].columns]
    if not pairs:
        only = groups[0]
        return Calibration(0.0, (0.0, 0.0), Pair(only.columns, outcome, only.group, only.group), groups)
    gaps = np.array([b.surplus - a.surplus for (a, _), (b, _) in pairs])
    variances = np.array([a + b for (_, a), (_, b) in pairs])
    widest = int(np.abs(gaps).argmax())
    first, second = (group for group, _ in pairs[widest])
    lowest, highest = (first, second) if gaps[widest] >= 0 else (second, first)
    worst = Pair(first.columns, outcome, lowest.group, highest.group)
    return Calibration(float(abs(gaps[widest])), difference_interval(gaps, variances, confidence), worst, groups)
