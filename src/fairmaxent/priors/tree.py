"""The rooted tree: given the root's level, the other blocks form a tree.

Every block but the root has two parents, the root and at most one other block. So for each level of the
root the rest is an ordinary tree, on which sum-product is exact, and the levels of the root form a
mixture. Cost is linear in the number of blocks, never in the size of the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks
from fairmaxent.choice import Choice
from fairmaxent.priors.protocol import Tilted, log_sum_exp, nothing_left
from fairmaxent.table import Codes, Reals

# Pairwise probabilities are built for several root levels at a time, in at most this many numbers.
_BUFFER = 1 << 24


@dataclass(frozen=True)
class Tree:
    """q(α) = root(r)·Π_b table_b(α_b | α_parent(b), r)."""

    blocks: Blocks
    parents: tuple[int, ...]  # parent of blocks 1, 2, …; 0 where the root is the only one
    log_root: Reals  # (root levels,)
    log_tables: tuple[Reals, ...]  # of blocks 1, 2, …: (root levels, parent levels or 1, levels)

    @classmethod
    def of(cls, blocks: Blocks, parents: Sequence[int], root: Reals, tables: Sequence[Reals]) -> Tree:
        """Build from non-negative tables; zeros are honoured and the whole is normalised."""
        with np.errstate(divide="ignore"):
            log_root, logs = np.log(root), tuple(np.log(table) for table in tables)
        tree = cls(blocks, tuple(parents), log_root, logs)
        excess = tree.tilt(np.zeros(blocks.width)).log_partition
        return cls(blocks, tree.parents, log_root - excess, logs)

    def tilt(self, potentials: Reals, *, pairs: bool = False) -> Tilted:
        """Tilt by one potential per level."""
        posterior = self._posterior(potentials)
        if np.isneginf(posterior.log_partition):
            return nothing_left(self.blocks, pairs=pairs)
        given_root = posterior.levels_given_root()
        levels = np.concatenate([posterior.root, *(posterior.root @ part for part in given_root)])
        both = self._pairs(posterior, given_root, levels) if pairs else None
        return Tilted(posterior.log_partition, levels, both)

    def joint(self, potentials: Reals, wanted: Sequence[int]) -> Reals:
        """Tilt, and return the joint table of a few blocks.

        Sum-product from the leaves upwards in which a wanted block is not summed out but kept as an axis.
        """
        posterior = self._posterior(potentials)
        roots = len(self.log_root)
        # Message to each block: its table over the wanted blocks below, flattened, and which they are.
        below: dict[int, tuple[Reals, list[int]]] = {0: (np.ones((roots, 1, 1)), [])}
        for block in reversed(posterior.order):
            table, kept = below.pop(block, (np.ones((roots, self.blocks.levels[block], 1)), []))
            if block in wanted:
                table = _keep_axis(table)
                kept = [block, *kept]
            message = posterior.conditionals[block - 1] @ table
            parent = self.parents[block - 1]
            above, above_kept = below.get(parent, (np.ones((roots, message.shape[1], 1)), []))
            merged = above[:, :, :, None] * message[:, :, None, :]
            below[parent] = (merged.reshape(*merged.shape[:2], -1), above_kept + kept)
        table, kept = below[0]
        return self._arrange(posterior.root[:, None] * table[:, 0, :], kept, wanted)

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α)."""
        roots = codes[:, 0]
        result = self.log_root[roots].copy()
        for block, (parent, table) in enumerate(zip(self.parents, self.log_tables, strict=True), start=1):
            above = codes[:, parent] if parent else 0
            result += table[roots, above, codes[:, block]]
        return result

    def sampler(self, potentials: Reals) -> TreeSampler:
        """Tilt, and prepare for drawing."""
        posterior = self._posterior(potentials)
        choices = tuple(Choice.rows_of(table.reshape(-1, table.shape[-1])) for table in posterior.conditionals)
        return TreeSampler(self.blocks, self.parents, tuple(posterior.order), choices)

    def log_floor(self) -> float:
        """Bound log q(α) from below on the support, table by table."""
        floor = self.log_root[np.isfinite(self.log_root)].min()
        return float(floor + sum(table[np.isfinite(table)].min() for table in self.log_tables))

    def _posterior(self, potentials: Reals) -> _Posterior:
        """Sum-product towards the root, in log space, for all levels of the root at once."""
        parts = self.blocks.split(potentials)
        order = _parents_first(self.parents)
        beliefs = [part[None, :] for part in parts[1:]]
        scores = self.log_root + parts[0]
        conditionals: list[Reals] = [np.empty(0)] * len(self.parents)
        for block in reversed(order):
            log_joint = self.log_tables[block - 1] + beliefs[block - 1][:, None, :]
            message = log_sum_exp(log_joint)
            shift = np.where(np.isfinite(message), message, 0.0)
            conditionals[block - 1] = np.exp(log_joint - shift[:, :, None])
            parent = self.parents[block - 1]
            if parent:
                beliefs[parent - 1] = beliefs[parent - 1] + message
            else:
                scores = scores + message[:, 0]
        log_partition = float(log_sum_exp(scores))
        root = np.exp(scores - log_partition) if np.isfinite(log_partition) else np.zeros_like(scores)
        return _Posterior(log_partition, root, conditionals, self.parents, order)

    def _pairs(self, posterior: _Posterior, given_root: list[Reals], levels: Reals) -> Reals:
        """Pairwise probabilities: exact within each level of the root, then mixed."""
        slices, width = self.blocks.slices, self.blocks.width
        result = np.zeros((width, width))
        result[slices[0], slices[0]] = np.diag(posterior.root)
        for part, table in zip(slices[1:], given_root, strict=True):
            result[slices[0], part] = posterior.root[:, None] * table
            result[part, slices[0]] = result[slices[0], part].T
        inner = slice(self.blocks.levels[0], width)
        live = np.flatnonzero(posterior.root > 0)
        batch = max(1, _BUFFER // max(1, (width - self.blocks.levels[0]) ** 2))
        for begin in range(0, len(live), batch):
            roots = live[begin : begin + batch]
            tables = self._pairs_given_root(posterior, given_root, roots)
            result[inner, inner] += np.tensordot(posterior.root[roots], tables, axes=1)
        return result

    def _pairs_given_root(self, posterior: _Posterior, given_root: list[Reals], roots: NDArray[np.intp]) -> Reals:
        """P(α_i, α_j | r): a block depends on all blocks placed before it only through its parent."""
        first = self.blocks.levels[0]
        inner = [slice(part.start - first, part.stop - first) for part in self.blocks.slices[1:]]
        width = self.blocks.width - first
        tables = np.zeros((len(roots), width, width))
        placed = np.zeros(0, dtype=np.intp)
        for block in posterior.order:
            own, parent = inner[block - 1], self.parents[block - 1]
            conditional = posterior.conditionals[block - 1][roots]
            if parent:
                cross = tables[:, placed, inner[parent - 1]] @ conditional
            else:
                marginals = np.concatenate([part[roots] for part in given_root], axis=1)
                cross = marginals[:, placed, None] * conditional
            tables[:, placed, own] = cross
            tables[:, own, placed] = cross.transpose(0, 2, 1)
            diagonal = np.arange(own.start, own.stop)
            tables[:, diagonal, diagonal] = given_root[block - 1][roots]
            placed = np.concatenate([placed, diagonal])
        return tables

    def _arrange(self, table: Reals, kept: list[int], wanted: Sequence[int]) -> Reals:
        """Give a (root levels, kept blocks flattened) table one axis per wanted block, in their order."""
        shaped = table.reshape(len(table), *(self.blocks.levels[block] for block in kept))
        if 0 not in wanted:
            shaped = shaped.sum(axis=0)
            return np.asarray(shaped).transpose([kept.index(block) for block in wanted])
        axes = [0, *kept]
        return shaped.transpose([axes.index(block) for block in wanted])


@dataclass(frozen=True)
class _Posterior:
    """A tilted tree: again a root distribution and conditional tables, now normalised."""

    log_partition: float
    root: Reals
    conditionals: list[Reals]
    parents: tuple[int, ...]
    order: list[int]

    def levels_given_root(self) -> list[Reals]:
        """P(α_b | r) for blocks 1, 2, …, by passing down from the root."""
        tables: list[Reals] = [np.empty(0)] * len(self.parents)
        for block in self.order:
            parent, conditional = self.parents[block - 1], self.conditionals[block - 1]
            if parent:
                tables[block - 1] = np.matmul(tables[parent - 1][:, None, :], conditional)[:, 0, :]
            else:
                tables[block - 1] = conditional[:, 0, :]
        return tables


@dataclass(frozen=True)
class TreeSampler:
    """Draws each block given its parents, parents first."""

    blocks: Blocks
    parents: tuple[int, ...]
    order: tuple[int, ...]
    choices: tuple[Choice, ...]

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator) -> Codes:
        """Draw one row for each wanted root level."""
        codes = np.empty((len(roots), len(self.parents) + 1), dtype=np.intp, order="F")
        codes[:, 0] = roots
        for block in self.order:
            parent = self.parents[block - 1]
            given = roots * self.blocks.levels[parent] + codes[:, parent] if parent else roots
            codes[:, block] = self.choices[block - 1].draw(given, rng)
        return codes


def _parents_first(parents: Sequence[int]) -> list[int]:
    """Order the blocks so that each stands behind its parent."""
    children: dict[int, list[int]] = {}
    for block, parent in enumerate(parents, start=1):
        children.setdefault(parent, []).append(block)
    order: list[int] = []
    waiting = children.get(0, [])[::-1]
    while waiting:
        block = waiting.pop()
        order.append(block)
        waiting.extend(children.get(block, [])[::-1])
    return order


def _keep_axis(table: Reals) -> Reals:
    """Turn (roots, levels, rest) into (roots, levels, levels·rest), diagonal in the two level axes."""
    roots, levels, rest = table.shape
    kept = np.zeros((roots, levels, levels, rest))
    diagonal = np.arange(levels)
    kept[:, diagonal, diagonal, :] = table
    return kept.reshape(roots, levels, levels * rest)
