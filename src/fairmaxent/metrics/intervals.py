"""Confidence intervals of shares, and of ratios and differences between groups.

An interval holds every value that the rows do not contradict. It inverts a *score*
(Wilson; Koopman; Miettinen and Nurminen), the standard errors by which an estimate lies
above a hypothesis, or the root of the likelihood ratio if that is more cautious. What
is estimated is γ = max |λ| over pairs of groups, λ being log P(a) / P(b) or a
difference. The rows contradict a γ if some pair lies too far beyond it, or every pair
too far within it. Only the former needs an allowance for the number of pairs: of k
groups, at most ⌊k² / 4⌋ pairs can reach γ together, and only if it is about 0. So an
interval covers as often as stated, less at most two percent where few rows make it
jump, and of many groups more often: one group that truly differs cannot be told from
the unluckiest of many, so that the far end has to allow for it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fairmaxent.data.table import Axes, Codes, Mask, Reals
from fairmaxent.errors import checked_number
from fairmaxent.metrics.effective_counts import EffectiveCounts

Interval = tuple[float, float]
Ends = tuple[Reals, Reals]  # low and high, of each group or sample
# rates and sizes of unweighted rows that tell the same about rates near a hypothesis
Working = tuple[Reals, Reals]
# the rates that a hypothesis allows
Likeliest = Callable[[Working, Working], Working]
Real = Reals | float
Comparisons = Sequence["Compared"]
Score = Callable[[Reals], Reals]  # of every pair (last axis), at a hypothesised λ

# Chosen by enumeration of all samples: the smallest that covers in every cell of
# benchmarks/coverage.py.
_DISCRETENESS = 0.2
_TINY = 1e-9  # people, where there are none
_STEPS = 4  # of Fisher scoring; unweighted rows need none
_LARGEST_LOG_RATIO = 30.0  # a ratio of 1e-13 counts as zero
_PRECISION = 1e-11  # of the ends, as a part of their range
_EXTREME_GROUPS = 24  # of each kind; of more groups the others cannot set an end


@dataclass(frozen=True, eq=False)
class Compared:
    """Groups (last axis) whose rates or surpluses are compared with each other.

    Rates by their ratios, surpluses by their differences.

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
        return self.counts.positives.shape[-1]

    def score(self, confidence: float) -> Score:
        """Score of each pair: of a log ratio of rates, or a difference of surpluses."""
        expected = self._expected
        first, second = _pairs(_extreme_groups(self.counts, expected, confidence))
        one = self.counts[..., first]
        other = self.counts[..., second]
        if self.expected is not None:
            shift = expected[..., first] - expected[..., second]
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
        return lambda log_ratio: exact_score(among_both, 1 / (1 + np.exp(-log_ratio)))

    def farthest(self, confidence: float) -> Reals:
        """Largest difference that exact intervals of all rates together allow."""
        low, high = exact_interval(self.counts, confidence ** (1 / self.groups))
        low = low - self._expected
        high = high - self._expected
        first, second = _pairs(np.arange(self.groups))
        one_above = high[..., first] - low[..., second]
        other_above = high[..., second] - low[..., first]
        deviation = np.sqrt(self._added(first, second))
        added = deviate_of(confidence) * deviation
        apart = np.maximum(one_above, other_above) + added
        return apart.max(axis=-1, initial=0.0)

    @property
    def _expected(self) -> Reals:
        if self.expected is None:
            return np.zeros(self.groups)
        return self.expected

    def _added(self, first: Codes, second: Codes) -> Reals:
        if self.added is None:
            return np.zeros(())
        return self.added[..., first] + self.added[..., second]


@dataclass(frozen=True, eq=False)
class Surpluses:
    """What rates of groups (last axis) are compared with, if by differences.

    ``factors``: how many times their rows they are worth.
    """

    expected: Reals
    factors: Reals
    added: Reals

    def compared(self, counts: EffectiveCounts, chosen: Any = ...) -> Compared:
        """Some groups, by their surpluses."""
        return Compared(
            counts.times(self.factors[chosen]),
            expected=self.expected[chosen],
            added=self.added[chosen],
        )


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


def share_interval(counts: EffectiveCounts, confidence: float) -> Ends:
    """Interval of a group's rate, or another share, never beyond the exact one."""
    limit = deviate_of(confidence)
    shape = (2, *counts.positives.shape)
    limits = np.full(shape, limit)
    limits[1] = -limit
    low, high = _first(lambda share: share_score(counts, share) <= limits, shape, 1.0)
    exact_low, exact_high = exact_interval(counts, confidence)
    return np.maximum(low, exact_low), np.minimum(high, exact_high)


def exact_interval(counts: EffectiveCounts, confidence: float) -> Ends:
    """The exact interval of shares (Clopper and Pearson).

    Its ends make as many rows with the outcome, or as few, as unlikely as wanted.
    """
    from scipy.special import betaincinv  # slow to import

    positives = counts.positives
    negatives = counts.negatives
    tail = (1 - confidence) / 2
    low = betaincinv(np.maximum(positives, 1e-9), negatives + 1, tail)
    high = betaincinv(positives + 1, np.maximum(negatives, 1e-9), 1 - tail)
    low = np.where(positives > 0, low, 0.0)
    high = np.where(negatives > 0, high, 1.0)
    return counts.rates_at(low), counts.rates_at(high)


def widened(ends: Ends, value: float) -> Interval:
    """Ends as an interval that holds the value itself."""
    return min(float(ends[0]), value), max(float(ends[1]), value)


def ratio_ends(comparisons: Comparisons, confidence: float) -> Ends:
    """Ends of the smallest ratio; axes before the groups are separate samples."""
    near, far = _distance_ends(comparisons, _LARGEST_LOG_RATIO, confidence)
    return np.where(far < _LARGEST_LOG_RATIO, np.exp(-far), 0.0), np.exp(-near)


def difference_ends(comparisons: Comparisons, confidence: float) -> Ends:
    """Ends of the largest difference; axes before the groups are separate samples."""
    near, far = _distance_ends(comparisons, 2.0, confidence)
    return near, np.minimum(far, _farthest(comparisons, confidence))


def worst_ends(comparisons: Comparisons, confidence: float) -> Ends:
    """Ends of the smallest ratio, or of the largest difference of surpluses."""
    if comparisons and comparisons[0].expected is not None:
        return difference_ends(comparisons, confidence)
    return ratio_ends(comparisons, confidence)


def chance_to_tell(comparisons: Comparisons, limit: float, confidence: float) -> float:
    """The chance that an interval lies on one side of a limit, if these are the rates.

    A score varies by a standard error about that of the rates.
    """
    from scipy.special import ndtr  # slow to import

    distance = limit if comparisons[0].expected is not None else -math.log(limit)
    scores = [compared.score(confidence) for compared in comparisons]
    above, below, width = _sides(scores, np.asarray(distance))
    beyond = np.interp(width, *_allowed_beyond(comparisons, confidence))
    within = deviate_of(confidence)
    # All pairs must lie within, on both sides; one that lies beyond is enough.
    kept = 1 - ndtr(within - above).sum() - ndtr(within - below).sum()
    broken = ndtr(-beyond - np.minimum(above, below)).max()
    return float(max(kept, 0.0) + broken)


def _farthest(comparisons: Comparisons, confidence: float) -> Reals:
    found = [compared.farthest(confidence) for compared in comparisons]
    return np.max(found, axis=0)


def _distance_ends(comparisons: Comparisons, largest: float, confidence: float) -> Ends:
    """Ends of γ = max |λ| over all pairs of groups; 0 if none could differ."""
    several = [compared for compared in comparisons if compared.groups > 1]
    if not several:
        return np.zeros(()), np.zeros(())
    samples = several[0].counts.positives.shape[:-1]
    near, far = _first(
        _reached(several, confidence),
        (2, *samples),
        largest,
        pairs=_count_pairs(several),
    )
    return near, far


def _count_pairs(comparisons: Comparisons) -> int:
    counted = [compared.groups for compared in comparisons if not compared.repeats]
    return sum(k * (k - 1) // 2 for k in counted)


def _reached(comparisons: Comparisons, confidence: float) -> Callable[[Reals], Mask]:
    """Whether a distance is at least the near end, and whether it is the far one."""
    scores = [compared.score(confidence) for compared in comparisons]
    separations, limits = _allowed_beyond(comparisons, confidence)
    within = deviate_of(confidence)

    def passed(distance: Reals) -> Mask:
        above, below, width = _sides(scores, distance)
        # How far the pair that lies least within ±γ is within it.
        inside = np.minimum(above, below)
        least = inside.argmin(axis=-1)[..., None]
        score = np.take_along_axis(inside, least, -1)[..., 0]
        separation = np.take_along_axis(width, least, -1)[..., 0]
        beyond = score[:, 0] < -np.interp(separation[:, 0], separations, limits)
        # The near end is where no pair lies too far beyond any more, the far end where
        # every pair lies too far within.
        return np.stack([~beyond, score[:, 1] > within], axis=1)

    return passed


def _sides(scores: Sequence[Score], distance: Reals) -> tuple[Reals, Reals, Reals]:
    """How far each pair lies above −γ, and below γ, and how wide ±γ is."""
    at = distance[..., None]
    above = np.concatenate([one(-at) for one in scores], -1)
    below = -np.concatenate([one(at) for one in scores], -1)
    with np.errstate(invalid="ignore"):
        width = np.nan_to_num(above + below, nan=np.inf)
    return above, below, width


def _allowed_beyond(comparisons: Comparisons, confidence: float) -> Ends:
    """How far a pair may lie beyond γ, for each distance between −γ and γ."""
    counted = [compared.groups for compared in comparisons if not compared.repeats]
    at_once = sum(k**2 // 4 for k in counted)
    return _limits_beyond(1 - confidence, at_once, _count_pairs(comparisons))


@lru_cache
def _limits_beyond(error: float, at_once: int, pairs: int) -> Ends:
    """Standard errors c that a pair may lie beyond γ.

    For each number w of standard errors between −γ and γ.
    """
    # A pair at γ lies beyond by more than c with probability Φ(−c) + Φ(−c − w), and
    # within by more than z, where Φ(−z) = error / 2, with probability Φ(w − z) − Φ(z).
    # Either a single pair is at γ, or as many as possible are and the others lie in the
    # middle; the worse of the two cases counts.
    from scipy.special import ndtr  # slow to import

    w = np.linspace(0.0, 12.0, 241)
    z = normal_quantile(1 - error / 2)
    within = np.maximum(ndtr(w - z) - (1 - error / 2), 0.0)

    def passed(c: Reals) -> Mask:
        beyond = ndtr(-c) + ndtr(-c - w)
        together = at_once * beyond + 2 * (pairs - at_once) * ndtr(-c - w / 2)
        return np.maximum(together, beyond + within) <= error

    return w, _first(passed, w.shape, 40.0)


def _first(
    passed: Callable[[Reals], Mask],
    shape: Axes,
    largest: float,
    *,
    pairs: int = 1,
) -> Reals:
    """Smallest value to `largest` from which on all pass; else `largest`."""
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
    """The groups whose rates may be lowest or highest; of few groups, all.

    Only they can set the end of a pair.
    """
    count = counts.positives.shape[-1]
    if count <= 4 * _EXTREME_GROUPS or counts.positives.ndim > 1:
        return np.arange(count)
    chosen = []
    for end in share_interval(counts, confidence):
        order = np.argsort(end - expected)
        chosen += [order[:_EXTREME_GROUPS], order[-_EXTREME_GROUPS:]]
    return np.unique(np.concatenate(chosen))


def deviate_of(confidence: float) -> float:
    """How many standard errors an interval reaches to either side."""
    return normal_quantile((1 + confidence) / 2)


def normal_quantile(probability: float) -> float:
    """The standard normal deviate that is not passed with this probability."""
    from statistics import NormalDist  # slow to import

    return NormalDist().inv_cdf(probability)


def share_score(counts: EffectiveCounts, share: Reals) -> Reals:
    """Standard errors by which a share lies above this one."""
    rates, sizes = counts.seen_from(share)
    return _cautious(
        distance=rates - share,
        variance=share * (1 - share) / sizes,
        deviance=counts.deviance(share),
        sparsity=counts.sparsity,
    )


def exact_score(counts: EffectiveCounts, share: Reals) -> Reals:
    """As many standard errors as an exact tail of the binomial is worth.

    So a share that is true is excluded no more often than asked.
    """
    from scipy.special import betainc, ndtri  # slow to import

    chances = counts.chances(share)
    positives = np.maximum(counts.positives, _TINY)
    negatives = np.maximum(counts.negatives, _TINY)
    as_many = betainc(positives, counts.negatives + 1, chances)
    as_few = betainc(negatives, counts.positives + 1, 1 - chances)
    return np.maximum(-ndtri(as_many), 0.0) + np.minimum(ndtri(as_few), 0.0)


def ratio_score(first: EffectiveCounts, second: EffectiveCounts, ratio: Reals) -> Reals:
    """Standard errors by which p₁ / p₂ lies above ρ, under the hypothesis p₁ = ρ p₂."""

    def likeliest(one: Working, other: Working) -> Ends:
        # The smaller root of a quadratic (Koopman 1984).
        rate, size = one
        other_rate, other_size = other
        having = rate * size
        other_having = other_rate * other_size
        positives = having + other_having
        linear = ratio * (size + other_having) + other_size + having
        discriminant = linear**2 - 4 * ratio * (size + other_size) * positives
        root = np.sqrt(np.maximum(discriminant, 0.0))
        second_rate = 2 * positives / (linear + root)
        second_rate = np.clip(second_rate, 0.0, np.minimum(1.0, 1 / ratio))
        return ratio * second_rate, second_rate

    return _two_rates(
        first,
        second,
        likeliest,
        factor=ratio,
        delta=0.0,
        added=0.0,
    )


def difference_score(
    first: EffectiveCounts,
    second: EffectiveCounts,
    difference: Reals,
    added: Real = 0.0,
) -> Reals:
    """Standard errors by which p₁ − p₂ lies above a difference δ.

    `added` is variance beyond that of the two rates.
    """
    possible = np.clip(difference, -1.0, 1.0)  # two rates differ by 1 at most

    def likeliest(one: Working, other: Working) -> Ends:
        rate = _likeliest_of_difference(one, other, possible)
        rate = np.clip(rate, np.maximum(possible, 0.0), np.minimum(1.0, 1 + possible))
        return rate, np.clip(rate - possible, 0.0, 1.0)

    return _two_rates(
        first,
        second,
        likeliest,
        factor=1.0,
        delta=difference,
        added=added,
    )


def _likeliest_of_difference(one: Working, other: Working, delta: Reals) -> Reals:
    """Likeliest p₁ given p₁ − p₂: a cubic's root (Farrington and Manning 1990)."""
    p, size = one
    q, other_size = other
    theta = other_size / size
    a = 1 + theta
    b = -(1 + theta + p + theta * q + delta * (theta + 2))
    c = delta**2 + delta * (2 * p + theta + 1) + p + theta * q
    d = -p * delta * (1 + delta)
    half = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    radius = np.sqrt(np.maximum(b**2 / (9 * a**2) - c / (3 * a), 0.0))
    radius = np.copysign(radius, half)
    is_apart = np.abs(radius) > 1e-100
    cosine = np.divide(
        half,
        radius**3,
        out=np.zeros_like(half),
        where=is_apart,
    )
    angle = (np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3
    return 2 * radius * np.cos(angle) - b / (3 * a)


def _two_rates(
    first: EffectiveCounts,
    second: EffectiveCounts,
    likeliest: Likeliest,
    factor: Real,
    delta: Real,
    added: Real,
) -> Reals:
    """Score of p₁ − factor · p₂ − δ, which is 0 under the hypothesis.

    Given how to find the likeliest two rates.
    """
    one, other = likeliest((first.rates, first.sizes), (second.rates, second.sizes))
    if (first.weight_ratio != 1).any() or (second.weight_ratio != 1).any():
        for _ in range(_STEPS):
            one, other = likeliest(first.seen_from(one), second.seen_from(other))
    rate, size = first.seen_from(one)
    other_rate, other_size = second.seen_from(other)
    return _cautious(
        distance=rate - factor * other_rate - delta,
        variance=one * (1 - one) / size + factor**2 * other * (1 - other) / other_size,
        deviance=first.deviance(one) + second.deviance(other),
        sparsity=first.sparsity + second.sparsity,
        added=added,
    )


def _cautious(
    distance: Reals,
    variance: Reals,
    deviance: Reals,
    sparsity: Reals,
    added: Real = 0.0,
) -> Reals:
    """The smaller of the score and the root of the likelihood ratio.

    Reduced if counts are small.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_error = np.fmax(variance, distance**2 / deviance) + added
        score = np.where(distance == 0, 0.0, distance / np.sqrt(squared_error))
    return score / np.sqrt(1 + _DISCRETENESS * sparsity)
