"""request.py, keywords.py: what was asked for is checked once, kept whole, and shown by
every front door.
"""

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

import fairmaxent
from fairmaxent import Estimate, InputError, Model, debias
from fairmaxent.errors import ColumnError, ForbiddenError, RateError
from fairmaxent.fit.paper_request import PaperRequest
from fairmaxent.fit.records import pack, unpack
from fairmaxent.fit.request import Request
from fairmaxent.maxent.priors.mixture import Mixture
from tables import EQUAL_PROBABILITIES, random_frame

FULL = Request(
    "y",
    ["z0", "z1"],
    representation_rate={"z0": 0.5, "z1": None},
    statistical_rate=0.8,
    favourable=["o1", 2],
    groups="each",
    base="product",
    base_share=0.3,
    model=EQUAL_PROBABILITIES,
    estimate=Estimate(output="weights", model="tree"),
    detail="bins",
    weight="w",
    random_state=9,
)


def frame():
    return random_frame(np.random.default_rng(3), (2,), 2, rows=200)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outcome": None}, ColumnError, "outcome"),
        ({"protected": 3}, ColumnError, "protected"),
        ({"weight": "y"}, ColumnError, "weight"),
        ({"groups": "both"}, InputError, "groups"),
        ({"base": "tre"}, InputError, "did you mean 'tree'"),
        (
            {"base": Mixture((), np.zeros(0))},
            InputError,
            "known: 'tree', 'product', 'uniform'",
        ),
        ({"base_share": 1.5}, InputError, "between 0"),
        ({"base_share": True}, InputError, "between 0"),
        ({"representation_rate": 1.5}, RateError, "representation_rate is 1.5"),
        ({"statistical_rate": {"z": 0}}, RateError, r"statistical_rate\['z'\] is 0"),
        ({"random_state": -1}, InputError, "random_state"),
        ({"detail": "row"}, InputError, "detail"),
        ({"estimate": "row"}, InputError, "did you mean 'rows'"),
        ({"estimate": 3}, InputError, "Estimate"),
        ({"forbid": "sex"}, ForbiddenError, "forbid"),
    ],
)
def test_every_option_is_checked_when_the_request_is_made(options, error, words):
    given = {"outcome": "y", "protected": "z"} | options
    with pytest.raises(error, match=words):
        Request(given.pop("outcome"), given.pop("protected"), **given)


def test_a_request_survives_storage():
    assert unpack(pack(FULL), Request) == FULL
    wished = Request(
        "y",
        "z",
        target={"x0": {"a": 0.25, 7: 0.75}, "x1": None},
        forbid=[{"z0": "a", "y": "o1"}],
    )
    assert unpack(pack(wished), Request) == wished
    plain = Request("y", "z", model=EQUAL_PROBABILITIES, estimate="rows")
    assert unpack(pack(plain), Request) == plain
    paper = PaperRequest(
        "y", "z", C=0.5, prior="w", theta="b", tau=0.9, solver="newton", favourable="o1"
    )
    assert unpack(pack(paper), PaperRequest) == paper


def test_models_inside_a_request_are_not_stored():
    from sklearn.linear_model import LogisticRegression

    asked = Request("y", "z", estimate=Estimate(model=LogisticRegression()))
    stored = unpack(pack(asked), Request)
    assert stored == replace(asked, estimate=Estimate())
    own = Request(
        "y", "z", model=Model(LogisticRegression(), threshold=0.4, hide_protected=True)
    )
    assert unpack(pack(own), Request).model == replace(own.model, estimator=None)


def test_a_fit_is_not_changed_by_what_the_caller_does_later():
    forbid, target = [{"z0": "g0", "x0": "v0"}], {"x2": None}
    fit = debias(frame(), "y", "z0", forbid=forbid, target=target)
    kept = replace(fit.request)
    forbid.append({"z0": "g1", "x0": "v1"})
    target["x0"] = None
    assert fit.request == kept
    assert len(fit.request.forbid) == len(fit.request.target) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"progress": "x"}, "fields of Request are not"),
        ({"base_share": "x"}, "expected float, found str"),
        ({"groups": "zzz"}, "expected .*each.*, found str|expected Literal"),
    ],
)
def test_a_stored_request_is_not_trusted(change, words):
    record = pack(Request("y", "z")) | change
    with pytest.raises((KeyError, ValueError), match=words):
        unpack(record, Request)


def test_a_fit_keeps_what_was_asked_for_but_not_the_callback():
    calls = []
    asked = {
        "representation_rate": 0.7,
        "base_share": 0.4,
        "random_state": 5,
        "favourable": "o1",
    }
    fit = debias(
        frame(), "y", "z0", **asked, progress=lambda stage, share: calls.append(stage)
    )
    assert calls
    assert fit.request == Request("y", "z0", **asked)
    assert fit.request.progress is None
    assert fit.request.domain is None


def test_front_doors_show_the_fields_as_keywords():
    names = [option.name for option in fields(Request)]
    assert list(inspect.signature(debias).parameters) == ["frame", *names]
    assert inspect.signature(debias).parameters["base_share"].default == 0.2
    own = list(inspect.signature(fairmaxent.FairMaxEnt).parameters)
    assert own[:2] == ["protected", "rows"]
    # X comes back whole
    others = {"outcome", "progress", "keep_columns", "release"}
    assert set(own) - {"rows"} == set(names) - others


def test_unknown_and_missing_arguments_are_named_as_those_of_the_function():
    with pytest.raises(
        TypeError, match=r"debias\(\) has no option 'grops'; did you mean 'groups'"
    ):
        debias(frame(), "y", "z0", grops="joint")
    with pytest.raises(
        TypeError, match=r"debias\(\): missing a required argument: 'protected'"
    ):
        debias(frame(), "y")
    with pytest.raises(TypeError, match=r"FairMaxEnt\(\) has no option 'row'"):
        fairmaxent.FairMaxEnt(row=3)
