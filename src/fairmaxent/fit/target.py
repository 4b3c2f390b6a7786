"""Targets: the shares that users want, ``target={"sex": {"Female": 0.5, "Male": 0.5}}``, and θ, which follows.

Targets live on the levels, so θ^d, θ^w, θ^b and the user's own are vectors of one kind; the features turn them
into expectations.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Literal

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Blocks, Counted, Reals, effective_rows
from fairmaxent.errors import Option, TargetError, shown
from fairmaxent.maxent.features import Features, cell_features
from fairmaxent.maxent.priors.protocol import Prior

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


# A cell of outcome and groups with fewer effective rows says too little about what it is like.
FEW_ROWS = 30


def level_means(blocks: Blocks, rows: Counted) -> Reals:
    """Share of each level among the rows: θ^d by their counts, θ^w where these are the weights w."""
    return np.concatenate(rows.tables([(block,) for block in range(len(blocks.levels))], blocks.levels)) / rows.total


def balanced(levels: Reals, blocks: Blocks) -> Reals:
    """θ^b (Remark 4.6): as given, but the protected attributes balanced and independent of the outcome."""
    shape = blocks.shape(0)
    outcome = levels[blocks.slices[0]].reshape(shape).sum(axis=tuple(range(1, len(shape))))
    groups = int(np.prod(shape[1:]))
    result = levels.copy()
    result[blocks.slices[0]] = np.repeat(outcome / groups, groups)
    return result


def with_chosen(levels: Reals, data: Reals, blocks: Blocks, chosen: Mapping[int, Reals | None]) -> Reals:
    """Replace the share of attributes outside the root by the chosen one, or by the data's own (None)."""
    result = levels.copy()
    for attribute, wanted in chosen.items():
        if attribute not in blocks.members[0]:
            part = blocks.slices[blocks.block_of(attribute)]
            result[part] = data[part] if wanted is None else wanted
    return result


def fair_levels(
    table: Counted, weighted: Counted, fair: Reals, base: Prior, chosen: Mapping[int, Reals | None], *, borrowed: Reals
) -> Reals:
    """θ: the fair table for the root, the user's own marginals, and for the rest what keeps p(x | y, z).

    That is θ^w, the mean under the reweighted rows, but for the ``borrowed`` share of each cell (y, z), which has the
    base's mean in that cell.
    """
    blocks, root = base.blocks, fair.ravel()
    lent = root * borrowed
    levels = np.zeros(blocks.width)
    if (lent < root).any():
        rows = weighted.reweighed(1 - borrowed) if lent.any() else weighted
        levels += (1 - lent.sum()) * level_means(blocks, rows)
    if lent.any():
        levels += lent.sum() * _means_in_cells(base, lent)
    levels[blocks.slices[0]] = root
    return with_chosen(levels, level_means(blocks, table), blocks, chosen) if chosen else levels


def borrowed_shares(blocks: Blocks, counted: Counted, in_small_cells: float) -> Reals:
    """How much of p(x | y, z) is to be the base's: all of it in a cell without rows, a given share in one with few.

    Otherwise the few would be taken for what their cell is like, and the other cells be tilted towards them.
    """
    total, squares = (counted.tables([(0,)], blocks.levels, of=of)[0] for of in ("counts", "squares"))
    few = np.nan_to_num(effective_rows(total, squares)) < FEW_ROWS
    return np.where(total == 0, 1.0, np.where(few, in_small_cells, 0.0))


def asked_of_rows(
    roles: Roles, weighted: Counted, levels: Reals, chosen: Mapping[int, Reals | None]
) -> tuple[Features, Reals]:
    """Features and θ for rows alone, given θ for rows and base: θ^w even in small cells, as they cannot borrow."""
    blocks = roles.blocks
    target = with_chosen(level_means(blocks, weighted), levels, blocks, dict.fromkeys(chosen))
    target[blocks.slices[0]] = levels[blocks.slices[0]]
    return cell_features(blocks, moment_scores(roles.domain, chosen), target), target


def _means_in_cells(base: Prior, masses: Reals) -> Reals:
    """Share of each level under the base, if the levels of the root had these masses instead of the base's."""
    roots, potentials = base.blocks.slices[0], np.zeros(base.blocks.width)
    ratio = np.divide(masses, base.tilt(potentials).levels[roots], out=np.zeros_like(masses), where=masses > 0)
    potentials[roots] = np.log(ratio, out=np.full_like(masses, -np.inf), where=masses > 0)
    return base.tilt(potentials).levels


def moment_scores(domain: Domain, chosen: Mapping[int, Reals | None]) -> list[Reals | None]:
    """Scores of the attributes that enter by their value; one with a chosen marginal enters by its levels."""
    return [
        attribute.scores() if attribute.features == "moment" and index not in chosen else None
        for index, attribute in enumerate(domain.attributes)
    ]
