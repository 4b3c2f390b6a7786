"""Projection on linear conditions: its two kinds of linear algebra, its room, its
refusals.
"""

from dataclasses import replace

import numpy as np
import pytest

from fairmaxent.errors import SolverError
from fairmaxent.fairness import projection
from fairmaxent.fairness.projection import Conditions, fewest_cells, project, room

PRIOR = np.array([0.45, 0.25, 0.05, 0.25])


def two_groups(least):
    """Cells (y, g) in the order 00, 01, 10, 11: both groups have share 1/2, and rates
    of y = 1 within σ.
    """
    groups = np.array([[2.0, 0, 2, 0], [0, 2, 0, 2]])
    rates = groups * [0, 0, 1, 1]
    return Conditions(
        groups, np.ones(2), rates, np.zeros(2, dtype=np.intp), np.full(2, least)
    )


@pytest.mark.parametrize("least", [0.5, 0.8, 0.99, 1.0])
def test_the_answer_is_a_tilt_that_meets_the_conditions(least):
    result = project(PRIOR, two_groups(least))
    low, high = (two_groups(least).rates @ result.point).round(14)
    assert low == pytest.approx(least * high, rel=1e-12)
    # log(t/e) is a combination of the conditions: within a group it depends on y only
    # through the rate.
    tilt = np.log(result.point / PRIOR)
    assert tilt[2] > tilt[0]
    assert tilt[3] < tilt[1]
    assert result.residual <= 1e-13


@pytest.mark.parametrize("least", [0.5, 0.8, 1.0])
def test_the_dual_of_the_docstring_has_the_same_value(least):
    conditions = two_groups(least)
    point = project(PRIOR, conditions).point
    matrix = np.vstack([conditions.rows, conditions.rates])
    multipliers = np.linalg.lstsq(matrix.T, np.log(point / PRIOR), rcond=None)[0]
    rows, rates = multipliers[:2], multipliers[2:]
    assert np.maximum(rates, 0).sum() + np.minimum(
        rates, 0
    ).sum() / least == pytest.approx(0, abs=1e-9)
    primal = (point * np.log(point / PRIOR) - point + PRIOR).sum()
    dual = (
        conditions.values @ rows - (PRIOR * (np.exp(matrix.T @ multipliers) - 1)).sum()
    )
    assert dual == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("least", [0.6, 1.0])
def test_newtons_step_solves_the_linearised_conditions_of_the_docstring(least):
    rng = np.random.default_rng(0)
    conditions = two_groups(least)
    matrix = np.vstack([conditions.rows, conditions.rates])
    state = projection._start(conditions, rng.normal(size=2), np.ones(4))
    state = replace(
        state,
        multipliers=rng.normal(size=4),
        slack_multipliers=rng.gamma(1.0, size=(2, 2)),
    )
    point, centre = rng.gamma(1.0, size=4), 0.01
    if least == 1:  # no slacks, no multipliers of their own
        state = replace(state, slack_multipliers=np.full((2, 2), 0.3))
    errors = np.concatenate([conditions.values, state.rates]) - matrix @ point
    step = projection._newton_step(matrix, conditions, point, state, errors, centre)
    moved = (matrix * point) @ matrix.T @ step.multipliers - np.concatenate(
        [np.zeros(2), step.rates]
    )
    np.testing.assert_allclose(moved, errors, rtol=1e-8)
    if least == 1:
        np.testing.assert_allclose(step.rates, step.bounds[[0, 0]], rtol=1e-12)
        assert (state.multipliers + step.multipliers)[2:].sum() == pytest.approx(
            0, abs=1e-9
        )
        return
    u, v = state.slack_multipliers + step.slack_multipliers
    np.testing.assert_allclose(
        (state.multipliers + step.multipliers)[2:], u - least * v, rtol=1e-8
    )
    assert (u - v).sum() == pytest.approx(0, abs=1e-8)
    products = state.slacks * state.slack_multipliers
    change = (
        state.slacks * step.slack_multipliers + state.slack_multipliers * step.slacks
    )
    np.testing.assert_allclose(products + change, centre, rtol=1e-8)
    np.testing.assert_allclose(
        step.slacks,
        [step.rates - step.bounds, step.bounds - least * step.rates],
        rtol=1e-12,
    )


def test_conditions_may_hold_or_repeat_each_other_and_contradictions_are_reported():
    prior = np.array([0.25, 0.25, 0.25, 0.25])
    result = project(prior, two_groups(0.8))
    np.testing.assert_array_equal(result.point, prior)
    assert result.iterations == 0
    once = two_groups(0.8)
    twice = replace(once, rows=np.vstack([once.rows, once.rows]), values=np.ones(4))
    np.testing.assert_allclose(
        project(PRIOR, twice).point, project(PRIOR, once).point, rtol=1e-12
    )
    conditions = two_groups(0.8)
    impossible = replace(
        conditions,
        rows=np.vstack([conditions.rows, np.ones(4)]),
        values=np.array([1, 1, 1.5]),
    )
    with pytest.raises(SolverError, match="contradict"):
        project(np.full(4, 0.25), impossible)


@pytest.mark.parametrize("least", [0.7, 1.0])
def test_sparse_and_dense_algebra_agree(monkeypatch, least):
    dense = project(PRIOR, two_groups(least)).point
    monkeypatch.setattr(projection, "_DENSE_CONDITIONS", 0)
    np.testing.assert_allclose(
        project(PRIOR, two_groups(least)).point, dense, rtol=1e-11
    )


def test_room_and_the_cells_that_make_it():
    conditions, floor = two_groups(0.8), np.array([0.3, 0.5, 0.2, 0.0])
    seen = floor > 0
    assert room(conditions.on(seen), floor[seen]) == pytest.approx(0.0, abs=1e-9)
    assert room(conditions, floor) > 0.5
    np.testing.assert_array_equal(fewest_cells(conditions, floor, ~seen), [True] * 4)
    assert (
        fewest_cells(conditions.on(seen), floor[seen], np.zeros(3, dtype=bool)) is None
    )
