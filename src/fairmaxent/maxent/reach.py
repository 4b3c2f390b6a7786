"""What weights of rows can reach, by linear programs: misses, conflicts and faces.

They are solved only where the search for multipliers fails, because they take far
longer.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from fairmaxent.data.table import Axes, Mask, Reals

# Sum of the misses below which conditions are met: linear programs are solved no more
# precisely.
REACHED = 2e-9
_LEAST_PRICE = 1e-9  # of a condition that has a part in a conflict
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Conditions:
    """Σ φ·w = b for weights w that add up to 1, each within bounds of its own."""

    averages: Any  # φ: (conditions, rows), sparse
    wanted: Reals  # b
    least: Reals  # that each row may weigh
    most: Reals  # ∞ for all rows: no limit

    def only(self, chosen: Axes) -> "Conditions":
        """Some of the conditions."""
        kept = np.array(chosen, dtype=np.intp)
        return replace(self, averages=self.averages[kept], wanted=self.wanted[kept])


@dataclass(frozen=True, eq=False)
class Miss:
    """The smallest Σ |b − Σ φ·w|, and where it is."""

    total: float  # ∞: even weights that add up to 1 are out of reach
    short: Reals  # b − Σ φ·w of each condition
    # how the total rises with b: if it is positive, the conditions that have a price
    # contradict each other (Farkas)
    prices: Reals

    @property
    def is_zero(self) -> bool:
        """Whether all conditions are met."""
        return self.total <= REACHED


def smallest_miss(conditions: Conditions) -> Miss:
    """Come as close to the conditions as weights can."""
    from scipy import optimize, sparse

    # The variables: the weight of each row, then by how much each condition is short of
    # what is wanted, then by how much it is beyond.
    count, rows = conditions.averages.shape
    unit = sparse.eye_array(count, format="csr")
    total = sparse.csr_array(np.ones((1, rows)))
    misses = 2 * count
    program = optimize.linprog(
        np.repeat([0.0, 1.0], [rows, misses]),
        A_eq=sparse.block_array(
            [[conditions.averages, unit, -unit], [total, None, None]], format="csr"
        ),
        b_eq=np.append(conditions.wanted, 1.0),
        bounds=np.column_stack(
            [
                np.append(conditions.least, np.zeros(misses)),
                np.append(conditions.most, np.full(misses, inf)),
            ]
        ),
        method="highs",
        options=_TIGHT,
    )
    if program.status != 0:
        return Miss(inf, np.zeros(count), np.ones(count))
    short = program.x[rows : rows + count] - program.x[rows + count :]
    prices = np.asarray(program.eqlin.marginals[:count])
    return Miss(float(program.fun), short, prices)


def conflicting(conditions: Conditions) -> Axes:
    """Which conditions cannot be met together, although any of them could be left out.

    Not all conditions can be met.
    """

    def can_be_met(chosen: Axes) -> bool:
        return smallest_miss(conditions.only(chosen)).is_zero

    prices = smallest_miss(conditions).prices
    priced = tuple(np.flatnonzero(np.abs(prices) > _LEAST_PRICE).tolist())
    if can_be_met(priced):  # the prices were too imprecise to rely on
        priced = tuple(range(len(prices)))
    return irreducible(priced, can_be_met)


def irreducible(parts: Axes, can_be_met: Callable[[Axes], bool]) -> Axes:
    """Leave out parts, the last ones first, as long as the rest cannot be met."""
    result = parts
    for part in reversed(parts):
        rest = tuple(other for other in result if other != part)
        if rest and not can_be_met(rest):
            result = rest
    return result


def face(conditions: Conditions) -> tuple[Mask, Mask]:
    """Which rows every solution has at their least, and at their most weight.

    The others are free on the minimal face of what is wanted. One linear program finds
    weights that are inside the bounds wherever that is possible: they are scaled up
    freely (by κ), and the distance of each from its bounds counts only up to 1.

    If there is no solution, all rows are at their least.
    """
    from scipy import optimize, sparse

    # The variables: what counts of each row's distance from its least weight and what
    # is left of it, the same two for its most weight if there is one, and κ.
    rows = len(conditions.least)
    sums = sparse.vstack([conditions.averages, np.ones((1, rows))], format="csr")
    wanted = np.append(conditions.wanted, 1.0)
    lacking = sparse.csr_array((wanted - sums @ conditions.least)[:, None])
    equations = [[sums, sums, -lacking]]
    counts = [1.0, 0.0]
    has_most = bool(np.isfinite(conditions.most).all())
    if has_most:
        unit = sparse.eye_array(rows, format="csr")
        width = sparse.csr_array((conditions.most - conditions.least)[:, None])
        equations = [
            [sums, sums, None, None, -lacking],
            [unit, unit, unit, unit, -width],
        ]
        counts = counts * 2
    gain = np.append(np.repeat(counts, rows), 0.0)
    matrix = sparse.block_array(equations, format="csr")
    program = optimize.linprog(
        -gain,
        A_eq=matrix,
        b_eq=np.zeros(matrix.shape[0]),
        bounds=np.column_stack([np.zeros_like(gain), np.where(gain > 0, 1.0, inf)]),
        method="highs",
    )
    at_least = np.ones(rows, dtype=bool)
    at_most = np.zeros(rows, dtype=bool)
    if program.status == 0:
        at_least = program.x[:rows] <= 0.5
        if has_most:
            at_most = program.x[2 * rows : 3 * rows] <= 0.5
    return at_least, at_most
