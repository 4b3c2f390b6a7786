"""``fairmaxent demo``, from the command to the files."""

from dataclasses import replace

import pandas as pd
import pytest
from click.testing import CliRunner

import fairmaxent
from fairmaxent import datasets
from fairmaxent.cli.group import group


def run(*arguments):
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


@pytest.mark.more
def test_demo_leaves_data_rows_model_and_report(tmp_path, monkeypatch):
    census = datasets.load("acs", library="polars")
    few = replace(census, frame=census.frame[::8])
    monkeypatch.setattr(datasets, "load", lambda *_, **__: few)
    folder = tmp_path / "demo"
    done = run("demo", "--out", folder)
    assert done.exit_code == 0, done.output
    assert {path.name for path in folder.iterdir()} == {
        "census.csv",
        "fair.csv",
        "fit.fme",
        "report.html",
    }
    assert "$ fairmaxent debias" in done.stdout
    assert "statistical rate of sex " in done.stdout
    *_, why, command = done.stdout.splitlines()
    assert why.startswith(f"Next: open {folder / 'report.html'} in a browser.")
    assert command == "  fairmaxent inspect your-table.csv"
    fair = pd.read_csv(folder / "fair.csv")
    rates = (fair["income"] == ">50K").groupby(fair["sex"]).mean()
    assert rates.min() / rates.max() > 0.99
    assert len(fair) == len(few.frame)
    assert fairmaxent.load(folder / "fit.fme").certificate.achieved["statistical_rate"][
        "sex"
    ] == pytest.approx(1)
    again = run("demo", "--out", folder)
    assert again.exit_code == 5
    assert "census.csv exists; use --force" in again.stderr
