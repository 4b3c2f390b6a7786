"""Margins that contradict each other: the set named is really the smallest; relaxed,
they come as close as possible.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import raking_problems

import fairmaxent

CLEAR = 1e-6  # a miss that no tolerance explains
NURSES = pl.DataFrame(
    {
        "sex": ["F", "F", "M", "M"],
        "job": ["nurse", "none", "none", "none"],
        "age": list("yoyo"),
    }
)
# every nurse is a woman
MARGINS = {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}}


def raked(problem, **options):
    return fairmaxent.rake(
        problem.frame,
        problem.margins,
        weight="design",
        bounds=problem.bounds,
        **options,
    )


def check(problem):
    """Compare with a linear program over the rows; return the size of the smallest set,
    0 if there is none.
    """
    smallest = raking_problems.miss(problem)
    if smallest <= CLEAR:
        assert raked(problem).certificate.largest_error <= 1e-9
        return 0
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
        raked(problem)
    named = caught.value.margins
    assert set(named) <= set(problem.margins)
    assert raking_problems.miss(problem, named) > CLEAR
    for smaller in combinations(problem.margins, len(named) - 1):
        assert not smaller or raking_problems.miss(problem, smaller) <= CLEAR
    assert caught.value.levels
    return len(named)


@pytest.mark.more
def test_the_smallest_set_is_named_which_may_have_up_to_four_margins():
    sizes = [check(raking_problems.infeasible(seed)) for seed in range(16)]
    assert {0, 1, 2} <= set(sizes)
    sizes = {check(raking_problems.cycle(seed)) for seed in range(4)}
    assert sizes == {3, 4}


@pytest.mark.slow
def test_the_smallest_set_is_named_in_a_thousand_problems():
    refused = seed = 0
    while refused < 900:
        refused += check(raking_problems.infeasible(10_000 + seed)) > 0
        seed += 1
    assert all(check(raking_problems.cycle(10_000 + seed)) >= 3 for seed in range(100))


def test_the_message_names_margins_levels_and_what_to_do():
    with pytest.raises(fairmaxent.InfeasibleError) as caught:
        fairmaxent.rake(NURSES, MARGINS)
    assert caught.value.margins == (("sex",), ("job",))
    text = str(caught.value)
    assert "no weights meet these margins together: sex and job" in text
    assert "sex = F (0.3)" in text
    assert "leave 0.1 of the total in the wrong level" in text
    assert "relax='all'" in text


@pytest.mark.parametrize(
    ("rows", "wanted", "bounds", "words"),
    [
        (
            ["F", "M"],
            {"F": 0.5, "M": 0.4, "X": 0.1},
            None,
            r"sex = X should have a share of 0\.1, but no row",
        ),
        (
            ["F", *"M" * 9],
            {"F": 0.5, "M": 0.5},
            (0.3, 3),
            r"a factor of 5, and the largest allowed is 3 \(bounds\)",
        ),
    ],
)
def test_a_single_level_that_cannot_be_met_is_named(rows, wanted, bounds, words):
    with pytest.raises(fairmaxent.errors.ConflictError, match=words) as caught:
        fairmaxent.rake(pl.DataFrame({"sex": rows}), {"sex": wanted}, bounds=bounds)
    assert len(caught.value.levels) == 1


@pytest.mark.parametrize("more", [4e-10, 8e-10])
def test_shares_that_contradict_each_other_by_rounding_are_met_up_to_that(more):
    crossed = {
        ("F", "y"): 0.1 + more,
        ("F", "o"): 0.2,
        ("M", "y"): 0.3,
        ("M", "o"): 0.4 - more,
    }
    raking = fairmaxent.rake(NURSES, {"sex": MARGINS["sex"], ("sex", "age"): crossed})
    assert 0 < raking.certificate.largest_error < more


def test_a_level_that_no_row_has_may_be_wanted_at_zero():
    raking = fairmaxent.rake(
        pl.DataFrame({"sex": ["F", "M"]}), {"sex": {"F": 0.5, "M": 0.5, "X": 0}}
    )
    assert raking.weights().tolist() == [1, 1]


def room_for_improvement(problem, shares):
    """By how much half the sum of squared errors could fall at most (the gap of Frank
    and Wolfe).

    The errors change linearly with the shares, so no shares y within the bounds are
    better by more than ⟨∇, x − y⟩.
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


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(12))
def test_relaxed_margins_come_as_close_as_possible(seed):
    problem = raking_problems.infeasible(seed)
    raking = raked(problem, relax="all")
    shares = raking.weights() / len(problem.frame)
    low, high = problem.bounds
    assert (shares >= low * problem.shares - 1e-15).all()
    assert (shares <= high * problem.shares + 1e-15).all()
    incidence, wanted = problem.incidence()
    assert room_for_improvement(problem, shares) < 1e-7
    assert bool(raking.certificate.missed) == (raking_problems.miss(problem) > 1e-7)
    errors = np.abs(incidence @ shares - wanted)
    assert raking.certificate.largest_error == pytest.approx(errors.max(), abs=1e-9)


def test_some_margins_may_be_kept_exactly_and_are_still_checked():
    raking = fairmaxent.rake(NURSES, MARGINS, relax=["job"])
    sex, job = raking.certificate.margins
    assert sex.largest_error < 1e-9
    assert job.largest_error == pytest.approx(0.1, abs=1e-6)
    assert raking.certificate.missed == ("job",)
    assert "missed: job (margins contradict each other: sex, job)" in str(
        raking.certificate
    )
    assert raking.weights().sum() == pytest.approx(4)
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
        fairmaxent.rake(NURSES, MARGINS | {"age": {"y": 0.5, "o": 0.5}}, relax="age")
    assert caught.value.margins == (("sex",), ("job",))


def test_the_bounds_are_named_where_they_are_in_the_way():
    skewed = {"sex": {"F": 0.9, "M": 0.1}}
    certificate = fairmaxent.rake(
        NURSES, skewed, bounds=(0.5, 1.2), relax="all"
    ).certificate
    assert "the bounds do not allow all margins" in str(certificate)
    assert certificate.rows_at_bounds > 0
    with pytest.raises(
        fairmaxent.errors.InfeasibleError,
        match=r"with factors at most 2.*widen bounds, or leave out",
    ):
        fairmaxent.rake(
            NURSES,
            {"sex": {"F": 0.7, "M": 0.3}},
            bounds=(None, 2),
            replicates=50,
            random_state=0,
        )


@pytest.mark.some(1)
@pytest.mark.parametrize("bounds", [(1e-4, 1000), (0.2, 3), (None, 50)])
def test_bounds_are_not_blamed_for_margins_that_contradict_each_other(bounds):
    """Nor is a margin called missed that holds, in the certificate and the refusal."""
    margins = MARGINS | {"age": {"y": 0.5, "o": 0.5}}
    raking = fairmaxent.rake(NURSES, margins, bounds=bounds, relax=["job"])
    certificate = raking.certificate
    assert certificate.missed == ("job",)
    assert certificate.conflict == "margins contradict each other: sex, job"
    assert "bounds" not in str(certificate).split("weights from")[0]
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
        fairmaxent.rake(NURSES, margins, bounds=bounds)
    assert "contradict each other" in str(caught.value)
    assert "bounds" not in str(caught.value)


@pytest.mark.more
def test_bounds_are_blamed_for_a_margin_beside_those_that_contradict_each_other():
    margins = MARGINS | {"age": {"y": 0.1, "o": 0.9}}
    conflict = "margins contradict each other: sex, job"
    for bounds, more in (
        ((0.7, 1.5), "; the bounds do not allow the others"),
        ((1e-4, 1000), ""),
    ):
        raking = fairmaxent.rake(NURSES, margins, bounds=bounds, relax="all")
        assert raking.certificate.conflict == conflict + more


def test_a_level_that_no_row_has_is_named_as_the_cause():
    wanted = {"sex": {"F": 0.4, "M": 0.4, "X": 0.2}}
    certificate = fairmaxent.rake(
        NURSES, wanted, bounds=(0.1, 9), relax="all"
    ).certificate
    assert certificate.missed == ("sex",)
    assert certificate.conflict == "no row with weight has sex = X"


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(12))
def test_the_cause_when_removed_makes_it_possible(seed):
    problem = raking_problems.infeasible(seed)
    certificate = raked(problem, relax="all").certificate
    assert certificate.missed == tuple(
        margin.name for margin in certificate.margins if margin.largest_error > 1e-6
    )
    if certificate.conflict is None:
        assert not certificate.missed
        return
    free = replace(problem, bounds=(0.0, np.inf))
    possible = raking_problems.miss(free) <= CLEAR
    assert possible == (certificate.conflict == "the bounds do not allow all margins")


@pytest.mark.more
def test_replicates_that_were_replaced_name_the_bounds_and_the_bias():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"sex": rng.choice(["F", "M"], 60, p=[0.4, 0.6])})
    wanted = {"sex": {"F": 0.6, "M": 0.4}}

    def note(bounds):
        raking = fairmaxent.rake(
            frame, wanted, bounds=bounds, replicates=50, random_state=0
        )
        return raking.certificate.notes

    (said,) = note((0.3, 1.7))
    assert "could not have the margins with factors between 0.3 and 1.7" in said
    assert "may be too narrow; widen the bounds" in said
    # the advice helps
    assert not note((0.2, 3))


def test_relaxing_changes_nothing_if_all_margins_can_be_met():
    problem = raking_problems.feasible(3)
    exact, relaxed = (raked(problem, relax=relax).weights() for relax in (None, "all"))
    assert (exact == relaxed).all()


@pytest.mark.parametrize(
    "relax", ["regon", ["region"], [("sex", "job")], [3], [(3,)], 3]
)
def test_only_margins_can_be_relaxed(relax):
    frame = pl.DataFrame({"sex": ["F", "M"]})
    with pytest.raises(fairmaxent.InputError, match="relax"):
        fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.5}}, relax=relax)
