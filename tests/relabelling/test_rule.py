"""The rule that a table teaches: what is known of people, and what offsets do to it."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from loop_tasks import groups_of, known_by, task_of
from scipy.optimize import linprog

from fairmaxent.relabelling.closed_loop import asking
from fairmaxent.relabelling.rule import (
    SHARP,
    Response,
    first_response,
    folds_of,
    gain,
    known_of,
    known_without,
    most_accurate,
    moves_of,
    response,
    shares_now,
    surprise,
    tellers_of,
    tilts,
    told,
)
from fairmaxent.relabelling.task import probability


class Teller:
    """A model that tells what it was given, of everybody, and notes who taught it."""

    def __init__(self, chances):
        self.chances_of_all = np.array(chances, dtype=float)
        self.lessons = []
        self.asked = []

    def __call__(self, rows, good, weight):
        self.lessons.append(set(rows.tolist()))
        return self

    def chances(self, rows):
        self.asked.append(set(rows.tolist()))
        return self.chances_of_all[rows]


# ---------------------------------------------------------------- what is optimal


def population(seed):
    """Eight profiles of two groups: P(x), P(g | x), and P(y = 1 | x, g)."""
    rng = np.random.default_rng([seed, 48])
    mass = rng.dirichlet(np.full(8, 5.0))
    second = rng.uniform(0.05, 0.95, 8)
    chance = rng.uniform(0.05, 0.95, (8, 2))
    return mass, np.column_stack([1 - second, second]), chance


def rates(decided, mass, whom):
    """Share of each group that is decided for; `whom` is P(g | x) or P(g, y = 1 | x)."""
    weight = mass[:, None] * whom
    return decided @ weight / weight.sum(axis=0)


@pytest.mark.parametrize("of_good", [False, True], ids=["decisions", "opportunity"])
@pytest.mark.parametrize("seed", range(5))
def test_no_rule_of_all_is_better_than_that_of_a_gain(seed, of_good):
    """All 256 rules of eight profiles that do not see the group.

    Whatever λ is, no other rule with the same rates judges more people rightly; and for
    the most accurate fair rule of all, at random where need be, a linear program has
    dual variables λ whose gain decides as it does.
    """
    mass, groups, chance = population(seed)
    joint = groups * chance
    likely = joint.sum(axis=1)  # η(x)
    whom = groups
    if of_good:
        whom = joint
    worth = mass * (2 * likely - 1)  # of deciding for a profile
    weight = mass[:, None] * whom
    share_of = (weight / weight.sum(axis=0)).T
    fair = linprog(
        -worth,
        A_eq=[share_of[0] - share_of[1], share_of.mean(axis=0)],
        b_eq=[0.0, 0.5],
        bounds=(0, 1),
    )
    # what the program pays for a share is what a person of that group and share adds
    apart, level = fair.eqlin.marginals
    prices = np.array([apart + level / 2, level / 2 - apart])
    offsets = prices / weight.sum(axis=0) / 2  # λ, as the gain is half the worth

    task = task_of(np.ones(8), np.arange(8) % 2, sees_group=False, of_good=of_good)
    gains = gain(known_by(task, likely, whom), offsets, 0.5)
    certain = np.abs(gains) > 1e-9
    np.testing.assert_allclose(fair.x[certain], gains[certain] > 0, atol=1e-9)
    assert certain.sum() >= 6  # at most two profiles are decided about at random

    ours = gains > 0
    reached = rates(ours, mass, whom)
    for rule in product([0.0, 1.0], repeat=8):
        other = rates(np.array(rule), mass, whom)
        if np.allclose(other, reached):
            assert np.array(rule) @ worth <= ours @ worth + 1e-12


def test_the_chance_of_a_group_is_that_of_its_good_ones_for_equal_opportunity():
    """P(g, y = 1 | x) = η(x)·P(g | x, y = 1), which only the good ones can tell."""
    likely = np.linspace(0.1, 0.9, 12)
    second = np.linspace(0.2, 0.7, 12)
    group = np.arange(12) % 2
    good = np.arange(12) % 3 > 0
    everybody = np.arange(12)
    for of_good in (False, True):
        task = task_of(good, group, sees_group=False, of_good=of_good)
        if of_good:
            task = task_of(
                good, group, sees_group=False, of_good=True, compared=good.copy()
            )
        teller = Teller(second)
        tellers, learned = tellers_of(task, everybody, teller, 2)
        moves = moves_of(task, tellers, likely)
        # six of each group at most; the first one is whoever is not of the second
        expected = np.column_stack([1 - second, second])
        if of_good:
            expected = likely[:, None] * expected
            assert all(good[list(rows)].all() for rows in teller.lessons)
        np.testing.assert_allclose(moves, expected)
        assert learned == sum(map(len, teller.lessons))
        for rows, asked in zip(teller.lessons, teller.asked, strict=True):
            assert not rows & asked


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("of_good", [False, True])
def test_who_taught_a_student_has_not_seen_whom_it_is_asked_about(of_good, number):
    """Each teller says by how many people, and by whom, it was told of groups."""
    rng = np.random.default_rng(0)
    good = rng.random(60) < 0.6
    group = (rng.random(60) < 0.4).astype(int)
    compared = good if of_good else np.ones(60, dtype=bool)
    task = task_of(good, group, sees_group=False, of_good=of_good, compared=compared)
    lessons = []

    def train(rows, labels, weight):
        lessons.append({int(row) for row in rows})
        number = len(lessons)
        return SimpleNamespace(chances=lambda asked: np.full(len(asked), number / 10))

    task = replace(task, train=train)
    known = known_by(task, 0.5, is_own=True)
    folds = [{int(row) for row in asked} for _, asked in task.folds(number)]
    smaller = np.bincount(group).argmin()
    if number == 2:  # those who told of everybody are asked again
        tellers, learned = tellers_of(task, task.everybody, train, 2)
        known = replace(known, tellers=tellers)
        assert learned == compared.sum()
        told = moves_of(task, tellers, np.ones(60))[:, smaller]
        of_person = [next(i for i in range(3) if p in folds[i]) for p in range(60)]
        # tellers say .1, .2 and .3; the mean of those two who have not seen the person
        expected = np.array([0.25, 0.2, 0.15])[of_person]
        np.testing.assert_allclose(told, expected)
    for held, own in enumerate(known_without(task, known, number)):
        told_by = own.moves[:, smaller] * (20 if of_good else 10)
        for person in range(60):
            lesson = lessons[round(told_by[person]) - 1]
            assert person in folds[held] or not lesson & folds[held]
            assert person not in lesson
            assert all(compared[row] for row in lesson)
    assert len(lessons) == 3
    # three students of two thirds of the people, and three tellers of one, if new
    assert asking(task, known, number) == number
    assert asking(replace(task, sees_group=True), known, number) == 2.0


def test_a_group_that_is_seen_moves_alone_and_nothing_is_learned():
    task = groups_of(2, 3)
    tellers, learned = tellers_of(task, task.everybody, None, 2)
    moves = moves_of(task, tellers, np.zeros(5))
    np.testing.assert_array_equal(moves, np.eye(2)[[0, 0, 1, 1, 1]])
    assert learned == 0


def test_of_many_groups_the_largest_and_the_smallest_are_the_others():
    task = groups_of(30, *[8] * 8, 4, 2, sees_group=False)
    teller = Teller(np.full(len(task.good), 0.05))
    tellers, _ = tellers_of(task, task.everybody, teller, 2)
    moves = moves_of(task, tellers, np.zeros(len(task.good)))
    np.testing.assert_allclose(moves[:, 0], 0.6)
    np.testing.assert_allclose(moves[:, 1:9], 0.05)
    np.testing.assert_array_equal(moves[:, 9:], 0.0)
    assert len(teller.lessons) == 8 * 3  # a fold each


def test_the_gain_is_that_of_menon_and_williamson():
    task = groups_of(1, 1)
    known = known_by(task, [0.6, 0.3], [[1.0, 0.0], [0.25, 0.75]])
    found = gain(known, np.array([0.4, -0.8]), 0.5)
    # 0.6 − 0.5 + 0.4 and 0.3 − 0.5 + 0.1 − 0.6
    np.testing.assert_allclose(found, [0.5, -0.7])


# ---------------------------------------------------------------- what is known


def test_nobody_is_foretold_by_whom_they_were_learned_from():
    task = groups_of(30, 30, profile=np.arange(60) // 2)
    own, other = Teller(np.arange(60) / 100), Teller(np.full(60, 0.5))
    task = groups_of(30, 30, profile=np.arange(60) // 2, train=own, advise=other)
    known = known_of(task, task.everybody)
    for teller in (own, other):
        for rows, asked in zip(teller.lessons, teller.asked, strict=True):
            assert not rows & asked
    # the student is asked by one fold, and the better of both by the others
    assert sorted([len(own.lessons), len(other.lessons)]) == [1, 3]
    # two thirds of everybody four times
    assert known.trainings == pytest.approx(4 * 2 / 3)


@pytest.mark.parametrize(
    ("of_student", "of_adviser", "expected"),
    # −ln 0.61 is 3.2 % below −ln 0.6, and −ln 0.605 is 1.6 % below
    [(0.6, 0.61, False), (0.6, 0.605, True), (0.6, 0.55, True)],
)
def test_the_better_teller_is_asked_if_it_is_much_better(
    of_student, of_adviser, expected
):
    good = np.arange(60) % 2 == 0
    student = Teller(np.where(good, of_student, 1 - of_student))
    adviser = Teller(np.where(good, of_adviser, 1 - of_adviser))
    task = groups_of(30, 30, train=student, advise=adviser)
    known = known_of(task, task.everybody)
    assert known.is_own is expected
    teller = adviser
    if expected:
        teller = student
    np.testing.assert_allclose(known.chances, teller.chances_of_all)
    # of those who are decided for by students of the data, everybody good
    np.testing.assert_allclose(known.shares, [0.5, 0.5])


def test_chances_of_a_profile_are_one():
    chances = np.linspace(0, 0.9, 60)
    teller = Teller(chances)
    task = groups_of(30, 30, profile=np.arange(60) // 2, train=teller, advise=teller)
    found = known_of(task, task.everybody).chances
    np.testing.assert_allclose(found, np.repeat(chances.reshape(30, 2).mean(1), 2))


def test_what_students_decide_now_is_known_of_some_and_foretold_of_all():
    task = task_of([1] * 8, [0] * 4 + [1] * 4)
    chances = np.array([0.9, 0.9, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    asked = np.array([0, 2, 4, 5])
    # of the first group's two the student decides for both, of the others' for one
    by_student = np.array([0.8, 0.8, 0.2, 0.7])
    found = shares_now(task, chances, by_student, asked)
    # 2 of 4, and half more; 1 of 4, and as many
    np.testing.assert_allclose(found, [1.0, 0.25])


def test_if_all_have_a_label_so_have_others():
    task = groups_of(4, 4)
    fold = np.arange(6), np.arange(6, 8)
    everybody = np.ones(8, dtype=bool)
    np.testing.assert_array_equal(told(task, None, everybody, fold), [1.0, 1.0])
    np.testing.assert_array_equal(told(task, None, ~everybody, fold), [0.0, 0.0])


def test_only_learners_are_learned_from_and_everybody_is_asked_about():
    task = groups_of(12, 12)
    learners = np.arange(0, 24, 2)
    folds = folds_of(task, learners, 0)
    assert all(set(rows.tolist()) <= set(learners.tolist()) for rows, _ in folds)
    asked = np.concatenate([asked for _, asked in folds])
    assert sorted(asked) == list(range(24))


def test_surprise_is_that_of_what_happened():
    task = task_of([1, 0, 1], [0] * 3, weight=np.array([1.0, 2.0, 3.0]))
    found = surprise(task, np.array([0.5, 0.2, 0.0]), task.everybody)
    assert found == pytest.approx(-np.log(0.5) - 2 * np.log(0.8) - 3 * np.log(0.01))


# ---------------------------------------------------------------- what offsets do


def test_weights_teach_a_student_who_sees_the_group_and_knows_best():
    for sees in (True, False):
        task = groups_of(4, 4, sees_group=sees)
        for is_own in (True, False):
            known = known_by(task, is_own=is_own)
            assert tilts(task, known) is (sees and is_own)


def test_a_tilt_moves_log_odds_and_soft_labels_what_is_compared():
    chances = np.array([0.8, 0.5])
    tilted = groups_of(1, 1, threshold=0.75)
    found = response(tilted, known_by(tilted), chances)
    np.testing.assert_allclose(found.scores, np.log([4 / 3, 1 / 3]))
    np.testing.assert_array_equal(found.moves, np.eye(2))
    hidden = groups_of(1, 1, threshold=0.75, sees_group=False)
    known = known_by(hidden, [0.8, 0.5])
    found = response(hidden, known, np.array([0.9, 0.2]))
    np.testing.assert_allclose(found.scores, [0.15, -0.55])
    np.testing.assert_array_equal(found.moves, SHARP * np.eye(2))
    # of the rule itself, soft labels turn as fast
    found = first_response(hidden, known)
    np.testing.assert_allclose(found.scores, SHARP * np.array([0.05, -0.25]))


def people_with_scores(seed=0, of_good=False):
    """Nobody sees the group, of which x tells something; half of all are good."""
    rng = np.random.default_rng(seed)
    own = rng.uniform(0.02, 0.98, 4000)
    group = (rng.random(4000) < own).astype(int)
    good = rng.random(4000) < 0.5
    compared = good if of_good else np.ones(4000, dtype=bool)
    task = task_of(good, group, sees_group=False, of_good=of_good, compared=compared)
    scores = rng.normal(-0.2 + 0.3 * own, 0.2)
    moves = np.column_stack([1 - own, own])
    if of_good:
        moves = moves / 2  # P(g, y = 1 | x)
    return Response(task, scores, moves)


@pytest.mark.parametrize("of_good", [False, True])
@pytest.mark.parametrize("missing", [(0.2, -0.1), (-0.1, 0.15)])
def test_steps_bring_the_shares_that_are_missing(missing, of_good):
    found = people_with_scores(of_good=of_good)
    before = found.task.shares(found.decided(np.zeros(2)))
    step = found.solve(np.array(missing))
    after = found.task.shares(found.decided(step))
    np.testing.assert_allclose(after - before, missing, atol=0.02)
    # and, sharply, nearly as many
    decided = found.scores + found.moves @ step > 0
    sharp = found.task.shares(decided) - found.task.shares(found.scores > 0)
    np.testing.assert_allclose(sharp, missing, atol=0.03)


def test_of_a_group_that_is_seen_only_those_compared_count():
    good = np.arange(400) % 2 == 0
    task = task_of(good, np.arange(400) // 200, of_good=True, compared=good)
    scores = np.where(good, np.linspace(-1, 1, 400), 5.0)
    found = Response(task, scores, np.eye(2)[task.group])
    step = found.solve(np.array([0.2, -0.3]))
    change = task.shares(found.decided(step)) - task.shares(found.decided(0 * step))
    np.testing.assert_allclose(change, [0.2, -0.3], atol=2e-3)


def test_nothing_is_moved_where_nothing_is_missing():
    np.testing.assert_array_equal(people_with_scores().solve(np.zeros(2)), [0.0, 0.0])


def test_the_function_that_is_minimised_has_the_derivatives_it_says():
    found = people_with_scores()
    wanted = np.array([900.0, 800.0])
    step = np.array([0.1, -0.05])
    point = found.at(step, wanted)
    for unit, slope in zip(1e-5 * np.eye(2), point.gradient, strict=True):
        above = found.at(step + unit, wanted)
        below = found.at(step - unit, wanted)
        assert (above.value - below.value) / 2e-5 == pytest.approx(slope, rel=1e-6)
    curvature = [
        found.at(step + unit, wanted).gradient - found.at(step - unit, wanted).gradient
        for unit in 1e-5 * np.eye(2)
    ]
    newton = found._newton(point)
    lifted = newton @ np.array(curvature) / 2e-5
    np.testing.assert_allclose(-lifted, point.gradient, rtol=0.02)  # but for the ridge


def test_a_small_group_that_few_can_tell_is_found():
    """Newton's method on the shares of the people themselves went astray here: with a
    small group that x hardly tells apart, these do not rise with its offset alone.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    own = probability(-2.5 - 1.2 * x)  # P(g = 0 | x): few, and of low x
    group = (rng.random(1000) > own).astype(int)
    task = task_of(rng.random(1000) < 0.5, group, sees_group=False)
    found = Response(task, 0.3 * x, np.column_stack([own, 1 - own]))
    before = task.shares(found.scores > 0)
    step = found.solve(0.5 - before)
    decided = found.scores + found.moves @ step > 0
    np.testing.assert_allclose(task.shares(decided), 0.5, atol=0.06)


@pytest.mark.more
def test_the_most_accurate_share_is_that_of_a_rule_without_the_group():
    """Ten of 40 are good and have the highest chances: a quarter is decided for."""
    good = np.arange(40) >= 30
    task = task_of(good, np.arange(40) % 2)
    known = known_by(task, np.linspace(0.02, 0.98, 40))
    np.testing.assert_allclose(most_accurate(task, known), 0.25, atol=0.06)
    # If only the group tells who is good, a rule that does not see it can tell nobody
    # apart: deciding for all is best, though thresholds by group would be better.
    group = np.arange(100) % 2
    good = np.where(group == 1, np.arange(100) % 10 < 9, np.arange(100) % 10 < 4)
    blind = task_of(good, group, sees_group=False)
    known = known_by(blind, 0.65 + np.linspace(0, 1e-3, 100), np.full((100, 2), 0.5))
    assert most_accurate(blind, known).min() > 0.9
