"""Learning the rooted tree: which blocks it joins, and its tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.limits import MOST_CELLS, need_memory
from fairmaxent.data.table import Counted, tally
from fairmaxent.errors import LimitError, Option
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges, strike_out
from fairmaxent.maxent.logspace import entropy
from fairmaxent.maxent.priors.smoothing import smoothed
from fairmaxent.maxent.priors.tree import Tree

# Visits of a pair of blocks in a row up to which all rows count in the choice of the tree; the fewest rows beyond.
_VISITS = 1 << 28
_ENOUGH_ROWS = 1 << 14
_CELL_MEMORY = 64  # bytes at the peak for each cell of the largest table


def learn_tree(blocks: Blocks, counted: Counted, weighted: Counted, *, root: Reals, rules: Sequence[Rule]) -> Tree:
    """Fit the rooted tree (method: maximum spanning tree of I(i; j | root) of the reweighted rows).

    Its tables are given the root, so they need no fair weights: within a level of the root these are all the same. Each
    level counts for the effective number of its rows, Σw·(Σw/Σw²), which is how much is known there.
    """
    parents = spanning_parents(_information(blocks, counted.total, weighted), needed_edges(rules))
    families = [(0, parent, block) if parent else (0, block) for block, parent in enumerate(parents, start=1)]
    totals, *counts = counted.tables([(0,), *families], blocks.levels)
    (squares,) = counted.tables([(0,)], blocks.levels, of="squares")
    worth = np.divide(totals, squares, out=np.zeros_like(totals), where=squares > 0)
    tables = [smoothed(worth[:, None, None] * _with_parent(seen), blocks.shape(0)) for seen in counts]
    strike_out(rules, parents, tables)
    return Tree.of(blocks, parents, root * allowed_roots(rules, blocks.levels[0]), tables)


def _information(blocks: Blocks, total: float, weighted: Counted) -> Reals:
    """I(i; j | root) of the reweighted rows for all pairs of blocks, less its bias in small samples.

    For independent blocks the plug-in estimate is about (k_i − 1)(k_j − 1)·roots / 2N too high. Every pair of blocks
    is counted in every row, so with many of both, the strongest pairs are searched for in a part of the rows.
    """
    sizes = blocks.levels
    refuse_large_tables(sizes)
    enough = max(2 * _VISITS // len(sizes) ** 2, _ENOUGH_ROWS)
    rows, total = weighted.thinned(enough), total if weighted.distinct <= enough else enough
    codes, weights = rows.codes, rows.counts / rows.total
    roots = codes[:, 0].astype(np.int32)
    seen = len(np.unique(roots))
    with_root = [roots * size + column for column, size in zip(codes.T, sizes, strict=True)]
    single = [_entropy(cells, weights) for cells in with_root]
    root_entropy = _entropy(roots, weights)
    result = np.zeros((len(sizes), len(sizes)))
    columns = [column.astype(np.int32) for column in codes.T]  # twice as fast as 64 bits
    cells = np.empty(len(codes), dtype=np.int32)  # one buffer for all pairs
    for i in range(1, len(sizes)):
        for j in range(1, i):
            np.multiply(with_root[i], sizes[j], out=cells)
            cells += columns[j]
            bias = (sizes[i] - 1) * (sizes[j] - 1) * seen / (2.0 * total)
            result[i, j] = single[i] + single[j] - _entropy(cells, weights) - root_entropy - bias
    return result


def refuse_large_tables(sizes: Sequence[int]) -> None:
    """Refuse columns of so many levels that the table of two of them within the root is too large."""
    cells = sizes[0] * math.prod(sorted(sizes[1:])[-2:])
    remedy = ("merge levels (", Option("max_levels"), "), or use ", Option("base", "product"))
    if cells > MOST_CELLS:
        raise LimitError(
            f"the two columns with the most levels have {cells:,} combinations with outcome and protected columns, "
            f"and the limit is {MOST_CELLS:,}; ",
            remedy,
        )
    need_memory(_CELL_MEMORY * cells, "learning how columns depend on each other", remedy)


def _entropy(cells: Codes, weights: Reals) -> float:
    """−Σ p log p of weighted cells."""
    return entropy(tally(cells, weights, 0))


def spanning_parents(information: Reals, forced: Sequence[tuple[int, int]]) -> list[int]:
    """Parent of blocks 1, 2, … in the maximum spanning forest of the information between pairs of blocks (Prim).

    Pairs without information get no edge, ``forced`` ones do if any forest allows it; 0 if a block has no parent.
    Written out because importing SciPy's would be paid at everybody's first fit.
    """
    gain = np.maximum(information, information.T)
    for first, second in forced:
        gain[first, second] = gain[second, first] = np.inf
    best, nearest = np.zeros(len(gain)), np.zeros(len(gain), dtype=np.intp)
    waiting = np.arange(len(gain)) > 0
    while waiting.any():
        block = int(np.argmax(np.where(waiting, best, -1.0)))
        waiting[block] = False
        closer = waiting & (gain[block] > best)
        best[closer], nearest[closer] = gain[block, closer], block
    return [int(parent) for parent in nearest[1:]]


def _with_parent(table: Reals) -> Reals:
    """A table with axes root, parent, block; a block without a parent has one of a single level."""
    return table.reshape(len(table), -1, table.shape[-1])
