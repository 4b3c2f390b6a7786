"""A table in terms of its domain: levels, and raw values by their positions, from one pass over each column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.distinct_values import distinct_values
from fairmaxent.data.library_errors import column_errors
from fairmaxent.data.positions import Positions
from fairmaxent.errors import LevelError


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

    Raises :class:`fairmaxent.LevelError` for a value that has no level.
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
