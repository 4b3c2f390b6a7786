"""Measurements: what one person can change, by enumeration; and how noisy counts become
distributions.
"""

import math
from itertools import product

import numpy as np
import pytest

from fairmaxent.data import frames
from fairmaxent.data.domain import bound
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table
from fairmaxent.privacy import measurements
from fairmaxent.privacy.budget import Privacy, Spent
from fairmaxent.privacy.measurements import NoisyCounter, NoisyTable
from fairmaxent.privacy.model import (
    agreeing,
    column_counts,
    learn_private_model,
    on_simplex,
    pair_counts,
    root_counts,
    shrunk,
    three_way,
)
from quiet import DOMAIN, Seeded, Silence, people

SIZES = (4, 3, 2, 2)  # the root has two outcomes in two groups
EVERY_ROW = np.array(list(product(*map(range, SIZES))))


class Watched(Silence):
    """Keeps what it was asked to protect."""

    def __init__(self, answer=7.0):
        self.tables, self.scores, self.scales, self.answer = [], [], [], answer

    def counts(self, table, scale):
        self.scales.append(scale)
        self.tables.append(table.copy())
        # the same for neighbours, so that scores are compared on equal terms
        return np.full(table.shape, self.answer)

    def choice(self, scores, scale):
        self.scales.append(scale)
        self.scores.append(np.array(scores))
        return 0


def looked_at(rows, k=1):
    watched = Watched()
    counter = NoisyCounter(
        Table.compress(np.asfortranarray(rows), SIZES), SIZES, tuple("rabc"), watched, k
    )
    for wanted in ([(0,)], [(1,), (2,)], [(0, 1), (0, 2)], [(1, 2)], [(0, 1, 2)]):
        counter.measure(wanted, 1.0)
    worth = {1: 1.0, 2: 0.7, 3: 1 / 3}
    outcomes, few = counter.for_columns(1e-9, 9, 2, "o")
    outcomes.measure([(0, 1)], 1.0)
    measurements.choose_columns(outcomes, np.array([7.3, 2.9]), few - 1, 1.0)
    measurements.choose_hub(counter, lambda pair: 1.7, worth, rhos=(1.0, 1.0))
    measurements.choose_edges(counter, lambda pair: 1.7, worth, (), rhos=(1.0, 1.0))
    return watched


@pytest.mark.parametrize("k", [1, 3])
def test_a_person_of_k_rows_changes_each_table_and_each_score_by_k_at_most_and_noise_grows_with_k(
    k,
):
    rng = np.random.default_rng(0)
    for rows in (rng.choice(EVERY_ROW, size) for size in (4, 5, 9)):
        before = looked_at(rows, k)
        neighbours = [np.vstack([rows, *[one] * k]) for one in EVERY_ROW]
        neighbours += [np.vstack([rows, rng.choice(EVERY_ROW, k)]) for _ in range(5)]
        neighbours += [
            np.delete(rows, range(start, start + k), axis=0)
            for start in range(len(rows) - k)
        ]
        furthest = 0.0
        for after in (looked_at(other, k) for other in neighbours):
            assert len(after.tables) == 8
            for old, new in zip(before.tables, after.tables, strict=True):
                assert np.abs(new - old).sum() == k
                furthest = max(furthest, np.linalg.norm(new - old))
            for old, new in zip(before.scores, after.scores, strict=True):
                assert np.abs(new - old).max() <= k + 2**-19
                # nothing is rounded in floating point
                assert (new * 2**20 == np.round(new * 2**20)).all()
        assert furthest == k  # L2 sensitivity
        more = np.array(before.scales) / np.array(looked_at(rows).scales)
        np.testing.assert_allclose(more[:8], k)
        np.testing.assert_allclose(more[8:], (k + 2**-19) / (1 + 2**-19), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(
    ("answer", "looks", "choices"),
    [  # of two columns to count with the outcome; of a hub, and of the edges of a tree
        (7.0, ["hired × age", "hired × job"], 2),
        (7e4, ["hired × sex × age", "hired × sex × job", "hired × sex × town"], 3),
    ],
)
def test_a_ledger_lists_every_look_and_noisy_counts_decide_what_they_are(
    monkeypatch, k, answer, looks, choices
):
    monkeypatch.setattr(measurements, "_FEWEST", 2)
    (roles, table), watched = counted(people()), Watched(answer)
    model = learn_private_model(
        table, roles, Privacy(epsilon=2.0, rows_per_person=k), noise=watched
    )
    # what floating point could add
    added = {"discrete Gaussian": 0, "noisy maximum": 2**-19}
    assert all(
        look.sensitivity == k + added[look.mechanism] for look in model.ledger.spent
    )
    gauss = [
        look for look in model.ledger.spent if look.mechanism == "discrete Gaussian"
    ]
    assert [look.cells for look in gauss] == [table.size for table in watched.tables]
    assert [look.measured for look in gauss][4 : 4 + len(looks)] == looks
    assert len(model.ledger.spent) - len(gauss) == len(watched.scores) == choices
    # the noise is the one that is written down
    assert [look.scale for look in model.ledger.spent] == watched.scales
    assert model.ledger.rho <= Privacy(epsilon=2.0).rho
    assert model.ledger.rho == pytest.approx(Privacy(epsilon=2.0).rho, rel=1e-9)


def counted(frame):
    roles = Roles.of(bound(DOMAIN, frames.open_frame(frame)), "hired", ["sex"])
    return roles, Table.compress(
        roles.blocks.pool(roles.domain.encode(frame)), roles.blocks.levels
    )


@pytest.mark.parametrize("hubs", [0, 32])
def test_without_noise_the_model_has_the_tables_of_the_data(monkeypatch, hubs):
    monkeypatch.setattr(measurements, "_LARGEST_HUB", hubs)
    roles, table = counted(people(5000))
    model = learn_private_model(table, roles, Privacy(epsilon=1e5), noise=Silence())
    tilted = model.tree.tilt(np.zeros(roles.blocks.width))
    assert model.rows == 5000
    assert bool(model.tree.hub) == bool(hubs)
    families = [
        (0, parent, block)
        for block, parent in enumerate(model.tree.parents, start=1)
        if parent not in (0, block)
    ]
    families += [
        (0, model.tree.hub, block)
        for block in range(1, 4)
        if model.tree.hub not in (0, block)
    ]
    # for so much ε, each is measured with the root
    assert len(families) == (3 if hubs else 2)
    for blocks in [(0, 1), (0, 2), (0, 3), *families]:
        (counts,) = table.tables([blocks], roles.blocks.levels)
        np.testing.assert_allclose(tilted.joint(blocks), counts / 5000, atol=1e-6)


@pytest.mark.more
def test_more_budget_means_less_error():
    roles, table = counted(people(5000))
    levels = (
        np.concatenate(
            table.tables([(block,) for block in range(4)], roles.blocks.levels)
        )
        / 5000
    )
    errors = []
    for epsilon in (0.1, 1.0, 10.0):
        privacy = Privacy(epsilon=epsilon)
        runs = [
            learn_private_model(table, roles, privacy, noise=Seeded(seed)).tree
            for seed in range(5)
        ]
        errors.append(
            np.mean(
                [
                    np.abs(t.tilt(np.zeros(roles.blocks.width)).levels - levels).sum()
                    for t in runs
                ]
            )
        )
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_the_noise_of_opendp_is_the_one_that_is_paid_for():
    pytest.importorskip("opendp", reason="opendp is not installed")
    noise = measurements.OpenDP()
    drawn = noise.counts(np.full((40, 100), 50.0), 12.5)
    assert drawn.shape == (40, 100)
    assert (drawn == np.round(drawn)).all()
    assert drawn.mean() == pytest.approx(50, abs=5 * 12.5 / math.sqrt(4000))
    assert drawn.std() == pytest.approx(12.5, rel=0.08)
    chosen = np.mean([noise.choice(np.array([0.0, 1.0]), 1.0) for _ in range(800)])
    # ∝ e^{score / scale}
    assert chosen == pytest.approx(math.e / (1 + math.e), abs=0.08)


def noisy(counts, variance):
    return NoisyTable(
        np.array(counts, dtype=float),
        Spent("discrete Gaussian", "x", 1, 1.0, math.sqrt(variance)),
    )


def test_the_projection_is_the_closest_point_of_the_simplex():
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(0)
    for size in (2, 5, 9):
        counts = rng.normal(2, 6, size)
        ours = on_simplex(counts, 10.0)
        found = optimize.minimize(
            lambda x, counts=counts: ((x - counts) ** 2).sum(),
            np.full(size, 10 / size),
            bounds=[(0, None)] * size,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 10},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        np.testing.assert_allclose(ours, found.x, atol=1e-4)
        assert ours.sum() == pytest.approx(10)


@pytest.mark.more
def test_two_measurements_of_a_column_are_combined_by_their_variances():
    """Generalised least squares: without negative counts or shrinking, the column is
    the best linear estimate.
    """
    rng = np.random.default_rng(1)
    truth = rng.integers(2000, 4000, (4, 6)).astype(float) * [1, 3, 1, 1, 2, 1]
    errors = []
    for _ in range(400):
        alone, both = (
            noisy(truth.sum(0) + rng.normal(0, 30, 6), 900),
            noisy(truth + rng.normal(0, 20, (4, 6)), 400),
        )
        column, table = column_counts(truth.sum(1), alone, both, (2, 2))
        np.testing.assert_allclose(table.sum(0), column, rtol=1e-6)
        np.testing.assert_allclose(table.sum(1), truth.sum(1), rtol=1e-6)
        errors.append(column - truth.sum(0))
    # of the mean of both; the known total takes a sixth off
    best = 1 / (1 / 900 + 1 / 1600)
    assert np.var(errors) == pytest.approx(best * 5 / 6, rel=0.1)


def test_measurements_of_the_root_are_combined_by_their_variances():
    """A sum of three cells of variance 4 has variance 12, a third of the root's."""
    alone = noisy(np.array([100.0, 300.0]), 36)
    with_column = noisy(np.array([[40.0, 50.0, 50.0], [80.0, 90.0, 90.0]]), 4)
    weighted = [(100 / 36 + 140 / 12) * 9, (300 / 36 + 260 / 12) * 9]
    counts = root_counts(alone, [with_column])
    assert counts == pytest.approx(weighted, abs=1e-5)


def test_expected_counts_are_rounded_down_to_the_grid():
    grid = 2.0**-20
    assert measurements._on_grid(1.5 * grid) == grid
    assert measurements._on_grid(-1.5 * grid) == -2 * grid


def test_a_column_that_was_counted_with_the_outcome_only_is_the_same_in_all_groups():
    truth, root = (
        np.array([[300.0, 100.0, 50.0], [50.0, 100.0, 400.0]]),
        np.array([200.0, 250.0, 350.0, 200.0]),
    )
    column, table = column_counts(
        root, noisy(truth.sum(0), 0.01), noisy(truth, 0.01), (2, 2)
    )
    np.testing.assert_allclose(table.reshape(2, 2, 3).sum(1), truth, rtol=1e-2)
    np.testing.assert_allclose(table[0] / 200, table[1] / 250, rtol=1e-4)
    unknown = column_counts(root, noisy(column, 0.01), None, (2, 2))[1]
    np.testing.assert_allclose(unknown, np.outer(root, column) / 1000, rtol=1e-6)
    # the small level of 60 is 18 rows off, noise 14
    both = np.array([[360.0, 48.0, 92.0], [240.0, 12.0, 248.0]])
    moved = (
        column_counts(both.sum(1), noisy(both.sum(0), 0.01), noisy(both, 200.0), (2,))[
            1
        ][0]
        - both.sum(0) / 2
    )
    kept = moved / (both[0] - both.sum(0) / 2)
    # a column says about as much for each row of a level
    assert kept[1] < 0.6 < 0.95 < kept[0]


def test_a_few_columns_that_say_most_about_the_outcome_are_chosen():
    rng = np.random.default_rng(6)
    outcome, sizes = rng.integers(0, 2, 400), (2, 2, 9, 3, 2)
    rows = np.column_stack(
        [outcome, *(rng.integers(0, size, 400) for size in sizes[1:])]
    )
    rows[:300, 3], rows[:200, 1] = outcome[:300], outcome[:200]
    counter = NoisyCounter(
        Table.compress(np.asfortranarray(rows), sizes), sizes, tuple("rabcd"), Seeded(0)
    )
    chosen, spent = measurements.choose_columns(
        counter, np.array([210.0, 190.0]), 2, 0.25
    )
    assert (chosen, sum(look.rho for look in spent)) == ([1, 3], pytest.approx(0.05))
    # of σ = 1, in a table of the typical size
    noise = math.sqrt(2 / math.pi) * 2 * (2 * 9 * 3 * 2) ** (1 / 4)
    assert [counter.clear(rho, 400, 0.1) for rho in (1e-4, 0.1)] == [
        0,
        int(0.2 * (40 / noise) ** 2),
    ]


def test_a_pair_that_noise_explains_is_what_the_root_says_of_it():
    rng = np.random.default_rng(2)
    expected = np.outer([300.0, 700.0], [100.0, 400.0, 500.0]) / 1000
    pure = pair_counts(expected, expected, 1e6)
    np.testing.assert_allclose(pure, expected, rtol=1e-6)
    real = expected + np.array([[50, -20, -30], [-50, 20, 30]])
    np.testing.assert_allclose(pair_counts(real, expected, 0.01), real, rtol=0.02)
    assert (pair_counts(rng.normal(0, 1e3, (2, 3)), expected, 1e6) > 0).all()


def test_counts_are_shrunk_towards_what_is_expected_by_the_part_that_is_noise():
    """James and Stein, by hand: of a mean square of 25, 9 are noise, so each difference
    keeps 16/25 of itself.
    """
    towards = np.array([100.0, 200.0, 300.0, 400.0])
    differences = np.array([5.0, -5.0, 5.0, -5.0])
    np.testing.assert_allclose(
        shrunk(towards + differences, towards, 9.0), towards + 16 / 25 * differences
    )
    np.testing.assert_allclose(shrunk(towards + differences, towards, 25.0), towards)
    np.testing.assert_allclose(
        shrunk(towards + differences, towards, 1e-9), towards + differences
    )
    # It is worth it: closer to the truth than what was measured, and than what was
    # expected.
    rng = np.random.default_rng(5)
    expected = np.full(10_000, 50.0)
    truth = expected + rng.normal(0, 4, len(expected))
    measured = truth + rng.normal(0, 3, len(expected))
    squared = [
        float(((guess - truth) ** 2).mean())
        for guess in (shrunk(measured, expected, 9.0), measured, expected)
    ]
    assert squared == pytest.approx([1 / (1 / 9 + 1 / 16), 9, 16], rel=0.05)


def test_roots_are_never_negative_and_always_somebody():
    low = root_counts(noisy([-5, -7], 25), [])
    assert low.min() > 0 < low.sum() == pytest.approx(1, rel=1e-5)


def test_the_three_way_table_has_its_margins_and_no_more_structure():
    rng = np.random.default_rng(3)
    truth = rng.gamma(2, 10, (2, 3, 4))
    table = three_way(
        np.ones_like(truth), truth.sum(2), truth.sum(1), truth.sum(0)[None]
    )
    for axis in range(3):
        np.testing.assert_allclose(table.sum(axis), truth.sum(axis), rtol=1e-5)
    log = np.log(table)  # maximum entropy: no interaction of three
    interaction = log[0] - log[1]
    np.testing.assert_allclose(
        np.diff(np.diff(interaction, axis=0), axis=1), 0, atol=1e-6
    )
    fitted = agreeing(
        np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([6.0, 4.0]), np.array([5.0, 5.0])
    )
    np.testing.assert_allclose(
        [*fitted.sum(1), *fitted.sum(0)], [6, 4, 5, 5], rtol=1e-6
    )
    # the odds stay
    assert fitted[0, 0] * fitted[1, 1] / (fitted[0, 1] * fitted[1, 0]) == pytest.approx(
        4 / 6
    )


def test_cells_that_hold_nearly_nothing_are_no_infinity():
    table = np.array([[[5e-324, 1.0], [5e-324, 1.0]]])
    fitted = three_way(table, np.array([[5.0, 5.0]]), np.array([[4.0, 6.0]]))
    np.testing.assert_allclose(fitted, [[[2.0, 3.0], [2.0, 3.0]]])


def test_edges_form_a_tree_and_forced_ones_are_in_it():
    rng = np.random.default_rng(4)
    sizes = (2, 3, 2, 4, 2)
    rows = np.column_stack([rng.integers(0, size, 200) for size in sizes])
    counter = NoisyCounter(
        Table.compress(np.asfortranarray(rows), sizes), sizes, tuple("rabcd"), Seeded(0)
    )
    chosen, spent = measurements.choose_edges(
        counter, lambda pair: 1.0, range(1, 5), [(2, 4)], rhos=(0.1, 0.1)
    )
    assert chosen[0] == (2, 4)
    assert (len(chosen), len(spent)) == (3, 2)
    parents = measurements.parents_of(chosen, [1, 2, 3, 4])
    assert list(parents.values()).count(0) == 1
    assert {
        tuple(sorted((block, parent))) for block, parent in parents.items() if parent
    } == {*chosen}
