"""The rows themselves as a prior: weights w on the distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks, ravel
from fairmaxent.choice import Choice
from fairmaxent.priors.protocol import softmax
from fairmaxent.table import Codes, Reals, match_rows, tally


@dataclass(frozen=True, eq=False)
class Rows:
    """w(α) on the distinct rows α ∈ S, zero elsewhere. Tilting is a softmax over the rows."""

    blocks: Blocks
    codes: Codes  # distinct rows in lexicographic order, so equal roots stand together
    log_weights: Reals

    @classmethod
    def weighted(cls, blocks: Blocks, codes: Codes, weights: Reals) -> Rows:
        """Keep the rows of positive weight and normalise."""
        kept = weights > 0
        return cls(blocks, np.asfortranarray(codes[kept]), np.log(weights[kept] / weights[kept].sum()))

    def tilt(self, potentials: Reals) -> TiltedRows:
        """Tilt by one potential per level."""
        log_partition, weights = softmax(self.log_weights + self.scores(potentials))
        return TiltedRows(self, log_partition, weights)

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows."""
        position = match_rows(self.codes, codes, self.blocks.levels)
        return np.where(position >= 0, self.log_weights[position], -np.inf)

    @property
    def full_support(self) -> bool:
        """Rows rarely are all there could be; no bound relies on it."""
        return False

    def log_floor(self) -> float:
        """Return the smallest log w(α)."""
        return float(self.log_weights.min())

    def scores(self, potentials: Reals) -> Reals:
        """Sum of each row's potentials."""
        total = np.zeros(len(self.codes))
        for column, part in zip(self.codes.T, self.blocks.split(potentials), strict=True):
            if part.any():
                total += part[column]
        return total

    @cached_property
    def root_starts(self) -> NDArray[np.intp]:
        """Where the rows of each level of the root begin."""
        return np.searchsorted(self.codes[:, 0], np.arange(self.blocks.levels[0]))


@dataclass(frozen=True, eq=False)
class TiltedRows:
    """Rows with new weights."""

    rows: Rows
    log_partition: float
    weights: Reals

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level, by counting."""
        columns = zip(self.rows.codes.T, self.rows.blocks.levels, strict=True)
        return np.concatenate([tally(column, self.weights, size) for column, size in columns])

    def pairs(self) -> Reals:
        """Probability of each pair of levels, by counting block against block."""
        blocks, codes = self.rows.blocks, self.rows.codes
        slices, sizes = blocks.slices, blocks.levels
        result = np.diag(self.levels)
        for first, part in enumerate(slices):
            column = codes[:, first].astype(np.intp)
            for second in range(first):
                cells = column * sizes[second] + codes[:, second]
                table = tally(cells, self.weights, sizes[first] * sizes[second])
                result[part, slices[second]] = table.reshape(sizes[first], sizes[second])
                result[slices[second], part] = result[part, slices[second]].T
        return result

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks, by counting."""
        shape = [self.rows.blocks.levels[block] for block in wanted]
        cells = ravel(self.rows.codes[:, list(wanted)], shape)
        return tally(cells, self.weights, int(np.prod(shape))).reshape(shape)

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator) -> Codes:
        """Draw one of the distinct rows for each wanted root level."""
        return np.asarray(self.rows.codes[self.rows.root_starts[roots] + self._choice.draw(roots, rng)])

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.weights, self.rows.root_starts)
