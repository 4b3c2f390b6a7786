"""The small tables that the golden cases start from; each is the same on every run."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl


def people(rows=400, seed=5):
    """Women are rarer and rarely have a high income; nurses are mostly women. Weights are quarters: sums are exact."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], rows, p=[0.3, 0.7])
    race = rng.choice(["Black", "Other", "White"], rows, p=[0.25, 0.15, 0.6])
    high = rng.random(rows) < np.where(sex == "Male", 0.5, 0.2) + 0.1 * (race == "White")
    job = np.where((sex == "Female") & (rng.random(rows) < 0.7), "nurse", rng.choice(["clerk", "cook"], rows))
    return pl.DataFrame(
        {
            "sex": sex,
            "race": race,
            "job": job,
            "age": rng.integers(17, 90, rows),
            "hours": np.round(rng.normal(38, 6, rows) + 4 * high, 2),
            "weight": rng.integers(2, 7, rows) / 4,
            "income": np.where(high, ">50K", "<=50K"),
        }
    )


def people_in_pandas():
    """People without weights, as a pandas frame."""
    return people().drop("weight").to_pandas()


def discrete(groups=(2,), outcomes=2, rows=400, seed=0):
    """Protected columns z0, z1, …, an outcome y and two other columns, all of them text."""
    rng = np.random.default_rng([seed, *groups, outcomes])
    codes = [rng.choice(size, rows, p=rng.dirichlet(np.full(size, 8.0))) for size in groups]
    a, b = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    score = np.stack([0.8 * a * y / outcomes + 0.7 * codes[0] * (y == 1) for y in range(outcomes)], axis=1)
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    protected = {f"z{i}": [f"g{code}" for code in column] for i, column in enumerate(codes)}
    others = {"a": [f"a{code}" for code in a], "b": [f"b{code}" for code in b]}
    return pd.DataFrame(protected | others | {"y": [f"o{code}" for code in y]})


def hiring(rows=500, seed=0):
    """x predicts both z and y, so a model trained on fair data may still be unfair."""
    rng = np.random.default_rng(seed)
    z = rng.choice(2, rows, p=[0.4, 0.6])
    x = np.clip(rng.integers(0, 6, rows) + 2 * z - 1, 0, 6)
    c = np.where(rng.random(rows) < 0.8, z, 1 - z)
    y = rng.random(rows) < 1 / (1 + np.exp(-(2.0 * (x - 3) + c - 0.5)))
    columns = {"z": z, "x": x, "c": c, "d": rng.integers(0, 4, rows)}
    table = pd.DataFrame({name: [f"{name}{code}" for code in codes] for name, codes in columns.items()})
    return table.assign(y=np.where(y, "p", "n"))


def every_kind_of_column(rows=300, seed=0):
    """Numbers, texts, ordered levels, truth values, dates and times, most of them with gaps."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

    def gaps(values):
        return [None if gap else value for gap, value in zip(rng.random(rows) < 0.1, values, strict=True)]

    columns = {
        "age": gaps(rng.integers(17, 91, rows).tolist()),
        "gain": np.where(rng.random(rows) < 0.9, 0, rng.integers(100, 9999, rows)).tolist(),
        "height": gaps(rng.normal(1.7, 0.1, rows).tolist()),
        "few": gaps(rng.integers(0, 4, rows).tolist()),
        "sex": gaps(rng.choice(["F", "M"], rows).tolist()),
        "city": gaps(rng.choice([f"city {i}" for i in range(90)], rows).tolist()),
        "rank": gaps(rng.choice(["low", "mid", "high"], rows).tolist()),
        "member": rng.choice([True, False], rows).tolist(),
        "paid": gaps(rng.choice([True, False], rows).tolist()),
        "born": rng.choice([dt.date(2000, 1, day) for day in range(1, 9)], rows).tolist(),
        "when": gaps([start + dt.timedelta(minutes=int(minute)) for minute in rng.integers(0, 10**6, rows)]),
        "same": ["one"] * rows,
    }
    overrides = {"rank": pl.Enum(["none", "low", "mid", "high"]), "when": pl.Datetime("us", "UTC")}
    return pl.DataFrame(columns, schema_overrides=overrides)
