"""The rows themselves as a prior: weights w on the distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks, ravel
from fairmaxent.choice import Choice
from fairmaxent.priors.protocol import Tilted, log_sum_exp, nothing_left
from fairmaxent.table import Codes, Reals, match_rows, tally


@dataclass(frozen=True)
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

    def tilt(self, potentials: Reals, *, pairs: bool = False) -> Tilted:
        """Tilt by one potential per level."""
        log_partition, weights = self._softmax(potentials)
        if np.isneginf(log_partition):
            return nothing_left(self.blocks, pairs=pairs)
        levels = [tally(column, weights, size) for column, size in zip(self.codes.T, self.blocks.levels, strict=True)]
        return Tilted(log_partition, np.concatenate(levels), self._pairs(weights, levels) if pairs else None)

    def joint(self, potentials: Reals, wanted: Sequence[int]) -> Reals:
        """Tilt, and return the joint table of a few blocks."""
        _, weights = self._softmax(potentials)
        shape = [self.blocks.levels[block] for block in wanted]
        cells = ravel(self.codes[:, list(wanted)], shape)
        return tally(cells, weights, int(np.prod(shape))).reshape(shape)

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows."""
        position = match_rows(self.codes, codes, self.blocks.levels)
        return np.where(position >= 0, self.log_weights[position], -np.inf)

    def sampler(self, potentials: Reals) -> RowsSampler:
        """Tilt, and prepare for drawing."""
        _, weights = self._softmax(potentials)
        starts = np.searchsorted(self.codes[:, 0], np.arange(self.blocks.levels[0]))
        return RowsSampler(self.codes, Choice.grouped(weights, starts), starts)

    def log_floor(self) -> float:
        """Return the smallest log w(α)."""
        return float(self.log_weights.min())

    def scores(self, potentials: Reals) -> Reals:
        """Sum of each row's potentials."""
        total = np.zeros(len(self.codes))
        for column, part in zip(self.codes.T, self.blocks.split(potentials), strict=True):
            total += part[column]
        return total

    def _softmax(self, potentials: Reals) -> tuple[float, Reals]:
        scores = self.log_weights + self.scores(potentials)
        log_partition = float(log_sum_exp(scores))
        if np.isneginf(log_partition):
            return log_partition, np.zeros_like(scores)
        return log_partition, np.exp(scores - log_partition)

    def _pairs(self, weights: Reals, levels: list[Reals]) -> Reals:
        """Pairwise tables by counting, block against block."""
        result = np.zeros((self.blocks.width, self.blocks.width))
        slices, sizes = self.blocks.slices, self.blocks.levels
        for first, part in enumerate(slices):
            result[part, part] = np.diag(levels[first])
            scaled = self.codes[:, first].astype(np.intp)
            for second in range(first):
                cells = scaled * sizes[second] + self.codes[:, second]
                table = tally(cells, weights, sizes[first] * sizes[second])
                result[part, slices[second]] = table.reshape(sizes[first], sizes[second])
                result[slices[second], part] = result[part, slices[second]].T
        return result


@dataclass(frozen=True)
class RowsSampler:
    """Draws distinct rows, given their root."""

    codes: Codes
    choice: Choice
    starts: NDArray[np.intp]

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator) -> Codes:
        """Draw one row for each wanted root level."""
        return np.asarray(self.codes[self.starts[roots] + self.choice.draw(roots, rng)])
