"""Independent blocks: the uniform and the product base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.columns import Arrays
from fairmaxent.data.draws import Choice
from fairmaxent.data.limits import logarithms
from fairmaxent.data.table import Blocks, Codes, Reals
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.protocol import Drawn, Tabular


@dataclass(frozen=True, eq=False)
class Product(Tabular):
    """u(α) = Π_b u_b(α_b). Tilting goes block by block."""

    blocks: Blocks
    log_levels: Reals  # log u_b of each level, each block normalised

    @classmethod
    def of(cls, blocks: Blocks, levels: Reals) -> Product:
        """Build from non-negative weights of the levels, normalised block by block."""
        with np.errstate(divide="ignore"):
            parts = [np.log(part / part.sum()) for part in blocks.split(levels)]
        return cls(blocks, np.concatenate(parts))

    def pack(self) -> Arrays:
        """Return arrays from which `unpack` restores the product."""
        return {"log_levels": self.log_levels}

    @classmethod
    def unpack(cls, blocks: Blocks, arrays: Arrays) -> Product:
        """Restore what `pack` gave, after checking it."""
        return cls(blocks, logarithms(arrays["log_levels"], blocks.width))

    def tilt(self, potentials: Reals) -> TiltedProduct:
        """Tilt by one potential per level."""
        tilted = [softmax(part) for part in self.blocks.split(self.log_levels + potentials)]
        return TiltedProduct(self.blocks, sum(total for total, _ in tilted), [part for _, part in tilted])

    def log_probability(self, codes: Codes) -> Reals:
        """log u(α)."""
        result = np.zeros(len(codes))
        for column, part in zip(codes.T, self.blocks.split(self.log_levels), strict=True):
            result += part[column]
        return result

    @property
    def full_support(self) -> bool:
        """Whether no level was struck out."""
        return bool(np.isfinite(self.log_levels).all())

    def log_floor(self) -> float:
        """Return the smallest log u(α) on the support."""
        parts = self.blocks.split(self.log_levels)
        return float(sum(part[np.isfinite(part)].min() for part in parts))


@dataclass(frozen=True, eq=False)
class TiltedProduct:
    """Independent blocks again."""

    blocks: Blocks
    log_partition: float
    parts: list[Reals]  # probabilities of each block's levels

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level of each block."""
        possible = np.isfinite(self.log_partition)
        return np.concatenate(self.parts) * float(possible)

    def pairs(self) -> Reals:
        """Probability of each pair of levels: a product, but for levels of one block, which exclude each other."""
        pairs = np.outer(self.levels, self.levels)
        for part in self.blocks.slices:
            pairs[part, part] = np.diag(self.levels[part])
        return pairs

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks."""
        return np.asarray(reduce(np.multiply.outer, (self.parts[block] for block in wanted), np.ones(())))

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator, *, spread: bool = False) -> Drawn:
        """Draw every block but the root on its own."""
        nowhere = np.zeros(len(roots), dtype=np.intp)
        codes = np.column_stack([roots, *(choice.draw(nowhere, rng) for choice in self._choices)])
        return Drawn(codes, nowhere - 1)

    @cached_property
    def _choices(self) -> list[Choice]:
        return [Choice.rows_of(part[None, :]) for part in self.parts[1:]]
