"""Costs in a report: counted by pandas in what was delivered, shown on the first page, and outcomes that changed."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import fairmaxent
from fairmaxent import Relabel, debias
from fairmaxent.document import Table
from fairmaxent.document.words import percent
from fairmaxent.report import build_report
from fairmaxent.report.report import COSTS_UNKNOWN
from fairmaxent.report.sections import report_document
from fairmaxent.report.writer import html_report, json_report, markdown_report
from tables import random_frame

COLUMNS = ["z0", "z1", "y", "x0", "x1", "x2"]
RELABEL = Relabel(labeller=GaussianNB())


def frame_of(seed: int = 0, rows: int = 500) -> pd.DataFrame:
    """Some rows are equal, so that they share their copies."""
    frame = random_frame(np.random.default_rng(seed), (2, 3), 2, rows)
    frame["x1"] = (frame["x1"] * 20).round()
    return frame


def fitted(frame: pd.DataFrame, **options):
    return debias(frame, "y", ["z0", "z1"], favourable="o1", representation_rate=1.0, random_state=0, **options)


def most_copies(real: pd.DataFrame, new: pd.DataFrame, columns, group: str) -> pd.Series:
    """By group: how often a real row comes among the new ones, shared by the real rows that are equal."""
    copies = (new.value_counts(columns) / real.value_counts(columns)).dropna()
    return copies.groupby(group).max()


# ---------------------------------------------------------------- what was delivered


def test_copies_are_counted_in_the_delivered_rows():
    frame = frame_of()
    fit = fitted(frame)
    sample = fit.sample(800)
    costs = build_report(fit, data=frame, delivered=sample, trade_off=False).costs
    assert costs.counted
    for cost in costs.groups:
        level = cost.name.split(" = ")[1]
        assert cost.most_copies == pytest.approx(most_copies(frame, sample, COLUMNS, cost.grouping)[level])
        assert cost.after == pytest.approx((sample[cost.grouping] == level).mean())
        assert cost.before == pytest.approx((frame[cost.grouping] == level).mean())
    (share,) = costs.outcomes
    assert (share.before, share.after) == pytest.approx(((frame["y"] == "o1").mean(), (sample["y"] == "o1").mean()))
    cell = dict(part.split(" = ") for part in costs.worst_cell.name.split(", "))
    inside = [(table[list(cell)] == pd.Series(cell)).all(axis=1) for table in (frame, sample)]
    worst = most_copies(frame[inside[0]], sample[inside[1]], COLUMNS, "y")
    assert costs.worst_cell.most_copies == pytest.approx(worst[cell["y"]])
    assert costs.worst_cell.after == pytest.approx(inside[1].mean())


def test_a_relabelled_copy_may_have_any_outcome():
    frame = frame_of(1)
    fit = fitted(frame, relabel=RELABEL)
    sample = fit.sample(len(frame))
    profile = [column for column in COLUMNS if column != "y"]
    costs = build_report(fit, data=frame, delivered=sample, trade_off=False).costs
    for cost in costs.groups:
        counted = most_copies(frame, sample, profile, cost.grouping)
        assert cost.most_copies == pytest.approx(counted[cost.name.split(" = ")[1]])


def test_old_rows_count_once_more():
    frame = frame_of(2)
    fit = fitted(frame)
    added = fit.top_up()
    costs = build_report(fit, data=frame, delivered=added, mode="top-up", trade_off=False).costs
    together = pd.concat([frame, added])
    for cost in costs.groups:
        level = cost.name.split(" = ")[1]
        counted = most_copies(frame, together[COLUMNS], COLUMNS, cost.grouping)
        assert cost.most_copies == pytest.approx(counted[level])
        assert cost.after == pytest.approx((together[cost.grouping] == level).mean())


def test_without_the_data_copies_are_expected_for_as_many_rows_as_were_drawn():
    fit = fitted(frame_of(3))
    report = build_report(fit, delivered=fit.sample(1500), trade_off=False)
    assert not report.costs.counted
    for cost, expected in zip(report.costs.groups, fit.certificate.costs.groups, strict=True):
        assert cost.most_copies == pytest.approx(3 * expected.most_copies)
    assert "Expected copies" in markdown_report(report)


def test_weights_show_the_largest_one():
    frame = frame_of(4)
    fit = fitted(frame)
    report = build_report(fit, data=frame, delivered=fit.weights(), mode="weights", trade_off=False)
    costs = next(section for section in report_document(report).appendix if section.key == "costs")
    (table,) = (block for block in costs.blocks if isinstance(block, Table))
    shown = {line[0]: line[-1] for line in table.rows}
    for level, largest in pd.Series(fit.weights()).groupby(frame["z0"]).max().items():
        assert float(shown[f"z0 = {level}"]) == pytest.approx(largest, abs=0.051)
    assert "Largest weight" in html_report(report)


def test_filled_cells_have_the_share_of_the_delivered_rows():
    frame = frame_of(5)
    frame = frame[~((frame["z0"] == "g1") & (frame["y"] == "o1"))]
    fit = debias(frame, "y", "z0", representation_rate=1.0, random_state=0)
    sample = fit.sample(333)
    report = build_report(fit, data=frame, delivered=sample, trade_off=False)
    share = ((sample["z0"] == "g1") & (sample["y"] == "o1")).mean()
    assert report.costs.filled == pytest.approx(share)
    assert f"{percent(share)} of the result has a combination" in markdown_report(report)


# ---------------------------------------------------------------- what is said first


def few_people(name: str = "Other") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": rng.choice(["White", "Black", "Asian"], 3000), "age": rng.integers(18, 80, 3000)})
    frame["y"] = np.where(rng.random(3000) < 0.3, "yes", "no")
    frame.loc[:2, ["race", "y"]] = [[name, "yes"], [name, "no"], [name, "no"]]
    return frame


def visible(html: str) -> str:
    return re.sub(r"<[^>]+>", " ", html[html.index("<body>") :])


def test_a_warning_stands_above_everything_and_no_rate_is_met_without_it():
    fit = debias(few_people(), "y", "race", favourable="yes", representation_rate=1.0, random_state=0)
    report = build_report(fit, data=few_people(), delivered=fit.weights(), mode="weights", trade_off=False)
    assert report.alerts[0].startswith("race = Other: 25.0% of the result rests on 3 rows (0.1% of the data)")
    assert [rate.met for rate in report.rates] == [True, True]
    assert [rate.costly for rate in report.rates] == [True, True]
    assert report.verdict() == "Both rates asked for are met. The warning above names the cost."
    for text in (visible(html_report(report)), markdown_report(report)):
        places = [
            text.index(part)
            for part in ("this result rests on very few people", "race = Other", "What was asked", "are met")
        ]
        assert places == sorted(places)
        assert not re.search(r"✓ met(?!, but see the warning)", text)
    assert json.loads(json_report(report))["alerts"] == list(report.alerts)
    assert not set(report.alerts) & set(report.warnings)


def test_within_the_line_there_is_no_warning_but_the_costs_are_on_the_first_page():
    frame = frame_of(6, rows=2000)
    fit = debias(frame, "y", "z0", favourable="o1", representation_rate=1.0, random_state=0)
    report = build_report(fit, delivered=fit.weights(), mode="weights", trade_off=False)
    assert report.alerts == ()
    assert [report.state(rate) for rate in report.rates] == [("good", "✓ met")] * 2
    for text in (visible(html_report(report)), markdown_report(report)):
        assert "this result rests on very few people" not in text
        assert text.index("asked for are met") < text.index("Effective rows") < text.index("Appendix")


def test_a_relabelled_report_says_on_its_first_page_whose_outcomes_were_changed():
    frame = frame_of(7)
    fit = fitted(frame, relabel=RELABEL)
    report = build_report(fit, data=frame, delivered=fit.weights(), mode="weights", trade_off=False)
    parts = fit.weights() / fit.weights().sum(axis=1, keepdims=True)
    for group in ("g0", "g1"):
        people = (frame["z0"] == group).to_numpy()
        up = parts[people & (frame["y"] == "o0").to_numpy(), 1].sum()
        down = parts[people & (frame["y"] == "o1").to_numpy(), 0].sum()
        (line,) = (line for line in report.changed if line.startswith(f"z0 = {group}: "))
        assert f"of {people.sum():,} people, " in line
        assert f"{up:,.0f} from o0 to o1" in line
        assert f"{down:,.0f} from o1 to o0" in line
        for text in (visible(html_report(report)), markdown_report(report)):
            assert text.index(f"Outcomes were changed for {line}") < text.index("Appendix")
            assert text.index("Outcomes were changed.", text.index("Appendix")) < text.rindex(line)
    plain = build_report(fitted(frame), trade_off=False)
    assert plain.changed == ()
    assert "Outcomes were changed" not in html_report(plain)


def test_a_fit_whose_costs_are_not_known_says_so():
    frame = frame_of(8)
    fit = fairmaxent.paper.fit(frame[["z0", "y", "x0"]], outcome="y", protected="z0")
    report = build_report(fit, delivered=fit.sample(100), trade_off=False)
    assert (report.costs.groups, report.costs.worst_cell) == ((), None)
    assert len(report.costs.outcomes) == 2
    for text in (html_report(report), markdown_report(report)):
        assert COSTS_UNKNOWN in text
