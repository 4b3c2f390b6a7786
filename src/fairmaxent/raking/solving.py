"""Newton's method for the dual of raking, damped like that of Levenberg and Marquardt.

Where bounds cut factors off, the dual is linear in some directions, and a plain Newton step has no length there. Adding
μ·t to the diagonal gives it one: with μ = 1 the step is about that of iterative proportional fitting, which always
helps, and with μ → 0 it is Newton's. So μ falls while steps succeed, and rises when one fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.errors import SolverError
from fairmaxent.raking.dual import RakingDual, RakingPoint

TOLERANCE = 1e-14
"""Residual, as a share of the total, at which nothing is left to gain."""
ROUNDING = 1e-10
"""Residual below which a search that makes no more progress has met the limits of float64, not a problem."""
DENSE_LEVELS = 2_000
"""Levels of all margins up to which the Hessian is formed."""
_MOST_PRODUCTS = 500
_MOST_STEPS = 100
_LEAST_DAMPING = 1e-13
_MOST_DAMPING = 1e6
_LEAST_SHARE = 1e-12  # of a level that is wanted at zero


@dataclass(frozen=True, eq=False)
class RakingSolution:
    """The last point of a search, and whether the margins are met there."""

    point: RakingPoint
    steps: int

    @property
    def converged(self) -> bool:
        """Whether the margins are met up to rounding."""
        return self.point.residual <= ROUNDING


def solve(dual: RakingDual, start: Reals | None = None) -> RakingSolution:
    """Minimise the dual from ``start``, by default from λ = 0.

    Without a solution the dual falls without end; the search then stops as soon as its value proves that.
    """
    point, damping = dual.at(np.zeros(dual.size) if start is None else start), _LEAST_DAMPING
    # h* = −Σ d (g log g − g) ≥ 1 − log max g, where g ≤ 1/min d.
    floor = -np.inf if dual.slack is not None else 1 + float(np.log(dual.masses.min())) - 1e-6
    steps = 0
    while steps < _MOST_STEPS and point.residual > TOLERANCE and point.value >= floor:
        steps += 1
        hessian = point.hessian() if dual.size <= DENSE_LEVELS else None
        following = None
        while following is None and damping <= _MOST_DAMPING:
            following = _tried(point, _direction(point, hessian, damping))
            damping = damping * 100 if following is None else max(damping / 100, _LEAST_DAMPING)
        if following is None:
            break
        point = following
    return RakingSolution(point, steps)


def _direction(point: RakingPoint, hessian: Reals | None, damping: float) -> Reals:
    """−(H + μ diag t)⁻¹ g."""
    added = damping * np.maximum(point.dual.wanted, _LEAST_SHARE)
    if hessian is None:
        return _direction_by_products(point, added)
    damped = hessian.copy()
    damped[np.diag_indices(len(damped))] += added
    try:
        return np.asarray(-np.linalg.solve(damped, point.gradient))
    except np.linalg.LinAlgError:
        return np.full(len(added), np.nan)


def _direction_by_products(point: RakingPoint, added: Reals) -> Reals:
    """The same by conjugate gradients: H is never formed, only multiplied with vectors.

    The closer the point, the more precise the step, so that the last steps are as good as Newton's.
    """
    scale = np.maximum(point.dual.wanted, _LEAST_SHARE)  # about the diagonal of H
    direction, rest = np.zeros(len(added)), -point.gradient
    scaled = rest / scale
    search, product = scaled, float(rest @ scaled)
    enough = product * min(1e-2, point.distance) ** 2
    for _ in range(_MOST_PRODUCTS):
        image = point.times_hessian(search) + added * search
        curvature = float(search @ image)
        if curvature <= 0 or product <= enough:
            break
        direction = direction + product / curvature * search
        rest = rest - product / curvature * image
        scaled = rest / scale
        product, before = float(rest @ scaled), product
        search = scaled + product / before * search
    return direction


def _tried(point: RakingPoint, direction: Reals) -> RakingPoint | None:
    """Take the step, or half of it, or twice: the dual must fall enough, or its gradient; None: neither does."""
    slope = float(point.gradient @ direction)
    if not slope < 0:  # also if it is not a number
        return None
    rounding = 8 * np.finfo(float).eps * max(1.0, abs(point.value))
    for length in (1.0, 0.5, 0.25):
        trial = point.dual.at(point.multipliers + length * direction)
        falls = trial.value <= point.value + 1e-4 * length * slope and trial.value < point.value - rounding
        if falls or (trial.distance <= 0.99 * point.distance and trial.value <= point.value + rounding):
            # A share that has to vanish falls by a factor e with each of Newton's steps, so a longer one is tried.
            short = float(trial.gradient @ direction) < 0.3 * slope
            farther = point.dual.at(point.multipliers + 2 * length * direction) if short else trial
            return farther if farther.distance < trial.distance else trial
    return None


def check_solved(solution: RakingSolution) -> RakingPoint:
    """Return the point where the margins are met; never say so if they are not."""
    if not solution.converged:
        raise SolverError(
            f"raking stopped after {solution.steps} steps, {solution.point.residual:.3g} away from a margin, although "
            "weights that meet all of them exist; please report this with the data that led to it"
        )
    return solution.point
