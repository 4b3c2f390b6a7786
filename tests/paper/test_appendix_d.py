"""Appendix D of the paper, the full algorithm: one test per numbered statement, named
after it.
"""

from dataclasses import dataclass, field
from math import e

import numpy as np
import pytest

from fairmaxent.maxent.dual import Dual
from fairmaxent.solvers import Newton
from reproduction.box_newton import BoxNewton
from tables import times
from transcribed import (
    iterative_scaling,
    radius_and_limit,
    random_problem,
    tilt,
    transcribed_algorithm_5,
)


@dataclass(frozen=True)
class Recorded(Dual):
    """A dual that remembers where a solver evaluated it."""

    iterates: list = field(default_factory=list)

    def at(self, multipliers):
        self.iterates.append(multipliers)
        return super().at(multipliers)

    @classmethod
    def of(cls, dual: Dual):
        return cls(dual.prior, dual.features, dual.target)


def test_theorem_d_1_box_newton_reaches_the_optimum_within_its_iterations():
    """A 3ε-approximate minimiser within T iterations, none of them leaving its box of
    1/(8n·e²).
    """
    epsilon = 1e-3
    for seed in range(times(12)):
        problem = random_problem(2000 + seed, d=2 + seed % 2, margin=0.25)
        n = len(problem.theta)
        R, T = radius_and_limit(n, problem.C, epsilon)
        dual = Recorded.of(problem.dual)
        solution = BoxNewton(C=problem.C, epsilon=epsilon).solve(dual)
        p = iterative_scaling(problem.q, n, problem.theta)
        assert solution.value <= -(p @ np.log(p / problem.q)) + 3 * epsilon
        np.testing.assert_allclose(
            solution.multipliers, Newton().solve(problem.dual).multipliers, atol=1e-7
        )
        assert solution.iterations <= T
        assert (
            np.abs(np.diff(dual.iterates, axis=0)).max() <= 1 / (8 * n * e**2) + 1e-15
        )
        assert np.abs(dual.iterates).max() <= R


def test_algorithm_5_takes_the_same_steps_as_its_pseudocode():
    for seed in range(times(4)):
        problem = random_problem(3000 + seed, d=3, margin=0.35)
        dual = Recorded.of(problem.dual)
        BoxNewton(C=problem.C, epsilon=1e-3).solve(dual)
        theirs = list(transcribed_algorithm_5(problem, 1e-3, len(dual.iterates) - 1))
        np.testing.assert_allclose(
            problem.signs * np.array(dual.iterates), theirs, atol=1e-9
        )


def test_lemma_d_2_the_dual_is_4n_second_order_robust():
    """|D³h[y,y,y]| ≤ 4n·D²h[y,y] for ‖y‖_∞ ≤ 1; D³ by enumeration, and as the slope
    of the library's Hessian.
    """
    largest = 0.0
    for seed in range(times(150)):
        problem = random_problem(seed)
        rng = np.random.default_rng([seed, 6])
        n = len(problem.theta)
        multipliers = rng.normal(scale=rng.choice([0.5, 3.0]), size=n)
        y = rng.uniform(-1, 1, n) if seed % 2 else rng.choice([-1.0, 1.0], n)
        p, along = tilt(problem.q, problem.alphas, multipliers), problem.alphas @ y
        third = p @ (along - p @ along) ** 3
        second = y @ problem.at(multipliers)[2] @ y
        step = 1e-4
        ahead, behind = (
            problem.at(multipliers + sign * step * y)[2] for sign in (1, -1)
        )
        assert y @ (ahead - behind) @ y / (2 * step) == pytest.approx(third, abs=1e-6)
        assert abs(third) <= 4 * n * second
        largest = max(largest, abs(third) / second)
    assert largest > 1  # the slope is of the size that the lemma speaks about


def test_claim_d_3_the_third_moment_is_bounded_by_the_variance():
    """|E[X³] − E[X²]E[X]| ≤ 2r(E[X²] − E[X]²) for |X| ≤ r; X = c + ⟨y, α⟩ under p_λ
    comes close to equality.
    """
    sharpest = 0.0
    for seed in range(times(150)):
        problem = random_problem(seed)
        rng = np.random.default_rng([seed, 7])
        multipliers, y = rng.normal(scale=2, size=(2, len(problem.theta)))
        shift = float(rng.choice([0.0, 100.0]))
        x = shift + problem.alphas @ y
        _, gradient, hessian = problem.at(multipliers)
        mean, variance = shift + (gradient + problem.theta) @ y, y @ hessian @ y
        third = tilt(problem.q, problem.alphas, multipliers) @ x**3
        ratio = abs(third - (variance + mean**2) * mean) / (
            2 * np.abs(x).max() * variance
        )
        assert ratio <= 1 + 1e-6
        sharpest = max(sharpest, ratio)
    assert sharpest > 0.95
