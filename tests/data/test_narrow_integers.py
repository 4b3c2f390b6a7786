"""Numbers of few bits: differences of them may need more bits, and a wrong one would look like a missing value."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent import Domain, debias

ROWS = 300
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
RANGES = {
    "int8": (-128, -5, 127),
    "int16": (-32768, -100, 32767),
    "int32": (-(2**31), 0, 2**31 - 1),
    "int64": (-(2**63), 0, 2**63 - 1),
    "uint8": (0, 3, 255),
    "uint16": (0, 3, 65535),
}


def table(dtype, library):
    rng = np.random.default_rng(3)
    group = np.array(RANGES[dtype], dtype=dtype)[rng.integers(0, 3, ROWS)]
    hired = np.where(rng.random(ROWS) < np.where(group == group.max(), 0.8, 0.3), "yes", "no")
    return LIBRARIES[library]({"group": group, "hired": hired}), group, hired


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", RANGES)
def test_the_smallest_and_the_largest_are_groups(dtype, library):
    frame, group, hired = table(dtype, library)
    fit = debias(frame, "hired", "group", favourable="yes", estimate=None)
    rates = [float((hired[group == value] == "yes").mean()) for value in RANGES[dtype]]
    assert fit.domain.attribute("group").labels == tuple(map(str, RANGES[dtype]))
    assert fit.certificate.before["statistical_rate"]["group"] == pytest.approx(min(rates) / max(rates))


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_numbers_of_eight_bits(library):
    numbers = np.arange(-128, 128).astype(np.int8)
    domain = Domain.infer(LIBRARIES[library]({"x": np.repeat(numbers, 3)}), bins=256)
    assert domain.attribute("x").labels == tuple(map(str, range(-128, 128)))
