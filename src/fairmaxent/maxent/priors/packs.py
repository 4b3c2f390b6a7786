"""Packs: neighbouring blocks of every row as one number, so that a row is visited once for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np

from fairmaxent.data.table import Blocks, Codes, Reals, ravel, tally


@dataclass(frozen=True, eq=False)
class Pack:
    """Blocks ``first`` to ``last`` (exclusive) of every row as one number, the *cell* of the row."""

    first: int
    last: int
    shape: tuple[int, ...]
    levels: slice
    """Where the levels of its blocks stand in a vector over all levels."""
    codes: Codes
    """The cell of each row."""

    @classmethod
    def of(cls, blocks: Blocks, codes: Codes, first: int, last: int) -> Pack:
        """Pack some blocks."""
        shape = blocks.levels[first:last]
        levels = slice(blocks.slices[first].start, blocks.slices[last - 1].stop)
        if len(shape) == 1:
            return cls(first, last, shape, levels, codes[:, first])
        packed = ravel(codes[:, first:last], shape)
        return cls(first, last, shape, levels, packed.astype(np.min_scalar_type(math.prod(shape) - 1)))

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def sums(self, parts: list[Reals]) -> Reals:
        """Sum values of the levels of its blocks, one array per block, for each cell."""
        return np.asarray(reduce(np.add.outer, parts)).ravel()

    def marginals(self, weights: Reals) -> Reals:
        """Total weight of each level of its blocks, one block after the other, from the weights of the rows."""
        table = tally(self.codes, weights, self.size).reshape(self.shape)
        axes = range(len(self.shape))
        return np.concatenate([table.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes])

    def fold(self, table: Reals) -> Reals:
        """Sum the rows of a table, one per cell, into one row per level."""
        return table if len(self.shape) == 1 else self._incidence.T @ table

    def pairs(self, weights: Reals) -> Reals:
        """Total weight of each pair of levels of its blocks, from the weights of the rows."""
        totals = tally(self.codes, weights, self.size)
        return np.diag(totals) if len(self.shape) == 1 else self.fold(totals[:, None] * self._incidence)

    @cached_property
    def _incidence(self) -> Reals:
        """Which levels each cell has: (cells, levels)."""
        levels = np.unravel_index(np.arange(self.size), self.shape)
        return np.hstack([np.eye(size)[level] for size, level in zip(self.shape, levels, strict=True)])


def packed(blocks: Blocks, codes: Codes, largest: int) -> tuple[Pack, ...]:
    """Pack all blocks, neighbours together while they have at most ``largest`` cells."""
    bounds, cells = [0], 1
    for block, size in enumerate(blocks.levels):
        cells *= size
        if cells > largest and block > bounds[-1]:
            bounds.append(block)
            cells = size
    return tuple(Pack.of(blocks, codes, first, last) for first, last in pairwise([*bounds, len(blocks.levels)]))


def pair_weights(packs: tuple[Pack, ...], weights: Reals) -> Reals:
    """Total weight of each pair of levels of all blocks, from the weights of the rows.

    Packs are counted against packs, which visits every row less often than counting blocks against blocks, and their
    tables are summed up for the levels.
    """
    width = packs[-1].levels.stop
    result = np.empty((width, width))
    columns = [pack.codes.astype(np.int32) for pack in packs]  # twice as fast as 64 bits
    cells = np.empty(len(weights), dtype=np.int32)  # one buffer for all pairs
    for number, pack in enumerate(packs):
        result[pack.levels, pack.levels] = pack.pairs(weights)
        for other, column in zip(packs[:number], columns[:number], strict=True):
            np.multiply(columns[number], other.size, out=cells)
            cells += column
            table = tally(cells, weights, pack.size * other.size)
            pairs = pack.fold(other.fold(table.reshape(pack.size, other.size).T).T)
            result[pack.levels, other.levels], result[other.levels, pack.levels] = pairs, pairs.T
    return result
