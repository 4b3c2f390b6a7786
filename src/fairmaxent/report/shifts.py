"""Shares before and after: of every level of every column, and of the outcome in every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks
from fairmaxent.fit import Fit
from fairmaxent.rates import group_shares, outcome_rates
from fairmaxent.table import Codes, Reals, tally

Role = Literal["outcome", "protected", "other"]

_MOVES = 12


@dataclass(frozen=True)
class Shift:
    """A share of the data and of p*; None where the group it is taken in has no mass."""

    label: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Marginal:
    """One column: the share of each of its levels, and their total variation distance ½ Σ |after − before|."""

    name: str
    kind: str
    role: Role
    distance: float
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class Grouping:
    """The groups of one or several protected columns: their shares P(g), or with an outcome their rates P(y | g)."""

    name: str
    outcome: str | None
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class Move:
    """One level of one column, before and after."""

    column: str
    level: str
    before: float
    after: float


def root_table(blocks: Blocks, pooled: Codes, counts: Reals | None) -> Reals:
    """Return the table of outcome and protected columns of rows given as block codes, summing to one."""
    cells = tally(pooled[:, 0], counts, blocks.levels[0])
    return np.asarray(cells / cells.sum()).reshape(blocks.shape(0))


def marginals(fit: Fit) -> tuple[Marginal, ...]:
    """Every column: outcome and protected ones first, then those that moved most."""
    codes = fit.roles.blocks.unpool(fit.table.codes)
    found = [_marginal(fit, index, codes[:, index]) for index in range(len(fit.domain.attributes))]
    root = [found[index] for index in fit.roles.root]
    others = [own for own in found if own.role == "other"]
    return (*root, *sorted(others, key=lambda own: -own.distance))


def _marginal(fit: Fit, index: int, codes: NDArray[np.integer]) -> Marginal:
    attribute = fit.domain.attributes[index]
    before = tally(codes, fit.table.counts / fit.table.total, attribute.size)
    after = fit.distribution.joint([index])
    role: Role = "outcome" if index == fit.roles.outcome else "protected" if index in fit.roles.protected else "other"
    distance = float(np.abs(after - before).sum() / 2)
    return Marginal(attribute.name, attribute.kind, role, distance, _shifts(attribute.labels, before, after))


def groupings(fit: Fit) -> tuple[Grouping, ...]:
    """For each grouping the shares of its groups, then the rate of each favourable outcome in them."""
    measure = fit.certificate.measure
    before = root_table(fit.roles.blocks, fit.table.codes, fit.table.counts)
    after = fit.distribution.root_table
    found = []
    for name, axes in zip(measure.names, measure.groupings, strict=True):
        labels = group_labels(fit, axes)
        shares = (group_shares(table, axes).ravel() for table in (before, after))
        found.append(Grouping(name, None, _shifts(labels, *shares)))
        old, new = (outcome_rates(table, axes) for table in (before, after))
        for level in measure.favourable:
            outcome = fit.roles.attributes[0].labels[level]
            found.append(Grouping(name, outcome, _shifts(labels, old[level].ravel(), new[level].ravel())))
    return tuple(found)


def group_labels(fit: Fit, axes: Sequence[int]) -> list[str]:
    """Name the groups of a grouping, in the order of a table's cells."""
    own = [fit.roles.attributes[axis].labels for axis in axes]
    cells = np.ndindex(*(len(labels) for labels in own))
    return [" × ".join(labels[level] for labels, level in zip(own, cell, strict=True)) for cell in cells]


def largest_moves(columns: Sequence[Marginal]) -> tuple[Move, ...]:
    """Return the levels whose share moved most, over all columns."""
    moves = [
        Move(column.name, shift.label, shift.before or 0.0, shift.after or 0.0)
        for column in columns
        for shift in column.shifts
    ]
    # Rounded, so that ties stay in the order of the columns whatever the last bit says.
    moves.sort(key=lambda move: -round(abs(move.after - move.before), 12))
    return tuple(moves[:_MOVES])


def _shifts(labels: Sequence[str], before: Reals, after: Reals) -> tuple[Shift, ...]:
    return tuple(Shift(label, _known(old), _known(new)) for label, old, new in zip(labels, before, after, strict=True))


def _known(share: float) -> float | None:
    return None if np.isnan(share) else float(share)
