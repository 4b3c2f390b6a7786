"""A prior of one's own, whole: independent columns.

Columns are pooled in blocks: block 0, the root, is outcome and groups together, and
every other column is a block of its own. A vector over levels has those of all blocks,
one after the other, and ``blocks.split(vector)`` cuts it.

``fairmaxent.paper.register_base("independent", build, unpack=unpack)`` makes a base of
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fairmaxent import paper

Array = NDArray[Any]

_LEAST = 1e-300  # keeps the division defined if nothing is left


@dataclass(frozen=True, eq=False)
class Tilted:
    """The prior times a number for each level, normalised."""

    blocks: Any
    log_partition: float  # log of what the normalisation divides by
    parts: list[Array]  # the probabilities of each block's levels

    @property
    def levels(self) -> Array:
        """Probability of each level of each block."""
        return np.concatenate(self.parts)

    def pairs(self) -> Array:
        """Probability of each pair of levels; those of one block exclude each other."""
        pairs = np.outer(self.levels, self.levels)
        for part in self.blocks.slices:
            pairs[part, part] = np.diag(self.levels[part])
        return pairs

    def joint(self, wanted: Sequence[int]) -> Array:
        """The joint table of a few blocks, one axis for each."""
        table = np.ones(())
        for block in wanted:
            table = np.multiply.outer(table, self.parts[block])
        return table

    def draw(
        self, roots: Array, rng: Generator, *, spread: bool = False
    ) -> paper.Drawn:
        """A row for each wanted level of the root; none copies a row of the data."""
        others = [rng.choice(len(part), len(roots), p=part) for part in self.parts[1:]]
        copied = np.full(len(roots), -1)
        return paper.Drawn(np.column_stack([roots, *others]), copied)


@dataclass(frozen=True, eq=False)
class Independent(paper.Tabular):
    """Columns that know nothing of each other."""

    blocks: Any
    shares: list[Array]  # of each block's levels

    @property
    def full_support(self) -> bool:
        """Whether every point of the domain is possible."""
        return all(share.all() for share in self.shares)

    def tilt(self, potentials: Array) -> Tilted:
        """Multiply each level by e^{its potential}, and normalise."""
        tilts = self.blocks.split(potentials)
        weights = [
            share * np.exp(tilt) for share, tilt in zip(self.shares, tilts, strict=True)
        ]
        totals = np.array([weight.sum() for weight in weights])
        with np.errstate(divide="ignore"):
            log_partition = float(np.log(totals).sum())
        divisors = np.maximum(totals, _LEAST)
        parts = [
            weight / divisor for weight, divisor in zip(weights, divisors, strict=True)
        ]
        return Tilted(self.blocks, log_partition, parts)

    def log_probability(self, codes: Array) -> Array:
        """Log-probabilities of rows of block codes."""
        with np.errstate(divide="ignore"):
            logs = [np.log(share) for share in self.shares]
        columns = [own[levels] for own, levels in zip(logs, codes.T, strict=True)]
        return np.sum(columns, axis=0)

    def log_floor(self) -> float:
        """At most the log-probability of any possible point."""
        return float(sum(np.log(share[share > 0].min()) for share in self.shares))

    def pack(self) -> dict[str, Array]:
        """What ``fit.save`` stores."""
        return {"shares": np.concatenate(self.shares)}


def build(blocks: Any, rows: Any, root: Array) -> Independent:
    """The shares of the weighted rows, and the wanted root."""
    each = [(block,) for block in range(len(blocks.levels))]
    tables = rows.tables(each, blocks.levels)
    tables[0] = np.asarray(root)
    return Independent(blocks, [table.ravel() / table.sum() for table in tables])


def unpack(blocks: Any, arrays: Mapping[str, Array]) -> Independent:
    """The prior that ``pack`` stored."""
    return Independent(blocks, blocks.split(arrays["shares"]))
