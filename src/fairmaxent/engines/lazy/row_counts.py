"""Distinct rows and their counts, by the engine's group-by; and weights joined to the rows by the same keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import Table
from fairmaxent.data.weights import UNSCALED, WeightScale
from fairmaxent.engines.lazy.frame import Lazy, check_column, collect, fresh_name, into_engine, names_of, numbers
from fairmaxent.engines.lazy.level_expressions import key_parts, with_keys
from fairmaxent.errors import InputError, WeightError


def lazy_weight_scale(lazy: Lazy, weight: str) -> WeightScale:
    """Find the scale of a weight column.

    Refuses a column that is not numeric, or has values that are missing, negative, infinite or all zero.
    """
    check_column(lazy, weight)
    dtype = lazy.collect_schema()[weight]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise WeightError(f"weight column {weight!r} holds {dtype}, not numbers; convert it, or name another column")
    number = nw.col(weight).cast(nw.Float64)
    good = (number >= 0) & (number < float("inf"))
    totals = collect(
        lazy.select(nw.len().alias("rows"), good.cast(nw.Int64).sum().alias("good"), number.max().alias("largest"))
    )
    rows, usable, largest = (numbers(totals, name)[0] for name in ("rows", "good", "largest"))
    if usable < rows:
        raise WeightError(
            f"weight column {weight!r} holds {int(rows - np.nan_to_num(usable))} values that are missing, negative or "
            "infinite; weights must be finite and not negative. Repair or drop those rows."
        )
    if not rows:
        return UNSCALED  # refused when its rows are counted
    if not largest > 0:
        raise WeightError(f"weight column {weight!r} is zero everywhere; at least one row must count")
    scale = WeightScale.of_largest(float(largest))
    average = collect(lazy.select(scale.shifted(number).mean().alias("average")))
    return replace(scale, average=float(numbers(average, "average")[0]))


def with_shifted_weights(lazy: Lazy, weight: str, scale: WeightScale) -> Lazy:
    """Return the frame with its weights multiplied by a power of two, so that their sum is within float64."""
    return lazy.with_columns(scale.shifted(nw.col(weight).cast(nw.Float64)).alias(weight))


@dataclass(frozen=True)
class CountColumns:
    """Names of the columns that hold keys and counts; those for design weights are None if there are none."""

    keys: list[str]
    rows: str
    mass: str | None
    squares: str | None
    peak: str | None

    @property
    def added(self) -> list[str]:
        """The columns of design weights that are added up."""
        return [name for name in (self.mass, self.squares) if name is not None]

    @property
    def weights(self) -> list[str]:
        """The columns of design weights."""
        return [*self.added, *([] if self.peak is None else [self.peak])]


def keyed(lazy: Lazy, domain: Domain, blocks: Blocks, weight: str | None) -> tuple[Lazy, CountColumns]:
    """Encode the rows: integers that identify each distinct row, and design weights with their squares.

    The weights come twice: to be added up, and to find the largest.
    """
    names = names_of(lazy)
    keys = [fresh_name(f"key{number}", names) for number, _ in enumerate(key_parts(blocks.levels))]
    rows, mass, squares, peak = (fresh_name(name, [*keys, *names]) for name in ("rows", "mass", "squares", "peak"))
    coded = with_keys(lazy, domain, blocks, keys)
    if weight is None:
        return coded.select(*keys), CountColumns(keys, rows, None, None, None)
    design = nw.col(weight).cast(nw.Float64)
    weighted = coded.select(*keys, design.alias(mass), (design * design).alias(squares), design.alias(peak))
    return weighted, CountColumns(keys, rows, mass, squares, peak)


def count_rows(lazy: Lazy, domain: Domain, blocks: Blocks, weight: str | None) -> Table:
    """Encode the rows, merge equal ones and count them inside the engine; only distinct rows come back."""
    coded, columns = keyed(lazy, domain, blocks, weight)
    totals = [nw.len().alias(columns.rows), *(nw.col(name).sum() for name in columns.added)]
    if columns.peak is not None:
        totals.append(nw.col(columns.peak).max())
    counts = collect(coded.group_by(*columns.keys).agg(*totals))
    if not len(counts):
        raise InputError("the table has no rows; pass at least one")
    return table_of(counts, columns, blocks)


def table_of(counts: nw.DataFrame[Any], columns: CountColumns, blocks: Blocks) -> Table:
    """Return the distinct rows in order, from the counts of an engine."""
    if any(counts.get_column(key).null_count() for key in columns.keys):
        raise InputError("the engine has rows that belong to no level; convert its columns to numbers, text or dates")
    packed = [counts.get_column(key).to_numpy() for key in columns.keys]
    order = np.lexsort(packed[::-1])
    codes = unpacked([key[order] for key in packed], blocks)
    rows = numbers(counts, columns.rows)[order]
    if not columns.weights:
        return Table(codes, rows, rows, rows)
    mass, squares, peaks = (numbers(counts, name)[order] for name in columns.weights)
    return Table(codes, mass, rows, squares, peaks=peaks)


def unpacked(keys: list[NDArray[np.int64]], blocks: Blocks) -> Codes:
    """Return the block codes that keys were packed from."""
    codes = np.empty((len(keys[0]), len(blocks.levels)), np.min_scalar_type(max(blocks.levels)), order="F")
    for rest, part in zip(keys, key_parts(blocks.levels), strict=True):
        for block in reversed(part):
            rest, codes[:, block] = np.divmod(rest, blocks.levels[block])
    return codes


def join_weights(
    lazy: Lazy,
    domain: Domain,
    blocks: Blocks,
    table: Table,
    weights: Reals,
    *,
    weight: str | None,
    scale: WeightScale,
    name: str,
) -> Any:
    """Return the native lazy frame with a column ``name``: the weight of each row, times its scaled design weight."""
    parts = key_parts(blocks.levels)
    keys = [fresh_name(f"key{number}", [*names_of(lazy), name]) for number, _ in enumerate(parts)]
    coded = with_keys(lazy, domain, blocks, keys)
    known = {key: _packed(table.codes, blocks, part) for key, part in zip(keys, parts, strict=True)}
    joined = _left_join(coded, into_engine({**known, name: weights}, lazy), keys).drop(*keys)
    if weight is not None:
        joined = joined.with_columns((nw.col(name) * scale.scaled(nw.col(weight).cast(nw.Float64))).alias(name))
    return joined.to_native()


def _left_join(lazy: Lazy, known: Lazy, keys: list[str]) -> Lazy:
    """Join by keys; polars keeps the rows in their order if it is told to."""
    if not lazy.implementation.is_polars():
        return lazy.join(known, on=keys, how="left")
    joined: Lazy = nw.from_native(lazy.to_native().join(known.to_native(), on=keys, how="left", maintain_order="left"))
    return joined


def _packed(codes: Codes, blocks: Blocks, part: range) -> NDArray[np.int64]:
    keys = np.zeros(len(codes), dtype=np.int64)
    for block in part:
        keys = keys * blocks.levels[block] + codes[:, block]
    return keys
