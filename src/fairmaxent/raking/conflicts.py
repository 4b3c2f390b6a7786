"""Conflicts: the smallest set of margins that no weights meet together, and why.

The linear programs that tell are solved only if Newton's method fails, because they
take far longer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from fairmaxent.data.table import Axes, Codes, Mask, Reals, tally
from fairmaxent.errors import ConflictError, Option, Remark, first_of
from fairmaxent.raking.problem import Bounds, RakingProblem

# Sum of the misses, as shares, below which margins are met: linear programs are solved
# no more precisely.
REACHED = 2e-9
_LEAST_PRICE = 1e-9  # of a level that has a part in a conflict
# Sets of margins to check before one is called the smallest; a set from which none can
# be left out is taken otherwise.
_MOST_SETS = 2_000
_SHOWN = 6  # levels that a message lists
# margins that contradict each other, alone, and the levels behind it
Conflict = tuple[RakingProblem, Axes]
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def find_conflict(problem: RakingProblem) -> Conflict | None:
    """Find the smallest set of margins that no weights meet, and the levels behind it.

    None: weights meet all of them.
    """
    bounds = problem.bounds
    for number, margin in enumerate(problem.margins):
        # The level that is farthest beyond what the bounds allow by themselves.
        mass = tally(margin.cells, problem.masses, len(margin.wanted))
        most = np.where(mass > 0, bounds.high, 0.0) * np.where(mass > 0, mass, 1.0)
        beyond = np.maximum(margin.wanted - most, bounds.low * mass - margin.wanted)
        if beyond.max() > REACHED:
            return problem.restricted([number]), (int(beyond.argmax()),)

    smallest = _smallest_set(problem)
    if smallest is None:
        return None
    smaller = problem.restricted(smallest)
    return smaller, tuple(_conflicting_levels(smaller).tolist())


def _smallest_set(problem: RakingProblem) -> Axes | None:
    """The smallest set of two margins or more that cannot be met; None: all can."""
    every = tuple(range(len(problem.margins)))
    # Pairs come first: most conflicts are between two margins, which have few cells.
    # Only then are all checked.
    for pair in combinations(every, 2):
        if not _can_be_met(problem, pair):
            return pair

    if len(every) < 3 or _can_be_met(problem, every):
        return None
    # leave out margins as long as the rest cannot be met
    irreducible = every
    for number in reversed(every):
        rest = tuple(other for other in irreducible if other != number)
        if not _can_be_met(problem, rest):
            irreducible = rest

    larger = (
        chosen
        for size in range(3, len(irreducible))
        for chosen in combinations(every, size)
    )
    for chosen in islice(larger, _MOST_SETS):
        if not _can_be_met(problem, chosen):
            return chosen
    return irreducible


def _can_be_met(problem: RakingProblem, margins: Sequence[int]) -> bool:
    return smallest_miss(problem.restricted(margins))[0] <= REACHED


def _conflicting_levels(problem: RakingProblem) -> Codes:
    """Levels that cannot be met together, although any of them could be left out."""
    prices = smallest_miss(problem)[1]
    levels = np.flatnonzero(np.abs(prices) > _LEAST_PRICE)
    # the prices were too imprecise to rely on
    if smallest_miss(problem, levels)[0] <= REACHED:
        levels = np.arange(len(problem.wanted))
    for level in levels[::-1]:
        rest = levels[levels != level]
        if len(rest) and smallest_miss(problem, rest)[0] > REACHED:
            levels = rest
    return levels


def cause(problem: RakingProblem) -> str:
    """Why no weights meet all margins: what would let them if it were removed."""
    conflict = find_conflict(replace(problem, bounds=Bounds()))
    if conflict is None:
        return "the bounds do not allow all margins"
    contradicting, levels = conflict
    if len(contradicting.margins) == 1:
        return f"no row with weight has {contradicting.describe(levels[0])}"
    names = [margin.name for margin in contradicting.margins]
    reason = f"margins contradict each other: {', '.join(names)}"
    rest = [
        number
        for number, margin in enumerate(problem.margins)
        if margin.name not in names
    ]
    if rest and not _can_be_met(problem, rest):
        reason += "; the bounds do not allow the others"
    return reason


def conflict_error(problem: RakingProblem, levels: Sequence[int]) -> ConflictError:
    """Say which margins contradict each other, where, and what to do."""
    if len(problem.margins) == 1:
        reason = _alone(problem, levels[0])
    else:
        reason = _together(problem, levels)
    return ConflictError(
        *reason,
        "or use ",
        Option("relax", "all"),
        " to come as close as possible.",
        margins=tuple(margin.columns for margin in problem.margins),
        levels=tuple(map(problem.describe, levels)),
    )


def _alone(problem: RakingProblem, level: int) -> Remark:
    """Why one level cannot have its share."""
    wanted = float(problem.wanted[level])
    name = problem.describe(level)
    mass = float(problem.masses[problem.margins[0].cells == level].sum())
    if mass == 0:
        return (
            f"{name} should have a share of {wanted:.4g}, but no row with weight"
            " has it. Merge it with another level, ",
        )

    if wanted > mass:
        limit = f"the largest allowed is {problem.bounds.high:g}"
    else:
        limit = f"the least is {problem.bounds.low:g}"
    return (
        f"{name} has a share of {mass:.4g} and should have {wanted:.4g}, a factor of"
        f" {wanted / mass:.4g}, and {limit} (",
        Option("bounds"),
        "). Widen the bounds, ",
    )


def _together(problem: RakingProblem, levels: Sequence[int]) -> Remark:
    """Why levels of several margins cannot have their shares together."""
    names = " and ".join(margin.name for margin in problem.margins)
    named = [
        f"{problem.describe(level)} ({problem.wanted[level]:.4g})" for level in levels
    ]
    shares = first_of(named, _SHOWN)
    within = ""
    reason = "These shares contradict each other"
    widen: Remark = ()
    unbounded = replace(problem, bounds=Bounds())
    if problem.bounds.given and smallest_miss(unbounded)[0] <= REACHED:
        within = f" if factors are {problem.bounds.text}"
        reason = "The bounds do not allow all of these shares"
        widen = ("widen ", Option("bounds"), ", ")

    miss = smallest_miss(problem)[0] / 2
    how_far = ""
    if math.isfinite(miss):
        how_far = (
            f" The closest weights leave {miss:.3g} of the total in the wrong level."
        )
    return (
        f"no weights meet these margins together{within}: {names}. {reason}:"
        f" {shares}.{how_far} Correct one of them, ",
        *widen,
    )


# ---------------------------------------------------------------- linear programs


def smallest_miss(
    problem: RakingProblem, levels: Codes | None = None
) -> tuple[float, Reals]:
    """Minimise Σ |achieved − wanted| over the levels, all weights within the bounds.

    Returns the minimum and the price of each level: if the minimum is positive, the
    levels with a price contradict each other. ``levels`` are those that count, all by
    default.
    """
    from scipy import optimize, sparse

    if levels is None:
        levels = np.arange(len(problem.wanted))
    masses = problem.masses[problem.masses > 0]
    # The variables: the share of each cell, then by how much each level is short of
    # what is wanted, then by how much it is beyond.
    cells = len(masses)
    misses = 2 * len(levels)
    unit = sparse.eye_array(len(levels), format="csr")
    sums = sparse.hstack([_incidence(problem)[levels], unit, -unit], format="csr")
    total = np.concatenate([np.ones(cells), np.zeros(misses)])[None, :]
    program = optimize.linprog(
        np.concatenate([np.zeros(cells), np.ones(misses)]),
        A_eq=sparse.vstack([sums, total], format="csr"),
        b_eq=np.append(problem.wanted[levels], 1.0),
        bounds=[
            *(
                (problem.bounds.low * mass, problem.bounds.high * mass)
                for mass in masses
            ),
            *[(0, None)] * misses,
        ],
        method="highs",
        options=_TIGHT,
    )
    if program.status != 0:  # even the total is out of reach
        return math.inf, np.ones(len(levels))
    return float(program.fun), np.asarray(program.eqlin.marginals[: len(levels)])


def forced_cells(problem: RakingProblem) -> tuple[Mask, Mask]:
    """Which cells every solution has at their lower, and at their upper bound.

    The problem has a solution. One linear program finds weights that are inside the
    bounds wherever that is possible: they are scaled up freely (by κ), and the distance
    of each from its bounds counts only up to 1.
    """
    from scipy import optimize, sparse

    sums = _incidence(problem)
    levels, cells = sums.shape
    masses = problem.masses[problem.masses > 0][:, None]
    low = problem.bounds.low
    high = problem.bounds.high
    has_upper = math.isfinite(high)

    # The variables: the weight of each cell, its distance from the lower bound, that
    # from the upper bound, and κ.
    wanted = sparse.csr_array(problem.wanted[:, None])
    distances = sparse.csr_array((levels, 2 * cells))
    margins = sparse.hstack([sums, distances, -wanted], format="csr")
    unit = sparse.eye_array(cells, format="csr")
    zero = sparse.csr_array((cells, cells))
    above_low = [-unit, unit, zero, sparse.csr_array(low * masses)]
    limits = sparse.hstack(above_low, format="csr")
    if has_upper:
        below_high = [unit, zero, unit, -sparse.csr_array(high * masses)]
        upper = sparse.hstack(below_high, format="csr")
        limits = sparse.vstack([limits, upper], format="csr")

    program = optimize.linprog(
        np.concatenate([np.zeros(cells), -np.ones(2 * cells), [0.0]]),
        A_eq=margins,
        b_eq=np.zeros(levels),
        A_ub=limits,
        b_ub=np.zeros(limits.shape[0]),
        bounds=[
            *[(0, None)] * cells,
            *[(0, 1)] * cells,
            *[(0, int(has_upper))] * cells,
            (0, None),
        ],
        method="highs",
    )
    none = np.zeros(cells, dtype=bool)
    if program.status != 0:
        return none, none
    at_low = program.x[cells : 2 * cells] < 0.5
    if not has_upper:
        return at_low, none
    return at_low, program.x[2 * cells : 3 * cells] < 0.5


def _incidence(problem: RakingProblem) -> Any:
    """Which cells have which level: (levels, cells), sparse."""
    from scipy import sparse

    first = [part.start for part in problem.blocks.slices]
    codes = problem.codes[problem.masses > 0] + np.array(first)
    cells = np.repeat(np.arange(len(codes)), codes.shape[1])
    return sparse.csr_array(
        (np.ones(codes.size), (codes.ravel(), cells)),
        shape=(len(problem.wanted), len(codes)),
    )
