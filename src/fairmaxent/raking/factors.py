"""Factors: by what the weights of each cell change, found by Newton's method, or else with the help of programs."""

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import Blocks, Mask, Reals, tally
from fairmaxent.errors import InfeasibleError, InputError, Option, SolverError
from fairmaxent.maxent.solvers import backtrack, conjugate_gradients
from fairmaxent.raking.conflict import conflict_error, find_conflict, forced_cells
from fairmaxent.raking.problem import RakingDual, RakingPoint, RakingProblem
from fairmaxent.raking.survey import Survey

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


def solve(dual: RakingDual, start: Reals | None = None) -> RakingPoint:
    """Minimise the dual from ``start``, by default from λ = 0, and return the last point of the search.

    Newton's method is damped like that of Levenberg and Marquardt. Where bounds cut factors off, the dual is linear in
    some directions, and a plain step has no length there. Adding μ·t to the diagonal gives it one: with μ = 1 the step
    is about that of iterative proportional fitting, which always helps, and with μ → 0 it is Newton's. Without a
    solution the dual falls without end; the search then stops as soon as its value proves that.
    """
    point, damping = dual.at(np.zeros(dual.blocks.width) if start is None else start), _LEAST_DAMPING
    # h* = −Σ d (g log g − g) ≥ 1 − log max g, where g ≤ 1/min d.
    floor = -np.inf if dual.slack is not None else 1 + float(np.log(dual.masses.min())) - 1e-6
    steps = 0
    while steps < _MOST_STEPS and point.residual > TOLERANCE and point.value >= floor:
        steps += 1
        hessian = point.hessian() if dual.blocks.width <= DENSE_LEVELS else None
        following = None
        while following is None and damping <= _MOST_DAMPING:
            direction = _direction(point, hessian, damping)
            if float(point.gradient @ direction) < 0:  # which it is not if it is not a number
                following = backtrack(dual.at, point, direction, trials=3, size=attrgetter("distance"), falls=0.99)
            damping = damping * 100 if following is None else max(damping / 100, _LEAST_DAMPING)
        if following is None:
            break
        point = following
    return point


def _direction(point: RakingPoint, hessian: Reals | None, damping: float) -> Reals:
    """−(H + μ diag t)⁻¹ g."""
    scale = np.maximum(point.dual.wanted, _LEAST_SHARE)  # about the diagonal of H
    added = damping * scale
    if hessian is None:  # the closer the point, the more precise the step, so that the last are as good as Newton's
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


_PRICES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)  # ρ


def solve_relaxed(problem: RakingProblem) -> RakingPoint:
    """Meet the margins that must be met, and come as close as possible to the others, by squared errors of shares.

    Adding |λ|²/2ρ to the dual lets a share be missed by λ/ρ, at a cost of ρ/2 times its square. The closest weights are
    the limit for ρ → ∞, approached step by step; among those equally close, the ones that change least.
    """
    dual = problem.dual()
    # The total is a margin of one level, because the weights must add up to it even if all margins are missed.
    dual = replace(
        dual,
        blocks=Blocks.rooted((*dual.blocks.levels, 1), (0,)),
        codes=np.asfortranarray(np.column_stack([dual.codes, np.zeros(len(dual.codes), dtype=dual.codes.dtype)])),
        wanted=np.append(dual.wanted, 1.0),
    )
    missable = np.zeros(dual.blocks.width)
    for number in problem.relaxed:
        missable[problem.blocks.slices[number]] = 1.0
    point = dual.at(np.zeros(dual.blocks.width))
    for price in _PRICES:
        point = solve(replace(dual, slack=missable / price), point.multipliers)
    return point


@dataclass(frozen=True, eq=False)
class Factors:
    """The factor of each cell of the survey, and the multipliers to start from for a similar survey."""

    values: Reals
    multipliers: Reals | None
    missed: bool = False  # whether margins contradict each other, so that some are missed


def find_factors(problem: RakingProblem, start: Reals | None = None) -> Factors:
    """Find the factors of the cells, or say which margins contradict each other."""
    exact = replace(problem, relaxed=frozenset())
    dual = exact.dual()
    if np.all((dual.level_sums(dual.masses) > 0) | (dual.wanted <= 0)):  # Newton's method has a chance
        point = solve(dual, start)
        if point.residual <= ROUNDING:
            return Factors(_expanded(point.factors, exact.used), point.multipliers)
    conflict = find_conflict(exact)
    if conflict is None:
        return Factors(_on_the_boundary(exact), None)
    if not problem.relaxed:
        raise conflict_error(*conflict)
    kept = [number for number in range(len(problem.margins)) if number not in problem.relaxed]
    conflict = find_conflict(exact.restricted(kept)) if kept else None
    if conflict is not None:
        raise conflict_error(*conflict)
    return Factors(_expanded(solve_relaxed(problem).factors, problem.used), None, missed=True)


def _on_the_boundary(problem: RakingProblem) -> Reals:
    """Solve a problem whose solutions all have some cells at a bound: fix these there, and rake the others."""
    at_low, at_high = forced_cells(problem)
    kept = problem.masses > 0
    factors = np.zeros(int(kept.sum()))
    factors[at_low], factors[at_high & ~at_low] = problem.bounds.low, problem.bounds.high
    free = ~(at_low | at_high)
    codes, masses = problem.codes[kept], problem.masses[kept]
    fixed = RakingDual(problem.blocks, codes, masses, problem.wanted, problem.bounds).level_sums(masses * factors)
    if free.any():
        wanted = np.maximum(problem.wanted - fixed, 0.0)
        rest = RakingDual(problem.blocks, np.asfortranarray(codes[free]), masses[free], wanted, problem.bounds)
        point = solve(rest)
        if point.residual > ROUNDING:  # never say that margins are met if they are not
            raise SolverError(
                f"raking stopped {point.residual:.3g} away from a margin, although weights that meet all of them "
                "exist; please report this with the data that led to it"
            )
        factors[free] = point.factors
    return _expanded(factors, kept)


def _expanded(factors: Reals, used: Mask) -> Reals:
    """Factors of all cells, zero for those that get no weight."""
    result = np.zeros(len(used))
    result[used] = factors
    return result


_TRIES = 2  # draws for each replicate wanted, before it is given up


def check_replicates(replicates: int, survey: Survey) -> None:
    """Refuse what cannot be drawn."""
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 0:
        raise InputError(Option("replicates"), f" is {replicates!r}; give a whole number, 200 is usual")
    if replicates and (survey.size < 2 or not survey.table.keeps_rows):
        raise InputError(
            Option("replicates"), " needs at least two rows in memory; collect a table that an engine keeps"
        )
    need_memory(
        8.0 * replicates * survey.size, f"{replicates:,} replicate weights for each row", "ask for fewer replicates"
    )


def replicate_weights(
    problem: RakingProblem, survey: Survey, factors: Factors, count: int, rng: np.random.Generator
) -> tuple[Reals, int]:
    """Return the weights of each row in each replicate, 1 on average, and how many draws could not be raked.

    The bootstrap of Rao and Wu (1988) draws n − 1 of the n rows with replacement, and each counts n/(n − 1) times as
    often as it was drawn. A draw that misses a level altogether cannot have the margins: another one is drawn instead.
    """
    rows, cell = survey.size, survey.table.inverse
    result = np.empty((rows, count), order="F")
    done = failed = 0
    while done < count:
        if failed > _TRIES * count + 10:
            raise InfeasibleError(
                f"{failed:,} of {failed + done:,} replicates cannot have the margins, too many to be of use; merge "
                "levels with few rows, or leave out ",
                Option("replicates"),
            )
        drawn = tally(rng.integers(0, rows, rows - 1), None, rows) * (rows / (rows - 1))
        base = drawn if survey.design is None else drawn * survey.design
        masses = tally(cell, base, survey.table.distinct)
        try:
            if not masses.any():
                raise InfeasibleError("no row with weight was drawn")
            raked = find_factors(replace(problem, masses=masses / masses.sum()), factors.multipliers)
        except InfeasibleError:
            failed += 1
            continue
        weights = base * raked.values[cell]
        result[:, done] = weights * (rows / weights.sum())
        done += 1
    return result, failed
