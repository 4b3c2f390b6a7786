"""Draws: exact draws from many distributions, and the cells of new rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data.quotas import quota
from fairmaxent.data.table import Codes, Indices, Reals, tally
from fairmaxent.errors import InputError, unfit

RandomState = int | Generator | None
_MOST_ROWS = 10**12

# Steps from a bucket's first item to the one wanted, before the few that are still
# short are searched for.
_STEPS = 4


@dataclass(frozen=True, eq=False)
class Choice:
    """Distributions laid end to end, so that a draw is a look-up of g + u.

    Group g fills [g, g + 1) of one increasing array. Scaling each group to length one
    keeps full precision in groups of tiny probability. A guide table says for each of
    some equal buckets of [g, g + 1) where to begin, which makes a look-up O(1) (Chen
    and Asau, 1974).
    """

    bounds: Reals  # upper end of each item's interval
    starts: Indices  # first item of each group
    # (groups, buckets): first item that ends beyond the bucket's beginning
    guide: Indices

    @classmethod
    def grouped(cls, weights: Reals, starts: Indices) -> "Choice":
        """Build from ``weights`` ≥ 0; group g holds the items from ``starts[g]`` on."""
        lengths = np.diff(np.append(starts, len(weights)))
        group = np.repeat(np.arange(len(starts)), lengths)
        totals = tally(group, weights, len(starts))
        share = weights / np.where(totals > 0, totals, 1.0)[group]
        running = np.cumsum(share)
        before = np.concatenate(([0.0], running))[starts]
        bounds = np.clip(running - before[group], 0.0, 1.0)
        last = np.full(len(starts), len(share))
        positive = np.flatnonzero(share > 0)
        last[group[positive]] = positive  # later assignments win
        # A group's interval ends at its last positive share.
        bounds[np.arange(len(share)) >= last[group]] = 1.0
        return cls(bounds + group, starts, _guide(bounds + group, len(starts)))

    @classmethod
    def rows_of(cls, weights: Reals) -> "Choice":
        """Build from a two-dimensional array, one group per row."""
        groups, size = weights.shape
        return cls.grouped(weights.ravel(), np.arange(groups) * size)

    def draw(
        self,
        groups: Codes,
        rng: Generator,
        *,
        spread: bool = False,
    ) -> Indices:
        """Draw one item from each group, numbered from 0.

        ``spread``: each as often as its share says, up to one.
        """
        if spread:
            point = _spread_points(groups, rng)
        else:
            point = rng.random(len(groups))
        buckets = self.guide.shape[1]
        bucket = (point * buckets).astype(int) + groups * np.intp(buckets)
        # g + u may round up to g + 1, which belongs to the next group.
        below = np.nextafter(np.arange(1.0, len(self.starts) + 1.0), 0.0)
        point = np.minimum(point + groups, below.take(groups))
        item = self.guide.ravel().take(bucket)
        short = np.flatnonzero(self.bounds.take(item) <= point)
        wanted = point.take(short)
        reached = item.take(short)
        for _ in range(_STEPS):
            reached += 1
            item[short] = reached
            still = np.flatnonzero(self.bounds.take(reached) <= wanted)
            short = short.take(still)
            wanted = wanted.take(still)
            reached = reached.take(still)
        item[short] = np.searchsorted(self.bounds, wanted, side="right")
        return item - self.starts.take(groups)


def _spread_points(groups: Codes, rng: Generator) -> Reals:
    """Points in [0, 1) at equal steps within each group, in random order.

    They begin at a random place, so each is uniform.
    """
    rows = len(groups)
    order = np.argsort(groups + rng.random(rows))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(starts, rows))
    steps = np.arange(rows) - np.repeat(starts - rng.random(len(starts)), lengths)
    points = np.empty(rows)
    points[order] = steps / np.repeat(lengths, lengths)
    return np.minimum(points, np.nextafter(1.0, 0.0))


def _guide(bounds: Reals, groups: int) -> Indices:
    """Where to begin in each bucket, of which there are about two per item.

    A group has a power of two of them, so that their beginnings are exact.
    """
    buckets = 1 << int(np.ceil(np.log2(max(2.0, 2.0 * len(bounds) / groups))))
    # An item ends at or before the beginnings from its upper end on, rounded up;
    # counting those searches for them all.
    size = groups * buckets
    upper = np.ceil(bounds * buckets).astype(int)
    ended = np.cumsum(np.bincount(upper, minlength=size + 1))
    return np.minimum(ended[:size], len(bounds) - 1).reshape(groups, buckets)


def cells_of(
    table: Reals,
    count: int,
    rng: Generator,
    *,
    independent: bool,
) -> Indices:
    """The C-order cells of ``count`` new rows, shuffled; by quota or independently."""
    if independent:
        return Choice.rows_of(table.reshape(1, -1)).draw(
            np.zeros(count, dtype=int), rng
        )
    return shuffled_cells(quota(table, count, rng), rng)


def shuffled_cells(counts: Indices, rng: Generator) -> Indices:
    """Return each cell as often as its count says, in random order."""
    return rng.permutation(np.repeat(np.arange(counts.size), counts.ravel()))


def generator(random_state: RandomState) -> Generator:
    """Turn a seed, a generator, or None into a generator."""
    if isinstance(random_state, Generator):
        return random_state
    check_seed(random_state)
    return np.random.default_rng(random_state)


def is_whole(value: Any, least: int = 0, most: float = np.inf) -> bool:
    """Whether this is a whole number in a range; True and False are none."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_number and least <= value <= most


def check_seed(seed: object) -> None:
    """Refuse what is not a non-negative whole number or None."""
    if seed is not None and not is_whole(seed):
        raise unfit("random_state", seed, "pass a whole number that is not negative")


def check_count(n: Any) -> int:
    """Refuse what is not a positive number of rows."""
    if not is_whole(n, 1):
        raise InputError(f"n is {n!r}; ask for a positive whole number of rows")
    if n > _MOST_ROWS:
        raise InputError(
            f"n is {n:,}, which is too many rows; ask for at most {_MOST_ROWS:,}"
        )
    return int(n)
