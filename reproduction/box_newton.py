"""The box-constrained Newton of the paper's appendix ("Full algorithm", Algorithm 5).

Pass it to the paper's fit: ``fairmaxent.paper.fit(…, solver=BoxNewton(C=0.5))``.
"""

from dataclasses import dataclass
from math import e, log

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.errors import InputError
from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.solvers import Solution, iterate, regularised


@dataclass(frozen=True)
class BoxNewton:
    """λ ← λ + y/e² with y the minimiser of ⟨g, y⟩ + yᵀHy/2e in the box ‖y‖_∞ ≤ 1/8n, ‖λ
    + y‖_∞ ≤ R.

    R = 8n·log(1/Cε) and at most T = 16nR·log(1/Cε) iterations. Provable for every
    start, and slow: each step is at most 1/8ne² long, and 1/e of a Newton step close to
    the optimum. The paper runs all T iterations; we stop as soon as the gradient shows
    that nothing is left to gain.
    """

    C: float  # the share of the base
    epsilon: float = 1e-6
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        if not 0 < self.C <= 1:
            raise InputError(
                f"BoxNewton needs C in (0, 1], got {self.C}: its bounds R and T grow"
                " without limit as C goes to 0. Use Newton for C = 0."
            )

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""
        size = max(1, dual.size)
        logarithm = log(1 / (self.C * self.epsilon))
        radius = 8 * size * logarithm
        limit = int(16 * size * radius * logarithm)

        def step(point: Point) -> Point:
            low = np.maximum(-1 / (8 * size), -radius - point.multipliers)
            high = np.minimum(1 / (8 * size), radius - point.multipliers)
            return dual.at(
                point.multipliers
                + box_minimiser(point.gradient, point.hessian(), low, high) / e**2
            )

        return iterate(
            dual,
            step,
            method="box-newton",
            tolerance=self.tolerance,
            max_iterations=limit,
        )


def box_minimiser(gradient: Reals, hessian: Reals, low: Reals, high: Reals) -> Reals:
    """Minimise ⟨g, y⟩ + yᵀHy/2e subject to low ≤ y ≤ high.

    Where the unconstrained minimiser lies in the box it is the answer. Otherwise the
    quadratic program is, with H/e = LLᵀ, the bounded least-squares problem min ‖Lᵀy +
    L⁻¹g‖, solved by an active-set method.
    """
    from scipy.optimize import lsq_linear

    free = np.asarray(-e * np.linalg.solve(regularised(hessian), gradient))
    if np.all(free >= low) and np.all(free <= high):
        return free
    matrix = hessian / e
    ridge = 1e-12 * max(float(np.diag(matrix).max()), 1e-300)
    lower = np.linalg.cholesky(matrix + ridge * np.eye(len(matrix)))
    offset = np.linalg.solve(lower, gradient)
    return np.asarray(
        lsq_linear(lower.T, -offset, bounds=(low, high), method="bvls", tol=1e-12).x
    )
