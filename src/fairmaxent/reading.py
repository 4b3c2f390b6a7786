"""From a frame to numbers: design weights, and codes by a domain given or learned."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from fairmaxent import frames
from fairmaxent.domain import Domain
from fairmaxent.errors import ColumnError, InputError, WeightError
from fairmaxent.table import Reals, check_weights


def read_weights(frame: nw.DataFrame[Any], weight: str | None) -> Reals | None:
    """Read a column of design weights."""
    if weight is None:
        return None
    return check_weights(_weight_numbers(frames.column(frame, weight)), len(frame), what=f"weight column {weight!r}")


def _weight_numbers(column: frames.Column) -> Reals:
    kind = column.dtype
    refusal = WeightError(
        f"weight column {column.name!r} holds {kind}, not numbers; convert it, or name another column"
    )
    if not (kind.is_numeric() or kind == nw.Boolean or kind == nw.Object):
        raise refusal
    try:
        return frames.to_numbers(column)
    except (TypeError, ValueError) as problem:  # objects may be anything
        raise refusal from problem


def read_domain(
    frame: nw.DataFrame[Any], domain: Domain | None, *, weight: str | None, design: Reals | None
) -> tuple[Domain, Any]:
    """Encode the frame by the given domain, or by one learned from it; the weight column is no attribute."""
    attributes = frame if weight is None else frame.drop(weight)
    if domain is None:
        return Domain.learn(attributes, weight=design)
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
    return domain, domain.encode(attributes)
