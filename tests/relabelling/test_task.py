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


def test_the_border_is_the_log_odds_of_the_threshold():
    assert task_of([1], [0]).border == 0
    assert task_of([1], [0], threshold=0.75).border == pytest.approx(np.log(3))


def test_log_odds_are_finite_and_go_both_ways():
    scores = log_odds(np.array([0.0, 0.2, 0.75, 1.0]), 0.01)
    expected = [-np.log(99), -np.log(4), np.log(3), np.log(99)]
    np.testing.assert_allclose(scores, expected)
    np.testing.assert_allclose(probability(scores), [0.01, 0.2, 0.75, 0.99])


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


def test_a_cut_has_the_share_of_a_groups_weight_above_it():
    weight = np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    task = task_of([1] * 5, [0, 0, 0, 1, 1], weight=weight)
    scores = np.array([3.0, 2.0, 1.0, 8.0, 6.0])
    # a quarter: the first person; half: the first two
    assert task.cut(scores, 0, 0.25) == 2.5
    assert task.cut(scores, 0, 0.5) == 1.5
    assert task.cut(scores, 1, 0.5) == 7.0


def test_only_people_who_are_compared_and_have_weight_make_a_cut():
    task = task_of(
        [1] * 4,
        [0] * 4,
        weight=np.array([1.0, 1.0, 1.0, 0.0]),
        compared=np.array([True, True, False, True]),
    )
    assert task.cut(np.array([3.0, 2.0, 90.0, 80.0]), 0, 0.5) == 2.5


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


def test_nobody_is_foretold_by_whom_they_were_learned_from():
    task = groups_of(9, 9, profile=np.arange(18) // 2)
    lessons = []

    def foretell(labels, rows, asked):
        lessons.append((set(rows.tolist()), set(asked.tolist())))
        return np.column_stack([asked / 20, 1 - asked / 20])

    task = task_of(task.good, task.group, profile=task.profile, foretell=foretell)
    chances = task.foretold(task.group, 3, 6)
    assert len(lessons) == 6
    assert all(not rows & asked for rows, asked in lessons)
    assert set().union(*(asked for _, asked in lessons)) == set(range(18))
    # the mean of the profile; a third label, which nobody has, has no chance
    np.testing.assert_allclose(chances[:2, 0], np.mean([0 / 20, 1 / 20]))
    np.testing.assert_allclose(chances[:, 0] + chances[:, 1], 1.0)
    np.testing.assert_array_equal(chances[:, 2], 0.0)
