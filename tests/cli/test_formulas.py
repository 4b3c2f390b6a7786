"""Cells that a spreadsheet would run are pointed out; numbers and ordinary texts are not."""

import polars as pl
import pytest
from click.testing import CliRunner

from clifiles import ROLES, biased_table
from fairmaxent.cli.group import group
from fairmaxent.cli.output import formula_columns

FORMULAS = [
    "=1+1",
    "@SUM(A1)",
    "-1+1",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "\t=1",
    '=HYPERLINK("http://x")',
]
TEXTS = ["-5", "+5.5", "-1,000.5", "-", "+", "", None, "a=b", "1-2", "-3 %", "-1e-5", "<=50K", ">50K"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas(text):
    assert formula_columns(pl.DataFrame({"a": [text, "x"], "b": [1, 2]})) == ["a"]
    assert formula_columns(pl.DataFrame({"a": pl.Series([text, "x"], dtype=pl.Categorical)})) == ["a"]
    assert formula_columns(pl.DataFrame({text: [1]})) == [text]


def test_texts():
    assert formula_columns(pl.DataFrame({"a": TEXTS, "b": range(len(TEXTS))})) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_says_so(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    table = biased_table().with_columns(job=pl.col("job").replace("cook", "=1+1"))
    table.write_csv("data.csv")
    table.write_parquet("data.parquet")
    for data in ("data.csv", "data.parquet"):
        typed = ["debias", data, *ROLES, "-o", f"fair.{suffix}", "--model", "model.fme", "--force"]
        result = CliRunner().invoke(group, typed)
        assert result.exit_code == 0, result.stderr
        assert ("as formulas" in result.stdout) == (suffix == "csv")
    result = CliRunner().invoke(group, ["sample", "model.fme", "-n", "9", "-o", f"rows.{suffix}"])
    assert ("'job'; a spreadsheet may run them" in result.stdout) == (suffix == "csv")
