"""A table in terms of its domain: levels, and raw values by their positions, from one pass over each column.

That pass learns the column's attribute too, or uses one that was learned before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Positions, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.distinct_values import DistinctValues, distinct_values
from fairmaxent.data.frames import column_errors
from fairmaxent.data.identifiers import looks_like_identifier
from fairmaxent.data.levels import ColumnOptions, group_values, refuse_same_moments, unique_labels
from fairmaxent.errors import LevelError, cut


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """One column of a table."""

    levels: Codes
    """The level of each row."""
    positions: NDArray[np.unsignedinteger] | None = None
    """Where the raw value of each row stands in `Attribute.values`; None: each level is one value, or nobody asked."""
    unknown: str = ""
    """Why there are no positions although they were wanted: which value the attribute does not know."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """All columns of a table."""

    codes: Codes
    """The level of each row in each column, shape (rows, columns), in Fortran order."""
    positions: Positions | None
    """Of the columns whose levels stand for several values; None: some value is unknown."""
    unknown: str = ""
    """Which value that is."""

    def without(self, dropped: Collection[int]) -> Encoded:
        """Return the table without some columns, by position."""
        if not dropped:
            return self
        kept = [index for index in range(self.codes.shape[1]) if index not in dropped]
        positions = None
        if self.positions is not None:
            positions = {kept.index(old): column for old, column in self.positions.items() if old not in dropped}
        return Encoded(np.asfortranarray(self.codes[:, kept]), positions, self.unknown)

    @classmethod
    def stacked(cls, columns: Sequence[EncodedColumn], sizes: Sequence[int]) -> Encoded:
        """Put columns side by side; ``sizes`` are their numbers of levels."""
        codes = np.empty((len(columns[0].levels), len(columns)), np.min_scalar_type(max(sizes) - 1), order="F")
        for index, column in enumerate(columns):
            codes[:, index] = column.levels
        unknown = next((column.unknown for column in columns if column.unknown), "")
        if unknown:
            return cls(codes, None, unknown)
        positions = {index: column.positions for index, column in enumerate(columns) if column.positions is not None}
        return cls(codes, positions)


def encode_column(attribute: Attribute, series: frames.Column, *, positions: bool) -> EncodedColumn:
    """Encode a column by an attribute that was learned before; ``positions``: look up raw values, too.

    Raises :class:`fairmaxent.errors.LevelError` for a value that has no level.
    """
    with column_errors(series):
        return _encoded(attribute, series, positions=positions)


def _encoded(attribute: Attribute, series: frames.Column, *, positions: bool) -> EncodedColumn:
    distinct = distinct_values(series)
    missing = attribute.level(None) if distinct.missing else 0
    levels = np.append(attribute.levels_of(distinct.values), missing).take(distinct.codes)
    if attribute.is_value_coded or not positions:
        return EncodedColumn(levels)
    try:
        looked_up = attribute.positions_of(distinct.values)
    except LevelError as problem:  # a number in a bin that was not seen there
        return EncodedColumn(levels, unknown=str(problem))
    return EncodedColumn(levels, looked_up.take(distinct.codes))


@dataclass(frozen=True, eq=False)
class LearnedColumn:
    """An attribute, the column that it was learned from in its terms, and notes on that column."""

    attribute: Attribute
    encoded: EncodedColumn
    notes: tuple[str, ...]
    identifier: bool


def learn_column(series: frames.Column, options: ColumnOptions, weights: Reals | None) -> LearnedColumn:
    """Learn a column from its distinct values; ``weights`` are design weights, one per row."""
    with column_errors(series):
        return _learned(series, options, weights)


def _learned(series: frames.Column, options: ColumnOptions, weights: Reals | None) -> LearnedColumn:
    distinct = distinct_values(series)
    values, rows, has_missing = distinct.values, distinct.rows, distinct.missing > 0
    refuse_same_moments(values)
    kind = options.kind_of(series, values)
    counts = _counts(distinct, weights)
    grouping = group_values(values, counts[: len(values)], kind, options)
    levels, missing = grouping.levels, len(grouping.labels) if has_missing else None
    if missing is not None:
        levels, rows = np.append(levels, missing), np.append(rows, distinct.codes.argmin())
    by_level = np.argsort(levels, kind="stable")
    if has_missing or np.any(np.diff(by_level) < 0):
        values = frames.take(series, rows[by_level])
    labels = unique_labels([*map(cut, grouping.labels), *(["missing"] if has_missing else [])])
    starts = np.searchsorted(levels[by_level], np.arange(len(labels) + 1))
    attribute = Attribute(
        name=series.name,
        kind=kind,
        labels=labels,
        features=options.features_of(series.name, kind),
        values=values,
        level_starts=starts,
        counts=_drawable(counts[by_level], starts),
        edges=grouping.edges,
        missing=missing,
    )
    present = len(distinct.codes) - distinct.missing
    notes = (*([grouping.note] if grouping.note else []), *_notes(attribute))
    encoded = _encoded_while_learning(attribute, distinct.codes, levels, by_level)
    return LearnedColumn(attribute, encoded, notes, looks_like_identifier(attribute, present))


def _counts(distinct: DistinctValues, weights: Reals | None) -> Reals:
    """Total weight of the rows with each value, and last, of those without one."""
    if weights is None:
        return np.append(distinct.counts, distinct.missing).astype(np.float64)
    return np.roll(np.bincount(distinct.codes + 1, weights, minlength=len(distinct.counts) + 1), -1)


def _encoded_while_learning(
    attribute: Attribute, codes: NDArray[np.intp], levels: NDArray[np.intp], by_level: NDArray[np.intp]
) -> EncodedColumn:
    """Turn positions among the distinct values, where missing comes last, into levels and into positions by level."""
    if attribute.is_value_coded:
        return EncodedColumn(levels.take(codes))
    positions = np.empty(len(by_level), np.min_scalar_type(len(by_level)))
    positions[by_level] = np.arange(len(by_level))
    return EncodedColumn(levels.take(codes), positions.take(codes))


def _drawable(counts: Reals, starts: NDArray[np.int64]) -> Reals:
    """Let each value of a level that has no weight at all count once, so that the level can be decoded."""
    empty = np.add.reduceat(counts, starts[:-1]) == 0
    return np.where(np.repeat(empty, np.diff(starts)), 1.0, counts)


def _notes(attribute: Attribute) -> list[str]:
    if attribute.size > 1:
        return []
    return [f"column {attribute.name!r} is constant ({attribute.labels[0]!r}) and carries no information"]
