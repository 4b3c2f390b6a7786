"""What a solver returns, and the one loop that all of them share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.maxent.dual import Dual, Point

# Below this residual a solver that can make no further progress has met the limits of float64, not a problem.
ROUNDING = 1e-9


class Status(StrEnum):
    """How a solver ended."""

    CONVERGED = "converged"
    UNBOUNDED = "unbounded: no distribution on this support meets the target"
    STALLED = "stalled: no step lowers the dual, although the target is not met"
    OUT_OF_ITERATIONS = "stopped at the iteration limit"


@dataclass(frozen=True, eq=False)
class Solution:
    """Multipliers λ, and how good they are."""

    multipliers: Reals
    value: float  # h(λ)
    residual: float  # max |E[φ] − θ|
    iterations: int
    status: Status
    method: str


class Solver(Protocol):
    """Minimises a dual."""

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""
        ...


Step = Callable[[Point], Point | None]

_SHORT = 0.3  # of the slope that is left after a step that was too short


def iterate(dual: Dual, step: Step, *, method: str, tolerance: float, max_iterations: int) -> Solution:
    """Repeat ``step`` from λ = 0 until the gradient vanishes.

    A step that returns None can make no progress. A dual below every value that a feasible target allows
    (see :meth:`Dual.floor`) proves that there is no solution. Before each step :attr:`Dual.watch` is told how much of
    the way is done.
    """
    point, reached = dual.start, 0.0
    floor = dual.floor() - 1e-6
    status = Status.OUT_OF_ITERATIONS
    iterations = 0
    for iterations in range(max_iterations + 1):
        reached = max(reached, _way(dual.start.residual, point.residual, tolerance))
        dual.watch(reached)
        if point.residual <= tolerance:
            status = Status.CONVERGED
            break
        if point.value < floor:
            status = Status.UNBOUNDED
            break
        if iterations == max_iterations:
            break
        following = step(point)
        if following is None:
            status = Status.CONVERGED if point.residual <= ROUNDING else Status.STALLED
            break
        point = following
    return Solution(point.multipliers, point.value, point.residual, iterations, status, method)


def _way(start: float, now: float, tolerance: float) -> float:
    """How far the residual has come from the start to the tolerance, in digits, from 0 to 1."""
    if now <= tolerance:
        return 1.0
    return max(0.0, math.log(start / now) / math.log(start / max(tolerance, 1e-300)))


def backtrack(dual: Dual, point: Point, direction: Reals) -> Point | None:
    """Halve the step until the dual falls enough (Armijo), or the residual clearly falls.

    Close to the optimum the dual changes by less than its rounding error while the gradient still improves.

    A step that leaves much of the slope is too short, as where a rare combination has to become rarer still: Newton's
    method takes its exponential for a parabola, and wins a factor e at a time. Then twice the step is tried.
    """
    slope = float(point.gradient @ direction)
    rounding = 8 * np.finfo(float).eps * max(1.0, abs(point.value))
    length = 1.0
    for _ in range(60):
        trial = dual.at(point.multipliers + length * direction)
        if trial.residual <= 0.9 * point.residual and trial.value <= point.value + rounding:
            short = float(trial.gradient @ direction) < _SHORT * slope
            farther = dual.at(point.multipliers + 2 * length * direction) if short else trial
            return farther if farther.residual < trial.residual else trial
        if trial.value <= point.value + 1e-4 * length * slope and trial.value < point.value - rounding:
            return trial
        length *= 0.5
    return None
