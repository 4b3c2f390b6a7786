"""Lessons: what each of the five ways says of people, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from loop_tasks import groups_of, task_of

from fairmaxent.relabelling.lessons import (
    Teaching,
    along,
    dealt,
    lesson,
    likely_outcomes,
    rightly_judged,
    soft_tilt,
    surprise,
    tilt,
    train,
)


def test_a_tilt_weighs_good_outcomes_and_keeps_the_weight_of_groups():
    good = np.array([1.0, 0.0, 1.0, 0.0])
    offsets = np.log([3.0, 0.5])
    weight = tilt(np.ones(4), good, np.array([0, 0, 1, 1]), offsets)
    # 3 : 1 and 1 : 2, each of 2 people in all
    np.testing.assert_allclose(weight, [1.5, 0.5, 2 / 3, 4 / 3])


def test_a_group_without_people_can_be_tilted():
    weight = tilt(np.ones(2), np.array([1.0, 0.0]), np.array([1, 1]), np.log([2, 3]))
    np.testing.assert_allclose(weight, [1.5, 0.5])


def test_a_soft_tilt_moves_the_log_odds():
    likely = np.array([0.5, 0.2, 0.0])
    shares = soft_tilt(likely, np.log([3.0, 0.5, 99.0]))
    # odds 1·3, ¼·½ and, as nobody is sure, 1/99·99
    np.testing.assert_allclose(shares, [3 / 4, 1 / 9, 1 / 2])


@pytest.mark.parametrize(
    ("threshold", "outcome", "offset", "expected"),
    [
        # all are shares already, so M = 1
        (0.5, [0.6, 0.4], [0.1, 0.1], [0.7, 0.5]),
        # 0.7 above τ, where 0.5 is left: M = 1.4
        (0.5, [1.0, 0.0], [0.2, 0.2], [1.0, 0.5 - 0.3 / 1.4]),
        # 0.5 below τ, where 0.25 is left: M = 2
        (0.25, [1.0, 0.0], [-0.25, -0.25], [0.5, 0.0]),
        # each by the offset of their group: M = 2
        (0.5, [1.0, 0.0], [0.5, -0.5], [1.0, 0.0]),
    ],
)
def test_along_moves_what_is_compared_with_the_threshold(
    threshold, outcome, offset, expected
):
    shares = along(np.array(outcome), np.array(offset), threshold)
    np.testing.assert_allclose(shares, expected, atol=1e-15)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        # too few are good: half of the bad ones change
        ([0.75, 0.75, 0.75, 0.75], [1.0, 1.0, 0.5, 0.5]),
        # too many: half of the good ones do
        ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]),
        # the mean of the profile counts
        ([0.9, 0.6, 0.9, 0.6], [1.0, 1.0, 0.5, 0.5]),
    ],
)
def test_people_keep_their_outcome_as_far_as_their_profile_allows(shares, expected):
    task = task_of([1, 1, 0, 0], [0] * 4, profile=np.zeros(4, dtype=int))
    np.testing.assert_allclose(dealt(task, np.array(shares)), expected)


def test_alone_in_a_profile_one_is_dealt_the_own_share():
    task = task_of([1, 0], [0, 1])
    np.testing.assert_allclose(dealt(task, np.array([0.3, 0.2])), [0.3, 0.2])


def test_there_are_five_ways():
    task = groups_of(2, 2, factor=np.array([1.0, 2.0]))
    hidden = replace(task, sees_group=False)
    likely = np.array([0.5, 0.2, 0.5, 0.2])
    offsets = np.log([3.0, 0.5])
    ways = [
        lesson(task, None, 0 * offsets),
        lesson(task, None, offsets),
        lesson(task, likely, offsets),
        lesson(hidden, None, offsets / 10),
        lesson(hidden, likely, offsets / 10),
    ]
    names = ["none", "tilt", "soft tilt", "along", "soft along"]
    assert [taught.way for taught in ways] == names
    none, tilted, softly, straight, soft = ways
    np.testing.assert_array_equal(none.good, [1, 0, 1, 0])
    np.testing.assert_array_equal(none.weight, [1, 1, 2, 2])
    np.testing.assert_array_equal(tilted.good, [1, 0, 1, 0])
    np.testing.assert_allclose(tilted.weight, [1.5, 0.5, 4 / 3, 8 / 3])
    for taught in (softly, straight, soft):
        np.testing.assert_array_equal(taught.weight, [1, 1, 2, 2])
    np.testing.assert_allclose(softly.good, [3 / 4, 3 / 7, 1 / 3, 1 / 9])
    # moved by ln 3 / 10 = 0.110 and −ln 2 / 10 = −0.069; M = 1.22, and 1
    up = np.log(3) / 10
    down = np.log(2) / 10
    most = (0.5 + up) / 0.5
    beyond = np.array([0.5 + up, -0.5 + up, 0.5 - down, -0.5 - down])
    np.testing.assert_allclose(straight.good, 0.5 + beyond / most)
    np.testing.assert_allclose(soft.good, likely + np.array([up, up, -down, -down]))


def test_a_student_learns_from_everybody_with_each_outcome_they_count_with():
    lessons = []
    task = task_of([1, 0, 1], [0, 0, 0], train=lambda *taught: lessons.append(taught))
    taught = Teaching("soft tilt", np.array([9.0, 2.0, 4.0]), np.array([1, 0.5, 0.25]))
    train(task, np.array([1, 2]), taught)
    ((rows, good, weight),) = lessons
    assert rows.tolist() == [1, 1, 2, 2]
    assert good.tolist() == [False, True, False, True]
    assert weight.tolist() == [1.0, 1.0, 3.0, 1.0]


def test_surprise_is_that_of_what_happened():
    good = np.array([True, False, True])
    found = surprise(good, np.array([0.5, 0.2, 0.0]), np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx(-np.log(0.5) - 2 * np.log(0.8) - 3 * np.log(0.01))


def test_who_is_judged_rightly_is_counted_by_weight():
    task = task_of([1, 0, 1], [0] * 3, threshold=0.75, weight=np.array([1.0, 2.0, 4.0]))
    # the border is ln 3 = 1.1, so only the last one is decided for
    assert rightly_judged(task, np.array([1.0, 1.0, 2.0])) == 6.0


def taught_by(boosted, own, known):
    """η, and the folds of boosting, if each is right with this probability.

    Students are right with the probability `own` about unseen people, and decide as
    `known` says about the 20 people they have seen.
    """
    good = np.arange(20) % 2 == 0
    asked_for = []

    def foretell(labels, rows, asked):
        asked_for.append(len(asked))
        chance = np.where(good[asked], boosted, 1 - boosted)
        return np.column_stack([1 - chance, chance])

    task = task_of(good, [0] * 20, foretell=foretell)
    certain = np.log(own / (1 - own))
    unseen = np.where(good, certain, -certain)
    seen = np.where(good, 1.0, -1.0)
    # some whom students of folds would judge wrongly
    wrong = np.arange(20) < 20 - known
    unseen = np.where(wrong, -unseen, unseen)
    found = likely_outcomes(task, unseen, seen)
    return found, len(asked_for)


def test_outcomes_are_softened_if_boosting_foretells_them_better():
    # −ln 0.61 is 3.2 % below −ln 0.6, and −ln 0.605 is 1.6 % below
    found, folds = taught_by(boosted=0.61, own=0.6, known=20)
    np.testing.assert_allclose(found, np.tile([0.61, 0.39], 10))
    assert folds == 3
    assert taught_by(boosted=0.605, own=0.6, known=20)[0] is None
    assert taught_by(boosted=0.55, own=0.6, known=20)[0] is None


def test_outcomes_are_softened_if_a_student_knows_them_by_heart():
    # two of 20 are more than 8 %; boosting is the teacher, in more folds
    found, folds = taught_by(boosted=0.7, own=0.6, known=18)
    np.testing.assert_allclose(found, np.tile([0.7, 0.3], 10))
    assert folds == 3 + 10
    # or the students themselves, if boosting is worse
    found, folds = taught_by(boosted=0.5, own=0.6, known=18)
    np.testing.assert_allclose(found, [0.4, 0.6, *np.tile([0.6, 0.4], 9)])
    assert folds == 3
    # one of 20 is less
    assert taught_by(boosted=0.5, own=0.6, known=19)[0] is None
