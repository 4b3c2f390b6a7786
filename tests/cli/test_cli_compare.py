"""``fairmaxent compare``: every method on one table, against the methods called by
hand.
"""

import json

import numpy as np
import polars as pl
import pytest

import clifiles
import fairmaxent
from clifiles import ROLES, biased_table
from fairmaxent import Model
from fairmaxent.baselines import cross_validation
from fairmaxent.baselines.cross_validation import (
    CrossValidation,
    Scores,
    TriedMethod,
    methods,
)

FAVOURED = [*ROLES, "--favourable", ">50K"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().drop("age", "weight").write_csv("data.csv")
    return tmp_path


def run(*args):
    return clifiles.run("compare", *args).stdout


@pytest.mark.slow
def test_every_method_is_scored_or_says_why_not(folder):
    args = [*FAVOURED, "--representation-rate", "1", "--json"]
    found = {own["method"]: own for own in json.loads(run("data.csv", *args))}
    assert len(found) == 11
    scored = {name: own for name, own in found.items() if own["refused"] is None}
    assert {
        "fairmaxent, rows",
        "fairmaxent, weights",
        "raw",
        "Kamiran-Calders",
        "King-Zeng",
    } <= set(scored)
    for ours in ("fairmaxent, weights", "relabel, probabilities", "model"):
        assert scored[ours]["representation_rate"] > 0.999
        # outcomes give way to equal decisions
        assert scored[ours]["statistical_rate"] > 0.999 or ours == "model"
    assert (
        scored["Kamiran-Calders"]["statistical_rate"]
        > 0.9
        > 0.6
        > scored["raw"]["statistical_rate"]
    )
    assert (
        scored["King-Zeng"]["representation_rate"]
        > 0.95
        > 0.6
        > scored["raw"]["representation_rate"]
    )
    assert all(0.4 < own["accuracy"] < 1 for own in scored.values())


@pytest.mark.more
def test_relabelling_and_a_table_for_the_classifier_are_tried_anyway(
    folder, monkeypatch
):
    asked = []
    fit_frame = cross_validation.fit_frame
    monkeypatch.setattr(
        cross_validation,
        "fit_frame",
        lambda frame, request: asked.append(request) or fit_frame(frame, request),
    )
    ours = ("fairmaxent, rows", "relabel, probabilities", "model")

    def ours_only(model):
        every = methods(model)
        return {name: every[name] for name in ours}

    monkeypatch.setattr(cross_validation, "methods", ours_only)
    run("data.csv", *FAVOURED, "--folds", "2", "--classifier", "logistic")
    models = [request.model for request in asked]
    assert models[0] is None
    assert Model("boosting", parity="probabilities") in models
    student = models[-1].estimator.steps[-1][1]
    assert type(student).__name__ == "LogisticRegression"


def test_the_verdict_comes_first_and_all_fits_80_columns(folder, monkeypatch):
    kept = {
        name: method
        for name, method in methods().items()
        if name in ("fairmaxent, rows", "raw")
    }

    def refuse(*_, **__):
        raise fairmaxent.InputError(
            "far too large; " + "drop columns or merge levels, " * 9
        )

    monkeypatch.setattr(
        cross_validation, "methods", lambda _: {**kept, "massaging": refuse}
    )
    shown = run("data.csv", *FAVOURED, "--folds", "2")
    *text, following = shown.splitlines()
    assert all(len(line) <= 80 for line in text)
    verdict = " ".join(shown.split("\n\n")[0].split())
    assert verdict.startswith(("Choose ", "No method ", "These cannot be told apart"))
    assert "accuracy" in shown.split("\n\n")[1].splitlines()[0]
    assert shown.split("\n\n")[2].startswith("How to read it")
    assert following.startswith("Next: ")


@pytest.mark.more
def test_the_truth_is_named_on_the_command_line(folder, monkeypatch):
    monkeypatch.setattr(
        cross_validation, "methods", lambda _: {"raw": methods()["raw"]}
    )
    table = biased_table().drop("age", "weight")
    table.with_columns(
        happened=pl.when(pl.int_range(pl.len()) < 300).then("income")
    ).write_csv("data.csv")
    shown = run("data.csv", *FAVOURED, "--truth", "happened")
    assert shown.split("\n\n")[1].splitlines()[0].endswith("truth")
    assert all(len(line) <= 80 for line in shown.splitlines()[:-1])
    (found,) = json.loads(run("data.csv", *FAVOURED, "--truth", "happened", "--json"))
    assert 0.5 < found["true_accuracy"] < 1


def test_the_next_step_asks_for_the_chosen_method(folder, monkeypatch):
    def tried(name, rate, accuracy):
        scores = Scores(1.0, 1.0, accuracy, rate, (rate, rate), 0.1)
        sure = np.broadcast_to([[[rate]], [[accuracy]]], (2, 3, 10))
        return TriedMethod(name, scores, None, sure)

    found = [tried("relabel, probabilities", 1.0, 0.9), tried("raw", 0.3, 0.91)]
    monkeypatch.setattr(CrossValidation, "run", lambda *_: iter(found))
    shown = run("data.csv", *FAVOURED, "--folds", "2", "--statistical-rate", "0.9")
    assert "Choose 'relabel, probabilities'" in shown
    assert (
        "'fairmaxent debias --model boosting --parity probabilities --mode weights',"
        " with the same options" in shown
    )
    found[0] = tried("Kamiran-Calders", 1.0, 0.9)
    assert "Next: use it in Python: fairmaxent.baselines.kamiran_calders(frame" in run(
        "data.csv", *FAVOURED
    )
    found[0] = tried("ThresholdOptimizer", 1.0, 0.9)
    assert "Next: use it in Python: fairlearn's ThresholdOptimizer" in run(
        "data.csv", *FAVOURED
    )
    found.append(tried("massaging", 1.0, 0.9))
    shown = run("data.csv", *FAVOURED)
    assert shown.startswith("These cannot be told apart: 'massaging', 'ThresholdOpti")
    assert "Next: take the one that fits your work" in shown
    del found[::2]
    assert "Next: see what the table itself would gain" in run("data.csv", *FAVOURED)
