"""Small tables of people for the tests of `evaluate`."""

import numpy as np
import polars as pl


def people(rows: int, seed: int) -> pl.DataFrame:
    """People with columns that go together, and a good many values."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    age = rng.integers(18, 90, rows)
    income = np.round(rng.gamma(3, 10, rows) + 0.2 * age, 1)
    town = rng.choice(["north", "east", "south", "west"], rows, p=[0.1, 0.2, 0.3, 0.4])
    height = np.round(rng.normal(170, 8, rows) + 8 * (sex == "m"))
    hired = np.where(
        rng.random(rows) < 1 / (1 + np.exp(-(age - 50) / 10 - (sex == "m") + 0.3)),
        "yes",
        "no",
    )
    return pl.DataFrame(
        {
            "sex": sex,
            "age": age,
            "income": income,
            "town": town,
            "height": height,
            "hired": hired,
        }
    )


def with_gaps(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The same people, with some values missing."""
    rng = np.random.default_rng(seed)
    masks = {name: pl.Series(rng.random(len(table)) < 0.15) for name in ("age", "town")}
    return table.with_columns(
        pl.when(masks[name]).then(None).otherwise(pl.col(name)).alias(name)
        for name in masks
    )
