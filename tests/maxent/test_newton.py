"""Newton: the last step needs no Hessian if the one before it will do, and the solution
is as good.
"""

import numpy as np
import pytest

from fairmaxent.maxent.dual import Dual, Point
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.search import SearchPoint, backtrack, conjugate_gradients
from fairmaxent.solvers import Newton, Status
from oracle import random_blocks, random_prior


def random_dual(seed: int, strength: float) -> Dual:
    """A dual whose target a real tilt of the prior has."""
    rng = np.random.default_rng(seed)
    blocks = random_blocks(rng)
    prior = random_prior(rng, blocks, "tree mixture")
    levels = prior.tilt(rng.normal(0, strength, blocks.width)).levels
    features = cell_features(blocks, [None] * len(blocks.sizes), levels)
    return Dual(prior, features, features.mean(levels))


@pytest.mark.some(1)
@pytest.mark.parametrize("strength", [0.01, 0.1, 1.0])
def test_at_most_the_last_step_reuses_a_hessian(monkeypatch, strength):
    hessian, taken, saved = Point.hessian, [], 0
    monkeypatch.setattr(
        Point, "hessian", lambda point: (taken.append(point), hessian(point))[1]
    )
    for seed in range(20):
        taken.clear()
        dual = random_dual(seed, strength)
        solution = Newton().solve(dual)
        assert solution.status is Status.CONVERGED
        assert dual.at(solution.multipliers).residual == solution.residual <= 1e-9
        assert 0 <= solution.iterations - len(taken) <= 1
        saved += solution.iterations - len(taken)
    assert saved > 0


def test_a_step_that_did_not_finish_is_followed_by_one_with_its_own_hessian():
    """With a tolerance that rounding forbids, old Hessians are not used again and
    again.
    """
    dual = random_dual(3, 1.0)
    solution = Newton(tolerance=1e-300).solve(dual)
    assert solution.status is Status.CONVERGED
    assert solution.residual <= 1e-12


@pytest.mark.parametrize("length", [1.0, 0.5])
@pytest.mark.parametrize(("fall", "taken"), [(2e-4, 0.5), (8e-4, 1.0)])
def test_a_step_that_hardly_lowers_the_dual_is_halved_and_a_short_one_is_doubled(
    length, fall, taken
):
    """From 1 to nearly −1, x² falls by next to nothing where the slope promises 4;
    Armijo asks for 1e-4 of that.
    """

    def square(x):
        return SearchPoint(x, float(x @ x), 2 * x)

    def walk(step):
        return backtrack(
            square, square(np.ones(1)), np.array([step])
        ).multipliers.item()

    step = -(2 - fall / 2)
    assert walk(step / length) == pytest.approx(1 + taken * step, abs=1e-12)
    assert walk(-0.5) == 0.0


def test_conjugate_gradients_need_no_more_steps_than_there_are_unknowns():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    gradient = rng.normal(size=6)
    direction = conjugate_gradients(
        lambda vector: hessian @ vector,
        gradient,
        lambda residual: residual / np.diag(hessian),
        enough=0.0,
        most=6,
    )
    np.testing.assert_allclose(
        direction, -np.linalg.solve(hessian, gradient), rtol=1e-8
    )
