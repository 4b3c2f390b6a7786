"""Distinct rows counted by the engine of a lazy frame, and weights joined to its rows.

Levels are expressions that the engine evaluates: numbers and times by cut points, other
values by name. The levels of a row are packed into integer keys, by which rows are
grouped and joined.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.declared import declared_rows
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import (
    WEIGHT_RANGE,
    WEIGHT_RULE,
    Frame,
    load_library,
    take,
    to_numbers,
)
from fairmaxent.data.likely import Chances, Likely
from fairmaxent.data.table import (
    LARGEST_KEY,
    Blocks,
    Codes,
    Reals,
    Sizes,
    Table,
    empty_codes,
    match_rows,
    ravel,
    row_keys,
)
from fairmaxent.engines.cluster_tasks import by_part, reduced, with_numbers_by_part
from fairmaxent.engines.lazy_frame import (
    Lazy,
    batches,
    check_column,
    collect,
    fresh_name,
    is_missing,
    learn_domain,
    names_of,
    numbers,
)
from fairmaxent.errors import InputError, LevelError, WeightError

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds
# microseconds in those that columns of times may be counted in
_UNITS = {"ms": 1000, "s": 1_000_000}
# what is made of the design weights of equal rows
_DESIGN = {"mass": "sum", "squares": "sum", "most": "max", "least": "min"}
_ONE_IN = 32  # distinct rows are counted where the number of all is estimated
# bytes, measured: of an empty process, of a distinct row, and of each of its levels;
# and of each pair of levels, whose tables decide how columns depend on each other
_EMPTY = 150e6
_DASK = 200e6  # of a process of Dask
_CELL = 75.0  # of a part that Dask reads
_KEPT = 90.0  # of a distinct row on a worker
_ROW = 150.0
_LEVEL = 3.0
_PAIR = 24.0


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
    """
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
    """The level of each row as a 64-bit integer; the attribute knows every value."""
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
    """The smallest value of a dtype that is at least ``cut``; times stay times."""
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
    names = ("rows", "good", "average")
    rows, usable, average = (float(numbers(totals, name)[0]) for name in names)
    if usable < rows:
        raise WeightError(
            f"weight column {weight!r} holds {int(rows - np.nan_to_num(usable))}"
            f" unusable or missing values; {WEIGHT_RULE}"
        )
    if not rows:  # which is refused when rows are counted
        return 1.0
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
    sums: dict[str, str]  # those of numbers of rows, and how these are summed up
    declaration: Declaration | None = None  # by which cells are read, if by their value

    @classmethod
    def of(
        cls,
        domain: Domain,
        blocks: Blocks,
        weight: str | None,
        *,
        taken: Sequence[str],
        declaration: Declaration | None = None,
    ) -> Coding:
        """Choose names for keys and counts that are not ``taken``."""
        parts = range(len(key_parts(blocks.levels)))
        return cls(
            domain,
            blocks,
            weight,
            keys=[fresh_name(f"key{number}", taken) for number in parts],
            sums=sums_of(weight, taken),
            declaration=declaration,
        )

    @property
    def parts(self) -> list[tuple[str, range]]:
        """Each key with the blocks that it is packed from."""
        return list(zip(self.keys, key_parts(self.blocks.levels), strict=True))

    def codes(self, frame: Any) -> Codes:
        """The block codes of the rows of a part, which is in memory."""
        opened = nw.from_native(frame, eager_only=True)
        if self.declaration is not None:
            opened = declared_rows(opened, self.declaration)
        return self.blocks.pool(self.domain.encode(opened, rest=True))

    def counted(self, frame: Any) -> Any:
        """The distinct rows of a part, and how often each occurs."""
        opened = nw.from_native(frame, eager_only=True)
        codes = self.codes(opened)
        columns: dict[str, Any] = {
            key: ravel(codes[:, part], [self.blocks.levels[block] for block in part])
            for key, part in self.parts
        }
        if self.weight is not None:
            columns[self.weight] = to_numbers(opened.get_column(self.weight))
        coded = nw.from_dict(columns, backend=opened.implementation)
        return self.grouped(coded).to_native()

    def grouped(self, coded: Any) -> Any:
        """Group rows that have keys."""
        return grouped(coded, self.keys, self.weight, self.sums)

    def joined(self, parts: Sequence[Any]) -> Any:
        """Merge the counts of parts."""
        opened = [nw.from_native(part, eager_only=True) for part in parts]
        return summed(nw.concat(opened), self.keys, self.sums)

    def distinct(self, part: Any) -> Table:
        """The distinct rows of a part that was counted."""
        return self.table(self.joined([part]))

    def table(self, counts: Frame) -> Table:
        """The distinct rows, in order."""
        ordered = counts.sort(*self.keys)
        keys = [ordered.get_column(key).to_numpy() for key in self.keys]
        codes = unpacked(keys, self.blocks)
        rows, *design = (numbers(ordered, name) for name in self.sums)
        if not design:
            return Table(codes, rows, rows, rows)
        mass, squares, peaks, _ = design
        return Table(codes, mass, rows, squares, peaks=peaks)


def sums_of(weight: str | None, taken: Sequence[str]) -> dict[str, str]:
    """Names that are not ``taken``, for the number of equal rows and for what is made
    of their design weights, if any; and how each is summed up.
    """
    sums = {"rows": "sum"}
    if weight is not None:
        sums |= _DESIGN
    return {fresh_name(name, taken): how for name, how in sums.items()}


def grouped(
    frame: Any,
    by: Sequence[str],
    weight: str | None,
    sums: Mapping[str, str],
    scale: float = 1.0,
) -> Any:
    """Merge rows that are equal in some columns; each counts once."""
    rows, *names = sums
    columns = [nw.lit(1.0).alias(rows)]
    if weight is not None:
        design = nw.col(weight).cast(nw.Float64) / scale
        _, squares, *_ = names
        columns += [design.alias(name) for name in names if name != squares]
        columns.append((design * design).alias(squares))
    return summed(frame.select(*by, *columns), by, sums)


def summed(frame: Any, by: Sequence[str], sums: Mapping[str, str]) -> Any:
    """Merge equal rows, and sum up what is known of them."""
    totals = [getattr(nw.col(name), how)() for name, how in sums.items()]
    return frame.group_by(*by).agg(*totals)


def count_rows(lazy: Lazy, coding: Coding) -> Table:
    """Encode, merge and count rows inside the engine; only distinct ones come back.

    Those whose cells are read by their value are encoded here, batch by batch: engines
    know types of columns only.
    """
    declared = coding.declaration
    if lazy.implementation.is_dask():
        counts = reduced(counted_parts(lazy, coding), coding.joined)
    elif declared is not None:
        counts = coding.joined([coding.counted(some) for some in batches(lazy)])
    else:
        counts = collect(coding.grouped(with_keys(lazy, coding)))
    if any(counts.get_column(key).null_count() for key in coding.keys):
        raise InputError(
            "the engine has rows that belong to no level; convert its columns to"
            " numbers, text or dates"
        )
    if not len(counts) and (declared is None or declared.refuses):
        raise InputError("the table has no rows; pass at least one")
    return coding.table(counts)


def count_likely(
    lazy: Lazy, coding: Coding, likely: Likely, scale: float
) -> tuple[Table, Chances]:
    """Count rows by the probabilities of their groups, too; those alike come together.

    People with the same levels and the same probabilities are one entry. Where each
    person has probabilities of their own, there are as many entries as people, of a few
    numbers each. ``scale`` is what design weights are divided by in them.
    """
    alike = [*coding.keys, *likely.used]
    coded = with_keys(lazy, coding)
    entries = collect(grouped(coded, alike, coding.weight, coding.sums))
    table = coding.table(summed(entries, coding.keys, coding.sums))
    keys = [entries.get_column(key).to_numpy() for key in coding.keys]
    rows, *design = (numbers(entries, name) for name in coding.sums)
    mass, squares, peaks, *_ = design or (rows, rows, np.ones_like(rows))
    read = likely.read(entries, rows)
    chances = Chances(
        shares=read.shares,
        row=match_rows(
            table.codes, unpacked(keys, coding.blocks), coding.blocks.levels
        ),
        rows=rows,
        weight=mass / scale,
        squares=squares / scale**2,
        peaks=peaks / scale,
        reliability=read.reliability,
    )
    return table, chances


@dataclass(frozen=True)
class Foreseen:
    """What a fit of a large table is expected to take."""

    distinct: int  # rows
    sizes: Sizes  # levels of each column
    passes = 2  # over the table: the values of each column, then the rows

    @property
    def memory(self) -> float:
        """Bytes of the process that holds the distinct rows."""
        rows = (_ROW + _LEVEL * len(self.sizes)) * self.distinct
        return _EMPTY + rows + self._of_pairs

    @property
    def client(self) -> float:
        """Bytes of the client of a Dask cluster, which gets sums alone."""
        return _DASK + self._of_pairs

    def worker(self, workers: int, rows: int) -> float:
        """Bytes of each worker, which reads parts of so many rows, one by one."""
        return _DASK + _CELL * len(self.sizes) * rows + _KEPT * self.distinct / workers

    @property
    def _of_pairs(self) -> float:
        return _PAIR * sum(self.sizes) ** 2


def foresee(lazy: Lazy) -> Foreseen:
    """Learn the columns, and estimate the number of distinct rows in little memory."""
    domain, _ = learn_domain(lazy).without_identifiers(())
    sizes = domain.sizes
    blocks = Blocks.rooted(sizes, ())
    coding = Coding.of(domain, blocks, None, taken=names_of(lazy))
    keys = with_keys(lazy, coding).select(*coding.keys).to_native()
    hashed = load_library("polars").struct(coding.keys).hash()
    some = nw.from_native(keys.filter(hashed % _ONE_IN == 0))
    return Foreseen(_ONE_IN * len(collect(some.unique())), sizes)


def counted_parts(lazy: Lazy, coding: Coding) -> list[Any]:
    """A task for each partition of a Dask frame that counts its distinct rows."""
    needed = [*coding.domain.names]
    if coding.weight is not None:
        needed.append(coding.weight)
    return by_part(lazy.to_native()[needed], coding.counted)


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
    if lazy.implementation.is_dask() or lazy.implementation.is_spark_like():
        coding = Coding.of(domain, blocks, weight, taken=())
        found = partial(_looked_up, table=table, sizes=blocks.levels, weights=weights)
        return weigh_by_part(lazy, coding, found, scale=scale, name=name)
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


def _looked_up(codes: Codes, table: Table, sizes: Sizes, weights: Reals) -> Reals:
    places = match_rows(table.codes, codes, sizes)
    return np.append(weights, np.nan)[places]  # -1: not there


def weigh_by_part(
    lazy: Lazy,
    coding: Coding,
    weights_of: Callable[[Codes], Reals],
    *,
    scale: float,
    name: str,
) -> Any:
    """Return the Dask or Spark frame with a column ``name``, the weight of each row.

    It is ``weights_of`` its levels, times its scaled design weight. No row moves.
    """

    def weighed(frame: Any) -> Reals:  # of one part, in memory
        weights = weights_of(coding.codes(frame))
        if coding.weight is not None:
            opened = nw.from_native(frame, eager_only=True)
            weights = weights * to_numbers(opened.get_column(coding.weight)) / scale
        return weights

    return with_numbers_by_part(lazy, weighed, name)
