"""Spread: how unequally input rows count, in each cell of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Table, highest, tally
from fairmaxent.data.weights import effective_rows


@dataclass(frozen=True, eq=False)
class Spread:
    """The weights w of the input rows in each cell: Σw, Σw², and the largest w of one row."""

    total: Reals
    squares: Reals
    largest: Reals

    @classmethod
    def of(cls, table: Table, mass: Reals, size: int) -> Spread:
        """Give each distinct row its ``mass``, which its input rows share as they share its count.

        The cells are the ``size`` levels of the first column.
        """
        cells = table.codes[:, 0]
        ratio = mass / np.where(table.counts > 0, table.counts, 1.0)
        return cls(
            tally(cells, mass, size),
            tally(cells, ratio**2 * table.squares, size),
            highest(cells, ratio * table.largest, size),
        )

    @property
    def effective_rows(self) -> Reals:
        """(Σw)²/Σw² of each cell (Kish); 0 if it has no weight."""
        return np.nan_to_num(effective_rows(self.total, self.squares), nan=0.0)

    def scaled(self, factor: float) -> Spread:
        """Multiply every weight."""
        return Spread(self.total * factor, self.squares * factor**2, self.largest * factor)

    def shaped(self, shape: Sequence[int]) -> Spread:
        """Give the cells axes."""
        return Spread(*(values.reshape(shape) for values in (self.total, self.squares, self.largest)))

    def over(self, axes: tuple[int, ...]) -> Spread:
        """Merge the cells along some axes; no input row may be in two of them."""
        return Spread(self.total.sum(axis=axes), self.squares.sum(axis=axes), self.largest.max(axis=axes))


def joined(spreads: Sequence[Spread]) -> Spread:
    """Merge the spreads of different rows, cell by cell."""
    stacked = (np.stack([getattr(part, name) for part in spreads]) for name in ("total", "squares", "largest"))
    return Spread(*stacked).over((0,))
