"""The distance to the closest record, which many reports of synthetic data show, and why not to rely on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.evaluation.nearest import Done, nearest, shuffled
from fairmaxent.evaluation.pooled import Pooled

WHY_NOT = (
    "Do not rely on this distance: it is an average over the table, so rows can be far from most people and still copy "
    "some of them. It misses leaks that the attacks above find (Yao et al., 2025)."
)


@dataclass(frozen=True)
class ClosestRecord:
    """Median distance of new rows, and of other people, to the closest real row; each column counts at most 1."""

    new: float
    others: float | None
    """Of control rows; None: there are none."""
    why_not: str = WHY_NOT


def closest_record(
    pooled: Pooled, rows: int, *, rng: np.random.Generator, done: Done = lambda share: None
) -> ClosestRecord:
    """Measure the distances of so many rows of either kind."""
    real = shuffled(pooled, "real", rng)
    new = nearest(pooled, shuffled(pooled, "new", rng, rows), real, done=lambda share: done(share / 2))
    others = None
    if "control" in pooled.parts:
        people = shuffled(pooled, "control", rng, rows)
        near = nearest(pooled, people, real, done=lambda share: done((1 + share) / 2))
        others = float(np.median(near.distance))
    return ClosestRecord(float(np.median(new.distance)), others)
