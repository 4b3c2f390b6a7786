"""Margins that contradict each other: the set that is named is really infeasible, and really the smallest."""

from itertools import combinations

import polars as pl
import pytest
import raking_problems

import fairmaxent

CLEAR = 1e-6  # a miss that no tolerance explains


def check(problem):
    """Compare with a linear program over the rows; return the size of the smallest set, 0 if there is none."""
    smallest = raking_problems.miss(problem)
    if smallest <= CLEAR:
        raking = fairmaxent.rake(problem.frame, problem.margins, weight="design", bounds=problem.bounds)
        assert raking.certificate.largest_error <= 1e-9
        return 0
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
        fairmaxent.rake(problem.frame, problem.margins, weight="design", bounds=problem.bounds)
    named = caught.value.margins
    assert set(named) <= set(problem.margins)
    assert raking_problems.miss(problem, named) > CLEAR
    for smaller in combinations(problem.margins, len(named) - 1):
        assert not smaller or raking_problems.miss(problem, smaller) <= CLEAR
    assert caught.value.levels
    return len(named)


def test_the_smallest_set_is_named():
    sizes = [check(raking_problems.infeasible(seed)) for seed in range(16)]
    assert {0, 1, 2} <= set(sizes)


def test_the_smallest_set_may_have_three_or_four_margins():
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
    frame = pl.DataFrame({"sex": ["F", "F", "M", "M"], "job": ["nurse", "none", "none", "none"]})
    margins = {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}}
    with pytest.raises(fairmaxent.errors.ConflictError) as caught:
        fairmaxent.rake(frame, margins)
    problem = caught.value
    assert problem.margins == (("sex",), ("job",))
    assert isinstance(problem, fairmaxent.InfeasibleError)
    text = str(problem)
    assert "no weights meet these margins together: sex and job" in text
    assert "sex = F (0.3)" in text
    assert "leave 0.1 of the total in the wrong level" in text
    assert "relax='all'" in text


def test_a_level_that_no_row_has_is_named():
    frame = pl.DataFrame({"sex": ["F", "M"]})
    with pytest.raises(
        fairmaxent.errors.ConflictError, match=r"sex = X should have a share of 0\.1, but no row"
    ) as caught:
        fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.4, "X": 0.1}})
    assert caught.value.levels == ("sex = X",)


def test_a_level_that_no_row_has_may_be_wanted_at_zero():
    frame = pl.DataFrame({"sex": ["F", "M"]})
    raking = fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.5, "X": 0}})
    assert raking.weights().tolist() == [1, 1]


def test_a_factor_beyond_the_bounds_is_named():
    frame = pl.DataFrame({"sex": ["F"] + ["M"] * 9})
    with pytest.raises(
        fairmaxent.errors.ConflictError, match=r"a factor of 5, and the largest allowed is 3 \(bounds\)"
    ):
        fairmaxent.rake(frame, {"sex": {"F": 0.5, "M": 0.5}}, bounds=(0.3, 3))


def test_margins_on_the_boundary_are_met():
    """Only rows of weight zero could have F without 'nurse': they vanish, and the margins are exact."""
    frame = pl.DataFrame({"sex": ["F", "F", "M"], "job": ["nurse", "none", "none"]})
    raking = fairmaxent.rake(frame, {"sex": {"F": 0.4, "M": 0.6}, "job": {"nurse": 0.4, "none": 0.6}})
    assert raking.certificate.largest_error < 1e-9
    assert raking.weights() == pytest.approx([1.2, 0.0, 1.8], abs=1e-8)
