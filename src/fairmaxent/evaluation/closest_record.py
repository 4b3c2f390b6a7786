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
    medians = {
        name: float(np.median(nearest(pooled, shuffled(pooled, name, rng, rows), real, done=done).distance))
        for name in ("new", "control")
        if name in pooled.parts
    }
    return ClosestRecord(medians["new"], medians.get("control"))
