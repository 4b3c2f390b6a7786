"""Levels as expressions that an engine evaluates: numbers and times by cut points, other values by name."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.engines.lazy.frame import Lazy, is_missing
from fairmaxent.errors import LevelError

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400_000_000  # microseconds
_UNITS = {"ms": 1000, "s": 1_000_000}  # microseconds in those that columns of times may be counted in
_LARGEST_KEY = 2**62


def key_parts(sizes: Sequence[int]) -> list[range]:
    """Split positions into runs whose sizes have a product that fits in one integer.

    >>> key_parts([2**40, 2**20, 2**10, 3])
    [range(0, 2), range(2, 4)]
    """
    parts, start, span = [], 0, 1
    for position, size in enumerate(sizes):
        if span * size > _LARGEST_KEY:
            parts.append(range(start, position))
            start, span = position, 1
        span *= size
    return [*parts, range(start, len(sizes))]


def with_keys(lazy: Lazy, domain: Domain, blocks: Blocks, names: Sequence[str]) -> Lazy:
    """Add integer keys that identify each distinct row, one per part: the block codes packed in mixed radix, in order.

    polars gets native expressions, because only these look names up without holding the column in memory.
    """
    api: Any = frames.load_library("polars") if lazy.implementation.is_polars() else nw
    schema = lazy.collect_schema()
    parts = key_parts(blocks.levels)
    keys = [_packed(domain, blocks, part, schema, api).alias(name) for part, name in zip(parts, names, strict=True)]
    if api is nw:
        return lazy.with_columns(*keys)
    coded: Lazy = nw.from_native(lazy.to_native().with_columns(keys))
    return coded


def _packed(domain: Domain, blocks: Blocks, part: range, schema: nw.Schema, api: Any) -> Any:
    key: Any = None
    for index in (index for block in part for index in blocks.members[block]):
        attribute = domain.attributes[index]
        level = level_expression(attribute, schema[attribute.name], api)
        key = level if key is None else key * attribute.size + level
    return key


def level_expression(attribute: Attribute, dtype: Any, api: Any = nw) -> Any:
    """Return the level of each row as a 64-bit integer; the attribute is assumed to know every value."""
    column = api.col(attribute.name)
    if attribute.kind in ("numeric", "date") and (dtype.is_numeric() or dtype.is_temporal()):
        level = _by_cut_points(attribute, column, dtype, api)
    elif attribute.edges is not None and attribute.missing is not None and _may_be_empty(dtype, api):
        level = api.lit(None).cast(api.Int64)  # a column without any number or time may be of another type
    elif attribute.edges is not None:
        raise LevelError(
            f"column {attribute.name!r} was learned as {attribute.kind} but is now {dtype}; convert it",
            column=attribute.name,
        )
    else:
        level = _by_name(attribute, column, dtype, api)
    if attribute.missing is None:
        return level
    return api.when(is_missing(column, dtype)).then(api.lit(attribute.missing).cast(api.Int64)).otherwise(level)


def _may_be_empty(dtype: Any, api: Any) -> bool:
    """Whether a column of another type may hold no value; what narwhals does not know, but for polars' null, has some.

    DuckDB's times of day are such a type.
    """
    return bool(dtype != nw.Object and (dtype != nw.Unknown or api is not nw))


def _by_cut_points(attribute: Attribute, column: Any, dtype: Any, api: Any) -> Any:
    """Count the cut points that a number or time reaches."""
    numbers = column.cast(api.Float64) if dtype.is_numeric() else column
    total = api.lit(0).cast(api.Int16)
    for cut in _cuts(attribute):
        total = total + (numbers >= _literal(cut, dtype)).cast(api.Int16)
    return total.cast(api.Int64)


def _cuts(attribute: Attribute) -> list[float]:
    """The start of each level but the first: the edges of bins, or the values themselves, which ascend."""
    if attribute.edges is not None:
        return [float(edge) for edge in attribute.edges]
    present = attribute.size - (attribute.missing is not None)
    firsts = frames.take(attribute.values, attribute.level_starts[1:present])
    return [float(number) for number in frames.to_numbers(firsts)]


def _literal(cut: float, dtype: Any) -> Any:
    """The smallest value of a dtype that is at least ``cut``; times are compared as times, never as floats."""
    if dtype.is_numeric():
        return cut
    micro = math.floor(cut * 1e6) - 2
    while micro / 1e6 < cut:
        micro += 1
    unit = _UNITS.get(getattr(dtype, "time_unit", "us"), 1)
    micro = -(-micro // unit) * unit  # an engine may round what a column cannot hold, up or down
    if dtype == nw.Duration:
        return datetime.timedelta(microseconds=micro)
    if dtype == nw.Date:
        return (_EPOCH + datetime.timedelta(days=-(-micro // _DAY))).date()
    moment = _EPOCH + datetime.timedelta(microseconds=micro)
    if dtype == nw.Time:
        return moment.time() if micro < _DAY else datetime.time.max
    zone = dtype.time_zone
    return moment if zone is None else moment.replace(tzinfo=datetime.UTC).astimezone(ZoneInfo(zone))


def _by_name(attribute: Attribute, column: Any, dtype: Any, api: Any) -> Any:
    """Look each value up; values that are not listed belong to the last level, which stands for all rare values."""
    present = attribute.size - (attribute.missing is not None)
    listed = present if attribute.is_value_coded else present - 1
    values = frames.take(attribute.values, attribute.level_starts[:listed])
    if not listed:
        return api.lit(0).cast(api.Int64)
    if api is not nw:
        return _by_polars_name(values.to_native(), column, api)
    names = values.to_list()
    if dtype == nw.Categorical or dtype == nw.Enum:
        column, names = column.cast(nw.String), [str(name) for name in names]
    return column.replace_strict(names, list(range(listed)), default=listed, return_dtype=nw.Int64)


def _by_polars_name(values: Any, column: Any, polars: Any) -> Any:
    """Look values up by their text, as categories; adding 0.0 turns -0.0 into 0.0, which is the same number."""
    if values.dtype.is_float():
        values, column = values + 0.0, column + 0.0
    categories = polars.Enum(values.cast(polars.String))
    codes = column.cast(polars.String).cast(categories, strict=False).to_physical()
    return codes.cast(polars.Int64).fill_null(len(values))
