"""Relaxation: if margins contradict each other, the weights that come closest.

Closest means that the squared errors of the shares that may be missed have the smallest sum; among weights that are
equally close, those that change least are taken. Adding |λ|²/2ρ to the dual lets a share be missed by λ/ρ, at a cost of
ρ/2 times its square. So the closest weights are the limit for ρ → ∞, approached step by step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.raking.dual import RakingDual
from fairmaxent.raking.problem import RakingProblem
from fairmaxent.raking.solving import RakingSolution, solve

_PRICES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)  # ρ


def solve_relaxed(problem: RakingProblem, start: Reals | None = None) -> RakingSolution:
    """Meet the margins that must be met, and come as close as possible to the others."""
    dual = _with_total(problem.dual())
    solution = None
    for price in _PRICES:
        solution = solve(replace(dual, slack=_slack(problem, dual, price)), start)
        start = solution.point.multipliers
    assert solution is not None
    return solution


def _with_total(dual: RakingDual) -> RakingDual:
    """Add the total as a margin of one level, because the weights must add up to it even if all margins are missed."""
    sizes = (*dual.blocks.levels, 1)
    return replace(
        dual,
        blocks=Blocks(sizes, tuple((number,) for number in range(len(sizes)))),
        codes=np.asfortranarray(np.column_stack([dual.codes, np.zeros(len(dual.codes), dtype=dual.codes.dtype)])),
        wanted=np.append(dual.wanted, 1.0),
    )


def _slack(problem: RakingProblem, dual: RakingDual, price: float) -> Reals:
    slack = np.zeros(dual.size)
    for number in problem.relaxed:
        slack[problem.blocks.slices[number]] = 1 / price
    return slack
