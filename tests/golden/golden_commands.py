"""Golden cases: the command line, and the report."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from fairmaxent.cli.group import group
from golden_results import (
    certificate_numbers,
    csv,
    decimals,
    hiring,
    people,
    report_numbers,
    schema,
    temporary_folder,
    without_column,
)

ROLES = ("--outcome", "income", "--protected", "sex,race", "--favourable", ">50K")
NO_ESTIMATE = ("--estimate", "none")


def _command(*arguments):
    """Run the command line and return what it writes to stdout."""
    done = CliRunner().invoke(group, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def _text(name):
    return Path(name).read_text("utf-8")


def _json_numbers(stdout):
    """The numbers that ``debias --json`` prints."""
    printed = json.loads(stdout)
    numbers = {
        name: printed[name] for name in ("mode", "rows", "seed", "before", "after")
    }
    return numbers | {"certificate": certificate_numbers(printed["certificate"])}


def cli_debias_rows():
    debias_people = ("debias", "data.csv", *ROLES, *NO_ESTIMATE)
    with temporary_folder():
        people().write_csv("data.csv")
        printed = _command(
            *debias_people, "--drop", "weight", "-o", "a.csv", "--seed", 7, "--json"
        )
        shown = _command(
            *debias_people, "-o", "b.csv", "--seed", 7, "--rows", 100, "--iid"
        )
        piped = _command(*debias_people, "-o", "-", "--seed", 8, "--rows", 50)
        files = {name: _text(name) for name in ("a.csv", "b.csv")}
        return files | {
            "json": _json_numbers(printed),
            "shown": decimals(shown),
            "piped": piped,
        }


def cli_debias_options():
    wanted = (
        "--statistical-rate",
        "sex=0.9,race=none",
        "--representation-rate",
        "0.8",
        "--target",
        "job: keep",
    )
    more = (
        "--forbid",
        "sex=Male,job=nurse",
        "--base",
        "product",
        "--base-share",
        "0.3",
        "--detail",
        "bins",
    )
    domain = (
        "--bins",
        "age: 0, 40, 100",
        "--order",
        "job: nurse, clerk, cook",
        "--max-levels",
        "20",
    )
    with temporary_folder():
        people().drop("weight").write_parquet("data.parquet")
        options = (
            *ROLES,
            *wanted,
            *more,
            *domain,
            *NO_ESTIMATE,
            "--seed",
            3,
            "--rows",
            200,
        )
        printed = _command(
            "debias", "data.parquet", *options, "-o", "a.parquet", "--json"
        )
        written = pl.read_parquet("a.parquet")
        return {
            "file": csv(written),
            "schema": schema(written),
            "json": _json_numbers(printed),
        }


def cli_equal_probabilities():
    pytest.importorskip("sklearn.ensemble")
    from threadpoolctl import threadpool_limits

    roles = ("--outcome", "y", "--protected", "z", "--favourable", "p", "--seed", 1)
    asked = (
        "--model",
        "boosting",
        "--parity",
        "probabilities",
        "--mode",
        "weights",
        "-o",
        "a.csv",
        "--json",
    )
    # threads that wait for each other take longer than one
    with temporary_folder(), threadpool_limits(1):
        hiring(300).to_csv("data.csv", index=False)
        printed = _command("debias", "data.csv", *roles, *NO_ESTIMATE, *asked)
        return without_column("file", pl.read_csv("a.csv"), "fair_weight") | {
            "json": _json_numbers(printed)
        }


def cli_inspect():
    with temporary_folder():
        people().write_csv("data.csv")
        printed = json.loads(
            _command("inspect", "data.csv", *ROLES, "--weight", "weight", "--json")
        )
        joint = json.loads(
            _command("inspect", "data.csv", *ROLES, "--groups", "joint", "--json")
        )["groupings"]
    numbers = {name: printed[name] for name in ("rows", "columns", "proxies")}
    return {"json": numbers, "joint": joint}


def cli_sample_and_report():
    model = ("-o", "a.csv", "--save", "fit.fme", "--seed", 5)
    given = (
        "--given",
        "sex=Female,income=>50K",
        "--given",
        "race=Black",
        "--given",
        "race=White",
    )
    with temporary_folder():
        people().drop("weight").write_csv("data.csv")
        _command("debias", "data.csv", *ROLES, *NO_ESTIMATE, *model)
        _command("sample", "fit.fme", "-n", 120, "--seed", 2, "-o", "b.csv")
        piped = _command("sample", "fit.fme", "-n", 60, "--seed", 3, "--iid", *given)
        _command(
            "report",
            "fit.fme",
            "--data",
            "data.csv",
            "--result",
            "a.csv",
            "-o",
            "report.json",
        )
        _command(
            "report",
            "fit.fme",
            "--mode",
            "weights",
            "--no-trade-off",
            "-o",
            "report.md",
        )
        return {
            **{name: _text(name) for name in ("a.csv", "b.csv")},
            "report.json": report_numbers(json.loads(_text("report.json"))),
            "given": piped,
            "report.md": decimals(_text("report.md")),
        }
