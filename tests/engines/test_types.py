"""Every type that Parquet holds, with gaps, is the same in an engine and in memory: the
same levels and counts, or a refusal in words on both sides.
"""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from benchmarks.gaps import TYPES, random_table, typed_table
from test_lazy import collected

import fairmaxent
from fairmaxent import Domain, debias
from fairmaxent.errors import FairMaxEntError

# Dask's own call of pandas, when it reads Parquet
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
ENGINES = ["polars", "duckdb", "dask", "dask with Arrow's types"]
NESTED = ["list", "struct"]
PLAIN = [name for name in TYPES if name not in NESTED]
# what Spark does not read, and DuckDB's intervals, which are refused
NOT_IN = {
    "duckdb": ["duration"],
    "spark": ["nanoseconds", "time of day", "short time of day", "duration"],
}
ROLES = {"outcome": "y", "protected": "z", "favourable": "yes", "detail": "bins"}


def opened(engine, path):
    if engine == "polars":
        return pl.scan_parquet(path)
    if engine == "duckdb":
        return pytest.importorskip("duckdb").connect().from_parquet(f"{path}/*.parquet")
    dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    if engine == "dask with Arrow's types":  # as the command line reads
        return dask.read_parquet(path, dtype_backend="pyarrow")
    return dask.read_parquet(path)


def written(table, folder):
    """As three parts."""
    step = len(table) // 3
    for number in range(3):
        part = table.slice(number * step, step)
        pq.write_table(part, folder / f"part-{number}.parquet")
    return folder


def assert_same(there, here):
    for one, other in zip(there.domain.attributes, here.domain.attributes, strict=True):
        assert (one.name, one.kind, one.labels) == (
            other.name,
            other.kind,
            other.labels,
        )
    ours, twin = there.table.collect(), here.table.collect()
    np.testing.assert_array_equal(ours.codes, twin.codes)
    for name in ("counts", "rows", "squares"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(twin, name), rtol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(
        there.optimum.solution.multipliers,
        here.optimum.solution.multipliers,
        atol=1e-9,
    )


def assert_same_rows(there, here):
    drawn, other = (fit.sample(80, random_state=2) for fit in (there, here))
    assert str(drawn) == str(other)


@pytest.mark.more
@pytest.mark.parametrize("engine", ENGINES)
def test_types_with_gaps_are_those_of_the_table_in_memory(engine, tmp_path):
    names = [name for name in PLAIN if name not in NOT_IN.get(engine, ())]
    frame = opened(engine, written(typed_table(names), tmp_path))
    options = ROLES | {"keep_columns": names, "random_state": 1, "base": "product"}
    there, here = debias(frame, **options), debias(collected(frame), **options)
    assert_same(there, here)
    assert_same_rows(there, here)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_no_value_is_refused_in_words(engine, name, tmp_path):
    frame = opened(engine, written(typed_table([name]), tmp_path))
    with pytest.raises(FairMaxEntError, match=f"column '{name}' holds "):
        debias(frame, **ROLES)


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 25)]
SEEDS = [0, *SLOW]


def fits_of(seed, engine, folder, read):
    """A random table as ``read`` from parts, and the fits of it there and in memory.

    Their levels, counts, multipliers and weights are the same.
    """
    table = random_table(seed)
    names = [name for name in table.column_names if name not in NOT_IN.get(engine, ())]
    frame = read(written(table.select(names), folder))
    options = ROLES | {"weight": "w", "keep_columns": names[2:-1], "random_state": 1}
    there, here = debias(frame, **options), debias(collected(frame), **options)
    assert_same(there, here)
    weights = np.asarray(
        collected(there.weigh(frame, weight_name="fair"))["fair"], dtype=float
    )
    wanted = here.weights()
    if engine == "duckdb":  # which joins in no order
        weights, wanted = np.sort(weights), np.sort(wanted)
    np.testing.assert_allclose(weights, wanted, rtol=1e-9)
    return frame, there, here


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_random_tables_give_the_same_fit_rows_and_weights(engine, seed, tmp_path):
    read = partial(opened, engine)
    _, there, here = fits_of(seed, engine, tmp_path, read)
    assert_same_rows(there, here)


@pytest.mark.parametrize("name", ["decimal", "date", "date64", "time of day"])
def test_pandas_objects_have_the_levels_of_other_libraries(name):
    table = typed_table([name])
    objects = table.to_pandas()
    assert objects[name].dtype == object
    ours, twin = (Domain.infer(data).attribute(name) for data in (objects, table))
    assert (ours.kind, ours.labels) == (twin.kind, twin.labels)
    assert len(ours.labels) < 20
    np.testing.assert_array_equal(ours.edges, twin.edges)
    drawn = fairmaxent.debias(objects, **ROLES, random_state=1).sample(50)
    assert isinstance(
        drawn[name].dropna().iloc[0], type(objects[name].dropna().iloc[0])
    )
    assert pd.isna(drawn[name]).any()
