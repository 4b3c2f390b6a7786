"""Solvers of the dual: each says which step follows a point of the search.

A solver is a frozen configuration with one method, ``solve``. `Newton` is the default.
`ThinnedNewton` is for many rows or many blocks: Newton on a thinned table, corrected by
what the gradients show. `NewtonCG` is for more features than a dense Hessian can hold.
`DampedNewton` is for the dual of bounded factors, which may be linear in places.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Protocol

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.errors import SolverError
from fairmaxent.maxent.bounded import BoundedDual, BoundedPoint
from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.search import (
    Found,
    Status,
    backtrack,
    conjugate_gradients,
    search,
)

_MEMORY = 12  # changes of the gradient that are remembered
_ENDED = 1e-11  # a residual that is no reason to ask all rows for a Hessian
_LEAST_DAMPING = 1e-13
_MOST_DAMPING = 1e6
_LEAST_SHARE = 1e-12  # of a level that is wanted at zero


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
    step: Callable[[Point], Point | None],
    *,
    method: str,
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """Search from λ = 0, and say how good the multipliers are.

    h(λ*) = −KL(p*‖q) ≥ −L_q where a solution exists (proof of Lemma 4.2), and a lower
    value proves that there is none.
    """
    found = search(
        dual.start,
        step,
        tolerance=tolerance,
        max_iterations=max_iterations,
        floor=dual.prior.log_floor(),
        watch=dual.watch,
    )
    point = found.point
    return Solution(
        multipliers=point.multipliers,
        value=point.value,
        residual=point.residual,
        iterations=found.iterations,
        status=found.status,
        method=method,
    )


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


@dataclass(frozen=True)
class DampedNewton:
    """Newton's method for bounded factors, damped like Levenberg and Marquardt's.

    Where bounds cut factors off, the dual is linear in some directions, and a plain
    step has no length there. Adding μ·t to the diagonal gives it one: with μ = 1 the
    step is about that of iterative proportional fitting, which always helps, and with
    μ → 0 it is Newton's. Without a solution the dual falls without end; the search then
    stops as soon as its value proves that.
    """

    tolerance: float = 1e-14  # as a share of all weights
    max_iterations: int = 100
    max_products: int = 500  # Hessian-vector products per step
    dense: int = 2_000  # multipliers up to which the Hessian is formed

    def solve(
        self, dual: BoundedDual, start: Reals | None = None
    ) -> Found[BoundedPoint]:
        """Minimise from ``start``, by default λ = 0."""
        damping = _LEAST_DAMPING

        def step(point: BoundedPoint) -> BoundedPoint | None:
            nonlocal damping
            following, damping = self._step(point, damping)
            return following

        if start is None:
            start = np.zeros(dual.size)
        return search(
            dual.at(start),
            step,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            floor=dual.floor,
        )

    def _step(
        self, point: BoundedPoint, damping: float
    ) -> tuple[BoundedPoint | None, float]:
        """The next point, None if none is better, and the damping from there."""
        hessian = None
        if point.dual.size <= self.dense:
            hessian = point.hessian()
        while damping <= _MOST_DAMPING:
            direction = self._direction(point, hessian, damping)
            # False also for a slope that is not a number.
            is_downhill = float(point.gradient @ direction) < 0
            if is_downhill:
                following = backtrack(
                    point.dual.at,
                    point,
                    direction,
                    trials=3,
                    size=attrgetter("distance"),
                    falls=0.99,
                )
                if following is not None:
                    return following, max(damping / 100, _LEAST_DAMPING)
            damping = damping * 100
        return None, damping

    def _direction(
        self, point: BoundedPoint, hessian: Reals | None, damping: float
    ) -> Reals:
        """−(H + μ diag t)⁻¹ g."""
        scale = np.maximum(point.dual.wanted, _LEAST_SHARE)  # about the diagonal of H
        added = damping * scale
        if hessian is None:
            # The closer the point, the more precise the step, so that the last are as
            # good as Newton's.
            return conjugate_gradients(
                lambda vector: point.times_hessian(vector) + added * vector,
                point.gradient,
                lambda vector: vector / scale,
                enough=min(1e-3, point.distance) * point.distance,
                most=self.max_products,
            )

        damped = hessian + np.diag(added)
        try:
            return np.asarray(-np.linalg.solve(damped, point.gradient))
        except np.linalg.LinAlgError:
            return np.full(len(added), np.nan)
