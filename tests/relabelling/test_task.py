"""The task of the closed loop: shares, groups that steer, cuts, profiles and folds."""

import numpy as np
import pytest
from loop_tasks import groups_of, task_of

from fairmaxent.relabelling.task import log_odds, probability


def test_shares_are_those_of_the_weight_of_people_who_are_compared():
    task = task_of(
        [1, 1, 1, 1, 1],
        [0, 0, 1, 1, 1],
        weight=np.array([1.0, 3.0, 1.0, 1.0, 2.0]),
        compared=np.array([True, True, True, True, False]),
        factor=np.ones(3),
    )
    decided = np.array([True, False, True, False, True])
    np.testing.assert_allclose(task.shares(decided), [0.25, 0.5, 0.0])
    # of the second and the third person alone
    rows = np.array([1, 2])
    np.testing.assert_allclose(task.shares(decided[rows], rows), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(task.mass, [4.0, 2.0, 0.0])
    # (1 + 3)² / (1 + 9), two people who count the same, and nobody
    np.testing.assert_allclose(task.size, [1.6, 2.0, 0.0])


def test_log_odds_are_finite_and_go_both_ways():
    scores = log_odds(np.array([0.0, 0.2, 0.75, 1.0]))
    most = np.log(1e6 - 1)
    np.testing.assert_allclose(scores, [-most, -np.log(4), np.log(3), most])
    np.testing.assert_allclose(probability(scores), [1e-6, 0.2, 0.75, 1 - 1e-6])


def test_a_group_of_few_people_does_not_steer():
    assert groups_of(40, 30, 29).steers.tolist() == [True, True, False]


@pytest.mark.parametrize("outcome", [True, False])
def test_a_group_with_one_outcome_does_not_steer(outcome):
    task = groups_of(40, 40, 40)
    good = np.where(task.group == 1, outcome, task.good)
    assert task_of(good, task.group).steers.tolist() == [True, False, True]


def test_if_only_one_group_could_steer_all_that_have_people_do():
    task = groups_of(40, 10, factor=np.ones(3))
    assert task.steers.tolist() == [True, True, False]


def test_people_of_a_profile_share_its_mean():
    task = task_of(
        [1, 0, 1],
        [0, 0, 1],
        profile=np.array([0, 0, 1]),
        weight=np.array([1.0, 3.0, 5.0]),
    )
    np.testing.assert_allclose(task.mean_of_profile(task.good), [0.25, 0.25, 1.0])


def test_folds_part_the_people_and_are_alike():
    task = groups_of(60, 30)
    folds = task.folds(1)
    assert len(folds) == 3
    everybody = list(range(90))
    assert sorted(np.concatenate([asked for _, asked in folds])) == everybody
    for rows, asked in folds:
        assert sorted([*rows, *asked]) == everybody
        # of 30 and 30, and of 15 and 15 with each outcome, a third
        held = np.bincount(2 * task.group[asked] + task.good[asked])
        assert held.tolist() == [10, 10, 5, 5]


def test_each_round_has_other_folds_and_always_the_same():
    task = groups_of(60, 30)
    first, again, second = (task.folds(number)[0][1] for number in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    # in each fold a third of those in another, as far as chance goes
    assert 0.2 < np.isin(first, second).mean() < 0.5


def test_a_sample_has_its_part_of_each_group_and_outcome():
    task = groups_of(6000, 2000)
    rows = task.sample(800)
    assert len(set(rows.tolist())) == len(rows) == 800
    cells = np.bincount(2 * task.group[rows] + task.good[rows])
    np.testing.assert_array_equal(cells, [300, 300, 100, 100])
    np.testing.assert_array_equal(task.sample(800), rows)
    np.testing.assert_array_equal(task.sample(8000), task.everybody)


def test_few_people_have_up_to_their_part_of_half_of_a_sample():
    # of 400, four cells have up to 50 each, more if that is their part
    task = groups_of(7800, 120, 80)
    cells = np.bincount(2 * task.group + task.good)
    rows = task.sample(600)
    found = np.bincount(2 * task.group[rows] + task.good[rows])
    assert cells.tolist() == [3900, 3900, 60, 60, 40, 40]
    # 3,900 · 600 / 8,000 = 292.5; 600 / 2 / 6 = 50; all 40
    assert found.tolist() == [293, 293, 50, 50, 40, 40]


def test_a_part_stands_for_all_and_asks_its_own_people():
    asked = []

    def teacher(name):
        return lambda rows, good, weight: asked.append((name, rows.tolist()))

    weight = np.where(np.arange(400) % 4 == 0, 3.0, 1.0)
    task = groups_of(
        300, 100, weight=weight, train=teacher("own"), advise=teacher("ours")
    )
    rows = np.sort(np.random.default_rng(0).permutation(400)[:90])
    part = task.part(rows)
    # the weight of groups and outcomes is in the same ratio as before
    cells = [2 * one.group + one.good for one in (task, part)]
    before = np.bincount(cells[0], task.weight)
    after = np.bincount(cells[1], part.weight)
    np.testing.assert_allclose(after / after.sum(), before / before.sum())
    assert part.weight.mean() == pytest.approx(task.weight.mean())
    part.train(np.array([0, 5]), None, None)
    part.advise(np.array([2]), None, None)
    assert asked == [("own", rows[[0, 5]].tolist()), ("ours", [rows[2]])]


def test_the_share_of_all_is_that_of_those_who_are_compared():
    task = groups_of(30, 10)
    assert task.overall(np.array([0.6, 0.2])) == pytest.approx(0.5)
