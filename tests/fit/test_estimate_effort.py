"""How many people and rounds an estimate takes: everybody if asked for, and what a few seconds allow otherwise."""

import pytest

from fairmaxent import Estimate, Relabel
from fairmaxent.fit import estimate as effort
from fairmaxent.fit.estimate import FOLDS, MOST_PEOPLE, Work
from fairmaxent.fit.request import Request

TREES = Relabel(parity="predictions", labeller="tree")


def work(rows, *, columns=12, outcomes=2, output="rows", student=None, **options):
    return Work(
        rows, columns, outcomes, Request("y", "z", **options).relabelling, Estimate(output=output, student=student)
    )


def test_small_tables_are_split_more_than_once():
    rounds = [work(rows).effort_asked_for().rounds for rows in (300, 30_000)]
    assert rounds[0] > rounds[1] == 1
    assert work(300, student="tree").effort_asked_for().rounds == 3


@pytest.mark.parametrize("rows", [50, 700, 5_000, 50_000, 10**8])
@pytest.mark.parametrize("columns", [3, 14, 100])
@pytest.mark.parametrize("relabel", [None, "probabilities", "predictions", TREES])
def test_by_default_no_effort_is_expected_to_take_longer_than_allowed(rows, columns, relabel):
    job = work(rows, columns=columns, relabel=relabel)
    chosen = job.effort_by_default()
    if chosen is not None:
        assert job.seconds(chosen) <= effort.SECONDS
        assert min(rows, 2_000) <= chosen.people <= min(rows, MOST_PEOPLE)


def test_by_default_the_tables_of_the_benchmarks_are_estimated():
    for rows, columns in ((1_000, 20), (5_278, 10), (48_842, 14)):
        plain = work(rows, columns=columns).effort_by_default()
        assert plain.judged == FOLDS
        assert plain.people >= min(rows, 10_000)
        assert work(rows, columns=columns, relabel="probabilities").effort_by_default() is not None
        assert work(rows, columns=columns, relabel="predictions").effort_by_default() is not None


def test_people_are_saved_before_folds():
    small, large = (work(rows, columns=30).effort_by_default() for rows in (5_000, 10**6))
    assert small.judged == large.judged == FOLDS
    assert large.people < MOST_PEOPLE


def test_a_table_that_takes_long_at_any_rate_is_left_out():
    assert work(10**6, columns=2_000).effort_by_default() is None
    assert work(10**6, outcomes=50).effort_by_default() is None


def test_without_scikit_learn_all_models_are_fast(monkeypatch):
    job = work(700, relabel="predictions")
    slow = job.seconds(job.effort_asked_for())
    monkeypatch.setattr(effort, "has_library", lambda _: False)
    assert job.seconds(job.effort_asked_for()) < slow
    assert job.effort_by_default().judged == FOLDS
