"""The closed loop by itself: what it wants, whom it asks, and what a table teaches."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairmaxent.relabelling.closed_loop import Loop, Task
from tables import hiring


def task_of(frame, train):
    good, group = (
        (frame["hired"] == "yes").to_numpy(),
        (frame["sex"] == "m").to_numpy().astype(np.intp),
    )
    ones, wrong = (
        np.ones(len(frame)),
        lambda labels, rows, asked: np.tile([1.0, 0.0], (len(asked), 1)),
    )
    of = good, group, np.arange(len(good)), ones, ones > 0
    return Task(
        *of, np.ones(2), 0.5, True, train, wrong, lambda own: np.full(2, own.mean())
    )


@pytest.mark.parametrize("sizes", [(900, 300), (700, 140, 110, 50)])
def test_little_is_left_of_a_difference_that_is_no_chance(sizes):
    """What is left of it, beside what chance made of it, against leaving nothing: mean
    squares.
    """
    rng, size = np.random.default_rng(21), np.array(sizes)
    group, errors = np.repeat(np.arange(len(size)), size), []

    def mean(shares):
        return np.full(len(size), size @ shares / size.sum())

    for _ in range(400):
        true = np.clip(rng.normal(0.5, 0.15, len(size)), 0.05, 0.95)
        good, ones = rng.random(len(group)) < true[group], np.ones(len(group))
        task = Task(
            good,
            group,
            group,
            ones,
            ones > 0,
            np.ones(len(size)),
            0.5,
            True,
            None,
            None,
            mean,
        )
        raw = task.shares(good)
        left, chance = (
            Loop(task)._wished(np.zeros(len(group)), raw) - mean(raw),
            raw - true - mean(raw - true),
        )
        errors.append([np.mean((left - chance) ** 2), np.mean(chance**2)])
    some, nothing = np.mean(errors, axis=0)
    assert some < 1.2 * nothing


def test_the_most_accurate_share_is_one_of_those_who_are_compared():
    """Equal opportunity: shares of people whose outcome is good, of a student that
    knows everybody's outcome.
    """
    task = task_of(hiring(21, rows=400), None)
    loop = Loop(replace(task, compared=task.good))
    assert loop._accuracy(
        task.good + np.linspace(0, 0.1, 400), np.ones(2)
    ) == pytest.approx(400, abs=2)
    assert loop._accuracy(task.good + np.linspace(0, 0.1, 400), np.full(2, 0.5)) < 350


def test_no_student_judges_whom_it_learned_from_rounds_have_other_folds_and_lessons_are_not_repeated():
    frame, folds, lessons = hiring(13, rows=300), [], []

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

    Loop(task := task_of(frame, Spy)).run()
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

    task = task_of(hiring(13, rows=4000), Student)
    assert not Loop(task).run().offsets.any()


@pytest.mark.parametrize(("threshold", "alike"), [(0.5, 1), (0.3, 1), (0.3, 4)])
def test_a_table_moves_the_rule_by_the_offsets(threshold, alike):
    """A student who knows the shares in the table: its log-odds, or what it compares
    with the threshold, move by λ.
    """
    rng, offsets = np.random.default_rng(14), np.array([0.4, -0.3])
    frame = pd.DataFrame(
        {"hired": np.tile(["yes", "no"], 100), "sex": np.repeat(["f", "m"], 100)}
    )
    task = replace(
        task_of(frame, None), threshold=threshold, profile=np.arange(200) // alike
    )
    loop = Loop(task)

    def mean(values):  # of people who are alike
        return np.repeat(np.reshape(values, (-1, alike)).mean(axis=1), alike)

    way, weights, parts = loop.lesson(offsets)
    assert way == "tilt"
    for group in (0, 1):
        bad, good = (
            weights[(task.group == group) & (task.good == is_good)][0]
            for is_good in (False, True)
        )
        assert np.log(good / bad) == pytest.approx(offsets[group], abs=1e-12)
    np.testing.assert_allclose(
        np.bincount(task.group, weights), np.bincount(task.group)
    )
    np.testing.assert_array_equal(parts, task.good)  # rows keep their outcome
    loop.likely = mean(rng.uniform(0.2, 0.8, 200))
    way, weights, parts = loop.lesson(offsets)
    assert way == "soft tilt"
    moved = np.log(mean(parts) / (1 - mean(parts))) - np.log(
        loop.likely / (1 - loop.likely)
    )
    np.testing.assert_allclose(moved, offsets[task.group], atol=1e-12)
    np.testing.assert_array_equal(weights, 1)  # rows keep their weight
    loop.task = replace(task, sees_group=False)
    for likely, own in ((loop.likely, loop.likely), (None, task.good)):
        loop.likely = likely
        way, weights, parts = loop.lesson(4 * offsets)
        assert (way, weights.min(), weights.max()) == (
            "along" if likely is None else "soft along",
            1,
            1,
        )
        assert 0 <= parts.min() <= parts.max() <= 1
        ratio = (mean(parts) - threshold) / (
            mean(own) - threshold + 4 * offsets[task.group]
        )
        np.testing.assert_allclose(ratio, ratio[0])
        assert 0 < ratio[0] < 1
    way, weights, parts = loop.lesson(0 * offsets)
    assert way == "none"
    np.testing.assert_array_equal(parts, task.good)
