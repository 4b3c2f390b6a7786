"""inspection/verdict.py: whether a table is fair, against tables counted by hand, the
metrics, and simulation.
"""

import html
import json
import re

import numpy as np
import polars as pl
import pytest

from clifiles import run
from fairmaxent import inspect
from fairmaxent.fairness.compare import Compare
from fairmaxent.inspection.verdict import judge
from fairmaxent.metrics import representation_rate, statistical_rate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison
from fairmaxent.report import write_inspection_report
from tables import times

HOSTILE = "<script>alert(1)</script> | *x* \x1b[2J\u202e"


def people(counts, column="sex", outcome="hired"):
    """A table with so many rows of each group, of whom so many have the outcome."""
    cells = [
        (group, "yes" if row < good else "no")
        for group, (rows, good) in counts.items()
        for row in range(rows)
    ]
    return pl.DataFrame(cells, schema=[column, outcome], orient="row")


def verdict(counts):
    return (
        inspect(people(counts), "hired", "sex", favourable="yes").groupings[0].verdict
    )


def test_the_ratio_and_its_interval_are_those_of_the_metrics():
    counts = {"f": (200, 40), "m": (300, 90)}
    found, rate = (
        verdict(counts),
        statistical_rate(people(counts), "hired", "sex", favourable="yes"),
    )
    assert found.gap.value == pytest.approx((40 / 200) / (90 / 300))
    assert found.gap.interval == pytest.approx(rate.interval, abs=1e-9)
    assert (
        str(found)
        == "People with sex 'f' have hired 'yes' 0.67 times as often as people with sex"
        " 'm' (between 0.47 and 0.87). That is unlikely to be chance."
    )
    assert repr(inspect(people(counts), "hired", "sex", favourable="yes")).startswith(
        found.headline
    )


def test_the_largest_group_is_compared_with_each_and_the_clearest_gap_told():
    """Of three gaps each interval has the confidence 1 − 0.05 / 3: all hold
    together.
    """
    counts = {"a": (400, 200), "b": (300, 135), "c": (200, 60), "d": (40, 12)}
    gap, said = (
        verdict(counts).gap,
        "The largest group was compared with each other one",
    )
    assert [
        verdict(dict([*counts.items()][:groups])).details.startswith(said)
        for groups in (2, 3)
    ] == [False, True]
    # d has the same rate, but fewer people
    assert (gap.worst.lowest, gap.worst.highest) == (("c",), ("a",))
    pair = people({name: counts[name] for name in "ac"})
    expected = statistical_rate(
        pair, "hired", "sex", favourable="yes", confidence=1 - 0.05 / 3
    )
    assert (gap.value, *gap.interval) == pytest.approx(
        (expected.value, *expected.interval), abs=1e-9
    )
    # If no gap is clear, the widest: of the people over 50, not of those who are hired
    # nearly as often as the largest.
    assert verdict(
        {"a": (387, 93), "b": (343, 87), "c": (170, 27)}
    ).headline.startswith("People with sex 'c' have")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (
            {"f": (60, 20), "m": (60, 30)},
            (
                "0.67 times as often .* That may well be chance: the table is too small"
                " to tell"
            ),
        ),
        (
            {"f": (9000, 4490), "m": (9000, 4500)},
            "0.9978 times .* may well be chance: the table shows no clear gap",
        ),
        (
            {"f": (90, 30), "m": (90, 30)},
            r"1\.00 times as often as people .* and 1\.00\)\. That may well be chance",
        ),
        (
            {"f": (90, 0), "m": (90, 60)},
            r"0\.00 times .* \(between 0\.00 and 0\.\d\d\)\. That is unlikely",
        ),
        # few people can be enough
        ({"f": (20, 0), "m": (20, 20)}, "That is unlikely to be chance"),
    ],
)
def test_what_is_said_of_chance(counts, said):
    assert re.search(said, verdict(counts).headline)


@pytest.mark.more
def test_equal_rates_are_called_unlikely_to_be_chance_in_one_table_of_twenty():
    rng = np.random.default_rng(8)
    sizes = {"a": 200, "b": 150, "c": 60, "tiny": 6}
    compared = Comparison(Compare("sex", favourable="yes"), "hired")
    nobody = people({name: (rows, 0) for name, rows in sizes.items()})
    shares = representation_rate(nobody, "sex")
    tables = times(500)
    alarms = 0
    for _ in range(tables):
        drawn = {name: (rows, rng.binomial(rows, 0.3)) for name, rows in sizes.items()}
        (rows,) = compared.grouped(people(drawn))
        table = GroupedTable.of_outcomes(rows, "yes")
        alarms += judge(table, shares, "hired", 0.95).most < 1
    assert 0.01 * tables < alarms < 0.05 * tables + 2 * np.sqrt(tables * 0.05 * 0.95)


@pytest.mark.some(2)
@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("good", [0, 1])
def test_tiny_groups_are_set_apart(rows, good):
    """Fewer than five of ten would have an outcome that somewhat less than half of all
    have.
    """
    found = verdict(
        {"f": (100, 40), "X": (rows + 1, good * (rows + 1)), "m": (100, 50)}
    )
    assert "'X'" not in found.headline
    assert found.gap.value == pytest.approx(0.8)
    few = f"{rows + 1} {'people' if rows else 'person'} with sex 'X'"
    assert found.details.endswith(f"Too little is known to say anything about {few}.")
    look = inspect(
        people({"f": (500, 200), "m": (3, 0), "X": (4, 4)}),
        "hired",
        "sex",
        favourable="yes",
    )
    assert repr(look).startswith(
        "Too little is known to say anything about 4 people with sex 'X' and 3 people"
        " with "
    )
    assert repr(look).count("Too little is known") == 1


def test_without_a_good_outcome_each_is_compared_once():
    frame = people({"f": (200, 20), "m": (200, 60)}).with_columns(
        pl.col("hired").replace({"yes": "p", "no": "q"})
    )
    both, one = (
        inspect(frame, "hired", "sex"),
        inspect(frame, "hired", "sex", favourable="p"),
    )
    assert both.favourable == ()
    # the other outcome tells nothing new
    assert both.verdicts[0].gap.interval == one.verdicts[0].gap.interval


def test_the_clearest_columns_come_first_and_at_most_three():
    rng = np.random.default_rng(3)
    gaps = {"a": 0.0, "b": 0.5, "c": 0.15, "d": 0.3}
    groups = {name: rng.integers(0, 2, 2000) for name in gaps}
    good = rng.random(2000) < 0.2 + sum(
        gap / 2 * groups[name] for name, gap in gaps.items()
    )
    look = inspect(
        pl.DataFrame({**groups, "hired": good}), "hired", list(gaps), favourable=True
    )
    assert [found.gap.worst.columns[0] for found in look.verdicts] == ["b", "d", "c"]
    assert look.verdicts[0].headline.startswith(
        "People with b '0' have hired 'True' 0."
    )
    assert [found["text"] for found in look.to_dict()["verdicts"]] == [
        *map(str, look.verdicts)
    ]


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_a_report_begins_with_the_answer_and_has_no_markup_of_the_data(
    tmp_path, suffix
):
    counts = {HOSTILE: (200, 40), "m": (300, 90), f"{HOSTILE}2": (3, 1)}
    look = inspect(people(counts, HOSTILE), "hired", HOSTILE, favourable="yes")
    write_inspection_report(look, tmp_path / f"report{suffix}")
    text = (tmp_path / f"report{suffix}").read_text(encoding="utf-8")
    assert not {"\x1b", "\u202e"} & {
        *text,
        *repr(look),
        *"".join(map(str, (*look.verdicts, *look.hints))),
    }
    if suffix == ".json":
        assert json.loads(text)["inspection"]["verdicts"][0]["text"] == str(
            look.verdicts[0]
        )
        return
    assert "<script" not in text
    plain = html.unescape(re.sub("<[^>]*>", " ", text))
    assert "0.67 times as often" in plain
    assert (
        plain.index("unlikely to be chance")
        < plain.index("39.8%")
        < plain.index("All columns")
    )
    assert "not stated" not in plain


def test_a_report_shows_levels_in_full(tmp_path):
    frame = people(
        dict.fromkeys(("female", "male", "non-binary"), (200, 90)),
        "sex",
        "was hired in the end " * 2,
    )
    look = inspect(frame, frame.columns[1], "sex", favourable="yes")
    path = tmp_path / "report.md"
    write_inspection_report(look, path)
    assert "| female, male, non-binary |" in path.read_text(encoding="utf-8")


def test_the_next_step_claims_nothing_about_groups_that_are_too_small(tmp_path):
    people({"f": (4, 1), "m": (4, 3)}).write_csv(tmp_path / "t.csv")
    shown = run("inspect", str(tmp_path / "t.csv")).stdout
    assert "Next: groups are too small to compare; if you want" in shown


@pytest.mark.parametrize(
    ("good", "said"),
    [(10, "make the table fair"), (88, "no gap here is clearly more than chance")],
)
def test_the_command_answers_and_its_next_step_fits(tmp_path, monkeypatch, good, said):
    monkeypatch.chdir(tmp_path)
    people({"f": (200, good), "m": (200, 90), "X": (4, 4)}).write_csv("t.csv")
    shown = run("inspect", "t.csv", "--report", "r.md").stdout
    answer = shown.splitlines()[0]
    assert answer in (tmp_path / "r.md").read_text(encoding="utf-8")
    assert answer.startswith(
        f"People with sex 'f' have hired 'yes' {good / 90:.2f} times as often"
    )
    assert "wrote r.md\n\nNext: " + said in shown
