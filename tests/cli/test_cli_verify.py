"""``fairmaxent verify``: a clear answer, and an exit code that means it."""

import hashlib
import json

import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import biased_table
from fairmaxent.cli.group import group
from modelfiles import with_header


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.fme"
    fairmaxent.debias(biased_table(), "income", "sex", estimate=None).save(path)
    return path


def run(*args):
    return CliRunner().invoke(group, ["verify", *map(str, args)])


def test_a_sound_model_is_verified(model):
    result = run(model)
    assert result.exit_code == 0
    assert f"{model}: verified" in result.stdout
    assert hashlib.sha256(model.read_bytes()).hexdigest() in result.stdout
    assert "statistical rate of sex: 1.0000" in result.stdout
    assert "all 240 rows, with the exact values of 'age', 'weight'; protect it" in result.stdout


def test_json_is_for_programs(model):
    record = json.loads(run(model, "--json").stdout)
    assert record["verified"] is True
    assert record["achieved"]["statistical_rate"]["sex"] == pytest.approx(1)
    assert record["unverified"] == ["how often each value within a bin was seen, by which values are drawn from bins"]


def test_a_forged_model_is_refused_with_what_is_wrong(model, tmp_path):
    def forge(header):
        header["certificate"]["achieved"]["statistical_rate"]["sex"] = 0.5

    (tmp_path / "forged.fme").write_bytes(with_header(model.read_bytes(), forge))
    result = run(tmp_path / "forged.fme")
    assert result.exit_code == 5
    assert "its certificate states achieved statistical_rate sex as 0.5, but what it holds gives 1" in result.stderr
    assert "verified" not in result.stdout


def test_what_only_the_table_or_the_rows_could_show_is_named(tmp_path):
    table = biased_table()
    mails = pl.Series("mail", [f"a{row}@example.org" for row in range(len(table))])
    fit = fairmaxent.debias(table.with_columns(mails), "income", "sex", estimate=None, random_state=3)
    fit.save(tmp_path / "model.fme")
    shown = run(tmp_path / "model.fme").stdout
    assert "not verified: which columns were left out" in shown
    assert "not verified: the seed" in shown
