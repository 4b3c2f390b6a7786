"""Smoothing: conditional tables in which small cells borrow strength from larger ones.

Let b be a block, r = (y, z_1, …) a level of the root, and a the level of the block's parent in the tree. The table
P(b | r, a) is refined step by step, from P(b) by what is known about each level of the outcome y, of every protected
column z_i, and of the parent a, until the whole cell has been asked. A step for the margin m with N_m rows, n_m(b) of
them in level b, compares them with what the table so far lets one expect, E_m(b) = Σ_{r, a in m} N(r, a)·P(b | r, a) /
N_m, and shrinks them towards it, T_m(b) = (n_m(b) + s·E_m(b)) / (N_m + s). Then P(b | r, a) is multiplied by T_m / E_m
and normalised. So a cell without rows has what its outcome, its groups and its parent say together, and a large one
has what was seen in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.maxent.logspace import log_gamma

# What is expected counts as if one of these numbers of rows had been seen.
STRENGTHS: Reals = np.array([4.0**power for power in range(-1, 7)])
# The relation of a block to the outcome is kept as seen, but for this many rows. Shrinking it would pull every column
# to independence of the outcome: too little in one column for its likelihood to notice, much in all together.
OUTCOME_STRENGTH = 1.0


def smoothed(counts: Reals, root: Sequence[int]) -> Reals:
    """P(block | root, parent) from counts of rows with these axes: root, parent, block.

    ``root`` are the numbers of levels of the columns pooled in the root: the outcome and the protected ones.
    """
    cells = counts.reshape(*root, *counts.shape[1:])
    columns, parent = range(len(root)), len(root)
    table = counts.sum(axis=(0, 1)).reshape(*np.ones_like(cells.shape[:-1]), -1) / counts.sum()
    in_root = cells.sum(axis=parent, keepdims=True)
    table = _refined(table, in_root, (0,), OUTCOME_STRENGTH)
    for margin in (*((column,) for column in columns[1:]), tuple(columns)):
        table = _refined(table, in_root, margin)
    if counts.shape[1] > 1:
        for margin in ((parent,), (*columns, parent)):
            table = _refined(table, cells, margin)
    return np.asarray(table.reshape(counts.shape))


def _refined(table: Reals, cells: Reals, margin: tuple[int, ...], strength: float | None = None) -> Reals:
    """Multiply the table by T_m / E_m for the axes of a margin, and normalise it; None: with the best strength."""
    others = tuple(axis for axis in range(cells.ndim - 1) if axis not in margin)
    seen = cells.sum(axis=others, keepdims=True)
    expected = (cells.sum(axis=-1, keepdims=True) * table).sum(axis=others, keepdims=True) if others else table
    expected = _normalised(np.broadcast_to(expected, seen.shape))
    wanted = _shrunk(seen, expected, best_strength(seen, expected) if strength is None else strength)
    return _normalised(table * np.divide(wanted, expected, out=np.ones_like(seen), where=expected > 0))


def best_strength(counts: Reals, towards: Reals) -> float:
    """Choose how many rows the expected table counts for: the number under which the rows are most likely.

    Taken one after the other, a row has probability (n + s·towards) / (N + s) given the N rows before it, n of them
    like it. The product over all rows of a margin is the Dirichlet-multinomial likelihood Γ(s)/Γ(s + N)·Π Γ(s·towards +
    n)/Γ(s·towards). Leaving out one row at a time instead would ask the large margins next to nothing, since theirs is
    foreseen with any strength, and let three people who happen to agree choose a strength near zero.
    """
    shares, totals = np.broadcast_to(towards, counts.shape), counts.sum(axis=-1)
    cells = (counts > 0) & (shares > 0)
    start, strength = STRENGTHS[:, None] * shares[cells], STRENGTHS[:, None]
    likelihood = (log_gamma(start + counts[cells]) - log_gamma(start)).sum(axis=1)
    likelihood -= (log_gamma(strength + totals[totals > 0]) - log_gamma(strength)).sum(axis=1)
    return float(STRENGTHS[np.argmax(likelihood)])


def _shrunk(counts: Reals, towards: Reals, strength: float) -> Reals:
    """Conditional probabilities from counts, as if ``strength`` more rows had been seen."""
    return np.asarray((counts + strength * towards) / (counts.sum(axis=-1, keepdims=True) + strength))


def _normalised(table: Reals) -> Reals:
    """Let the last axis sum to 1, or to 0 where it does."""
    total = table.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0))
