"""One table of every kind of column, in three libraries."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from fairmaxent.data.domain import Domain

ROWS = 400
WORDS = ["low", "mid", "high"]
RANKS = ["none", *WORDS]
BINNED = ("age", "gain", "hours", "height", "when")
LUMPED = "city"


def raw_columns(seed=0):
    """Plain Python columns: gaps in some, many numbers, many words, one constant."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

    def gaps(values):
        return [
            None if hole else value
            for hole, value in zip(rng.random(ROWS) < 0.1, values, strict=True)
        ]

    return {
        "age": rng.integers(17, 91, ROWS).tolist(),
        "gain": (
            np.where(rng.random(ROWS) < 0.9, 0, rng.integers(100, 9999, ROWS)).tolist()
        ),
        "hours": gaps(rng.integers(1, 99, ROWS).tolist()),
        "height": rng.normal(1.7, 0.1, ROWS).tolist(),
        "few": gaps(rng.integers(0, 4, ROWS).tolist()),
        "sex": rng.choice(["F", "M"], ROWS).tolist(),
        "city": gaps(rng.choice([f"city {i}" for i in range(90)], ROWS).tolist()),
        "rank": gaps(rng.choice(WORDS, ROWS).tolist()),
        "group": gaps(rng.choice(["x", "y", "missing"], ROWS).tolist()),
        "member": rng.choice([True, False], ROWS).tolist(),
        "paid": gaps(rng.choice([True, False], ROWS).tolist()),
        "born": (
            rng.choice([dt.date(2000, 1, day) for day in range(1, 9)], ROWS).tolist()
        ),
        "when": gaps(
            [start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 10**6, ROWS)]
        ),
        "same": ["one"] * ROWS,
    }


def pandas_table(seed=0):
    kinds = {
        "hours": "Int64",
        "few": "Int64",
        "sex": object,
        "city": "string",
        "group": "category",
        "paid": "boolean",
    }
    ranks = pd.CategoricalDtype(RANKS, ordered=True)
    times = {"born": pd.ArrowDtype(pa.date32()), "when": "datetime64[us, UTC]"}
    table = pd.DataFrame(raw_columns(seed)).astype(
        kinds | times | {"rank": ranks, "same": "str"}
    )
    return table.set_index(pd.RangeIndex(5, ROWS + 5))


def polars_table(seed=0):
    overrides = {
        "rank": pl.Enum(RANKS),
        "group": pl.Categorical,
        "when": pl.Datetime("us", "UTC"),
    }
    return pl.DataFrame(raw_columns(seed), schema_overrides=overrides)


def pyarrow_table(seed=0):
    columns = {name: pa.array(values) for name, values in raw_columns(seed).items()}
    codes = [
        None if word is None else RANKS.index(word)
        for word in raw_columns(seed)["rank"]
    ]
    columns["rank"] = pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int8()), RANKS, ordered=True
    )
    columns["group"] = columns["group"].dictionary_encode()
    columns["when"] = columns["when"].cast(pa.timestamp("us", "UTC"))
    return pa.table(columns)


TABLES = {"pandas": pandas_table, "polars": polars_table, "pyarrow": pyarrow_table}


def schema(table):
    if isinstance(table, pd.DataFrame):
        return list(table.dtypes.items())
    return (
        list(zip(table.columns, table.dtypes, strict=True))
        if isinstance(table, pl.DataFrame)
        else table.schema
    )


def cells(table, name):
    """Return a column as Python values, every kind of missing as None."""
    column = table[name]
    values = column.to_pylist() if isinstance(table, pa.Table) else column.to_list()
    return [
        None if value is None or value is pd.NA or value != value else value
        for value in values
    ]


def same_tables(left, right):
    return schema(left) == schema(right) and all(
        cells(left, name) == cells(right, name) for name in raw_columns()
    )


def generator(seed=7):
    return np.random.default_rng(seed)


def infer_and_encode(table, **options):
    """The domain of a table, and the table in its codes."""
    domain = Domain.infer(table, **options)
    return domain, domain.encode(table)
