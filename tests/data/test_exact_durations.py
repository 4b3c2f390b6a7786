"""Durations as numbers: exact to the microsecond in every library, so that one at an edge falls into its bin."""

from __future__ import annotations

import datetime as dt

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent import Domain
from fairmaxent.data.frames import number_of, to_numbers

MICROSECONDS = [*range(-9, 10), *np.random.default_rng(0).integers(-(10**9), 10**9, 400).tolist()]
DURATIONS = [*(dt.timedelta(microseconds=number) for number in MICROSECONDS), None]
ARROW = pd.ArrowDtype(pa.duration("us"))
COLUMNS = {
    "pandas us": pd.Series(np.array(DURATIONS, dtype="m8[us]")),
    "pandas ns": pd.Series(np.array(DURATIONS, dtype="m8[ns]")),
    "pandas arrow": pd.Series(pa.array(DURATIONS, pa.duration("us")), dtype=ARROW),
    "polars us": pl.Series(DURATIONS, dtype=pl.Duration("us")),
    "polars ns": pl.Series(DURATIONS, dtype=pl.Duration("ns")),
    "pyarrow us": pa.chunked_array([pa.array(DURATIONS, pa.duration("us"))]),
    "pyarrow ns": pa.chunked_array([pa.array(DURATIONS, pa.duration("ns"))]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_durations_are_exact(name):
    numbers = to_numbers(nw.from_native(COLUMNS[name], series_only=True))
    assert numbers[:-1].tolist() == [number_of(duration) for duration in DURATIONS[:-1]]
    assert np.isnan(numbers[-1])


def test_a_duration_at_an_edge_falls_into_the_bin_that_it_begins():
    apart = dt.timedelta(microseconds=5)
    for edge in DURATIONS[:-1]:
        frame = pd.DataFrame({"x": [edge - apart, edge, edge + apart]})
        codes = Domain.infer(frame, bins={"x": [edge - apart, edge, edge + apart]}).encode(frame)[:, 0]
        assert codes.tolist() == [0, 1, 1]
