"""Who reads and counts a table, and what a fit asks of its rows, wherever they are.

A table in memory is read by `data`. The engine of a lazy frame finds the values of each
column, then counts the rows; none of them is kept. Those of a cluster stay on its
workers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from fairmaxent.data.domain import Domain, fitting
from fairmaxent.data.frames import one_like
from fairmaxent.data.reading import (
    Reading,
    ReadingRequest,
    per_average,
    read_table,
    redrawn_values,
    without,
)
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Mask,
    Names,
    Sizes,
    Spread,
    Table,
    match_rows,
)
from fairmaxent.engines import lazy_frame
from fairmaxent.engines.cluster_partitions import (
    PartitionedRows,
    Partitions,
    TiltedPartitions,
    count_on_workers,
)
from fairmaxent.engines.cluster_tasks import active_client, merged
from fairmaxent.engines.lazy_counts import (
    Coding,
    average_weight,
    count_likely,
    count_rows,
)
from fairmaxent.errors import InputError, Option
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


def read_rows(frame: Any, request: ReadingRequest) -> Reading:
    """Read a table where its rows are."""
    lazy = lazy_frame.open_lazy(frame)
    if lazy is None:
        return read_table(frame, request)
    # pandas raises the former for a part of a Dask frame without a column
    with lazy_frame.engine_errors(lazy, KeyError, OSError):
        return _read_lazily(lazy, request)


def _read_lazily(lazy: lazy_frame.Lazy, request: ReadingRequest) -> Reading:
    """Let the engine of a lazy frame find the levels, and count the distinct rows."""
    likely = request.likely
    used = () if likely is None else likely.used
    asked = (request.outcome, *request.also, *request.protected, *request.within)
    for name in asked + used:
        lazy_frame.check_column(lazy, name)
    whole = lazy
    if likely is not None:
        if lazy.implementation.is_dask():
            raise InputError(
                Option("likely"),
                " needs the probabilities in one place, and the rows of a Dask frame"
                " stay in parts; compute it first, or scan its files with polars",
            )
        lazy = lazy.select(request.without_chances(lazy_frame.names_of(lazy)))
    scale = 1.0
    weight_column = None
    if request.weight is not None:
        scale = average_weight(lazy, request.weight)
    domain, left_out = _lazy_domain(lazy, request)
    roles = request.roles(domain)
    request.progress("count", 0.0)
    chances = None
    rows: Counted
    if likely is None:
        rows = _count_lazily(lazy, roles, request)
    else:
        rows, chances = count_likely(
            whole, roles.domain, roles.blocks, request.weight, likely, scale
        )
        if likely.are_known(chances.shares):
            return _read_lazily(*request.with_known(whole, likely))
    if request.weight is not None:
        first = lazy_frame.collect(lazy.select(request.weight).head(1))
        weight_column = one_like(first.get_column(request.weight))
    return Reading(
        columns=without(left_out, lazy_frame.names_of(lazy)),
        roles=roles,
        table=per_average(rows, roles, scale),
        design=None,
        weight_column=weight_column,
        redrawn=redrawn_values(
            request.detail, domain, "the rows are not kept in memory"
        ),
        weight_scale=scale,
        left_out=left_out,
        chances=chances,
    )


def _lazy_domain(
    lazy: lazy_frame.Lazy, request: ReadingRequest
) -> tuple[Domain, Names]:
    """Learn the domain, or check the one that is given; identifiers come last.

    They are left out of it, as is the weight column, which is no attribute.
    """
    if request.own_domain is None:
        learned = lazy_frame.learn_domain(
            lazy, weight=request.weight, progress=request.progress
        )
        return learned.without_identifiers(request.keep)
    first = lazy_frame.collect(lazy.head(1))
    if request.weight is not None:
        first = first.drop(request.weight)
    given = fitting(request.own_domain, first, request.weight)
    domain, left_out = given.without_identifiers(request.keep)
    if request.by_value is None:
        lazy_frame.check_known(lazy, domain, request.progress)
    return domain, left_out


def _count_lazily(
    lazy: lazy_frame.Lazy, roles: Roles, request: ReadingRequest
) -> Counted:
    """Count inside the engine, or on the workers of a cluster if one is at hand."""
    coding = Coding.of(
        roles.domain,
        roles.blocks,
        request.weight,
        taken=lazy_frame.names_of(lazy),
        declaration=request.by_value,
    )
    client = None
    # a private fit needs all of them
    if lazy.implementation.is_dask() and request.by_value is None:
        client = active_client()
    if client is not None:
        return count_on_workers(client, lazy, coding, request.progress)
    return count_rows(lazy, coding)


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
