"""Measurements: the tables that are counted, each person in exactly one cell of each, and how the budget is split.

Adding or removing one row changes one cell of a table by one, so every table has the L2 sensitivity 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import Counted
from fairmaxent.privacy.ledger import Mechanism, Spent
from fairmaxent.privacy.mechanisms import Noise, scale_of

# Shares of the budget, chosen on public tables (Adult, German credit, COMPAS; see benchmarks/privacy.py): the table of
# outcome and groups, each column alone, each column with outcome and groups, the choice of pairs, the pairs.
ROOT, COLUMNS, ROOT_AND_COLUMN, CHOICE, PAIRS = 0.02, 0.28, 0.38, 0.05, 0.27
# Among tables of one kind, the sum of their expected errors is least if the budget grows like cells^(2/3).
_POWER = 2 / 3


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A noisy table, and what it cost."""

    counts: Reals
    spent: Spent

    @property
    def variance(self) -> float:
        """Of the noise in each cell."""
        return self.spent.scale**2


@dataclass(frozen=True, eq=False)
class NoisyCounter:
    """Counts rows with noise, and in no other way."""

    table: Counted
    levels: tuple[int, ...]  # of each block
    names: tuple[str, ...]  # of each block
    noise: Noise

    def measure(self, wanted: Sequence[tuple[int, ...]], rho: float) -> list[NoisyTable]:
        """Count the levels of a few blocks at a time, for ρ in all."""
        if not wanted:
            return []
        shares = np.array([float(math.prod(self.levels[block] for block in blocks)) ** _POWER for blocks in wanted])
        scales = [scale_of(rho * share) for share in shares / shares.sum()]
        tables = self.table.tables(wanted, self.levels)
        return [
            NoisyTable(self.noise.counts(table, scale), self._look("discrete Gaussian", blocks, table.size, scale))
            for table, blocks, scale in zip(tables, wanted, scales, strict=True)
        ]

    def _look(self, mechanism: Mechanism, blocks: tuple[int, ...], cells: int, scale: float) -> Spent:
        return Spent(mechanism, " × ".join(self.names[block] for block in blocks), cells, 1.0, scale)
