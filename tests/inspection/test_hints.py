"""inspection/hints.py: what to look at in a table, each in a table that has it and in
one that has not.
"""

import numpy as np
import polars as pl
import pytest

from fairmaxent import datasets, inspect

ROWS = 300


def people(**columns):
    rng = np.random.default_rng(4)
    base = {
        "sex": rng.choice(["female", "male"], ROWS).tolist(),
        "job": rng.choice(["cook", "clerk", "nurse"], ROWS).tolist(),
        "hired": rng.choice(["no", "yes"], ROWS).tolist(),
    }
    return pl.DataFrame(base | columns)


def hints(frame, **options):
    return {
        (hint.kind, *hint.columns): str(hint)
        for hint in inspect(frame, "hired", "sex", **options).hints
    }


def test_identifiers_are_named_and_options_kept_as_data():
    frame = people(
        person_id=list(range(10_000, 10_000 + ROWS)),
        mail=[f"p{n}@x.org" for n in range(ROWS)],
    )
    assert {own.column for own in inspect(frame, "hired", "sex").proxies} == {"job"}
    shown = hints(frame)
    assert shown["identifier", "person_id", "mail"].endswith(
        "unless you add keep_columns=['person_id', 'mail']"
    )
    look = inspect(people(person_id=list(range(10_000, 10_000 + ROWS))), "hired", "sex")
    assert [type(part).__name__ for part in look.hints[0].parts] == ["str", "Option"]


def test_missing_groups_and_columns_that_are_mostly_missing():
    gaps = [
        None if row % 10 == 0 else "female" if row % 2 else "male"
        for row in range(ROWS)
    ]
    shown = hints(people(sex=gaps, note=[None] * 200 + ["x", "y"] * 50))
    assert "missing for 10.0% of the rows" in shown["missing", "sex"]
    assert "missing for 67% of the rows" in shown["missing", "note"]


SAME = [
    ("m", "M", "f"),
    ("m", "male", "female"),
    ("Female", "female ", "Male"),
    ("männlich", "Mann", "weiblich"),
]
SAME += [
    ("w", "Frau", "m"),
    ("White", "white.", "Black"),
    ("non-binary", "Nonbinary", "f"),
]


@pytest.mark.some(3)
@pytest.mark.parametrize("levels", SAME)
def test_levels_that_are_probably_one(levels):
    shown = hints(people(sex=[levels[row % 3] for row in range(ROWS)]))
    text = shown["similar levels", "sex"]
    assert sum(repr(level) in text for level in levels) == 2
    assert "compared as different groups" in text


@pytest.mark.parametrize(
    "levels",
    [
        ("<=50", ">50", "50"),
        ("1", "2", "12"),
        ("A+", "A-", "A"),
        ("10th", "11th", "1st"),
    ],
)
def test_levels_that_differ_in_more_than_writing(levels):
    assert hints(people(grade=[levels[row % 3] for row in range(ROWS)])) == {}


def test_sums_among_the_rows():
    shown = hints(people(region=["north", "south", "Total"] * 100))
    assert "'Total'" in shown["total", "region"]
    names = [f"Person {chr(65 + row % 26)}{row}" for row in range(ROWS - 1)]
    assert ("total", "full_name") in hints(people(full_name=[*names, "Summe:"]))
    assert not any(
        kind == "total"
        for kind, *_ in hints(people(region=["north", "south", "totally new"] * 100))
    )


def test_columns_that_say_the_outcome():
    frame = people()
    copied = frame.with_columns(
        decision_code=pl.col("hired").replace({"no": "0", "yes": "1"})
    )
    assert ("leak", "decision_code") in hints(copied)
    score = np.where(
        frame["hired"].to_numpy() == "yes", 60.0, 40.0
    ) + np.random.default_rng(0).uniform(-9, 9, ROWS)
    assert ("leak", "score") in hints(frame.with_columns(score=score))
    half = np.where(
        np.random.default_rng(0).random(ROWS) < 0.6,
        copied["decision_code"].to_numpy(),
        "2",
    )
    assert not any(
        kind == "leak"
        for kind, *_ in hints(frame.with_columns(half=pl.Series(half.tolist())))
    )


def test_an_outcome_of_many_numbers_can_be_cut():
    rng = np.random.default_rng(0)
    look = inspect(people(wage=rng.lognormal(3, 1, ROWS)), "wage", "sex")
    (hint,) = [one for one in look.hints if one.kind == "many outcomes"]
    assert hint.columns == ("wage",)


@pytest.mark.more
def test_weights_are_asked_about_and_then_named():
    frame = datasets.load("adult", library="polars").frame
    for weight, said in (
        (None, "if 'final_weight' says how"),
        ("final_weight", "shares, rates and percentages count"),
    ):
        (hint,) = [
            one for one in inspect(frame, weight=weight).hints if one.kind == "weights"
        ]
        assert str(hint).startswith(said)
