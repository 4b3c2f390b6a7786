"""Factors, by what the weights of each cell change; and conflicts, margins that no
weights meet together.

Linear programs tell whether weights that meet the margins exist, and which cells they
use. They are solved only if Newton's method fails, because they take far longer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import Blocks, Codes, Mask, Reals, tally
from fairmaxent.errors import (
    ConflictError,
    InfeasibleError,
    InputError,
    Option,
    SolverError,
    shown,
)
from fairmaxent.maxent.solvers import backtrack, conjugate_gradients
from fairmaxent.raking.problem import RakingDual, RakingPoint, RakingProblem, Survey

# sum of the misses, as shares, below which margins are met: the program solves no more
# precisely
REACHED = 2e-9
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Sets of margins to check before one is called the smallest; a set from which none can
# be left out is taken otherwise.
_MOST_SETS = 2_000
_SHOWN = 6  # levels that a message lists
TOLERANCE = 1e-14  # residual, as a share of the total, at which nothing is left to gain
# residual below which a search that makes no more progress has met the limits of
# float64
ROUNDING = 1e-10
DENSE_LEVELS = 2_000  # of all margins, up to which the Hessian is formed
_MOST_PRODUCTS = 500
_MOST_STEPS = 100
_LEAST_DAMPING = 1e-13
_MOST_DAMPING = 1e6
_LEAST_SHARE = 1e-12  # of a level that is wanted at zero
_PRICES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)  # ρ
_TRIES = 2  # draws for each replicate wanted, before it is given up


def smallest_miss(
    problem: RakingProblem, levels: Codes | None = None
) -> tuple[float, Reals]:
    """Minimise Σ |achieved − wanted| over the levels, all weights within bounds and of
    the right total.

    Returns the minimum and the price of each level: if the minimum is positive, the
    levels with a price contradict each other. ``levels`` are those that count, all by
    default.
    """
    from scipy import optimize, sparse

    sums = _incidence(problem)
    masses = problem.masses[problem.masses > 0]
    low = problem.bounds.low
    high = problem.bounds.high
    if levels is None:
        counted = np.arange(len(problem.wanted))
    else:
        counted = levels
    unit = sparse.eye_array(len(counted), format="csr")
    every = sparse.hstack([sums[counted], unit, -unit], format="csr")
    total = np.concatenate([np.ones(len(masses)), np.zeros(2 * len(counted))])[None, :]
    program = optimize.linprog(
        np.concatenate([np.zeros(len(masses)), np.ones(2 * len(counted))]),
        A_eq=sparse.vstack([every, total], format="csr"),
        b_eq=np.append(problem.wanted[counted], 1.0),
        bounds=[
            *((low * mass, high * mass) for mass in masses),
            *[(0, None)] * (2 * len(counted)),
        ],
        method="highs",
        options=_TIGHT,
    )
    if program.status != 0:  # even the total is out of reach
        return math.inf, np.ones(len(counted))
    return float(program.fun), np.asarray(program.eqlin.marginals[: len(counted)])


def forced_cells(problem: RakingProblem) -> tuple[Mask, Mask]:
    """Which cells every solution has at their lower, and at their upper bound; the
    problem has a solution.
    """
    from scipy import optimize, sparse

    # One linear program finds weights that are inside the bounds wherever that is
    # possible: they are scaled up freely (by κ), and the distance of each from its
    # bounds counts only up to 1.
    sums = _incidence(problem)
    masses = problem.masses[problem.masses > 0]
    bounds = problem.bounds
    cells = len(masses)
    above = math.isfinite(bounds.high)
    unit = sparse.eye_array(cells, format="csr")
    zero = sparse.csr_array((cells, cells))
    wanted = sparse.csr_array(problem.wanted[:, None])
    nothing = sparse.csr_array((sums.shape[0], 2 * cells))
    meet = sparse.hstack([sums, nothing, -wanted], format="csr")
    limits = [
        sparse.hstack(
            [-unit, unit, zero, sparse.csr_array(bounds.low * masses[:, None])],
            format="csr",
        )
    ]
    if above:
        limits.append(
            sparse.hstack(
                [unit, zero, unit, -sparse.csr_array(bounds.high * masses[:, None])],
                format="csr",
            )
        )
    scaled = sparse.vstack(limits, format="csr")
    program = optimize.linprog(
        np.concatenate([np.zeros(cells), -np.ones(2 * cells), [0.0]]),
        A_eq=meet,
        b_eq=np.zeros(sums.shape[0]),
        A_ub=scaled,
        b_ub=np.zeros(scaled.shape[0]),
        bounds=[
            *[(0, None)] * cells,
            *[(0, 1)] * cells,
            *[(0, 1 if above else 0)] * cells,
            (0, None),
        ],
        method="highs",
    )
    none = np.zeros(cells, dtype=bool)
    if program.status != 0:
        return none, none
    return program.x[cells : 2 * cells] < 0.5, (
        program.x[2 * cells : 3 * cells] < 0.5 if above else none
    )


def _incidence(problem: RakingProblem) -> Any:
    """Which cells have which level: (levels, cells), sparse."""
    from scipy import sparse

    kept = problem.masses > 0
    codes = problem.codes[kept] + np.array(
        [part.start for part in problem.blocks.slices]
    )
    cells = np.repeat(np.arange(len(codes)), codes.shape[1])
    return sparse.csr_array(
        (np.ones(codes.size), (codes.ravel(), cells)),
        shape=(len(problem.wanted), len(codes)),
    )


def find_conflict(
    problem: RakingProblem,
) -> tuple[RakingProblem, tuple[int, ...]] | None:
    """Find the smallest set of margins that no weights meet together, and the levels
    behind it; None: there is none.
    """
    bounds = problem.bounds
    for number, margin in enumerate(problem.margins):
        # The level that is farthest beyond what the bounds allow by themselves.
        mass = tally(margin.cells, problem.masses, len(margin.wanted))
        most = np.where(mass > 0, bounds.high, 0.0) * np.where(mass > 0, mass, 1.0)
        beyond = np.maximum(margin.wanted - most, bounds.low * mass - margin.wanted)
        if beyond.max() > REACHED:
            return problem.restricted([number]), (int(beyond.argmax()),)
    smallest = _smallest(problem)
    if smallest is None:
        return None
    smaller = problem.restricted(smallest)
    # Levels that cannot be met together although any of them could be left out.
    levels = np.flatnonzero(np.abs(smallest_miss(smaller)[1]) > 1e-9)
    # the prices were too imprecise to rely on
    if smallest_miss(smaller, levels)[0] <= REACHED:
        levels = np.arange(len(smaller.wanted))
    for level in levels[::-1]:
        rest = levels[levels != level]
        if len(rest) and smallest_miss(smaller, rest)[0] > REACHED:
            levels = rest
    return smaller, tuple(levels.tolist())


def _can_be_met(problem: RakingProblem, margins: Sequence[int]) -> bool:
    return smallest_miss(problem.restricted(margins))[0] <= REACHED


def _smallest(problem: RakingProblem) -> tuple[int, ...] | None:
    """The smallest set of two margins or more that cannot be met; None if all can be
    met.
    """
    every = tuple(range(len(problem.margins)))
    # Pairs come first: most conflicts are between two margins, which have few cells.
    # Only then are all checked.
    for pair in combinations(every, 2):
        if not _can_be_met(problem, pair):
            return pair
    if len(every) < 3 or _can_be_met(problem, every):
        return None
    irreducible = every
    # leave out margins as long as the rest cannot be met
    for number in reversed(every):
        rest = tuple(other for other in irreducible if other != number)
        if not _can_be_met(problem, rest):
            irreducible = rest
    larger = (
        chosen
        for size in range(3, len(irreducible))
        for chosen in combinations(every, size)
    )
    return next(
        (
            chosen
            for chosen in islice(larger, _MOST_SETS)
            if not _can_be_met(problem, chosen)
        ),
        irreducible,
    )


def conflict_error(problem: RakingProblem, levels: Sequence[int]) -> ConflictError:
    """Say which margins contradict each other, where, and what to do."""
    if len(problem.margins) == 1:
        parts = _alone(problem, levels[0])
    else:
        parts = _together(problem, levels)
    names = tuple(margin.columns for margin in problem.margins)
    return ConflictError(
        *parts, margins=names, levels=tuple(map(problem.describe, levels))
    )


def _alone(problem: RakingProblem, level: int) -> tuple[object, ...]:
    wanted = float(problem.wanted[level])
    name = problem.describe(level)
    mass = float(problem.masses[problem.margins[0].cells == level].sum())
    closest = (", or use ", Option("relax", "all"), " to come as close as possible.")
    if mass == 0:
        reason = (
            f"{name} should have a share of {wanted:.4g}, but no row with weight"
            " has it."
        )
        return (f"{reason} Merge it with another level", *closest)
    above = wanted > mass
    if above:
        limit = f"the largest allowed is {problem.bounds.high:g}"
    else:
        limit = f"the least is {problem.bounds.low:g}"
    reason = (
        f"{name} has a share of {mass:.4g} and should have {wanted:.4g}, a factor of"
        f" {wanted / mass:.4g}"
    )
    return (
        f"{reason}, and {limit} (",
        Option("bounds"),
        "). Widen the bounds",
        *closest,
    )


def _together(problem: RakingProblem, levels: Sequence[int]) -> tuple[object, ...]:
    names = " and ".join(margin.name for margin in problem.margins)
    shares = [
        f"{problem.describe(level)} ({problem.wanted[level]:.4g})"
        for level in levels[:_SHOWN]
    ]
    if len(levels) > _SHOWN:
        more = f" and {len(levels) - _SHOWN} more"
    else:
        more = ""
    limited = problem.bounds.given
    reason = (
        "The bounds do not allow all of these shares"
        if limited
        else "These shares contradict each other"
    )
    if limited:
        within = f" if factors are {problem.bounds.text}"
    else:
        within = ""
    miss = smallest_miss(problem)[0] / 2
    if math.isinf(miss):
        how_far = ""
    else:
        how_far = (
            f" The closest weights leave {miss:.3g} of the total in the wrong level."
        )
    if limited:
        widen = ("widen ", Option("bounds"), ", ")
    else:
        widen = ()
    return (
        (
            f"no weights meet these margins together{within}: {names}. {reason}: "
            f"{', '.join(shares)}{more}.{how_far} Correct one of them, "
        ),
        *widen,
        "or use ",
        Option("relax", "all"),
        " to come as close as possible.",
    )


def solve(dual: RakingDual, start: Reals | None = None) -> RakingPoint:
    """Minimise the dual from ``start``, by default from λ = 0, and return the last
    point of the search.

    Newton's method is damped like that of Levenberg and Marquardt. Where bounds cut
    factors off, the dual is linear in some directions, and a plain step has no length
    there. Adding μ·t to the diagonal gives it one: with μ = 1 the step is about that of
    iterative proportional fitting, which always helps, and with μ → 0 it is Newton's.
    Without a solution the dual falls without end; the search then stops as soon as its
    value proves that.
    """
    point = dual.at(np.zeros(dual.blocks.width) if start is None else start)
    damping = _LEAST_DAMPING
    # h* = −Σ d (g log g − g) ≥ 1 − log max g, where g ≤ 1/min d.
    if dual.slack is not None:
        floor = -np.inf
    else:
        floor = 1 + float(np.log(dual.masses.min())) - 1e-6
    steps = 0
    while steps < _MOST_STEPS and point.residual > TOLERANCE and point.value >= floor:
        steps += 1
        if dual.blocks.width <= DENSE_LEVELS:
            hessian = point.hessian()
        else:
            hessian = None
        following = None
        while following is None and damping <= _MOST_DAMPING:
            direction = _direction(point, hessian, damping)
            # which it is not if it is not a number
            if float(point.gradient @ direction) < 0:
                following = backtrack(
                    dual.at,
                    point,
                    direction,
                    trials=3,
                    size=attrgetter("distance"),
                    falls=0.99,
                )
            if following is None:
                damping = damping * 100
            else:
                damping = max(damping / 100, _LEAST_DAMPING)
        if following is None:
            break
        point = following
    return point


def _direction(point: RakingPoint, hessian: Reals | None, damping: float) -> Reals:
    """−(H + μ diag t)⁻¹ g."""
    scale = np.maximum(point.dual.wanted, _LEAST_SHARE)  # about the diagonal of H
    added = damping * scale
    # the closer the point, the more precise the step, so that the last are as good as
    # Newton's
    if hessian is None:
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
    """Meet the margins that must be met, and come as close as possible to the others,
    by squared errors of shares.

    Adding |λ|²/2ρ to the dual lets a share be missed by λ/ρ, at a cost of ρ/2 times its
    square. The closest weights are the limit for ρ → ∞, approached step by step; among
    those equally close, the ones that change least.
    """
    dual = problem.dual(problem.used)
    # The total is a margin of one level, because the weights must add up to it even if
    # all margins are missed.
    dual = replace(
        dual,
        blocks=Blocks.rooted((*dual.blocks.levels, 1), (0,)),
        codes=np.asfortranarray(
            np.column_stack(
                [dual.codes, np.zeros(len(dual.codes), dtype=dual.codes.dtype)]
            )
        ),
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
    """The factor of each cell of the survey, and the multipliers to start from for a
    similar survey.
    """

    values: Reals
    multipliers: Reals | None
    missed: bool = False  # whether no weights meet all margins, so that some are missed


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
    if not problem.relaxed:
        raise conflict_error(*conflict)
    kept = [
        number
        for number in range(len(problem.margins))
        if number not in problem.relaxed
    ]
    conflict = None
    if kept:
        conflict = find_conflict(exact.restricted(kept))
    if conflict is not None:
        raise conflict_error(*conflict)
    return Factors(
        _expanded(solve_relaxed(problem).factors, problem.used), None, missed=True
    )


def _on_the_boundary(problem: RakingProblem) -> Reals:
    """Solve a problem whose solutions all have some cells at a bound: fix these there,
    and rake the others.
    """
    at_low, at_high = forced_cells(problem)
    result = np.zeros(len(problem.masses))
    cells = np.flatnonzero(problem.masses > 0)
    result[cells[at_high]] = problem.bounds.high
    result[cells[at_low]] = problem.bounds.low
    free = cells[~(at_low | at_high)]
    if len(free):
        fixed = problem.dual(cells).level_sums((problem.masses * result)[cells])
        point = solve(
            replace(problem.dual(free), wanted=np.maximum(problem.wanted - fixed, 0.0))
        )
        if point.residual > ROUNDING:  # never say that margins are met if they are not
            raise SolverError(
                f"raking stopped {point.residual:.3g} away from a margin, although"
                " weights that meet all of them exist; please report this with the"
                " data that led to it"
            )
        result[free] = point.factors
    return result


def _expanded(factors: Reals, used: Mask) -> Reals:
    """Factors of all cells, zero for those that get no weight."""
    result = np.zeros(len(used))
    result[used] = factors
    return result


def check_replicates(replicates: int, survey: Survey) -> None:
    """Refuse what cannot be drawn."""
    if (
        isinstance(replicates, bool)
        or not isinstance(replicates, int | np.integer)
        or not 0 <= replicates < 2**31
    ):
        raise InputError(
            Option("replicates"),
            f" is {shown(replicates)}; give a whole number, 200 is usual",
        )
    if replicates and (survey.table.size < 2 or not survey.table.keeps_rows):
        raise InputError(
            Option("replicates"),
            " needs at least two rows in memory; collect a table that an engine keeps",
        )
    need_memory(
        8.0 * replicates * survey.table.size,
        f"{replicates:,} replicate weights for each row",
        "ask for fewer replicates",
    )


def replicate_weights(
    problem: RakingProblem,
    survey: Survey,
    factors: Factors,
    count: int,
    rng: np.random.Generator,
) -> tuple[Reals, int]:
    """Return the weights of each row in each replicate, 1 on average, and how many
    draws could not be raked.

    The bootstrap of Rao and Wu (1988) draws n − 1 of the n rows with replacement, and
    each counts n/(n − 1) times as often as it was drawn. A draw that misses a level
    altogether cannot have the margins: another one is drawn instead.
    """
    rows = survey.table.size
    cell = survey.table.inverse
    result = np.empty((rows, count), order="F")
    done = failed = 0
    while done < count:
        if failed > _TRIES * count + 10:
            if problem.bounds.given:
                within = f" with factors {problem.bounds.text}"
            else:
                within = ""
            if problem.bounds.given:
                widen = (", widen ", Option("bounds"))
            else:
                widen = ()
            cannot = (
                f"{failed:,} of {failed + done:,} replicates cannot have the"
                f" margins{within}"
            )
            advice = (
                "; merge levels with few rows",
                *widen,
                ", or leave out ",
                Option("replicates"),
            )
            raise InfeasibleError(f"{cannot}, too many to be of use", *advice)
        drawn = tally(rng.integers(0, rows, rows - 1), None, rows) * (rows / (rows - 1))
        if survey.design is None:
            base = drawn
        else:
            base = drawn * survey.design
        masses = tally(cell, base, survey.table.distinct)
        try:
            if not masses.any():
                raise InfeasibleError("no row with weight was drawn")
            raked = find_factors(
                replace(problem, masses=masses / masses.sum()), factors.multipliers
            )
        except InfeasibleError:
            failed += 1
            continue
        weights = base * raked.values[cell]
        result[:, done] = weights * (rows / weights.sum())
        done += 1
    return result, failed
