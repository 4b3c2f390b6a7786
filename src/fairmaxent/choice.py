"""Exact draws from many discrete distributions at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.table import Reals, tally


@dataclass(frozen=True)
class Choice:
    """Distributions laid end to end, each scaled to its own unit interval.

    Group g fills [g, g + 1) of one increasing array, so a draw from any group is one binary search for
    g + u. Scaling each group to length one keeps full precision in groups of tiny probability.
    """

    bounds: Reals  # upper end of each item's interval
    starts: NDArray[np.intp]  # first item of each group

    @classmethod
    def grouped(cls, weights: Reals, starts: NDArray[np.intp]) -> Choice:
        """Build from non-negative ``weights``, group g holding the items from ``starts[g]`` on."""
        lengths = np.diff(np.append(starts, len(weights)))
        group = np.repeat(np.arange(len(starts)), lengths)
        totals = tally(group, weights, len(starts))
        share = weights / np.where(totals > 0, totals, 1.0)[group]
        running = np.cumsum(share)
        before = np.concatenate(([0.0], running))[starts]
        bounds = np.clip(running - before[group], 0.0, 1.0)
        bounds[_closing(share, group, len(starts))] = 1.0
        return cls(bounds + group, starts)

    @classmethod
    def rows_of(cls, weights: Reals) -> Choice:
        """Build from a two-dimensional array, one group per row."""
        groups, size = weights.shape
        return cls.grouped(weights.ravel(), np.arange(groups, dtype=np.intp) * size)

    def draw(self, groups: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw one item from each of ``groups``; items are numbered from 0 within their group."""
        point = groups + rng.random(len(groups))
        # g + u may round up to g + 1, which belongs to the next group.
        point = np.minimum(point, np.nextafter(groups + 1.0, 0.0))
        return np.asarray(np.searchsorted(self.bounds, point, side="right") - self.starts[groups])


def _closing(share: Reals, group: NDArray[np.intp], groups: int) -> NDArray[np.bool_]:
    """Mark each group's last item of positive share and all after it: there the interval must end at 1."""
    last = np.full(groups, len(share), dtype=np.intp)
    positive = np.flatnonzero(share > 0)
    last[group[positive]] = positive  # later assignments win
    closing: NDArray[np.bool_] = np.arange(len(share)) >= last[group]
    return closing
