"""Conflicts: the smallest set of margins that no weights meet together, and why.

The linear programs that tell are solved only if Newton's method fails, because they
take far longer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice

import numpy as np

from fairmaxent.data.table import Axes, tally
from fairmaxent.errors import ConflictError, Option, Remark, first_of
from fairmaxent.maxent.bounded import Bounds
from fairmaxent.maxent.reach import (
    REACHED,
    conflicting,
    irreducible,
    smallest_miss,
)
from fairmaxent.raking.problem import RakingProblem

# Sets of margins to check before one is called the smallest; a set from which none can
# be left out is taken otherwise.
_MOST_SETS = 2_000
_SHOWN = 6  # levels that a message lists
# margins that contradict each other, alone, and the levels behind it
Conflict = tuple[RakingProblem, Axes]


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
    return smaller, conflicting(smaller.conditions)


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
    without_others = irreducible(every, partial(_can_be_met, problem))
    larger = (
        chosen
        for size in range(3, len(without_others))
        for chosen in combinations(every, size)
    )
    for chosen in islice(larger, _MOST_SETS):
        if not _can_be_met(problem, chosen):
            return chosen
    return without_others


def _can_be_met(problem: RakingProblem, margins: Sequence[int]) -> bool:
    return smallest_miss(problem.restricted(margins).conditions).is_zero


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
    if problem.bounds.given and smallest_miss(unbounded.conditions).is_zero:
        within = f" if factors are {problem.bounds.text}"
        reason = "The bounds do not allow all of these shares"
        widen = ("widen ", Option("bounds"), ", ")

    miss = smallest_miss(problem.conditions).total / 2
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
