"""How a rooted tree is learned from rows.

Let b be a block, r = (y, z_1, …) a level of the root, and a the level of the block's
parent in the tree. The table P(b | r, a) is refined step by step, from P(b) by what is
known about each level of the outcome y, of every protected column z_i, and of the
parent a, until the whole cell has been asked. A step for the margin m with N_m rows,
n_m(b) of them in level b, compares them with what the table so far lets one expect,
E_m(b) = Σ_{r, a in m} N(r, a)·P(b | r, a) / N_m, and shrinks them towards it, T_m(b) =
(n_m(b) + s·E_m(b)) / (N_m + s). Then P(b | r, a) is multiplied by T_m / E_m and
normalised. So a cell without rows has what its outcome, its groups and its parent say
together, and a large one has what was seen in it.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from fairmaxent.data.limits import MOST_CELLS, need_memory
from fairmaxent.data.table import Blocks, Counted, Reals, ratio
from fairmaxent.errors import LimitError, Option
from fairmaxent.maxent.forbidden import (
    Rules,
    allowed_roots,
    needed_edges,
    strike_out,
)
from fairmaxent.maxent.logspace import entropy, log_gamma
from fairmaxent.maxent.priors.tree import Tree

# What is expected counts as if one of these numbers of rows had been seen.
STRENGTHS: Reals = np.array([4.0**power for power in range(-1, 7)])
# The relation of a block to the outcome is kept as seen, but for this many rows.
# Shrinking it would pull every column to independence of the outcome: too little in one
# column for its likelihood to notice, much in all together.
OUTCOME_STRENGTH = 1.0
# Visits of a pair of blocks in a row up to which all rows count in the choice of the
# tree; the fewest rows beyond.
_VISITS = 1 << 28
_ENOUGH_ROWS = 1 << 14
_CELL_MEMORY = 64  # bytes at the peak for each cell of the largest table


def smoothed(counts: Reals, root: Sequence[int]) -> Reals:
    """P(block | root, parent) from counts of rows with these axes: root, parent, block.

    ``root`` are the numbers of levels of the columns pooled in the root: the outcome
    and the protected ones.
    """
    cells = counts.reshape(*root, *counts.shape[1:])
    columns = tuple(range(len(root)))
    parent = len(root)
    alone = counts.sum(axis=(0, 1))
    table = alone.reshape(*np.ones_like(cells.shape[:-1]), -1) / counts.sum()
    in_root = cells.sum(axis=parent, keepdims=True)
    table = _refined(table, in_root, (0,), OUTCOME_STRENGTH)
    for column in columns[1:]:
        table = _refined(table, in_root, (column,))
    table = _refined(table, in_root, columns)
    if counts.shape[1] > 1:
        table = _refined(table, cells, (parent,))
        table = _refined(table, cells, (*columns, parent))
    return table.reshape(counts.shape)


def _refined(
    table: Reals,
    cells: Reals,
    margin: tuple[int, ...],
    strength: float | None = None,
) -> Reals:
    """Multiply the table by T_m / E_m for the axes of a margin, and normalise it.

    Without a strength, it is the best one.
    """
    others = tuple(axis for axis in range(cells.ndim - 1) if axis not in margin)
    seen = cells.sum(axis=others, keepdims=True)  # n_m
    expected = table
    if others:
        rows = cells.sum(axis=-1, keepdims=True)  # N(r, a)
        expected = (rows * table).sum(axis=others, keepdims=True)
    expected = _normalised(np.broadcast_to(expected, seen.shape))  # E_m
    if strength is None:
        strength = best_strength(seen, expected)
    total = seen.sum(axis=-1, keepdims=True)  # N_m
    wanted = (seen + strength * expected) / (total + strength)  # T_m
    unchanged = np.ones_like(seen)
    return _normalised(
        table
        * np.divide(
            wanted,
            expected,
            out=unchanged,
            where=expected > 0,
        )
    )


def best_strength(counts: Reals, towards: Reals) -> float:
    """Choose how many rows the expected table counts for.

    It is the number under which the rows are most likely. Taken one after the other, a
    row has probability (n + s·towards) / (N + s) given the N rows before it, n of them
    like it. The product over all rows of a margin is the Dirichlet-multinomial
    likelihood Γ(s)/Γ(s + N)·Π Γ(s·towards + n)/Γ(s·towards). Leaving out one row at a
    time instead would ask the large margins next to nothing, since theirs is foreseen
    with any strength, and let three people who happen to agree choose a strength near
    zero.
    """
    shares = np.broadcast_to(towards, counts.shape)
    totals = counts.sum(axis=-1)
    cells = (counts > 0) & (shares > 0)
    start = STRENGTHS[:, None] * shares[cells]
    strength = STRENGTHS[:, None]
    likelihood = (log_gamma(start + counts[cells]) - log_gamma(start)).sum(axis=1)
    likelihood -= (log_gamma(strength + totals[totals > 0]) - log_gamma(strength)).sum(
        axis=1
    )
    return float(STRENGTHS[np.argmax(likelihood)])


def _normalised(table: Reals) -> Reals:
    """Let the last axis sum to 1, or to 0 where it does."""
    return ratio(table, table.sum(axis=-1, keepdims=True))


def learn_tree(
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Rules,
) -> Tree:
    """Fit the rooted tree: the maximum spanning tree of I(i; j | root).

    The information is that of the reweighted rows. Its tables are given the root, so
    they need no fair weights: within a level of the root these are all the same. Each
    level counts for the effective number of its rows, Σw·(Σw/Σw²), which is how much is
    known there.
    """
    information = _information(blocks, counted.total, weighted)
    parents = spanning_parents(information, needed_edges(rules))
    families = [
        (0, parent, block) if parent else (0, block)
        for block, parent in enumerate(parents, start=1)
    ]
    totals, *counts = counted.tables([(0,), *families], blocks.levels)
    (squares,) = counted.tables([(0,)], blocks.levels, of="squares")
    worth = ratio(totals, squares)
    # axes root, parent, block; a block without a parent has one of a single level
    counts = [seen.reshape(len(seen), -1, seen.shape[-1]) for seen in counts]
    tables = [smoothed(worth[:, None, None] * seen, blocks.shape(0)) for seen in counts]
    strike_out(rules, parents, tables)
    allowed = root * allowed_roots(rules, blocks.levels[0])
    return Tree.of(blocks, parents, allowed, tables)


def _information(blocks: Blocks, total: float, weighted: Counted) -> Reals:
    """I(i; j | root) of the reweighted rows for all pairs of blocks, less its bias.

    For independent blocks the plug-in estimate is about (k_i − 1)(k_j − 1)·roots / 2N
    too high. Every pair of blocks is counted in every row, so with many of both, the
    strongest pairs are searched for in a part of the rows.
    """
    sizes = blocks.levels
    refuse_large_tables(sizes)
    enough = max(2 * _VISITS // len(sizes) ** 2, _ENOUGH_ROWS)
    rows = weighted.thinned(enough)
    if weighted.distinct > enough:
        total = enough
    (roots,) = rows.tables([(0,)], sizes)
    others = range(1, len(sizes))
    pairs = [(i, j) for i in others for j in range(1, i)]
    wanted = [(0, *blocks) for blocks in [*zip(others), *pairs]]
    entropies = rows.tables(wanted, sizes, then=partial(_entropy, total=rows.total))
    single = [_entropy(roots, rows.total), *entropies[: len(others)]]
    result = np.zeros((len(sizes), len(sizes)))
    for (i, j), both in zip(pairs, entropies[len(others) :], strict=True):
        seen = np.count_nonzero(roots)
        bias = (sizes[i] - 1) * (sizes[j] - 1) * seen / (2.0 * total)
        result[i, j] = single[i] + single[j] - both - single[0] - bias
    return result


def refuse_large_tables(sizes: Sequence[int]) -> None:
    """Refuse columns of too many levels.

    They are if the table of two of them within the root is too large.
    """
    cells = sizes[0] * math.prod(sorted(sizes[1:])[-2:])
    remedy = (
        "merge levels (",
        Option("max_levels"),
        "), or use ",
        Option("base", "product"),
    )
    if cells > MOST_CELLS:
        raise LimitError(
            f"the two columns with the most levels have {cells:,} combinations with"
            f" outcome and protected columns, and the limit is {MOST_CELLS:,}; ",
            remedy,
        )
    need_memory(
        _CELL_MEMORY * cells, "learning how columns depend on each other", remedy
    )


def _entropy(table: Reals, total: float) -> float:
    """−Σ p log p of a table of counts."""
    return entropy(table / total)


def spanning_parents(
    information: Reals, forced: Sequence[tuple[int, int]]
) -> list[int]:
    """Parent of blocks 1, 2, … in the maximum spanning forest (Prim).

    The weight of a pair of blocks is the information between them. Pairs without
    information get no edge, ``forced`` ones do if any forest allows it; 0 if a block
    has no parent. Written out because importing SciPy's would be paid at everybody's
    first fit.
    """
    gain = np.maximum(information, information.T)
    for first, second in forced:
        gain[first, second] = gain[second, first] = np.inf
    best = np.zeros(len(gain))
    nearest = np.zeros(len(gain), dtype=np.intp)
    waiting = np.arange(len(gain)) > 0
    while waiting.any():
        block = int(np.argmax(np.where(waiting, best, -1.0)))
        waiting[block] = False
        closer = waiting & (gain[block] > best)
        best[closer] = gain[block, closer]
        nearest[closer] = block
    return nearest[1:].tolist()
