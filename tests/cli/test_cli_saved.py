"""What is said when rows are drawn from a saved fit, and when a report is written on it:
what nobody should miss, with the numbers of the fit and of the rows.
"""

import numpy as np
import polars as pl
import pytest

import fairmaxent
from clifiles import biased_table, run
from fairmaxent.telling.entries import alerts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(**asked):
    """A fit in the file fit.fme."""
    asked = {"favourable": ">50K", "estimate": None, "random_state": 1} | asked
    fit = fairmaxent.debias(biased_table(), "income", "sex", **asked)
    fit.save("fit.fme")
    return fit


def rate_of(table):
    """The lowest share of high incomes of a sex, over the highest."""
    high = table.with_columns(high=pl.col("income") == ">50K")
    rates = high.group_by("sex").agg(pl.col("high").mean())["high"]
    return rates.min() / rates.max()


def test_drawn_rows_are_said_to_be_copies_with_the_rates_that_they_have(folder):
    fit = saved()
    said = run("sample", "fit.fme", "-n", "500", "-o", "rows.csv", "--iid").stdout
    copies = round(500 * fit.certificate.copied_share)
    assert f"About {copies} of the 500 new rows are copies of rows of the data" in said
    assert "add --release of 'fairmaxent debias'" in said
    before = rate_of(biased_table())
    after = rate_of(pl.read_csv("rows.csv"))
    line = f"statistical rate of sex     1.0000  {before:.4f}  {after:.4f}"
    assert line in said
    assert after < 1
    assert "for the rest:\n  fairmaxent report fit.fme --result rows.csv" in said


def test_rows_of_some_groups_alone_are_no_sign_of_unequal_ones(folder):
    saved(base="product")
    women = ["--given", "sex=Female"]
    said = run("sample", "fit.fme", "-n", "400", *women, "-o", "rows.csv").stdout
    assert "statistical rate" not in said
    assert "no row has" not in said
    assert "of the 400 new rows are copies" in said
    # no man of the data is a nurse, so none is copied
    nurses = ["--given", "sex=Male,job=nurse"]
    said = run("sample", "fit.fme", "-n", "400", *nurses, "-o", "nurses.csv").stdout
    assert "copies" not in said


def test_a_table_for_stdout_stays_alone_there(folder):
    saved()
    shown = run("sample", "fit.fme", "-n", "5")
    assert shown.stdout.count("\n") == 6
    assert "of the 5 new rows are copies" in shown.stderr


def test_more_rows_of_a_private_fit_come_with_its_promise(folder):
    table = biased_table().select("sex", "income")
    levels = {name: table[name].unique().to_list() for name in table.columns}
    fit = fairmaxent.debias(
        table,
        "income",
        "sex",
        favourable=">50K",
        domain=fairmaxent.Domain.declare(levels=levels),
        privacy=fairmaxent.Privacy(epsilon=3, delta=1e-6),
    )
    fit.save("fit.fme")
    said = run("sample", "fit.fme", "-n", "50", "-o", "rows.csv").stdout
    cell, rows = fit.certificate.privacy.count_ranges
    assert "Private with ε = 3" in said
    assert f"by up to {cell:,.0f}, and that of all rows by up to {rows:,.0f}" in said
    assert "are copies" not in said


def test_warnings_come_with_rows_and_with_a_report_as_far_as_there_is_room(folder):
    rng = np.random.default_rng(1)
    towns = pl.Series("sex", rng.choice([f"town {one}" for one in range(9)], 240))
    fit = fairmaxent.debias(
        biased_table().with_columns(towns),
        "income",
        "sex",
        favourable=">50K",
        estimate=None,
        target={"sex": {f"town {one}": 0.6 if one == 8 else 0.05 for one in range(9)}},
        largest_weight=3,
    )
    fit.save("fit.fme")
    warned = [line for line in fit.certificate.warnings if "effective rows" in line]
    assert warned[0].startswith("4 more groups rest on fewer than 30 effective rows")
    said = run("sample", "fit.fme", "-n", "90", "-o", "rows.csv").stdout
    assert f"Warning: {warned[0]}" in said
    shown = run("report", "fit.fme", "--no-trade-off", "-o", "report.md").stdout
    lines = shown.split("wrote report.md")[0].splitlines()
    assert len(lines) == 4
    assert all(line.startswith("Warning: sex = town") for line in lines[:3])
    others = len(alerts(fit.case())) - 3
    assert others > 1
    assert lines[3] == f"and {others} more warnings in the report"
    assert warned[0].split(",")[0] in (folder / "report.md").read_text(encoding="utf-8")
