"""The front door: what `debias`, `load` and the paper's `fit` return is one class."""

import copy
import pickle

import numpy as np
import pytest

import fairmaxent
from fairmaxent.debiasing import Fit
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.pipeline import fit_frame, refit, with_estimate
from fairmaxent.fit.request import Request
from tables import random_frame


@pytest.fixture(scope="module")
def frame():
    return random_frame(np.random.default_rng(3), (2,), 2)


@pytest.fixture(scope="module")
def fit(frame):
    return fairmaxent.debias(frame, "y", "z0", favourable="o1", random_state=0)


def test_every_front_door_returns_a_fit_that_writes_its_papers(frame, fit, tmp_path):
    fit.save(tmp_path / "fit.fme")
    loaded = fairmaxent.load(tmp_path / "fit.fme")
    own = fairmaxent.paper.fit(frame, outcome="y", protected="z0")
    for number, each in enumerate((fit, loaded, own, copy.copy(fit))):
        assert type(each) is Fit
        path = tmp_path / f"{number}.md"
        each.report(path, trade_off=False)
        assert path.read_text().startswith("# Fairness report")
    assert "To be written by" in fit.document("card")


def test_a_pickled_fit_is_a_fit_that_draws_the_same_rows(fit):
    fit.weights()  # what was computed on the way does not get in the way
    again = pickle.loads(pickle.dumps(fit))
    assert type(again) is Fit
    assert repr(again) == repr(fit)
    assert again.sample(30).equals(fit.sample(30))


@pytest.mark.more
def test_below_the_front_door_a_fit_has_no_papers_and_a_change_keeps_its_class(
    frame, fit
):
    plain = fit_frame(frame, Request("y", "z0", favourable="o1", random_state=0))
    assert type(plain) is Certified
    assert not hasattr(plain, "report")
    assert repr(plain) == repr(fit)
    assert type(refit(fit, fit.request)) is Certified
    estimate = fairmaxent.Estimate(model="tree")
    assert type(with_estimate(fit, estimate)) is Fit
