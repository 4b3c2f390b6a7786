"""Reports on tables that an engine has: the same numbers as for the table in memory,
and the table is never read.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairmaxent
from clifiles import ROLES, ROWS, biased_table, run
from fairmaxent import InputError, debias
from fairmaxent.errors import ColumnError
from fairmaxent.files import formats as files
from fairmaxent.report.delivered import DrawnBatches, deliver
from fairmaxent.report.report import build_report


def table():
    """With gaps, and NaN, which a join must find again; few values, so that there are
    copies.
    """
    rng = np.random.default_rng(1)
    holes = pl.Series(rng.random(ROWS) < 0.2)
    return (
        biased_table()
        .select("sex", "race", "job", "income")
        .with_columns(
            job=pl.when(holes).then(None).otherwise("job"),
            hours=pl.Series(rng.choice([20.0, 40.0, float("nan")], ROWS)),
            race=pl.col("race").cast(pl.Categorical),
            rank=pl.Series(
                rng.choice(["low", "high"], ROWS), dtype=pl.Enum(["low", "high"])
            ),
        )
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # tested with the report
    monkeypatch.setattr("fairmaxent.report.refits.LARGEST_TABLE", 0)
    table().write_parquet("data.parquet")
    table().write_ipc("data.arrow")
    return tmp_path


def reported(path):
    report = json.loads(Path(path).read_text())
    for known in ("first_page", "source", "versions"):  # another file, another command
        report.pop(known)
    return report


def _refused(*_, **__):
    raise AssertionError("the table was read whole")


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", ["rows", "weights", "top-up"])
def test_the_report_is_that_of_the_table_in_memory(mode, monkeypatch):
    options = [
        *ROLES,
        "--mode",
        mode,
        *(["--seed", 3] if mode != "weights" else []),
        "-o",
    ]
    run("debias", "data.arrow", *options, "twin.parquet", "--report", "twin.json")
    monkeypatch.setattr(files, "read_table", _refused)
    run("debias", "data.parquet", *options, "fair.parquet", "--report", "ours.json")
    ours, twin = reported("ours.json"), reported("twin.json")
    if mode != "weights":
        assert ours["copies"].pop("twins_in_data") is None
        assert 0 < twin["copies"].pop("twins_in_data") < 1
        assert (
            0 < ours["copies"]["same_values_as_one"] < ours["copies"]["same_values"] < 1
        )
    for one, other in zip(ours.pop("rates"), twin.pop("rates"), strict=True):
        assert one.pop("delivered") == pytest.approx(other.pop("delivered"), abs=1e-9)
        assert one == other
    for one, other in zip(ours.pop("groups"), twin.pop("groups"), strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    assert_same_costs(ours.pop("costs"), twin.pop("costs"), mode)
    assert ours.pop("told").keys() == twin.pop("told").keys()
    assert ours == twin


def assert_same_costs(ours, twin, mode):
    """Copies are counted in memory, and only expected where an engine has the rows."""
    assert (ours.pop("counted"), twin.pop("counted")) == (False, mode != "weights")
    assert ours.pop("filled") == pytest.approx(twin.pop("filled"))
    for one, other in zip(ours.pop("outcomes"), twin.pop("outcomes"), strict=True):
        assert one == pytest.approx(other)
    lines = zip(
        [*ours["groups"], ours["worst_cell"]],
        [*twin["groups"], twin["worst_cell"]],
        strict=True,
    )
    for one, other in lines:
        assert min(one.pop("most_copies"), other.pop("most_copies")) >= 0
        assert one == pytest.approx(other)


@pytest.mark.more
def test_a_report_without_an_output_and_one_on_a_saved_model_draw_in_batches(
    monkeypatch,
):
    monkeypatch.setattr(files, "read_table", _refused)
    run("debias", "data.parquet", *ROLES, "--report", "report.json", "--seed", 1)
    report = reported("report.json")
    assert (report["for_report"], report["new_rows"]) == (True, ROWS)
    run("debias", "data.parquet", *ROLES, "--save", "fit.fme", "--seed", 1)
    run(
        "report",
        "fit.fme",
        "--data",
        "data.parquet",
        "-o",
        "report.md",
        "--no-trade-off",
    )
    text = Path("report.md").read_text()
    assert "have exactly the values of a real row that occurs once" in text
    assert "for comparison" not in text


@pytest.mark.more
def test_rows_in_batches_are_all_counted_and_the_first_are_looked_at():
    fit = debias(table(), "income", "sex", random_state=0)
    drawn = DrawnBatches(fit)
    for batch in fit.sample_batches(700, size=300, random_state=2):
        drawn.add(batch)
    made = drawn.delivered(iid=False, seed=2)
    whole = deliver(
        fit, fit.sample(700, random_state=2), mode="rows", iid=False, seed=2
    )
    assert (made.rows, len(made.frame), len(made.codes)) == (700, 300, 300)
    np.testing.assert_allclose(made.table, whole.table, atol=1e-12)  # both are by quota
    report = build_report(fit, data=table(), result=made, trade_off=False)
    assert (report.new_rows, report.copies.rows) == (700, 300)
    space = {"frame": table()}
    exec(report.call, space)
    assert next(space["batches"]).equals(made.frame)
    fairmaxent.report.write_report(fit, "report.md", result=made, trade_off=False)
    assert "of the first 300 new rows" in Path("report.md").read_text()


def test_another_table_is_refused():
    fit = debias(table().lazy(), "income", "sex", random_state=0)
    with pytest.raises(
        InputError, match=f"data has 10 rows, but the fit was made from {ROWS}"
    ):
        build_report(fit, data=table().head(10).lazy())
    with pytest.raises(ColumnError, match="no column 'job'"):
        build_report(fit, data=table().drop("job").lazy())


@pytest.mark.more
def test_copies_are_looked_for_by_polars_alone():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(table().to_arrow())
    fit = debias(relation, "income", "sex", random_state=0)
    with pytest.raises(
        InputError,
        match="not counted in duckdb lazy frames, only polars ones; leave data out",
    ):
        build_report(fit, data=relation, trade_off=False)
    assert build_report(fit, trade_off=False).copies.same_values is None
