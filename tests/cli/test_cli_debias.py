"""``fairmaxent debias`` and ``fairmaxent sample``: the same as in Python, from file to file."""

import io
import json
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import ROLES, ROWS, biased_table, listing
from fairmaxent import debias
from fairmaxent.cli.group import group
from fairmaxent.files.formats import read_table

FAVOURED = [*ROLES, "--favourable", ">50K"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().write_csv("data.csv")
    return tmp_path


def run(*args, typed_in=None):
    result = CliRunner().invoke(group, [str(arg) for arg in args], input=typed_in)
    assert result.exit_code == 0, result.stderr
    return result


def sr(frame, **options):
    return float(fairmaxent.metrics.statistical_rate(frame, "income", "sex", favourable=">50K", **options))


# ---------------------------------------------------------------- the same as in Python


def test_the_same_seed_gives_the_rows_that_python_gives(folder):
    run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--seed", 7)
    fit = debias(pl.read_csv("data.csv"), "income", "sex", favourable=">50K")
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS, random_state=7))


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["--representation-rate", "0.9"], {"representation_rate": 0.9}),
        (["--representation-rate", "none"], {"representation_rate": None}),
        (["--statistical-rate", "sex=0.8,race=none"], {"statistical_rate": {"sex": 0.8, "race": None}}),
        (["--favourable", ">50K"], {"favourable": ">50K"}),
        (["--favourable", ">50K", "--favourable", "<=50K"], {"favourable": [">50K", "<=50K"]}),
        (["--groups", "joint"], {"groups": "joint"}),
        (["--target", "sex: Female=0.6, Male=0.4"], {"target": {"sex": {"Female": 0.6, "Male": 0.4}}}),
        (["--target", "income: <=50K=0.7, >50K=0.3"], {"target": {"income": {"<=50K": 0.7, ">50K": 0.3}}}),
        (["--target", "age: keep", "--target", "job:keep"], {"target": {"age": None, "job": None}}),
        (["--base", "product"], {"base": "product"}),
        (["--base-share", "0.1"], {"base_share": 0.1}),
        (["--weight", "weight"], {"weight": "weight"}),
        (["--forbid", "sex=Male,job=nurse"], {"forbid": [{"sex": "Male", "job": "nurse"}]}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_option_means_what_it_means_in_python(typed, options, folder):
    roles = ["--outcome", "income", "--protected", "sex,race"]
    run("debias", "data.csv", *roles, *typed, "-o", "fair.csv", "--seed", 1)
    fit = debias(biased_table(), "income", ["sex", "race"], random_state=1, **options)
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS))


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["--bins", "4"], {"bins": 4}),
        (["--bins", "age: 4"], {"bins": {"age": 4}}),
        (["--bins", "age: 0, 40, 100"], {"bins": {"age": [0, 40, 100]}}),
        (["--kinds", "age: categorical", "--max-levels", "10"], {"kinds": {"age": "categorical"}, "max_levels": 10}),
        (["--order", "job: nurse, clerk, cook"], {"order": {"job": ["nurse", "clerk", "cook"]}}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_columns_are_read_as_a_domain_reads_them(typed, options, folder):
    run("debias", "data.csv", *ROLES, *typed, "-o", "fair.csv", "--seed", 1)
    fit = debias(biased_table(), "income", "sex", domain=fairmaxent.Domain.infer(biased_table(), **options))
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS, random_state=1))


def test_pandas_gives_the_same_rows(folder):
    run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--seed", 3, "--rows", 100)
    drawn = debias(pd.read_csv("data.csv"), "income", "sex", favourable=">50K").sample(100, random_state=3)
    pd.testing.assert_frame_equal(pd.read_csv("fair.csv"), drawn)


# ---------------------------------------------------------------- outputs


def test_rows_are_fair_and_as_many_as_asked_for(folder):
    result = run("debias", "data.csv", *FAVOURED, "-o", "fair.parquet", "--rows", 1000, "--seed", 0)
    fair = pl.read_parquet("fair.parquet")
    assert len(fair) == 1000
    assert sr(fair) > 0.98 > 0.6 > sr(biased_table())
    assert "statistical rate of sex" in result.stdout
    assert "wrote fair.parquet (1,000 rows)" in result.stdout
    assert "income = >50K" in result.stdout


def test_independent_draws(folder):
    run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--iid", "--seed", 2)
    fit = debias(biased_table(), "income", "sex", favourable=">50K")
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS, iid=True, random_state=2))


def test_weights_stand_beside_the_rows(folder):
    run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--mode", "weights", "--weight-name", "w")
    fair = pl.read_csv("fair.csv")
    assert fair.drop("w").equals(biased_table())
    np.testing.assert_allclose(fair["w"].mean(), 1.0)
    np.testing.assert_allclose(sr(fair, weight="w"), 1.0, atol=1e-6)


def test_top_up_writes_only_the_rows_to_add(folder):
    run("debias", "data.csv", *FAVOURED, "-o", "more.csv", "--mode", "top-up", "--seed", 4)
    added = pl.read_csv("more.csv")
    assert added.equals(debias(biased_table(), "income", "sex", favourable=">50K").top_up(random_state=4))
    assert sr(pl.concat([biased_table(), added])) > 0.97


def test_stdin_to_stdout_keeps_the_data_apart_from_the_words(folder):
    content = (folder / "data.csv").read_bytes()
    result = run("debias", "-", *FAVOURED, "-o", "-", "--seed", 7, typed_in=content)
    fair = pl.read_csv(io.BytesIO(result.stdout_bytes))
    assert fair.equals(debias(biased_table(), "income", "sex", favourable=">50K").sample(ROWS, random_state=7))
    assert "statistical rate of sex" in result.stderr
    assert sorted(listing(folder)) == ["data.csv"]


def test_without_an_output_nothing_is_written(folder):
    result = run("debias", "data.csv", *FAVOURED)
    assert "Nothing was written" in result.stdout
    assert sorted(listing(folder)) == ["data.csv"]


def test_json_tells_the_rates_that_the_file_has(folder):
    result = run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--seed", 1, "--json")
    record = json.loads(result.stdout)
    assert record["rows"] == ROWS
    assert record["files"] == ["fair.csv"]
    np.testing.assert_allclose(record["before"]["statistical_rate"]["sex"], sr(biased_table()))
    np.testing.assert_allclose(record["after"]["statistical_rate"]["sex"], sr(pl.read_csv("fair.csv")))
    np.testing.assert_allclose(record["certificate"]["achieved"]["statistical_rate"]["sex"], 1.0, atol=1e-6)


@pytest.mark.parametrize("mode", ["rows", "weights", "top-up"])
def test_design_weights_count_before_and_after(mode, folder):
    args = ["--weight", "weight", "-o", "fair.csv", "--mode", mode, "--seed", 1, "--json"]
    record = json.loads(run("debias", "data.csv", *FAVOURED, *args).stdout)
    np.testing.assert_allclose(record["before"]["statistical_rate"]["sex"], sr(biased_table(), weight="weight"))
    fair = pl.read_csv("fair.csv", schema_overrides={"weight": pl.Float64})
    after = {
        "rows": lambda: sr(fair),
        "weights": lambda: sr(fair, weight="fair_weight"),
        "top-up": lambda: sr(pl.concat([biased_table(), fair]), weight="weight"),
    }
    np.testing.assert_allclose(record["after"]["statistical_rate"]["sex"], after[mode](), rtol=1e-9)


def test_a_handful_of_rows_without_the_favourable_outcome_still_ends_well(folder):
    result = run("debias", "data.csv", *FAVOURED, "-o", "fair.csv", "--rows", 1, "--seed", 1)
    assert "wrote fair.csv (1 row)\n" in result.stdout


def test_force_replaces(folder):
    (folder / "fair.csv").write_text("old")
    run("debias", "data.csv", *ROLES, "-o", "fair.csv", "--force")
    assert len(pl.read_csv("fair.csv")) == ROWS


def test_dropped_columns_are_gone(folder):
    run("debias", "data.csv", *ROLES, "-o", "fair.csv", "--drop", "weight,age")
    assert pl.read_csv("fair.csv").columns == ["sex", "race", "job", "income"]


def test_a_disk_that_fills_up_leaves_nothing(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.LazyFrame, "sink_csv", full)
    before = listing(folder)
    result = CliRunner().invoke(group, ["debias", "data.csv", *ROLES, "-o", "fair.csv", "--model", "model.fme"])
    assert result.exit_code == 5
    assert "No space left" in result.stderr
    assert listing(folder) == before


# ---------------------------------------------------------------- a file of options

CONFIG = """
outcome = "income"
protected = ["sex", "race"]
favourable = ">50K"
statistical_rate = 0.9
base_share = 0.35
random_state = 11
drop = ["weight"]
forbid = [{sex = "Male", job = "nurse"}]

[representation_rate]
sex = 0.8
race = "none"

[target]
job = "keep"

[bins]
age = [0, 40, 100]
"""


def test_a_file_holds_the_same_options(folder):
    (folder / "options.toml").write_text(CONFIG)
    run("debias", "data.csv", "--config", "options.toml", "-o", "fair.csv")
    table = biased_table().drop("weight")
    fit = debias(
        table,
        "income",
        ["sex", "race"],
        favourable=">50K",
        statistical_rate=0.9,
        base_share=0.35,
        forbid=[{"sex": "Male", "job": "nurse"}],
        representation_rate={"sex": 0.8, "race": None},
        target={"job": None},
        domain=fairmaxent.Domain.infer(table, bins={"age": [0, 40, 100]}),
    )
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS, random_state=11))


def test_the_command_line_wins_over_the_file(folder):
    (folder / "options.toml").write_text('outcome = "job"\nprotected = "race"\nrandom_state = 1\n')
    run("debias", "data.csv", "--config", "options.toml", *ROLES, "-o", "fair.csv", "--seed", 2)
    assert read_table("fair.csv").frame.equals(debias(biased_table(), "income", "sex").sample(ROWS, random_state=2))


def test_one_file_serves_every_command(folder):
    (folder / "options.toml").write_text(CONFIG)
    shown = run("inspect", "data.csv", "--config", "options.toml").stdout
    assert "240 rows, 5 columns" in shown


# ---------------------------------------------------------------- saved models


def test_a_saved_model_gives_the_rows_that_python_gives(folder):
    run("debias", "data.csv", *ROLES, "--model", "model.fme")
    fit = fairmaxent.load("model.fme")
    run("sample", "model.fme", "-n", 50, "--given", "sex=Female,job=nurse", "--seed", 5, "-o", "rows.csv")
    expected = fit.sample(50, given={"sex": "Female", "job": "nurse"}, random_state=5)
    assert read_table("rows.csv").frame.equals(expected)
    several = run(
        "sample", "model.fme", "-n", 50, "--given", "race=Black", "--given", "race=Other", "--seed", 5, "--iid"
    )
    expected = fit.sample(50, given={"race": ["Black", "Other"]}, random_state=5, iid=True)
    assert pl.read_csv(io.BytesIO(several.stdout_bytes)).equals(expected)


def test_a_number_is_given_as_a_number(folder):
    run("debias", "data.csv", *ROLES, "--model", "model.fme")
    age = biased_table()["age"][0]
    drawn = run("sample", "model.fme", "-n", 5, "--given", f"age={age}")
    assert pl.read_csv(io.BytesIO(drawn.stdout_bytes))["age"].to_list() == [age] * 5


def test_a_model_of_pandas_is_sampled_too(folder):
    debias(biased_table().to_pandas(), "income", "sex").save("pandas.fme")
    run("sample", "pandas.fme", "-n", 20, "-o", "rows.parquet", "--seed", 0)
    assert pl.read_parquet("rows.parquet").columns == biased_table().columns


def test_a_report_says_how_to_repeat_it(folder):
    args = ["debias", "data.csv", *FAVOURED, "--seed", "1", "-o", "fair.csv", "--report", "report.md"]
    run(*args)
    assert shlex.join(["fairmaxent", *args]) in (folder / "report.md").read_text()
    assert sorted(listing(folder)) == ["data.csv", "fair.csv", "report.md"]


def test_a_column_that_says_the_outcome_is_named_again(folder):
    table = biased_table().with_columns(
        raise_=pl.when(pl.col("income") == ">50K").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    table.write_csv("leak.csv")
    said = " ".join(run("debias", "leak.csv", *FAVOURED, "--estimate", "none").stdout.split())
    assert "'raise_' predicts the outcome nearly perfectly" in said
    assert "--drop raise_" in said
    assert "nearly perfectly" not in run("debias", "data.csv", *FAVOURED, "--estimate", "none").stdout
