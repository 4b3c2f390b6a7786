"""The dual h(λ) = log Σ q(α)e^{⟨λ, φ(α)⟩} − ⟨λ, θ⟩ of the maximum-entropy program."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import Reals
from fairmaxent.maxent.features import Features
from fairmaxent.maxent.priors.protocol import Prior, Tilted
from fairmaxent.maxent.search import SearchPoint
from fairmaxent.progress import unwatched

PAIR_MEMORY = 24  # bytes at the peak for each pair of levels


@dataclass(frozen=True, eq=False)
class Point(SearchPoint):
    """The dual and its derivatives at one λ; the gradient is E[φ] − θ."""

    tilted: Tilted
    features: Features

    def hessian(self) -> Reals:
        """Cov[φ]."""
        width = self.features.blocks.width
        need_memory(
            PAIR_MEMORY * width**2,
            f"a Hessian of {width:,} levels",
            "merge levels, or use NewtonCG",
        )
        return self.features.covariance(self.tilted.levels, self.tilted.pairs())

    def variance(self) -> Reals:
        """Var[φ] of each feature: the diagonal of the Hessian."""
        return self.features.variance(self.tilted.levels)


@dataclass(frozen=True, eq=False)
class Dual:
    """A prior, the features, and what they should be on average."""

    prior: Prior
    features: Features
    target: Reals  # θ
    # called before each step with the share of the work done; it may raise
    watch: Callable[[float], None] = unwatched

    @property
    def size(self) -> int:
        """d: the number of multipliers."""
        return self.features.count

    @cached_property
    def start(self) -> Point:
        """The dual at λ = 0: the prior itself."""
        return self.at(np.zeros(self.size))

    def at(self, multipliers: Reals) -> Point:
        """Evaluate value and gradient; the Hessian is computed on request."""
        tilted = self.prior.tilt(self.features.potentials(multipliers))
        return Point(
            multipliers=multipliers,
            value=tilted.log_partition - float(multipliers @ self.target),
            gradient=self.features.mean(tilted.levels) - self.target,
            tilted=tilted,
            features=self.features,
        )

    def thinned(self, rows: int) -> "Dual":
        """Return a cheaper dual of similar curvature.

        It is the same dual if its prior has no more rows than this.
        """
        prior = self.prior.thinned(rows)
        if prior is self.prior:
            return self
        return Dual(prior, self.features, self.target)
