"""Numbers of rows to share: close to what they were, of the type that they had, and with the gaps that they had."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent.data import frames
from fairmaxent.data.domain import shareable

ROWS = 400


def shared(column, library=pd.DataFrame):
    """The column x of a table to share."""
    frame, identifiers = shareable(frames.open_frame(library({"x": column})), [], [], None)
    assert not identifiers
    return frame.get_column("x").to_native()


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_years_stay_in_their_bins(library):
    years = np.random.default_rng(0).integers(1940, 2006, ROWS)
    changed = np.asarray(shared(years, library))
    assert len(np.unique(changed)) == 16
    assert np.abs(changed - years).max() <= 5  # bins of about four years
    assert abs(changed.mean() - years.mean()) < 0.1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32"])
def test_rounded_numbers_stay_within_their_type(dtype, library):
    limits = np.iinfo(dtype)
    spread = np.random.default_rng(0).integers(0, 40, ROWS) * (limits.max // 50)
    numbers = np.where(np.arange(ROWS) % 3 == 0, limits.max - spread % 23, spread).astype(dtype)
    changed = shared(numbers, library)
    assert np.asarray(changed).dtype == numbers.dtype
    assert np.abs(np.asarray(changed, dtype=float) - numbers.astype(float)).max() < limits.max / 5  # bins are wide


@pytest.mark.parametrize("dtype", ["Int64", "Int16", "UInt8", "int64[pyarrow]", "Float64", "Float32", "float32"])
def test_pandas_numbers_with_gaps_keep_their_type(dtype):
    numbers = np.random.default_rng(0).integers(1, 90, ROWS)
    column = pd.Series(pd.array(np.where(numbers % 7 == 0, None, numbers), dtype="Int64")).astype("Float64")
    column = column.astype(dtype)
    changed = shared(column)
    assert changed.dtype == column.dtype
    assert (changed.isna() == column.isna()).all()
    assert (changed.dropna().astype(float) - column.dropna().astype(float)).abs().max() < 6
