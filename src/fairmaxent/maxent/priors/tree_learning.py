"""Learning the rooted tree: which blocks it joins, and its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted, tally
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges, strike_out
from fairmaxent.maxent.logspace import entropy
from fairmaxent.maxent.priors.tree import Tree

# Visits of a pair of blocks in a row up to which all rows count in the choice of the tree; the fewest rows beyond.
_VISITS = 1 << 28
_ENOUGH_ROWS = 1 << 14

# A conditional table counts as if one of these numbers of rows had been seen at the coarser table's proportions.
STRENGTHS = 4.0 ** np.arange(-1, 7)
# The relation of a block to outcome and groups is kept as seen, but for this many rows. Shrinking it would pull every
# column to independence of the outcome: too little in one column for its own likelihood to see, much in all together.
ROOT_STRENGTH = 1.0


def learn_tree(blocks: Blocks, counted: Counted, weighted: Counted, *, root: Reals, rules: Sequence[Rule]) -> Tree:
    """Fit the rooted tree on the reweighted rows (method: maximum spanning tree of I(i; j | root)).

    Within a level of the root the fair weights are proportional to the counts, so the counts say how much is known
    there; the coarser tables mix levels of the root and need the fair weights.
    """
    parents = spanning_parents(_information(blocks, counted.total, weighted), needed_edges(rules))
    families = [(parent, block) if parent else (block,) for block, parent in enumerate(parents, start=1)]
    rooted = [(0, *family) for family in families]
    old, *counts = counted.tables([(0,), *rooted], blocks.levels)
    (new,) = weighted.tables([(0,)], blocks.levels)
    factor = np.divide(new, old, out=np.zeros_like(old), where=old > 0) * (counted.total / weighted.total)
    tables = [smoothed(seen, factor[:, None, None] * seen) for seen in map(_with_parent, counts)]
    strike_out(rules, parents, tables)
    return Tree.of(blocks, parents, root * allowed_roots(rules, blocks.levels[0]), tables)


def _information(blocks: Blocks, total: float, weighted: Counted) -> Reals:
    """I(i; j | root) of the reweighted rows for all pairs of blocks, less its bias in small samples.

    For independent blocks the plug-in estimate is about (k_i − 1)(k_j − 1)·roots / 2N too high. Every pair of blocks
    is counted in every row, so with many of both, the strongest pairs are searched for in a part of the rows.
    """
    sizes = blocks.levels
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


def smoothed(seen: Reals, fair: Reals) -> Reals:
    """P(block | parent, root) from counts with axes root, parent, block.

    They are smoothed towards what root and parent say separately, P(block | parent)·P(block | root) / P(block),
    normalised, so that the block's relation to outcome and groups survives where rows are few. Those two are smoothed
    towards P(block). Within a level of the root the ``fair`` weights are proportional to the counts ``seen``, so these
    say how much is known there; tables across levels of the root need the fair weights.
    """
    share = fair.sum(axis=(0, 1)) / fair.sum()
    if seen.shape[1] == 1:
        return _shrink(seen, share, ROOT_STRENGTH)
    given_parent = _shrink(fair.sum(axis=0), share, best_strength(seen.sum(axis=0), share))
    given_root = _shrink(seen.sum(axis=1), share, ROOT_STRENGTH)
    apart = given_root[:, None, :] * np.divide(given_parent, share, out=np.zeros_like(given_parent), where=share > 0)
    apart /= apart.sum(axis=-1, keepdims=True)
    return _shrink(seen, apart, best_strength(seen, apart))


def best_strength(counts: Reals, towards: Reals) -> float:
    """Choose how many rows the coarser table counts for: the most likely number when each row is left out in turn.

    A row that was seen n times among N has probability (n − 1 + s·towards) / (N − 1 + s) given the others, so the
    likelihood of all rows left out needs no folds and no chance, only Σ n·log of that over the cells.
    """
    totals = np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)
    shares = np.broadcast_to(towards, counts.shape)
    cells = (counts > 0) & (shares > 0)
    n, rows, share = counts[cells], totals[cells], shares[cells]
    strength = STRENGTHS[:, None]
    left_out = (np.maximum(n - 1, 0) + strength * share) / (np.maximum(rows - 1, 0) + strength)
    return float(STRENGTHS[np.argmax(np.log(left_out) @ n)])


def _shrink(counts: Reals, towards: Reals, strength: float) -> Reals:
    """Conditional probabilities from counts, as if ``strength`` more rows had been seen."""
    return np.asarray((counts + strength * towards) / (counts.sum(axis=-1, keepdims=True) + strength))
