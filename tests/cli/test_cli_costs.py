"""``fairmaxent debias``: what the written table costs each group stands before its
rates, as a group-by finds it.
"""

import json
import re

import pandas as pd
import polars as pl
import pytest

import clifiles
from clifiles import ROWS, biased_table
from fairmaxent.document.words import percent

COLUMNS = ["sex", "race", "job", "age", "income"]
UNSEEDED = [
    "--outcome",
    "income",
    "--favourable",
    ">50K",
    "--representation-rate",
    "1",
    "--estimate",
    "none",
]
ASKED = [*UNSEEDED, "--seed", 0]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().drop("weight").write_csv("data.csv")
    return tmp_path


def run(*args):
    return clifiles.run("debias", *args).stdout


def line_of(text: str, start: str) -> list[str]:
    """The columns of the line about a group."""
    (line,) = (
        line
        for line in text.splitlines()
        if re.match(rf"{re.escape(start)}  +[\d,]+  ", line)
    )
    return re.split(r" {2,}", line)


def close(text: str, number: float) -> bool:
    """Whether a text shows this number, as far as it is rounded."""
    digits = len(text.partition(".")[2].rstrip("%"))
    shown = float(text.replace(",", "").rstrip("%")) / (
        100 if text.endswith("%") else 1
    )
    return abs(shown - number) <= 0.51 * 10 ** -(
        digits + (2 if text.endswith("%") else 0)
    )


def test_weights_cost_what_a_group_by_finds():
    text = run(
        "data.csv",
        "--protected",
        "sex,race",
        *UNSEEDED,
        "--mode",
        "weights",
        "-o",
        "f.csv",
    )
    fair = pd.read_csv("f.csv")
    for column in ("sex", "race"):
        for level, part in fair.groupby(column)["fair_weight"]:
            _, rows, before, after, effective, largest = line_of(
                text, f"{column} = {level}"
            )
            assert rows == f"{len(part):,}"
            assert close(before, len(part) / ROWS)
            assert close(after, part.sum() / ROWS)
            assert close(effective, part.sum() ** 2 / (part**2).sum())
            assert close(largest, part.max())
    high = fair["income"] == ">50K"
    before, after = (
        high.mean(),
        fair["fair_weight"][high].sum() / fair["fair_weight"].sum(),
    )
    assert (
        f"outcome income = >50K: {percent(before)} before, {percent(after)} after"
        in text
    )
    assert "largest weight" in text
    assert text.index("effective rows") < text.index("representation rate of sex")


def test_rows_cost_what_a_group_by_finds():
    record = json.loads(
        run("data.csv", "--protected", "sex", *ASKED, "-o", "fair.csv", "--json")
    )
    data, fair = pd.read_csv("data.csv"), pd.read_csv("fair.csv")
    copies = (
        (fair.value_counts(COLUMNS) / data.value_counts(COLUMNS))
        .dropna()
        .groupby("sex")
        .max()
    )
    assert record["costs"]["counted"]
    for cost in record["costs"]["groups"]:
        level = cost["name"].removeprefix("sex = ")
        assert cost["most_copies"] == pytest.approx(copies[level])
        assert cost["after"] == pytest.approx((fair["sex"] == level).mean())
    text = run("data.csv", "--protected", "sex", *ASKED, "-o", "fair.csv", "--force")
    for level, most in copies.items():
        assert close(line_of(text, f"sex = {level}")[-1], most)
    assert "most copies" in text


def test_three_people_are_the_first_line():
    table = biased_table().drop("weight").with_row_index()
    rare = pl.when(pl.col("index") < 3).then(pl.lit("Rare")).otherwise("race")
    table.with_columns(race=rare).drop("index").write_csv("rare.csv")
    text = run("rare.csv", "--protected", "sex,race", *ASKED, "--drop", "age")
    assert text.startswith(
        "Warning: race = Rare: 25.0% of the result rests on 3 rows (1.3% of the data)"
    )
    first = text.splitlines()[0]
    for remedy in (
        "--representation-rate sex=1,race=none",
        "merge it with another group",
        "--largest-weight",
    ):
        assert remedy in first
    assert "Note: race = Rare" not in text
