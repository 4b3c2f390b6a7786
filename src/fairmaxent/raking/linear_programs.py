"""Linear programs: whether weights that meet the margins exist, and what is forced.

They are solved only if Newton's method fails, because they take far longer.
"""

import math
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals
from fairmaxent.raking.problem import RakingProblem

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


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
