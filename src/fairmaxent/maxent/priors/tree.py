"""The rooted tree: given the root's level, the other blocks form a tree.

Every block but the root has two parents, the root and at most one other block. So for
each level of the root the rest is an ordinary tree, on which sum-product is exact, and
the levels of the root form a mixture. Cost is linear in the number of blocks, never in
the size of the domain.

One block may be the *hub*, a third parent of all the others. Then everything above
holds for the levels of the root and the hub together, the *trunk*. Given the trunk, the
hub is certain, so it is a block without a parent like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairmaxent.data.columns import Arrays
from fairmaxent.data.draws import Choice
from fairmaxent.data.limits import logarithms, sound
from fairmaxent.data.table import Blocks, Codes, Indices, Reals
from fairmaxent.maxent.logspace import log_sum_exp, softmax
from fairmaxent.maxent.priors.protocol import Drawn, Tabular

# Pairwise probabilities are built for several root levels at a time, in about this many
# numbers: few enough for the processor's cache.
_BUFFER = 1 << 18


@dataclass(frozen=True, eq=False)
class Tree(Tabular):
    """q(α) = root(r)·Π_b table_b(α_b | α_parent(b), r).

    In all tables but the hub's, r is the trunk.
    """

    blocks: Blocks
    # parent of blocks 1, 2, …; 0 where the root is the only one; the hub is its own
    parents: tuple[int, ...]
    log_root: Reals  # (root levels,)
    # blocks 1, 2, … have (trunk levels, parent levels or 1, levels), the hub (root …)
    log_tables: tuple[Reals, ...]

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        parents: Sequence[int],
        root: Reals,
        tables: Sequence[Reals],
    ) -> "Tree":
        """Build from non-negative tables; zeros are honoured, and it is normalised."""
        with np.errstate(divide="ignore"):
            log_root = np.log(root)
            logs = tuple(np.log(table) for table in tables)
        tree = cls(blocks, tuple(parents), log_root, logs)
        excess = tree.tilt(np.zeros(blocks.width)).log_partition
        return cls(blocks, tree.parents, log_root - excess, logs)

    def pack(self) -> Arrays:
        """Return arrays from which `unpack` restores the tree."""
        tables = {str(number): table for number, table in enumerate(self.log_tables)}
        return {
            "parents": np.array(self.parents, dtype=np.int64),
            "root": self.log_root,
            **tables,
        }

    @classmethod
    def unpack(cls, blocks: Blocks, arrays: Arrays) -> "Tree":
        """Restore what `pack` gave, after checking it."""
        root, *sizes = blocks.levels
        count = len(sizes)
        parents = sound(
            arrays["parents"],
            "i",
            (count,),
            low=0,
            high=count,
        ).tolist()
        bare = cls(blocks, tuple(parents), logarithms(arrays["root"], root), ())
        if len(bare.order) + (bare.hub > 0) != count:
            raise ValueError("the tree has a cycle")
        tables = []
        for block, parent in enumerate(parents, start=1):
            if block == bare.hub:
                above = (root, 1)
            else:
                trunk = root * bare.branches
                above = (trunk, blocks.levels[parent] if parent else 1)
            shape = (*above, blocks.levels[block])
            tables.append(logarithms(arrays[str(block - 1)], *shape))
        return replace(bare, log_tables=tuple(tables))

    @cached_property
    def hub(self) -> int:
        """The block that all others depend on, too; 0 if there is none."""
        blocks = enumerate(self.parents, start=1)
        return next((block for block, parent in blocks if block == parent), 0)

    @property
    def branches(self) -> int:
        """Levels of the trunk for each level of the root."""
        return self.blocks.levels[self.hub] if self.hub else 1

    def tilt(self, potentials: Reals) -> "TiltedTree":
        """Tilt by one potential per level.

        By sum-product towards the root, in log space, for all its levels at once.
        """
        parts = self.blocks.split(potentials)
        beliefs = [part[None, :] for part in parts[1:]]
        scores = self.log_root + parts[0]
        conditionals: list[Reals] = [np.empty(0)] * len(self.parents)
        if self.hub:
            log_hub = self.log_tables[self.hub - 1][:, 0, :]
            scores = (scores[:, None] + log_hub + parts[self.hub]).ravel()
            certain = np.tile(np.eye(self.branches), (len(parts[0]), 1))
            conditionals[self.hub - 1] = certain[:, None, :]
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
        log_partition, trunk = softmax(scores)
        return TiltedTree(self, log_partition, trunk, conditionals)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The blocks but the root and the hub, each behind its parent."""
        children: dict[int, list[int]] = {}
        for block, parent in enumerate(self.parents, start=1):
            children.setdefault(parent, []).append(block)
        order = []
        waiting = children.get(0, [])[::-1]
        while waiting:
            order.append(waiting.pop())
            waiting.extend(children.get(order[-1], [])[::-1])
        return tuple(order)

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α)."""
        roots = codes[:, 0].astype(np.intp)
        result = self.log_root.take(roots)
        trunk = roots
        if self.hub:
            trunk = roots * self.branches + codes[:, self.hub]
        for block, parent in enumerate(self.parents, start=1):
            table = self.log_tables[block - 1]
            given = roots if block == self.hub else trunk
            # In C order: three indices at once are slow.
            cells = given * table.shape[1]
            if parent not in (0, block):
                cells += codes[:, parent]
            cells *= table.shape[2]
            cells += codes[:, block]
            result += table.ravel().take(cells)
        return result

    @property
    def full_support(self) -> bool:
        """Whether no cell was struck out."""
        tables = (self.log_root, *self.log_tables)
        return all(np.isfinite(table).all() for table in tables)

    def log_floor(self) -> float:
        """Bound log q(α) from below on the support, table by table."""
        floor = self.log_root[np.isfinite(self.log_root)].min()
        floors = (table[np.isfinite(table)].min() for table in self.log_tables)
        return float(floor + sum(floors))


@dataclass(frozen=True, eq=False)
class TiltedTree:
    """A tree again: a root distribution and conditional tables, now normalised."""

    tree: Tree
    log_partition: float
    trunk: Reals  # of the root, or of root and hub in C order
    conditionals: list[Reals]  # P(α_b | α_parent, trunk) for blocks 1, 2, …

    @property
    def root(self) -> Reals:
        """Probability of each level of the root."""
        return self._by_root(self.trunk)

    def _by_root(self, table: Reals) -> Reals:
        """Sum a table whose first axis is the trunk over the hub."""
        by_hub = table.reshape(-1, self.tree.branches, *table.shape[1:])
        return by_hub.sum(axis=1)

    @cached_property
    def parents(self) -> dict[int, int]:
        """The parents of all blocks but the root, each behind its own.

        The hub has none beside the trunk.
        """
        hub = {self.tree.hub: 0} if self.tree.hub else {}
        return hub | {block: self.tree.parents[block - 1] for block in self.tree.order}

    @cached_property
    def given_trunk(self) -> list[Reals]:
        """P(α_b | trunk) for blocks 1, 2, …, by passing down."""
        tables: list[Reals] = [np.empty(0)] * len(self.conditionals)
        for block, parent in self.parents.items():
            table = self.conditionals[block - 1]
            if parent:
                table = np.matmul(tables[parent - 1][:, None, :], table)
            tables[block - 1] = table[:, 0, :]
        return tables

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level of each block."""
        others = [self.trunk @ part for part in self.given_trunk]
        return np.concatenate([self.root, *others])

    def pairs(self) -> Reals:
        """Probability of each pair of levels: exact given the trunk, then mixed."""
        slices = self.tree.blocks.slices
        result = np.diag(self.levels)
        for part, table in zip(slices[1:], self.given_trunk, strict=True):
            result[slices[0], part] = self._by_root(self.trunk[:, None] * table)
            result[part, slices[0]] = result[slices[0], part].T
        if not self.tree.parents:
            return result
        with_children = set(self.parents.values())
        # parents first, then leaves
        order = sorted(self.parents, key=lambda block: block not in with_children)
        sizes = self.tree.blocks.levels
        levels = np.arange(self.tree.blocks.width)
        inner = np.concatenate([levels[slices[block]] for block in order])
        pairs = np.zeros((len(inner), len(inner)))  # in this order, each pair once
        parents = sum(sizes[block] for block in order if block in with_children)
        live = np.flatnonzero(self.trunk > 0)
        batch = max(1, _BUFFER // (max(parents, *sizes[1:]) * len(inner)))
        for begin in range(0, len(live), batch):
            self._add_pairs(pairs, live[begin : begin + batch], order, parents)
        pairs += pairs.T
        result[np.ix_(inner, inner)] += pairs
        return result

    def _add_pairs(
        self,
        pairs: Reals,
        roots: Indices,
        order: Sequence[int],
        parents: int,
    ) -> None:
        """Add P(α_i, α_j, r) for some r.

        A block depends on all blocks before it only through its parent. P(α_i, α_j | r)
        is kept where α_i is among the first levels, those of parents, for the blocks
        that follow.
        """
        blocks = self.tree.blocks
        weights = self.trunk[roots]
        given_roots = [self.given_trunk[block - 1][roots] for block in order]
        marginals = np.concatenate(given_roots, axis=1)
        kept = np.zeros((len(roots), parents, marginals.shape[1]))
        parts: dict[int, slice] = {}
        begin = 0
        for block in order:
            end = begin + blocks.levels[block]
            parent = self.parents[block]
            table = self.conditionals[block - 1][roots].transpose(0, 2, 1)
            if parent:
                joint = table @ kept[:, parts[parent], :begin]
            else:
                joint = table * marginals[:, None, :begin]
            mixed = weights @ joint.reshape(len(roots), -1)
            pairs[begin:end, :begin] += mixed.reshape(end - begin, begin)
            above = min(begin, parents)
            kept[:, :above, begin:end] = joint[:, :, :above].transpose(0, 2, 1)
            if end <= parents:
                diagonal = np.arange(begin, end)
                kept[:, begin:end, :begin] = joint
                kept[:, diagonal, diagonal] = marginals[:, begin:end]
            parts[block] = slice(begin, end)
            begin = end

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks.

        Sum-product from the leaves upwards in which a wanted block is not summed out
        but kept as an axis.
        """
        roots = len(self.trunk)
        sizes = self.tree.blocks.levels
        # Message to each block: its table over the wanted blocks below, flattened, and
        # which they are.
        below: dict[int, tuple[Reals, list[int]]] = {0: (np.ones((roots, 1, 1)), [])}
        for block, parent in reversed(self.parents.items()):
            table, kept = below.pop(block, (np.ones((roots, sizes[block], 1)), []))
            if block in wanted:
                table = _keep_axis(table)
                kept = [block, *kept]
            message = self.conditionals[block - 1] @ table
            above, above_kept = below.get(
                parent, (np.ones((roots, message.shape[1], 1)), [])
            )
            merged = above[:, :, :, None] * message[:, :, None, :]
            below[parent] = (merged.reshape(*merged.shape[:2], -1), above_kept + kept)
        table, kept = below[0]
        shaped = self._by_root(self.trunk[:, None] * table[:, 0, :])
        shaped = shaped.reshape(sizes[0], *(sizes[block] for block in kept))
        if 0 in wanted:
            kept = [0, *kept]
        else:
            shaped = shaped.sum(axis=0)
        return shaped.transpose([kept.index(block) for block in wanted])

    def draw(
        self,
        roots: Indices,
        rng: np.random.Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw each block given its parents, parents first.

        ``spread``: each level by its share, up to one row.
        """
        sizes = self.tree.blocks.levels
        codes = np.empty((len(roots), len(sizes)), dtype=np.intp, order="F")
        codes[:, 0] = trunk = roots
        if self.tree.hub:
            given_root = Choice.rows_of(self.trunk.reshape(-1, self.tree.branches))
            hubs = given_root.draw(roots, rng, spread=spread)
            trunk = roots * self.tree.branches + hubs
        for block, parent in self.parents.items():
            given = trunk
            if parent:
                given = trunk * sizes[parent] + codes[:, parent]
            codes[:, block] = self._choices[block - 1].draw(given, rng, spread=spread)
        return Drawn(codes, np.full(len(roots), -1, dtype=np.intp))

    @cached_property
    def _choices(self) -> list[Choice]:
        return [
            Choice.rows_of(table.reshape(-1, table.shape[-1]))
            for table in self.conditionals
        ]


def _keep_axis(table: Reals) -> Reals:
    """Turn (roots, levels, rest) into (roots, levels, levels·rest).

    It is diagonal in the two axes of levels.
    """
    roots, levels, rest = table.shape
    kept = np.zeros((roots, levels, levels, rest))
    diagonal = np.arange(levels)
    kept[:, diagonal, diagonal, :] = table
    return kept.reshape(roots, levels, levels * rest)
