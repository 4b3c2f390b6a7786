"""Ranges of numbers in what is given."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from fairmaxent.cli.group import group


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    rows = 800
    columns = {"age": rng.integers(16, 90, rows).astype(float)}
    columns["children"] = rng.integers(0, 4, rows)
    columns["joined"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(
        rng.integers(0, 900, rows), unit="D"
    )
    frame = pd.DataFrame(
        columns
        | {
            "sex": rng.choice(["f", "m"], rows),
            "hired": rng.choice(["no", "yes"], rows),
        }
    )
    frame.loc[::50, "age"] = np.nan
    return frame


@pytest.fixture(scope="module")
def fit(people):
    return fairmaxent.debias(people, "hired", "sex", estimate=None)


@pytest.mark.parametrize(
    ("span", "low", "high", "detail"),
    [
        (slice(18, 65), 18, 65, "bins"),
        (slice(None, 30), -np.inf, 30, "rows"),
        (slice(41.5, None), 41.5, np.inf, "rows"),
    ],
)
def test_every_row_lies_in_the_range_and_the_rates_hold(
    people, span, low, high, detail
):
    fit = fairmaxent.debias(people, "hired", "sex", detail=detail, estimate=None)
    drawn = fit.sample(2000, given={"age": span}, random_state=1)
    assert ((drawn.age >= low) & (drawn.age < high)).all()
    assert len(drawn) == 2000
    seen = people.age[(people.age >= low) & (people.age < high)]
    assert set(drawn.age) <= set(seen)
    assert abs(drawn.age.mean() - seen.mean()) < 4


def test_a_range_is_the_same_as_all_its_values(fit, people):
    values = sorted(people.age[(people.age >= 30) & (people.age < 40)].unique())
    for column in ("sex", "children"):
        spans, lists = (
            fit.distribution.marginal(column, given={"age": given}).probability
            for given in (slice(30, 40), values)
        )
        assert np.abs(spans - lists).max() < 1e-12


def test_whole_numbers_and_dates(fit, people):
    assert set(
        fit.sample(500, given={"children": slice(1, 3)}, random_state=0).children
    ) == {1, 2}
    start, stop = datetime.datetime(2020, 6, 1), datetime.datetime(2020, 9, 1)
    drawn = fit.sample(300, given={"joined": slice(start, stop)}, random_state=0)
    assert ((drawn.joined >= start) & (drawn.joined < stop)).all()
    lazy = fairmaxent.debias(
        pl.from_pandas(people).lazy(), "hired", "sex", estimate=None
    )
    assert set(
        lazy.sample(200, given={"children": slice(1, 3)}, random_state=0)["children"]
    ) == {1, 2}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sex": slice(1, 2)}, "'sex' is categorical"),
        ({"age": slice(18, 65, 2)}, "without a step"),
        ({"age": slice("a", 65)}, "is not a range"),
        ({"age": slice(200, 300)}, "no value in"),
        ({"age": slice(65, 18)}, "no value in"),
    ],
)
def test_refusals(fit, given, words):
    with pytest.raises(fairmaxent.InputError, match=words):
        fit.sample(10, given=given)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("18..65", 18, 65), ("60..", 60, 200)]
)
def test_the_command_line_takes_ranges(fit, tmp_path, text, low, high):
    model, output = tmp_path / "fit.fme", tmp_path / "rows.csv"
    fit.save(model)
    arguments = [
        "sample",
        str(model),
        "-n",
        "200",
        "--given",
        f"age={text}",
        "-o",
        str(output),
        "--seed",
        "1",
    ]
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 0, done.output
    assert pd.read_csv(output).age.between(low, high, inclusive="left").all()
