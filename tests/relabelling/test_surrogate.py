"""The model of a student that does not see the group, by hand."""

import numpy as np
import pytest
from loop_tasks import groups_of, task_of

from fairmaxent.relabelling.lessons import (
    Slopes,
    Surrogate,
    hidden_gain,
    newton_step,
)


def test_the_gain_is_that_of_menon_and_williamson():
    groups = np.array([[1.0, 0.0], [0.25, 0.75]])
    gain = hidden_gain(np.array([0.6, 0.3]), groups, np.array([0.4, -0.8]), 0.5)
    # 0.6 − 0.5 + 0.4 and 0.3 − 0.5 + 0.1 − 0.6
    np.testing.assert_allclose(gain, [0.5, -0.7])


def test_shares_are_those_of_people_with_a_gain():
    task = task_of([1] * 4, [0, 0, 0, 1], threshold=0.25)
    chances = np.array([0.9, 0.0, 0.25, 0.275])
    surrogate = Surrogate(task, chances, np.eye(2)[task.group])
    # for, against, undecided; and a gain of one width, which is σ(1) of a decision
    one_width = 1 / (1 + np.exp(-1))
    shares = surrogate.shares(np.zeros(2))
    np.testing.assert_allclose(shares, [0.5, one_width], atol=1e-4)
    shares = surrogate.shares(np.array([0.5, -0.5]))
    np.testing.assert_allclose(shares, [1.0, 0.0], atol=1e-4)


def test_slopes_are_the_derivatives_of_shares_by_offsets():
    groups = np.array([[0.08, 0.02], [0.05, 0.05]])
    surrogate = Surrogate(groups_of(1, 1), np.full(2, 0.5), groups)
    # σ'(0) = ¼ over a width of 0.025, times P(g | x)
    np.testing.assert_allclose(surrogate.slopes(np.zeros(2)), 10 * groups, rtol=1e-3)


@pytest.mark.parametrize("wanted", [(0.5, 0.5), (0.2, 0.6)])
def test_offsets_with_the_wanted_shares_are_found(wanted):
    rng = np.random.default_rng(0)
    task = groups_of(300, 200)
    likely = np.clip(rng.normal(0.4 + 0.2 * task.group, 0.2), 0.02, 0.98)
    own = np.clip(rng.normal(0.3 + 0.4 * task.group, 0.2), 0.02, 0.98)
    surrogate = Surrogate(task, likely, np.column_stack([1 - own, own]))
    before = surrogate.shares(np.zeros(2))
    offsets, slopes = surrogate.solve(np.array(wanted))
    assert np.abs(before - wanted).max() > 0.09
    np.testing.assert_allclose(surrogate.shares(offsets), wanted, atol=2e-3)
    np.testing.assert_array_equal(slopes.first, surrogate.slopes(offsets))
    np.testing.assert_array_equal(slopes.now, slopes.first)
    np.testing.assert_array_equal(slopes.offsets, offsets)


def test_a_step_brings_what_is_missing_but_for_the_ridge():
    size = np.array([50.0, 50.0])
    missing = np.array([0.1, -0.2])
    moved = newton_step(np.eye(2), size, np.array([1.0, 1.0]), missing)
    # half of a square of slopes, and 1 % of that as the ridge
    np.testing.assert_allclose(moved, 1 + missing / 1.01, rtol=1e-6)


def test_a_step_serves_larger_groups_first():
    # both shares follow one offset, and only one of them should rise
    slopes = np.array([[1.0, 0.0], [1.0, 0.0]])
    size = np.array([30.0, 10.0])
    moved = newton_step(slopes, size, np.zeros(2), np.array([0.1, 0.0]))
    # ¾ of the people want 0.1, ¼ want 0; the ridge is 1 % of the mean of 1 and 0
    np.testing.assert_allclose(moved, [0.075 / 1.005, 0.0], rtol=1e-6)


def test_no_step_is_long_and_no_offset_far():
    size = np.array([50.0, 50.0])
    missing = np.array([1.0, -0.5])
    moved = newton_step(np.eye(2), size, np.zeros(2), missing)
    np.testing.assert_allclose(moved, [0.3, -0.15])
    moved = newton_step(np.eye(2), size, np.array([2.9, -2.9]), missing)
    np.testing.assert_allclose(moved, [3.0, -3.0])


def slopes_after(step, change):
    slopes = Slopes(
        size=np.array([50.0, 50.0]),
        first=np.eye(2),
        now=np.eye(2),
        offsets=np.array([1.0, 1.0]),
        shares=np.array([0.4, 0.5]),
    )
    offsets = slopes.offsets + step
    shares = slopes.shares + change
    moved, after = slopes.moved(offsets, shares, np.array([0.1, 0.0]))
    np.testing.assert_array_equal(after.offsets, offsets)
    np.testing.assert_array_equal(after.shares, shares)
    np.testing.assert_array_equal(after.first, np.eye(2))
    expected = newton_step(after.now, slopes.size, offsets, np.array([0.1, 0.0]))
    np.testing.assert_array_equal(moved, expected)
    return after.now


def test_slopes_learn_from_what_a_step_did():
    """Broyden: what was not foreseen, times 0.7 s / (s·s + 0.01), for a step s."""
    # 0.3 and 0 were foreseen: −0.2 and +0.2 were not; 0.7 · 0.3 / (0.09 + 0.01) = 2.1
    found = slopes_after(step=[0.3, 0.0], change=[0.1, 0.2])
    np.testing.assert_allclose(found, [[1 - 0.42, 0.0], [0.42, 1.0]])


def test_a_slope_does_not_vanish():
    # 0.7 · 0.3 · 0.37 / 0.1 = 0.777 leaves enough of it, and 0.819 would not
    found = slopes_after(step=[0.3, 0.0], change=[-0.07, 0.0])
    assert found[0, 0] == pytest.approx(0.223)
    found = slopes_after(step=[0.3, 0.0], change=[-0.09, 0.0])
    np.testing.assert_array_equal(found, np.eye(2))


def test_short_steps_say_nothing_about_slopes():
    found = slopes_after(step=[0.01, 0.0], change=[0.1, 0.2])
    np.testing.assert_array_equal(found, np.eye(2))
