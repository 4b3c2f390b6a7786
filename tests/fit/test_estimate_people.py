"""The people whom an estimate is made from: shares of the table, each with a row of
their own.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent import Estimate, InputError, debias
from fairmaxent.fit.estimate import fold_of_each, represented
from fairmaxent.fit.pipeline import _reading
from fairmaxent.relabelling.people import People


def people(rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.37, 0.03])
    y = np.where(rng.random(rows) < np.where(z == "a", 0.6, 0.3), "p", "n")
    x = np.round(rng.normal(size=rows), 3)
    return pd.DataFrame(
        {"z": z, "y": y, "x": x, "w": np.round(rng.uniform(0.5, 2.0, rows), 2)}
    )


def reading(frame, **options):
    return _reading(debias(frame, "y", "z", estimate=None, **options))


@pytest.mark.parametrize("weight", [None, "w"])
def test_some_have_the_shares_of_all(weight):
    frame = people() if weight else people().drop(columns="w")
    data = reading(frame, weight=weight)
    part = represented(data, 300)
    assert part.table.size == 300
    roots = data.roles.blocks.levels[0]
    tables = (data.table, part.table)
    shares = [
        np.bincount(own.codes[own.inverse, 0], minlength=roots) / own.size
        for own in tables
    ]
    assert np.abs(shares[1] - shares[0]).max() <= 1.01 / 300
    assert (part.design is None) == (weight is None)


def test_people_whom_an_engine_counted_get_rows_of_their_own():
    frame = (
        people().drop(columns="w").assign(x=lambda own: np.where(own.x > 0, "u", "v"))
    )
    data = reading(pl.from_pandas(frame).lazy())
    assert not data.table.keeps_rows
    for most in (2000, 400):
        part = represented(data, most)
        assert part.table.size == min(most, 1000)
        assert part.table.keeps_rows
        _, rows = np.unique(part.table.inverse, return_counts=True)
        assert np.abs(rows - data.table.rows * part.table.size / 1000).max() <= 2


@pytest.mark.more
def test_a_lazy_frame_is_estimated_like_the_same_rows_in_memory():
    frame = (
        people(600)
        .drop(columns="w")
        .assign(x=lambda own: np.where(own.x > 0, "u", "v"))
    )
    estimate = Estimate(output="weights", model="tree")
    lazy, eager = (
        debias(own, "y", "z", favourable="p", estimate=estimate).certificate.estimate
        for own in (pl.from_pandas(frame).lazy(), pl.from_pandas(frame))
    )
    assert lazy.people == eager.people == 600
    assert lazy.after.accuracy == pytest.approx(eager.after.accuracy, abs=0.05)
    assert lazy.before.by_probabilities["z"] == pytest.approx(
        eager.before.by_probabilities["z"], abs=0.1
    )


def test_folds_have_the_same_shares_and_equal_rows_fall_at_random():
    rng = np.random.default_rng(0)
    frame = people(1200).assign(x=rng.choice(["u", "v"], 1200)).drop(columns="w")
    data = reading(frame)
    everybody = People.of(
        data.roles, data.table, data.table.counts, positions=None, design=None
    )
    fold = fold_of_each(everybody, 3, seed=0)
    cells = everybody.group * 2 + everybody.outcome
    counts = np.array([np.bincount(cells[fold == number]) for number in range(3)])
    assert np.ptp(counts, axis=0).max() <= 1
    kinds = data.table.distinct
    equal = np.array(
        [
            np.bincount(data.table.inverse[fold == number], minlength=kinds)
            for number in range(3)
        ]
    )
    assert np.ptp(equal, axis=0).max() > 5  # dealt evenly, it would be 1
    data = reading(frame.head(5))
    few = People.of(
        data.roles, data.table, data.table.counts, positions=None, design=None
    )
    with pytest.raises(
        InputError,
        match="5 rows are too few to learn from in 3 folds; use estimate=None",
    ):
        fold_of_each(few, 3, seed=0)
