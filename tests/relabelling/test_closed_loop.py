"""The closed loop: bias, wish, shortfall, steps, and the search itself."""

from dataclasses import replace

import numpy as np
import pytest
from loop_tasks import attempt_of, groups_of, state_of, task_of

from fairmaxent.relabelling import closed_loop
from fairmaxent.relabelling.closed_loop import (
    accuracy,
    ask_folds,
    begin,
    best,
    conclude,
    enough,
    fair_wish,
    first_offsets,
    is_close,
    is_done,
    moved,
    next_round,
    next_student,
    search,
    shortfall,
    unseen_gap,
    unseen_shares,
    wanted_shares,
)
from fairmaxent.relabelling.lessons import Slopes
from tables import hiring

# Students of three folds learn from two thirds of the people.
FEWER = 0.816496580927726  # √(2/3)


def hiring_task(frame, train):
    """People of `hiring`, whom nobody can foretell, and the mean share as the wish."""
    return task_of(
        frame["hired"] == "yes",
        frame["sex"] == "m",
        train=train,
        foretell=lambda labels, rows, asked: np.tile([1.0, 0.0], (len(asked), 1)),
        fair_shares=lambda shares: np.full(2, shares.mean()),
    )


# ---------------------------------------------------------------- unseen people


def test_a_student_decides_about_unseen_people_as_folds_do_with_more_people():
    gaps = np.array([[0.3, -0.06], [0.1, -0.02]])
    expected = [0.2 * FEWER, -0.04 * FEWER]
    np.testing.assert_allclose(unseen_gap(gaps), expected)
    shares = unseen_shares(attempt_of([0.5, 0.4]), gaps)
    np.testing.assert_allclose(shares, [0.5 + 0.2 * FEWER, 0.4 - 0.04 * FEWER])


def test_students_of_the_data_are_not_compared_with_those_of_other_tables():
    state = state_of(attempt_of([0.5, 0.5]), gaps=[[0.1, 0], [0.2, 0], [0.3, 0]])
    untaught = state.gaps_of(attempt_of([0.5, 0.5], offsets=[0, 0]))
    taught = state.gaps_of(attempt_of([0.5, 0.5], offsets=[0, 0.1]))
    assert [gap[0] for gap in untaught] == [0.1]
    assert [gap[0] for gap in taught] == [0.2, 0.3]


class Memory:
    """A student who decides for those it has seen, and for none of the others."""

    def __init__(self, rows, good, weights):
        self.rows = rows

    def chances(self, rows):
        return np.where(np.isin(rows, self.rows), 0.9, 0.2)


def test_the_gap_is_what_is_decided_if_unseen_minus_if_seen():
    task = groups_of(12, 12, train=Memory)
    scores, gap = ask_folds(task, None, np.zeros(2), 1)
    np.testing.assert_allclose(scores, np.log(0.2 / 0.8))
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


def test_the_most_accurate_share_is_one_of_those_who_are_compared():
    """Equal opportunity: shares of people whose outcome is good.

    The student knows everybody's outcome.
    """
    task = groups_of(200, 200)
    task = replace(task, compared=task.good)
    scores = task.good + np.linspace(0, 0.1, 400)
    assert accuracy(task, scores, np.ones(2)) == pytest.approx(400, abs=2)
    # half of those with the good outcome, who are half of all
    assert accuracy(task, scores, np.full(2, 0.5)) == pytest.approx(300, abs=2)


def test_as_many_are_decided_for_as_now_or_as_is_most_accurate():
    # Ten of 40 are good, and have the highest scores.
    good = np.arange(40) >= 30
    task = task_of(good, np.arange(40) % 2)
    task = replace(task, fair_shares=lambda shares: np.full(2, shares.mean()))
    now = np.array([0.7, 0.5])
    fair, shares = fair_wish(task, np.arange(40.0), now)
    np.testing.assert_allclose(fair, [0.6, 0.6])
    np.testing.assert_array_equal(shares, now)
    fair, shares = fair_wish(replace(task, decided="best"), np.arange(40.0), now)
    np.testing.assert_allclose(fair, [0.25, 0.25], atol=0.03)
    # the groups differ as before
    np.testing.assert_allclose(shares - fair, [0.1, -0.1])


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
    attempt = attempt_of(shares)
    found = shortfall(groups_of(100, 100), state_of(attempt), attempt)
    assert found == pytest.approx(expected)


def test_the_level_is_that_of_all_people_who_should_be_decided_for():
    # 60 and 10 should be decided for; 60 and 5 are
    attempt = attempt_of([0.2, 0.1])
    state = state_of(attempt, wanted=[0.2, 0.2])
    found = shortfall(groups_of(300, 50), state, attempt)
    assert found == pytest.approx(0.5 + 0.5 * 5 / 70)


def test_a_shortfall_is_about_unseen_people():
    attempt = attempt_of([0.5, 0.5])
    state = state_of(attempt, gaps=[[0.0, 0.0], [-0.1 / FEWER, 0.0]])
    found = shortfall(groups_of(100, 100), state, attempt)
    assert found == pytest.approx(0.2 + 0.05)


def test_groups_that_do_not_steer_do_not_fall_short():
    attempt = attempt_of([0.5, 0.5, 0.1])
    state = state_of(attempt, wanted=[0.5] * 3, gaps=np.zeros((2, 3)))
    assert shortfall(groups_of(100, 100, 10), state, attempt) == 0


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


def test_the_best_attempt_is_the_closest_and_of_those_alike_the_last():
    first = attempt_of([0.4, 0.5])
    second = attempt_of([0.48, 0.5])
    third = attempt_of([0.48, 0.5])
    fourth = attempt_of([0.5, 0.4])
    state = state_of(first, second, third, fourth)
    assert best(groups_of(100, 100), state, state.attempts) is third


# ---------------------------------------------------------------- steps


def step(scores, wanted, damping=1.0, offsets=(0.0, 0.0), **fields):
    """Move the offset of ten people, of whom all are decided for now."""
    task = groups_of(10, 10, **fields)
    scores = np.concatenate([scores, scores])
    shares = np.array([0.9, 0.5])
    wanted = np.array([wanted, 0.5])  # nothing is wanted of the second group
    found, slopes = moved(
        task, None, np.array(offsets), scores, shares, wanted, damping
    )
    assert slopes is None
    assert found[1] == offsets[1]
    return found[0]


def test_a_step_moves_the_border_to_the_wanted_share():
    scores = np.arange(10) / 2 + 0.25  # 0.25, 0.75, …, 4.75
    # Half of them are above 2.5, so offsets fall by that; of ten people, by half of it.
    assert step(scores, 0.5) == pytest.approx(-1.25)
    assert step(scores, 0.2) == pytest.approx(-2.0)
    assert step(-scores, 0.5) == pytest.approx(1.25)


def test_a_step_starts_at_the_offsets_and_is_damped():
    scores = np.arange(10) / 2 + 0.25
    assert step(scores, 0.5, offsets=(0.5, 0.1)) == pytest.approx(0.5 - 1.25)
    assert step(scores, 0.5, damping=0.8) == pytest.approx(-1.0)


def test_the_border_is_where_the_threshold_is():
    scores = np.arange(10) / 2 + 0.25
    border = np.log(0.75 / 0.25)
    assert step(scores, 0.5, threshold=0.75) == pytest.approx((border - 2.5) / 2)


def test_a_group_is_moved_at_most_so_far():
    scores = np.arange(10) + 10.5
    assert step(scores, 0.5) == -3.0
    assert step(-scores, 0.5) == 3.0
    assert step(scores, 0.5, offsets=(-6.0, 0.0)) == -8.0
    assert step(-scores, 0.5, offsets=(6.0, 0.0)) == 8.0


def test_if_the_group_is_hidden_slopes_lead():
    slopes = Slopes(
        size=np.array([10.0, 10.0]),
        first=np.eye(2),
        now=np.eye(2),
        offsets=np.zeros(2),
        shares=np.zeros(2),
    )
    shares = np.array([0.4, 0.6])
    wanted = np.array([0.5, 0.5])
    found, after = moved(
        groups_of(10, 10), slopes, np.zeros(2), np.zeros(20), shares, wanted, 0.8
    )
    # of ten people half of 0.1, damped; 1 % goes to the ridge
    np.testing.assert_allclose(found, [0.04 / 1.01, -0.04 / 1.01], rtol=1e-6)
    np.testing.assert_array_equal(after.shares, shares)


def test_the_first_offsets_of_a_softened_table_are_those_of_what_is_likely():
    task = groups_of(10, 10)
    shares = np.array([0.9, 0.5])
    wanted = np.array([0.5, 0.5])
    scores = np.tile(np.arange(10) / 2 + 0.25, 2)
    offsets, _ = first_offsets(task, scores, shares, wanted, None)
    np.testing.assert_allclose(offsets, [-1.25, 0.0])
    # every log-odds as far on the other side
    likely = 1 / (1 + np.exp(scores))
    offsets, slopes = first_offsets(task, scores, shares, wanted, likely)
    np.testing.assert_allclose(offsets, [1.25, 0.0])
    assert slopes is None


def test_a_hidden_group_is_foretold_for_the_first_offsets():
    # P(g | x) is known, and half of each group is decided for
    scores = np.tile(np.linspace(-1, 1, 50), 2)
    task = groups_of(50, 50, sees_group=False)
    known = np.eye(2)[task.group]
    task = replace(task, foretell=lambda labels, rows, asked: known[asked])
    wanted = np.array([0.7, 0.3])
    offsets, slopes = first_offsets(task, scores, np.full(2, 0.5), wanted, None)
    # η is 0.4 at log-odds −0.405, above which are 70 % of log-odds from −1 to 1
    np.testing.assert_allclose(offsets, [0.1, -0.1], atol=0.01)
    np.testing.assert_array_equal(slopes.offsets, offsets)
    offsets, _ = first_offsets(
        task, scores, np.full(2, 0.5), wanted, np.tile(np.linspace(0, 1, 50), 2)
    )
    np.testing.assert_allclose(offsets, [0.2, -0.2], atol=0.01)


# ---------------------------------------------------------------- the search


def rounds_of(monkeypatch, state, **fields):
    """The damping of each student that a round tries, and the folds that it asks."""
    damped = []
    asked = []

    def student(task, state, damping):
        damped.append(damping)
        attempt = attempt_of([0.1, 0.5])
        return replace(state, attempts=(*state.attempts, attempt), current=attempt)

    def folds(task, likely, offsets, number):
        asked.append(number)
        return None, np.array([0.01, 0.02])

    monkeypatch.setattr(closed_loop, "next_student", student)
    monkeypatch.setattr(closed_loop, "ask_folds", folds)
    after = next_round(groups_of(100, 100, **fields), state)
    assert after.rounds == state.rounds + 1
    assert len(after.unseen_gaps) == len(state.unseen_gaps) + len(asked)
    return damped, asked, after


@pytest.mark.parametrize(
    ("sees_group", "rounds", "expected"),
    [
        (True, 0, [0.8, 0.7, 0.5]),
        (True, 1, [1.0, 0.8, 0.7, 0.5]),
        (False, 0, [0.8, 0.7]),
        (False, 1, [1.0, 0.8, 0.7]),
    ],
)
def test_a_round_tries_students_with_shorter_steps(
    monkeypatch, sees_group, rounds, expected
):
    start = [attempt_of([0.3, 0.5], offsets=[0, 0]), attempt_of([0.2, 0.5])]
    state = state_of(*start, rounds=rounds)
    damped, asked, after = rounds_of(monkeypatch, state, sees_group=sees_group)
    assert damped == expected
    assert asked == [2]
    # The first attempt is closer, but it was not taught.
    assert after.current is start[1]


def test_a_round_ends_with_a_student_who_is_close(monkeypatch):
    state = state_of(attempt_of([0.1, 0.5]), attempt_of([0.5, 0.5]), rounds=1)
    damped, asked, _ = rounds_of(monkeypatch, state)
    assert damped == []
    assert asked == [2]


def test_after_the_last_round_no_folds_are_asked(monkeypatch):
    state = state_of(attempt_of([0.1, 0.5]), attempt_of([0.2, 0.5]), rounds=2)
    damped, asked, _ = rounds_of(monkeypatch, state)
    assert len(damped) == 4
    assert asked == []


@pytest.mark.parametrize(
    ("rounds", "share", "expected"),
    [(0, 0.5, False), (1, 0.5, True), (1, 0.3, False), (3, 0.3, True)],
)
def test_the_search_ends_if_new_folds_confirm_a_student(rounds, share, expected):
    state = state_of(attempt_of([share, 0.5]), attempt_of([0.1, 0.5]), rounds=rounds)
    assert is_done(groups_of(100, 100), state) is expected


def test_a_student_is_taught_what_unseen_people_lack(monkeypatch):
    scores = np.tile(np.arange(10) / 10 - 0.45, 2)  # −0.45, −0.35, …, 0.45
    current = attempt_of([0.5, 0.5], offsets=[1.0, -1.0], scores=scores)
    gaps = [[0.9, 0.9], [-0.2 / FEWER, 0.2 / FEWER]]
    taught = []
    monkeypatch.setattr(
        closed_loop, "attempt_at", lambda task, likely, offsets: taught.append(offsets)
    )
    next_student(groups_of(10, 10), state_of(current, gaps=gaps), 0.5)
    # 0.7 and 0.3 of the seen: borders at −0.2 and 0.2; half by size, half by damping
    np.testing.assert_allclose(taught[0], [1.0 + 0.05, -1.0 - 0.05])


def test_what_is_found_is_about_unseen_people():
    first = attempt_of([0.3, 0.3], offsets=[0.0, 0.0])
    chosen = attempt_of([0.5, 0.5], offsets=np.log([3.0, 0.5]), student="chosen")
    gaps = [[0.5, 0.5], [0.02, -0.01], [0.0, 0.03]]
    found = conclude(groups_of(100, 100), state_of(first, chosen, gaps=gaps))
    assert found.student == "chosen"
    assert found.way == "tilt"
    np.testing.assert_allclose(found.shares, [0.5 + 0.01 * FEWER, 0.5 + 0.01 * FEWER])
    # of the gaps from one round to the next, without that of the data
    np.testing.assert_allclose(found.noise, [0.01**2, 0.02**2])
    np.testing.assert_allclose(found.weight[:2], [1.5, 0.5])
    assert found.trainings == 2 + 3 * 3


def test_shares_that_are_found_are_shares():
    attempt = attempt_of([0.99, 0.01])
    state = state_of(attempt, gaps=[[0, 0], [0.5, -0.5]])
    assert conclude(groups_of(100, 100), state).shares.tolist() == [1.0, 0.0]


def test_the_wish_begins_with_what_is_decided_about_unseen_people():
    asked = []

    def fair(shares):
        asked.append(shares)
        return np.full(2, shares.mean())

    class Student:
        def __init__(self, rows, good, weights):
            self.rows = rows

        def chances(self, rows):
            # of ten in a row, six are decided for if seen, four if not
            few = np.where(np.isin(rows, self.rows), 6, 4)
            return np.where(rows % 10 < few, 0.9, 0.1)

    task = hiring_task(hiring(1, rows=600), Student)
    state = begin(replace(task, fair_shares=fair))
    (shares,) = asked
    np.testing.assert_allclose(shares, 0.6 - 0.2 * FEWER, atol=0.05)
    assert [attempt.offsets.any() for attempt in state.attempts] == [False, True]
    assert len(state.unseen_gaps) == 2
    assert state.rounds == 0


def test_progress_is_told_before_each_training():
    told = []
    task = hiring_task(hiring(1, rows=60), Memory)
    found = search(task, told.append)
    assert len(told) == found.trainings
    assert told[:3] == [1 / 25, 2 / 25, 3 / 25]


def test_no_student_judges_whom_it_learned_from_and_nothing_is_tried_twice():
    """Each round has folds of its own, and each student of everybody its lesson."""
    frame = hiring(13, rows=300)
    folds = []
    lessons = []

    class Spy:
        def __init__(self, rows, good, weights):
            self.rows = set(rows.tolist())
            lessons.append((len(rows) == 300) * weights.tobytes())

        def chances(self, rows):
            if not self.rows & set(rows.tolist()):
                folds.append(frozenset(rows.tolist()))
            return np.random.default_rng(len(rows)).random(len(rows)) * np.where(
                task.group[rows], 1.0, 0.6
            )

    task = hiring_task(frame, Spy)
    search(task)
    assert len(set(folds)) == len(folds) >= 9
    assert len(set(filter(None, lessons))) == sum(map(bool, lessons)) > 9
    assert all(
        set().union(*folds[start : start + 3]) == set(range(300))
        for start in range(0, 9, 3)
    )


def test_a_student_of_the_data_is_judged_by_its_own_folds():
    # of other weights, it decides otherwise about people whom it has not seen
    class Student:
        def __init__(self, rows, good, weights):
            self.known, self.others = rows, 0.46 if np.ptp(weights) < 1e-9 else 0.3

        def chances(self, rows):
            second = np.where(np.isin(rows, self.known), 0.46, self.others)
            return np.where(
                rows % 100 < 100 * np.where(task.group[rows], second, 0.5), 0.9, 0.1
            )

    task = hiring_task(hiring(13, rows=4000), Student)
    assert not search(task).offsets.any()
