"""A lazy frame: its columns and dtypes are known, its rows stay with the engine.

A domain depends on which values a column has and how often, not on the order of the
rows, so a list of values with weights gives the same domain as the table itself. A
column with more than `MOST_VALUES` values is thinned inside the engine: the frequent
values stay, and of the others every k-th, in ascending order.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute, value_weights
from fairmaxent.data.columns import distinct_values
from fairmaxent.data.domain import Domain, learn_columns
from fairmaxent.data.frames import (
    Frame,
    library_errors,
    load_library,
    take,
    to_numbers,
)
from fairmaxent.data.identifiers import looks_like_identifier
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.limits import check_columns
from fairmaxent.data.table import Mask, Reals
from fairmaxent.engines.cluster_tasks import by_part, reduced
from fairmaxent.errors import ColumnError, InputError, did_you_mean
from fairmaxent.progress import Progress, silent

Lazy = nw.LazyFrame[Any]
# Row groups that polars reads ahead. Its default takes far more memory and saves no CPU
# time.
READ_AHEAD = "POLARS_ROW_GROUP_PREFETCH_SIZE"
FEW = "4"
MOST_VALUES = 100_000
_NO_ROWS = "the table has no rows; pass at least one"
_HEAD = 1 << 20  # rows to check first for too many values
_AT_ONCE = 1_000_000  # values that polars may hold in memory


def open_lazy(frame: Any) -> Lazy | None:
    """Wrap a lazy frame; return None for anything else."""
    try:
        opened = nw.from_native(
            nw.to_native(frame, pass_through=True), pass_through=True
        )
    # a faulty table in memory, which is reported later
    except nw.exceptions.NarwhalsError:
        return None
    if not isinstance(opened, nw.LazyFrame):
        return None
    names = names_of(opened)
    if not names:
        raise InputError("the table has no columns; pass at least one")
    engine = opened.implementation
    syntax = ""
    if engine.is_spark_like():
        syntax = ".`"
    elif engine.is_duckdb():
        syntax = "."
    for name in names:
        if not set(syntax).isdisjoint(name):
            raise ColumnError(
                f"{engine.value} takes a dot or backtick in a column name for syntax;"
                f" rename the column {name!r}"
            )
    return opened


def names_of(lazy: Lazy) -> list[str]:
    """Return the names of the columns, in order."""
    with engine_errors(lazy, ValueError):  # of types that narwhals does not have
        return lazy.collect_schema().names()


def check_column(lazy: Lazy, name: str) -> None:
    """Refuse a column that does not exist."""
    names = names_of(lazy)
    if name not in names:
        raise ColumnError(f"no column {name!r}; {did_you_mean(name, names)}")


def collect(query: Lazy) -> Frame:
    """Run a query whose result is small; polars streams the table that it is from."""
    with engine_errors(query, OSError, ValueError):
        if not query.implementation.is_polars():
            return query.collect()
        is_set = READ_AHEAD in os.environ  # by the user
        os.environ.setdefault(READ_AHEAD, FEW)
        try:
            return query.collect(engine="streaming")
        finally:
            if not is_set:
                os.environ.pop(READ_AHEAD, None)


def batches(lazy: Lazy) -> Iterator[Frame]:
    """The rows, some at a time, in memory."""
    yield collect(lazy.head(0))  # a table without rows has no other
    native = lazy.to_native()
    kind = lazy.implementation
    parts: Iterable[Any] = ()
    if kind.is_polars():
        parts = native.collect_batches()
    elif kind.is_duckdb():
        table = load_library("pyarrow").Table
        parts = (table.from_batches([some]) for some in native.to_arrow_reader())
    else:
        parts = [collect(lazy).to_native()]
    for part in parts:
        yield nw.from_native(part, eager_only=True)


def engine_errors(
    lazy: Lazy, *also: type[Exception]
) -> contextlib.AbstractContextManager[None]:
    """Turn what an engine raises into an error of our own."""
    what = f"{lazy.implementation.value} could not read or compute the table"
    return library_errors(what, "check its files and its query", *also)


def fresh_name(wanted: str, taken: Sequence[str]) -> str:
    """Return a name that no column has; DuckDB and Spark ignore the case."""
    lowered = {name.lower() for name in taken}
    while wanted in lowered:
        wanted = f"_{wanted}"
    return wanted


def numbers(frame: Frame, name: str) -> Reals:
    """Return a collected column as numbers."""
    return to_numbers(frame.get_column(name))


def is_missing(column: Any, dtype: Any) -> Any:
    """Return an expression for whether a value is missing; NaN is missing too."""
    if dtype.is_float():
        return column.is_null() | column.is_nan()
    return column.is_null()


@dataclass(frozen=True, eq=False)
class Values:
    """Some or all of the distinct values of a column."""

    frame: Frame  # of one column, in memory: each value once
    rows: int  # input rows that are not missing
    distinct: int  # distinct values of the column
    weights: Reals


def learn_domain(
    lazy: Lazy,
    *,
    weight: str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> Domain:
    """Learn the domain of a lazy frame, with the options of `Domain.infer`.

    ``weight`` names a column.
    """
    names = [name for name in names_of(lazy) if name != weight]
    check_columns(len(names))
    asked = ColumnOptions(names, **options)
    attributes: list[Attribute] = []
    notes: list[str] = []
    identifiers: list[str] = []
    for name, values in _each_counted(lazy, names, weight, progress):
        (column,) = learn_columns(values.frame, asked, values.weights)
        attribute = column.attribute
        attributes.append(attribute)
        distinct = values.distinct - (attribute.missing is not None)
        if looks_like_identifier(attribute, values.rows, distinct=distinct):
            identifiers.append(name)
        notes += column.notes
        kept = len(values.frame)
        if values.distinct > kept:
            notes.append(
                f"column {name!r} has {values.distinct:,} values, too many to keep all:"
                f" {kept:,} of them were kept to make the bins, and only these can be"
                " drawn"
            )
    return Domain(tuple(attributes), tuple(notes), tuple(identifiers))


def check_known(lazy: Lazy, domain: Domain, progress: Progress) -> None:
    """Refuse values that a domain learned elsewhere does not know."""
    for name, values in _each_counted(lazy, domain.names, None, progress):
        attribute = domain.attribute(name)
        distinct = distinct_values(values.frame.get_column(name))
        attribute.levels_of(distinct.values)
        if distinct.missing:
            attribute.level(None)


def _each_counted(
    lazy: Lazy, names: Sequence[str], weight: str | None, progress: Progress
) -> Iterator[tuple[str, Values]]:
    """List the distinct values of some columns, as `count_values` does.

    Dask does so for all of them in one task for each partition, unless there are too
    many.
    """
    found: dict[str, Values | None] = {}
    if lazy.implementation.is_dask():
        needed = [*names] if weight is None else [*names, weight]
        listed = partial(_values_of_part, names=names, weight=weight)
        tasks = by_part(lazy.to_native()[needed], listed)
        found = reduced(tasks, _merged_values, partial(progress, "read"))
    for done, name in enumerate(names):
        values = found.get(name)
        if values is None:
            progress("read", done / len(names))
            values = count_values(lazy, name, weight)
        elif not len(values.frame):
            raise InputError(_NO_ROWS)
        yield name, values
    progress("read", 1.0)


def _values_of_part(
    frame: Any, names: Sequence[str], weight: str | None
) -> dict[str, Values | None]:
    """The distinct values of the columns of a table in memory."""
    opened: Frame = nw.from_native(frame, eager_only=True)
    weights = None
    if weight is not None:
        weights = to_numbers(opened.get_column(weight))
    return {name: _values_of(opened.select(name), weights) for name in names}


def _merged_values(
    parts: Sequence[dict[str, Values | None]],
) -> dict[str, Values | None]:
    """The same of several parts."""
    return {name: _united([part[name] for part in parts]) for name in parts[0]}


def _united(parts: Sequence[Values | None]) -> Values | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    # Dask joins categories that differ from part to part.
    concat = load_library("dask.dataframe.methods").concat
    frame = nw.from_native(concat([part.frame.to_native() for part in known]))
    weights = np.concatenate([part.weights for part in known])
    return _values_of(frame, weights, rows=sum(part.rows for part in known))


def _values_of(
    frame: Frame, weights: Reals | None, rows: int | None = None
) -> Values | None:
    """The distinct values of a column, whose cells may have weights; None: too many."""
    column = frame.get_column(frame.columns[0])
    distinct = distinct_values(column)
    if len(distinct.values) > MOST_VALUES:
        return None
    places = distinct.rows
    if distinct.missing:
        places = np.append(places, distinct.codes.argmin())
    if rows is None:
        rows = int(distinct.counts.sum())
    return Values(
        frame=take(column, places).to_frame(),
        rows=rows,
        distinct=len(places),
        weights=value_weights(distinct, weights)[: len(places)],
    )


def count_values(lazy: Lazy, name: str, weight: str | None = None) -> Values:
    """List the distinct values of a column, missing ones too, with their weights.

    That is all of them, or `MOST_VALUES`.
    """
    rows = fresh_name("rows", [name])
    mass = fresh_name("mass", [name])
    weighs = nw.lit(1.0)
    if weight is not None:
        weighs = nw.col(weight).cast(nw.Float64)
    totals = (nw.len().alias(rows), nw.col(mass).sum())
    counted = [
        part.select(name, weighs.alias(mass)).group_by(name).agg(*totals)
        for part in _parts(lazy, name)
    ]
    if len(counted) == 1:
        first = collect(counted[0].head(MOST_VALUES + 1))
        if not len(first):
            raise InputError(_NO_ROWS)
        if len(first) <= MOST_VALUES:
            return Values(
                frame=first.select(name),
                rows=int(numbers(first, rows)[~_gaps(first, name)].sum()),
                distinct=len(first),
                weights=numbers(first, mass),
            )
    return _thinned(counted, name, rows, mass)


def _parts(lazy: Lazy, name: str) -> list[Lazy]:
    """Split rows by a hash of their value, if the first ones show too many."""
    # Only for polars, which holds all values in memory; DuckDB uses the disk, and Dask
    # and Spark use several machines.
    if not lazy.implementation.is_polars():
        return [lazy]
    polars = load_library("polars")
    native = lazy.to_native()
    column = polars.col(name)

    def number_of(query: Any) -> float:
        return float(numbers(collect(nw.from_native(query)), name)[0])

    if number_of(native.head(_HEAD).select(column.n_unique())) <= MOST_VALUES:
        return [lazy]
    estimate = number_of(native.select(column.approx_n_unique()))
    parts = int(np.ceil(estimate / _AT_ONCE))
    return [
        nw.from_native(native.filter(column.hash(0) % parts == part))
        for part in range(parts)
    ]


def _thinned(
    counted: Sequence[Lazy],
    name: str,
    rows: str,
    mass: str,
) -> Values:
    """Keep frequent values, the first and last, and every k-th other in order."""
    # A number that was kept also gets the weight of those it stands for; a text keeps
    # its weight, since rare texts end up in one level anyway.
    dtype = counted[0].collect_schema()[name]
    missing = is_missing(nw.col(name), dtype)
    present = [part.filter(~missing) for part in counted]
    totals = (nw.len().alias(name), nw.col(rows).sum(), nw.col(mass).sum())
    sums = nw.concat([collect(part.select(*totals)) for part in present])
    sizes = numbers(sums, name)
    total = numbers(sums, mass).sum()
    every = -(-2 * int(sizes.sum()) // MOST_VALUES)
    frequent = 2 * total / MOST_VALUES
    rank = fresh_name("rank", [name, rows, mass])
    kept = []
    for part, size in zip(present, sizes, strict=True):
        picked = (
            (nw.col(rank) % every == 0)
            | (nw.col(rank) == int(size) - 1)
            | (nw.col(mass) >= frequent)
        )
        ranked = part.with_row_index(rank, order_by=name)
        kept.append(collect(ranked.filter(picked).drop(rank)))
    values = nw.concat([*kept, *(collect(part.filter(missing)) for part in counted)])
    gaps = _gaps(values, name)
    weights = numbers(values, mass)
    if dtype.is_numeric() or dtype.is_temporal():
        weights = np.where(gaps | (weights >= frequent), weights, every * weights)
    return Values(
        frame=values.select(name),
        rows=int(numbers(sums, rows).sum()),
        distinct=int(sizes.sum() + gaps.sum()),
        weights=weights,
    )


def _gaps(frame: Frame, name: str) -> Mask:
    """Which values of a column are missing."""
    found = frame.select(is_missing(nw.col(name), frame.schema[name]))
    return found.get_column(name).to_numpy().astype(bool)
