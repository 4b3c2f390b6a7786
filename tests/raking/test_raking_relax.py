"""Relaxed margins: the closest that weights can come, proved by their gap."""

import numpy as np
import polars as pl
import pytest
import raking_problems

import fairmaxent


def room_for_improvement(problem, shares):
    """By how much half the sum of squared errors could fall at most (the gap of Frank and Wolfe).

    The errors change linearly with the shares, so no shares y within the bounds are better by more than ⟨∇, x − y⟩.
    """
    incidence, wanted = problem.incidence()
    gradient = incidence.T @ (incidence @ shares - wanted)
    low, high = problem.bounds
    best, left = low * problem.shares, 1 - low
    for row in np.argsort(gradient):
        more = left if np.isinf(high) else min(left, (high - low) * problem.shares[row])
        best[row] += more
        left -= more
    return gradient @ (shares - best)


@pytest.mark.parametrize("seed", range(12))
def test_relaxed_margins_come_as_close_as_possible(seed):
    problem = raking_problems.infeasible(seed)
    raking = fairmaxent.rake(problem.frame, problem.margins, weight="design", bounds=problem.bounds, relax="all")
    shares = raking.weights() / len(problem.frame)
    low, high = problem.bounds
    assert (shares >= low * problem.shares - 1e-15).all()
    assert (shares <= high * problem.shares + 1e-15).all()
    incidence, wanted = problem.incidence()
    assert room_for_improvement(problem, shares) < 1e-7
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
    margins = {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}, "age": {"y": 0.5, "o": 0.5}}
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
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
