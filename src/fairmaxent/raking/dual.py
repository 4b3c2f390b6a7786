"""The dual of raking: h(λ) = Σ d_c Φ(u_c) − ⟨λ, t⟩, where u_c is the sum of the multipliers λ of the levels of cell c.

References
----------
J.-C. Deville, C.-E. Särndal, "Calibration estimators in survey sampling", JASA 87 (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.limits import need_memory
from fairmaxent.maxent.priors.packs import pair_weights
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.raking.bounds import Bounds

_PAIR_MEMORY = 24  # bytes at the peak for each pair of levels


@dataclass(frozen=True, eq=False)
class RakingDual:
    """Cells with their masses, and the share wanted for each level of each margin.

    Each margin is a block: its levels are the combinations of the levels of its columns. So margins may overlap.
    """

    blocks: Blocks  # one block per margin
    codes: Codes  # (cells, margins): the level that each cell has in each margin
    masses: Reals  # d: the share of each cell in the old weights; positive
    wanted: Reals  # t: the wanted share of each level, one margin after the other; each margin adds up to 1
    bounds: Bounds
    slack: Reals | None = None  # what λ² costs: 1/ρ if a margin may be missed, see `relaxation`; None: nothing

    @property
    def size(self) -> int:
        """The number of multipliers: levels of all margins."""
        return self.blocks.width

    @cached_property
    def rows(self) -> Rows:
        """The cells, ready for sums by level."""
        with np.errstate(divide="ignore"):
            return Rows(self.blocks, self.codes, np.log(self.masses))

    def at(self, multipliers: Reals) -> RakingPoint:
        """Evaluate value and gradient."""
        scores = self.rows.scores(multipliers)
        factors = self.bounds.factors(scores)
        shares = self.masses * factors
        value = float(self.masses @ self.bounds.conjugate(scores, factors) - multipliers @ self.wanted)
        gradient = self.level_sums(shares) - self.wanted
        if self.slack is not None:
            value += float(self.slack @ multipliers**2) / 2
            gradient += self.slack * multipliers
        return RakingPoint(self, multipliers, value, gradient, factors)

    def level_sums(self, shares: Reals) -> Reals:
        """Sum shares of cells by the levels of each margin."""
        return np.concatenate([pack.marginals(shares) for pack in self.rows.packs])


@dataclass(frozen=True, eq=False)
class RakingPoint:
    """The dual and its derivatives at one λ."""

    dual: RakingDual
    multipliers: Reals
    value: float
    gradient: Reals  # achieved − wanted (+ λ/ρ)
    factors: Reals  # g of each cell

    @property
    def residual(self) -> float:
        """max |gradient|: how far the worst level is from its wanted share."""
        return float(np.abs(self.gradient).max())

    @property
    def distance(self) -> float:
        """√Σ gradient²: in contrast to the residual, every level counts."""
        return float(np.linalg.norm(self.gradient))

    @property
    def curvature(self) -> Reals:
        """The weight of each cell in the Hessian."""
        return np.where(self.dual.bounds.curved(self.factors), self.dual.masses * self.factors, 0.0)

    def times_hessian(self, vector: Reals) -> Reals:
        """H·v, without H: one pass over the cells."""
        result = self.dual.level_sums(self.curvature * self.dual.rows.scores(vector))
        return result if self.dual.slack is None else result + self.dual.slack * vector

    def hessian(self) -> Reals:
        """Σ d_c Φ″(u_c) over the cells that have both of two levels; one of its elements, if factors are cut off."""
        size = self.dual.size
        need_memory(_PAIR_MEMORY * size**2, f"raking to {size:,} levels", "merge levels")
        pairs = pair_weights(self.dual.rows.pair_packs, self.curvature)
        if self.dual.slack is not None:
            pairs[np.diag_indices(size)] += self.dual.slack
        return pairs
