"""Relabelling and what a model will do, on the command line: the same as in Python, and
said in time.
"""

import json

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import clifiles
import fairmaxent
from clifiles import QUIET, ROLES, ROWS, biased_table
from fairmaxent import Model, debias
from fairmaxent.files.formats import read_table
from tables import EQUAL_PROBABILITIES

FAVOURED = [*ROLES, "--favourable", ">50K"]
RELABEL = ["--model", "logistic", "--parity", "probabilities"]


def run(*args):
    return clifiles.run("debias", *args).stdout


def fit_of(without=(), **options):
    return debias(
        biased_table().drop(without), "income", "sex", favourable=">50K", **options
    )


@pytest.mark.more
def test_a_model_means_what_it_means_in_python(folder):
    typed = [
        "--model",
        "logistic",
        "--hide-protected",
        "--threshold",
        "0.4",
        "--decided",
        "best",
    ]
    shown = run("data.csv", *FAVOURED, *typed, *QUIET, "-o", "fair.csv", "--seed", 1)
    assert "to train it, use --mode weights" in shown
    plan = Model("logistic", hide_protected=True, threshold=0.4, decided="best")
    fit = fit_of(model=plan, random_state=1)
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS))


@pytest.mark.more
def test_weights_stand_beside_each_row_once_per_outcome_that_it_has_with_columns_left_out_of_the_fit(
    folder,
):
    asked = [
        *FAVOURED,
        *RELABEL,
        *QUIET,
        "--mode",
        "weights",
        "--drop",
        "weight,age",
        "--weight-name",
        "w",
    ]
    shown, fair = run("data.csv", *asked, "-o", "fair.csv"), pl.read_csv("fair.csv")
    assert_frame_equal(
        fair,
        fit_of(["weight", "age"], model=EQUAL_PROBABILITIES).weigh(
            biased_table(), weight_name="w"
        ),
    )
    assert ROWS < len(fair) < 2 * ROWS
    assert f"Note: {ROWS:,} rows became {len(fair):,}, because" in shown
    np.testing.assert_allclose(fair["w"].sum(), ROWS)
    rate = fairmaxent.metrics.statistical_rate(
        fair, "income", "sex", favourable=">50K", weight="w"
    )
    assert float(rate) == pytest.approx(1, abs=1e-8)


@pytest.mark.more
def test_it_is_estimated_for_what_is_written(folder):
    mode = "weights"
    shown = run(
        "data.csv",
        *FAVOURED,
        "--mode",
        mode,
        "--estimate",
        mode,
        "-o",
        "fair.csv",
        "--seed",
        1,
    )
    known = fit_of(estimate=mode).certificate.estimate
    assert f"gradient boosting trained on the {mode}" in shown
    assert f"95 % of measurements on {round(ROWS / 3)} other people" in shown
    name = "Statistical rate of its predictions, sex"
    for line, kind, grouping in (
        ("Accuracy", "accuracy", ""),
        ("AUC", "auc", ""),
        (name, "by_predictions", "sex"),
    ):
        before, after = (getattr(own, kind) for own in (known.before, known.after))
        numbers = [
            values[grouping] if grouping else values for values in (before, after)
        ]
        low, high = known.after.ranges[kind][grouping]
        (own,) = (own for own in shown.splitlines() if own.startswith(line))
        assert f" {numbers[0]:.4f} (" in own
        assert own.endswith(f" {numbers[1]:.4f} ({low:.2f} to {high:.2f})")


@pytest.mark.more
def test_a_warning_names_the_option_that_helps(folder, monkeypatch):
    # whatever is expected is too little
    monkeypatch.setattr("fairmaxent.telling.models.SLACK", -1.0)
    shown = run("data.csv", *FAVOURED, "--estimate", "weights")
    assert "To make the table for your model, use --model" in shown


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("mode", "output"), [("rows", "rows"), ("weights", "weights"), ("top-up", "rows")]
)
def test_where_it_is_not_estimated_one_line_says_how_to_ask(mode, output, folder):
    shown = run("data.csv", *FAVOURED, "--mode", mode)
    (line,) = [line for line in shown.splitlines() if "was not estimated" in line]
    assert line.endswith(f"to estimate it, use --estimate {output}")
    assert "was not estimated" not in run("data.csv", *FAVOURED, *QUIET)


@pytest.mark.more
def test_rates_and_shares_of_decisions_are_shown(folder):
    asked = ["data.csv", *FAVOURED, *QUIET, "--seed", "1"]
    shown = run(*asked, "--model", "logistic")
    decisions = json.loads(run(*asked, "--model", "logistic", "--json"))["certificate"][
        "decisions"
    ]
    assert (
        "decisions of LogisticRegression about people of the data it did not" in shown
    )
    assert all(f"{share['share']:.4f}" in shown for share in decisions["shares"])
    assert "of the data it did not" not in run(*asked)
