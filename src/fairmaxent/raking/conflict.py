"""Conflicts: margins that no weights meet together, down to the smallest set of them and the levels behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from fairmaxent.data.table import tally
from fairmaxent.errors import ConflictError, Option
from fairmaxent.raking.problem import RakingProblem
from fairmaxent.raking.programs import REACHED, smallest_miss

# Sets of margins to check before one is called the smallest; a set from which none can be left out is taken otherwise.
_MOST_SETS = 2_000
_SHOWN = 6  # levels that a message lists


@dataclass(frozen=True)
class Conflict:
    """Margins that contradict each other, and the levels that do, by position among those of all margins."""

    margins: tuple[int, ...]
    levels: tuple[int, ...]


def find_conflict(problem: RakingProblem) -> Conflict | None:
    """Find the smallest set of margins that no weights meet together; None if all can be met."""
    for number in range(len(problem.margins)):
        level = _out_of_reach(problem, number)
        if level is not None:
            return Conflict((number,), (problem.blocks.slices[number].start + level,))
    smallest = _smallest(problem)
    return None if smallest is None else Conflict(smallest, _contradicting_levels(problem, smallest))


def _out_of_reach(problem: RakingProblem, number: int) -> int | None:
    """The level of a margin that is farthest beyond what the bounds allow by themselves; None if all are within."""
    margin, bounds = problem.margins[number], problem.bounds
    mass = tally(margin.cells, problem.masses, len(margin.wanted))
    most = np.where(mass > 0, bounds.high, 0.0) * np.where(mass > 0, mass, 1.0)
    beyond = np.maximum(margin.wanted - most, bounds.low * mass - margin.wanted)
    worst = int(np.argmax(beyond))
    return worst if beyond[worst] > REACHED else None


def _can_be_met(problem: RakingProblem, margins: Sequence[int]) -> bool:
    return smallest_miss(problem.restricted(margins))[0] <= REACHED


def _irreducible(problem: RakingProblem, margins: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out margins as long as the rest cannot be met."""
    for number in reversed(margins):
        rest = tuple(other for other in margins if other != number)
        if rest and not _can_be_met(problem, rest):
            margins = rest
    return margins


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
    irreducible = _irreducible(problem, every)
    larger = (chosen for size in range(3, len(irreducible)) for chosen in combinations(every, size))
    return next((chosen for chosen in islice(larger, _MOST_SETS) if not _can_be_met(problem, chosen)), irreducible)


def _contradicting_levels(problem: RakingProblem, margins: Sequence[int]) -> tuple[int, ...]:
    """Levels of these margins that cannot be met together although any of them could be left out."""
    smaller = problem.restricted(margins)
    _, prices = smallest_miss(smaller)
    levels = np.flatnonzero(np.abs(prices) > 1e-9)
    if smallest_miss(smaller, levels)[0] <= REACHED:  # the prices were too imprecise to rely on
        levels = np.arange(len(smaller.wanted))
    for level in levels[::-1]:
        rest = levels[levels != level]
        if len(rest) and smallest_miss(smaller, rest)[0] > REACHED:
            levels = rest
    starts = [problem.blocks.slices[number].start for number in margins]
    parts = np.searchsorted([part.stop for part in smaller.blocks.slices], levels, side="right")
    return tuple(
        starts[part] + int(level) - smaller.blocks.slices[part].start for part, level in zip(parts, levels, strict=True)
    )


# ---------------------------------------------------------------- in words


def conflict_error(problem: RakingProblem, conflict: Conflict) -> ConflictError:
    """Say which margins contradict each other, where, and what to do."""
    names = tuple(problem.margins[number].columns for number in conflict.margins)
    levels = tuple(problem.describe(level) for level in conflict.levels)
    parts = _alone(problem, conflict) if len(conflict.margins) == 1 else _together(problem, conflict)
    return ConflictError(*parts, margins=names, levels=levels)


def _alone(problem: RakingProblem, conflict: Conflict) -> tuple[object, ...]:
    (number,), (level,) = conflict.margins, conflict.levels
    margin, position = problem.margins[number], level - problem.blocks.slices[number].start
    wanted = float(margin.wanted[position])
    mass = float(problem.masses[margin.cells == position].sum())
    if mass == 0:
        return (
            f"{problem.describe(level)} should have a share of {wanted:.4g}, but no row with weight has it. Merge it "
            "with another level, or use ",
            Option("relax", "all"),
            " to come as close as possible.",
        )
    above = wanted > mass
    limit = f"the largest allowed is {problem.bounds.high:g}" if above else f"the least is {problem.bounds.low:g}"
    return (
        f"{problem.describe(level)} has a share of {mass:.4g} and should have {wanted:.4g}, a factor of "
        f"{wanted / mass:.4g}, and {limit} (",
        Option("bounds"),
        "). Widen the bounds, or use ",
        Option("relax", "all"),
        " to come as close as possible.",
    )


def _together(problem: RakingProblem, conflict: Conflict) -> tuple[object, ...]:
    names = " and ".join(problem.margins[number].name for number in conflict.margins)
    shares = [f"{problem.describe(level)} ({problem.wanted[level]:.4g})" for level in conflict.levels[:_SHOWN]]
    more = f" and {len(conflict.levels) - _SHOWN} more" if len(conflict.levels) > _SHOWN else ""
    reason = (
        "The bounds do not allow all of these shares" if problem.bounds.given else "These shares contradict each other"
    )
    within = f" if factors are {problem.bounds.text}" if problem.bounds.given else ""
    miss = smallest_miss(problem.restricted(conflict.margins))[0] / 2
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
