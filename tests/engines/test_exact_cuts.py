"""Engines put each row into the level that a frame in memory gives it, to the last
digit and in every unit of time.
"""

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fairmaxent
from fairmaxent.data.frames import to_numbers

duckdb = pytest.importorskip("duckdb")
ROWS = 300


def table(values, dtype):
    """An outcome, a group and a column x with these values in turn."""
    rng = np.random.default_rng(0)
    chosen = [values[at] for at in rng.integers(0, len(values), ROWS)]
    return pl.DataFrame(
        {
            "y": rng.choice(["no", "yes"], ROWS),
            "z": rng.choice(["p", "q"], ROWS),
            "x": pl.Series(chosen, dtype=dtype),
        }
    )


def counts_of(fit):
    """How many rows the distinct rows say that each level of x has."""
    return np.bincount(fit.distinct_rows.codes[:, 1], fit.distinct_rows.counts).tolist()


MONEY = [
    Decimal(cents).scaleb(-2)
    for cents in np.random.default_rng(1).integers(0, 10**8, 60).tolist()
]
SHORT = [datetime.timedelta(milliseconds=number) for number in range(-20, 20)]
MOMENTS = [datetime.datetime(1969, 12, 31, 23, 59, 59) + 67 * span for span in SHORT]


@pytest.mark.some(4)
@pytest.mark.parametrize("few", [12, 60])  # levels of one value each, and bins
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (MONEY, pl.Decimal(38, 2)),
        # one value is a bin of its own
        ([*SHORT[:19], *[SHORT[25]] * 20, *SHORT[26:]], pl.Duration("ms")),
        ([*MOMENTS[:19], *[MOMENTS[25]] * 20, *MOMENTS[26:]], pl.Datetime("ms")),
    ],
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_levels_of_an_engine_are_those_in_memory(values, dtype, few, engine):
    frame = table(values[:few], dtype)
    if engine == "duckdb" and dtype == pl.Duration:
        pytest.skip("DuckDB's intervals are refused")
    lazy = frame.lazy() if engine == "polars" else duckdb.from_arrow(frame.to_arrow())
    options = {
        "random_state": 0,
        "detail": "bins",
        "keep_columns": ["x"],
        "estimate": None,
    }
    eager, fit = (
        fairmaxent.debias(data, "y", "z", **options) for data in (frame, lazy)
    )
    assert fit.domain.attribute("x").labels == eager.domain.attribute("x").labels
    assert counts_of(fit) == counts_of(eager)
    assert np.array_equal(fit.distinct_rows.codes, eager.distinct_rows.codes)


def test_pyarrow_decimals_are_the_nearest_floats():
    column = pa.chunked_array([pa.array([*MONEY, None], pa.decimal128(18, 2))])
    series = (
        fairmaxent.Domain.infer(pa.table({"x": column}), bins={"x": 100})
        .attribute("x")
        .values
    )
    numbers = to_numbers(series)
    assert numbers[:-1].tolist() == sorted({float(value) for value in MONEY})
    assert np.isnan(numbers[-1])
