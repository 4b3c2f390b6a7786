"""The rows of the data, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.baselines.data import CodedData
from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.draws import RandomState, cells_of, check_count, generator
from fairmaxent.data.table import tally
from fairmaxent.fit.distribution import Distribution
from fairmaxent.maxent.priors.rows import Rows


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows:
    """The rows of the data, with one weight per cell (y, z): the result of a reweighing method."""

    data: CodedData
    cell_weights: Reals  # weight of the rows of each cell; 1 on average over the rows

    def __repr__(self) -> str:
        return f"<WeightedRows: {len(self.data.frame)} rows in {np.count_nonzero(self.data.empirical)} cells>"

    @classmethod
    def of(cls, data: CodedData, wanted: Reals) -> WeightedRows:
        """Weigh the rows so that they have the table t(y, z), outcome × joint groups: w = t / P."""
        data.refuse_empty_cells(wanted)
        seen = data.empirical > 0
        return cls(data, np.divide(wanted, data.empirical, out=np.zeros_like(wanted), where=seen).ravel())

    def weights(self) -> Reals:
        """One weight per input row, 1 on average."""
        return np.asarray(self.cell_weights[self.data.cells])

    def sample(self, n: int, *, random_state: RandomState = None, iid: bool = False) -> Any:
        """Draw ``n`` rows of the data with replacement.

        By default each cell (y, z) gets its quota, and its rows are drawn uniformly, as in the resampling of Kamiran
        and Calders; ``iid=True`` draws every row independently by weight.
        """
        count = check_count(n)
        rng = generator(self.data.random_state if random_state is None else random_state)
        cells = cells_of(self._cell_shares, count, rng, independent=iid)
        order, starts = self._rows_by_cell
        sizes = np.diff(np.append(starts, len(order)))
        rows = order[starts[cells] + rng.integers(0, sizes[cells])]
        return frames.gather({name: (self.data.frame.get_column(name), rows) for name in self.data.frame.columns})

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the exact weighted joint distribution of a few columns, with a column ``probability``."""
        return self.distribution.marginal(columns)

    @cached_property
    def distribution(self) -> Distribution:
        """The weighted rows as a distribution over the levels of the domain."""
        table, blocks = self.data.table, self.data.blocks
        rows = Rows.weighted(blocks, table.codes, table.counts * self.cell_weights[table.codes[:, 0]])
        return Distribution(self.data.roles.domain, blocks, rows, np.zeros(blocks.width))

    @property
    def _cell_shares(self) -> Reals:
        return np.asarray(self.cell_weights * self.data.empirical.ravel()).reshape(self.data.blocks.shape(0))

    @cached_property
    def _rows_by_cell(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows sorted by cell, and the position of the first row of each cell."""
        counts = tally(self.data.cells, None, len(self.cell_weights)).astype(np.intp)
        return np.argsort(self.data.cells, kind="stable"), np.cumsum(counts) - counts
