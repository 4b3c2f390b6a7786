"""Repair: from noisy counts, which may be negative and contradict each other, to distributions that agree.

Nothing here looks at the rows; all of it is arithmetic on numbers that were paid for.
"""

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.privacy.measurements import NoisyTable

# What every possible cell has, in rows: too little to be drawn, but enough to be possible.
FLOOR = 1e-6
_ROUNDS = 100
_CLOSE = 1e-7  # of the total, at which margins agree
_STEPS = 20  # groups of cells of similar size that are shrunk alike


def on_simplex(counts: Reals, total: Reals | float) -> Reals:
    """The closest counts (least squares), along the last axis, that are not negative and have these totals.

    Max(counts − θ, 0) for the θ that gives the total, found among the sorted counts (Held, Wolfe and Crowder 1974).
    """
    wanted = np.broadcast_to(np.asarray(total, dtype=np.float64), counts.shape[:-1])[..., None]
    falling = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - wanted) / np.arange(1, counts.shape[-1] + 1)
    kept = np.maximum(np.count_nonzero(falling > excess, axis=-1) - 1, 0)
    return np.asarray(np.maximum(counts - np.take_along_axis(excess, kept[..., None], axis=-1), 0.0))


def root_counts(root: NoisyTable, with_columns: Sequence[NoisyTable]) -> Reals:
    """Rows of each level of the root, from its own table and from those that it shares with a column.

    Each is weighted by the inverse of its variance; a sum over k levels has k times the variance of one cell.
    """
    estimates = [root.counts, *(table.counts.sum(axis=1) for table in with_columns)]
    variances = [root.variance, *(table.counts.shape[1] * table.variance for table in with_columns)]
    weights = 1 / np.array(variances)
    best = np.asarray(np.tensordot(weights, np.stack(estimates), axes=1) / weights.sum())
    return on_simplex(best, max(float(best.sum()), 1.0)) + FLOOR


def column_counts(root: Reals, alone: NoisyTable, given_root: NoisyTable) -> tuple[Reals, Reals]:
    """Rows of each level of a column, alone and with each level of the root, that agree with each other and the root.

    Least squares: where the two tables disagree about a level, the cells take their part of the difference, by their
    variances. The rows of each root level are shrunk to those of the whole column as far as noise explains how they
    differ.
    """
    cells, roots = given_root.counts, len(root)
    share = given_root.variance / (roots * given_root.variance + alone.variance)
    cells = cells + share * (alone.counts - cells.sum(axis=0))
    column = on_simplex(cells.sum(axis=0), root.sum()) + FLOOR
    expected = np.outer(root, column / column.sum())
    variance = given_root.variance - share * given_root.variance  # of a cell, once both tables are combined
    rows = [shrunk(row, towards, variance) for row, towards in zip(cells, expected, strict=True)]
    return column, agreeing(on_simplex(np.stack(rows), root) + FLOOR, root, column)


def pair_counts(pair: NoisyTable, expected: Reals, first: Reals, second: Reals) -> Reals:
    """Rows of each pair of levels of two columns, with their counts as margins.

    Cells are shrunk to what the root already says of the pair (``expected``), as far as noise explains how they differ;
    this is decided for cells of similar size together.
    """
    counts, towards = pair.counts.ravel(), expected.ravel()
    result = np.empty_like(counts)
    for cells in np.array_split(np.argsort(towards, kind="stable"), _STEPS):
        result[cells] = shrunk(counts[cells], towards[cells], pair.variance)
    return agreeing(np.maximum(result, 0.0).reshape(expected.shape) + FLOOR, first, second)


def shrunk(counts: Reals, towards: Reals, variance: float) -> Reals:
    """Empirical Bayes: differences that are no larger than the noise are noise (James and Stein)."""
    difference = counts - towards
    signal = max(float(np.mean(difference**2)) - variance, 0.0) if counts.size else 0.0
    return np.asarray(towards + difference * (signal / (signal + variance)))


def agreeing(table: Reals, first: Reals, second: Reals) -> Reals:
    """The table with these margins that is closest to a positive one (iterative proportional fitting)."""
    second = second * (first.sum() / second.sum())
    for _ in range(_ROUNDS):
        table = table * _factor(second, table.sum(axis=0))[None, :]
        rows = table.sum(axis=1)
        table = table * _factor(first, rows)[:, None]
        if np.abs(rows - first).max() <= _CLOSE * first.sum():
            break
    return table


def three_way(with_parent: Reals, with_child: Reals, pair: Reals) -> Reals:
    """P(child | root, parent): the maximum-entropy table with the margins root × parent, root × child, parent × child.

    Iterative proportional fitting; the margins are counts of rows that agree with each other.
    """
    given_root = with_child / with_child.sum(axis=1, keepdims=True)
    table = with_parent[:, :, None] * given_root[:, None, :]
    for _ in range(_ROUNDS):
        table = table * _factor(pair, table.sum(axis=0))[None, :, :]
        children = table.sum(axis=1)
        table = table * _factor(with_child, children)[:, None, :]
        table = table * _factor(with_parent, table.sum(axis=2))[:, :, None]
        if np.abs(children - with_child).max() <= _CLOSE * with_child.sum():
            break
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def _factor(wanted: Reals, reached: Reals) -> Reals:
    return np.divide(wanted, reached, out=np.ones_like(reached), where=reached > 0)
