"""Solvers of the dual, and the one loop that all of them share.

A solver is a frozen configuration with one method, ``solve``. `Newton` is the default.
`ThinnedNewton` is for many rows or many blocks: Newton on a thinned table, corrected by
what the gradients show. `NewtonCG` is for more features than a dense Hessian can hold.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from math import log
from operator import attrgetter
from typing import Protocol, TypeVar

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.errors import SolverError
from fairmaxent.maxent.dual import Dual, Point, SearchPoint

P = TypeVar("P", bound=SearchPoint)
Step = Callable[[Point], Point | None]
Product = Callable[[Reals], Reals]  # of a matrix with a vector

# Below this residual a solver that can make no further progress has met the limits of
# float64, not a problem.
ROUNDING = 1e-9
_SHORT = 0.3  # of the slope that is left after a step that was too short
_MEMORY = 12  # changes of the gradient that are remembered
_ENDED = 1e-11  # a residual that is no reason to ask all rows for a Hessian


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


def iterate(
    dual: Dual,
    step: Step,
    *,
    method: str,
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """Repeat ``step`` from λ = 0 until the gradient vanishes.

    A step that returns None can make no progress. h(λ*) = −KL(p*‖q) ≥ −L_q where a
    solution exists (proof of Lemma 4.2), and a lower value proves that there is none.
    """
    point = dual.start
    reached = 0.0
    floor = dual.prior.log_floor() - 1e-6
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
            met = point.residual <= ROUNDING
            status = Status.CONVERGED if met else Status.STALLED
            break
        point = following
    return Solution(
        multipliers=point.multipliers,
        value=point.value,
        residual=point.residual,
        iterations=iterations,
        status=status,
        method=method,
    )


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
                following = backtrack(dual.at, point, last.direction(point))
                last = None
                if following is not None:
                    return following
            last = _Last(regularised(point.hessian()), point.residual)
            return backtrack(dual.at, point, last.direction(point))

        return iterate(
            dual,
            step,
            method="newton",
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )


@dataclass(frozen=True, eq=False)
class _Last:
    """The Hessian of the last step, and the residual that the step began with."""

    hessian: Reals
    residual: float

    def direction(self, point: Point) -> Reals:
        """−H⁻¹g."""
        return np.asarray(-np.linalg.solve(self.hessian, point.gradient))

    def finishes(self, point: Point, tolerance: float) -> bool:
        """Say whether one more step with this Hessian will do.

        Then the last step of all costs no Hessian. Such a step shrinks the residual
        about as much as the step before (Shamanskii); half a digit is left to spare.
        """
        return 3 * point.residual**2 <= tolerance * self.residual


def regularised(hessian: Reals) -> Reals:
    """H with just enough added to the diagonal for it to factorise.

    H is singular where features repeat each other on the support (rows alone often do).
    The gradient then lies in its range, and a vanishing ridge picks the shortest of the
    equivalent steps.
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
            return regular
    raise SolverError(
        "the Hessian of the dual is not a covariance; please report this with the data"
        " that led to it"
    )


@dataclass(frozen=True)
class ThinnedNewton:
    """Newton's method whose Hessian is estimated rarely, from a part of the rows.

    A Hessian counts every pair of blocks in every row; a gradient counts every block.
    So the rows are thinned for the Hessian, and every step corrects it by the change of
    the exact gradient (limited-memory BFGS). Where the iteration ends is decided by the
    gradient alone. A step that this Hessian cannot make is tried with all rows.
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
            following = backtrack(dual.at, point, -model.solve(point.gradient))
            # what was learned far away misleads here
            if following is None and model.steps:
                model = _Curvature(_inverse(point, thinned))
                following = backtrack(dual.at, point, -model.solve(point.gradient))
            # features repeat each other but for a few rows
            if following is None and point.residual > _ENDED:
                inverse = np.linalg.inv(regularised(point.hessian()))
                model = _Curvature(np.asarray(inverse))
                following = backtrack(dual.at, point, -model.solve(point.gradient))
            if following is not None:
                model.learn(
                    following.multipliers - point.multipliers,
                    following.gradient - point.gradient,
                )
            return following

        return iterate(
            dual,
            step,
            method="thinned-newton",
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )


def _inverse(point: Point, thinned: Dual) -> Reals:
    """H⁻¹ with correlations from the thinned rows, and the exact variances.

    A feature that is unseen there stands alone.
    """
    hessian = thinned.at(point.multipliers).hessian()
    rough = np.diag(hessian)
    exact = point.variance()
    seen = rough > 1e-12 * exact
    scale = np.sqrt(
        np.divide(
            exact,
            rough,
            out=np.zeros_like(exact),
            where=seen,
        )
    )
    hessian = hessian * np.outer(scale, scale)
    hessian[~seen, ~seen] = exact[~seen]
    return np.asarray(np.linalg.inv(regularised(hessian)))


@dataclass
class _Curvature:
    """H⁻¹ as first estimated, and how the gradient changed along the steps since."""

    inverse: Reals
    steps: int = 0
    changes: deque[tuple[Reals, Reals, float]] = field(
        default_factory=lambda: deque(maxlen=_MEMORY)
    )

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
        for (step, change, curvature), weight in zip(
            self.changes, reversed(weights), strict=True
        ):
            result += (weight - float(change @ result) / curvature) * step
        return result


@dataclass(frozen=True)
class NewtonCG:
    """Inexact Newton that sees the Hessian only through differences of gradients.

    A Hessian-vector product is a central difference of two gradients. Its error only
    makes the step inexact: where the iteration ends is decided by the gradient alone,
    which is exact.
    """

    tolerance: float = 1e-12
    max_iterations: int = 200
    max_products: int = 500  # Hessian-vector products per step

    def solve(self, dual: Dual) -> Solution:
        """Minimise from λ = 0."""

        def step(point: Point) -> Point | None:
            return backtrack(dual.at, point, self._direction(dual, point))

        return iterate(
            dual,
            step,
            method="newton-cg",
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )

    def _direction(self, dual: Dual, point: Point) -> Reals:
        """Solve Hd = −g, preconditioned as if blocks were independent."""

        def product(vector: Reals) -> Reals:
            step = 1e-5 / max(np.abs(vector).max(), 1e-300)
            ahead, behind = (
                dual.at(point.multipliers + move * vector).gradient
                for move in (step, -step)
            )
            return (ahead - behind) / (2 * step)

        precondition = partial(dual.features.precondition, point.tilted.levels)
        enough = min(0.1, point.residual**0.5) * point.distance
        return conjugate_gradients(
            product,
            point.gradient,
            precondition,
            enough=enough,
            most=self.max_products,
        )
