"""Wanted shares of columns, as users state them: ``target={"sex": {"Female": 0.5, "Male": 0.5}}``."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Literal

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles
from fairmaxent.errors import Option, TargetError, shown

# Shares below this are lost in rounding, relative to the others.
LEAST_SHARE = 1e-8

Free = Literal["free"]
TargetOption = Mapping[str, Mapping[object, float] | Free | None]

FREE: Free = "free"  # the target of an outcome whose share may move
_SLACK = 1e-6  # how far a user's probabilities may be from summing to 1


def read_target(roles: Roles, target: TargetOption | None) -> dict[int, Reals | None]:
    """Turn the user's ``{column: {level: probability}}`` into one vector per attribute.

    A column set to None keeps the shares that it has in the data; an outcome that is free to move is left out.
    """
    if not isinstance(target, Mapping | None):
        raise TargetError(
            Option("target"), f" is {shown(target)}; pass the wanted shares by column: {{column: {{level: share}}}}"
        )
    domain = roles.domain
    return {
        domain.index(name): None if wanted is None else _read_column(domain.attribute(name), wanted)
        for name, wanted in (target or {}).items()
        if not is_free(roles, name, wanted)
    }


def is_free(roles: Roles, column: str, wanted: object) -> bool:
    """Whether a target lets the share of the outcome move; other columns cannot be set free."""
    if not (isinstance(wanted, str) and wanted == FREE):
        return False
    if roles.domain.index(column) not in (roles.outcome, *roles.others):
        raise TargetError(
            Option("target", FREE, column=column),
            f" is for the outcome, {roles.names[0]!r}; leave {column!r} out, and nothing is asked of its shares",
        )
    return True


def _read_column(attribute: Attribute, wanted: Mapping[object, float] | Free) -> Reals:
    if not isinstance(wanted, Mapping):
        raise TargetError(
            Option("target", column=attribute.name), f" is {shown(wanted)}; give each level its share: {{level: share}}"
        )
    result = np.zeros(attribute.size)
    for value, probability in wanted.items():
        if not isinstance(probability, Real) or not 0 <= probability <= 1:
            raise TargetError(
                Option("target", column=attribute.name),
                f" gives {shown(value)} the share {probability!r}; a share lies between 0 and 1",
            )
        if 0 < probability < LEAST_SHARE:
            raise TargetError(
                Option("target", column=attribute.name),
                f" gives {value!r} the share {probability!r}; the smallest share is {LEAST_SHARE:g}; use 0 for none",
            )
        result[attribute.exact_level(value)] += float(probability)
    if abs(result.sum() - 1) > _SLACK:
        unnamed = [repr(label) for label, share in zip(attribute.labels, result, strict=True) if share == 0]
        hint = f"; not named or zero: {', '.join(unnamed[:8])}" if unnamed else ""
        raise TargetError(
            Option("target", column=attribute.name),
            f" adds up to {result.sum():.6g}, not 1{hint}. Give every level its share.",
        )
    return np.asarray(result / result.sum())
