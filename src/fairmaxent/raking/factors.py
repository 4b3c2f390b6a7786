"""Factors, by what the weights of each cell change, and the search that finds them.

Newton's method finds them unless margins contradict each other, or some cells have no
choice but a bound: only then are linear programs solved.
"""

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from fairmaxent.data.table import Blocks, Mask, Reals
from fairmaxent.errors import SolverError
from fairmaxent.maxent.solvers import backtrack, conjugate_gradients
from fairmaxent.raking.conflicts import (
    cause,
    conflict_error,
    find_conflict,
    forced_cells,
)
from fairmaxent.raking.problem import RakingDual, RakingPoint, RakingProblem

TOLERANCE = 1e-14  # residual, as a share of the total, at which nothing is left to gain
# Residual below which a search that makes no more progress has met the limits of
# float64.
ROUNDING = 1e-10
DENSE_LEVELS = 2_000  # of all margins, up to which the Hessian is formed
_MOST_PRODUCTS = 500
_MOST_STEPS = 100
_LEAST_DAMPING = 1e-13
_MOST_DAMPING = 1e6
_LEAST_SHARE = 1e-12  # of a level that is wanted at zero
_PRICES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)  # ρ


@dataclass(frozen=True, eq=False)
class Factors:
    """The factor of each cell of the survey."""

    values: Reals
    multipliers: Reals | None  # to start from for a similar survey
    conflict: str | None = None  # why no weights meet all margins, if none do


def find_factors(problem: RakingProblem, start: Reals | None = None) -> Factors:
    """Find the factors of the cells, or say which margins contradict each other."""
    exact = replace(problem, relaxed=frozenset())
    dual = exact.dual(exact.used)
    # Newton's method has a chance
    if np.all((dual.level_sums(dual.masses) > 0) | (dual.wanted <= 0)):
        point = solve(dual, start)
        if point.residual <= ROUNDING:
            return Factors(_expanded(point.factors, exact.used), point.multipliers)

    conflict = find_conflict(exact)
    if conflict is None:
        return Factors(_on_the_boundary(exact), None)
    if problem.relaxed:  # only the others must be met
        every = range(len(problem.margins))
        firm = [number for number in every if number not in problem.relaxed]
        conflict = find_conflict(exact.restricted(firm)) if firm else None
    if conflict is not None:
        raise conflict_error(*conflict)
    factors = _expanded(solve_relaxed(problem).factors, problem.used)
    return Factors(factors, None, conflict=cause(exact))


def _expanded(factors: Reals, used: Mask) -> Reals:
    """Factors of all cells, zero for those that get no weight."""
    result = np.zeros(len(used))
    result[used] = factors
    return result


def _on_the_boundary(problem: RakingProblem) -> Reals:
    """Solve a problem whose solutions all have some cells at a bound.

    These are fixed there, and the others are raked.
    """
    at_low, at_high = forced_cells(problem)
    result = np.zeros(len(problem.masses))
    cells = np.flatnonzero(problem.masses > 0)
    result[cells[at_high]] = problem.bounds.high
    result[cells[at_low]] = problem.bounds.low
    free = cells[~(at_low | at_high)]
    if not len(free):
        return result
    fixed = problem.dual(cells).level_sums((problem.masses * result)[cells])
    wanted = np.maximum(problem.wanted - fixed, 0.0)
    point = solve(replace(problem.dual(free), wanted=wanted))
    if point.residual > ROUNDING:  # never say that margins are met if they are not
        raise SolverError(
            f"raking stopped {point.residual:.3g} away from a margin, although"
            " weights that meet all of them exist; please report this with the"
            " data that led to it"
        )

    result[free] = point.factors
    return result


def solve(dual: RakingDual, start: Reals | None = None) -> RakingPoint:
    """Minimise the dual from ``start``, by default λ = 0; return where the search ends.

    Newton's method is damped like that of Levenberg and Marquardt. Where bounds cut
    factors off, the dual is linear in some directions, and a plain step has no length
    there. Adding μ·t to the diagonal gives it one: with μ = 1 the step is about that of
    iterative proportional fitting, which always helps, and with μ → 0 it is Newton's.
    Without a solution the dual falls without end; the search then stops as soon as its
    value proves that.
    """
    if start is None:
        start = np.zeros(dual.blocks.width)
    point = dual.at(start)
    floor = -np.inf
    if dual.slack is None:
        # h* = −Σ d (g log g − g) ≥ 1 − log max g, where g ≤ 1/min d.
        floor = 1 + float(np.log(dual.masses.min())) - 1e-6
    damping = _LEAST_DAMPING
    for _ in range(_MOST_STEPS):
        if point.residual <= TOLERANCE or point.value < floor:
            break
        following, damping = _step(point, damping)
        if following is None:
            break
        point = following
    return point


def _step(point: RakingPoint, damping: float) -> tuple[RakingPoint | None, float]:
    """The next point, None if there is no better one, and the damping from there."""
    hessian = None
    if point.dual.blocks.width <= DENSE_LEVELS:
        hessian = point.hessian()
    while damping <= _MOST_DAMPING:
        direction = _direction(point, hessian, damping)
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


def _direction(point: RakingPoint, hessian: Reals | None, damping: float) -> Reals:
    """−(H + μ diag t)⁻¹ g."""
    scale = np.maximum(point.dual.wanted, _LEAST_SHARE)  # about the diagonal of H
    added = damping * scale
    if hessian is None:
        # The closer the point, the more precise the step, so that the last are as good
        # as Newton's.
        return conjugate_gradients(
            lambda vector: point.times_hessian(vector) + added * vector,
            point.gradient,
            lambda vector: vector / scale,
            enough=min(1e-3, point.distance) * point.distance,
            most=_MOST_PRODUCTS,
        )

    damped = hessian.copy()
    damped[np.diag_indices(len(damped))] += added
    try:
        return np.asarray(-np.linalg.solve(damped, point.gradient))
    except np.linalg.LinAlgError:
        return np.full(len(added), np.nan)


def solve_relaxed(problem: RakingProblem) -> RakingPoint:
    """Meet the margins that must be met, and come as close as possible to the others.

    Closest by squared errors of shares: adding |λ|²/2ρ to the dual lets a share be
    missed by λ/ρ, at a cost of ρ/2 times its square. The closest weights are the limit
    for ρ → ∞, approached step by step; among those equally close, the ones that change
    least.
    """
    dual = problem.dual(problem.used)
    # The total is a margin of one level, because the weights must add up to it even if
    # all margins are missed.
    one_level = np.zeros(len(dual.codes), dtype=dual.codes.dtype)
    dual = replace(
        dual,
        blocks=Blocks.rooted((*dual.blocks.levels, 1), (0,)),
        codes=np.asfortranarray(np.column_stack([dual.codes, one_level])),
        wanted=np.append(dual.wanted, 1.0),
    )
    missable = np.zeros(dual.blocks.width)
    for number in problem.relaxed:
        missable[problem.blocks.slices[number]] = 1.0
    point = dual.at(np.zeros(dual.blocks.width))
    for price in _PRICES:
        point = solve(replace(dual, slack=missable / price), point.multipliers)
    return point
