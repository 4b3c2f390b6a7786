"""Tables that fit no machine: distinct rows in partitions that stay on the workers of a Dask cluster.

Each partition is an ordinary `Table`, and no row is in two of them. So every sum that a fit asks for is the sum of
what the partitions say, merged on the workers (`workers`); rows as a prior are the mixture of each partition's
(`rows`); and a sample is drawn and written partition by partition (`drawing`). Partitions are results of tasks, never
data that was sent: what a lost worker held is computed again.

Nothing of it is loaded for a table in memory.
"""

from __future__ import annotations

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted, Table
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """w as a prior, wherever the rows are."""
    if not isinstance(weighted, Table):
        from fairmaxent.engines.cluster.partitioned_rows import PartitionedRows
        from fairmaxent.engines.cluster.partitions import Partitions

        if isinstance(weighted, Partitions):
            return PartitionedRows.of(blocks, weighted)
    return Rows.of(blocks, weighted.collect())
