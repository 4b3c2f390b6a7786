"""The first page: its answers are those of pandas, it is filed under what was given,
and it stays one page.
"""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from clifiles import ROLES, biased_table, run
from fairmaxent import InputError
from fairmaxent.document import Paragraph, Table
from fairmaxent.document.words import percent
from fairmaxent.errors import StorageError
from fairmaxent.metrics import statistical_rate
from fairmaxent.report import build_report, write_report
from fairmaxent.report.first_page import first_page
from fairmaxent.report.source import filed
from reportforms import html_report, markdown_report
from tables import EQUAL_PROBABILITIES

FAVOURED = [*ROLES, "--favourable", ">50K", "--estimate", "none"]


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch):
    # tested with the report
    monkeypatch.setattr("fairmaxent.report.refits.LARGEST_TABLE", 0)


def people(rows=900, groups=("f", "m"), shares=(0.3, 0.7)):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"sex": rng.choice(groups, rows, p=shares), "age": rng.integers(18, 60, rows)}
    )
    frame["hired"] = np.where(
        rng.random(rows) < np.where(frame["sex"] == groups[0], 0.2, 0.5), "yes", "no"
    )
    return frame


def fitted(frame, **options):
    return fairmaxent.debias(
        frame, "hired", "sex", favourable="yes", random_state=0, **options
    )


def answers(report):
    """By key: the lines of an answer, its table, and the notes below."""
    found = {}
    for section in first_page(report).first_page:
        (first, *others), tables = (
            section.blocks,
            [block for block in section.blocks if isinstance(block, Table)],
        )
        lines = getattr(first, "items", (getattr(first, "text", ""),))
        notes = tuple(block.text for block in others if isinstance(block, Paragraph))
        found[section.key] = SimpleNamespace(
            lines=lines, table=next(iter(tables), None), notes=notes
        )
    return found


def test_it_is_not_for_sharing_as_rows_are_real_or_may_be_copies():
    fit = fitted(people())
    weighed = answers(build_report(fit, mode="weights"))["not-for"].lines
    assert any(line.endswith(": every row is a real one.") for line in weighed)
    drawn = answers(build_report(fit, mode="rows"))["not-for"].lines
    assert any(line.endswith(": rows may be copies of real ones.") for line in drawn)


def test_every_question_is_answered_in_every_form():
    frame = people()
    report = build_report(fitted(frame, representation_rate=1.0), data=frame)
    page = first_page(report)
    assert (page.title, page.filing[0]) == (
        "hired = yes, by sex",
        ("Author", "not stated"),
    )
    assert page.filing[2] == ("Purpose", "not stated")
    questions = [
        "groups",
        "asked",
        "reached",
        "costs",
        "model",
        "copies",
        "not-for",
        "record",
    ]
    assert [section.key for section in page.first_page] == questions
    for text in (html_report(report), markdown_report(report)):
        first = text[: text.index("Appendix")]
        places = [first.index(section.title) for section in page.first_page]
        assert places == sorted(places)


def test_each_group_has_its_shares_and_its_outcome_before_and_after():
    frame = people()
    fit = fitted(frame, representation_rate=1.0)
    sample = fit.sample(700)
    page = first_page(report := build_report(fit, data=frame, result=sample))
    (picture, *_), table, said = (
        page.first_page[0].blocks,
        answers(report)["costs"].table,
        [],
    )
    intervals = {
        one.group: one.interval
        for one in statistical_rate(frame, "hired", "sex", favourable="yes").groups
    }
    for group, costs, drawn, ends in zip(
        picture.rows, table.rows[:-1], picture.shares, picture.ranges, strict=True
    ):
        name = costs[0].removeprefix("sex = ")
        inside = [one[one["sex"] == name] for one in (frame, sample)]
        shares = [len(inside[0]) / len(frame), len(inside[1]) / len(sample)]
        rates = [(one["hired"] == "yes").mean() for one in inside]
        assert costs[:4] == (
            f"sex = {name}",
            str(len(inside[0])),
            *map(percent, shares),
        )
        low, high = intervals[(name,)]
        span = f"{percent(low)} – {percent(high)}"
        assert group == (
            f"sex = {name}",
            str(len(inside[0])),
            percent(rates[0]),
            span,
            percent(rates[1]),
        )
        assert (*drawn, *ends) == pytest.approx((*rates, low, high))
        said += [f"{100 * rate:.0f}" for rate in rates]
    assert (
        page.summary
        == f"Of 100 people with sex = f, {said[0]} have hired = yes in the data and"
        f" {said[1]} in the result; of 100 people with sex = m, {said[2]} in the"
        f" data and {said[3]} in the result."
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("groups", ["joint", "each"])
def test_the_largest_groups_of_every_protected_column_are_drawn_and_the_appendix_has_all(
    groups,
):
    rng, levels = (
        np.random.default_rng(1),
        {
            "region": ["north", "south", "west"],
            "born": ["abroad", "here"],
        },
    )
    frame = people().assign(
        **{name: rng.choice(own, 900) for name, own in levels.items()}
    )
    frame["town"] = rng.choice([f"town {number:02}" for number in range(50)], 900)
    columns = [
        f"{name} = {one}"
        for name, own in {"sex": ["f", "m"], **levels}.items()
        for one in own
    ]
    for protected in [
        ["sex", *levels],
        *([["town", "sex", *levels]] if groups == "each" else []),
    ]:
        fit = fairmaxent.debias(
            frame, "hired", protected, favourable="yes", groups=groups
        )
        report = build_report(fit, mode="weights")
        shown, appendix = (
            answers(report)["groups"],
            markdown_report(report).partition("## Appendix")[2],
        )
        names = [row[0] for row in shown.table.rows]
        assert set(columns) <= set(names)
        left = len(report.groups) - len(names)
        assert shown.notes == (
            (f"And {left} more groups: see the appendix.",) if left else ()
        )
        listed = [
            own.group if " × " in own.column else own.name for own in report.groups
        ]
        # of many levels, it has the largest
        is_cut = f"{50 - 24} more groups in the JSON report" in appendix
        assert (
            is_cut
            if "town" in protected
            else all(f"\n| {name} | " in appendix for name in listed)
        )
    drawn = sorted(int(row[1]) for row in shown.table.rows if "town" in row[0])
    assert groups == "joint" or drawn == sorted(
        frame["town"].value_counts().nlargest(4)
    )


def test_copies_are_counted_in_people():
    frame = people()
    fit = fitted(frame)
    sample = fit.sample(500)
    page = answers(build_report(fit, data=frame, result=sample))
    line = page["copies"].lines[0]
    # no second number, which is an expectation
    assert not any("copies" in asked for asked in page["asked"].lines)
    known = set(frame.itertuples(index=False, name=None))
    count = sum(row in known for row in sample.itertuples(index=False, name=None))
    assert line.startswith(
        f"{percent(count / 500)} of 500 new rows ({count}) have exactly the values of a"
        " real row"
    )
    weights = build_report(fit, data=frame, result=fit.weights(), mode="weights")
    assert "All rows are real" in answers(weights)["copies"].lines[0]
    report = build_report(fit, result=sample)
    (expected,) = answers(report)["copies"].lines
    (counted,) = [
        part for part in first_page(report).first_page if part.key == "copies"
    ]
    unknown = counted.blocks[1].items[0]
    copied = round(500 * fit.certificate.copied_share)
    assert expected.startswith(f"About {copied} of the 500 new rows are copies")
    assert "the data were not given" in unknown


def test_what_not_to_use_it_for_fits_the_result():
    frame = people(groups=("x", "m"), shares=(0.01, 0.99))
    fit = fitted(frame, representation_rate=1.0)
    lines = answers(
        build_report(fit, data=frame, result=fit.weights(), mode="weights")
    )["not-for"].lines
    assert any("as anonymous data" in line for line in lines)
    assert any(
        line.startswith("to say anything about the groups in the warning")
        for line in lines
    )
    lines = answers(build_report(fitted(people()), mode="weights"))["not-for"].lines
    assert not any("to say anything about" in line for line in lines)
    fit = fitted(people(), model=EQUAL_PROBABILITIES)
    assert any(
        "outcomes were changed" in line
        for line in answers(build_report(fit, mode="weights"))["not-for"].lines
    )


def test_without_an_estimate_it_says_how_to_get_one_and_with_one_what_is_expected():
    fit = fitted(people())
    (line,) = answers(build_report(fit, mode="weights"))["model"].lines
    assert "not estimated" in line
    assert "estimate='weights'" in line
    known = fitted(
        people(), estimate=fairmaxent.Estimate(output="weights", model="tree")
    )
    report = build_report(known, mode="weights")
    model, rate = (
        answers(report)["model"],
        known.certificate.estimate.after.by_predictions["sex"],
    )
    assert model.table.rows[1][0] == "Statistical rate of its predictions, sex"
    assert model.table.rows[1][2].startswith(f"{rate:.4f} (")


@pytest.mark.more
def test_many_rates_groups_and_long_names_are_cut_and_the_appendix_has_them():
    rng = np.random.default_rng(0)
    long = "a_rather_long_name_of_a_column_as_surveys_have_them_"
    levels = [
        f"group {number} of all the people who answered this question"
        for number in range(9)
    ]
    shares = [0.5, 0.3, 0.1, 0.05, 0.03, 0.005, 0.005, 0.005, 0.005]
    frame = pd.DataFrame(
        {f"{long}{column}": rng.choice(levels, 900, p=shares) for column in "abc"}
    )
    frame["sex"] = rng.choice(["f", "m"], 900)
    frame["hired"] = rng.choice(["yes", "no"], 900)
    fit = fairmaxent.debias(
        frame,
        "hired",
        list(frame.columns[:4]),
        favourable="yes",
        representation_rate=1.0,
    )
    report = build_report(fit, title="title " * 99, purpose="purpose " * 99)
    page, shown = first_page(report), answers(report)
    assert len(page.title) <= 100
    assert len(shown["reached"].table.rows) == 6
    assert "And 2 more rows: see the appendix." in shown["reached"].notes
    *groups, worst_cell = shown["costs"].table.rows
    assert len(groups) == 4
    assert worst_cell[0].startswith("worst cell: ")
    names = [row[0] for row in groups]
    assert len(set(names)) == len(names)
    assert all(name in markdown_report(report).replace("\\", "") for name in names)
    assert "And 25 more groups: see the appendix." in shown["costs"].notes
    assert len(report.alerts) >= len(shown["warning"].lines) == 4
    appendix = markdown_report(report).partition("## Appendix")[2]
    assert all(alert.replace("_", r"\_")[:200] in appendix for alert in report.alerts)


def test_title_author_purpose_and_date_are_shown_and_kept(tmp_path):
    fit = fitted(people())
    given = {
        "title": "Hiring <b>2026</b>",
        "author": "A. Analyst",
        "purpose": "For the\nauditors",
    }
    date = datetime(2026, 3, 4, 9, 5, tzinfo=timezone(timedelta(hours=2)))
    for name in ("report.html", "report.md", "report.json"):
        write_report(fit, tmp_path / name, mode="weights", date=date, **given)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "2026-03-04, 07:05 UTC" in text
        assert "For the auditors" in text
    assert "<h1>Hiring &lt;b&gt;2026&lt;/b&gt;</h1>" in (
        tmp_path / "report.html"
    ).read_text(encoding="utf-8")
    record = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert record["filing"]["written"] == "2026-03-04T07:05:00+00:00"
    assert record["first_page"]["filing"][0] == ["Author", "A. Analyst"]


def test_the_date_comes_from_the_environment_or_the_clock(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert filed().written == "1970-01-01T00:00:00+00:00"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    age = datetime.now(UTC) - datetime.fromisoformat(filed().written)
    assert timedelta(0) <= age < timedelta(minutes=5)
    for epoch in ("soon", "1e9", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        with pytest.raises(InputError, match="SOURCE_DATE_EPOCH is"):
            filed()


NO_ZONE = [
    ({"date": date}, "time zone") for date in (datetime(2026, 1, 1), "2026-01-01")
]


@pytest.mark.parametrize(
    ("given", "message"), [({"title": 7}, "title is a int; pass a text"), *NO_ZONE]
)
def test_what_cannot_be_filed_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        filed(**given)


def recorded(record):
    return dict(
        line.split(": ", 1)
        for line in record["first_page"]["first_page"][-1]["blocks"][0]["items"]
    )


def digest(name):
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("form", "mode"), [("csv", "rows"), ("parquet", "weights"), ("csv", "top-up")]
)
def test_the_report_has_the_digests_of_what_was_read_and_written(folder, form, mode):
    data = f"data.{form}"
    if form == "parquet":
        biased_table().write_parquet(data)
    written = ["-o", f"fair.{form}", "--save", "fit.fme", "--report", "report.json"]
    run("debias", data, *FAVOURED, "--mode", mode, *written)
    record = json.loads(Path("report.json").read_text())
    shown = recorded(record)
    assert shown["Data"] == f"{data}, SHA-256 {digest(data)}"
    assert shown["Fair table"] == f"fair.{form}, SHA-256 {digest(f'fair.{form}')}"
    assert shown["Saved fit"] == f"fit.fme, SHA-256 {digest('fit.fme')}"
    assert f"fairmaxent {fairmaxent.__version__}" in shown["Made with"]
    sampled = ["--result", f"fair.{form}"] if mode != "weights" else []
    run(
        "report",
        "fit.fme",
        "--data",
        data,
        "--mode",
        mode,
        *sampled,
        "-o",
        "later.md",
        "--no-trade-off",
    )
    later = Path("later.md").read_text().replace("\\", "")
    for name in (data, "fit.fme", *sampled[1:]):
        assert f"{name}, SHA-256 {digest(name)}" in later
    # a file that exists stays as it is
    run("report", "fit.fme", "-o", "later.md", "--no-trade-off", code=5)
    assert Path("later.md").read_text().replace("\\", "") == later


@pytest.mark.more
def test_a_table_on_stdout_has_no_digest_and_comes_last(folder, monkeypatch):
    result = run("debias", "data.csv", *FAVOURED, "-o", "-", "--report", "report.json")
    record = json.loads(Path("report.json").read_text())
    assert list(recorded(record)) == ["Data", "Made with"]
    assert result.stdout.startswith("sex,")

    def full(*_):
        raise StorageError("no space")

    monkeypatch.setattr("fairmaxent.cli.result.save_report", full)
    failed = run(
        "debias", "data.csv", *FAVOURED, "-o", "-", "--report", "other.json", code=5
    )
    assert failed.stdout == ""


@pytest.mark.more
def test_title_author_and_purpose_are_options_and_keys_of_a_config_file(folder):
    (folder / "options.toml").write_text(
        'title = "From the file"\nauthor = "A"\npurpose = "P"\n'
    )
    options = [
        "--config",
        "options.toml",
        "--author",
        "B",
        "--report",
        "report.json",
        "--save",
        "fit.fme",
    ]
    run("debias", "data.csv", *FAVOURED, *options)
    filing = json.loads(Path("report.json").read_text())["filing"]
    assert (filing["title"], filing["author"], filing["purpose"]) == (
        "From the file",
        "B",
        "P",
    )
    run(
        "report",
        "fit.fme",
        "--title",
        "T",
        "--purpose",
        "audit",
        "-o",
        "later.json",
        "--no-trade-off",
    )
    filing = json.loads(Path("later.json").read_text())["filing"]
    assert (filing["title"], filing["author"], filing["purpose"]) == (
        "T",
        None,
        "audit",
    )
    # another run without a report
    run("debias", "data.csv", *FAVOURED, "--config", "options.toml")
    refused = run("debias", "data.csv", *FAVOURED, "--title", "T", code=2)
    assert "--title needs --report: none is written" in refused.output


def test_of_many_strata_whole_ones_are_shown_those_with_the_clearest_gaps(tmp_path):
    rng = np.random.default_rng(0)
    department = rng.integers(0, 20, 3000)
    # women are few in the first departments, so that they would be cut by size
    is_woman = rng.random(3000) < 0.1 + 0.8 * department / 20
    rate = 0.3 + 0.4 * is_woman * (department == 7)
    table = pd.DataFrame(
        {
            "department": [f"d{code:02}" for code in department],
            "sex": np.where(is_woman, "f", "m"),
            "hired": np.where(rng.random(3000) < rate, "yes", "no"),
        }
    )
    fit = fairmaxent.debias(
        table,
        "hired",
        "sex",
        favourable="yes",
        within="department",
        estimate=None,
    )
    fit.report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    tables = text.split("| Group | Rows | Before | 95% range | After |")[1:]
    assert len(tables) == 3
    for shown in (tables[0], tables[2]):
        lines, _, _ = shown.partition("\n\n")
        rows = re.findall(r"\| sex = (.), department = (d\d\d) ", lines)
        assert rows[::2] == [("f", stratum) for _, stratum in rows[::2]]
        assert rows[1::2] == [("m", stratum) for _, stratum in rows[::2]]
        assert ("f", "d07") in rows
        left = 40 - len(rows)
        assert f"nd {left} more groups" in text
