"""Bases of full support, and the structure of the rooted tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted, tally
from fairmaxent.errors import ForbiddenError
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges
from fairmaxent.maxent.priors.product import Product
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.tree import Tree

BaseKind = Literal["uniform", "product", "tree"]

# Visits of a pair of blocks in a row up to which all rows count in the choice of the tree; the fewest rows beyond.
_VISITS = 1 << 28
_ENOUGH_ROWS = 1 << 14

# A conditional table counts as if one of these numbers of rows had been seen at the coarser table's proportions.
STRENGTHS = 4.0 ** np.arange(-1, 7)
# What a block says of outcome and groups counts as it was seen, but for this many rows. Shrinking it would pull every
# column to independence of the outcome: too little in one column for its own likelihood to see, much in all together.
ROOT_STRENGTH = 1.0


def build_base(
    kind: BaseKind,
    blocks: Blocks,
    counted: Counted,
    weighted: Counted,
    *,
    root: Reals,
    rules: Sequence[Rule] = (),
) -> Prior:
    """Build a base of full support on everything that is not forbidden.

    ``counted`` are the distinct rows with how many rows each stands for, ``weighted`` the same with their fair weights
    w, and ``root`` is the distribution wanted for the root block.
    """
    if kind == "tree":
        return _tree(blocks, counted, weighted, root=root, rules=rules)
    levels = np.ones(blocks.width)
    if kind == "product":
        levels = np.concatenate(weighted.tables([(block,) for block in range(len(blocks.levels))], blocks.levels))
        levels[blocks.slices[0]] = root
    return _independent(blocks, levels, rules)


def _independent(blocks: Blocks, levels: Reals, rules: Sequence[Rule]) -> Prior:
    """Blocks with these shares of levels, independent but for the rules."""
    levels[blocks.slices[0]] *= allowed_roots(rules, blocks.levels[0])
    if not any(rule.others for rule in rules):
        return Product.of(blocks, levels)
    parents = spanning_parents(np.zeros((len(blocks.levels), len(blocks.levels))), needed_edges(rules))
    tables = [_independent_table(blocks, levels, block, parent) for block, parent in enumerate(parents, start=1)]
    _forbid(rules, parents, tables)
    return Tree.of(blocks, parents, levels[blocks.slices[0]] / levels[blocks.slices[0]].sum(), tables)


def reachable_roots(blocks: Blocks, rules: Sequence[Rule]) -> NDArray[np.bool_]:
    """Levels of the root that some point has which breaks no rule, whatever the other columns say."""
    if not rules:
        return np.ones(blocks.levels[0], dtype=bool)
    everywhere = _independent(blocks, np.ones(blocks.width), rules)
    return np.asarray(everywhere.tilt(np.zeros(blocks.width)).levels[blocks.slices[0]] > 0)


def _tree(blocks: Blocks, counted: Counted, weighted: Counted, *, root: Reals, rules: Sequence[Rule]) -> Tree:
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
    _forbid(rules, parents, tables)
    return Tree.of(blocks, parents, root * allowed_roots(rules, blocks.levels[0]), tables)


def _information(blocks: Blocks, total: float, weighted: Counted) -> Reals:
    """I(i; j | root) of the reweighted rows for all pairs of blocks, less its bias in small samples.

    For independent blocks the plug-in estimate is about (k_i − 1)(k_j − 1)·roots / 2N too high. Every pair of blocks
    is counted in every row, so with many of both the strongest pairs are looked for in a part of the rows.
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
    table = tally(cells, weights, 0)
    table = table[table > 0]
    return float(-(table * np.log(table)).sum())


def spanning_parents(information: Reals, forced: Sequence[tuple[int, int]]) -> list[int]:
    """Parent of blocks 1, 2, … in the maximum spanning forest of what pairs of blocks tell of each other (Prim).

    Pairs that tell nothing get no edge, ``forced`` ones do if any forest allows it; 0 where a block has no parent.
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

    They are smoothed towards what root and parent say each on its own, P(block | parent)·P(block | root) / P(block),
    normalised, so what the block tells of outcome and groups stays where rows are few. Those two are smoothed towards
    P(block). Within a level of the root the ``fair`` weights are proportional to the counts ``seen``, so these say how
    much is known there; what mixes levels of the root needs the fair weights.
    """
    own = fair.sum(axis=(0, 1)) / fair.sum()
    if seen.shape[1] == 1:
        return _shrink(seen, own, ROOT_STRENGTH)
    given_parent = _shrink(fair.sum(axis=0), own, best_strength(seen.sum(axis=0), own))
    given_root = _shrink(seen.sum(axis=1), own, ROOT_STRENGTH)
    apart = given_root[:, None, :] * np.divide(given_parent, own, out=np.zeros_like(given_parent), where=own > 0)
    apart /= apart.sum(axis=-1, keepdims=True)
    return _shrink(seen, apart, best_strength(seen, apart))


def best_strength(counts: Reals, towards: Reals) -> float:
    """Choose how many rows the coarser table counts for: the most likely number when each row is left out in turn.

    A row that was seen n times among N has probability (n − 1 + s·towards) / (N − 1 + s) given the others, so the
    likelihood of all rows left out needs no folds and no chance, only Σ n·log of that over the cells.
    """
    totals, shares = (np.broadcast_to(own, counts.shape) for own in (counts.sum(axis=-1, keepdims=True), towards))
    cells = (counts > 0) & (shares > 0)
    n, rows, share = counts[cells], totals[cells], shares[cells]
    strength = STRENGTHS[:, None]
    left_out = (np.maximum(n - 1, 0) + strength * share) / (np.maximum(rows - 1, 0) + strength)
    return float(STRENGTHS[np.argmax(np.log(left_out) @ n)])


def _shrink(counts: Reals, towards: Reals, strength: float) -> Reals:
    """Conditional probabilities from counts, as if ``strength`` more rows had been seen."""
    return np.asarray((counts + strength * towards) / (counts.sum(axis=-1, keepdims=True) + strength))


def _independent_table(blocks: Blocks, levels: Reals, block: int, parent: int) -> Reals:
    """P(block) repeated for every level of root and parent, where rules can then strike out cells."""
    own = levels[blocks.slices[block]]
    above = blocks.levels[parent] if parent else 1
    return np.tile(own / own.sum(), (blocks.levels[0], above, 1))


def _forbid(rules: Sequence[Rule], parents: Sequence[int], tables: Sequence[Reals]) -> None:
    """Strike the forbidden cells out of freshly built tables."""
    for rule in rules:
        if len(rule.others) == 1:
            block, level = rule.others[0]
            tables[block - 1][rule.roots, :, level] = 0.0
        elif len(rule.others) == 2:
            (first, first_level), (second, second_level) = rule.others
            if parents[second - 1] == first:
                tables[second - 1][rule.roots, first_level, second_level] = 0.0
            elif parents[first - 1] == second:
                tables[first - 1][rule.roots, second_level, first_level] = 0.0
            else:
                raise ForbiddenError(
                    f"forbid {rule.text}: the forbidden pairs of columns form a cycle, which no tree can honour "
                    "exactly. Drop this rule, or join two of the columns into one."
                )
