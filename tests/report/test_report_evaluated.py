"""What the rows give away, in a report: the same rows judged by hand, every form, and
when nothing can be judged.
"""

import json

import numpy as np
import polars as pl
import pytest

import fairmaxent
from clifiles import biased_table, run
from fairmaxent.report import build_report, refits
from reportforms import html_report, json_report, markdown_report

TABLE = pl.concat([biased_table(seed) for seed in (1, 2)]).drop("weight")


def fitted(table=TABLE, **options):
    return fairmaxent.debias(
        table,
        "income",
        "sex",
        favourable=">50K",
        estimate=None,
        random_state=0,
        **options,
    )


@pytest.fixture(scope="module")
def report():
    return build_report(fitted(), data=TABLE, trade_off=False, evaluate=True)


@pytest.mark.more
def test_a_fifth_is_set_aside_and_the_rest_judged(report):
    """The same by hand."""
    order = np.random.default_rng(refits._STREAM).permutation(len(TABLE))
    aside = len(TABLE) // 5
    real, control = TABLE[np.sort(order[aside:])], TABLE[np.sort(order[:aside])]
    new = fitted(real).sample(len(real))
    same = fairmaxent.evaluate(
        real, new, control=control, outcome="income", protected="sex", favourable=">50K"
    )
    found = report.evaluation.evaluation
    assert found.to_dict() == same.to_dict()
    assert "copies" in report.evaluation.flagged


def test_every_form_has_the_verdict_and_the_tables(report):
    verdict = "Do not treat these rows as anonymous"
    record = json.loads(json_report(report))["evaluation"]
    assert record["verdict"][0].startswith(verdict)
    assert record["evaluation"]["risks"]["copies"]["copies"] > 100
    for text in (markdown_report(report), html_report(report)):
        assert verdict in text
        assert "What the rows give away" in text
        assert "singling out" in text
        assert "Do not rely on this distance" in text


@pytest.mark.more
def test_weights_and_identifiers_are_no_columns_to_compare():
    rng = np.random.default_rng(0)
    table = TABLE.to_pandas().assign(
        design=rng.uniform(1, 2, len(TABLE)),
        mail=[f"p{k}@example.org" for k in range(len(TABLE))],
    )
    found = build_report(
        fitted(table, weight="design"), data=table, trade_off=False, evaluate=True
    ).evaluation
    assert found.evaluation.columns == tuple(TABLE.columns)
    assert found.evaluation.left_out == ("mail",)


def test_why_nothing_was_judged_and_what_cannot_be_asked_for(tmp_path):
    small = TABLE[:60]
    found = build_report(fitted(small), data=small, trade_off=False, evaluate=True)
    assert "too few to set some aside" in found.evaluation.skipped
    for text in (markdown_report(found), html_report(found)):
        assert "The rows were not judged: the table has 60 rows" in text
    TABLE.write_parquet(tmp_path / "t.parquet")
    lazy = pl.scan_parquet(tmp_path / "t.parquet")
    found = build_report(fitted(lazy), data=lazy, trade_off=False, evaluate=True)
    assert "not in memory" in found.evaluation.skipped
    with pytest.raises(fairmaxent.InputError, match="it judges new rows"):
        build_report(
            fitted(), data=TABLE, mode="weights", trade_off=False, evaluate=True
        )
    with pytest.raises(fairmaxent.InputError, match="evaluate needs data"):
        build_report(fitted(), trade_off=False, evaluate=True)


@pytest.mark.more
def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("data.csv")
    roles = [
        "--outcome",
        "income",
        "--protected",
        "sex",
        "--estimate",
        "none",
        "--seed",
        "0",
    ]
    run(
        "debias",
        "data.csv",
        *roles,
        "--save",
        "m.fme",
        "--report",
        "r.json",
        "--evaluate",
    )
    record = json.loads((tmp_path / "r.json").read_text())
    assert "copies" in record["evaluation"]["flagged"]
    run(
        "report",
        "m.fme",
        "--data",
        "data.csv",
        "-o",
        "again.json",
        "--evaluate",
        "--no-trade-off",
    )
    assert (
        json.loads((tmp_path / "again.json").read_text())["evaluation"]
        == record["evaluation"]
    )
    for arguments, message in (
        (("debias", "data.csv", *roles, "--evaluate"), "--evaluate needs --report"),
        (
            (
                "debias",
                "data.csv",
                *roles,
                "--mode",
                "weights",
                "--report",
                "w.md",
                "--evaluate",
            ),
            "--evaluate cannot go together with --mode weights",
        ),
        (("report", "m.fme", "-o", "x.md", "--evaluate"), "--evaluate needs --data"),
    ):
        assert message in run(*arguments, code=2).output
