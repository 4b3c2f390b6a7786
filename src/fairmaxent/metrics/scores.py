"""Scores: how many standard errors an estimate lies above a hypothesis about rates.

The variance is the one that the hypothesis implies, with the remaining unknown rate at its likeliest value: Wilson's
score for one share, Koopman's and Miettinen and Nurminen's for a ratio and a difference of two rates. With few rows the
score exaggerates in one direction, and the root of the likelihood ratio does in the other, so the more cautious of the
two counts, reduced a little more if counts are small; with many rows all agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.metrics.effective_counts import EffectiveCounts

# Chosen by enumeration of all samples: the smallest that covers in every cell of benchmarks/coverage.py.
_DISCRETENESS = 0.2
_STEPS = 4  # of Fisher scoring; unweighted rows need none

Working = tuple[Reals, Reals]  # rates and sizes of unweighted rows that tell the same about rates near a hypothesis


def share_score(counts: EffectiveCounts, share: Reals) -> Reals:
    """Standard errors by which a share lies above this one."""
    rates, sizes = counts.seen_from(share)
    return _cautious(rates - share, share * (1 - share) / sizes, counts.deviance(share), counts.sparsity)


def ratio_score(first: EffectiveCounts, second: EffectiveCounts, ratio: Reals) -> Reals:
    """Standard errors by which p₁ / p₂ lies above a ratio ρ; under the hypothesis p₁ = ρ p₂."""

    def likeliest(one: Working, other: Working) -> tuple[Reals, Reals]:
        rate = np.clip(_likeliest_of_ratio(one, other, ratio), 0.0, np.minimum(1.0, 1 / ratio))
        return ratio * rate, rate

    return _two_rates(first, second, likeliest, (ratio, 0.0), 0.0)


def difference_score(
    first: EffectiveCounts, second: EffectiveCounts, difference: Reals, added: Reals | float = 0.0
) -> Reals:
    """Standard errors by which p₁ − p₂ lies above a difference δ; under the hypothesis p₁ = p₂ + δ.

    `added` is variance that does not come from the two rates.
    """
    delta = np.clip(difference, -1.0, 1.0)

    def likeliest(one: Working, other: Working) -> tuple[Reals, Reals]:
        bounds = np.maximum(delta, 0.0), np.minimum(1.0, 1 + delta)
        rate = np.clip(_likeliest_of_difference(one, other, delta), *bounds)
        return rate, np.clip(rate - delta, 0.0, 1.0)

    return _two_rates(first, second, likeliest, (1.0, difference), added)


def _likeliest_of_ratio(one: Working, other: Working, ratio: Reals) -> Reals:
    """p₂ of greatest likelihood given p₁ / p₂: the smaller root of a quadratic (Koopman 1984)."""
    positives = one[0] * one[1] + other[0] * other[1]
    linear = ratio * (one[1] + other[0] * other[1]) + other[1] + one[0] * one[1]
    root = np.sqrt(np.maximum(linear**2 - 4 * ratio * (one[1] + other[1]) * positives, 0.0))
    return np.asarray(2 * positives / (linear + root))


def _likeliest_of_difference(one: Working, other: Working, delta: Reals) -> Reals:
    """p₁ of greatest likelihood given p₁ − p₂: a root of a cubic, in closed form (Farrington and Manning 1990)."""
    theta = other[1] / one[1]
    a = 1 + theta
    b = -(1 + theta + one[0] + theta * other[0] + delta * (theta + 2))
    c = delta**2 + delta * (2 * one[0] + theta + 1) + one[0] + theta * other[0]
    d = -one[0] * delta * (1 + delta)
    half = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    radius = np.copysign(np.sqrt(np.maximum(b**2 / (9 * a**2) - c / (3 * a), 0.0)), half)
    cosine = np.divide(half, radius**3, out=np.zeros_like(half), where=np.abs(radius) > 1e-100)
    return np.asarray(2 * radius * np.cos((np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3) - b / (3 * a))


def _two_rates(
    first: EffectiveCounts,
    second: EffectiveCounts,
    likeliest: Callable[[Working, Working], tuple[Reals, Reals]],
    hypothesis: tuple[Reals | float, Reals | float],
    added: Reals | float,
) -> Reals:
    """Score of p₁ − factor · p₂ − δ, the hypothesis being (factor, δ), given how to find the likeliest two rates."""
    one, other = likeliest((first.rates, first.sizes), (second.rates, second.sizes))
    if (first.weight_ratio != 1).any() or (second.weight_ratio != 1).any():
        for _ in range(_STEPS):
            one, other = likeliest(first.seen_from(one), second.seen_from(other))
    factor, delta = hypothesis
    (rate, size), (other_rate, other_size) = first.seen_from(one), second.seen_from(other)
    variance = one * (1 - one) / size + factor**2 * other * (1 - other) / other_size
    deviance = first.deviance(one) + second.deviance(other)
    distance = rate - factor * other_rate - delta
    return _cautious(distance, variance, deviance, first.sparsity + second.sparsity, added)


def _cautious(distance: Reals, variance: Reals, deviance: Reals, sparsity: Reals, added: Reals | float = 0.0) -> Reals:
    """The smaller of the score and the root of the likelihood ratio, reduced if counts are small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_error = np.fmax(variance, distance**2 / deviance) + added
        score = np.where(distance == 0, 0.0, distance / np.sqrt(squared_error))
    return np.asarray(score / np.sqrt(1 + _DISCRETENESS * sparsity))
