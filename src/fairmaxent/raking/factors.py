"""Factors: by what the weights of each cell change, found by Newton's method, or else with the help of programs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.raking.conflict import conflict_error, find_conflict
from fairmaxent.raking.dual import RakingDual
from fairmaxent.raking.problem import RakingProblem, expanded
from fairmaxent.raking.programs import forced_cells
from fairmaxent.raking.relaxation import solve_relaxed
from fairmaxent.raking.solving import check_solved, solve


@dataclass(frozen=True, eq=False)
class Factors:
    """The factor of each cell of the survey, and the multipliers to start from for a similar survey."""

    values: Reals
    multipliers: Reals | None
    missed: bool = False  # whether margins contradict each other, so that some are missed


def find_factors(problem: RakingProblem, start: Reals | None = None) -> Factors:
    """Find the factors of the cells, or say which margins contradict each other."""
    exact = replace(problem, relaxed=frozenset())
    if _every_level_has_cells(exact):
        solution = solve(exact.dual(), start)
        if solution.converged:
            return Factors(expanded(solution.point.factors, exact.used), solution.point.multipliers)
    conflict = find_conflict(exact)
    if conflict is None:
        return Factors(_on_the_boundary(exact), None)
    if not problem.relaxed:
        raise conflict_error(exact, conflict)
    kept = [number for number in range(len(problem.margins)) if number not in problem.relaxed]
    conflict = find_conflict(exact.restricted(kept)) if kept else None
    if conflict is not None:
        raise conflict_error(exact.restricted(kept), conflict)
    solution = solve_relaxed(problem)
    return Factors(expanded(solution.point.factors, problem.used), None, missed=True)


def _every_level_has_cells(problem: RakingProblem) -> bool:
    """Whether Newton's method has a chance: each wanted level has a cell that may get weight."""
    reached = np.concatenate(problem.level_sums(np.where(problem.used, problem.masses, 0.0)))
    return bool(np.all((reached > 0) | (problem.wanted <= 0)))


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
        factors[free] = check_solved(solve(rest)).factors
    return expanded(factors, kept)
