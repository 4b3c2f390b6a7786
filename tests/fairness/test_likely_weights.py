"""Groups known as probabilities: what outcomes tell, weights, a test and bounds.

Each is compared with something independent: a general optimiser, the fixed point of
EM, an integral, a bootstrap, cvxpy, and populations whose groups are known.
"""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta

from fairmaxent.data.likely import chance_beyond
from fairmaxent.errors import SolverError
from fairmaxent.fairness import likely
from fairmaxent.fairness import people as people_module
from fairmaxent.fairness.likely import (
    Membership,
    bounds,
    contradiction,
    ends_of,
    likely_factors,
    ratio_bounds,
    true_tables,
)
from fairmaxent.fairness.people import People

SHARES = np.array([0.14, 0.05, 0.14, 0.67])
RATES = np.array([0.49, 0.30, 0.24, 0.42])
TYPICAL = 2.15  # how different names of groups are: the likeliest is right for 90 %
WEAK = 0.8  # 69 %


def named(rng, people, differ, shares=SHARES, rates=RATES, names=3000):
    """True groups, outcomes, and probabilities from names that groups have.

    A name says nothing about the outcome but by the group, and p is Bayes' rule.
    """
    chances = np.exp(differ * rng.normal(size=(names, len(shares))))
    chances /= chances.sum(axis=0)
    group = rng.choice(len(shares), people, p=shares)
    outcome = (rng.random(people) < rates[group]).astype(int)
    name = np.empty(people, dtype=int)
    for number in range(len(shares)):
        own = group == number
        name[own] = rng.choice(names, own.sum(), p=chances[:, number])
    joint = chances * shares
    return group, outcome, (joint / joint.sum(axis=1, keepdims=True))[name]


def plain(chances, outcome, outcomes=2, weight=None):
    """People of a single combination."""
    if weight is None:
        weight = np.ones(len(outcome))
    return People.of(chances, outcome, (1, outcomes), weight, weight**2)


def fair(table):
    """The same outcomes and groups, independent of each other."""
    return np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()


def soft_table(people, memberships, factor=1.0):
    """Outcomes × groups of the only combination."""
    return people.table(memberships, people.weight * factor)[0]


def bounds_of(people):
    """Bounds of people who count by their design weights."""
    return bounds(people, np.ones_like(people.weight))


def true_rate(group, outcome, weight):
    """The lowest share with the outcome in a true group, over the highest."""
    having = np.bincount(group, weight * outcome)
    rates = having / np.bincount(group, weight)
    return rates.min() / rates.max()


def random_people(seed, outcomes=3, groups=4, people=400):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(groups, 0.4), people)
    outcome = rng.integers(0, outcomes, people)
    weight = rng.choice([0.5, 1.0, 2.0], people)
    return plain(chances, outcome, outcomes, weight)


# ---------------------------------------------------------------- P(y | g)


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_those_that_a_general_optimiser_finds(seed):
    people = random_people(seed)
    one = likely._Combination.of(people, 0)
    strength = 6.0
    found = one.mode(strength, one.begin)
    prior = strength * one.mean[:, None]

    def loss(odds):
        rates = np.exp(odds.reshape(found.rates.shape))
        rates /= rates.sum(axis=0)
        value = (prior * np.log(rates)).sum()
        for chances, weights, rate in zip(one.chances, one.weights, rates, strict=True):
            value += weights @ np.log(chances @ rate)
        return -value

    answer = minimize(loss, np.zeros(found.rates.size), method="BFGS", tol=1e-10)
    rates = np.exp(answer.x.reshape(found.rates.shape))
    assert found.rates == pytest.approx(rates / rates.sum(axis=0), abs=2e-5)
    assert found.value == pytest.approx(answer.fun, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_rates_are_where_em_stays(seed):
    people = random_people(seed)
    one = likely._Combination.of(people, 0)
    strength = 3.0
    rates = one.mode(strength, one.begin).rates
    own = people.memberships(rates[None])
    shared = people.table(own, people.informative)[0] + strength * one.mean[:, None]
    assert rates == pytest.approx(shared / shared.sum(axis=0), abs=1e-6)


def test_the_slopes_are_those_of_finite_differences():
    one = likely._Combination.of(random_people(1), 0)
    rng = np.random.default_rng(2)
    free = rng.dirichlet(np.ones(3) * 5, 4).T[:-1].ravel()
    point = one.at(6.0, free)
    for number in range(len(free)):
        move = np.zeros_like(free)
        move[number] = 1e-6
        up, down = (one.at(6.0, free + way * move) for way in (1, -1))
        slope = (up.value - down.value) / 2e-6
        assert point.gradient[number] == pytest.approx(slope, rel=1e-5, abs=1e-4)
        bend = (up.gradient - down.gradient) / 2e-6
        assert point.hessian[number] == pytest.approx(bend, rel=1e-4, abs=1e-2)


@pytest.mark.some(1)
@pytest.mark.parametrize("strength", [4.0, 32.0])
def test_evidence_is_an_integral(strength):
    rng = np.random.default_rng(5)
    chances = rng.dirichlet([0.7, 0.7], 60)
    people = plain(chances, rng.integers(0, 2, 60))
    one = likely._Combination.of(people, 0)
    first, second = strength * one.mean
    points, step = np.linspace(0, 1, 401, retstep=True)
    of_a, of_b = np.meshgrid(points[1:-1], points[1:-1])
    prior = beta.logpdf(of_a, first, second) + beta.logpdf(of_b, first, second)
    bad, good = one.chances
    fit = np.log(np.tensordot(bad, [of_a, of_b], axes=1)).sum(axis=0)
    fit += np.log(np.tensordot(good, [1 - of_a, 1 - of_b], axes=1)).sum(axis=0)
    whole = np.log(np.exp(prior + fit - fit.max()).sum() * step**2) + fit.max()
    found = one.evidence(strength, one.mode(strength, one.begin))
    constant = np.log(2 * np.pi)  # (2π)^½ for each of two rates
    assert found + constant == pytest.approx(whole, abs=0.05)


@pytest.mark.more
def test_doubts_about_rates_are_those_of_a_bootstrap():
    rng = np.random.default_rng(11)
    _, outcome, chances = named(rng, 4000, TYPICAL)

    def mode_of(rows):
        one = likely._Combination.of(plain(chances[rows], outcome[rows]), 0)
        return one.mode(16.0, one.begin)

    draws = mode_of(np.arange(4000)).draws(4000, rng)[:, 1]
    again = [mode_of(rng.integers(0, 4000, 4000)).rates[1] for _ in range(300)]
    # the prior counts in the draws, and stays as it is in the bootstrap
    assert draws.std(axis=0) == pytest.approx(np.std(again, axis=0), rel=0.2)
    together = np.corrcoef(draws.T) - np.corrcoef(np.transpose(again))
    assert np.abs(together).max() < 0.2


def test_combinations_are_learned_apart():
    rng = np.random.default_rng(3)
    _, outcome, chances = named(rng, 3000, TYPICAL)
    half = rng.integers(0, 2, 3000)
    ones = np.ones(3000)
    modes = Membership.of(
        People.of(chances, 2 * half + outcome, (2, 2), ones, ones)
    ).modes
    for number in (0, 1):
        own = half == number
        alone = Membership.of(plain(chances[own], outcome[own])).modes[3][0]
        assert modes[3][number].rates == pytest.approx(alone.rates, abs=1e-6)


def test_people_who_stand_together_count_like_each_alone():
    rng = np.random.default_rng(4)
    chances = rng.dirichlet(np.ones(3), 50)
    outcome = rng.integers(0, 2, 50)
    times = rng.integers(1, 5, 50)
    each = np.repeat(chances, times, axis=0)
    level = np.repeat(outcome, times)
    nearly = each * (1 + 1e-9 * rng.normal(size=each.shape))
    alone = plain(nearly / nearly.sum(axis=1, keepdims=True), level)
    alike = plain(each, level)
    counted = People.of(chances, outcome, (1, 2), times * 1.0, times * 1.0)
    assert len(alone.weight) == len(each)
    for together in (alike, counted):
        assert len(together.weight) == 50
        rates = Membership.of(together).rates
        assert rates == pytest.approx(Membership.of(alone).rates, abs=1e-7)
        doubt = contradiction(alone, rates)
        assert contradiction(together, rates) == pytest.approx(doubt, rel=1e-5)
        one = tables_of(together)
        other = tables_of(alone)
        assert one.mean(axis=0) == pytest.approx(other.mean(axis=0), rel=1e-6)
        assert one.std(axis=0) == pytest.approx(other.std(axis=0), rel=1e-6)
        least, most = bounds_of(together)
        assert least == pytest.approx(bounds_of(alone)[0], rel=1e-6)
        assert most == pytest.approx(bounds_of(alone)[1], rel=1e-6)
    assert alike.chances[alike.place] == pytest.approx(each, abs=0)


def test_sums_that_are_equal_by_chance_bring_nobody_together(monkeypatch):
    class Zeros:
        def random(self, size):
            return np.zeros(size)

    chances = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    monkeypatch.setattr(likely.np.random, "default_rng", lambda seed: Zeros())
    people = plain(chances, np.arange(20) % 2)
    assert people.chances[people.place] == pytest.approx(chances, abs=0)


def test_a_few_people_at_a_time_add_up_to_all_of_them(monkeypatch):
    rng = np.random.default_rng(6)
    people = random_combinations(rng, 900)
    factor = rng.uniform(0.5, 2.0, len(people.weight))

    def everything():
        learned = Membership.of(people)
        memberships = learned.by_any["names"]
        draws = learned.draws(20, np.random.default_rng(0))
        grown = np.random.default_rng(0)
        return [
            learned.rates,
            learned.chances,
            likely_factors(people, memberships, people.table(memberships, factor)),
            true_tables(people, memberships, factor, draws, grown),
            np.array(contradiction(people, learned.rates)),
        ]

    at_once = everything()
    monkeypatch.setattr(people_module, "_PRODUCTS", people_module._MOST)
    for together, block_by_block in zip(at_once, everything(), strict=True):
        assert block_by_block == pytest.approx(together, rel=1e-7, abs=1e-12)


def test_the_order_of_the_data_changes_nothing(monkeypatch):
    monkeypatch.setattr(likely, "DRAWN_FROM", 40)
    monkeypatch.setattr(people_module, "DRAWN_FROM", 40)
    rng = np.random.default_rng(7)
    chances = rng.dirichlet(np.full(4, 0.5), 2000)
    outcome = rng.integers(0, 2, 2000)
    order = rng.permutation(2000)
    one = plain(chances, outcome)
    other = plain(chances[order], outcome[order])
    assert (tables_of(one) == tables_of(other)).all()
    assert (bounds_of(one)[1] == bounds_of(other)[1]).all()
    assert (one.chances[one.place] == chances).all()
    assert (other.chances[other.place] == chances[order]).all()


def test_some_people_represent_all_of_them_in_draws(monkeypatch):
    rng = np.random.default_rng(8)
    _, outcome, chances = named(rng, 8000, TYPICAL)
    weight = rng.uniform(0.5, 2.0, 8000)
    people = plain(chances, outcome, weight=weight)
    of_all = tables_of(people)
    monkeypatch.setattr(likely, "DRAWN_FROM", 500)
    of_some = tables_of(people)
    assert of_some.mean(axis=0) == pytest.approx(of_all.mean(axis=0), rel=0.02)
    assert of_some.std(axis=0) == pytest.approx(of_all.std(axis=0), rel=0.2)


def test_cells_of_similar_people_are_halves_of_halves():
    rng = np.random.default_rng(9)
    chances = rng.dirichlet(np.full(3, 0.5), 5000)
    people = plain(chances, rng.integers(0, 2, 5000))
    cells = people.very_similar
    assert set(people.similar) == set(range(people_module.CELLS_TESTED))
    assert set(cells) == set(range(people_module.MOST_CELLS))
    assert np.bincount(cells).max() < 1000
    for cell in set(cells):
        (whole,) = set(people.similar[cells == cell])
        within = people.chances[cells == cell].std(axis=0).max()
        assert within < people.chances[people.similar == whole].std(axis=0).max()
    assert (
        people.chances[cells == 0].std(axis=0).max() < 0.5 * chances.std(axis=0).max()
    )


def test_where_some_people_show_where_to_halve_cells_are_as_many(monkeypatch):
    monkeypatch.setattr(people_module, "DRAWN_FROM", 500)
    rng = np.random.default_rng(9)
    chances = rng.dirichlet(np.full(3, 0.5), 5000)
    people = plain(chances, rng.integers(0, 2, 5000))
    sizes = np.bincount(people.very_similar)
    assert len(sizes) == people_module.MOST_CELLS
    assert sizes.min() > 20
    assert sizes.max() < 1000


def random_combinations(rng, count):
    """People of two combinations with three outcomes, and weights."""
    chances = rng.dirichlet(np.full(3, 0.5), count)
    cells = rng.integers(0, 6, count)
    weight = rng.uniform(0.5, 2.0, count)
    return People.of(chances, cells, (2, 3), weight, weight**2)


def tables_of(people, factor=1.0, count=2000):
    """Tables that the true groups may have."""
    rng = np.random.default_rng(0)
    learned = Membership.of(people)
    draws = learned.draws(count, rng)
    own = learned.by_any["names"]
    factor = factor * np.ones(len(people.weight))
    return true_tables(people, own, factor, draws, rng)[:, 0]


# ---------------------------------------------------------------- weights


@pytest.mark.some(5)
@pytest.mark.parametrize("seed", range(50))
def test_weights_are_those_of_a_general_convex_solver(seed):
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 6))
    chances = rng.dirichlet(np.full(groups, rng.uniform(0.2, 1.0)), 40)
    weight = rng.choice([0.5, 1.0, 2.0], 40)
    people = plain(chances, np.zeros(40, dtype=int), 1, weight)
    # some table that can be reached
    moved = people.table(chances, weight * rng.uniform(0.4, 2.5, 40))
    wanted = moved * weight.sum() / moved.sum()
    factor = likely_factors(people, people.chances, wanted)[people.place]

    weights = cp.Variable(40)
    # Σ w·log(w / d) − w; with `kl_div`, the solver finds fewer digits
    linear = cp.multiply(weights, np.log(weight)) + weights
    nearest = -cp.sum(cp.entr(weights) + linear)
    rules = [weights @ chances == wanted[0, 0]]
    cp.Problem(cp.Minimize(nearest), rules).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    assert weight * factor == pytest.approx(weights.value, abs=1e-6)


@pytest.mark.some(8)
@pytest.mark.parametrize("seed", range(20))
def test_limited_weights_are_those_of_a_general_convex_solver(seed):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(3, 0.5), 40)
    people = plain(chances, np.zeros(40, dtype=int), 1)
    moved = people.table(chances, rng.uniform(0.5, 1.4, 40))
    wanted = moved * 40 / moved.sum()
    factor = likely_factors(people, people.chances, wanted, 1.5)[people.place]
    assert factor.max() < 1.5 + 1e-9

    weights = cp.Variable(40)
    nearest = cp.sum(cp.kl_div(weights, np.ones(40)))
    rules = [weights @ chances == wanted[0, 0], weights <= 1.5]
    cp.Problem(cp.Minimize(nearest), rules).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    assert factor == pytest.approx(weights.value, abs=1e-6)


def test_certain_groups_get_the_weights_of_their_cells():
    rng = np.random.default_rng(0)
    group, outcome, _ = named(rng, 2000, TYPICAL)
    people = plain(np.eye(4)[group], outcome)
    table = soft_table(people, people.chances)
    factor = likely_factors(people, people.chances, fair(table)[None])
    expected = (fair(table) / table)[outcome, group]
    assert factor[people.place] == pytest.approx(expected, rel=1e-9)


def test_weights_that_grow_a_hundredfold_are_found():
    rng = np.random.default_rng(10)
    people = plain(rng.dirichlet(np.full(3, 0.2), 500), np.zeros(500, dtype=int), 1)
    grown = np.exp(people.chances @ np.array([4.6, 0.0, -4.6]))
    wanted = people.table(people.chances, grown)
    factor = likely_factors(people, people.chances, wanted)
    assert factor == pytest.approx(grown, rel=1e-9)


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("most", [None, 3.0])
def test_a_group_with_hardly_any_mass_gets_its_fair_share(share, most):
    rng = np.random.default_rng(12)
    chances = rng.dirichlet(np.full(3, 0.5), 400)
    chances[:, 2] *= share
    chances /= chances.sum(axis=1, keepdims=True)
    people = plain(chances, (rng.random(400) < 0.3 + 0.3 * chances[:, 0]).astype(int))
    table = fair(people.table(people.chances, people.weight)[0])
    factor = likely_factors(people, people.chances, table[None], most)
    reached = people.table(people.chances, people.weight * factor)[0]
    assert reached == pytest.approx(table, rel=1e-9)


@pytest.mark.parametrize("size", [1e-90, 1e90])
def test_weights_do_not_depend_on_their_unit(size):
    rng = np.random.default_rng(13)
    chances = rng.dirichlet(np.full(3, 0.5), 200)
    outcome = rng.integers(0, 2, 200)
    weight = rng.uniform(0.5, 2.0, 200)
    factors = []
    for unit in (1.0, size):
        people = plain(chances, outcome, weight=weight * unit)
        table = fair(people.table(people.chances, people.weight)[0])
        factors.append(likely_factors(people, people.chances, table[None]))
    assert factors[1] == pytest.approx(factors[0], rel=1e-9)


def test_what_cannot_be_reached_is_said():
    chances = np.array([[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]])
    people = plain(chances, np.zeros(3, dtype=int), 1)
    with pytest.raises(SolverError):
        likely_factors(people, people.chances, np.array([[[2.9, 0.1]]]))


# ---------------------------------------------------------------- what it is good for


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("differ", "least"), [(3.2, 0.94), (TYPICAL, 0.89), (WEAK, 0.60)]
)
def test_true_groups_become_equal_and_that_is_foreseen(differ, least):
    rng = np.random.default_rng(1)
    reached = []
    known = []
    foreseen = []
    inside = []
    for _ in range(12):
        group, outcome, chances = named(rng, 6000, differ)
        people = plain(chances, outcome)
        own = people.memberships(Membership.of(people).rates)
        factor = likely_factors(people, own, fair(soft_table(people, own))[None])
        tables = tables_of(people, factor, 400)
        rates = tables[:, 1] / tables.sum(axis=1)
        promised = rates.min(axis=1) / rates.max(axis=1)
        truth = true_rate(group, outcome, factor[people.place])
        low, high = np.quantile(promised, [0.025, 0.975])
        own = people.memberships(np.stack([1 - RATES, RATES])[None])
        factor = likely_factors(people, own, fair(soft_table(people, own))[None])
        known.append(true_rate(group, outcome, factor[people.place]))
        reached.append(truth)
        foreseen.append(promised.mean())
        inside.append(low <= truth <= high)
    assert np.mean(reached) > least
    # chance decides who belongs to which group: no weights can know that
    assert np.mean(reached) - 0.01 < np.mean(known) < 0.99
    assert np.mean(foreseen) == pytest.approx(np.mean(reached), abs=0.06)
    assert sum(inside) >= 10


# ---------------------------------------------------------------- the test, the bounds


@pytest.mark.more
def test_names_are_rarely_refuted_and_columns_surely():
    rng = np.random.default_rng(7)
    refuted = []
    for _ in range(60):
        _, outcome, chances = named(rng, 3000, TYPICAL)
        people = plain(chances, outcome)
        refuted.append(contradiction(people, Membership.of(people).rates) < 0.05)
    assert sum(refuted) <= 8
    for seed in range(5):
        people = plain(*deciding_columns(seed, 3000)[1:])
        assert contradiction(people, Membership.of(people).rates) < 1e-3


def deciding_columns(seed, people):
    """True groups, probabilities from columns that alone decide, and outcomes."""
    rng = np.random.default_rng(seed)
    profile = rng.integers(0, 12, people)
    chances = rng.dirichlet(8 * SHARES, 12)[profile]
    good = rng.uniform(0.1, 0.9, 12)[profile]
    group = (rng.random((people, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return np.minimum(group, 3), chances, (rng.random(people) < good).astype(int)


def test_nothing_is_tested_if_groups_are_certain():
    rng = np.random.default_rng(0)
    group, outcome, _ = named(rng, 500, TYPICAL)
    people = plain(np.eye(4)[group], outcome)
    assert contradiction(people, Membership.of(people).rates) is None


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["strong", "typical", "weak", "columns"])
def test_bounds_hold_whatever_is_true(kind):
    rng = np.random.default_rng(8)
    for seed in range(20):
        if kind == "columns":
            group, chances, outcome = deciding_columns(seed, 3000)
        else:
            differ = {"strong": 3.2, "typical": TYPICAL, "weak": WEAK}[kind]
            group, outcome, chances = named(rng, 3000, differ)
        least, most = bounds_of(plain(chances, outcome))
        truth = np.zeros((2, 4))
        np.add.at(truth, (outcome, group), 1.0)
        assert (least[0] <= truth).all()
        assert (truth <= most[0]).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_ratio_lies_within_the_bounds_of_its_rates_and_reaches_them(seed):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.uniform(0.05, 1, (2, 3)), axis=0)
    least, most = ratio_bounds(*np.insert(ends, 1, np.nan, axis=1))
    steps = np.linspace(0, 1, 41)[:, None]
    grid = ends[0] + steps * (ends[1] - ends[0])
    rates = np.stack(np.meshgrid(*grid.T), axis=-1)
    ratios = rates.min(axis=-1) / rates.max(axis=-1)
    assert least == pytest.approx(ratios.min(), abs=1e-12)
    assert ratios.max() <= most + 1e-12
    assert most == pytest.approx(ratios.max(), abs=0.05)


def test_bounds_are_tight_if_groups_are_certain():
    rng = np.random.default_rng(0)
    group, outcome, _ = named(rng, 2000, TYPICAL)
    least, most = bounds_of(plain(np.eye(4)[group], outcome))
    truth = np.zeros((2, 4))
    np.add.at(truth, (outcome, group), 1.0)
    assert least == pytest.approx(most)
    assert least[0] == pytest.approx(truth)


def test_ends_of_draws_leave_out_as_much_as_they_say():
    rng = np.random.default_rng(11)
    low, high = ends_of(rng.random((400, 20_000)), 0.9)
    assert low.mean() == pytest.approx(0.05, abs=3e-4)
    assert high.mean() == pytest.approx(0.95, abs=3e-4)


# ---------------------------------------------------------------- chance


def test_the_chance_of_a_larger_statistic_is_that_of_printed_tables():
    assert chance_beyond(3.841459, 1) == pytest.approx(0.05, abs=1e-7)
    assert chance_beyond(15.08627, 5) == pytest.approx(0.01, abs=1e-7)


def test_nothing_is_surprising_without_anything_that_is_free():
    assert chance_beyond(5.0, 0) == 1.0
    assert chance_beyond(0.0, 3) == 1.0
