"""What a fit asks of its rows, answered where they are: in memory, or on the workers of a cluster."""

from __future__ import annotations

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Counted, Table
from fairmaxent.errors import InputError
from fairmaxent.maxent.priors.protocol import Density, Prior, divergence_in_memory
from fairmaxent.maxent.priors.rows import Rows


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """Return w as a prior, computed where the rows are."""
    if not isinstance(weighted, Table):
        from fairmaxent.engines.cluster.partitioned_rows import PartitionedRows
        from fairmaxent.engines.cluster.partitions import Partitions

        if isinstance(weighted, Partitions):
            return PartitionedRows.of(blocks, weighted)
    return Rows.of(blocks, weighted.collect())


def divergence(rows: Counted, density: Density) -> float:
    """Return KL(rows‖p), computed where the rows are."""
    if not isinstance(rows, Table):
        from fairmaxent.engines.cluster.partitioned_rows import divergence_on_workers
        from fairmaxent.engines.cluster.partitions import Partitions

        if isinstance(rows, Partitions):
            return divergence_on_workers(rows, density)
    return divergence_in_memory(rows.collect(), density)


def in_memory(rows: Counted) -> Table:
    """Return the distinct rows; refuse if they are on the workers of a cluster."""
    if not isinstance(rows, Table):
        raise InputError(
            "the rows of this fit stay on the Dask cluster; use the fit that fit.collect() returns, which has the "
            "distinct rows in memory, or for weights use fit.weigh(dask_frame)"
        )
    return rows
