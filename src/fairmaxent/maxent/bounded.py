"""The dual of bounded factors: weights close to old ones that have the wanted averages.

Rows of old weights d get new ones d·g, where each factor g stays within bounds. The
factors with the wanted averages that are closest to 1 minimise the dual
h(λ) = Σ d·Φ(⟨λ, φ⟩) − ⟨λ, t⟩ with Φ′(u) = e^u cut off at the bounds (Deville and
Särndal, "Calibration estimators in survey sampling", 1992). φ is one indicator for each
level of each block, so that ⟨λ, φ⟩ is the sum of the multipliers of a row's levels.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import Blocks, Codes, Mask, Reals
from fairmaxent.maxent.dual import PAIR_MEMORY
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.reach import Conditions
from fairmaxent.maxent.search import SearchPoint

# e^700 is close to the largest float64; a score beyond it is the step of a search that
# went too far.
_LARGEST_SCORE = 700.0


@dataclass(frozen=True)
class Bounds:
    """low ≤ g ≤ high for the factor g of every row.

    The divergence d(g) = g log g − g + 1 on [low, high], infinite outside, has the
    conjugate Φ(u) with Φ′(u) = e^u cut off at low and high. So the factors of the
    optimum are g = Φ′(u), where u = ⟨λ, φ⟩ is the row's score.
    """

    low: float = 0.0
    high: float = math.inf

    def factors(self, scores: Reals) -> Reals:
        """g = Φ′(u)."""
        return np.clip(np.exp(np.minimum(scores, _LARGEST_SCORE)), self.low, self.high)

    def conjugate(self, scores: Reals, factors: Reals) -> Reals:
        """Φ(u) up to a constant: e^u between the bounds, and its tangents beyond."""
        result = factors.copy()
        for bound, beyond in (
            (self.low, factors <= self.low),
            (self.high, factors >= self.high),
        ):
            if 0 < bound < math.inf:
                result[beyond] = bound * (1 + scores[beyond] - math.log(bound))
        return result

    @property
    def given(self) -> bool:
        """Whether any factor is ruled out."""
        return self != Bounds()

    @property
    def text(self) -> str:
        """The bounds in words."""
        if math.isinf(self.high):
            return f"at least {self.low:g}"
        if self.low == 0:
            return f"at most {self.high:g}"
        return f"between {self.low:g} and {self.high:g}"


@dataclass(frozen=True, eq=False)
class BoundedDual:
    """Rows with their old weights, and the share wanted for each level of each block.

    If the wanted shares of each block add up to 1, so do the new weights.
    """

    blocks: Blocks
    codes: Codes  # (rows, blocks): the level that each row has in each block
    masses: Reals  # d: the share of each row in the old weights; positive
    wanted: Reals  # t: the wanted share of each level, one block after the other
    bounds: Bounds
    # what λ² costs: 1/ρ if a share may be missed by λ/ρ; None: all must be met
    slack: Reals | None = None

    @property
    def size(self) -> int:
        """d: the number of multipliers."""
        return self.blocks.width

    @cached_property
    def rows(self) -> Rows:
        """The rows, ready for sums by level."""
        return Rows(self.blocks, self.codes, np.log(self.masses))

    @property
    def floor(self) -> float:
        """Bound h from below where a solution exists.

        h* = −Σ d·(g log g − g) ≥ 1 − log max g, where g ≤ 1/min d.
        """
        if self.slack is not None:
            return -math.inf
        return 1 + self.rows.log_floor()

    @property
    def conditions(self) -> Conditions:
        """What the new weights d·g must meet."""
        return Conditions(
            averages=self.rows.incidence(),
            wanted=self.wanted,
            least=self.bounds.low * self.masses,
            most=self.bounds.high * self.masses,
        )

    def only(self, rows: Mask, wanted: Reals) -> "BoundedDual":
        """Some of the rows, which are to have these shares."""
        return replace(
            self,
            codes=np.asfortranarray(self.codes[rows]),
            masses=self.masses[rows],
            wanted=wanted,
        )

    def at(self, multipliers: Reals) -> "BoundedPoint":
        """Evaluate value and gradient; the Hessian is computed on request."""
        scores = self.rows.scores(multipliers)
        factors = self.bounds.factors(scores)
        conjugate = self.bounds.conjugate(scores, factors)
        value = float(self.masses @ conjugate - multipliers @ self.wanted)
        gradient = self.rows.level_sums(self.masses * factors) - self.wanted
        if self.slack is not None:
            value += float(self.slack @ multipliers**2) / 2
            gradient += self.slack * multipliers
        return BoundedPoint(multipliers, value, gradient, self, factors)


@dataclass(frozen=True, eq=False)
class BoundedPoint(SearchPoint):
    """The dual and its derivatives at one λ; the gradient: achieved − wanted + λ/ρ."""

    dual: BoundedDual
    factors: Reals  # g of each row

    @property
    def curvature(self) -> Reals:
        """d·Φ″(u) of each row: Φ″(u) = g between the bounds, and 0 at them."""
        bounds = self.dual.bounds
        is_free = (self.factors > bounds.low) & (self.factors < bounds.high)
        return np.where(is_free, self.dual.masses * self.factors, 0.0)

    def times_hessian(self, vector: Reals) -> Reals:
        """H·v, without H: one pass over the rows."""
        rows = self.dual.rows
        result = rows.level_sums(self.curvature * rows.scores(vector))
        if self.dual.slack is None:
            return result
        return result + self.dual.slack * vector

    def hessian(self) -> Reals:
        """Σ d·Φ″(u) over the rows that have both of two levels."""
        size = self.dual.size
        need_memory(
            PAIR_MEMORY * size**2, f"a Hessian of {size:,} levels", "merge levels"
        )
        pairs = self.dual.rows.pair_sums(self.curvature)
        if self.dual.slack is not None:
            pairs[np.diag_indices(size)] += self.dual.slack
        return pairs
