"""--within and --also: rates within strata, and of several outcomes, on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fairmaxent.cli.group import group

ROLES = ["--outcome", "decision", "--protected", "group", "--favourable", "taken"]


@pytest.fixture
def decisions(tmp_path):
    rng = np.random.default_rng(0)
    rows = 600
    frame = pd.DataFrame({"group": rng.choice(["a", "b"], rows), "label": rng.choice(["yes", "no"], rows)})
    chance = 0.2 + 0.4 * (frame.label == "yes") + 0.2 * (frame.group == "a")
    frame["decision"] = np.where(rng.random(rows) < chance, "taken", "refused")
    path = tmp_path / "decisions.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def gaps(path):
    weighed = pd.read_csv(path)
    taken = weighed.fair_weight * (weighed.decision == "taken")
    groups = [weighed.label, weighed.group]
    rates = (taken.groupby(groups).sum() / weighed.fair_weight.groupby(groups).sum()).unstack()
    return (rates["a"] - rates["b"]).abs()


def test_every_stratum_is_exact(decisions, tmp_path):
    output = tmp_path / "weights.csv"
    done = run("debias", decisions, *ROLES, "--within", "label", "--mode", "weights", "-o", output)
    assert done.exit_code == 0, done.output
    assert gaps(output).max() < 1e-9
    assert "statistical rate of group within label" in done.output


def test_one_level_is_equal_opportunity(decisions, tmp_path):
    output = tmp_path / "weights.csv"
    done = run("debias", decisions, *ROLES, "--within", "label=yes", "--mode", "weights", "-o", output)
    assert done.exit_code == 0, done.output
    assert gaps(output)["yes"] < 1e-9
    assert gaps(output)["no"] > 0.05
    assert "group within label = yes" in done.output


@pytest.mark.parametrize("text", ['within = "label"', 'within = ["label"]', '[within]\nlabel = ["yes", "no"]'])
def test_a_config_file_says_the_same(decisions, tmp_path, text):
    config, output = tmp_path / "config.toml", tmp_path / "weights.csv"
    config.write_text(text)
    done = run("debias", decisions, *ROLES, "--config", config, "--mode", "weights", "-o", output)
    assert done.exit_code == 0, done.output
    assert gaps(output).max() < 1e-9


@pytest.mark.parametrize(
    ("within", "words"),
    [
        ("labels", "did you mean 'label'"),
        ("group", "--within names 'group', which is protected"),
        ("label=", "is not a list of columns"),
        ("label=maybe", "maybe"),
    ],
)
def test_refusals(decisions, within, words):
    done = run("debias", decisions, *ROLES, "--within", within, "-o", "-")
    assert done.exit_code != 0
    assert words in " ".join(done.output.split())


def test_the_report_repeats_it(decisions, tmp_path):
    report = tmp_path / "report.md"
    arguments = ["--within", "label=yes", "--mode", "weights", "--report", report, "-o", tmp_path / "weights.csv"]
    done = run("debias", decisions, *ROLES, *arguments)
    assert done.exit_code == 0, done.output
    assert "within={'label': ['yes']}" in report.read_text()
    assert "--within label=yes" in report.read_text()


@pytest.mark.usefixtures("estimates_unasked")
def test_another_outcome_gets_the_rates_too(decisions, tmp_path):
    output = tmp_path / "weights.csv"
    done = run("debias", decisions, *ROLES, "--also", "label=yes", "--mode", "weights", "-o", output)
    assert done.exit_code == 0, done.output
    weighed = pd.read_csv(output)
    for column, level in (("decision", "taken"), ("label", "yes")):
        sums = [rows.groupby("group").fair_weight.sum() for rows in (weighed[weighed[column] == level], weighed)]
        rates = sums[0] / sums[1]
        assert abs(rates["a"] - rates["b"]) < 1e-9
    assert "statistical rate of label by group, label = yes" in done.output
    assert "because a model is estimated for a single outcome only" in " ".join(done.output.split())


def test_comparing_methods_takes_a_single_outcome(decisions):
    done = run("compare", decisions, *ROLES, "--also", "label=yes")
    assert done.exit_code != 0
    assert "leave out --also" in " ".join(done.output.split())
