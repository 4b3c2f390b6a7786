"""``fairmaxent debias`` and ``fairmaxent sample``: the same as in Python, from file to
file.
"""

import io
import json

import numpy as np
import polars as pl
import pytest

import fairmaxent
from clifiles import ROLES, ROWS, biased_table, listing, run
from fairmaxent import debias
from fairmaxent.cli.output import formula_notes
from fairmaxent.files.formats import read_table

FAVOURED = [*ROLES, "--favourable", ">50K"]


def sr(frame, **options):
    return float(
        fairmaxent.metrics.statistical_rate(
            frame, "income", "sex", favourable=">50K", **options
        )
    )


def read_as(**options):
    return {"domain": fairmaxent.Domain.infer(biased_table(), **options)}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (
            ["--representation-rate", "0.9", "--weight", "weight"],
            {"representation_rate": 0.9, "weight": "weight"},
        ),
        (
            ["--representation-rate", "none", "--groups", "joint"],
            {"representation_rate": None, "groups": "joint"},
        ),
        (
            ["--statistical-rate", "sex=0.8,race=none"],
            {"statistical_rate": {"sex": 0.8, "race": None}},
        ),
        (
            ["--favourable", ">50K", "--favourable", "<=50K"],
            {"favourable": [">50K", "<=50K"]},
        ),
        (
            ["--target", "income: <=50K=0.7, >50K=0.3"],
            {"target": {"income": {"<=50K": 0.7, ">50K": 0.3}}},
        ),
        (
            ["--target", "age: keep", "--target", "job:keep"],
            {"target": {"age": None, "job": None}},
        ),
        (
            ["--base", "product", "--base-share", "0.1"],
            {"base": "product", "base_share": 0.1},
        ),
        (
            ["--forbid", "sex=Male,job=nurse"],
            {"forbid": [{"sex": "Male", "job": "nurse"}]},
        ),
        (["--within", "job=cook"], {"within": {"job": "cook"}}),
        (
            ["--outcome", "income", "--outcome", "job=cook"],
            {"outcome": ["income", "job"], "favourable": {"job": "cook"}},
        ),
        (
            ["--outcome", "age", "--equal-means"],
            {"outcome": "age", "equal_means": True},
        ),
        (["--bins", "age: 0, 40, 100"], read_as(bins={"age": [0, 40, 100]})),
        (
            ["--kinds", "age: categorical", "--max-levels", "10"],
            read_as(kinds={"age": "categorical"}, max_levels=10),
        ),
        (
            ["--order", "job: nurse, clerk, cook"],
            read_as(order={"job": ["nurse", "clerk", "cook"]}),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_option_means_what_it_means_in_python(typed, options, folder):
    roles = ["--protected", "sex,race"]
    if "--outcome" not in typed:
        roles += ["--outcome", "income"]
    run("debias", "data.csv", *roles, *typed, "-o", "fair.csv", "--seed", 1)
    asked = {
        "outcome": "income",
        "protected": ["sex", "race"],
        "random_state": 1,
    } | options
    fit = debias(biased_table(), **asked)
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS))


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdin_to_stdout_keeps_the_data_apart_from_the_words(folder, name):
    content = (folder / "data.csv").read_bytes()
    result = run("debias", "-", *FAVOURED, "-o", name, "--seed", 7, input=content)
    fair = pl.read_csv(io.BytesIO(result.stdout_bytes))
    assert fair.equals(
        debias(biased_table(), "income", "sex", favourable=">50K").sample(
            ROWS, random_state=7
        )
    )
    assert "statistical rate of sex" in result.stderr
    assert sorted(listing(folder)) == ["data.csv"]


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", ["rows", "weights", "top-up"])
def test_design_weights_count_before_and_after(mode, folder):
    args = [
        "--weight",
        "weight",
        "-o",
        "fair.csv",
        "--mode",
        mode,
        "--seed",
        1,
        "--json",
    ]
    record = json.loads(run("debias", "data.csv", *FAVOURED, *args).stdout)
    np.testing.assert_allclose(
        record["before"]["statistical_rate"]["sex"], sr(biased_table(), weight="weight")
    )
    fair = pl.read_csv("fair.csv", schema_overrides={"weight": pl.Float64})
    after = {
        "rows": lambda: sr(fair),
        "weights": lambda: sr(fair, weight="fair_weight"),
        "top-up": lambda: sr(pl.concat([biased_table(), fair]), weight="weight"),
    }
    np.testing.assert_allclose(
        record["after"]["statistical_rate"]["sex"], after[mode](), rtol=1e-9
    )


def test_a_saved_model_gives_the_rows_that_python_gives(folder):
    run("debias", "data.csv", *ROLES, "--save", "fit.fme")
    fit = fairmaxent.load("fit.fme")
    run(
        "sample",
        "fit.fme",
        "-n",
        50,
        "--given",
        "sex=Female,job=nurse",
        "--seed",
        5,
        "-o",
        "rows.csv",
    )
    expected = fit.sample(50, given={"sex": "Female", "job": "nurse"}, random_state=5)
    assert read_table("rows.csv").frame.equals(expected)
    found = run(
        "sample",
        "fit.fme",
        "-n",
        50,
        "--given",
        "race=Black",
        "--given",
        "race=Other",
        "--seed",
        5,
        "--iid",
    )
    expected = fit.sample(
        50, given={"race": ["Black", "Other"]}, random_state=5, iid=True
    )
    assert pl.read_csv(io.BytesIO(found.stdout_bytes)).equals(expected)


def test_a_column_that_says_the_outcome_is_named_again(folder):
    told = pl.col("income").replace({">50K": "yes", "<=50K": "no"})
    biased_table().with_columns(raise_=told).write_csv("leak.csv")
    said = " ".join(
        run("debias", "leak.csv", *FAVOURED, "--estimate", "none").stdout.split()
    )
    assert "'raise_' predicts the outcome nearly perfectly" in said
    assert "--drop raise_" in said
    assert (
        "nearly perfectly"
        not in run("debias", "data.csv", *FAVOURED, "--estimate", "none").stdout
    )


FORMULAS = [
    "=1+1",
    "@SUM(A1)",
    "-1+1",
    "+cmd|' /C calc'!A0",
    "\t=1",
    '=HYPERLINK("http://x")',
]
TEXTS = [
    "-5",
    "+5.5",
    "-1,000.5",
    "-",
    "+",
    "",
    None,
    "a=b",
    "1-2",
    "-3 %",
    "-1e-5",
    "<=50K",
    ">50K",
]


def test_formulas_and_texts():
    for text in FORMULAS:
        for column in (
            pl.Series("a", [text, "x"]),
            pl.Series("a", [text, "x"], pl.Categorical),
            pl.Series(text, [1]),
        ):
            (note,) = formula_notes([column, pl.Series("b", [1, 2])], "fair.csv", None)
            assert f"in {column.name!r};" in note
    assert (
        formula_notes(
            [pl.Series("a", TEXTS), pl.Series("b", range(len(TEXTS)))], "fair.csv", None
        )
        == ()
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_says_so(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    table = biased_table().with_columns(job=pl.col("job").replace("cook", "=1+1"))
    table.write_parquet("data.parquet")
    said = run(
        "debias", "data.parquet", *ROLES, "-o", f"fair.{suffix}", "--save", "fit.fme"
    ).stdout
    assert ("as formulas" in said) == (suffix == "csv")
    said = run("sample", "fit.fme", "-n", "9", "-o", f"rows.{suffix}").stdout
    assert ("'job'; a spreadsheet may run them" in said) == (suffix == "csv")
