"""What was read of a table: its distinct rows in codes, and what it takes to give rows like its own back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.positions import DetailOption, Positions
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted
from fairmaxent.data.weights import UNSCALED, WeightScale
from fairmaxent.errors import InputError, Option


@dataclass(frozen=True)
class RedrawnValues:
    """Columns whose raw values are drawn again within their levels, and the reason."""

    columns: tuple[str, ...]
    reason: str | None  # None: that was asked for


@dataclass(frozen=True, eq=False)
class Reading:
    """A table as every fit sees it, wherever its rows are."""

    columns: tuple[str, ...]
    """All columns of the table, in order, the weight column too."""
    roles: Roles
    table: Counted
    """Distinct rows as block codes."""
    design: Reals | None
    """Design weights, one per input row, 1 on average; None: there are none, or an engine keeps the rows."""
    weight_column: frames.Column | None
    """A single 1 of the weight column's name and dtype."""
    positions: Positions | None = None
    """Raw values of the input rows; None: they are drawn inside their levels."""
    redrawn: RedrawnValues | None = None
    weight_scale: WeightScale = UNSCALED
    left_out: tuple[str, ...] = ()
    """Columns of the table that look like identifiers and are not to be kept; they are no columns here."""


def without_identifiers(domain: Domain, keep: Collection[str] | None) -> tuple[Domain, tuple[str, ...]]:
    """Return the domain without the columns that look like identifiers, and their names; None keeps all of them.

    Those that are to be kept are noted.
    """
    if keep is None or not domain.identifiers:
        return domain, ()
    left_out = tuple(name for name in domain.identifiers if name not in keep)
    kept = [
        f"column {name!r} looks like an identifier and was kept, so rows, models and reports may hold its values"
        for name in domain.identifiers
        if name in keep
    ]
    narrowed = domain.without(left_out)
    return replace(narrowed, notes=(*narrowed.notes, *kept)), left_out


def per_average(table: Counted, roles: Roles, scale: WeightScale) -> Counted:
    """Divide design weights by their average, once whole ones were summed without rounding."""
    return table if scale == UNSCALED else table.reweighed(np.full(roles.blocks.levels[0], 1 / scale.average))


def redrawn_values(detail: DetailOption | None, domain: Domain, why: str | None) -> RedrawnValues | None:
    """Say which exact values no row keeps, because of what was asked for or of ``why``; refuse if they were asked for.

    None: rows keep all of them.
    """
    if detail != "bins" and why is None:
        return None
    if detail == "rows":
        raise InputError(
            Option("detail", "rows"),
            f" is not available: {why}. Use ",
            Option("detail", "bins"),
            ", or fit a table in memory with its own Domain.",
        )
    shared = tuple(attribute.name for attribute in domain.attributes if not attribute.is_value_coded)
    return RedrawnValues(shared, None if detail == "bins" else why) if shared else None
