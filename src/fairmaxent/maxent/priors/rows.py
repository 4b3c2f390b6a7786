"""The rows themselves as a prior: weights w on the distinct rows.

Neighbouring blocks are packed into one number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from fairmaxent.data.draws import Choice
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Indices,
    Mask,
    Reals,
    Table,
    equal_steps,
    marginal,
    match_rows,
    ravel,
    tally,
)
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.protocol import Drawn

# Tables of this many numbers stay in the fastest memory while the rows pass by.
_LARGEST_PACK = 1 << 14
# Tables of pairs are larger, as each saves several visits of every row, but no larger
# than the work on the rows.
_LARGEST_TABLE = 1 << 17
_CELLS_PER_ROW = 4


@dataclass(frozen=True, eq=False)
class Pack:
    """Blocks ``first`` to ``last`` (exclusive) of a row as one number, its *cell*."""

    first: int
    last: int
    shape: tuple[int, ...]
    levels: slice  # where the levels of its blocks stand in a vector over all levels
    codes: Codes  # the cell of each row

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        codes: Codes,
        first: int,
        last: int,
    ) -> "Pack":
        """Pack some blocks."""
        shape = blocks.levels[first:last]
        levels = slice(blocks.slices[first].start, blocks.slices[last - 1].stop)
        if len(shape) == 1:
            return cls(first, last, shape, levels, codes[:, first])
        cells = ravel(codes[:, first:last], shape)
        smallest = np.min_scalar_type(math.prod(shape) - 1)
        return cls(first, last, shape, levels, cells.astype(smallest))

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def sums(self, parts: list[Reals]) -> Reals:
        """Sum values of the levels, one array per block, for each cell."""
        return reduce(np.add.outer, parts).ravel()

    def marginals(self, weights: Reals) -> Reals:
        """Total weight of each level, block by block, from the weights of the rows."""
        table = tally(self.codes, weights, self.size).reshape(self.shape)
        axes = range(len(self.shape))
        return np.concatenate([marginal(table, (axis,)) for axis in axes])

    def fold(self, table: Reals) -> Reals:
        """Sum the rows of a table, one per cell, into one row per level."""
        if len(self.shape) == 1:
            return table
        return self._incidence.T @ table

    def pairs(self, weights: Reals) -> Reals:
        """Total weight of each pair of levels, from the weights of the rows."""
        totals = tally(self.codes, weights, self.size)
        if len(self.shape) == 1:
            return np.diag(totals)
        return self.fold(totals[:, None] * self._incidence)

    @cached_property
    def _incidence(self) -> Reals:
        """Which levels each cell has: (cells, levels)."""
        levels = np.unravel_index(np.arange(self.size), self.shape)
        sizes = zip(self.shape, levels, strict=True)
        return np.hstack([np.eye(size)[level] for size, level in sizes])


def packed(blocks: Blocks, codes: Codes, largest: int) -> tuple[Pack, ...]:
    """Pack all blocks, neighbours together up to ``largest`` cells."""
    bounds = [0]
    cells = 1
    for block, size in enumerate(blocks.levels):
        cells *= size
        if cells > largest and block > bounds[-1]:
            bounds.append(block)
            cells = size
    return tuple(
        Pack.of(blocks, codes, first, last)
        for first, last in pairwise([*bounds, len(blocks.levels)])
    )


def pair_weights(packs: tuple[Pack, ...], weights: Reals) -> Reals:
    """Total weight of each pair of levels of all blocks, from the weights of the rows.

    Packs are counted against packs, which visits every row less often than counting
    blocks against blocks, and their tables are summed up for the levels.
    """
    width = packs[-1].levels.stop
    result = np.empty((width, width))
    # twice as fast as 64 bits
    columns = [pack.codes.astype(np.int32) for pack in packs]
    cells = np.empty(len(weights), dtype=np.int32)  # one buffer for all pairs
    for number, pack in enumerate(packs):
        result[pack.levels, pack.levels] = pack.pairs(weights)
        for other, column in zip(packs[:number], columns[:number], strict=True):
            np.multiply(columns[number], other.size, out=cells)
            cells += column
            table = tally(cells, weights, pack.size * other.size)
            pairs = pack.fold(other.fold(table.reshape(pack.size, other.size).T).T)
            result[pack.levels, other.levels] = pairs
            result[other.levels, pack.levels] = pairs.T
    return result


@dataclass(frozen=True, eq=False)
class Rows:
    """w(α) on the distinct rows α ∈ S, zero elsewhere.

    Tilting is a softmax over the rows.
    """

    blocks: Blocks
    codes: Codes  # distinct rows in lexicographic order, so equal roots stand together
    log_weights: Reals
    # rows rarely are all there could be, and no bound relies on it
    full_support = False

    @classmethod
    def weighted(
        cls,
        blocks: Blocks,
        codes: Codes,
        weights: Reals,
    ) -> "Rows":
        """Keep the rows of positive weight and normalise."""
        kept = weights > 0
        if not kept.all():
            codes = codes[kept]
            weights = weights[kept]
        return cls(blocks, np.asfortranarray(codes), np.log(weights / weights.sum()))

    @classmethod
    def of(cls, blocks: Blocks, table: Table) -> "Rows":
        """Take the counts of distinct rows as their weights."""
        return cls.weighted(blocks, table.codes, table.counts)

    def only(self, used: Mask) -> "Rows":
        """Keep some of the rows."""
        weights = np.exp(self.log_weights[used])
        return Rows.weighted(self.blocks, self.codes[used], weights)

    def tilt(self, potentials: Reals) -> "TiltedRows":
        """Tilt by one potential per level."""
        log_partition, weights = softmax(self.log_weights + self.scores(potentials))
        return TiltedRows(self, log_partition, weights)

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows."""
        position = match_rows(self.codes, codes, self.blocks.levels)
        return np.append(self.log_weights, -np.inf)[position]  # -1: absent

    def thinned(self, rows: int) -> "Rows":
        """Take rows at equal steps of the running weight.

        As rows are sorted, neighbours represent each other.
        """
        if len(self.codes) <= rows:
            return self
        chosen = equal_steps(np.exp(self.log_weights), rows)
        codes = np.asfortranarray(self.codes[chosen])
        return Rows(self.blocks, codes, np.full(rows, -np.log(rows)))

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.codes)

    def log_floor(self) -> float:
        """Return the smallest log w(α)."""
        return float(self.log_weights.min(initial=np.inf))

    def scores(self, potentials: Reals) -> Reals:
        """Sum of each row's potentials."""
        total = np.zeros(len(self.codes))
        parts = self.blocks.split(potentials)
        for pack in self.packs:
            table = pack.sums(parts[pack.first : pack.last])
            if table.any():
                total += table.take(pack.codes)
        return total

    def level_sums(self, weights: Reals) -> Reals:
        """Total weight of each level, from the weights of the rows."""
        return np.concatenate([pack.marginals(weights) for pack in self.packs])

    def pair_sums(self, weights: Reals) -> Reals:
        """Total weight of each pair of levels, from the weights of the rows."""
        return pair_weights(self.pair_packs, weights)

    def incidence(self) -> Any:
        """Which level each row has in each block: (levels, rows), sparse."""
        from scipy import sparse

        firsts = np.array([part.start for part in self.blocks.slices])
        levels = self.codes + firsts
        rows = np.repeat(np.arange(len(levels)), levels.shape[1])
        return sparse.csr_array(
            (np.ones(levels.size), (levels.ravel(), rows)),
            shape=(self.blocks.width, len(levels)),
        )

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        """The blocks packed for sums over single levels."""
        return packed(self.blocks, self.codes, min(_LARGEST_PACK, len(self.codes) // 4))

    @cached_property
    def pair_packs(self) -> tuple[Pack, ...]:
        """The blocks packed for sums over pairs of levels.

        No two packs make too large a table.
        """
        cells = min(_LARGEST_TABLE, _CELLS_PER_ROW * len(self.codes))
        largest = min(math.isqrt(cells), cells // max(self.blocks.levels))
        return packed(self.blocks, self.codes, largest)

    @cached_property
    def root_starts(self) -> Indices:
        """Where the rows of each level of the root begin."""
        return np.searchsorted(self.codes[:, 0], np.arange(self.blocks.levels[0]))


@dataclass(frozen=True, eq=False)
class TiltedRows:
    """Rows with new weights."""

    rows: Rows
    log_partition: float
    weights: Reals

    def on(self, codes: Codes) -> Reals:
        """The weight of each of some distinct rows, which all of these are among.

        They are in lexicographic order.
        """
        weights = np.zeros(len(codes))
        places = match_rows(codes, self.rows.codes, self.rows.blocks.levels)
        weights[places] = self.weights
        return weights

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level, by counting."""
        return self.rows.level_sums(self.weights)

    def pairs(self) -> Reals:
        """Probability of each pair of levels, by counting."""
        return self.rows.pair_sums(self.weights)

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks, by counting."""
        shape = [self.rows.blocks.levels[block] for block in wanted]
        cells = ravel(self.rows.codes[:, list(wanted)], shape)
        return tally(cells, self.weights, int(np.prod(shape))).reshape(shape)

    def draw(
        self,
        roots: Indices,
        rng: np.random.Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw one of the distinct rows for each wanted root level."""
        within = self._choice.draw(roots, rng, spread=spread)
        places = self.rows.root_starts[roots] + within
        return Drawn(self.rows.codes[places], places)

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights, self.rows.root_starts)
