"""Tilting soft labels to a wanted mean, and levelling the decisions they lead to, against general solvers."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from fairmaxent.errors import InfeasibleError
from fairmaxent.relabelling import soft_labels as relabelling
from fairmaxent.relabelling.soft_labels import correction, level, shift, tilt, tilt_offsets

TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
CASES = [(outcomes, groups) for outcomes in (2, 3, 5) for groups in (1, 2, 6)]


def random_problem(seed, outcomes, groups, *, profiles=80, spread=1.5):
    """Soft labels, masses, groups and wanted means."""
    rng = np.random.default_rng([seed, outcomes, groups])
    scores = spread * rng.normal(size=(profiles, outcomes))
    soft = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    group = np.arange(profiles) % groups
    return soft, rng.gamma(1.0, size=profiles), group, rng.dirichlet(np.full(outcomes, 3.0), size=groups).T


def means(labels, mass, group, groups):
    """By group, with plain loops over what is given."""
    return np.column_stack(
        [(labels[group == g] * mass[group == g, None]).sum(0) / mass[group == g].sum() for g in range(groups)]
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


# ---------------------------------------------------------------- tilt
@pytest.mark.parametrize(("outcomes", "groups"), CASES)
def test_a_tilt_has_the_wanted_mean_and_keeps_odds_ratios(outcomes, groups):
    for seed in range(10):
        soft, mass, group, wanted = random_problem(seed, outcomes, groups)
        labels = tilt(soft, mass, group, wanted)
        np.testing.assert_allclose(means(labels, mass, group, groups), wanted, rtol=0, atol=1e-10)
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-12)
        change = np.log(labels / soft)
        change -= change[:, :1]
        for g in range(groups):  # μ(y, z): the same for every profile of a group
            np.testing.assert_allclose(change[group == g], change[group == g][[0]].repeat((group == g).sum(), 0))


@pytest.mark.parametrize("outcomes", [2, 3, 4])
def test_a_tilt_is_the_closest_of_all_labels_with_that_mean(outcomes):
    soft, mass, group, wanted = random_problem(1, outcomes, 1, profiles=15)
    labels = tilt(soft, mass, group, wanted)
    other = closest(soft, mass / mass.sum(), wanted[:, 0])
    np.testing.assert_allclose(labels, other, atol=1e-4)
    assert divergence(labels, soft, mass) <= divergence(np.maximum(other, 0), soft, mass) + 1e-8


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
    np.testing.assert_array_equal(tilt(soft, mass, group, wanted)[group == 1], soft[group == 1])


@pytest.mark.parametrize("wish", [1e-5, 0.01, 0.5, 0.99])
def test_labels_that_are_all_but_certain(wish):
    rng = np.random.default_rng(4)
    sure = np.where(rng.random(60) < 0.3, 1 - 1e-6, 1e-6)
    soft = np.column_stack([1 - sure, sure])
    mass, group, wanted = rng.gamma(1.0, size=60), np.zeros(60, dtype=int), np.array([[1 - wish], [wish]])
    labels = tilt(soft, mass, group, wanted)
    np.testing.assert_allclose(means(labels, mass, group, 1), wanted, rtol=0, atol=1e-10)
    assert (labels[sure > 0.5, 1].min() >= labels[sure < 0.5, 1]).all()


def test_what_nobody_may_have_cannot_be_wanted():
    soft = np.tile([0.5, 0.5, 0.0], (20, 1))
    with pytest.raises(InfeasibleError, match=r"0\.2 away.*Remove a rule from forbid, or lower statistical_rate\.$"):
        tilt(soft, np.ones(20), np.zeros(20, dtype=int), np.array([[0.4], [0.4], [0.2]]))


@pytest.mark.parametrize("outcomes", [2, 3, 4])
def test_the_dual_has_the_derivatives_it_says(outcomes):
    soft, mass, _, wanted = random_problem(5, outcomes, 1, profiles=25)
    dual = relabelling._Means(np.log(soft), mass / mass.sum(), wanted[:, 0])
    offsets, step = np.random.default_rng(5).normal(size=outcomes), 1e-5 * np.eye(outcomes)
    point = dual.at(offsets)
    for axis in range(outcomes):
        up, down = dual.at(offsets + step[axis]), dual.at(offsets - step[axis])
        assert (up.value - down.value) / 2e-5 == pytest.approx(point.gradient[axis], abs=1e-8)
        np.testing.assert_allclose((up.gradient - down.gradient) / 2e-5, point.curvature[axis], atol=1e-7)


# ---------------------------------------------------------------- level
def match_decisions(soft, mass, group, wanted, shares, *, handicap=None):
    """Offsets that put the wanted shares of the labels themselves across the threshold, and then the means."""
    handicap = np.zeros(soft.shape[1]) if handicap is None else handicap
    offsets = np.zeros(wanted.T.shape)
    for g in np.unique(group):
        with np.errstate(divide="ignore"):
            scores = np.log(soft[group == g]) - handicap
        offsets[g] = correction(scores, mass[group == g] / mass[group == g].sum(), shares[:, g])
    return level(soft, mass, group, wanted, offsets, handicap)


def decided_shares(labels, mass, group, groups):
    with np.errstate(divide="ignore"):
        return means(np.eye(labels.shape[1])[np.argmax(np.log(labels), axis=1)], mass, group, groups)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("groups", [1, 3])
def test_two_outcomes_get_the_mean_and_nobody_overtakes_anybody(groups, threshold):
    handicap = np.array([0.0, np.log(threshold / (1 - threshold))])
    for seed in range(15):
        soft, mass, group, wanted = random_problem(seed, 2, groups)
        above = np.random.default_rng(seed).uniform(0.1, 0.9, groups)
        labels = match_decisions(soft, mass, group, wanted, np.stack([1 - above, above]), handicap=handicap)
        np.testing.assert_allclose(means(labels, mass, group, groups), wanted, rtol=0, atol=1e-8)
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-12)
        order = np.argsort(soft[:, 1])
        for g in range(groups):
            assert (np.diff(labels[order][group[order] == g, 1]) >= -1e-12).all()


def test_decisions_are_kept_where_a_slope_restores_the_mean():
    """Wanted: the mean that a slope between 2/3 and 1.5 gives; then the share above the threshold is the wanted one."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        soft, mass, group, _ = random_problem(seed, 2, 1)
        share, above = mass / mass.sum(), rng.uniform(0.2, 0.8)
        scores = np.log(soft) + correction(np.log(soft), share, np.array([1 - above, above]))
        mean = share @ (1 / (1 + np.exp(-rng.uniform(0.7, 1.45) * (scores[:, 1] - scores[:, 0]))))
        wanted, shares = (np.array([[1 - value], [value]]) for value in (mean, above))
        labels = match_decisions(soft, mass, group, wanted, shares)
        np.testing.assert_allclose(means(labels, mass, group, 1), wanted, atol=1e-8)
        assert abs(decided_shares(labels, mass, group, 1)[1, 0] - above) <= share.max()


def test_scores_are_only_moved_and_stretched_and_not_too_much():
    """Wanted: what a slope of 3 and a shift give. Log-odds stay a line in the model's, which is not as steep."""
    for seed in range(5):
        soft, mass, group, _ = random_problem(seed, 2, 1)
        odds = np.log(soft[:, 1] / soft[:, 0])
        made = 1 / (1 + np.exp(-3.0 * (odds - 1.0)))
        share = mass @ (made > 0.5) / mass.sum()
        mean = mass @ made / mass.sum()
        labels = match_decisions(soft, mass, group, np.array([[1 - mean], [mean]]), np.array([[1 - share], [share]]))
        found = np.log(labels[:, 1] / labels[:, 0])
        slope, start = np.polyfit(odds, found, 1)
        np.testing.assert_allclose(found, slope * odds + start, atol=1e-3)
        assert 1.2 < slope <= 1.5 + 1e-9


@pytest.mark.parametrize("outcomes", [3, 4])
def test_more_outcomes_get_the_mean_and_shares_as_near_as_an_assignment_allows(outcomes):
    """A linear program assigns profiles to outcomes with the wanted shares; it splits outcomes − 1 profiles at most.

    Ours splits none, so it may miss by these; what steep softmaxes leave undecided adds a little.
    """
    for seed in range(6):
        soft, mass, group, wanted = random_problem(seed, outcomes, 1, profiles=120)
        share = mass / mass.sum()
        natural = tilt(soft, mass, group, wanted)
        goal = 0.7 * decided_shares(natural, mass, group, 1)[:, 0] + 0.3 * wanted[:, 0]
        labels = match_decisions(soft, mass, group, wanted, goal[:, None])
        np.testing.assert_allclose(means(labels, mass, group, 1), wanted, rtol=0, atol=1e-8)
        offsets = correction(np.log(soft), share, goal)
        decisions = np.argmax(np.log(soft) + offsets, axis=1)
        shares = share @ np.eye(outcomes)[decisions]
        assert np.abs(shares - goal).max() <= (outcomes - 1) * share.max()
        program = linprog(
            -(np.log(soft) * share[:, None]).ravel(),
            A_eq=np.vstack([np.kron(np.eye(120), np.ones(outcomes)), np.kron(share, np.eye(outcomes))]),
            b_eq=np.append(np.ones(120), goal),
        )
        assigned = program.x.reshape(120, outcomes)
        split = share @ (assigned.max(axis=1) < 1 - 1e-6)
        assert share @ (np.argmax(assigned, axis=1) != decisions) <= split + 2 * share.max()


@pytest.mark.parametrize("decided", [0.0, 1.0])
def test_nobody_or_everybody_may_be_wanted(decided):
    for seed in range(5):
        soft, mass, _, _ = random_problem(seed, 2, 1)
        offsets = correction(np.log(soft), mass / mass.sum(), np.array([1 - decided, decided]))
        assert (np.argmax(np.log(soft) + offsets, axis=1) == decided).all()


def test_the_offsets_of_a_tilt_lead_back_to_it():
    soft, mass, group, wanted = random_problem(7, 3, 3)
    tilted = tilt(soft, mass, group, wanted)
    offsets = tilt_offsets(soft, mass, group, wanted)
    np.testing.assert_allclose(level(soft, mass, group, wanted, offsets, np.zeros(3)), tilted, atol=1e-7)
    lacking = np.where([[True], [True], [False]], wanted, 0.0)
    assert (tilt_offsets(soft, mass, group, lacking / lacking.sum(axis=0))[:, 2] == 0).all()


@pytest.mark.parametrize("outcomes", [2, 3])
def test_a_shift_keeps_the_mean_of_all_groups_together_and_nothing_else(outcomes):
    soft, mass, group, wanted = random_problem(8, outcomes, 3)
    offsets = np.random.default_rng(8).normal(size=(3, outcomes))
    labels = shift(soft, mass, group, wanted, offsets)
    overall = mass / mass.sum() @ wanted.T[group]
    np.testing.assert_allclose(mass / mass.sum() @ labels, overall, atol=1e-10)
    moved = np.log(labels / soft) - offsets[group]
    moved -= moved[:, :1]
    np.testing.assert_allclose(moved, moved[[0]].repeat(len(moved), 0), atol=1e-9)  # c(y), the same for everybody
    assert np.abs(means(labels, mass, group, 3) - wanted).max() > 0.05
    wanted[:, 1], mass[0] = 0.0, 0.0  # those that nothing is wanted of, or that have no weight, stay
    labels = shift(soft, mass, group, wanted, offsets)
    np.testing.assert_array_equal(labels[(group == 1) | (mass == 0)], soft[(group == 1) | (mass == 0)])


@pytest.mark.parametrize("barred", [0, 1])
def test_labels_that_are_forbidden_stay_at_zero(barred):
    rng = np.random.default_rng(11)
    soft, mass, group, _ = random_problem(11, 2, 1)
    forbidden = rng.random(len(soft)) < 0.2
    soft[forbidden, barred] = 0.0
    soft /= soft.sum(axis=1, keepdims=True)
    wanted = np.array([[0.5], [0.5]])
    for decided in (0.3, 0.5, 0.7):
        labels = match_decisions(soft, mass, group, wanted, np.array([[1 - decided], [decided]]))
        assert (labels[forbidden, barred] == 0).all()
        np.testing.assert_allclose(means(labels, mass, group, 1), wanted, atol=1e-8)
