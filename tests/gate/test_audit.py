"""An audit by Local Law 144 equals what pandas counts, to the last digit shown."""

import random
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from forging import forged, forged_head

import clifiles
import fairmaxent
from fairmaxent.gate.papers import audit, verify_audit
from tables import seeds

LAW = ["sex", "race"]


def decisions(seed):
    """People with decisions and scores, of whom some categories are rare or unknown."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(40, 3000))
    sex = rng.choice(["F", "M", "X"], size, p=[0.4, 0.59, 0.01])
    race = rng.choice(["A", "B", "C", "D"], size, p=[0.3, 0.5, 0.185, 0.015])
    # many people with the same score, so that few are above the median
    score = rng.normal(50, 20, size).round(int(rng.integers(-1, 3)))
    score += 5 * (sex == "M")
    table = pd.DataFrame(
        {
            "sex": sex,
            "race": race,
            "veteran": rng.random(size) < 0.2,
            "score": score,
            "hired": np.where(rng.random(size) < score / 100, "yes", "no"),
        }
    )
    for name in ("sex", "race", "score", "hired"):
        share = rng.choice([0, 0.01, 0.1])
        table[name] = table[name].astype(object).where(rng.random(size) >= share, None)
    return table


def digits(share, places):
    """Round as people do, exactly."""
    number = Decimal(share.numerator) / Decimal(share.denominator)
    return str(number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def as_percent(share):
    places = 2 if 0 < share < Fraction(1, 1000) else 1
    return f"{digits(100 * share, places)}%"


def by_pandas(table, chosen, columns):
    """The rows of one table of the audit."""
    people = table.assign(chosen=chosen).dropna(subset=[*columns, "chosen"])
    counts = people.groupby(list(columns))["chosen"].agg(["size", "sum"]).sort_index()
    rates = [Fraction(int(s), int(n)) for n, s in counts[["size", "sum"]].to_numpy()]
    is_small = (counts["size"] * 50 < counts["size"].sum()).tolist()
    large = [rate for rate, small in zip(rates, is_small, strict=True) if not small]
    for label, size, hits, rate, small in zip(
        counts.index, counts["size"], counts["sum"], rates, is_small, strict=True
    ):
        names = label if isinstance(label, tuple) else (label,)
        yield [
            " × ".join(map(str, names)),
            f"{int(size):,}",
            f"{int(hits):,}",
            as_percent(rate),
            impact(rate, max(rates)),
            "under 2 %" if small else impact(rate, max(large)),
        ]


def impact(rate, highest):
    return digits(rate / highest, 3) if highest else "–"


def tables_in(text):
    """The rows of each table of a document, by its head."""
    for part in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [line.strip("| ").split(" | ") for line in part.splitlines()]
        yield lines[0], lines[2:]


def groupings_of(columns):
    for size in sorted({1, 2, len(columns)}):
        yield from combinations(columns, size)


@pytest.mark.some(2)
@pytest.mark.parametrize("columns", [LAW, [*LAW, "veteran"]], ids=["two", "three"])
@pytest.mark.parametrize("seed", seeds(8, 30))
def test_an_audit_equals_pandas(seed, columns):
    table = decisions(seed)
    asked = {"outcome": "hired", "favourable": "yes", "score": "score"}
    text = audit(table, protected=columns, **asked)
    found = list(tables_in(text))

    scores = table["score"].astype(float)
    median = scores.median()
    assert f"The median of score is {median:.15g}, counted" in text
    selected = table["hired"].map({"yes": 1, "no": 0})
    above = (scores > median).astype(float).where(scores.notna())
    expected = [
        list(by_pandas(table, chosen, grouping))
        for chosen in (selected, above)
        for grouping in groupings_of(columns)
    ]
    *rates, unknown_decisions, unknown_scores = found
    assert [rows for _, rows in rates] == expected
    for (_, rows), known in (
        (unknown_decisions, table["hired"].notna()),
        (unknown_scores, table["score"].notna()),
    ):
        for row, grouping in zip(rows, groupings_of(columns), strict=True):
            named = table[list(grouping)].notna().all(axis=1)
            counts = [named & known, ~named, named & ~known]
            assert row == [" × ".join(grouping), *(f"{who.sum():,}" for who in counts)]


def test_two_percent_themselves_are_not_small():
    """Only a category below them may be left out (6 RCNY § 5-301)."""
    sizes = {"A": 97, "B": 2, "C": 1}
    race = [name for name, size in sizes.items() for _ in range(size)]
    table = pd.DataFrame({"sex": "F", "race": race, "hired": "yes"})
    text = audit(table, "hired", LAW, favourable="yes")
    _, (_, rows), *_ = tables_in(text)
    assert [row[-1] for row in rows] == ["1.000", "1.000", "under 2 %"]


def test_a_third_column_leaves_the_pair_that_the_law_asks_for():
    text = audit(decisions(0), "hired", ["sex", "race", "veteran"], favourable="yes")
    heads = [head[0] for head, _ in tables_in(text)][:-1]
    assert heads == [
        "Sex",
        "Race",
        "Veteran",
        "Sex × race",
        "Sex × veteran",
        "Race × veteran",
        "Sex × race × veteran",
    ]


def test_a_person_must_write_what_no_table_holds():
    text = audit(decisions(0), "hired", LAW, favourable="yes")
    asked = re.findall(r"^\*\*(.*)\*\*$", text, re.M)
    for word in (
        "distribution date",
        "first and the last date",
        "test data",
        "left out",
    ):
        assert any(word in question for question in asked), word
    assert text.count("> To be written by") == len(asked) == 7


@pytest.fixture(scope="module")
def filed(tmp_path_factory):
    """Audits of a table in a file: decisions, scores, both with a third column."""
    folder = tmp_path_factory.mktemp("audits")
    table = folder / "the table, 2026.csv"
    decisions(3).to_csv(table, index=False)
    words = {
        "decisions": "--outcome hired --favourable yes --protected sex,race",
        "scores": "--score score --protected sex,race",
        "both": "--outcome hired --favourable yes --score score"
        " --protected sex,race,veteran",
    }
    for name, typed in words.items():
        path = folder / f"{name}.md"
        clifiles.run("document", "ll144", table, *typed.split(), "-o", path)
    return table, {name: folder / f"{name}.md" for name in words}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["decisions", "scores", "both"])
def test_an_audit_is_made_again_from_its_table(filed, name):
    table, paths = filed
    done = clifiles.run("verify", "--document", paths[name], table)
    assert "made again from the table; every line agrees" in done.output
    assert verify_audit(paths[name], table).differences == ()


@pytest.mark.some(1)
@pytest.mark.parametrize("changes", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["decisions", "scores", "both"])
def test_forged_audits_are_found(filed, name, changes, tmp_path):
    table, paths = filed
    text = paths[name].read_text("utf-8")
    rng = random.Random(name)
    for _ in range(changes):
        other = tmp_path / "audit.md"
        other.write_text(forged(text, rng), "utf-8")
        try:
            found = verify_audit(other, table)
        except fairmaxent.FairMaxEntError:
            continue  # refused as something else
        assert found.differences


@pytest.mark.some(1)
@pytest.mark.parametrize("changes", [20, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["decisions", "scores", "both"])
def test_a_changed_head_is_no_bug(filed, name, changes, tmp_path):
    """What an audit states of itself is read before anything is counted."""
    table, paths = filed
    text = paths[name].read_text("utf-8")
    rng = random.Random(name)
    other = tmp_path / "audit.md"
    for _ in range(changes):
        other.write_text(forged_head(text, rng), "utf-8")
        try:
            found = verify_audit(other, table)
        except fairmaxent.FairMaxEntError:
            continue
        assert found.differences


def test_another_table_is_told_apart(filed, tmp_path):
    """Even one person more, and even the same people in another file."""
    table, paths = filed
    rows = pd.read_csv(table)
    other = tmp_path / "other.csv"
    rows.iloc[1:].to_csv(other, index=False)
    clifiles.run("verify", "--document", paths["both"], other, code=1)
    assert verify_audit(paths["both"], pd.read_csv(other)).differences
    # a frame has no digest, so only what is counted is compared
    assert not verify_audit(paths["both"], rows).differences


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--outcome hired --protected sex,race", "--outcome needs --favourable"),
        ("--score score --favourable yes --protected sex,race", "needs --outcome"),
        ("--protected sex,race", "name the column of decisions"),
        ("--score score --protected sex", "name sex and race or ethnicity"),
        ("--score scroe --protected sex,race", "did you mean 'score'"),
        ("--score hired --protected sex,race", "hired"),
        (
            "--outcome hired --favourable yess --protected sex,race",
            "did you mean 'yes'",
        ),
        ("--score score --protected sex,race --data x.csv", "--data"),
    ],
)
def test_what_cannot_be_audited_is_said(filed, typed, said, tmp_path):
    table, _ = filed
    (tmp_path / "x.csv").touch()
    words = typed.replace("x.csv", str(tmp_path / "x.csv")).split()
    path = tmp_path / "audit.md"
    done = clifiles.run("document", "ll144", table, *words, "-o", path, code=None)
    assert done.exit_code
    assert said in done.stderr
    assert not path.exists()


def test_kinds_about_models_take_no_options_of_an_audit(filed, tmp_path):
    table, _ = filed
    words = ["--score", "score", "-o", tmp_path / "card.md"]
    done = clifiles.run("document", "card", table, *words, code=2)
    assert "--score says nothing about a saved fit" in done.stderr
