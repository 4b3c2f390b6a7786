"""From a frame to numbers: design weights, codes by a domain given or learned, and distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.positions import DetailOption, Positions, read_positions
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, Table
from fairmaxent.data.weights import read_weights
from fairmaxent.engines.lazy.column_values import check_known, learn_domain
from fairmaxent.engines.lazy.frame import Lazy, check_column, collect, names_of, open_lazy
from fairmaxent.engines.lazy.row_counts import check_lazy_weights, count_rows
from fairmaxent.errors import ColumnError, InputError, LevelError
from fairmaxent.progress import Progress


@dataclass(frozen=True, eq=False)
class Reading:
    """The table in codes, and what it takes to give rows like its own back."""

    columns: tuple[str, ...]
    roles: Roles
    table: Counted  # distinct rows as block codes
    design: Reals | None  # one per input row; None: there are none, or an engine keeps the rows
    weight_column: frames.Column | None
    positions: Positions | None = None  # raw values of the input rows; None: they are drawn inside their levels
    notes: tuple[str, ...] = ()


def read_rows(
    frame: Any,
    outcome: str,
    protected: Sequence[str],
    *,
    weight: str | None,
    domain: Domain | None,
    detail: DetailOption | None = None,
    progress: Progress,
) -> Reading:
    """Read a table into distinct rows: one in memory, or a lazy one inside its engine."""
    lazy = open_lazy(frame)
    if lazy is not None:
        read = _read_lazy(lazy, outcome, protected, weight=weight, domain=domain, progress=progress)
        return replace(read, notes=_without_details(detail, read.roles.domain, "an engine keeps the rows"))
    progress("read", 0.0)
    opened = frames.open_frame(frame)
    design = read_weights(opened, weight)
    domain, codes = read_domain(opened, domain, weight=weight, design=design)
    roles = Roles.of(domain, outcome, protected)
    positions, notes = _read_details(domain, opened, detail)
    progress("count", 0.0)
    return Reading(
        columns=tuple(opened.columns),
        roles=roles,
        table=Table.compress(roles.blocks.pool(codes), roles.blocks.levels, design),
        design=design,
        weight_column=None if weight is None else frames.one_like(frames.column(opened, weight)),
        positions=positions,
        notes=notes,
    )


def _read_details(
    domain: Domain, frame: nw.DataFrame[Any], detail: DetailOption | None
) -> tuple[Positions | None, tuple[str, ...]]:
    """Return the raw values of the rows where they are wanted; the domain given may not know all of them."""
    if detail == "bins":
        return None, ()
    try:
        return read_positions(domain, frame), ()
    except LevelError as problem:
        return None, _without_details(detail, domain, str(problem))


def _without_details(detail: DetailOption | None, domain: Domain, why: str) -> tuple[str, ...]:
    """Say that no row keeps its own numbers, or refuse it to whom asked for that."""
    if detail == "rows":
        raise InputError(f"detail='rows' cannot be had: {why}. Use 'bins', or fit a table in memory by its own Domain.")
    levels = [attribute.name for attribute in domain.attributes if not attribute.is_value_coded]
    if detail == "bins" or not levels:
        return ()
    return (f"values of {', '.join(map(repr, levels))} are drawn again inside their levels (detail='bins'): {why}",)


def _read_lazy(
    lazy: Lazy,
    outcome: str,
    protected: Sequence[str],
    *,
    weight: str | None,
    domain: Domain | None,
    progress: Progress,
) -> Reading:
    for name in (outcome, *protected):
        check_column(lazy, name)
    if weight is not None:
        check_lazy_weights(lazy, weight)
    if domain is None:
        domain = learn_domain(lazy, weight=weight, progress=progress)
    else:
        head = collect(lazy.head(1))
        _check_domain(head if weight is None else head.drop(weight), domain, weight)
        check_known(lazy, domain, progress)
    roles = Roles.of(domain, outcome, protected)
    progress("count", 0.0)
    return Reading(
        columns=tuple(names_of(lazy)),
        roles=roles,
        table=_count(lazy, roles, weight),
        design=None,
        weight_column=None if weight is None else frames.one_like(collect(lazy.select(weight).head(1))[weight]),
    )


def _count(lazy: Lazy, roles: Roles, weight: str | None) -> Counted:
    """Count inside the engine; the rows of a Dask frame stay on the workers of the cluster that is at hand."""
    if lazy.implementation.is_dask():
        from fairmaxent.engines.cluster.counting import count_on_workers
        from fairmaxent.engines.cluster.tasks import active_client

        client = active_client()
        if client is not None:
            return count_on_workers(client, lazy, roles.domain, roles.blocks, weight)
    return count_rows(lazy, roles.domain, roles.blocks, weight)


def read_domain(
    frame: nw.DataFrame[Any], domain: Domain | None, *, weight: str | None, design: Reals | None
) -> tuple[Domain, Any]:
    """Encode the frame by the given domain, or by one learned from it; the weight column is no attribute."""
    attributes = frame if weight is None else frame.drop(weight)
    if domain is None:
        return Domain.learn(attributes, weight=design)
    _check_domain(attributes, domain, weight)
    return domain, domain.encode(attributes)


def _check_domain(attributes: nw.DataFrame[Any], domain: Domain, weight: str | None) -> None:
    """Refuse a domain of other columns, or of another library, than the table's."""
    if not isinstance(domain, Domain):
        raise InputError(f"domain is {domain!r}; pass a Domain, e.g. Domain.infer(frame), or None")
    if weight in domain.names:
        raise ColumnError(f"the given Domain includes the weight column {weight!r}; infer it without that column")
    unknown = [name for name in attributes.columns if name not in domain.names]
    if unknown:
        raise ColumnError(
            f"column {unknown[0]!r} is not in the given Domain; infer the Domain from the same columns, or drop it"
        )
    learned_from, now = domain.library, frames.library_of(attributes.get_column(attributes.columns[0]))
    if learned_from != now:
        raise InputError(
            f"the Domain was learned from a {learned_from} table and the frame is of {now}; infer it from the same kind"
        )
