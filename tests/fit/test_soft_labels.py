"""Tilting soft labels to a wanted mean, against general solvers."""

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.errors import InfeasibleError
from fairmaxent.fit import relabel
from fairmaxent.fit.relabel import tilt

TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
CASES = [(outcomes, groups) for outcomes in (2, 3, 5) for groups in (1, 2, 6)]


def random_problem(seed, outcomes, groups, *, profiles=80, spread=1.5):
    """Soft labels, masses, groups and wanted means."""
    rng = np.random.default_rng([seed, outcomes, groups])
    scores = spread * rng.normal(size=(profiles, outcomes))
    soft = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    group = np.arange(profiles) % groups
    return (
        soft,
        rng.gamma(1.0, size=profiles),
        group,
        rng.dirichlet(np.full(outcomes, 3.0), size=groups).T,
    )


def means(labels, mass, group, groups):
    """By group, with plain loops over what is given."""
    return np.column_stack(
        [
            (labels[group == g] * mass[group == g, None]).sum(0)
            / mass[group == g].sum()
            for g in range(groups)
        ]
    )


def divergence(labels, soft, mass):
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(labels > 0, labels * np.log(labels / soft), 0.0)
    return float(mass / mass.sum() @ terms.sum(axis=1))


def closest(soft, share, wanted):
    """The same program for a general solver: smallest KL with the mean."""
    labels = cp.Variable(soft.shape)
    conditions = [cp.sum(labels, axis=1) == 1, share @ labels == wanted]
    terms = cp.sum(cp.kl_div(labels, soft), axis=1)
    cp.Problem(cp.Minimize(share @ terms), conditions).solve(solver="CLARABEL", **TIGHT)
    return labels.value


@pytest.mark.some(2)
@pytest.mark.parametrize(("outcomes", "groups"), CASES)
def test_a_tilt_has_the_wanted_mean_and_keeps_odds_ratios(outcomes, groups):
    for seed in range(10):
        soft, mass, group, wanted = random_problem(seed, outcomes, groups)
        labels = tilt(soft, mass, group, wanted)
        np.testing.assert_allclose(
            means(labels, mass, group, groups), wanted, rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-12)
        change = np.log(labels / soft)
        change -= change[:, :1]
        for g in range(groups):  # μ(y, z): the same for every profile of a group
            np.testing.assert_allclose(
                change[group == g],
                change[group == g][[0]].repeat((group == g).sum(), 0),
            )


@pytest.mark.parametrize("outcomes", [2, 3, 4])
def test_a_tilt_is_the_closest_of_all_labels_with_that_mean(outcomes):
    soft, mass, group, wanted = random_problem(1, outcomes, 1, profiles=15)
    labels = tilt(soft, mass, group, wanted)
    other = closest(soft, mass / mass.sum(), wanted[:, 0])
    np.testing.assert_allclose(labels, other, atol=1e-4)
    assert (
        divergence(labels, soft, mass)
        <= divergence(np.maximum(other, 0), soft, mass) + 1e-8
    )


@pytest.mark.parametrize("outcomes", [2, 4])
def test_an_outcome_wanted_at_zero_goes_and_the_others_keep_their_odds(outcomes):
    soft, mass, group, wanted = random_problem(2, outcomes, 2)
    wanted[0, 0] = 0.0
    wanted /= wanted.sum(axis=0)
    labels = tilt(soft, mass, group, wanted)
    assert (labels[group == 0, 0] == 0).all()
    assert (labels[group == 1] > 0).all()
    np.testing.assert_allclose(means(labels, mass, group, 2), wanted, atol=1e-10)


def test_who_counts_nothing_moves_nothing():
    soft, mass, group, wanted = random_problem(3, 3, 3)
    heavy, weightless = mass.copy(), np.arange(len(mass)) % 5 == 0
    heavy[weightless] = 0.0
    labels = tilt(soft, heavy, group, wanted)
    np.testing.assert_allclose(means(labels, heavy, group, 3), wanted, atol=1e-10)
    np.testing.assert_array_equal(labels[weightless], soft[weightless])
    alone = tilt(soft[~weightless], heavy[~weightless], group[~weightless], wanted)
    np.testing.assert_allclose(labels[~weightless], alone, atol=1e-12)
    wanted[:, 1] = 0.0  # a group that nothing is wanted of stays
    np.testing.assert_array_equal(
        tilt(soft, mass, group, wanted)[group == 1], soft[group == 1]
    )


@pytest.mark.parametrize("wish", [1e-5, 0.01, 0.5, 0.99])
def test_labels_that_are_all_but_certain(wish):
    rng = np.random.default_rng(4)
    sure = np.where(rng.random(60) < 0.3, 1 - 1e-6, 1e-6)
    soft = np.column_stack([1 - sure, sure])
    mass, group, wanted = (
        rng.gamma(1.0, size=60),
        np.zeros(60, dtype=int),
        np.array([[1 - wish], [wish]]),
    )
    labels = tilt(soft, mass, group, wanted)
    np.testing.assert_allclose(
        means(labels, mass, group, 1), wanted, rtol=0, atol=1e-10
    )
    assert (labels[sure > 0.5, 1].min() >= labels[sure < 0.5, 1]).all()


def test_what_nobody_may_have_cannot_be_wanted():
    soft = np.tile([0.5, 0.5, 0.0], (20, 1))
    with pytest.raises(
        InfeasibleError,
        match=r"0\.2 away; lower statistical_rate$",
    ):
        tilt(
            soft, np.ones(20), np.zeros(20, dtype=int), np.array([[0.4], [0.4], [0.2]])
        )


@pytest.mark.parametrize("outcomes", [2, 3, 4])
def test_the_dual_has_the_derivatives_it_says(outcomes):
    soft, mass, _, wanted = random_problem(5, outcomes, 1, profiles=25)
    dual = relabel._Means(np.log(soft), mass / mass.sum(), wanted[:, 0])
    offsets, step = (
        np.random.default_rng(5).normal(size=outcomes),
        1e-5 * np.eye(outcomes),
    )
    point = dual.at(offsets)
    for axis in range(outcomes):
        up, down = dual.at(offsets + step[axis]), dual.at(offsets - step[axis])
        assert (up.value - down.value) / 2e-5 == pytest.approx(
            point.gradient[axis], abs=1e-8
        )
        np.testing.assert_allclose(
            (up.gradient - down.gradient) / 2e-5, point.curvature[axis], atol=1e-7
        )
