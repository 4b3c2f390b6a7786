"""Confidence intervals of shares, of ratios between groups, and of differences between
groups.

An interval holds every value that the rows do not contradict. It inverts a *score*
(Wilson; Koopman; Miettinen and Nurminen), the standard errors by which an estimate lies
above a hypothesis, or the root of the likelihood ratio if that is more cautious. What
is estimated is γ = max |λ| over pairs of groups, λ being log P(a) / P(b) or a
difference. The rows contradict a γ if some pair lies too far beyond it, or every pair
too far within it. Only the former needs an allowance for the number of pairs: of k
groups, at most ⌊k² / 4⌋ pairs can reach γ together, and only if it is about 0. So an
interval covers at least as often as stated, and of many groups more often: one group
that truly differs cannot be told from the unluckiest of many, so that the far end has
to allow for it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals
from fairmaxent.errors import checked_number
from fairmaxent.metrics.effective_counts import EffectiveCounts

Interval = tuple[float, float]
# rates and sizes of unweighted rows that tell the same about rates near a hypothesis
Working = tuple[Reals, Reals]
# the rates that a hypothesis allows
Likeliest = Callable[[Working, Working], tuple[Reals, Reals]]
Real = Reals | float
Score = Callable[[Reals], Reals]  # of every pair (last axis), at a hypothesised λ

# Chosen by enumeration of all samples: the smallest that covers in every cell of
# benchmarks/coverage.py.
_DISCRETENESS = 0.2
_STEPS = 4  # of Fisher scoring; unweighted rows need none
_LARGEST_LOG_RATIO = 30.0  # a ratio of 1e-13 counts as zero
_PRECISION = 1e-11  # of the ends, as a part of their range
_EXTREME_GROUPS = 24  # of each kind; of more groups the others cannot set an end


@dataclass(frozen=True, eq=False)
class Compared:
    """Groups (last axis) that are compared with each other, by ratios of their rates or
    differences of their surpluses.

    A surplus is a rate minus the `expected` one; `added` is its variance beyond that of
    the rate.
    """

    counts: EffectiveCounts
    # of the same rows (multinomial), otherwise rates of separate rows (binomial)
    are_shares: bool = False
    # no new information: they are those of the second of two outcomes
    repeats: bool = False
    expected: Reals | None = None
    added: Reals | None = None

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.counts.positives.shape[-1])

    def score(self, confidence: float) -> Score:
        """Score of each pair of groups: of the log ratio of their rates, or of the
        difference of their surpluses.
        """
        if self.expected is None:
            base = np.zeros(self.groups)
        else:
            base = self.expected
        first, second = _pairs(_extreme_groups(self.counts, base, confidence))
        one = self.counts[..., first]
        other = self.counts[..., second]
        if self.expected is not None:
            shift = base[..., first] - base[..., second]
            added = self._added(first, second)
            return lambda difference: difference_score(
                one, other, difference + shift, added
            )
        if not self.are_shares:
            return lambda log_ratio: ratio_score(one, other, np.exp(log_ratio))
        # For the ratio of two shares, only the rows of these two groups matter: the
        # share of one among both.
        unit = (one.rates / one.positives) / (other.rates / other.positives)
        among_both = EffectiveCounts(one.positives, other.positives, unit)
        return lambda log_ratio: share_score(among_both, 1 / (1 + np.exp(-log_ratio)))

    def farthest(self, confidence: float) -> Reals:
        """Largest difference that exact intervals of all rates allow, all of which hold
        together.
        """
        if self.expected is None:
            expected = 0.0
        else:
            expected = self.expected
        low, high = (
            end - expected
            for end in exact_interval(self.counts, confidence ** (1 / self.groups))
        )
        first, second = _pairs(np.arange(self.groups))
        added = _normal_quantile((1 + confidence) / 2) * np.sqrt(
            self._added(first, second)
        )
        apart = np.maximum(
            high[..., first] - low[..., second], high[..., second] - low[..., first]
        )
        return np.asarray((apart + added).max(axis=-1, initial=0.0))

    def _added(self, first: Codes, second: Codes) -> Reals:
        if self.added is None:
            return np.zeros(())
        return np.asarray(self.added[..., first] + self.added[..., second])


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    checked_number(
        "confidence",
        confidence,
        "lie between 0 and 1, e.g. 0.95",
        lambda share: 0 < share < 1,
    )


def interval_text(interval: Interval | None) -> str:
    """An interval in words, to be put after its value; nothing for an exact value."""
    if interval is None:
        return ""
    return f" (between {interval[0]:.3f} and {interval[1]:.3f})"


def share_interval(counts: EffectiveCounts, confidence: float) -> tuple[Reals, Reals]:
    """Interval of the rate of each group, or of anything else that is a share; never
    beyond the exact interval.
    """
    sides = np.array([1.0, -1.0]).reshape(
        2, *[1] * counts.positives.ndim
    ) * _normal_quantile((1 + confidence) / 2)
    low, high = _first(
        lambda share: share_score(counts, share) <= sides,
        (2, *counts.positives.shape),
        1.0,
    )
    exact_low, exact_high = exact_interval(counts, confidence)
    return np.maximum(low, exact_low), np.minimum(high, exact_high)


def exact_interval(counts: EffectiveCounts, confidence: float) -> tuple[Reals, Reals]:
    """The shares that make as many rows with the outcome, or as few, as unlikely as
    this (Clopper and Pearson).
    """
    from scipy.special import betaincinv  # slow to import

    positives = counts.positives
    negatives = counts.negatives
    tail = (1 - confidence) / 2
    low = np.where(
        positives > 0, betaincinv(np.maximum(positives, 1e-9), negatives + 1, tail), 0.0
    )
    high = np.where(
        negatives > 0,
        betaincinv(positives + 1, np.maximum(negatives, 1e-9), 1 - tail),
        1.0,
    )
    return counts.rates_at(low), counts.rates_at(high)


def widened(ends: tuple[Reals, Reals], value: float) -> Interval:
    """Ends as an interval that holds the value itself."""
    return min(float(ends[0]), value), max(float(ends[1]), value)


def ratio_ends(
    comparisons: Sequence[Compared], confidence: float
) -> tuple[Reals, Reals]:
    """Ends of the smallest ratio over all comparisons; axes before the groups stand for
    separate samples.
    """
    near, far = _distance_ends(comparisons, _LARGEST_LOG_RATIO, confidence)
    return np.where(far < _LARGEST_LOG_RATIO, np.exp(-far), 0.0), np.exp(-near)


def difference_ends(
    comparisons: Sequence[Compared], confidence: float
) -> tuple[Reals, Reals]:
    """Ends of the largest difference over all comparisons; axes before the groups stand
    for separate samples.
    """
    near, far = _distance_ends(comparisons, 2.0, confidence)
    exact = np.max([compared.farthest(confidence) for compared in comparisons], axis=0)
    return near, np.minimum(far, exact)


def _distance_ends(
    comparisons: Sequence[Compared], largest: float, confidence: float
) -> tuple[Reals, Reals]:
    """Ends of γ = max |λ| over all pairs of groups; no groups that could differ, no
    distance.
    """
    several = [compared for compared in comparisons if compared.groups > 1]
    if not several:
        return np.zeros(()), np.zeros(())
    scores = [compared.score(confidence) for compared in several]
    counted = [compared.groups for compared in several if not compared.repeats]
    at_once = sum(k**2 // 4 for k in counted)
    pairs = sum(k * (k - 1) // 2 for k in counted)
    separations, limits = _limits_beyond(1 - confidence, at_once, pairs)
    within = _normal_quantile((1 + confidence) / 2)

    def passed(distance: Reals) -> Mask:
        at = distance[..., np.newaxis]
        below, above = (
            np.concatenate([one(sign * at) for one in scores], -1) for sign in (-1, 1)
        )
        # Of the pair that lies least within ±γ: how far within it lies, and how wide ±γ
        # is.
        inside = np.minimum(below, -above)
        with np.errstate(invalid="ignore"):
            width = np.nan_to_num(below - above, nan=np.inf)
        least = inside.argmin(axis=-1)[..., np.newaxis]
        score, separation = (
            np.take_along_axis(part, least, -1)[..., 0] for part in (inside, width)
        )
        beyond = score[:, 0] < -np.interp(separation[:, 0], separations, limits)
        # The near end is where no pair lies too far beyond any more, the far end where
        # every pair lies too far within.
        return np.stack([~beyond, score[:, 1] > within], axis=1)

    near, far = _first(
        passed, (2, *several[0].counts.positives.shape[:-1]), largest, pairs=pairs
    )
    return near, far


@lru_cache
def _limits_beyond(error: float, at_once: int, pairs: int) -> tuple[Reals, Reals]:
    """Standard errors c that a pair may lie beyond γ, for each number w of standard
    errors between −γ and γ.
    """
    # A pair at γ lies beyond by more than c with probability Φ(−c) + Φ(−c − w), and
    # within by more than z, where Φ(−z) = error / 2, with probability Φ(w − z) − Φ(z).
    # Either a single pair is at γ, or as many as possible are and the others lie in the
    # middle; the worse of the two cases counts.
    from scipy.special import ndtr  # slow to import

    w = np.linspace(0.0, 12.0, 241)
    within = np.maximum(
        ndtr(w - _normal_quantile(1 - error / 2)) - (1 - error / 2), 0.0
    )

    def passed(c: Reals) -> Mask:
        beyond = ndtr(-c) + ndtr(-c - w)
        together = at_once * beyond + 2 * (pairs - at_once) * ndtr(-c - w / 2)
        return np.asarray(np.maximum(together, beyond + within) <= error)

    return w, _first(passed, w.shape, 40.0)


def _first(
    passed: Callable[[Reals], Mask],
    shape: tuple[int, ...],
    largest: float,
    *,
    pairs: int = 1,
) -> Reals:
    """Smallest value from 0 to `largest` that passes, given that every larger one does
    too; else `largest`.
    """
    low = np.zeros(shape)
    high = np.full(shape, largest)
    # A few values cost as much as one and narrow faster; of many values, as few as
    # possible are computed.
    points = 40 if math.prod(shape) * pairs <= 200 else 2
    steps = np.arange(1, points + 1).reshape(-1, *[1] * len(shape)) / (points + 1)
    for _ in range(math.ceil(-math.log(_PRECISION) / math.log(points + 1))):
        failed = (~passed(low + steps * (high - low))).sum(axis=0)
        width = (high - low) / (points + 1)
        high = np.where(failed < points, low + (failed + 1) * width, high)
        low = low + failed * width
    return np.where(high == largest, largest, low)


def _pairs(groups: Codes) -> tuple[Codes, Codes]:
    """First and second group of every pair."""
    first, second = np.triu_indices(len(groups), 1)
    return groups[first], groups[second]


def _extreme_groups(
    counts: EffectiveCounts, expected: Reals, confidence: float
) -> Codes:
    """The groups whose rates may be lowest or highest: only they can set the end of a
    pair. With few groups, all.
    """
    count = counts.positives.shape[-1]
    if count <= 4 * _EXTREME_GROUPS or counts.positives.ndim > 1:
        return np.arange(count)
    orders = [np.argsort(end - expected) for end in share_interval(counts, confidence)]
    chosen = [
        part
        for order in orders
        for part in (order[:_EXTREME_GROUPS], order[-_EXTREME_GROUPS:])
    ]
    return np.unique(np.concatenate(chosen))


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(probability)


def share_score(counts: EffectiveCounts, share: Reals) -> Reals:
    """Standard errors by which a share lies above this one."""
    rates, sizes = counts.seen_from(share)
    return _cautious(
        rates - share,
        share * (1 - share) / sizes,
        counts.deviance(share),
        counts.sparsity,
    )


def ratio_score(first: EffectiveCounts, second: EffectiveCounts, ratio: Reals) -> Reals:
    """Standard errors by which p₁ / p₂ lies above a ratio ρ; under the hypothesis p₁ =
    ρ p₂.
    """

    def likeliest(one: Working, other: Working) -> tuple[Reals, Reals]:
        # The smaller root of a quadratic (Koopman 1984).
        positives = one[0] * one[1] + other[0] * other[1]
        linear = ratio * (one[1] + other[0] * other[1]) + other[1] + one[0] * one[1]
        root = np.sqrt(
            np.maximum(linear**2 - 4 * ratio * (one[1] + other[1]) * positives, 0.0)
        )
        rate = np.clip(2 * positives / (linear + root), 0.0, np.minimum(1.0, 1 / ratio))
        return ratio * rate, rate

    return _two_rates(first, second, likeliest, ratio, 0.0, 0.0)


def difference_score(
    first: EffectiveCounts,
    second: EffectiveCounts,
    difference: Reals,
    added: Real = 0.0,
) -> Reals:
    """Standard errors by which p₁ − p₂ lies above a difference δ; `added` is variance
    beyond that of the two rates.
    """
    delta = np.clip(difference, -1.0, 1.0)

    def likeliest(one: Working, other: Working) -> tuple[Reals, Reals]:
        bounds = np.maximum(delta, 0.0), np.minimum(1.0, 1 + delta)
        rate = np.clip(_likeliest_of_difference(one, other, delta), *bounds)
        return rate, np.clip(rate - delta, 0.0, 1.0)

    return _two_rates(first, second, likeliest, 1.0, difference, added)


def _likeliest_of_difference(one: Working, other: Working, delta: Reals) -> Reals:
    """p₁ of greatest likelihood given p₁ − p₂: a root of a cubic, in closed form
    (Farrington and Manning 1990).
    """
    theta = other[1] / one[1]
    a = 1 + theta
    b = -(1 + theta + one[0] + theta * other[0] + delta * (theta + 2))
    c = delta**2 + delta * (2 * one[0] + theta + 1) + one[0] + theta * other[0]
    d = -one[0] * delta * (1 + delta)
    half = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    radius = np.copysign(
        np.sqrt(np.maximum(b**2 / (9 * a**2) - c / (3 * a), 0.0)), half
    )
    cosine = np.divide(
        half, radius**3, out=np.zeros_like(half), where=np.abs(radius) > 1e-100
    )
    return np.asarray(
        2 * radius * np.cos((np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3)
        - b / (3 * a)
    )


def _two_rates(
    first: EffectiveCounts,
    second: EffectiveCounts,
    likeliest: Likeliest,
    factor: Real,
    delta: Real,
    added: Real,
) -> Reals:
    """Score of p₁ − factor · p₂ − δ, which is 0 under the hypothesis, given how to find
    the likeliest two rates.
    """
    one, other = likeliest((first.rates, first.sizes), (second.rates, second.sizes))
    if (first.weight_ratio != 1).any() or (second.weight_ratio != 1).any():
        for _ in range(_STEPS):
            one, other = likeliest(first.seen_from(one), second.seen_from(other))
    (rate, size), (other_rate, other_size) = (
        first.seen_from(one),
        second.seen_from(other),
    )
    variance = one * (1 - one) / size + factor**2 * other * (1 - other) / other_size
    deviance = first.deviance(one) + second.deviance(other)
    distance = rate - factor * other_rate - delta
    return _cautious(
        distance, variance, deviance, first.sparsity + second.sparsity, added
    )


def _cautious(
    distance: Reals,
    variance: Reals,
    deviance: Reals,
    sparsity: Reals,
    added: Real = 0.0,
) -> Reals:
    """The smaller of the score and the root of the likelihood ratio, reduced if counts
    are small.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_error = np.fmax(variance, distance**2 / deviance) + added
        score = np.where(distance == 0, 0.0, distance / np.sqrt(squared_error))
    return np.asarray(score / np.sqrt(1 + _DISCRETENESS * sparsity))
