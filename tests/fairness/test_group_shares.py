"""The closest group shares against a general convex solver and against a grid."""

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.fairness.fair_table import fair_table
from fairmaxent.fairness.wishes import Wanted
from oracle import closest, divergence


def closest_shares(data, rate):
    """The group shares of a fair table with a single outcome."""
    return fair_table(
        data[np.newaxis], Wanted(((1,),), (rate,), (None,), (), str), {}
    ).table[0]


def oracle_shares(data, rate):
    present = data > 0
    shares, floor = cp.Variable(present.sum()), cp.Variable()
    conditions = [shares >= floor, shares <= floor / rate, cp.sum(shares) == 1]
    result = np.zeros(data.shape)
    result[present] = closest(shares, data[present], conditions)
    return result


@pytest.mark.some(7)
@pytest.mark.parametrize("size", [2, 3, 5, 9])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8, 0.95, 1.0])
def test_closest_shares_against_cvxpy(size, rate):
    rng = np.random.default_rng(size)
    data = rng.dirichlet(np.full(size, 0.7))
    ours, theirs = closest_shares(data, rate), oracle_shares(data, rate)
    assert ours.sum() == pytest.approx(1.0, abs=1e-14)
    assert ours.min() >= rate * ours.max() * (1 - 1e-12)
    assert divergence(ours, data) == pytest.approx(divergence(theirs, data), abs=1e-9)
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_closest_shares_keeps_what_is_fair_and_leaves_out_what_is_empty():
    data = np.array([0.3, 0.0, 0.4, 0.3])
    np.testing.assert_allclose(closest_shares(data, 0.75), data, rtol=1e-14)
    np.testing.assert_allclose(closest_shares(data, 1.0), [1 / 3, 0, 1 / 3, 1 / 3])
    np.testing.assert_allclose(closest_shares(data, None), data, rtol=1e-14)


def test_no_shares_on_a_grid_are_closer():
    data = np.array([0.07, 0.28, 0.65])
    first, second = (
        axis.ravel() / 400 for axis in np.meshgrid(np.arange(1, 400), np.arange(1, 400))
    )
    grid = np.stack([first, second, 1 - first - second], axis=1)
    grid = grid[(grid.min(axis=1) > 0) & (grid.min(axis=1) >= 0.5 * grid.max(axis=1))]
    best = (grid * np.log(grid / data)).sum(axis=1).min()
    ours = divergence(closest_shares(data, 0.5), data)
    assert best - 1e-3 <= ours <= best + 1e-12
