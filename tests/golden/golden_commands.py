"""Golden cases: the command line, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from fairmaxent import Estimate, Relabel, debias
from fairmaxent.cli.group import group
from fairmaxent.report import write_report
from golden_results import (
    certificate_numbers,
    csv,
    decimals,
    report_numbers,
    schema,
    temporary_folder,
    without_column,
)
from golden_tables import hiring, people

ROLES = ("--outcome", "income", "--protected", "sex,race", "--favourable", ">50K")
NO_ESTIMATE = ("--estimate", "none")
CONFIG = """
outcome = "income"
protected = ["sex", "race"]
favourable = ">50K"
groups = "joint"
statistical_rate = 0.9
base_share = 0.2
random_state = 11
drop = ["weight"]

[target]
job = "keep"

[bins]
age = [0, 40, 100]
"""


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
    numbers = {name: printed[name] for name in ("mode", "rows", "seed", "before", "after")}
    return numbers | {"certificate": certificate_numbers(printed["certificate"])}


def report_relabelled():
    relabel, estimate = Relabel(parity="predictions", labeller="tree"), Estimate(output="rows", student="tree")
    fit = debias(hiring(), "y", "z", favourable="p", random_state=1, relabel=relabel, estimate=estimate)
    with temporary_folder():
        write_report(fit, "report.json", data=hiring(), trade_off=False)
        write_report(fit, "report.md", data=hiring(), trade_off=False)
        return {"numbers": report_numbers(json.loads(_text("report.json"))), "shown": decimals(_text("report.md"))}


def cli_debias_rows():
    debias_people = ("debias", "data.csv", *ROLES, *NO_ESTIMATE)
    with temporary_folder():
        people().write_csv("data.csv")
        printed = _command(*debias_people, "--drop", "weight", "-o", "a.csv", "--seed", 7, "--json")
        shown = _command(*debias_people, "-o", "b.csv", "--seed", 7, "--rows", 100, "--iid")
        piped = _command(*debias_people, "-o", "-", "--seed", 8, "--rows", 50)
        files = {name: _text(name) for name in ("a.csv", "b.csv")}
        return files | {"json": _json_numbers(printed), "shown": decimals(shown), "piped": piped}


def cli_debias_top_up():
    top_up = ("--mode", "top-up", "--seed", 4)
    with temporary_folder():
        people().drop("weight").write_csv("data.csv")
        printed = _command("debias", "data.csv", *ROLES, *NO_ESTIMATE, *top_up, "-o", "a.csv", "--json")
        return {"file": _text("a.csv"), "json": _json_numbers(printed)}


def cli_debias_options():
    wanted = ("--statistical-rate", "sex=0.9,race=none", "--representation-rate", "0.8", "--target", "job: keep")
    more = ("--forbid", "sex=Male,job=nurse", "--base", "product", "--base-share", "0.3", "--detail", "bins")
    domain = ("--bins", "age: 0, 40, 100", "--order", "job: nurse, clerk, cook", "--max-levels", "20")
    with temporary_folder():
        people().drop("weight").write_parquet("data.parquet")
        options = (*ROLES, *wanted, *more, *domain, *NO_ESTIMATE, "--seed", 3, "--rows", 200)
        printed = _command("debias", "data.parquet", *options, "-o", "a.parquet", "--json")
        written = pl.read_parquet("a.parquet")
        return {"file": csv(written), "schema": schema(written), "json": _json_numbers(printed)}


def cli_debias_config():
    with temporary_folder():
        people().write_csv("data.csv", separator=";")
        Path("options.toml").write_text(CONFIG)
        printed = _command("debias", "data.csv", "--config", "options.toml", *NO_ESTIMATE, "-o", "a.jsonl", "--json")
        return {"file": _text("a.jsonl"), "json": _json_numbers(printed)}


def cli_relabel():
    pytest.importorskip("sklearn.ensemble")
    from threadpoolctl import threadpool_limits

    roles = ("--outcome", "y", "--protected", "z", "--favourable", "p", "--seed", 1)
    relabel = ("--relabel", "predictions", "--mode", "weights", "-o", "a.csv", "--json")
    with temporary_folder(), threadpool_limits(1):  # threads that wait for each other take longer than one
        hiring(300).to_csv("data.csv", index=False)
        printed = _command("debias", "data.csv", *roles, *NO_ESTIMATE, *relabel)
        return without_column("file", pl.read_csv("a.csv"), "fair_weight") | {"json": _json_numbers(printed)}


def cli_inspect():
    with temporary_folder():
        people().write_csv("data.csv")
        printed = json.loads(_command("inspect", "data.csv", *ROLES, "--weight", "weight", "--json"))
        shown = _command("inspect", "data.csv", *ROLES, "--groups", "joint")
    numbers = {name: printed[name] for name in ("rows", "columns", "proxies")}
    cost = {name: printed["cost"][name] for name in ("distinct_rows", "features", "cells", "domain_size")}
    return {"json": numbers | {"cost": cost}, "shown": decimals(shown)}


def cli_sample_and_report():
    model = ("-o", "a.csv", "--model", "model.fme", "--seed", 5)
    given = ("--given", "sex=Female,income=>50K", "--given", "race=Black", "--given", "race=White")
    with temporary_folder():
        people().drop("weight").write_csv("data.csv")
        _command("debias", "data.csv", *ROLES, *NO_ESTIMATE, *model)
        _command("sample", "model.fme", "-n", 120, "--seed", 2, "-o", "b.csv")
        piped = _command("sample", "model.fme", "-n", 60, "--seed", 3, "--iid", *given)
        _command("report", "model.fme", "--data", "data.csv", "--sample", "a.csv", "-o", "report.json")
        _command("report", "model.fme", "--mode", "weights", "--no-trade-off", "-o", "report.md")
        return {
            **{name: _text(name) for name in ("a.csv", "b.csv")},
            "report.json": report_numbers(json.loads(_text("report.json"))),
            "given": piped,
            "report.md": decimals(_text("report.md")),
        }
