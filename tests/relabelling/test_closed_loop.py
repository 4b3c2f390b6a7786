"""The closed loop: bias, wish, shortfall, steps, and the search itself."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from loop_tasks import attempt_of, groups_of, known_by, state_of, task_of

from fairmaxent.relabelling import closed_loop
from fairmaxent.relabelling.closed_loop import (
    ask_folds,
    asked_again,
    begin,
    best,
    conclude,
    corrected,
    enough,
    is_close,
    is_done,
    kept_near,
    next_round,
    next_student,
    on_everybody,
    search,
    shortfall,
    unseen_shares,
    wanted_shares,
    wish,
)
from fairmaxent.relabelling.rule import lesson
from fairmaxent.relabelling.task import MOST_TRAININGS
from tables import hiring

# Students of three folds learn from two thirds of the people.
FEWER = 0.816496580927726  # √(2/3)


class Nobody:
    """A model of ours that knows nothing."""

    def __init__(self, rows, good, weight):
        pass

    def chances(self, rows):
        return np.full(len(rows), 0.5)


def hiring_task(frame, train, **fields):
    """People of `hiring`, whom no model of ours can foretell."""
    return task_of(
        frame["hired"] == "yes",
        frame["sex"] == "m",
        train=train,
        advise=Nobody,
        **fields,
    )


# ---------------------------------------------------------------- unseen people


def test_a_student_decides_about_unseen_people_as_folds_do_with_more_people():
    gaps = np.array([[0.3, -0.06], [0.1, -0.02]])
    shares = unseen_shares(attempt_of([0.5, 0.4]), gaps)
    np.testing.assert_allclose(shares, [0.5 + 0.2 * FEWER, 0.4 - 0.04 * FEWER])


def test_shares_of_unseen_people_are_shares():
    shares = unseen_shares(attempt_of([0.99, 0.01]), [np.array([0.5, -0.5])])
    assert shares.tolist() == [1.0, 0.0]


class Memory:
    """A student who decides for those it has seen, and for none of the others."""

    def __init__(self, rows, good, weights):
        self.rows = rows

    def chances(self, rows):
        return np.where(np.isin(rows, self.rows), 0.9, 0.2)


def test_the_gap_is_what_is_decided_if_unseen_minus_if_seen():
    task = groups_of(12, 12, train=Memory)
    chances, gap = ask_folds(task, known_by(task), np.zeros(2), 1)
    np.testing.assert_allclose(chances, 0.2)
    np.testing.assert_allclose(gap, [-1.0, -1.0])


# ---------------------------------------------------------------- the wish


@pytest.mark.parametrize(
    ("size", "shares", "expected"),
    [
        # Noise of ¼ / 100 · ½ = 0.00125, of a square of 0.01: an eighth is chance.
        ([100, 100], [0.6, 0.4], [0.5125, 0.4875]),
        # A square of 0.0009 is less than noise: all of it may be chance.
        ([100, 100], [0.53, 0.47], [0.53, 0.47]),
        # Noise of ¼ / 300 · ¼ in a square of 0.0025, of ¼ / 100 · ¾ in one of 0.0225.
        ([300, 100], [0.45, 0.65], [0.5 - 0.05 / 12, 0.5 + 0.15 / 12]),
    ],
)
def test_the_wish_keeps_the_part_of_a_difference_that_chance_explains(
    size, shares, expected
):
    wanted = wanted_shares(np.full(2, 0.5), np.array(shares), np.array(size, float))
    np.testing.assert_allclose(wanted, expected)


def test_a_small_group_keeps_more_of_its_difference():
    size = np.array([500.0, 480.0, 20.0])
    fair = np.full(3, 0.5)
    shares = np.array([0.6, 0.4, 0.5 + 0.1])
    kept = (wanted_shares(fair, shares, size) - fair) / (shares - fair)
    assert kept[0] < 0.1
    assert kept[1] < 0.1
    assert 0.3 < kept[2] < 1


def test_where_nobody_is_decided_for_a_share_is_still_uncertain():
    size = np.array([100.0, 100.0])
    # a variance of 0.01 at least: noise of 0.01 / 100 · ½, in a square of 0.01
    wanted = wanted_shares(np.zeros(2), np.array([0.1, -0.1]), size)
    np.testing.assert_allclose(wanted, [0.0005, -0.0005])


@pytest.mark.parametrize("sizes", [(900, 300), (700, 140, 110, 50)])
def test_little_is_left_of_a_difference_that_is_no_chance(sizes):
    """What is left of it, beside what chance made of it, against leaving nothing."""
    rng = np.random.default_rng(21)
    size = np.array(sizes)
    group = np.repeat(np.arange(len(size)), size)
    errors = []

    def mean(shares):
        return np.full(len(size), size @ shares / size.sum())

    for _ in range(400):
        true = np.clip(rng.normal(0.5, 0.15, len(size)), 0.05, 0.95)
        good = rng.random(len(group)) < true[group]
        raw = np.bincount(group, good) / size
        left = wanted_shares(mean(raw), raw, size.astype(float)) - mean(raw)
        chance = raw - true - mean(raw - true)
        errors.append([np.mean((left - chance) ** 2), np.mean(chance**2)])
    some, nothing = np.mean(errors, axis=0)
    assert some < 1.2 * nothing


def test_as_many_are_decided_for_as_now_or_as_is_most_accurate():
    # Ten of 40 are good, and have the highest chances.
    task = task_of(np.arange(40) >= 30, np.arange(40) % 2)
    known = known_by(task, np.linspace(0.02, 0.98, 40), shares=[0.95, 0.05])
    kept = wish(task, known)
    # Noise of ¼ / 20 · ½ in a square of 0.2025: a thirty-second of 0.45 is chance.
    left = 0.45 * 0.00625 / 0.2025
    np.testing.assert_allclose(kept, [0.5 + left, 0.5 - left])
    most = wish(replace(task, decided="best"), known)
    assert most.mean() == pytest.approx(0.25, abs=0.06)
    # the groups differ as before, but for rates that vary less
    assert 0 < most[0] - most[1] < 2 * left


# ---------------------------------------------------------------- close enough


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.5, 0.5], 0.0),
        # ratios 0.8 and 1: 1 − 0.8 between groups, and half of 1 − 0.9 in all
        ([0.4, 0.5], 0.2 + 0.05),
        # equal, but a tenth too few or too many
        ([0.45, 0.45], 0.05),
        ([0.55, 0.55], 0.05),
    ],
)
def test_a_shortfall_is_between_groups_and_in_all(shares, expected):
    found = shortfall(groups_of(100, 100), np.full(2, 0.5), np.array(shares))
    assert found == pytest.approx(expected)


def test_the_level_is_that_of_all_people_who_should_be_decided_for():
    # 60 and 10 should be decided for; 60 and 5 are
    shares = np.array([0.2, 0.1])
    found = shortfall(groups_of(300, 50), np.full(2, 0.2), shares)
    assert found == pytest.approx(0.5 + 0.5 * 5 / 70)


def test_groups_that_do_not_steer_do_not_fall_short():
    shares = np.array([0.5, 0.5, 0.1])
    assert shortfall(groups_of(100, 100, 10), np.full(3, 0.5), shares) == 0


@pytest.mark.parametrize(
    ("sizes", "wanted", "expected"),
    [
        # a quarter of √(2 · 1 / 100), and of √(2 · 4 / 100)
        ((100, 100), [0.5, 0.5], 0.25 * np.sqrt(0.02)),
        ((100, 100), [0.2, 0.2], 0.25 * np.sqrt(0.08)),
        # the smallest group that steers, and the mean share of all people: 0.2
        ((300, 100, 20), [0.2, 0.2, 0.2], 0.25 * np.sqrt(0.08)),
        ((300, 100), [0.1, 0.5], 0.25 * np.sqrt(0.08)),
        # never less
        ((40_000, 40_000), [0.5, 0.5], 0.005),
    ],
)
def test_a_shortfall_that_may_be_chance_is_enough(sizes, wanted, expected):
    assert enough(groups_of(*sizes), np.array(wanted)) == pytest.approx(expected)


def test_an_attempt_is_close_within_what_is_enough():
    # enough is 0.035
    task = groups_of(100, 100)
    for shares, expected in (([0.5, 0.485], False), ([0.5, 0.49], True)):
        attempt = attempt_of(shares)
        assert is_close(task, state_of(attempt), attempt) is expected


def test_what_is_close_is_about_unseen_people():
    task = groups_of(100, 100)
    attempt = attempt_of([0.5, 0.5])
    state = state_of(attempt, gaps=[[0.0, 0.0], [-0.1 / FEWER, 0.0]])
    assert not is_close(task, state, attempt)


def test_the_best_attempt_is_the_closest_and_of_those_alike_the_last():
    first = attempt_of([0.4, 0.5])
    second = attempt_of([0.48, 0.5])
    third = attempt_of([0.48, 0.5])
    fourth = attempt_of([0.5, 0.4])
    state = state_of(first, second, third, fourth)
    assert best(groups_of(100, 100), state) is third


# ---------------------------------------------------------------- steps


def step(scores, wanted, tries=0, offsets=(0.0, 0.0), **fields):
    """Move the offset of 100 people, of whom half are decided for now."""
    task = groups_of(100, 100, **fields)
    chances = 1 / (1 + np.exp(-np.concatenate([scores, scores])))
    state = state_of(
        attempt_of([0.5, 0.5]),
        wanted=[wanted, 0.5],  # nothing is wanted of the second group
        known=known_by(task),
        tries=tries,
    )
    offsets = np.array(offsets)
    found = corrected(task, state, offsets, chances, np.full(2, 0.5))
    assert found[1] == pytest.approx(offsets[1], abs=0.05)
    return found[0]


EVEN = np.arange(-50, 50) / 25 + 0.02  # log-odds −1.98, −1.94, …, 1.98


def test_a_step_moves_the_border_to_the_wanted_share():
    # A quarter of all are between 0 and 1; of 100 people, 100 / 110 of a step is made.
    reliable = 100 / 110
    assert step(EVEN, 0.75) == pytest.approx(reliable, abs=0.02)
    assert step(EVEN, 0.25) == pytest.approx(-reliable, abs=0.02)


def test_a_step_starts_at_the_offsets_and_is_damped_after_the_first_try():
    full = step(EVEN, 0.75)
    assert step(EVEN, 0.75, offsets=(0.5, 0.1)) == pytest.approx(0.5 + full, abs=0.01)
    for tries in (1, 2):
        assert step(EVEN, 0.75, tries) == pytest.approx(0.8 * full, abs=0.02)


def test_who_is_close_is_not_moved():
    assert step(EVEN, 0.51) == 0.0


EVERY_OTHER = np.array([0.5, 0.5])  # of each group, as is wanted


def test_a_group_is_moved_at_most_so_far():
    task = groups_of(1, 1)
    far = np.array([99.0, -99.0])
    near = kept_near(task, known_by(task), EVERY_OTHER, far)
    assert near.tolist() == [8.0, -8.0]
    near = kept_near(task, known_by(task, is_own=False), EVERY_OTHER, far)
    assert near.tolist() == [3.0, -3.0]


def test_far_offsets_are_shortened_so_that_the_wish_is_not_missed():
    task = groups_of(2, 2, 2)
    # x hardly tells of groups: cut one by one, the offsets would favour nobody
    hardly = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3]] * 3)
    known = known_by(task, moves=hardly, is_own=False)
    wanted = np.full(3, 0.5)
    far = np.array([60.0, -25.0, -40.0])
    assert (hardly @ np.clip(far, -3 / 0.4, 3 / 0.4) < 0).all()
    shorter = kept_near(task, known, wanted, far)
    np.testing.assert_allclose(shorter, far * 3 / np.abs(hardly @ far).max())
    # x tells all of a third group, apart from the others, of which nothing is wanted
    task = groups_of(2, 2, 1)
    apart = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    known = known_by(task, moves=apart, is_own=False)
    wanted = np.array([0.5, 0.5, 0.0])
    shorter = kept_near(task, known, wanted, np.array([0.5, -0.5, -99.0]))
    assert shorter.tolist() == [0.5, -0.5, -3.0]


@pytest.mark.parametrize("far", [9.0, -9.0])
def test_no_table_is_taught_in_which_all_are_good_or_none(far):
    task = groups_of(2, 2)
    known = known_by(task, moves=np.full((4, 2), 0.5), is_own=False)
    offsets = kept_near(task, known, EVERY_OTHER, np.array([far, far]))
    labels = lesson(task, known, offsets).good
    assert 0.02 < labels.mean() < 0.98
    assert np.sign(offsets).tolist() == [np.sign(far)] * 2
    # where everybody is sure to be good, there is nothing to be taught
    sure = known_by(task, chances=2.0, moves=np.full((4, 2), 0.5), is_own=False)
    assert not kept_near(task, sure, EVERY_OTHER, np.array([3.0, 3.0])).any()


# ---------------------------------------------------------------- the search


def test_folds_confirm_a_student_that_is_close_and_correct_one_that_is_not(
    monkeypatch,
):
    called = []
    monkeypatch.setattr(
        closed_loop, "asked_again", lambda task, state, chosen: called.append(chosen)
    )
    monkeypatch.setattr(
        closed_loop, "next_student", lambda task, state: called.append("student")
    )
    task = groups_of(100, 100)
    close, far = attempt_of([0.5, 0.5]), attempt_of([0.3, 0.5])
    next_round(task, state_of(wanted=[0.5, 0.5]))
    next_round(task, state_of(far, tries=1))
    next_round(task, state_of(far, far, tries=2))
    next_round(task, state_of(far, close, tries=1))
    assert called == ["student", "student", far, close]


@pytest.mark.parametrize(
    ("share", "asked", "tries", "trainings", "expected"),
    [
        (0.5, 1, 1, 6.0, False),  # close, which no new folds have confirmed
        (0.5, 2, 0, 8.0, True),
        (0.3, 2, 0, 8.0, False),  # far, and may be tried twice more
        (0.3, 2, 1, 9.0, False),
        (0.3, 2, 2, 10.0, True),
        (0.3, 1, 2, 8.0, False),  # folds are asked once more
        (0.3, 1, 2, MOST_TRAININGS - 1.5, True),  # for which there is nothing left
        (0.3, 1, 1, MOST_TRAININGS - 0.5, True),
    ],
)
def test_the_search_ends_if_new_folds_confirm_or_enough_was_tried(
    share, asked, tries, trainings, expected
):
    gaps = np.zeros((asked, 2))
    attempt = attempt_of([share, 0.5])
    state = state_of(attempt, gaps=gaps, tries=tries, trainings=trainings)
    assert is_done(groups_of(100, 100), state) is expected


def test_there_is_no_end_before_a_student():
    assert not is_done(groups_of(100, 100), state_of(trainings=99.0))


class Decides:
    """A student who decides for these shares of the groups, seen or not."""

    def __init__(self, group, shares):
        self.group = group
        self.shares = np.array(shares)

    def __call__(self, rows, good, weight):
        return self

    def chances(self, rows):
        place = rows % 100 + 0.5
        return np.where(place < 100 * self.shares[self.group[rows]], 0.9, 0.1)


def deciding(shares, *sizes, **fields):
    """People of whom a student decides for these shares, whatever it is taught."""
    task = groups_of(*sizes)
    return replace(task, train=Decides(task.group, shares), advise=Nobody, **fields)


def test_a_search_begins_where_thresholds_of_students_of_folds_are():
    task = deciding([0.7, 0.3], 100, 100)
    known = known_by(task, EVEN.tolist() * 2, shares=[0.7, 0.3])
    known = replace(known, chances=1 / (1 + np.exp(-known.chances)))
    state = begin(task, known)
    # what students of folds decide is as far from the wish as what was known
    assert state.offsets[0] < -0.5 < 0.5 < state.offsets[1]
    assert state.attempts == ()
    assert state.trainings == known.trainings + 2
    np.testing.assert_allclose(state.unseen_gaps, [[0.0, 0.0]], atol=0.08)
    # where nothing is missing, nothing is moved
    same = deciding([0.5, 0.5], 100, 100)
    assert begin(same, known_by(same)).offsets.tolist() == [0.0, 0.0]


def test_a_student_is_followed_by_offsets_for_what_unseen_people_lack():
    task = deciding([0.5, 0.5], 100, 100)
    known = known_by(task)
    offsets = np.array([1.0, -1.0])
    gaps = [[-0.2 / FEWER, 0.2 / FEWER]]
    state = next_student(task, state_of(gaps=gaps, known=known, offsets=offsets))
    (attempt,) = state.attempts
    np.testing.assert_array_equal(attempt.offsets, offsets)
    np.testing.assert_allclose(attempt.shares, [0.5, 0.5])
    # of the unseen, 0.3 and 0.7 are decided for
    assert state.offsets[0] > 1.1
    assert state.offsets[1] < -1.1
    assert (state.trainings, state.tries) == (6.0, 1)


def test_folds_that_are_asked_again_go_on_from_the_chosen_student():
    task = deciding([0.5, 0.5], 100, 100)
    chosen = attempt_of([0.3, 0.5], chances=np.tile(1 / (1 + np.exp(-EVEN)), 2))
    state = state_of(chosen, known=known_by(task), tries=2)
    after = asked_again(task, state, chosen)
    assert len(after.unseen_gaps) == 2
    assert (after.trainings, after.tries) == (7.0, 0)
    assert after.offsets[0] > chosen.offsets[0] + 0.3
    assert after.offsets[1] == pytest.approx(chosen.offsets[1], abs=0.1)


def test_what_was_found_among_some_is_taught_to_everybody_and_corrected_once():
    task = deciding([0.5, 0.5], 1000, 1000)
    rows = task.sample(500)
    searched = task.part(rows)
    known = known_by(task)
    close = attempt_of([0.5, 0.5], offsets=[0.3, -0.3])
    gaps = [[-0.2, 0.0], [0.0, 0.0]]
    state = state_of(close, gaps=gaps, known=known.of(rows), trainings=10.0)
    whole = on_everybody(task, known, searched, state)
    first, second = whole.attempts
    np.testing.assert_array_equal(first.offsets, [0.3, -0.3])
    # gaps fall with the root of the number of people: 0.1 and 0, of which the mean
    np.testing.assert_allclose(whole.unseen_gaps, [[-0.1, 0.0], [0.0, 0.0]])
    assert second.offsets[0] > 0.3
    # a quarter of the search's 8, and two of everybody
    assert whole.trainings == pytest.approx(2.0 + 2.0 + 2.0)
    # one is enough if it is close
    state = state_of(close, known=known.of(rows), trainings=10.0)
    whole = on_everybody(task, known, searched, state)
    assert len(whole.attempts) == 1


def test_what_is_found_is_about_unseen_people():
    task = groups_of(100, 100)
    known = known_by(task, shares=[0.8, 0.2])
    other = attempt_of([0.3, 0.3], offsets=[0.0, 0.0])
    chosen = attempt_of([0.5, 0.5], offsets=np.log([3.0, 0.5]), student="chosen")
    gaps = [[0.02, -0.01], [0.0, 0.03]]
    state = state_of(other, chosen, gaps=gaps, known=known, trainings=8.7)
    found = conclude(task, state)
    assert found.student == "chosen"
    assert found.way == "tilt"
    np.testing.assert_allclose(found.shares, [0.5 + 0.01 * FEWER, 0.5 + 0.01 * FEWER])
    np.testing.assert_allclose(found.before, [0.8, 0.2])
    # of the gaps from one round to the next
    np.testing.assert_allclose(found.noise, [0.01**2, 0.02**2])
    np.testing.assert_allclose(found.weight[:2], [1.5, 0.5])
    assert found.trainings == 8.7


class Counted:
    """A student who notes how many people it learned from, and decides at random."""

    people: ClassVar[list[int]] = []

    def __init__(self, rows, good, weight):
        self.people.append(len(np.unique(rows)))
        self.rows = rows

    def chances(self, rows):
        return np.random.default_rng(len(self.rows)).random(len(rows))


@pytest.mark.parametrize("sees_group", [True, False])
@pytest.mark.parametrize("most", [10_000, 200])
def test_trainings_are_counted_in_those_on_everybody(most, sees_group, monkeypatch):
    monkeypatch.setattr(closed_loop, "MOST_SEARCHED", most)
    monkeypatch.setattr(Counted, "people", [])
    task = hiring_task(hiring(1, rows=600), Counted, sees_group=sees_group)
    found = search(replace(task, advise=Counted))
    assert found.trainings == pytest.approx(sum(Counted.people) / 600, abs=0.1)
    assert max(Counted.people) == 600
    if most == 200:  # only the last ones learned from everybody
        assert 1 <= Counted.people.count(600) <= 2


def test_progress_is_told_before_each_training():
    told = []
    trained = []

    def train(rows, good, weight):
        trained.append(len(told))
        return Memory(rows, good, weight)

    search(hiring_task(hiring(1, rows=60), train), told.append)
    assert trained == list(range(1, len(trained) + 1))
    assert told[:3] == [1 / 25, 2 / 25, 3 / 25]


def test_no_student_judges_whom_it_learned_from_and_nothing_is_tried_twice():
    """Each round has folds of its own, and each student of everybody its lesson."""
    frame = hiring(13, rows=300)
    folds = []
    lessons = []

    class Spy:
        def __init__(self, rows, good, weights):
            self.rows = set(rows.tolist())
            lessons.append((len(self.rows) == 300) * weights.tobytes())

        def chances(self, rows):
            unseen = set(range(300)) - self.rows
            if len(rows) == 300 and unseen:  # the folds of a round
                folds.append(frozenset(unseen))
            return np.random.default_rng(len(rows)).random(len(rows)) * np.where(
                task.group[rows], 1.0, 0.6
            )

    task = hiring_task(frame, Spy)
    search(task)
    rounds = [folds[start : start + 3] for start in range(0, len(folds), 3)]
    assert len(rounds) == 2
    assert len(set(folds)) == len(folds)
    assert all(set().union(*asked) == set(range(300)) for asked in rounds)
    everybody = list(filter(None, lessons))
    assert len(set(everybody)) == len(everybody) >= 2


def test_a_student_who_decides_equally_is_left_alone():
    task = deciding([0.5, 0.5], 2000, 2000)
    found = search(replace(task, advise=task.train))
    assert not found.offsets.any()
    assert found.way == "none"
    # two thirds four times, folds twice, and one of everybody
    assert found.trainings == pytest.approx(4 * 2 / 3 + 2 * 2 + 1, abs=0.02)


def test_if_the_group_is_hidden_students_of_folds_have_teachers_of_their_own(
    monkeypatch,
):
    task = groups_of(30, 30, sees_group=False, train=Nobody)
    known = known_by(task)
    own = [replace(known, trainings=float(held)) for held in range(3)]
    taught = []

    def noted(task, known, offsets):
        taught.append(known)
        return lesson(task, known, offsets)

    monkeypatch.setattr(closed_loop, "known_without", lambda *_: iter(own))
    monkeypatch.setattr(closed_loop, "lesson", noted)
    ask_folds(task, known, np.array([0.1, -0.1]), 2)
    assert taught == own
    taught.clear()
    seen = replace(task, sees_group=True)
    ask_folds(seen, known, np.array([0.1, -0.1]), 2)
    assert taught == [known] * 3
