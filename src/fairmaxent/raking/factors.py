"""Factors, by what the weights of each cell change, and how they are found.

Newton's method finds them unless margins contradict each other, or some cells have no
choice but a bound: only then are linear programs solved.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Blocks, Mask, Reals
from fairmaxent.maxent.bounded import BoundedPoint
from fairmaxent.maxent.optimum import factors_on_face
from fairmaxent.maxent.solvers import DampedNewton
from fairmaxent.raking.conflicts import cause, conflict_error, find_conflict
from fairmaxent.raking.problem import RakingProblem

_MET = 1e-10  # residual below which no linear program needs to look for a conflict
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
    if np.all((dual.rows.level_sums(dual.masses) > 0) | (dual.wanted <= 0)):
        point = DampedNewton().solve(dual, start).point
        if point.residual <= _MET:
            return Factors(_expanded(point.factors, exact.used), point.multipliers)

    conflict = find_conflict(exact)
    if conflict is None:
        return Factors(_expanded(factors_on_face(dual), exact.used), None)
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


def solve_relaxed(problem: RakingProblem) -> BoundedPoint:
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
        softened = replace(dual, slack=missable / price)
        point = DampedNewton().solve(softened, point.multipliers).point
    return point
