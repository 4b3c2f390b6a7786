"""A lazy frame: its columns and dtypes are known; its rows stay with the engine until a query is collected."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.frames import library_errors
from fairmaxent.errors import ColumnError, InputError, StorageError, did_you_mean

# Row groups that polars reads ahead. Its default takes far more memory and saves no CPU time.
READ_AHEAD, FEW = "POLARS_ROW_GROUP_PREFETCH_SIZE", "4"

Lazy = nw.LazyFrame[Any]


def open_lazy(frame: Any) -> Lazy | None:
    """Wrap a lazy frame; return None for anything else."""
    try:
        opened = nw.from_native(nw.to_native(frame, pass_through=True), pass_through=True)
    except nw.exceptions.NarwhalsError:  # a faulty table in memory, which is reported later
        return None
    if not isinstance(opened, nw.LazyFrame):
        return None
    names = opened.collect_schema().names()
    if not names:
        raise InputError("the table has no columns; pass at least one")
    kind = opened.implementation
    marks = ".`" if kind.is_spark_like() else "." if kind.is_duckdb() else ""
    for name in names:
        if any(mark in name for mark in marks):
            engine = "Spark" if kind.is_spark_like() else "DuckDB"
            what = f"{engine} takes a dot or backtick in a column name for syntax"
            raise ColumnError(f"{what}; rename the column {name!r}")
    return opened


def names_of(lazy: Lazy) -> list[str]:
    """Return the names of the columns, in order."""
    return lazy.collect_schema().names()


def check_column(lazy: Lazy, name: str) -> None:
    """Refuse a column that does not exist."""
    names = names_of(lazy)
    if name not in names:
        raise ColumnError(f"no column {name!r}; {did_you_mean(name, names)}")


def collect(query: Lazy) -> nw.DataFrame[Any]:
    """Run a query whose result is small; polars streams it, and so never loads the complete table."""
    with engine_errors(query, OSError, ValueError):
        if not query.implementation.is_polars():
            return query.collect()
        with _little_read_ahead():
            return query.collect(engine="streaming")


def engine_errors(lazy: Lazy, *also: type[Exception]) -> contextlib.AbstractContextManager[None]:
    """Turn what an engine raises into an error of our own."""

    def explain(why: str) -> StorageError:
        engine = lazy.implementation.value
        return StorageError(f"{engine} could not read or compute the table ({why}); check its files and its query")

    return library_errors(explain, *also)


@contextlib.contextmanager
def _little_read_ahead() -> Iterator[None]:
    """Let polars read only a few row groups ahead while a query runs."""
    if READ_AHEAD in os.environ:  # the user has set it
        yield
        return
    os.environ[READ_AHEAD] = FEW
    try:
        yield
    finally:
        os.environ.pop(READ_AHEAD, None)


def fresh_name(wanted: str, taken: Sequence[str]) -> str:
    """Return a name that no column of the user has, in upper or lower case: DuckDB and Spark ignore the case."""
    lowered = {name.lower() for name in taken}
    while wanted in lowered:
        wanted = f"_{wanted}"
    return wanted


def into_engine(columns: dict[str, Any], like: Lazy) -> Lazy:
    """Pass arrays to the engine of a lazy frame, as a frame that can be joined with it."""
    kind = like.implementation
    if kind.is_polars():
        native = frames.load_library("polars").LazyFrame(columns)
    elif kind.is_duckdb():
        native = frames.load_library("duckdb").from_arrow(frames.load_library("pyarrow").table(columns))
    elif kind.is_dask():
        pandas, dask = frames.load_library("pandas"), frames.load_library("dask.dataframe")
        native = dask.from_pandas(pandas.DataFrame(columns), npartitions=1)
    elif kind.is_spark_like():
        native = like.to_native().sparkSession.createDataFrame(frames.load_library("pyarrow").table(columns))
    else:
        raise InputError(
            f"fairmaxent cannot pass a table to {kind.value}; read the data with polars, DuckDB, Dask or Spark instead"
        )
    lazy: Lazy = nw.from_native(native)
    return lazy


def numbers(frame: nw.DataFrame[Any], name: str) -> Reals:
    """Return a collected column as numbers."""
    return frames.to_numbers(frame.get_column(name))


def is_missing(column: Any, dtype: Any) -> Any:
    """Return an expression for whether a value is missing; NaN is missing too."""
    return column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()
