"""The rooted tree: given the root's level, the other blocks form a tree; and how it is learned.

Every block but the root has two parents, the root and at most one other block. So for each level of the root the rest
is an ordinary tree, on which sum-product is exact, and the levels of the root form a mixture. Cost is linear in the
number of blocks, never in the size of the domain.

**Learning.** Let b be a block, r = (y, z_1, …) a level of the root, and a the level of the block's parent in the tree.
The table P(b | r, a) is refined step by step, from P(b) by what is known about each level of the outcome y, of every
protected column z_i, and of the parent a, until the whole cell has been asked. A step for the margin m with N_m rows,
n_m(b) of them in level b, compares them with what the table so far lets one expect, E_m(b) = Σ_{r, a in m} N(r, a)·P(b
| r, a) / N_m, and shrinks them towards it, T_m(b) = (n_m(b) + s·E_m(b)) / (N_m + s). Then P(b | r, a) is multiplied by
T_m / E_m and normalised. So a cell without rows has what its outcome, its groups and its parent say together, and a
large one has what was seen in it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.columns import Arrays
from fairmaxent.data.draws import Choice
from fairmaxent.data.limits import MOST_CELLS, logarithms, need_memory, sound
from fairmaxent.data.table import Blocks, Codes, Counted, Reals, tally
from fairmaxent.errors import LimitError, Option
from fairmaxent.maxent.forbidden import Rule, allowed_roots, needed_edges, strike_out
from fairmaxent.maxent.logspace import entropy, log_gamma, log_sum_exp, softmax
from fairmaxent.maxent.priors.protocol import Drawn, Tabular

# Pairwise probabilities are built for several root levels at a time, in about this many numbers: few enough for the
# processor's cache.
_BUFFER = 1 << 18


@dataclass(frozen=True, eq=False)
class Tree(Tabular):
    """q(α) = root(r)·Π_b table_b(α_b | α_parent(b), r)."""

    blocks: Blocks
    parents: tuple[int, ...]  # parent of blocks 1, 2, …; 0 where the root is the only one
    log_root: Reals  # (root levels,)
    log_tables: tuple[Reals, ...]  # of blocks 1, 2, …: (root levels, parent levels or 1, levels)

    @classmethod
    def of(cls, blocks: Blocks, parents: Sequence[int], root: Reals, tables: Sequence[Reals]) -> "Tree":
        """Build from non-negative tables; zeros are honoured and the result is normalised."""
        with np.errstate(divide="ignore"):
            log_root, logs = np.log(root), tuple(np.log(table) for table in tables)
        tree = cls(blocks, tuple(parents), log_root, logs)
        excess = tree.tilt(np.zeros(blocks.width)).log_partition
        return cls(blocks, tree.parents, log_root - excess, logs)

    def pack(self) -> Arrays:
        """Return arrays from which `unpack` restores the tree."""
        tables = {str(number): table for number, table in enumerate(self.log_tables)}
        return {"parents": np.array(self.parents, dtype=np.int64), "root": self.log_root, **tables}

    @classmethod
    def unpack(cls, blocks: Blocks, arrays: Arrays) -> "Tree":
        """Restore what `pack` gave, after checking it."""
        root, *sizes = blocks.levels
        parents = sound(arrays["parents"], "i", (len(sizes),), low=0, high=len(sizes)).tolist()
        shapes = [
            (root, blocks.levels[above] if above else 1, size) for above, size in zip(parents, sizes, strict=True)
        ]
        tables = tuple(logarithms(arrays[str(number)], *shape) for number, shape in enumerate(shapes))
        tree = cls(blocks, tuple(parents), logarithms(arrays["root"], root), tables)
        if len(tree.order) != len(parents):
            raise ValueError("the tree has a cycle")
        return tree

    def tilt(self, potentials: Reals) -> "TiltedTree":
        """Tilt by one potential per level: sum-product towards the root, in log space, for all its levels at once."""
        parts = self.blocks.split(potentials)
        beliefs = [part[None, :] for part in parts[1:]]
        scores = self.log_root + parts[0]
        conditionals: list[Reals] = [np.empty(0)] * len(self.parents)
        for block in reversed(self.order):
            log_joint = self.log_tables[block - 1] + beliefs[block - 1][:, None, :]
            message = log_sum_exp(log_joint)
            shift = np.where(np.isfinite(message), message, 0.0)
            conditionals[block - 1] = np.exp(log_joint - shift[:, :, None])
            parent = self.parents[block - 1]
            if parent:
                beliefs[parent - 1] = beliefs[parent - 1] + message
            else:
                scores = scores + message[:, 0]
        log_partition, root = softmax(scores)
        return TiltedTree(self, log_partition, root, conditionals)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The blocks but the root, each behind its parent."""
        children: dict[int, list[int]] = {}
        for block, parent in enumerate(self.parents, start=1):
            children.setdefault(parent, []).append(block)
        order, waiting = [], children.get(0, [])[::-1]
        while waiting:
            order.append(waiting.pop())
            waiting.extend(children.get(order[-1], [])[::-1])
        return tuple(order)

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α)."""
        roots = codes[:, 0].astype(np.intp)
        result = self.log_root.take(roots)
        for block, (parent, table) in enumerate(zip(self.parents, self.log_tables, strict=True), start=1):
            cells = roots * table.shape[1]  # in C order, as three indices at once are slow
            if parent:
                cells += codes[:, parent]
            cells *= table.shape[2]
            cells += codes[:, block]
            result += table.ravel().take(cells)
        return result

    @property
    def full_support(self) -> bool:
        """Whether no cell was struck out."""
        return all(bool(np.isfinite(table).all()) for table in (self.log_root, *self.log_tables))

    def log_floor(self) -> float:
        """Bound log q(α) from below on the support, table by table."""
        floor = self.log_root[np.isfinite(self.log_root)].min()
        return float(floor + sum(table[np.isfinite(table)].min() for table in self.log_tables))


@dataclass(frozen=True, eq=False)
class TiltedTree:
    """A tilted tree is a tree again: a root distribution and conditional tables, now normalised."""

    tree: Tree
    log_partition: float
    root: Reals
    conditionals: list[Reals]  # P(α_b | α_parent, r) for blocks 1, 2, …

    @cached_property
    def given_root(self) -> list[Reals]:
        """P(α_b | r) for blocks 1, 2, …, by passing down from the root."""
        tables: list[Reals] = [np.empty(0)] * len(self.conditionals)
        for block in self.tree.order:
            parent, table = self.tree.parents[block - 1], self.conditionals[block - 1]
            tables[block - 1] = (np.matmul(tables[parent - 1][:, None, :], table) if parent else table)[:, 0, :]
        return tables

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level of each block."""
        return np.concatenate([self.root, *(self.root @ part for part in self.given_root)])

    def pairs(self) -> Reals:
        """Probability of each pair of levels: exact within each level of the root, then mixed."""
        slices = self.tree.blocks.slices
        result = np.diag(self.levels)
        for part, table in zip(slices[1:], self.given_root, strict=True):
            result[slices[0], part] = self.root[:, None] * table
            result[part, slices[0]] = result[slices[0], part].T
        if not self.tree.parents:
            return result
        order = sorted(self.tree.order, key=lambda block: block not in self.tree.parents)  # parents first, then leaves
        levels, sizes = np.arange(self.tree.blocks.width), self.tree.blocks.levels
        inner = np.concatenate([levels[slices[block]] for block in order])
        pairs = np.zeros((len(inner), len(inner)))  # in this order, each pair once
        parents = sum(sizes[block] for block in order if block in self.tree.parents)
        live = np.flatnonzero(self.root > 0)
        batch = max(1, _BUFFER // (max(parents, *sizes[1:]) * len(inner)))
        for begin in range(0, len(live), batch):
            self._add_pairs(pairs, live[begin : begin + batch], order, parents)
        pairs += pairs.T
        result[np.ix_(inner, inner)] += pairs
        return result

    def _add_pairs(self, pairs: Reals, roots: NDArray[np.intp], order: Sequence[int], parents: int) -> None:
        """Add P(α_i, α_j, r) for some r: a block depends on all blocks before it only through its parent.

        P(α_i, α_j | r) is kept where α_i is among the first levels, those of parents, for the blocks that follow.
        """
        blocks, weights = self.tree.blocks, self.root[roots]
        marginals = np.concatenate([self.given_root[block - 1][roots] for block in order], axis=1)
        kept = np.zeros((len(roots), parents, marginals.shape[1]))
        parts: dict[int, slice] = {}
        begin = 0
        for block in order:
            end, parent = begin + blocks.levels[block], self.tree.parents[block - 1]
            table = self.conditionals[block - 1][roots].transpose(0, 2, 1)
            joint = table @ kept[:, parts[parent], :begin] if parent else table * marginals[:, None, :begin]
            pairs[begin:end, :begin] += (weights @ joint.reshape(len(roots), -1)).reshape(end - begin, begin)
            above = min(begin, parents)
            kept[:, :above, begin:end] = joint[:, :, :above].transpose(0, 2, 1)
            if end <= parents:
                diagonal = np.arange(begin, end)
                kept[:, begin:end, :begin] = joint
                kept[:, diagonal, diagonal] = marginals[:, begin:end]
            parts[block], begin = slice(begin, end), end

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks.

        Sum-product from the leaves upwards in which a wanted block is not summed out but kept as an axis.
        """
        roots, sizes = len(self.root), self.tree.blocks.levels
        # Message to each block: its table over the wanted blocks below, flattened, and which they are.
        below: dict[int, tuple[Reals, list[int]]] = {0: (np.ones((roots, 1, 1)), [])}
        for block in reversed(self.tree.order):
            table, kept = below.pop(block, (np.ones((roots, sizes[block], 1)), []))
            if block in wanted:
                table, kept = _keep_axis(table), [block, *kept]
            message = self.conditionals[block - 1] @ table
            parent = self.tree.parents[block - 1]
            above, above_kept = below.get(parent, (np.ones((roots, message.shape[1], 1)), []))
            merged = above[:, :, :, None] * message[:, :, None, :]
            below[parent] = (merged.reshape(*merged.shape[:2], -1), above_kept + kept)
        table, kept = below[0]
        shaped = (self.root[:, None] * table[:, 0, :]).reshape(roots, *(sizes[block] for block in kept))
        if 0 not in wanted:
            return np.asarray(shaped.sum(axis=0)).transpose([kept.index(block) for block in wanted])
        return shaped.transpose([[0, *kept].index(block) for block in wanted])

    def draw(
        self, roots: NDArray[np.intp], rng: np.random.Generator, *, spread: bool = False, evenly: bool = False
    ) -> Drawn:
        """Draw each block given its parents, parents first; ``evenly``: each level by its share, up to one row."""
        codes = np.empty((len(roots), len(self.tree.blocks.levels)), dtype=np.intp, order="F")
        codes[:, 0] = roots
        for block in self.tree.order:
            parent = self.tree.parents[block - 1]
            given = roots * self.tree.blocks.levels[parent] + codes[:, parent] if parent else roots
            codes[:, block] = self._choices[block - 1].draw(given, rng, spread=evenly)
        return Drawn(codes, np.full(len(roots), -1, dtype=np.intp))

    @cached_property
    def _choices(self) -> list[Choice]:
        return [Choice.rows_of(table.reshape(-1, table.shape[-1])) for table in self.conditionals]


def _keep_axis(table: Reals) -> Reals:
    """Turn (roots, levels, rest) into (roots, levels, levels·rest), diagonal in the two level axes."""
    roots, levels, rest = table.shape
    kept = np.zeros((roots, levels, levels, rest))
    diagonal = np.arange(levels)
    kept[:, diagonal, diagonal, :] = table
    return kept.reshape(roots, levels, levels * rest)


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
    added = best_strength(seen, expected) if strength is None else strength
    wanted = (seen + added * expected) / (seen.sum(axis=-1, keepdims=True) + added)
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


def _normalised(table: Reals) -> Reals:
    """Let the last axis sum to 1, or to 0 where it does."""
    total = table.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0))


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
    # axes root, parent, block; a block without a parent has one of a single level
    counts = [seen.reshape(len(seen), -1, seen.shape[-1]) for seen in counts]
    tables = [smoothed(worth[:, None, None] * seen, blocks.shape(0)) for seen in counts]
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
