"""Distinct rows in partitions on the workers: what `Table` is for rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.draws import largest_remainders
from fairmaxent.data.table import Broken, Summed, Table, equal_steps, row_keys
from fairmaxent.data.weights import effective_rows
from fairmaxent.engines.cluster.tasks import gathered, merged, results, spread

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True, eq=False)
class Partitions:
    """Tables that together hold each distinct row once; everything but sums stays on the workers."""

    client: Client
    blocks: Blocks
    parts: tuple[Future, ...]  # each a Table
    sizes: Reals  # (parts, 4): distinct rows, input rows, total and squares of each partition

    @classmethod
    def of(cls, client: Client, blocks: Blocks, parts: Sequence[Future]) -> Partitions:
        """Keep the partitions that have rows."""
        sizes = np.array(gathered(client, _sizes, parts))
        kept = np.flatnonzero(sizes[:, 0])
        return cls(client, blocks, tuple(parts[int(part)] for part in kept), sizes[kept])

    def regrouped(self, most: int) -> Partitions:
        """Merge neighbouring partitions until there are at most ``most``."""
        if len(self.parts) <= most:
            return self
        groups = [list(group) for group in np.array_split(np.array(self.parts, dtype=object), most)]
        merged = [self.client.submit(_joined, group, self.blocks, pure=False) for group in groups]
        return Partitions.of(self.client, self.blocks, merged)

    @property
    def distinct(self) -> int:
        """Number of distinct rows."""
        return int(self.sizes[:, 0].sum())

    @property
    def keeps_rows(self) -> bool:
        """No: input rows are not kept on a cluster."""
        return False

    @property
    def size(self) -> int:
        """Number of input rows."""
        return int(self.sizes[:, 1].sum())

    @property
    def total(self) -> float:
        """N: the total weight of the rows."""
        return float(self.sizes[:, 2].sum())

    @property
    def worth(self) -> float:
        """(Σw)²/Σw² over the input rows."""
        return float(effective_rows(self.total, float(self.sizes[:, 3].sum())))

    def tables(self, wanted: Sequence[tuple[int, ...]], sizes: Sequence[int], of: Summed = "counts") -> list[Reals]:
        """Sum the rows by the levels of a few columns at a time, on the workers."""
        tables: list[Reals] = merged(
            self.client, Table.tables, _added, self.parts, wanted=list(wanted), sizes=list(sizes), of=of
        )
        return tables

    def without(self, broken: Broken) -> Partitions:
        """Set the count of the broken rows to zero."""
        return Partitions.of(self.client, self.blocks, spread(self.client, Table.without, self.parts, broken=broken))

    def reweighed(self, factor: Reals) -> Partitions:
        """Multiply each row's count by the factor of its level in the first column."""
        return Partitions.of(self.client, self.blocks, spread(self.client, Table.reweighed, self.parts, factor=factor))

    def thinned(self, rows: int) -> Table:
        """Bring all rows into memory, or ``rows`` of equal weight, from each partition in proportion to its weight."""
        if self.distinct <= rows:
            return self.collect()
        shares = largest_remainders(self.sizes[:, 2], rows)
        asked = np.flatnonzero(shares)
        steps = [int(shares[part]) for part in asked]
        table = _joined(
            gathered(self.client, _steps, [self.parts[part] for part in asked], beside=[steps]), self.blocks
        )
        equal = np.full(rows, self.total / rows)
        return replace(table, counts=equal, squares=equal**2)

    def collect(self) -> Table:
        """Bring all rows into memory, in the order of a table in memory."""
        return _joined(results(self.client, self.parts), self.blocks)


def _sizes(table: Table) -> list[float]:
    return [table.distinct, table.size, table.total, float(table.squares.sum())]


def _added(lists: list[list[Reals]]) -> list[Reals]:
    """Add lists of tables, table by table."""
    return [np.asarray(sum(tables)) for tables in zip(*lists, strict=True)]


def _joined(tables: Sequence[Table], blocks: Blocks) -> Table:
    """Join tables, with their rows in lexicographic order."""
    codes = np.concatenate([table.codes for table in tables])
    order = np.argsort(row_keys(codes, blocks.levels)[0], kind="stable")
    counts, rows, squares = (
        np.concatenate([getattr(table, name) for table in tables])[order] for name in ("counts", "rows", "squares")
    )
    peaks = [table.peaks for table in tables if table.peaks is not None]
    return Table(
        np.asfortranarray(codes[order]), counts, rows, squares, peaks=np.concatenate(peaks)[order] if peaks else None
    )


def _steps(table: Table, rows: int) -> Table:
    """Take ``rows`` rows at equal steps of the running weight, with repetition if the partition has fewer."""
    chosen = equal_steps(table.counts, rows)
    one = np.ones(rows)
    return Table(table.codes[chosen], one, one, one)
