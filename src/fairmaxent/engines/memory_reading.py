"""Reading a table in memory: one pass over each column gives its levels and its raw values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import narwhals as nw

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain, bound, check_domain
from fairmaxent.data.encoded import Encoded
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.positions import DetailOption
from fairmaxent.data.reading import Reading, per_average, redrawn_values, without_identifiers
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table
from fairmaxent.data.weights import UNSCALED, WeightScale, read_weights
from fairmaxent.progress import Progress


def read_in_memory(
    frame: nw.DataFrame[Any],
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
    """Encode the rows, and merge equal ones."""
    progress("read", 0.0)
    raw = read_weights(frame, weight)
    scale = UNSCALED if raw is None else WeightScale.of(raw)
    weights = None if raw is None else scale.shifted(raw)
    domain, encoded, left_out = _encode(frame, domain, weight=weight, weights=weights, keep=keep)
    roles = Roles.of(domain, outcome, protected, within, also)
    positions = None if detail == "bins" else encoded.positions
    redrawn = redrawn_values(detail, domain, encoded.unknown or None)
    progress("count", 0.0)
    return Reading(
        columns=tuple(name for name in frame.columns if name not in left_out),
        roles=roles,
        table=per_average(Table.compress(roles.blocks.pool(encoded.codes), roles.blocks.levels, weights), roles, scale),
        design=None if raw is None else scale.scaled(raw),
        weight_column=None if weight is None else frames.one_like(frames.column(frame, weight)),
        positions=positions,
        redrawn=redrawn,
        weight_scale=scale,
        left_out=left_out,
    )


def read_domain(
    frame: nw.DataFrame[Any],
    domain: Domain | Declaration | None,
    *,
    weight: str | None,
    weights: Reals | None,
    keep: Collection[str] | None = None,
) -> tuple[Domain, Codes]:
    """Return the given domain, or one learned from the frame, and the frame in its codes."""
    domain, encoded, _ = _encode(frame, domain, weight=weight, weights=weights, keep=keep)
    return domain, encoded.codes


def _encode(
    frame: nw.DataFrame[Any],
    domain: Domain | Declaration | None,
    *,
    weight: str | None,
    weights: Reals | None,
    keep: Collection[str] | None,
) -> tuple[Domain, Encoded, tuple[str, ...]]:
    """Encode the frame by the given domain, or by one learned from it, without identifiers; these are named last.

    The weight column is no attribute.
    """
    attributes = frame if weight is None else frame.drop(weight)
    if domain is None:
        whole, encoded = Domain.learn_rows(attributes, ColumnOptions(attributes.columns), weights=weights)
        domain, left_out = without_identifiers(whole, keep)
        return domain, encoded.without([whole.index(name) for name in left_out]), left_out
    domain = bound(domain, attributes)
    check_domain(domain, attributes, weight)
    domain, left_out = without_identifiers(domain, keep)
    return domain, domain.encode_rows(attributes), left_out
