"""Scores: how many standard errors an estimate lies above a hypothesis about rates.

The variance is the one that the hypothesis implies, with the remaining unknown rate at its likeliest value: Wilson's
score for one share, Koopman's and Miettinen and Nurminen's for a ratio and a difference of two rates. With few rows the
score exaggerates in one direction, and the root of the likelihood ratio does in the other, so the more cautious of the
two counts, reduced a little more if counts are small; with many rows all agree.
"""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.metrics.effective_counts import EffectiveCounts

# Chosen by enumeration of all samples (benchmarks/coverage.py): the smallest that covers in every cell.
_DISCRETENESS = 0.2


def share_score(counts: EffectiveCounts, share: Reals) -> Reals:
    """Standard errors by which a share lies above this one."""
    variance = share * (1 - share) / counts.sizes
    return _cautious(counts.rates - share, variance, counts.deviance(share), counts.sparsity)


def ratio_score(first: EffectiveCounts, second: EffectiveCounts, ratio: Reals) -> Reals:
    """Standard errors by which p₁ / p₂ lies above a ratio ρ; under the hypothesis p₁ = ρ p₂."""
    rates, sizes = (first.rates, second.rates), (first.sizes, second.sizes)
    positives = rates[0] * sizes[0] + rates[1] * sizes[1]
    linear = ratio * (sizes[0] + rates[1] * sizes[1]) + sizes[1] + rates[0] * sizes[0]
    root = np.sqrt(np.maximum(linear**2 - 4 * ratio * (sizes[0] + sizes[1]) * positives, 0.0))
    likeliest = np.minimum(2 * positives / (linear + root), np.minimum(1.0, 1 / ratio))  # p₂
    return _two_rates(first, second, rates[0] - ratio * rates[1], ratio * likeliest, likeliest, ratio)


def difference_score(
    first: EffectiveCounts, second: EffectiveCounts, difference: Reals, added: Reals | float = 0.0
) -> Reals:
    """Standard errors by which p₁ − p₂ lies above a difference δ; under the hypothesis p₁ = p₂ + δ.

    `added` is variance that does not come from the two rates.
    """
    delta = np.clip(difference, -1.0, 1.0)
    likeliest = np.clip(_likeliest_first(first, second, delta), np.maximum(delta, 0.0), np.minimum(1.0, 1 + delta))
    distance = first.rates - second.rates - difference
    return _two_rates(first, second, distance, likeliest, likeliest - delta, 1.0, added)


def _likeliest_first(first: EffectiveCounts, second: EffectiveCounts, delta: Reals) -> Reals:
    """p₁ of greatest likelihood given p₁ − p₂: a root of a cubic, in closed form (Farrington and Manning 1990)."""
    one, other, theta = first.rates, second.rates, second.sizes / first.sizes
    a = 1 + theta
    b = -(1 + theta + one + theta * other + delta * (theta + 2))
    c = delta**2 + delta * (2 * one + theta + 1) + one + theta * other
    d = -one * delta * (1 + delta)
    half = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    radius = np.copysign(np.sqrt(np.maximum(b**2 / (9 * a**2) - c / (3 * a), 0.0)), half)
    cosine = np.divide(half, radius**3, out=np.zeros_like(half), where=np.abs(radius) > 1e-100)
    return np.asarray(2 * radius * np.cos((np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3) - b / (3 * a))


def _two_rates(
    first: EffectiveCounts,
    second: EffectiveCounts,
    distance: Reals,
    one: Reals,
    other: Reals,
    factor: Reals | float,
    added: Reals | float = 0.0,
) -> Reals:
    """Score of the distance p₁ − factor · p₂ (− δ) if the two rates were `one` and `other`."""
    variance = one * (1 - one) / first.sizes + factor**2 * other * (1 - other) / second.sizes
    deviance = first.deviance(one) + second.deviance(other)
    return _cautious(distance, variance, deviance, first.sparsity + second.sparsity, added)


def _cautious(distance: Reals, variance: Reals, deviance: Reals, sparsity: Reals, added: Reals | float = 0.0) -> Reals:
    """The smaller of the score and the root of the likelihood ratio, reduced if counts are small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_error = np.fmax(variance, distance**2 / deviance) + added
        score = np.where(distance == 0, 0.0, distance / np.sqrt(squared_error))
    return np.asarray(score / np.sqrt(1 + _DISCRETENESS * sparsity))
