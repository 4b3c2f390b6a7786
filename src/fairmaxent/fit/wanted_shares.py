"""The shares of levels that are asked for, by column."""

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Literal

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Reals
from fairmaxent.errors import Option, TargetError, shown

Free = Literal["free"]
TargetOption = Mapping[str, Mapping[object, float] | Free | None]
FREE: Free = "free"  # the target of an outcome whose share may move
LEAST_SHARE = 1e-8  # below, a wanted share is lost in rounding, relative to the others
_SLACK = 1e-6  # how far a user's probabilities may be from summing to 1
TARGET_DOC = (
    'Wanted shares, e.g. ``{"sex": {"Female": 0.6, "Male": 0.4}}``; a'
    " protected column has them in place of a representation rate (with"
    ' ``groups="joint"`` that rate then holds within each of its levels).'
    ' ``{"age": None}`` keeps a column\'s shares as they are in the data.'
    " Binned numbers are named by the labels of their bins, see"
    ' :attr:`Fit.domain`. The outcome keeps its shares by default; ``{"income":'
    ' "free"}`` lets them move, which changes the rows less, but can make the'
    " outcome rarer for everyone. If only sizes of groups are asked for (no"
    " statistical rate), each group keeps its own outcomes instead."
)


def check_target(target: object) -> None:
    """Refuse what are no shares by column."""
    if not isinstance(target, Mapping | None):
        raise TargetError(
            Option("target"),
            f" is {shown(target)}; pass the wanted shares by column: {{column: {{level:"
            " share}}",
        )


def read_target(roles: Roles, target: TargetOption | None) -> dict[int, Reals | None]:
    """Wanted shares by attribute; None: those that it has in the data.

    An outcome that is free to move is left out.
    """
    domain = roles.domain
    result: dict[int, Reals | None] = {}
    for name, wanted in (target or {}).items():
        index = domain.index(name)
        is_outcome = index in (roles.outcome, *roles.others)
        if wanted is None:
            result[index] = None
        elif not (is_outcome and isinstance(wanted, str) and wanted == FREE):
            result[index] = _read_shares(domain.attribute(name), wanted)
    return result


def _read_shares(attribute: Attribute, wanted: Mapping[object, float] | Free) -> Reals:
    option = Option("target", column=attribute.name)
    if not isinstance(wanted, Mapping):
        raise TargetError(
            option,
            f" is {shown(wanted)}; give each level its share: {{level: share}}; only an"
            f" outcome can be {FREE!r}",
        )

    result = np.zeros(attribute.size)
    for value, probability in wanted.items():
        if not isinstance(probability, Real) or not (
            probability == 0 or LEAST_SHARE <= probability <= 1
        ):
            raise TargetError(
                option,
                f" gives {shown(value)} the share {probability!r}; a share lies between"
                f" 0 and 1, and the smallest is {LEAST_SHARE:g}; use 0 for none",
            )
        result[attribute.exact_level(value)] += float(probability)

    if abs(result.sum() - 1) > _SLACK:
        unnamed = [
            repr(label)
            for label, share in zip(attribute.labels, result, strict=True)
            if share == 0
        ]
        hint = ""
        if unnamed:
            hint = f"; not named or zero: {', '.join(unnamed[:8])}"
        raise TargetError(
            option,
            f" adds up to {result.sum():.6g}, not 1{hint}. Give every level its share.",
        )

    return result / result.sum()


def share_words(target: TargetOption) -> Iterator[str]:
    """What becomes of the shares of columns."""
    for name, shares in target.items():
        if isinstance(shares, str):
            yield f"The shares of {name} may change."
        elif shares is None:
            yield f"{name} keeps the shares that it has in the data."
        else:
            listed = [f"{level} {share:.4g}" for level, share in shares.items()]
            yield f"Shares of {name}: {', '.join(listed)}."
