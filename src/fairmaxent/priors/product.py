"""Independent blocks: the uniform and the product base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks
from fairmaxent.choice import Choice
from fairmaxent.priors.protocol import Tilted, log_sum_exp, nothing_left
from fairmaxent.table import Codes, Reals


@dataclass(frozen=True)
class Product:
    """u(α) = Π_b u_b(α_b). Tilting goes block by block."""

    blocks: Blocks
    log_levels: Reals  # log u_b of each level, each block normalised

    @classmethod
    def of(cls, blocks: Blocks, levels: Reals) -> Product:
        """Build from non-negative weights of the levels, normalised block by block."""
        with np.errstate(divide="ignore"):
            parts = [np.log(part / part.sum()) for part in blocks.split(levels)]
        return cls(blocks, np.concatenate(parts))

    def tilt(self, potentials: Reals, *, pairs: bool = False) -> Tilted:
        """Tilt by one potential per level."""
        partitions, parts = self._tilted_blocks(potentials)
        log_partition = float(np.sum(partitions))
        if np.isneginf(log_partition):
            return nothing_left(self.blocks, pairs=pairs)
        levels = np.concatenate(parts)
        return Tilted(log_partition, levels, self._pairs(levels) if pairs else None)

    def joint(self, potentials: Reals, wanted: Sequence[int]) -> Reals:
        """Tilt, and return the joint table of a few blocks."""
        _, parts = self._tilted_blocks(potentials)
        table = np.ones(())
        for block in wanted:
            table = np.multiply.outer(table, parts[block])
        return table

    def log_probability(self, codes: Codes) -> Reals:
        """log u(α)."""
        result = np.zeros(len(codes))
        for column, part in zip(codes.T, self.blocks.split(self.log_levels), strict=True):
            result += part[column]
        return result

    def sampler(self, potentials: Reals) -> ProductSampler:
        """Tilt, and prepare for drawing."""
        _, parts = self._tilted_blocks(potentials)
        return ProductSampler(tuple(Choice.rows_of(part[None, :]) for part in parts[1:]))

    def log_floor(self) -> float:
        """Return the smallest log u(α) on the support."""
        parts = self.blocks.split(self.log_levels)
        return float(sum(part[np.isfinite(part)].min() for part in parts))

    def _tilted_blocks(self, potentials: Reals) -> tuple[list[float], list[Reals]]:
        partitions, parts = [], []
        for part in self.blocks.split(self.log_levels + potentials):
            total = float(log_sum_exp(part))
            partitions.append(total)
            parts.append(np.exp(part - total) if np.isfinite(total) else np.zeros_like(part))
        return partitions, parts

    def _pairs(self, levels: Reals) -> Reals:
        pairs = np.outer(levels, levels)
        for part in self.blocks.slices:
            pairs[part, part] = np.diag(levels[part])
        return pairs


@dataclass(frozen=True)
class ProductSampler:
    """Draws every block but the root on its own."""

    choices: tuple[Choice, ...]

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator) -> Codes:
        """Draw one row for each wanted root level."""
        nowhere = np.zeros(len(roots), dtype=np.intp)
        return np.column_stack([roots, *(choice.draw(nowhere, rng) for choice in self.choices)])
