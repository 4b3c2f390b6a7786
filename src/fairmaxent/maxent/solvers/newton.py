"""Damped Newton: the default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.errors import SolverError
from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.solvers.solution import Solution, backtrack, iterate


@dataclass(frozen=True)
class Newton:
    """Newton's method with backtracking: a few iterations if the dual is regular."""

    tolerance: float = 1e-12
    max_iterations: int = 200

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""
        last: _Last | None = None  # None: the next step needs a Hessian

        def step(point: Point) -> Point | None:
            nonlocal last
            if last is not None and last.finishes(point, self.tolerance):
                following, last = backtrack(dual, point, last.direction(point)), None
                if following is not None:
                    return following
            last = _Last(regularised(point.hessian()), point.residual)
            return backtrack(dual, point, last.direction(point))

        return iterate(dual, step, method="newton", tolerance=self.tolerance, max_iterations=self.max_iterations)


@dataclass(frozen=True, eq=False)
class _Last:
    """The Hessian of the last step, and the residual that the step began with."""

    hessian: Reals
    residual: float

    def direction(self, point: Point) -> Reals:
        """−H⁻¹g."""
        return np.asarray(-np.linalg.solve(self.hessian, point.gradient))

    def finishes(self, point: Point, tolerance: float) -> bool:
        """Say whether one more step with this Hessian will do, so that the last one of all costs none.

        Such a step shrinks the residual about as much as the step before (Shamanskii); half a digit is left to spare.
        """
        return 3 * point.residual**2 <= tolerance * self.residual


def solve_regularised(hessian: Reals, gradient: Reals) -> Reals:
    """H⁻¹g; see `regularised`."""
    return np.asarray(np.linalg.solve(regularised(hessian), gradient))


def regularised(hessian: Reals) -> Reals:
    """H with just enough added to the diagonal for it to factorise.

    H is singular where features repeat each other on the support (rows alone often do). The gradient then
    lies in its range, and a vanishing ridge picks the shortest of the equivalent steps.
    """
    scale = float(np.max(np.diag(hessian), initial=np.finfo(float).tiny))
    ridge = 1e-14 * scale
    identity = np.eye(len(hessian))
    while ridge <= scale:
        regular = hessian + ridge * identity
        try:
            np.linalg.cholesky(regular)  # only to see that it is positive definite
        except np.linalg.LinAlgError:
            ridge *= 100
        else:
            return np.asarray(regular)
    raise SolverError("the Hessian of the dual is not a covariance; please report this with the data that led to it")
