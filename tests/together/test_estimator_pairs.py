"""Options of estimators reach `debias`, where pairs of them are refused or honoured."""

from dataclasses import fields

import pytest
from wishes import WISHES

from fairmaxent import Model
from fairmaxent.fit.request import Request
from judging import RECORDS, asked_by

pytest.importorskip("sklearn", reason="estimators are those of scikit-learn")

from fairmaxent import estimator, fair_classifier

# Why an estimator does not have an option.
NOT_SAMPLED = {
    "outcome",  # it is y
    "progress",
    "keep_columns",  # X comes back with all of its columns
    "release",  # which it would not
}
NOT_LEARNED = NOT_SAMPLED | {
    # what a model decides leaves no room for them
    *("equal_means", "target", "largest_weight", "forbid", "privacy", "likely"),
    "smallest_group",
    # they are about new rows
    *("base", "base_share", "detail", "random_state"),
    "weight",  # it is sample_weight
    "estimate",  # what it decides is estimated anyway
}


class ReachedError(Exception):
    """What `debias` was asked for."""


def reached(table, outcome, protected, **options):
    raise ReachedError(Request(outcome, protected, **options))


def wishes_for(absent):
    """One for each option that a door has."""
    found = {wish.option: wish for wish in reversed(WISHES)}
    return [wish for name, wish in found.items() if name.split(".")[0] not in absent]


def asked_of_door(wish, folder):
    """The features, the outcome, and the options as an estimator takes them."""
    asked = asked_by((wish,), folder)
    options = dict(asked.options)
    outcome = options.pop("outcome")
    table = asked.data
    return table.drop(columns=outcome), table[outcome], options


def assert_reached(wish, request, options):
    name, *part = wish.option.split(".")
    held = getattr(request, name)
    if part:
        assert getattr(held, part[0]) == options[name][part[0]]
    elif name == "protected":
        assert [*held] == [*options[name]]
    elif name not in RECORDS:
        alone = Request("hired", options["protected"], **{name: options[name]})
        assert held == getattr(alone, name)


@pytest.mark.parametrize("wish", wishes_for(NOT_SAMPLED), ids=lambda wish: wish.label)
def test_fair_max_ent_passes_it_on(wish, tmp_path, monkeypatch):
    monkeypatch.setattr(estimator, "debias", reached)
    X, y, options = asked_of_door(wish, tmp_path)
    records = {
        name: record(**options[name])
        for name, record in RECORDS.items()
        if name in options
    }
    door = estimator.FairMaxEnt(**(options | records))
    with pytest.raises(ReachedError) as caught:
        door.fit(X, y)
    assert_reached(wish, caught.value.args[0], options)


@pytest.mark.parametrize("wish", wishes_for(NOT_LEARNED), ids=lambda wish: wish.label)
def test_fair_classifier_passes_it_on(wish, tmp_path, monkeypatch):
    monkeypatch.setattr(fair_classifier, "debias", reached)
    X, y, options = asked_of_door(wish, tmp_path)
    of_model = {"estimator": "logistic", **options.pop("model", {})}
    door = fair_classifier.FairClassifier(**options, **of_model)
    with pytest.raises(ReachedError) as caught:
        door.fit(X, y)
    assert_reached(wish, caught.value.args[0], options | {"model": of_model})


def test_no_other_option_is_missing():
    options = {wish.option.split(".")[0] for wish in WISHES}
    own = {"rows"}
    assert {*estimator.FairMaxEnt().get_params()} == options - NOT_SAMPLED | own
    of_model = {field.name for field in fields(Model)}
    learned = options - NOT_LEARNED - {"model"}
    assert {*fair_classifier.FairClassifier().get_params()} == learned | of_model
