"""The search for the minimum of a convex function: points, steps, and how it ends.

Every dual is minimised by it, whatever its function is: a solver says which step
follows a point, and most steps are a direction and how far to go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf, log
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.progress import unwatched

# Below this residual a search that can make no further progress has met the limits of
# float64, not a problem.
ROUNDING = 1e-9
_BEYOND = 1e-6  # below a value that no solution has, and not by rounding
_SHORT = 0.3  # of the slope that is left after a step that was too short

Product = Callable[[Reals], Reals]  # of a matrix with a vector
P = TypeVar("P", bound="SearchPoint")


class Status(StrEnum):
    """How a search ended."""

    CONVERGED = "converged"
    UNBOUNDED = "unbounded: no distribution on this support meets the target"
    STALLED = "stalled: no step lowers the dual, although the target is not met"
    OUT_OF_ITERATIONS = "stopped at the iteration limit"


@dataclass(frozen=True, eq=False)
class SearchPoint:
    """A function and its gradient at one λ, as a search for its minimum sees them."""

    multipliers: Reals
    value: float
    gradient: Reals

    @property
    def residual(self) -> float:
        """max |gradient|: how far the worst feature is from its target."""
        return float(np.max(np.abs(self.gradient), initial=0.0))

    @property
    def distance(self) -> float:
        """√Σ gradient²: in contrast to the residual, every feature counts."""
        return float(np.linalg.norm(self.gradient))


@dataclass(frozen=True, eq=False)
class Found(Generic[P]):
    """The point at which a search ended, and how."""

    point: P
    status: Status
    iterations: int


def search(
    start: P,
    step: Callable[[P], P | None],
    *,
    tolerance: float,
    max_iterations: int,
    floor: float = -inf,
    watch: Callable[[float], None] = unwatched,
) -> Found[P]:
    """Repeat ``step`` from ``start`` until the gradient vanishes.

    A step that returns None can make no progress. No solution has a value below
    ``floor``: a point that does proves that there is none. ``watch`` is called before
    each step with the share of the way to the tolerance; it may raise.
    """
    point = start
    reached = 0.0
    status = Status.OUT_OF_ITERATIONS
    iterations = 0
    for iterations in range(max_iterations + 1):
        reached = max(reached, _way(start.residual, point.residual, tolerance))
        watch(reached)
        if point.residual <= tolerance:
            status = Status.CONVERGED
            break
        if point.value < floor - _BEYOND:
            status = Status.UNBOUNDED
            break
        if iterations == max_iterations:
            break
        following = step(point)
        if following is None:
            met = point.residual <= ROUNDING
            status = Status.CONVERGED if met else Status.STALLED
            break
        point = following
    return Found(point, status, iterations)


def _way(start: float, now: float, tolerance: float) -> float:
    """How far the residual has come to the tolerance, in digits, from 0 to 1."""
    if now <= tolerance:
        return 1.0
    return max(0.0, log(start / now) / log(start / max(tolerance, 1e-300)))


def backtrack(
    at: Callable[[Reals], P],
    point: P,
    direction: Reals,
    *,
    trials: int = 60,
    size: Callable[[P], float] = attrgetter("residual"),
    falls: float = 0.9,
) -> P | None:
    """Halve the step until the dual falls enough (Armijo), or its gradient does.

    None: neither does. Close to the optimum the dual changes by less than its rounding
    error while the gradient still improves.

    A step that leaves much of the slope is too short, as where a rare combination has
    to become rarer still: Newton's method takes its exponential for a parabola, and
    wins a factor e at a time. Then twice the step is tried.
    """
    slope = float(point.gradient @ direction)
    rounding = 8 * np.finfo(float).eps * max(1.0, abs(point.value))
    length = 1.0
    for _ in range(trials):
        trial = at(point.multipliers + length * direction)
        if size(trial) <= falls * size(point) and trial.value <= point.value + rounding:
            is_short = float(trial.gradient @ direction) < _SHORT * slope
            if is_short:
                farther = at(point.multipliers + 2 * length * direction)
                if size(farther) < size(trial):
                    return farther
            return trial
        if (
            trial.value <= point.value + 1e-4 * length * slope
            and trial.value < point.value - rounding
        ):
            return trial
        length *= 0.5
    return None


def conjugate_gradients(
    product: Product,
    gradient: Reals,
    precondition: Product,
    *,
    enough: float,
    most: int,
) -> Reals:
    """Solve Hd = −g up to ``enough``, seeing H only through its products with vectors.

    Written out because SciPy's ``cg`` divides by the curvature pᵀHp, which rounds to
    zero where the dual is flat; there we stop with what we have, a descent direction
    already.
    """
    residual = -gradient
    direction = np.zeros(len(gradient))
    search = precondition(residual)
    power = float(residual @ search)
    for _ in range(most):
        curved = product(search)
        curvature = float(search @ curved)
        if curvature <= 1e-12 * power:
            return direction if direction.any() else search
        direction = direction + (power / curvature) * search
        residual = residual - (power / curvature) * curved
        if float(np.linalg.norm(residual)) <= enough:
            break
        scaled = precondition(residual)
        previous = power
        power = float(residual @ scaled)
        search = scaled + (power / previous) * search
    return direction
