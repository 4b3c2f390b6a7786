"""The one protocol that carries the mathematics: a prior can be *tilted*.

Every feature ⟨λ, φ(α)⟩ is a sum over blocks of a number that depends on the block's
level only. So a tilt is given by one *potential* per level, evidence is a potential of
−∞ on the levels it excludes, and a prior never sees features, multipliers or evidence:
only potentials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.random import Generator

from fairmaxent.data.table import Blocks, Codes, Indices, Reals, Table


@dataclass(frozen=True, eq=False)
class Drawn:
    """Drawn rows of block codes."""

    codes: Codes
    places: Indices  # which row of the rows component each one copies; -1: none


class Tilted(Protocol):
    """q(α)·e^{potential(α)}, normalised: exact sums over the domain, exact draws."""

    @property
    def log_partition(self) -> float:
        """log Σ q(α) e^{potential(α)}; −∞ if nothing is left.

        Then every probability below is zero.
        """

    @property
    def levels(self) -> Reals:
        """Probability of each level of each block."""

    def pairs(self) -> Reals:
        """Probability of each pair of levels."""

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Exact joint table of a few blocks, one axis per wanted block."""

    def draw(
        self,
        roots: Indices,
        rng: Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw one row for each wanted level of the root.

        ``spread``: rows of the data as often as they weigh.
        """


class Prior(Protocol):
    """A distribution q over the domain."""

    @property
    def blocks(self) -> Blocks:
        """The blocks it is defined on."""

    def tilt(self, potentials: Reals) -> Tilted:
        """Tilt by one potential per level."""

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α) for rows of block codes."""

    def thinned(self, rows: int) -> "Prior":
        """Return a prior of similar curvature with at most this many rows.

        It is itself if it has no more.
        """

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def full_support(self) -> bool:
        """Whether every point of the domain has positive probability."""

    def log_floor(self) -> float:
        """Bound log q(α) from below on the support: −L_q in the proof of Lemma 4.2."""


class Tabular:
    """A prior that is made of tables and has no rows."""

    rows = 0

    def thinned(self, rows: int) -> Self:
        """Return itself."""
        return self


@dataclass(frozen=True, eq=False)
class Density:
    """The probability of single rows under a tilted prior."""

    prior: Prior
    potentials: Reals
    log_partition: float

    def log_probability(self, codes: Codes) -> Reals:
        """Return log of q(α)·e^{potential(α)}, normalised, for rows of block codes."""
        result = self.prior.log_probability(codes) - self.log_partition
        parts = self.prior.blocks.split(self.potentials)
        for column, part in zip(codes.T, parts, strict=True):
            result += part.take(column)
        return result


def divergence_in_memory(rows: Table, density: Density) -> float:
    """KL(rows‖p) of distinct rows in memory."""
    counts = rows.counts
    codes = rows.codes
    kept = counts > 0
    if not kept.all():
        counts = counts[kept]
        codes = codes[kept]
    share = counts / rows.total
    return float(share @ (np.log(share) - density.log_probability(codes)))
