"""What a student is said to decide, and the table it learned from, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from loop_tasks import task_of

from fairmaxent.fit import student
from fairmaxent.fit.student import Estimates, Levels, compared_parts, surely_unequal

LEVELS = Levels(good=2, bad=0, outcomes=3)  # the second of three is unknown


def closed_of(shares, size, noise):
    return SimpleNamespace(
        shares=np.array(shares), size=np.array(size), noise=np.array(noise)
    )


def test_decisions_are_a_table_of_outcomes_and_groups():
    decided = LEVELS.decided(np.array([0.25, 0.5]), np.array([8.0, 2.0]))
    assert decided.tolist() == [[6.0, 1.0], [0.0, 0.0], [2.0, 1.0]]


def test_people_count_for_less_where_students_differ_from_round_to_round():
    closed = closed_of([0.5, 0.5, 0.0], [100.0, 100.0, 50.0], [0.0, 0.0025, 0.0])
    # a variance of 0.0025 by who is asked, and as much again; the same for everybody
    np.testing.assert_allclose(student.certain_size(closed), [100.0, 50.0, 50.0])


def test_estimates_are_shares_with_the_uncertainty_of_their_people():
    # 60 of 100 and 50 of 200 people; then nobody; then 5 of 10
    weight = np.array([[40.0, 150.0, 0.0, 5.0], [60.0, 50.0, 0.0, 5.0]])
    rng = np.random.default_rng(0)
    found = Estimates.of(weight, weight, 1, rng)
    np.testing.assert_allclose(found.share, [0.6, 0.25, np.nan, 0.5])
    assert found.promised.tolist() == [True, True, False, False]
    np.testing.assert_allclose(found.drawn.mean(axis=0)[:2], [0.6, 0.25], atol=0.01)
    deviation = np.sqrt([0.24 / 100, 0.1875 / 200])
    np.testing.assert_allclose(found.drawn.std(axis=0)[:2], deviation, rtol=0.05)


@pytest.mark.parametrize(("squares", "promised"), [(1.0, True), (4.0, False)])
def test_people_who_count_differently_are_fewer(squares, promised):
    # 100 people, or 25 who count 4 each
    weight = np.full((2, 2), 50.0)
    found = Estimates.of(weight, squares * weight, 1, np.random.default_rng(0))
    assert found.promised.tolist() == [promised, promised]
    deviation = np.sqrt(0.25 * squares / 100)
    np.testing.assert_allclose(found.drawn.std(axis=0), deviation, rtol=0.06)


def test_nothing_is_promised_where_few_are_decided_for():
    # 5 % overall: of 100 people, 5 would be; of 900, 45
    weight = np.array([[100.0, 850.0], [0.0, 50.0]])
    found = Estimates.of(weight, weight, 1, np.random.default_rng(0))
    assert found.promised.tolist() == [False, True]


def test_groups_are_compared_within_their_stratum():
    # numbered by group, then by one of two strata
    promised = np.array([True, True, True, False, True, True])
    parts = compared_parts(promised, 2)
    assert [part.tolist() for part in parts] == [[0, 2, 4], [1, 5]]
    alone = compared_parts(np.array([True, True, False, True]), 2)
    assert [part.tolist() for part in alone] == [[1, 3]]


def estimates_of(share, drawn):
    share = np.array(share)
    return Estimates(share, np.array(drawn), np.ones(len(share), dtype=bool))


def test_groups_are_unequal_if_the_lowest_cannot_be_ahead():
    apart = estimates_of([0.6, 0.4], [[0.61, 0.4], [0.6, 0.41], [0.59, 0.42]])
    assert surely_unequal(apart, np.array([0, 1]))
    near = estimates_of([0.51, 0.5], [[0.53, 0.48], [0.5, 0.5], [0.48, 0.52]])
    assert not surely_unequal(near, np.array([0, 1]))
    same = estimates_of([0.5, 0.5], [[0.4, 0.5]])
    assert not surely_unequal(same, np.array([0, 1]))


def expected_of(estimates, sizes=()):
    problem = SimpleNamespace(
        blocks=SimpleNamespace(sizes=sizes),
        roles=SimpleNamespace(strata=range(len(sizes))),
    )
    return student._expected_rate(problem, "sex", 0.9, estimates)


def test_the_worst_ratio_is_expected():
    drawn = [[0.4, 0.5, 0.8], [0.6, 0.5, 0.8]]  # ratios 0.5 and 0.625
    found = expected_of(estimates_of([0.5, 0.5, 0.8], drawn))
    assert found.rate == pytest.approx(0.5625)
    assert (found.low, found.high) == pytest.approx((0.503125, 0.621875))
    assert found.wanted == 0.9
    assert not found.vacuous


def test_the_rate_may_be_one_if_groups_may_be_equal():
    found = expected_of(estimates_of([0.5, 0.51], [[0.5, 0.4], [0.5, 0.8]]))
    # ratios 0.8 and 0.625
    assert found.rate == pytest.approx(0.7125)
    assert found.high == 1.0


def test_of_several_strata_the_worst_counts():
    drawn = [[0.9, 0.5, 0.9, 0.25]]
    found = expected_of(estimates_of([0.9, 0.5, 0.9, 0.25], drawn), sizes=(2,))
    assert found.rate == 0.5


@pytest.mark.parametrize(
    ("share", "vacuous"), [([0.0, 0.0], True), ([1.0, 1.0], True), ([0.0, 1.0], False)]
)
def test_a_rate_says_nothing_if_the_same_is_decided_for_everybody(share, vacuous):
    assert expected_of(estimates_of(share, [[0.1, 0.2]])).vacuous is vacuous


def test_there_is_no_rate_of_one_group():
    found = expected_of(estimates_of([0.5], [[0.5]]))
    assert (found.rate, found.low, found.high) == (None, None, None)


def test_the_table_has_what_was_taught_and_unknown_outcomes_as_they_were():
    # 2 bad, 4 unknown and 4 good of the first group; 5, 0 and 5 of the second
    empirical = np.array([[0.1, 0.25], [0.2, 0.0], [0.2, 0.25]])
    task = task_of(
        [1, 0, 1, 0],
        [0, 0, 1, 1],
        weight=np.array([4.0, 2.0, 5.0, 5.0]),
        factor=np.array([1.0, 0.5]),
    )
    closed = SimpleNamespace(
        weight=np.array([4.0, 2.0, 2.5, 2.5]), good=np.array([1.0, 0.5, 0.6, 0.0])
    )
    problem = SimpleNamespace(empirical=empirical)
    found = student.taught_table(problem, LEVELS, task, closed)
    # of 20 people: bad 1 and 3.5, unknown 4 and 0, good 5 and 1.5
    np.testing.assert_allclose(found * 15, [[1.0, 3.5], [4.0, 0.0], [5.0, 1.5]])


def test_labels_split_what_is_known_of_a_profile():
    counts = np.array([[2.0, 1.0, 1.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
    problem = SimpleNamespace(profiles=SimpleNamespace(counts=counts))
    task = task_of(
        [1, 0, 0], [0, 0, 0], profile=np.array([0, 0, 2]), weight=np.array([1.0, 2, 4])
    )
    closed = SimpleNamespace(good=np.array([1.0, 0.5, 0.25]))
    found = student._labels(problem, LEVELS, task, closed)
    # two thirds of the three who are known; nobody; a quarter
    expected = [[0.25, 0.25, 0.5], [0, 1, 0], [0.75, 0, 0.25]]
    np.testing.assert_allclose(found, expected)
    assert counts[0, 0] == 2  # the profiles keep their own
