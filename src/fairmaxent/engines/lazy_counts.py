"""Distinct rows counted by the engine of a lazy frame, and weights joined to its rows.

Levels are expressions that the engine evaluates: numbers and times by cut points, other
values by name. The levels of a row are packed into integer keys, by which rows are
grouped and joined.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import Array
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import (
    WEIGHT_RANGE,
    WEIGHT_RULE,
    load_library,
    take,
    to_numbers,
)
from fairmaxent.data.table import (
    LARGEST_KEY,
    Blocks,
    Codes,
    Reals,
    Sizes,
    Table,
    empty_codes,
    ravel,
    row_keys,
)
from fairmaxent.engines.cluster_tasks import by_part, reduced, with_columns_by_part
from fairmaxent.engines.lazy_frame import (
    Lazy,
    check_column,
    collect,
    fresh_name,
    is_missing,
    names_of,
    numbers,
)
from fairmaxent.errors import InputError, LevelError, WeightError

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds
# microseconds in those that columns of times may be counted in
_UNITS = {"ms": 1000, "s": 1_000_000}
# what is made of the design weights of each distinct row
_SUMS = {"mass": "sum", "squares": "sum", "most": "max", "least": "min"}
_MERGE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def key_parts(sizes: Sizes) -> list[range]:
    """Split positions into runs whose sizes have a product that fits in one integer.

    >>> key_parts([2**40, 2**20, 2**10, 3])
    [range(0, 2), range(2, 4)]
    """
    parts = []
    start = 0
    span = 1
    for position, size in enumerate(sizes):
        if span * size > LARGEST_KEY:
            parts.append(range(start, position))
            start = position
            span = 1
        span *= size
    return [*parts, range(start, len(sizes))]


def with_keys(lazy: Lazy, coding: Coding) -> Lazy:
    """Add integer keys that identify each distinct row.

    They are the block codes packed in mixed radix, in order. polars gets native
    expressions, because only these look names up without holding the column in memory.
    Dask encodes each partition as a table in memory is encoded, whatever types its
    columns have.
    """
    if lazy.implementation.is_dask():
        return with_columns_by_part(lazy, coding.keyed, dict.fromkeys(coding.keys, int))
    api: Any = nw
    if lazy.implementation.is_polars():
        api = load_library("polars")
    schema = lazy.collect_schema()
    keys = []
    for name, part in coding.parts:
        members = [index for block in part for index in coding.blocks.members[block]]
        key: Any = None
        for attribute in (coding.domain.attributes[index] for index in members):
            level = level_expression(attribute, schema[attribute.name], api)
            key = level if key is None else key * attribute.size + level
        keys.append(key.alias(name))
    if api is nw:
        return lazy.with_columns(*keys)
    return nw.from_native(lazy.to_native().with_columns(keys))


def level_expression(attribute: Attribute, dtype: Any, api: Any = nw) -> Any:
    """Return the level of each row as a 64-bit integer.

    The attribute is assumed to know every value.
    """
    column = api.col(attribute.name)
    # What narwhals does not know, such as DuckDB's times of day, holds values; polars'
    # null does not.
    may_be_empty = dtype != nw.Object and (dtype != nw.Unknown or api is not nw)
    has_numbers = dtype.is_numeric() or dtype.is_temporal()
    if attribute.kind in ("numeric", "date") and has_numbers:
        level = _by_cut_points(attribute, column, dtype, api)
    elif attribute.edges is None:
        level = _by_name(attribute, column, dtype, api)
    elif attribute.missing is not None and may_be_empty:
        # a column without any number or time may be of another type
        level = api.lit(None).cast(api.Int64)
    else:
        raise LevelError(
            f"column {attribute.name!r} was learned as {attribute.kind} but is now"
            f" {dtype}; convert it",
            column=attribute.name,
        )
    if attribute.missing is None:
        return level
    missing = api.lit(attribute.missing).cast(api.Int64)
    return api.when(is_missing(column, dtype)).then(missing).otherwise(level)


def _by_cut_points(
    attribute: Attribute,
    column: Any,
    dtype: Any,
    api: Any,
) -> Any:
    """Count the cut points that a number or time reaches.

    These are the edges of bins, or the values themselves, which ascend.
    """
    cuts = attribute.edges
    if cuts is None:
        present = attribute.size - (attribute.missing is not None)
        cuts = to_numbers(take(attribute.values, attribute.level_starts[1:present]))
    if dtype.is_numeric():
        column = column.cast(api.Float64)
    total = api.lit(0).cast(api.Int16)
    for cut in cuts:
        total = total + (column >= _literal(float(cut), dtype)).cast(api.Int16)
    return total.cast(api.Int64)


def _literal(cut: float, dtype: Any) -> Any:
    """The smallest value of a dtype that is at least ``cut``.

    Times are compared as times, never as floats.
    """
    if dtype.is_numeric():
        return cut
    micro = math.floor(cut * 1e6) - 2
    while micro / 1e6 < cut:
        micro += 1
    unit = _UNITS.get(getattr(dtype, "time_unit", "us"), 1)
    # an engine may round what a column cannot hold, up or down
    micro = -(-micro // unit) * unit
    if dtype == nw.Duration:
        return datetime.timedelta(microseconds=micro)
    if dtype == nw.Date:
        return (_EPOCH + datetime.timedelta(days=-(-micro // _DAY))).date()
    moment = _EPOCH + datetime.timedelta(microseconds=micro)
    if dtype == nw.Time:
        return moment.time() if micro < _DAY else datetime.time.max
    if dtype.time_zone is None:
        return moment
    return moment.replace(tzinfo=datetime.UTC).astimezone(ZoneInfo(dtype.time_zone))


def _by_name(
    attribute: Attribute,
    column: Any,
    dtype: Any,
    api: Any,
) -> Any:
    """Look each value up.

    Those not listed belong to the last level, which stands for all rare values.
    """
    listed = attribute.size - (attribute.missing is not None)
    if not attribute.is_value_coded:
        listed -= 1
    values = take(attribute.values, attribute.level_starts[:listed])
    if not listed:
        return api.lit(0).cast(api.Int64)
    # Compared by their text, as categories are; adding 0.0 turns -0.0 into 0.0, which
    # is the same number.
    if api is not nw:
        texts = values.to_native()
        if texts.dtype.is_float():
            texts = texts + 0.0
            column = column + 0.0
        categories = api.Enum(texts.cast(api.String))
        codes = column.cast(api.String).cast(categories, strict=False).to_physical()
        return codes.cast(api.Int64).fill_null(listed)
    names = values.to_list()
    if dtype == nw.Categorical or dtype == nw.Enum:
        column = column.cast(nw.String)
        names = [str(name) for name in names]
    elif dtype == nw.Boolean:
        column = column.cast(nw.Int64)
        names = [int(name) for name in names]
    return column.replace_strict(
        names,
        list(range(listed)),
        default=listed,
        return_dtype=nw.Int64,
    )


def average_weight(lazy: Lazy, weight: str) -> float:
    """The average of a weight column.

    One that is not numeric, or has unusable values or only zeros, is refused.
    """
    check_column(lazy, weight)
    dtype = lazy.collect_schema()[weight]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise WeightError(
            f"weight column {weight!r} holds {dtype}, not numbers; convert it, or name"
            " another column"
        )
    low, high = WEIGHT_RANGE
    number = nw.col(weight).cast(nw.Float64)
    good = (number == 0) | ((number >= low) & (number <= high))
    totals = collect(
        lazy.select(
            nw.len().alias("rows"),
            good.cast(nw.Int64).sum().alias("good"),
            number.mean().alias("average"),
        )
    )
    rows = numbers(totals, "rows")[0]
    usable = numbers(totals, "good")[0]
    if usable < rows:
        raise WeightError(
            f"weight column {weight!r} holds {int(rows - np.nan_to_num(usable))}"
            f" unusable or missing values; {WEIGHT_RULE}"
        )
    if not rows:  # which is refused when rows are counted
        return 1.0
    average = float(numbers(totals, "average")[0])
    if not average > 0:
        raise WeightError(
            f"weight column {weight!r} is zero everywhere; at least one row must count"
        )
    return average


@dataclass(frozen=True, eq=False)
class Coding:
    """How the rows of any part of a table become integer keys, and how these count."""

    domain: Domain
    blocks: Blocks
    weight: str | None  # the column of design weights
    keys: list[str]  # names of the columns that hold keys
    rows: str  # that of the number of rows
    weights: dict[str, str]  # those of design weights, and how these are summed up

    @classmethod
    def of(
        cls,
        domain: Domain,
        blocks: Blocks,
        weight: str | None,
        *,
        taken: Sequence[str],
    ) -> Coding:
        """Choose names for keys and counts that are not ``taken``."""
        parts = range(len(key_parts(blocks.levels)))
        return cls(
            domain,
            blocks,
            weight,
            keys=[fresh_name(f"key{number}", taken) for number in parts],
            rows=fresh_name("rows", taken),
            weights=design_sums(weight, taken)[1],
        )

    @property
    def parts(self) -> list[tuple[str, range]]:
        """Each key with the blocks that it is packed from."""
        return list(zip(self.keys, key_parts(self.blocks.levels), strict=True))

    def codes(self, frame: Any) -> Codes:
        """The block codes of the rows of a part, which is in memory."""
        opened = nw.from_native(frame, eager_only=True)
        return self.blocks.pool(self.domain.encode(opened, rest=True))

    def keyed(self, frame: Any) -> dict[str, Array]:
        """The keys of the rows of a part."""
        codes = self.codes(frame)
        return {
            key: ravel(codes[:, part], [self.blocks.levels[block] for block in part])
            for key, part in self.parts
        }

    def counted(self, frame: Any) -> dict[str, Array]:
        """The distinct rows of a part, and how often each occurs."""
        counts = self.keyed(frame)
        counts[self.rows] = np.ones(len(frame))
        if self.weight is not None:
            opened = nw.from_native(frame, eager_only=True)
            design = to_numbers(opened.get_column(self.weight))
            squares = list(self.weights)[1]
            counts |= dict.fromkeys(self.weights, design) | {squares: design**2}
        return self.summed(counts)

    def summed(self, counts: Mapping[str, Array]) -> dict[str, Array]:
        """Merge equal rows, and put them in order."""
        keys = [counts[name] for name in self.keys]
        order = np.lexsort(keys[::-1])
        ordered = [key[order] for key in keys]
        is_first = np.arange(len(order)) == 0
        for key in ordered:
            is_first[1:] |= key[1:] != key[:-1]
        first = np.flatnonzero(is_first)
        merged = {
            name: key[first] for name, key in zip(self.keys, ordered, strict=True)
        }
        for name, how in ({self.rows: "sum"} | self.weights).items():
            merged[name] = _MERGE[how].reduceat(counts[name][order], first)
        return merged

    def table(self, counts: Mapping[str, Array]) -> Table:
        """The distinct rows in order, from counts in which some may be repeated."""
        merged = self.summed(counts)
        codes = unpacked([merged[key] for key in self.keys], self.blocks)
        rows = merged[self.rows]
        if not self.weights:
            return Table(codes, rows, rows, rows)
        mass, squares, peaks, _ = (merged[name] for name in self.weights)
        return Table(codes, mass, rows, squares, peaks=peaks)


def design_sums(
    weight: str | None, taken: Sequence[str], scale: float = 1.0
) -> tuple[list[Any], dict[str, str]]:
    """Design weights and their squares as columns, and how each is summed up.

    These are none without weights. Their names are not ``taken``.
    """
    if weight is None:
        return [], {}
    design = nw.col(weight).cast(nw.Float64) / scale
    how = {fresh_name(name, taken): kind for name, kind in _SUMS.items()}
    mass, squares, *others = how
    columns = [design.alias(name) for name in others]
    return [design.alias(mass), (design * design).alias(squares), *columns], how


def count_rows(
    lazy: Lazy,
    domain: Domain,
    blocks: Blocks,
    weight: str | None,
) -> Table:
    """Encode, merge and count rows inside the engine; only distinct ones come back."""
    coding = Coding.of(domain, blocks, weight, taken=names_of(lazy))
    if lazy.implementation.is_dask():
        counts = reduced(counted_parts(lazy, coding), joined)
    else:
        counts = _counted_by_engine(lazy, coding)
    if not len(counts[coding.rows]):
        raise InputError("the table has no rows; pass at least one")
    return coding.table(counts)


def _counted_by_engine(lazy: Lazy, coding: Coding) -> dict[str, Array]:
    keys = coding.keys
    weights, how = design_sums(coding.weight, names_of(lazy))
    totals = [nw.len().alias(coding.rows)]
    totals += [getattr(nw.col(name), kind)() for name, kind in how.items()]
    coded = with_keys(lazy, coding).select(*keys, *weights)
    counts = collect(coded.group_by(*keys).agg(*totals))
    if any(counts.get_column(key).null_count() for key in keys):
        raise InputError(
            "the engine has rows that belong to no level; convert its columns to"
            " numbers, text or dates"
        )
    packed = {key: counts.get_column(key).to_numpy() for key in keys}
    return packed | {name: numbers(counts, name) for name in (coding.rows, *how)}


def counted_parts(lazy: Lazy, coding: Coding) -> list[Any]:
    """A task for each partition of a Dask frame that counts its distinct rows."""
    needed = [*coding.domain.names]
    if coding.weight is not None:
        needed.append(coding.weight)
    return by_part(lazy.to_native()[needed], coding.counted)


def joined(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Put the counts of parts one below the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def unpacked(keys: list[Codes], blocks: Blocks) -> Codes:
    """Return the block codes that keys were packed from."""
    codes = empty_codes(len(keys[0]), blocks.levels)
    for rest, part in zip(keys, key_parts(blocks.levels), strict=True):
        for block in reversed(part):
            rest, codes[:, block] = np.divmod(rest, blocks.levels[block])
    return codes


def into_engine(columns: dict[str, Any], like: Lazy) -> Lazy:
    """Pass arrays to the engine of a lazy frame, as one that can be joined with it."""
    kind = like.implementation
    if kind.is_polars():
        native = load_library("polars").LazyFrame(columns)
    elif kind.is_duckdb():
        fairmaxent_columns = load_library("pyarrow").table(columns)  # noqa: F841 (DuckDB finds it by its name)
        # Asked through the relation, because only relations of one connection can be
        # joined.
        native = like.to_native().query(
            "fairmaxent_rows", "SELECT * FROM fairmaxent_columns"
        )
    elif kind.is_dask():
        pandas = load_library("pandas")
        dask = load_library("dask.dataframe")
        native = dask.from_pandas(pandas.DataFrame(columns), npartitions=1)
    elif kind.is_spark_like():
        native = like.to_native().sparkSession.createDataFrame(
            load_library("pyarrow").table(columns)
        )
    else:
        raise InputError(
            f"fairmaxent cannot pass a table to {kind.value}; read the data with"
            " polars, DuckDB, Dask or Spark instead"
        )
    return nw.from_native(native)


def join_weights(
    lazy: Lazy,
    domain: Domain,
    blocks: Blocks,
    table: Table,
    weights: Reals,
    *,
    weight: str | None,
    scale: float,
    name: str,
) -> Any:
    """Return the native lazy frame with a column ``name``.

    It is the weight of each row, times its scaled design weight.
    """
    coding = Coding.of(domain, blocks, None, taken=[*names_of(lazy), name])
    keys = coding.keys
    coded = with_keys(lazy, coding)
    columns = {}
    for key, part in coding.parts:
        within = slice(part.start, part.stop)
        columns[key], _ = row_keys(table.codes[:, within], blocks.levels[within])
    by_key = into_engine({**columns, name: weights}, lazy)
    # Polars keeps the rows in their order if it is told to.
    if lazy.implementation.is_polars():
        joined: Lazy = nw.from_native(
            coded.to_native().join(
                by_key.to_native(),
                on=keys,
                how="left",
                maintain_order="left",
            )
        )
    else:
        joined = coded.join(by_key, on=keys, how="left")
    joined = joined.drop(*keys)
    if weight is not None:
        design = nw.col(weight).cast(nw.Float64) / scale
        joined = joined.with_columns((nw.col(name) * design).alias(name))
    return joined.to_native()
