"""Conflicts: margins that no weights meet together, down to the smallest set of them and the levels behind it.

Linear programs tell whether weights that meet the margins exist, and which cells they use. They are solved only if
Newton's method fails, because they take far longer.
"""

import math
from collections.abc import Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, tally
from fairmaxent.errors import ConflictError, Option
from fairmaxent.raking.problem import RakingProblem

REACHED = 2e-9
"""Sum of the misses, as shares of the total, below which margins are met: the program solves no more precisely."""
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def smallest_miss(problem: RakingProblem, levels: Codes | None = None) -> tuple[float, Reals]:
    """Minimise Σ |achieved − wanted| over the levels, all weights within bounds and of the right total.

    Returns the minimum and the price of each level: if the minimum is positive, the levels with a price contradict each
    other. ``levels`` are those that count, all by default.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, vstack

    sums, masses = _incidence(problem), problem.masses[problem.masses > 0]
    low, high = problem.bounds.low, problem.bounds.high
    counted = np.arange(len(problem.wanted)) if levels is None else levels
    unit = eye_array(len(counted), format="csr")
    every = hstack([sums[counted], unit, -unit], format="csr")
    total = np.concatenate([np.ones(len(masses)), np.zeros(2 * len(counted))])[None, :]
    program = linprog(
        np.concatenate([np.zeros(len(masses)), np.ones(2 * len(counted))]),
        A_eq=vstack([every, total], format="csr"),
        b_eq=np.append(problem.wanted[counted], 1.0),
        bounds=[*((low * mass, high * mass) for mass in masses), *[(0, None)] * (2 * len(counted))],
        method="highs",
        options=_TIGHT,
    )
    if program.status != 0:  # even the total is out of reach
        return math.inf, np.ones(len(counted))
    return float(program.fun), np.asarray(program.eqlin.marginals[: len(counted)])


def forced_cells(problem: RakingProblem) -> tuple[Mask, Mask]:
    """Which cells every solution has at their lower, and at their upper bound; the problem has a solution.

    One linear program finds weights that are inside the bounds wherever that is possible: they are scaled up freely
    (by κ), and the distance of each from its bounds counts only up to 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    sums, masses = _incidence(problem), problem.masses[problem.masses > 0]
    bounds, cells = problem.bounds, len(masses)
    above = math.isfinite(bounds.high)
    unit, zero = eye_array(cells, format="csr"), csr_array((cells, cells))
    meet = hstack([sums, csr_array((sums.shape[0], 2 * cells)), -csr_array(problem.wanted[:, None])], format="csr")
    limits = [hstack([-unit, unit, zero, csr_array(bounds.low * masses[:, None])], format="csr")]
    if above:
        limits.append(hstack([unit, zero, unit, -csr_array(bounds.high * masses[:, None])], format="csr"))
    scaled = vstack(limits, format="csr")
    program = linprog(
        np.concatenate([np.zeros(cells), -np.ones(2 * cells), [0.0]]),
        A_eq=meet,
        b_eq=np.zeros(sums.shape[0]),
        A_ub=scaled,
        b_ub=np.zeros(scaled.shape[0]),
        bounds=[*[(0, None)] * cells, *[(0, 1)] * cells, *[(0, 1 if above else 0)] * cells, (0, None)],
        method="highs",
    )
    none = np.zeros(cells, dtype=bool)
    if program.status != 0:
        return none, none
    return program.x[cells : 2 * cells] < 0.5, program.x[2 * cells : 3 * cells] < 0.5 if above else none


def _incidence(problem: RakingProblem) -> Any:
    """Which cells have which level: (levels, cells), sparse."""
    from scipy.sparse import csr_array

    kept = problem.masses > 0
    codes = problem.codes[kept] + np.array([part.start for part in problem.blocks.slices])
    cells = np.repeat(np.arange(len(codes)), codes.shape[1])
    return csr_array((np.ones(codes.size), (codes.ravel(), cells)), shape=(len(problem.wanted), len(codes)))


# Sets of margins to check before one is called the smallest; a set from which none can be left out is taken otherwise.
_MOST_SETS = 2_000
_SHOWN = 6  # levels that a message lists


Conflict = tuple[RakingProblem, tuple[int, ...]]  # margins that contradict each other alone, and the levels that do


def find_conflict(problem: RakingProblem) -> Conflict | None:
    """Find the smallest set of margins that no weights meet together; None if all can be met."""
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
    return smaller, _contradicting_levels(smaller)


def _can_be_met(problem: RakingProblem, margins: Sequence[int]) -> bool:
    return smallest_miss(problem.restricted(margins))[0] <= REACHED


def _smallest(problem: RakingProblem) -> tuple[int, ...] | None:
    """The smallest set of two margins or more that cannot be met; None if all can be met.

    Pairs come first: most conflicts are between two margins, which have few cells. Only then are all margins checked.
    """
    every = tuple(range(len(problem.margins)))
    for pair in combinations(every, 2):
        if not _can_be_met(problem, pair):
            return pair
    if len(every) < 3 or _can_be_met(problem, every):
        return None
    irreducible = every
    for number in reversed(every):  # leave out margins as long as the rest cannot be met
        rest = tuple(other for other in irreducible if other != number)
        if not _can_be_met(problem, rest):
            irreducible = rest
    larger = (chosen for size in range(3, len(irreducible)) for chosen in combinations(every, size))
    return next((chosen for chosen in islice(larger, _MOST_SETS) if not _can_be_met(problem, chosen)), irreducible)


def _contradicting_levels(problem: RakingProblem) -> tuple[int, ...]:
    """Levels that cannot be met together although any of them could be left out."""
    _, prices = smallest_miss(problem)
    levels = np.flatnonzero(np.abs(prices) > 1e-9)
    if smallest_miss(problem, levels)[0] <= REACHED:  # the prices were too imprecise to rely on
        levels = np.arange(len(problem.wanted))
    for level in levels[::-1]:
        rest = levels[levels != level]
        if len(rest) and smallest_miss(problem, rest)[0] > REACHED:
            levels = rest
    return tuple(levels.tolist())


def conflict_error(problem: RakingProblem, levels: Sequence[int]) -> ConflictError:
    """Say which margins contradict each other, where, and what to do."""
    parts = _alone(problem, levels[0]) if len(problem.margins) == 1 else _together(problem, levels)
    names = tuple(margin.columns for margin in problem.margins)
    return ConflictError(*parts, margins=names, levels=tuple(map(problem.describe, levels)))


def _alone(problem: RakingProblem, level: int) -> tuple[object, ...]:
    wanted, name = float(problem.wanted[level]), problem.describe(level)
    mass = float(problem.masses[problem.margins[0].cells == level].sum())
    closest = (", or use ", Option("relax", "all"), " to come as close as possible.")
    if mass == 0:
        reason = f"{name} should have a share of {wanted:.4g}, but no row with weight has it."
        return (f"{reason} Merge it with another level", *closest)
    above = wanted > mass
    limit = f"the largest allowed is {problem.bounds.high:g}" if above else f"the least is {problem.bounds.low:g}"
    reason = f"{name} has a share of {mass:.4g} and should have {wanted:.4g}, a factor of {wanted / mass:.4g}"
    return (f"{reason}, and {limit} (", Option("bounds"), "). Widen the bounds", *closest)


def _together(problem: RakingProblem, levels: Sequence[int]) -> tuple[object, ...]:
    names = " and ".join(margin.name for margin in problem.margins)
    shares = [f"{problem.describe(level)} ({problem.wanted[level]:.4g})" for level in levels[:_SHOWN]]
    more = f" and {len(levels) - _SHOWN} more" if len(levels) > _SHOWN else ""
    reason = (
        "The bounds do not allow all of these shares" if problem.bounds.given else "These shares contradict each other"
    )
    within = f" if factors are {problem.bounds.text}" if problem.bounds.given else ""
    miss = smallest_miss(problem)[0] / 2
    how_far = "" if math.isinf(miss) else f" The closest weights leave {miss:.3g} of the total in the wrong level."
    widen = ("widen ", Option("bounds"), ", ") if problem.bounds.given else ()
    return (
        f"no weights meet these margins together{within}: {names}. {reason}: "
        f"{', '.join(shares)}{more}.{how_far} Correct one of them, ",
        *widen,
        "or use ",
        Option("relax", "all"),
        " to come as close as possible.",
    )
