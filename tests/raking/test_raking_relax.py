"""Relaxed margins: the closest that weights can come, against a least-squares program."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import raking_problems
from scipy.optimize import lsq_linear

import fairmaxent


def closest(problem):
    """Shares with the smallest sum of squared errors, by a solver for bounded least squares."""
    incidence, wanted = problem.incidence()
    low, high = problem.bounds
    # The weight 1e4 makes the total of 1 as good as exact.
    matrix = np.vstack([incidence, 1e4 * np.ones(incidence.shape[1])])
    upper = np.full(len(problem.shares), np.inf) if np.isinf(high) else high * problem.shares
    solved = lsq_linear(
        matrix, np.append(wanted, 1e4), (low * problem.shares, np.maximum(upper, 1e-300)), tol=1e-14, max_iter=2000
    )
    return np.linalg.norm(incidence @ solved.x - wanted)


@pytest.mark.parametrize("seed", range(12))
def test_relaxed_margins_come_as_close_as_possible(seed):
    problem = raking_problems.infeasible(seed)
    raking = fairmaxent.rake(problem.frame, problem.margins, weight="design", bounds=problem.bounds, relax="all")
    shares = raking.weights() / len(problem.frame)
    low, high = problem.bounds
    assert (shares >= low * problem.shares - 1e-15).all()
    assert (shares <= high * problem.shares + 1e-15).all()
    incidence, wanted = problem.incidence()
    distance = np.linalg.norm(incidence @ shares - wanted)
    assert distance <= closest(problem) + 1e-6
    assert raking.certificate.missed == (raking_problems.miss(problem) > 1e-7)
    errors = np.abs(incidence @ shares - wanted)
    assert raking.certificate.largest_error == pytest.approx(errors.max(), abs=1e-9)


def test_some_margins_may_be_kept_exactly():
    frame = pl.DataFrame({"sex": ["F", "F", "M", "M"], "job": ["nurse", "none", "none", "none"]})
    margins = {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}}
    raking = fairmaxent.rake(frame, margins, relax=["job"])
    sex, job = raking.certificate.margins
    assert sex.largest_error < 1e-9
    assert job.largest_error == pytest.approx(0.1, abs=1e-6)
    assert raking.certificate.missed
    assert "margins contradict each other" in str(raking.certificate)
    assert raking.weights().sum() == pytest.approx(4)


def test_margins_that_must_be_met_are_still_checked():
    frame = pl.DataFrame({"sex": ["F", "F", "M", "M"], "job": ["nurse", "none", "none", "none"], "age": list("yoyo")})
    margins = {
        "sex": {"F": 0.3, "M": 0.7},
        "job": {"nurse": 0.4, "none": 0.6},
        "age": {"y": 0.5, "o": 0.5},
    }
    with pytest.raises(fairmaxent.ConflictError) as caught:
        fairmaxent.rake(frame, margins, relax="age")
    assert caught.value.margins == (("sex",), ("job",))


def test_relaxing_changes_nothing_if_all_margins_can_be_met():
    problem = raking_problems.feasible(3)
    exact, relaxed = (
        fairmaxent.rake(problem.frame, problem.margins, weight="design", bounds=problem.bounds, relax=relax).weights()
        for relax in (None, "all")
    )
    assert (exact == relaxed).all()


@pytest.mark.parametrize("relax", ["regon", ["region"], [("sex", "job")], [3], [(3,)], 3])
def test_only_margins_can_be_relaxed(relax):
    frame = pl.DataFrame({"sex": ["F", "M"]})
    with pytest.raises(fairmaxent.InputError, match="relax"):
        fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.5}}, relax=relax)
