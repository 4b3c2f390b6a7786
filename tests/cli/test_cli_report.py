"""``fairmaxent debias --report``: the report is about the file that was written, and
says how to write it again.
"""

import hashlib
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairmaxent
from clifiles import ROLES, ROWS, biased_table, run

FAVOURED = [*ROLES, "--favourable", ">50K"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = biased_table().with_columns(
        id=pl.Series([f"p{row}" for row in range(ROWS)])
    )
    table.write_csv("data.csv")
    return tmp_path


def sr(frame, **options):
    return float(
        fairmaxent.metrics.statistical_rate(
            frame, "income", "sex", favourable=">50K", **options
        )
    )


def reported(path="report.json"):
    return json.loads(Path(path).read_text())


def delivered(report):
    return {rate["kind"]: rate["delivered"] for rate in report["rates"]}


def test_rows(folder):
    args = [
        "--representation-rate",
        1,
        "--iid",
        "--rows",
        50,
        "--seed",
        2,
        "-o",
        "fair.csv",
        "--report",
        "report.json",
    ]
    run("debias", "data.csv", *FAVOURED, *args)
    report = reported()
    assert (report["mode"], report["iid"], report["new_rows"]) == ("rows", True, 50)
    assert delivered(report)["statistical_rate"] == pytest.approx(
        sr(pl.read_csv("fair.csv"))
    )
    assert [rate["met"] for rate in report["rates"]] == [False, False]
    assert report["source"]["file"] == "data.csv"
    assert (
        report["source"]["sha256"]
        == hashlib.sha256((folder / "data.csv").read_bytes()).hexdigest()
    )


def test_weights_and_the_columns_that_took_no_part():
    args = [
        "--mode",
        "weights",
        "--weight",
        "weight",
        "--drop",
        "id,age",
        "-o",
        "fair.csv",
        "--report",
        "report.json",
    ]
    run("debias", "data.csv", *FAVOURED, *args)
    fair = pl.read_csv("fair.csv")
    # dropped from the fit, not from the file
    assert fair.drop("fair_weight").equals(pl.read_csv("data.csv"))
    report = reported()
    assert (report["mode"], report["columns"], report["copies"]) == ("weights", 4, None)
    assert delivered(report)["statistical_rate"] == pytest.approx(
        sr(fair, weight="fair_weight")
    )
    assert report["call"].endswith("weights = fit.weights()")
    space = {"frame": pl.read_csv("data.csv")}
    exec(report["call"], space)
    np.testing.assert_allclose(space["weights"], fair["fair_weight"])


@pytest.mark.more
def test_a_report_on_a_saved_model_knows_its_mode():
    run(
        "debias",
        "data.csv",
        *FAVOURED,
        "--drop",
        "id",
        "--save",
        "fit.fme",
        "--seed",
        1,
    )
    for mode in ("rows", "weights", "top-up"):
        asked = [
            "--mode",
            mode,
            "--data",
            "data.csv",
            "--drop",
            "id",
            "--no-trade-off",
            "--force",
        ]
        run("report", "fit.fme", *asked, "-o", "report.json")
        report = reported()
        assert report["mode"] == mode
        assert report["source"]["file"] == "data.csv"
        assert (report["copies"] is None) == (mode == "weights")


@pytest.mark.some(1)
@pytest.mark.parametrize(("rows", "groups"), [(1, "joint"), (7, "each")])
def test_console_and_report_have_the_same_rates(rows, groups):
    roles = [
        "--outcome",
        "income",
        "--protected",
        "sex,race",
        "--favourable",
        ">50K",
        "--groups",
        groups,
    ]
    args = [
        *roles,
        "--rows",
        rows,
        "--iid",
        "--seed",
        2,
        "-o",
        "fair.csv",
        "--report",
        "report.json",
        "--json",
    ]
    record = json.loads(run("debias", "data.csv", *args).stdout)
    for rate in reported()["rates"]:
        assert record["after"][rate["kind"]][rate["grouping"]] == rate["delivered"]


@pytest.mark.more
def test_a_group_that_vanishes_is_named_and_has_share_zero():
    args = [
        "--representation-rate",
        1,
        "--rows",
        1,
        "--seed",
        1,
        "-o",
        "fair.csv",
        "--report",
        "report.md",
    ]
    result = run("debias", "data.csv", *FAVOURED, *args)
    kept = pl.read_csv("fair.csv")["sex"][0]
    gone = {"Male": "Female", "Female": "Male"}[kept]
    assert f"Warning: no row has sex = {gone}: its share is 0" in result.stdout
    assert re.search(rf"sex = {gone} +\d+ +\d+\.\d% +0\.0%", result.stdout)
    assert re.search(
        r"representation rate of sex +1\.0000 +0\.\d+ +0\.0000", result.stdout
    )
    assert f"no row has sex = {gone}" in Path("report.md").read_text()


@pytest.mark.more
@pytest.mark.parametrize(
    "typed",
    [FAVOURED, ["--config", "options.toml", "--rows", 60]],
    ids=["typed", "a file"],
)
def test_without_a_seed_the_report_still_says_how_to_repeat_it(folder, typed):
    (folder / "options.toml").write_text(
        'outcome = "income"\nprotected = ["sex"]\n[target]\njob = "keep"\n'
    )
    run("debias", "data.csv", *typed, "-o", "fair.csv", "--report", "report.json")
    first, report = pl.read_csv("fair.csv"), reported()
    run(*shlex.split(report["source"]["command"])[1:], "--force")
    assert pl.read_csv("fair.csv").equals(first)
    space = {"frame": pl.read_csv("data.csv")}
    exec(report["call"], space)
    assert space["rows"].equals(first)


@pytest.mark.more
@pytest.mark.parametrize("typed", ["true", "TRUE", "1", "1e0"])
def test_a_truth_value_or_a_number_is_favourable_by_value(typed):
    table = biased_table().select("sex", "job", high=pl.col("income") == ">50K")
    table = table.cast({"high": int}) if "1" in typed else table
    table.write_csv("truth.csv")
    roles = ["--outcome", "high", "--protected", "sex", "--favourable", typed]
    run("debias", "truth.csv", *roles, "-o", "fair.csv", "--seed", 1)
    fit = fairmaxent.debias(
        table, "high", "sex", favourable=table["high"].max(), random_state=1
    )
    assert pl.read_csv("fair.csv").equals(fit.sample(ROWS))
    fit.save("fit.fme")
    drawn = run("sample", "fit.fme", "-n", 5, "--given", f"high={typed}").stdout
    assert (
        pl.read_csv(io.StringIO(drawn))["high"].to_list() == [table["high"].max()] * 5
    )
