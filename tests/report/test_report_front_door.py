"""Options are named in reports as the person who asked for the report knows them: in
Python, typed, or labelled.
"""

import json
import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from clifiles import run
from fairmaxent.app.page_options import IN_APP
from fairmaxent.cli.values import as_typed
from fairmaxent.fit.request import Request
from fairmaxent.options import typed_options
from fairmaxent.report import Source, build_report
from fairmaxent.report.source import IN_PYTHON, FrontDoor
from reportforms import html_report, json_report, markdown_report

TYPED = FrontDoor("on the command line", as_typed)
FLAGS = [
    flag
    for option in typed_options(Request)
    if option.info.label
    for flag in option.flags
]
NAMES = [field.name for field in fields(Request) if "_" in field.name]


@pytest.fixture(scope="module")
def table():
    """Few women, of whom nobody is old and hired, with a column of numbers for each
    person.
    """
    rng = np.random.default_rng(3)
    rows = 400
    sex = np.where(np.arange(rows) < 12, "F", "M")
    old = rng.choice(["old", "young"], rows)
    hired = np.where(
        (rng.random(rows) < 0.4) & ~((sex == "F") & (old == "old")), "yes", "no"
    )
    town = rng.choice(["a", "b", None], rows, p=[0.5, 0.4, 0.1])
    return pd.DataFrame(
        {
            "sex": sex,
            "age": old,
            "town": town,
            "id": np.arange(rows) + 10**9,
            "hired": hired,
        }
    )


@pytest.fixture(scope="module")
def fit(table):
    return fairmaxent.debias(
        table,
        "hired",
        ["sex", "age", "town"],
        favourable="yes",
        representation_rate=1.0,
        random_state=0,
        estimate=None,
    )


def shown(fit, table, door):
    """The report as HTML, Markdown and JSON, without the calls that repeat it."""
    report = build_report(fit, data=table, source=Source(front_door=door))
    record = json.loads(json_report(report))
    del record["call"]
    texts = [
        json.dumps(
            [
                record["alerts"],
                record["warnings"],
                record["first_page"],
                record["trade_off"],
            ]
        )
    ]
    for text in (html_report(report), markdown_report(report)):
        told = re.split(
            "How to repeat it(?!</a>)", re.sub("(?s)<style>.*?</style>", "", text)
        )[0]
        texts.append(re.sub(r"\s+", " ", told))
    return record, "\n".join(texts).replace("\\_", "_").replace("&#39;", "'").replace(
        "\\u201c", "“"
    )


DOORS = {
    IN_PYTHON: (
        "representation_rate={'sex': None, 'age': 1.0, 'town': 1.0}",
        "compare_missing=True",
        "base_share: 0.2 (this",
    ),
    TYPED: (
        *(
            "--representation-rate sex=none,age=1,town=1",
            "--compare-missing",
            "--keep-columns id",
        ),
        *("--base-share: 0.2 (this fit)", "to estimate it, use --estimate rows"),
    ),
    IN_APP: (
        *(
            "“Equal group sizes” not ticked for sex",
            "“Compare missing values as a group”",
        ),
        *("The larger “New combinations” is", "“New combinations”: 0.2 (this fit)"),
        "to estimate it, use “Estimate what a model will do”",
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.where)
def test_options_are_spelled_as_readers_know_them_and_not_otherwise(fit, table, door):
    record, text = shown(fit, table, door)
    for words in (*DOORS[door], f"options are named as {door.where}"):
        assert words in text
    assert record["source"]["front_door"] == door.where
    # the names of fields are for programs
    without_data = re.sub(r'"varied": "\w+"', "", text)
    assert [name for name in NAMES if name in without_data] == [] or door is IN_PYTHON
    assert [name for name in FLAGS if name in text] == [] or door is TYPED


def test_reports_of_raking_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    survey = pd.DataFrame({"sex": ["f"] * 3 + ["m"] * 97, "town": ["a", "b"] * 50})
    survey.to_csv("survey.csv", index=False)
    (tmp_path / "known.csv").write_text("columns;level;value\nsex;f;0.5\nsex;m;0.5\n")
    for name in ("typed.html", "typed.md", "typed.json"):
        run("rake", "survey.csv", "--margins", "known.csv", "--report", name)
        text = (tmp_path / name).read_text()
        assert "let its margin be missed, with --bounds and --relax" in re.sub(
            r"</?span[^>]*>", "", text
        )
        assert "on the command line" in text
    fairmaxent.report.write_raking_report(
        fairmaxent.rake(survey, {"sex": {"f": 0.5, "m": 0.5}}), "called.md"
    )
    assert (
        "let its margin be missed, with bounds and relax."
        in (tmp_path / "called.md").read_text()
    )
    assert "options are named as in Python" in (tmp_path / "called.md").read_text()


def test_a_typed_option_is_never_broken_and_nothing_from_the_data_is_markup(table):
    hostile = table.rename(columns={"sex": '--sex" onload="x <b>'})
    fit = fairmaxent.debias(
        hostile,
        "hired",
        '--sex" onload="x <b>',
        favourable="yes",
        representation_rate=1.0,
        estimate=None,
    )
    page = html_report(build_report(fit, source=Source(front_door=TYPED)))
    assert 'with <span class="option">--largest-weight</span>' in page
    assert re.search(r"\.option \{ white-space: nowrap; \}", page)
    assert "<b>" not in re.sub(r"<b>[\d.]+%</b>", "", page)
    assert not re.search(r'<[^>]*"\s+onload=', page)
