"""Reading a lazy frame: its engine finds the values of each column, then counts the rows; none of them is kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairmaxent.data import frames
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain, bound, check_domain
from fairmaxent.data.positions import DetailOption
from fairmaxent.data.reading import Reading, per_average, redrawn_values, without_identifiers
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted
from fairmaxent.data.weights import UNSCALED
from fairmaxent.engines.lazy.column_values import check_known, learn_domain
from fairmaxent.engines.lazy.frame import Lazy, check_column, collect, names_of
from fairmaxent.engines.lazy.row_counts import count_rows, lazy_weight_scale, with_shifted_weights
from fairmaxent.progress import Progress


def read_lazy(
    lazy: Lazy,
    outcome: str,
    protected: Sequence[str],
    within: Sequence[str],
    also: Sequence[str],
    *,
    weight: str | None,
    domain: Domain | Declaration | None,
    detail: DetailOption | None,
    keep: Collection[str] | None,
    progress: Progress,
) -> Reading:
    """Count the distinct rows."""
    for name in (outcome, *also, *protected, *within):
        check_column(lazy, name)
    scale = UNSCALED if weight is None else lazy_weight_scale(lazy, weight)
    shifted = lazy if weight is None else with_shifted_weights(lazy, weight, scale)
    domain, left_out = _domain(shifted, domain, weight, keep, progress)
    roles = Roles.of(domain, outcome, protected, within, also)
    progress("count", 0.0)
    return Reading(
        columns=tuple(name for name in names_of(lazy) if name not in left_out),
        roles=roles,
        table=per_average(_count(shifted, roles, weight), roles, scale),
        design=None,
        weight_column=None if weight is None else frames.one_like(collect(lazy.select(weight).head(1))[weight]),
        redrawn=redrawn_values(detail, domain, "the rows are not kept in memory"),
        weight_scale=scale,
        left_out=left_out,
    )


def _domain(
    lazy: Lazy,
    domain: Domain | Declaration | None,
    weight: str | None,
    keep: Collection[str] | None,
    progress: Progress,
) -> tuple[Domain, tuple[str, ...]]:
    """Learn the domain, or check the one that is given, and take identifiers out; the weight column is no attribute."""
    if domain is None:
        return without_identifiers(learn_domain(lazy, weight=weight, progress=progress), keep)
    first = collect(lazy.head(1))
    head = first if weight is None else first.drop(weight)
    domain = bound(domain, head)
    check_domain(domain, head, weight)
    domain, left_out = without_identifiers(domain, keep)
    check_known(lazy, domain, progress)
    return domain, left_out


def _count(lazy: Lazy, roles: Roles, weight: str | None) -> Counted:
    """Count inside the engine; the rows of a Dask frame stay on the workers of the cluster that is at hand."""
    if lazy.implementation.is_dask():
        from fairmaxent.engines.cluster.counting import count_on_workers
        from fairmaxent.engines.cluster.tasks import active_client

        client = active_client()
        if client is not None:
            return count_on_workers(client, lazy, roles.domain, roles.blocks, weight)
    return count_rows(lazy, roles.domain, roles.blocks, weight)
