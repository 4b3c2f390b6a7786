"""Pooling: what a model predicts for a profile, and the outcomes that its people have, made into one soft label.

A Dirichlet prior with mean m (what the model predicts) and strength κ, and the profile's counts n(y), give the label
(κ·m(y) + n(y)) / (κ + Σ n). κ is the same for all profiles: the one under which each person's outcome is likeliest,
given the outcomes of the others in the profile (empirical Bayes by leave-one-out likelihood).
"""

from __future__ import annotations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.relabelling.people import HeldOut, People

_STRENGTHS = np.geomspace(0.5, 1e6, 60)  # where κ is searched; the last one leaves the predictions as they are
_SMALLEST = 1e-12  # of a probability whose logarithm is taken


def pooled_labels(people: People, held_out: HeldOut) -> Reals:
    """π(y | x, z) of each profile: the mean of its people's predictions, shrunk with its own counts."""
    counts = people.profiles.counts
    profile = people.profile[held_out.record]
    sums = [tally(profile, held_out.weight * chance, len(counts)) for chance in held_out.chances.T]
    mass = tally(profile, held_out.weight, len(counts))
    nobody = mass <= 0  # only people without weight: their predictions count the same
    alone = [tally(profile, chance, len(counts)) for chance in held_out.chances.T]
    mean = np.column_stack([np.where(nobody, plain, total) for plain, total in zip(alone, sums, strict=True)])
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), _SMALLEST)
    strength = prior_strength(mean, counts)
    return np.asarray((strength * mean + counts) / (strength + counts.sum(axis=1, keepdims=True)))


def prior_strength(mean: Reals, counts: Reals) -> float:
    """κ of the largest leave-one-out likelihood Σ n(y)·log((κ·m(y) + n(y) − 1) / (κ + Σ n − 1)) over all profiles."""
    several = counts.sum(axis=1) > 1
    mean, counts = mean[several], counts[several]
    if not len(counts):
        return float(_STRENGTHS[-1])
    others = np.maximum(counts - 1, 0)
    total = counts.sum(axis=1, keepdims=True) - 1

    def likelihood(strength: float) -> float:
        chance = (strength * mean + others) / (strength + total)
        return float((counts * np.log(np.maximum(chance, _SMALLEST))).sum())

    return float(_STRENGTHS[int(np.argmax([likelihood(strength) for strength in _STRENGTHS]))])
