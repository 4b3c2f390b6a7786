"""Newton by conjugate gradients: for more features than a dense Hessian can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.solvers.solution import Solution, backtrack, iterate


@dataclass(frozen=True)
class NewtonCG:
    """Inexact Newton that sees the Hessian only through differences of gradients.

    A Hessian-vector product is a central difference of two gradients. Its error only makes the step inexact: where
    the iteration ends is decided by the gradient alone, which is exact.
    """

    tolerance: float = 1e-12
    max_iterations: int = 200
    max_products: int = 500  # Hessian-vector products per step

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""

        def step(point: Point) -> Point | None:
            return backtrack(dual, point, self._direction(dual, point))

        return iterate(dual, step, method="newton-cg", tolerance=self.tolerance, max_iterations=self.max_iterations)

    def _direction(self, dual: Dual, point: Point) -> Reals:
        """Solve Hd = −g by conjugate gradients, preconditioned as if blocks were independent.

        Written out because SciPy's ``cg`` divides by the curvature pᵀHp, which rounds to zero where the dual is
        flat; there we stop with what we have, a descent direction already.
        """
        levels = point.tilted.levels
        residual = -point.gradient
        enough = min(0.1, point.residual**0.5) * float(np.linalg.norm(residual))
        direction = np.zeros(dual.size)
        search = dual.features.precondition(levels, residual)
        power = float(residual @ search)
        for _ in range(self.max_products):
            curved = _hessian_product(dual, point, search)
            curvature = float(search @ curved)
            if curvature <= 1e-12 * power:
                return direction if direction.any() else search
            direction = direction + (power / curvature) * search
            residual = residual - (power / curvature) * curved
            if float(np.linalg.norm(residual)) <= enough:
                break
            scaled = dual.features.precondition(levels, residual)
            previous, power = power, float(residual @ scaled)
            search = scaled + (power / previous) * search
        return direction


def _hessian_product(dual: Dual, point: Point, vector: Reals) -> Reals:
    """H·vector as a central difference of gradients."""
    step = 1e-5 / max(float(np.abs(vector).max()), 1e-300)
    ahead = dual.at(point.multipliers + step * vector).gradient
    behind = dual.at(point.multipliers - step * vector).gradient
    return np.asarray((ahead - behind) / (2 * step))
