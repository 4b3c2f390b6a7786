"""Bounds hold exactly, and the weights within them are the closest ones."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import raking_problems
from scipy.optimize import linprog

import fairmaxent
from fairmaxent.maxent.solvers import DampedNewton


def check(problem):
    """Every weight inside to 1e-12, every margin to 1e-9, both computed from the
    weights themselves.
    """
    low, high = problem.bounds
    raking = fairmaxent.rake(
        problem.frame, problem.margins, weight="design", bounds=problem.bounds
    )
    shares = raking.weights() / len(problem.frame)
    factors = shares / problem.shares
    assert factors.min() >= low - 1e-12
    assert factors.max() <= high + 1e-12
    incidence, wanted = problem.incidence()
    assert np.abs(incidence @ shares - wanted).max() <= 1e-9
    certificate, at_a_bound = (
        raking.certificate,
        (factors <= low * (1 + 1e-9)) | (factors >= high * (1 - 1e-9)),
    )
    assert certificate.largest_error <= 1e-9
    assert not certificate.missed
    assert certificate.bounds == problem.bounds
    assert certificate.rows_at_bounds == at_a_bound.sum()
    assert certificate.weights == pytest.approx(
        (raking.weights().min(), raking.weights().max()), rel=1e-12
    )
    return factors, incidence


@pytest.mark.slow
@pytest.mark.parametrize("tight", [False, True])
def test_margins_and_bounds_hold_together_in_a_thousand_problems(tight):
    for seed in range(1000, 2000):
        check(raking_problems.feasible(seed, tight=tight))


@pytest.mark.some(4)
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_weights_within_bounds_are_the_closest(seed, tight):
    """Kuhn and Tucker: log g is a sum of multipliers of levels, or beyond that where a
    bound holds a row back.
    """
    problem = raking_problems.feasible(seed, tight=tight)
    factors, incidence = check(problem)
    low, high = problem.bounds
    scores, at_low, at_high = (
        np.log(factors),
        factors <= low * (1 + 1e-12),
        factors >= high * (1 - 1e-12),
    )
    free = ~(at_low | at_high)
    program = linprog(
        np.zeros(len(incidence)),
        A_eq=np.vstack([incidence.T[free], np.zeros(len(incidence))]),
        b_eq=np.append(scores[free], 0.0),
        A_ub=np.vstack(
            [incidence.T[at_low], -incidence.T[at_high], np.zeros(len(incidence))]
        ),
        b_ub=np.concatenate([scores[at_low], -scores[at_high], [0.0]]),
        bounds=(None, None),
        method="highs",
    )
    assert program.status == 0


def test_cells_that_must_be_at_a_bound_are_fixed_there(monkeypatch):
    """If Newton's method fails although weights exist, a linear program says which
    cells have no choice.
    """
    cells = []
    solve = DampedNewton.solve

    def failing_first(solver, dual, start=None):
        cells.append(len(dual.masses))
        if len(cells) == 1:
            return SimpleNamespace(point=SimpleNamespace(residual=1.0))
        return solve(solver, dual, start)

    fewer = 0
    for seed in range(10):
        problem = raking_problems.feasible(seed, tight=True)
        usual, _ = check(problem)
        cells.clear()
        with monkeypatch.context() as patched:
            patched.setattr(DampedNewton, "solve", failing_first)
            factors, _ = check(problem)
        assert factors == pytest.approx(usual, abs=1e-6)
        fewer += len(cells) == 1 or cells[1] < cells[0]
    assert fewer >= 5
    # Nobody but the first woman is a nurse, so all women must be nurses: the second one
    # gets no weight at all.
    frame = pl.DataFrame({"sex": ["F", "F", "M"], "job": ["nurse", "none", "none"]})
    cells.clear()
    monkeypatch.setattr(DampedNewton, "solve", failing_first)
    raking = fairmaxent.rake(
        frame, {"sex": {"F": 0.4, "M": 0.6}, "job": {"nurse": 0.4, "none": 0.6}}
    )
    assert raking.weights()[1] == 0
    assert raking.weights() == pytest.approx([1.2, 0, 1.8], abs=1e-12)


@pytest.mark.parametrize(
    "bounds",
    [(0.3,), (1.2, 3), (0.3, 0.9), (-1, 2), (1, 1), ("a", 2), 3, (0.5, float("nan"))],
)
def test_bounds_that_make_no_sense_are_refused(bounds):
    frame = pl.DataFrame({"sex": ["F", "M"]})
    with pytest.raises(fairmaxent.InputError, match="bounds"):
        fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.5}}, bounds=bounds)


def test_bounds_may_have_one_side():
    frame = pl.DataFrame({"sex": ["F", "F", "F", "M"], "age": ["y", "o", "o", "o"]})
    margins = {"sex": {"F": 0.6, "M": 0.4}, "age": {"y": 0.3, "o": 0.7}}
    assert fairmaxent.rake(frame, margins, bounds=(None, 2)).certificate.factors[1] <= 2
    assert (
        fairmaxent.rake(frame, margins, bounds=(0.2, None)).certificate.factors[0]
        >= 0.2
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(10))
def test_many_levels_are_raked_without_a_hessian(seed, monkeypatch):
    problem = raking_problems.feasible(seed)
    usual, _ = check(problem)
    sparing = partial(DampedNewton, dense=0)
    monkeypatch.setattr("fairmaxent.raking.factors.DampedNewton", sparing)
    by_products, _ = check(problem)
    assert by_products == pytest.approx(usual, abs=1e-9)
