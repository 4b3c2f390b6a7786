"""What a fit asks of its rows, wherever they are: in memory, or on a cluster."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Mask,
    Sizes,
    Spread,
    Table,
    match_rows,
)
from fairmaxent.engines.cluster_partitions import (
    PartitionedRows,
    Partitions,
    TiltedPartitions,
)
from fairmaxent.engines.cluster_tasks import active_client, merged
from fairmaxent.errors import InputError
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import (
    Density,
    Prior,
    Tilted,
    divergence_in_memory,
)
from fairmaxent.maxent.priors.rows import Rows, TiltedRows

# rows with new weights, which sum to one, wherever the rows are
RowWeights = TiltedRows | TiltedPartitions


def read_pieces(
    paths: list[str], read: Callable[[str], Table], blocks: Blocks
) -> Counted:
    """Read tables that were kept, on the workers of a cluster if one is at hand."""
    client = active_client()
    if client is None:
        return Table.joined([read(path) for path in paths], blocks.levels)
    pieces = client.map(read, paths, pure=False, key="fairmaxent-read")
    return Partitions.of(client, blocks, pieces)


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """Return w as a prior."""
    if isinstance(weighted, Table):
        return Rows.of(blocks, weighted)
    return PartitionedRows.of(blocks, cast(Partitions, weighted))


def divergence(rows: Counted, density: Density) -> float:
    """Return KL(rows‖p)."""
    if isinstance(rows, Table):
        return divergence_in_memory(rows, density)
    whole = cast(Partitions, rows).over(_divergence, sum, density)
    return float(whole / rows.total - np.log(rows.total))


def _divergence(rows: Table, density: Density) -> float:
    """Σ n·log(n/p) over the rows of a partition."""
    if not rows.total:
        return 0.0
    return rows.total * (divergence_in_memory(rows, density) + np.log(rows.total))


def among(rows: Counted, codes: Codes, sizes: Sizes) -> Mask:
    """Whether each of ``codes`` is one of the distinct rows."""
    if isinstance(rows, Table):
        return match_rows(rows.codes, codes.astype(rows.codes.dtype), sizes) >= 0
    parts = cast(Partitions, rows)
    return merged(
        parts.client,
        among,
        partial(np.any, axis=0),
        parts.parts,
        codes=codes,
        sizes=sizes,
    )


def mass_on(rows: Counted, density: Density) -> float:
    """Return p(S): the probability of the distinct rows."""
    if isinstance(rows, Table):
        return float(np.exp(density.log_probability(rows.codes)).sum())
    return float(cast(Partitions, rows).over(mass_on, sum, density))


def tilted_rows(tilted: Tilted) -> tuple[float, RowWeights] | None:
    """Return the rows in a tilted prior and their share; None if it has none."""
    if isinstance(tilted, RowWeights):
        return 1.0, tilted
    if isinstance(tilted, TiltedMixture):
        for share, part in zip(tilted.shares, tilted.parts, strict=True):
            if isinstance(part, RowWeights):
                return float(share), part
    return None


def row_spread(table: Counted, tilted: Tilted) -> Spread:
    """Spread the weights of tilted rows over the input rows of a table.

    The cells are the levels of its first column.
    """
    if isinstance(tilted, TiltedRows):
        rows = table.collect()
        return Spread.of(rows, tilted.on(rows.codes), tilted.rows.blocks.levels[0])
    there = cast(TiltedPartitions, tilted)
    density = Density(there.rows, there.potentials, there.log_partition)
    return cast(Partitions, table).over(_spread, _united, density)


def _spread(rows: Table, density: Any) -> Spread:
    """The same for a partition, which has a share of the partition function."""
    (own,) = density.prior.parts
    tilted = own.tilt(density.potentials)
    share = np.exp(tilted.log_partition - density.log_partition)
    return Spread.of(rows, tilted.on(rows.codes) * share, own.blocks.levels[0])


def _united(spreads: list[Spread]) -> Spread:
    return Spread.stacked(spreads).over((0,))


def in_memory(rows: Counted) -> Table:
    """Return the distinct rows; refuse if they are on the workers of a cluster."""
    if not isinstance(rows, Table):
        raise InputError(
            "the rows of this fit stay on the Dask cluster; use the fit that"
            " fit.collect() returns, which has the distinct rows in memory, or for"
            " weights use fit.weigh(dask_frame)"
        )
    return rows
