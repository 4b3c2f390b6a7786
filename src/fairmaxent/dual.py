"""The dual h(λ) = log Σ q(α)e^{⟨λ, φ(α)⟩} − ⟨λ, θ⟩ of the maximum-entropy program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.features import Features
from fairmaxent.priors.protocol import Prior
from fairmaxent.table import Reals


@dataclass(frozen=True)
class Point:
    """The dual and its derivatives at one λ."""

    multipliers: Reals
    value: float
    gradient: Reals  # E[φ] − θ
    variance: Reals  # Var[φ] of each feature: the diagonal of the Hessian
    hessian: Reals | None  # Cov[φ]

    @property
    def residual(self) -> float:
        """max |gradient|: how far the worst feature is from its target."""
        return float(np.max(np.abs(self.gradient), initial=0.0))


@dataclass(frozen=True)
class Dual:
    """A prior, the features, and what they should be on average."""

    prior: Prior
    features: Features
    target: Reals  # θ

    @property
    def size(self) -> int:
        """d: the number of multipliers."""
        return self.features.count

    def at(self, multipliers: Reals, *, hessian: bool = False) -> Point:
        """Evaluate value and gradient, and on request the Hessian."""
        tilted = self.prior.tilt(self.features.potentials(multipliers), pairs=hessian)
        covariance = None
        if tilted.pairs is not None:
            covariance = self.features.covariance(tilted.levels, tilted.pairs)
        return Point(
            multipliers=multipliers,
            value=tilted.log_partition - float(multipliers @ self.target),
            gradient=self.features.mean(tilted.levels) - self.target,
            variance=self.features.variance(tilted.levels),
            hessian=covariance,
        )

    def floor(self) -> float:
        """h(λ*) = −KL(p*‖q) ≥ −L_q wherever a solution exists (proof of Lemma 4.2)."""
        return self.prior.log_floor()
