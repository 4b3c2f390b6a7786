"""The report on a raking: three forms, nothing from the data as markup, the same bytes
each time.
"""

import html
import json
import re

import polars as pl
import pytest

import fairmaxent
from fairmaxent.report import Source, write_raking_report

HOSTILE = "<script>alert(1)</script> | *x* \x1b[2J"
FRAME = pl.DataFrame({"sex": ["F", "M", "M", "F"], "place": [HOSTILE, "b", "b", "b"]})
MARGINS = {"sex": {"F": 0.45, "M": 0.55}, "place": {HOSTILE: 0.3, "b": 0.7}}


def raking(**options):
    return fairmaxent.rake(FRAME, MARGINS, **options)


def report(tmp_path, suffix, **options):
    path = tmp_path / f"report{suffix}"
    write_raking_report(
        raking(**options),
        path,
        source=Source(command="fairmaxent rake x.csv", file="x.csv"),
    )
    return path.read_text(encoding="utf-8")


def test_margins_and_costs_are_shown_and_nothing_from_the_data_as_markup(tmp_path):
    text = report(tmp_path, ".html")
    assert "<script" not in text
    assert "\x1b" not in text
    shown = html.unescape(re.sub("<[^>]*>", " ", text))
    for words in (
        "<script>alert(1)</script>",
        "Design effect ",
        "45.00%",
        "margins (sex, place)",
        "rake x.csv",
    ):
        assert words in shown
    assert text == report(tmp_path, ".html")
    text = report(tmp_path, ".md")
    assert r"&lt;script&gt;alert(1)&lt;/script&gt; \| \*x\*" in text
    assert "| F | 2 | 50.00% | 45.00% | 45.00% |" in text


def test_json_holds_the_certificate_and_a_report_says_if_margins_were_missed(tmp_path):
    record = json.loads(report(tmp_path, ".json", bounds=(0.1, None)))
    assert record["certificate"]["margins"][0]["levels"][0]["wanted"] == pytest.approx(
        0.45
    )
    assert record["certificate"]["bounds"] == [0.1, None]
    assert record["source"]["file"] == "x.csv"
    frame = pl.DataFrame({"sex": ["F", "F", "M"], "job": ["nurse", "none", "none"]})
    missed = fairmaxent.rake(
        frame,
        {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}},
        relax="all",
    )
    path = tmp_path / "report.md"
    write_raking_report(missed, path)
    said = " ".join(path.read_text(encoding="utf-8").split())
    assert "contradict each other" in said
    held = fairmaxent.rake(
        frame,
        {"sex": {"F": 0.3, "M": 0.7}, "job": {"nurse": 0.4, "none": 0.6}},
        relax=["job"],
        bounds=(0.0001, 1000),
    )
    write_raking_report(held, path)
    said = " ".join(path.read_text(encoding="utf-8").split())
    assert "Known margins are missed (job): margins contradict each other" in said
