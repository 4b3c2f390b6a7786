"""From a table to distinct rows in codes, and what a fit asks of them, answered where
they are.

In memory, one pass over each column gives its levels and its raw values. The engine of
a lazy frame finds the values of each column, then counts the rows; none of them is
kept. Those of a cluster stay on its workers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fairmaxent.data import frames
from fairmaxent.data.attribute import Encoded
from fairmaxent.data.declaration import Declaration, declared_rows
from fairmaxent.data.domain import Domain, fitting
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.roles import (
    DetailOption,
    Reading,
    Roles,
    per_average,
    redrawn_values,
    without_identifiers,
)
from fairmaxent.data.table import Blocks, Counted, Reals, Spread, Table
from fairmaxent.engines import lazy_frame
from fairmaxent.engines.cluster_partitions import (
    Partitions,
    TiltedPartitions,
    count_on_workers,
)
from fairmaxent.engines.cluster_tasks import active_client
from fairmaxent.engines.lazy_counts import average_weight, count_rows, declared_lazily
from fairmaxent.errors import InputError
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import (
    Density,
    Prior,
    Tilted,
    divergence_in_memory,
)
from fairmaxent.maxent.priors.rows import Rows, TiltedRows
from fairmaxent.progress import Progress, silent

# rows with new weights, which sum to one, wherever the rows are
RowWeights = TiltedRows | TiltedPartitions


@dataclass(frozen=True, eq=False)
class ReadingRequest:
    """How a table is to be read."""

    outcome: str
    protected: Sequence[str]
    within: Sequence[str] = ()
    also: Sequence[str] = ()  # further outcomes
    weight: str | None = None
    domain: Domain | Declaration | None = None  # None: it is learned from the table
    detail: DetailOption | None = None
    # columns that stay although they look like identifiers; None: all do
    keep: Collection[str] | None = None
    progress: Progress = silent

    @property
    def is_lenient(self) -> bool:
        """Whether rows are left out instead of refused, which may leave none."""
        return isinstance(self.domain, Declaration) and not self.domain.refuses

    def roles(self, domain: Domain) -> Roles:
        """Look the columns up."""
        return Roles.of(domain, self.outcome, self.protected, self.within, self.also)


def read_rows(frame: Any, request: ReadingRequest) -> Reading:
    """Read a table where its rows are."""
    lazy = lazy_frame.open_lazy(frame)
    if lazy is None:
        table = frames.open_frame(frame, may_be_empty=request.is_lenient)
        if (
            isinstance(request.domain, Declaration)
            and request.domain.undeclared is not None
        ):
            table = declared_rows(table, request.domain)
        return _read_in_memory(table, request)
    with lazy_frame.engine_errors(lazy):
        return _read_lazily(lazy, request)


def _read_in_memory(frame: frames.Frame, request: ReadingRequest) -> Reading:
    """Encode the rows, and merge equal ones."""
    request.progress("read", 0.0)
    weight = request.weight
    detail = request.detail
    raw = frames.read_weights(frame, weight)
    if raw is None:
        scale = 1.0
    else:
        scale = float(raw.mean())
    domain, encoded, left_out = read_domain(
        frame, request.domain, weight=weight, weights=raw, keep=request.keep
    )
    roles = request.roles(domain)
    redrawn = redrawn_values(detail, domain, encoded.unknown or None)
    request.progress("count", 0.0)
    columns = tuple(name for name in frame.columns if name not in left_out)
    table = per_average(roles.compress(encoded.codes, raw), roles, scale)
    design = None
    if raw is not None:
        design = raw / scale
    one = None
    if weight is not None:
        one = frames.one_like(frames.column(frame, weight))
    if detail == "bins":
        positions = None
    else:
        positions = encoded.positions
    return Reading(
        columns, roles, table, design, one, positions, redrawn, scale, left_out
    )


def read_domain(
    frame: frames.Frame,
    domain: Domain | Declaration | None,
    *,
    weight: str | None,
    weights: Reals | None,
    keep: Collection[str] | None = None,
) -> tuple[Domain, Encoded, tuple[str, ...]]:
    """Encode the frame by the given domain, or by one learned from it, without
    identifiers; these are named last.

    The weight column is no attribute.
    """
    if weight is None:
        attributes = frame
    else:
        attributes = frame.drop(weight)
    if domain is None:
        whole, columns = Domain.learn_rows(
            attributes, ColumnOptions(attributes.columns), weights=weights
        )
        domain, left_out = without_identifiers(whole, keep)
        kept = [column for column in columns if column.attribute.name not in left_out]
        return domain, Encoded.stacked(kept), left_out
    domain, left_out = without_identifiers(fitting(domain, attributes, weight), keep)
    return domain, domain.encode_rows(attributes), left_out


def _read_lazily(lazy: lazy_frame.Lazy, request: ReadingRequest) -> Reading:
    """Count the distinct rows."""
    for name in (request.outcome, *request.also, *request.protected, *request.within):
        lazy_frame.check_column(lazy, name)
    weight = request.weight
    if weight is None:
        scale = 1.0
    else:
        scale = average_weight(lazy, weight)
    domain, left_out = _lazy_domain(lazy, request)
    if isinstance(request.domain, Declaration) and not request.domain.refuses:
        lazy = declared_lazily(
            lazy, domain, to_missing=request.domain.undeclared == "missing"
        )
    roles = request.roles(domain)
    request.progress("count", 0.0)
    columns = tuple(name for name in lazy_frame.names_of(lazy) if name not in left_out)
    table = per_average(_count_lazily(lazy, roles, request), roles, scale)
    one = None
    if weight is not None:
        one = frames.one_like(lazy_frame.collect(lazy.select(weight).head(1))[weight])
    redrawn = redrawn_values(request.detail, domain, "the rows are not kept in memory")
    return Reading(columns, roles, table, None, one, None, redrawn, scale, left_out)


def _lazy_domain(
    lazy: lazy_frame.Lazy, request: ReadingRequest
) -> tuple[Domain, tuple[str, ...]]:
    """Learn the domain, or check the one that is given, and take identifiers out; the
    weight column is no attribute.
    """
    weight = request.weight
    keep = request.keep
    if request.domain is None:
        return without_identifiers(
            lazy_frame.learn_domain(lazy, weight=weight, progress=request.progress),
            keep,
        )
    first = lazy_frame.collect(lazy.head(1))
    if weight is None:
        head = first
    else:
        head = first.drop(weight)
    domain, left_out = without_identifiers(fitting(request.domain, head, weight), keep)
    if not request.is_lenient:
        lazy_frame.check_known(lazy, domain, request.progress)
    return domain, left_out


def _count_lazily(
    lazy: lazy_frame.Lazy, roles: Roles, request: ReadingRequest
) -> Counted:
    """Count inside the engine; the rows of a Dask frame stay on the workers of the
    cluster that is at hand.
    """
    client = None
    if lazy.implementation.is_dask():
        client = active_client()
    if client is not None:
        return count_on_workers(
            client, lazy, roles.domain, roles.blocks, request.weight
        )
    return count_rows(
        lazy,
        roles.domain,
        roles.blocks,
        request.weight,
        may_be_empty=request.is_lenient,
    )


def row_prior(blocks: Blocks, weighted: Counted) -> Prior:
    """Return w as a prior."""
    if isinstance(weighted, Table):
        return Rows.of(blocks, weighted)
    return cast(Partitions, weighted).prior(blocks)


def divergence(rows: Counted, density: Density) -> float:
    """Return KL(rows‖p)."""
    if isinstance(rows, Table):
        return divergence_in_memory(rows, density)
    return cast(Partitions, rows).divergence(density)


def tilted_rows(tilted: Tilted) -> tuple[float, RowWeights] | None:
    """Return the rows in a tilted prior and their share; None if it has none."""
    if isinstance(tilted, TiltedMixture):
        shares = zip(tilted.shares, tilted.parts, strict=True)
    else:
        shares = [(1.0, tilted)]
    return next(
        (
            (float(share), part)
            for share, part in shares
            if isinstance(part, RowWeights)
        ),
        None,
    )


def row_spread(table: Counted, tilted: Tilted) -> Spread:
    """Spread the weights of tilted rows over the input rows of a table, by the levels
    of its first column.
    """
    if not isinstance(tilted, TiltedRows):
        return cast(Partitions, table).spread(cast(TiltedPartitions, tilted))
    rows = table.collect()
    return Spread.of(rows, tilted.on(rows.codes), tilted.rows.blocks.levels[0])


def in_memory(rows: Counted) -> Table:
    """Return the distinct rows; refuse if they are on the workers of a cluster."""
    if not isinstance(rows, Table):
        advice = (
            "use the fit that fit.collect() returns, which has the distinct rows in"
            " memory, or for weights use"
        )
        raise InputError(
            f"the rows of this fit stay on the Dask cluster; {advice}"
            " fit.weigh(dask_frame)"
        )
    return rows
