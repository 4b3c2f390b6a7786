"""Newton by conjugate gradients: for more features than a dense Hessian can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.dual import Dual, Point
from fairmaxent.solvers.solution import Solution, backtrack, iterate
from fairmaxent.table import Reals


@dataclass(frozen=True)
class NewtonCG:
    """Inexact Newton that sees the Hessian only through differences of gradients.

    A Hessian-vector product is a central difference of two gradients. Its relative error of about 1e-9 only
    makes the step inexact: where the iteration ends is decided by the gradient alone, which is exact.
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
        from scipy.sparse.linalg import LinearOperator, cg

        diagonal = np.maximum(point.variance, 1e-12 * max(1e-300, float(point.variance.max())))
        shape = (dual.size, dual.size)

        def product(vector: Reals) -> Reals:
            nudge = 1e-5 * vector / max(float(np.abs(vector).max()), 1e-300)
            ahead, behind = dual.at(point.multipliers + nudge), dual.at(point.multipliers - nudge)
            return (ahead.gradient - behind.gradient) * (float(np.abs(vector).max()) / 2e-5)

        direction, _ = cg(
            LinearOperator(shape, matvec=product, dtype=np.float64),
            -point.gradient,
            rtol=min(0.1, float(np.sqrt(point.residual))),
            maxiter=self.max_products,
            M=LinearOperator(shape, matvec=lambda vector: vector / diagonal, dtype=np.float64),
        )
        if float(direction @ point.gradient) < 0:
            return np.asarray(direction)
        return -point.gradient / diagonal
