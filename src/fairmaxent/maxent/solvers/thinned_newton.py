"""Newton on a thinned table, corrected by what the gradients show: for many rows or many blocks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.solvers.newton import regularised
from fairmaxent.maxent.solvers.solution import Solution, backtrack, iterate

_MEMORY = 12  # changes of the gradient that are remembered
_ENDED = 1e-11  # a residual that is no reason to ask all rows for a Hessian


@dataclass(frozen=True)
class ThinnedNewton:
    """Newton's method whose Hessian is estimated rarely, from a part of the rows, and improved in between.

    A Hessian counts every pair of blocks in every row; a gradient counts every block. So the rows are thinned for the
    Hessian, and every step corrects it by the change of the exact gradient (limited-memory BFGS). Where the iteration
    ends is decided by the gradient alone. A step that this Hessian cannot make is tried with all rows.
    """

    rows: int
    """That the Hessian is estimated from."""
    refresh: int
    """Steps after which it is estimated anew."""
    tolerance: float = 1e-12
    max_iterations: int = 500

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""
        thinned = dual.thinned(self.rows)
        model = _Curvature(_inverse(dual.start, thinned))

        def step(point: Point) -> Point | None:
            nonlocal model
            if model.steps >= self.refresh:
                model = _Curvature(_inverse(point, thinned))
            following = backtrack(dual, point, -model.solve(point.gradient))
            if following is None and model.steps:  # what was learned far away misleads here
                model = _Curvature(_inverse(point, thinned))
                following = backtrack(dual, point, -model.solve(point.gradient))
            if following is None and point.residual > _ENDED:  # features repeat each other but for a few rows
                model = _Curvature(np.asarray(np.linalg.inv(regularised(point.hessian()))))
                following = backtrack(dual, point, -model.solve(point.gradient))
            if following is not None:
                model.learn(following.multipliers - point.multipliers, following.gradient - point.gradient)
            return following

        return iterate(
            dual, step, method="thinned-newton", tolerance=self.tolerance, max_iterations=self.max_iterations
        )


def _inverse(point: Point, thinned: Dual) -> Reals:
    """H⁻¹ with correlations from the thinned rows and the exact variances; a feature unseen there stands alone."""
    hessian = thinned.at(point.multipliers).hessian()
    rough, exact = np.diag(hessian), point.variance()
    seen = rough > 1e-12 * exact
    scale = np.sqrt(np.divide(exact, rough, out=np.zeros_like(exact), where=seen))
    hessian = hessian * np.outer(scale, scale)
    hessian[~seen, ~seen] = exact[~seen]
    return np.asarray(np.linalg.inv(regularised(hessian)))


@dataclass
class _Curvature:
    """H⁻¹ as first estimated, and how the gradient changed along the steps since."""

    inverse: Reals
    steps: int = 0
    changes: deque[tuple[Reals, Reals, float]] = field(default_factory=lambda: deque(maxlen=_MEMORY))

    def learn(self, step: Reals, change: Reals) -> None:
        """Remember a step unless rounding has eaten its curvature."""
        self.steps += 1
        curvature = float(step @ change)
        if curvature > 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.changes.append((step, change, curvature))

    def solve(self, gradient: Reals) -> Reals:
        """H⁻¹g by the two loops of L-BFGS (Nocedal and Wright, Algorithm 7.4)."""
        result = gradient.copy()
        weights = []
        for step, change, curvature in reversed(self.changes):
            weights.append(float(step @ result) / curvature)
            result -= weights[-1] * change
        result = self.inverse @ result
        for (step, change, curvature), weight in zip(self.changes, reversed(weights), strict=True):
            result += (weight - float(change @ result) / curvature) * step
        return result
