"""Lessons: what each way says of people, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from loop_tasks import groups_of, known_by, task_of

from fairmaxent.relabelling.rule import (
    Teaching,
    dealt,
    lesson,
    soft_labels,
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


@pytest.mark.parametrize(
    ("threshold", "gains", "expected"),
    [
        # twice as far from τ as the gain
        (0.5, [0.1, -0.2], [0.7, 0.1]),
        (0.25, [0.1, -0.1], [0.45, 0.05]),
        # as far as that is a share
        (0.5, [0.3, -0.4], [1.0, 0.0]),
        (0.25, [0.4, -0.2], [1.0, 0.0]),
    ],
)
def test_labels_turn_twice_as_fast_as_likelihood_at_the_border(
    threshold, gains, expected
):
    np.testing.assert_allclose(soft_labels(np.array(gains), threshold), expected)


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


def test_there_are_two_ways_beside_the_table_as_it_is():
    task = groups_of(2, 2, factor=np.array([1.0, 2.0]))
    hidden = replace(task, sees_group=False)
    likely = np.array([0.5, 0.2, 0.6, 0.3])
    offsets = np.log([3.0, 0.5])
    own = known_by(task, likely)
    advised = known_by(task, likely, is_own=False)
    moves = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    blind = known_by(task, likely, moves)
    none = lesson(task, own, 0 * offsets)
    tilted = lesson(task, own, offsets)
    softly = lesson(task, advised, offsets / 10)
    hiding = lesson(hidden, blind, offsets / 10)
    ways = [taught.way for taught in (none, tilted, softly, hiding)]
    assert ways == ["none", "tilt", "soft", "soft"]
    np.testing.assert_array_equal(none.good, [1, 0, 1, 0])
    np.testing.assert_array_equal(none.weight, [1, 1, 2, 2])
    np.testing.assert_array_equal(tilted.good, [1, 0, 1, 0])
    np.testing.assert_allclose(tilted.weight, [1.5, 0.5, 4 / 3, 8 / 3])
    for taught in (softly, hiding):
        np.testing.assert_array_equal(taught.weight, [1, 1, 2, 2])
    # 0.5 and twice what is beyond 0.5, and ln 3 / 10 = 0.110 or −ln 2 / 10 = −0.069
    up = np.log(3) / 10
    down = np.log(2) / 10
    expected = 0.5 + 2 * np.array([up, -0.3 + up, 0.1 - down, -0.2 - down])
    np.testing.assert_allclose(softly.good, expected.clip(0, 1))
    both = (up - down) / 2  # where each group is as likely
    expected = 0.5 + 2 * np.array([up, -0.3 + both, 0.1 + both, -0.2 - down])
    np.testing.assert_allclose(hiding.good, expected.clip(0, 1))


def test_a_student_learns_from_everybody_with_each_outcome_they_count_with():
    lessons = []
    task = task_of([1, 0, 1], [0, 0, 0], train=lambda *taught: lessons.append(taught))
    taught = Teaching("soft", np.array([9.0, 2.0, 4.0]), np.array([1, 0.5, 0.25]))
    train(task, np.array([1, 2]), taught)
    ((rows, good, weight),) = lessons
    assert rows.tolist() == [1, 1, 2, 2]
    assert good.tolist() == [False, True, False, True]
    assert weight.tolist() == [1.0, 1.0, 3.0, 1.0]
