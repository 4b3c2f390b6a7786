"""Linear programs about a raking problem: whether weights that meet the margins exist, and which cells they use.

They are solved only if Newton's method fails, because they take far longer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.raking.problem import RakingProblem

REACHED = 2e-9
"""Sum of the misses, as shares of the total, below which margins are met: the program solves no more precisely."""
_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def smallest_miss(problem: RakingProblem, levels: NDArray[np.intp] | None = None) -> tuple[float, Reals]:
    """Minimise Σ |achieved − wanted| over the levels, all weights within bounds and of the right total.

    Returns the minimum and the price of each level: if the minimum is positive, the levels with a price contradict each
    other. ``levels`` are those that count, all by default.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, vstack

    sums, masses = _incidence(problem), problem.masses[problem.masses > 0]
    counted = np.arange(len(problem.wanted)) if levels is None else levels
    unit = eye_array(len(counted), format="csr")
    every = hstack([sums[counted], unit, -unit], format="csr")
    total = np.concatenate([np.ones(len(masses)), np.zeros(2 * len(counted))])[None, :]
    program = linprog(
        np.concatenate([np.zeros(len(masses)), np.ones(2 * len(counted))]),
        A_eq=vstack([every, total], format="csr"),
        b_eq=np.append(problem.wanted[counted], 1.0),
        bounds=[*_ranges(problem, masses), *[(0, None)] * (2 * len(counted))],
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
    from scipy.sparse import csr_array, diags_array, eye_array, hstack, vstack

    sums, masses = _incidence(problem), problem.masses[problem.masses > 0]
    bounds, cells = problem.bounds, len(masses)
    above = math.isfinite(bounds.high)
    unit, zero = eye_array(cells, format="csr"), csr_array((cells, cells))
    meet = hstack([sums, csr_array((sums.shape[0], 2 * cells)), -csr_array(problem.wanted[:, None])], format="csr")
    low = hstack([-unit, unit, zero, csr_array(bounds.low * masses[:, None])], format="csr")
    limits = [low]
    if above:
        limits.append(hstack([unit, zero, unit, -csr_array(bounds.high * masses[:, None])], format="csr"))
    scaled = vstack(limits, format="csr") @ diags_array(np.ones(3 * cells + 1))
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
    at_low = program.x[cells : 2 * cells] < 0.5
    at_high = program.x[2 * cells : 3 * cells] < 0.5 if above else none
    return at_low, at_high


def _incidence(problem: RakingProblem) -> Any:
    """Which cells have which level: (levels, cells), sparse."""
    from scipy.sparse import csr_array

    kept = problem.masses > 0
    codes = problem.codes[kept] + np.array([part.start for part in problem.blocks.slices])
    cells = np.repeat(np.arange(len(codes)), codes.shape[1])
    return csr_array((np.ones(codes.size), (codes.ravel(), cells)), shape=(len(problem.wanted), len(codes)))


def _ranges(problem: RakingProblem, masses: Reals) -> list[tuple[float, float | None]]:
    low, high = problem.bounds.low, problem.bounds.high
    return [(low * mass, high * mass if math.isfinite(high) else None) for mass in masses]
