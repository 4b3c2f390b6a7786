"""Shares before and after: of every level of every column, and of the outcome in every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.fairness.rates import group_shares, group_table, outcome_axis, outcome_rates
from fairmaxent.fit.fit import Fit
from fairmaxent.report.delivered import data_table

Role = Literal["outcome", "protected", "other"]

_MOVES = 12
_NOTABLE = 0.0005  # a change of a share that shows in percentage points with one digit


@dataclass(frozen=True)
class Shift:
    """A share of the data and of p*; None where the group it is taken in has no mass."""

    label: str
    before: float | None
    after: float | None
    rows: int | None = None  # of a group: how many rows of the data it is counted from, whatever they weigh


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
    column: str = ""  # the outcome's column


@dataclass(frozen=True)
class Move:
    """One level of one column, before and after."""

    column: str
    level: str
    before: float
    after: float


def marginals(fit: Fit) -> tuple[Marginal, ...]:
    """Every column: outcome and protected ones first, then those that changed most."""
    codes = fit.roles.blocks.unpool(fit.distinct_rows.codes)
    columns = [_marginal(fit, index, codes[:, index]) for index in range(len(fit.domain.attributes))]
    root = [columns[index] for index in fit.roles.root]
    others = [column for column in columns if column.role == "other"]
    return (*root, *sorted(others, key=lambda column: -column.distance))


def _marginal(fit: Fit, index: int, codes: NDArray[np.integer]) -> Marginal:
    attribute = fit.domain.attributes[index]
    before = tally(codes, fit.distinct_rows.counts / fit.table.total, attribute.size)
    after = fit.distribution.joint([index])
    is_outcome = index in (fit.roles.outcome, *fit.roles.others)
    role: Role = "outcome" if is_outcome else "protected" if index in fit.roles.protected else "other"
    distance = float(np.abs(after - before).sum() / 2)
    return Marginal(attribute.name, attribute.kind, role, distance, _shifts(attribute.labels, before, after))


def groupings(fit: Fit) -> tuple[Grouping, ...]:
    """For each grouping the shares of its groups, then the rate of each favourable outcome in them."""
    measure = fit.certificate.measure
    before, after = data_table(fit), fit.distribution.root_table
    shown = []
    for name, axes in zip(map(measure.groups_of, measure.names), measure.groupings, strict=True):
        labels, rows = group_labels(fit, axes), group_table(_row_counts(fit), axes)
        share, fair_share = (group_shares(table, axes).ravel() for table in (before, after))
        if not outcome_axis(axes):  # groups are the same for all outcomes
            shown.append(Grouping(name, None, _shifts(labels, share, fair_share, rows.sum(axis=0).ravel())))
        old, new = (outcome_rates(measure.with_outcome(table, axes), axes) for table in (before, after))
        for level in measure.favourable_of(axes):
            outcome = fit.roles.attributes[outcome_axis(axes)].labels[level]
            shifts = _shifts(labels, old[level].ravel(), new[level].ravel(), rows[level].ravel())
            shown.append(Grouping(name, outcome, shifts, fit.roles.names[outcome_axis(axes)]))
    return tuple(shown)


def _row_counts(fit: Fit) -> Reals:
    """How many rows of the data each cell of outcome and protected columns has."""
    (cells,) = fit.table.tables([(0,)], fit.roles.blocks.levels, of="rows")
    return cells.reshape(fit.roles.blocks.shape(0))


def group_labels(fit: Fit, axes: Sequence[int]) -> list[str]:
    """Name the groups of a grouping, in the order of a table's cells."""
    names = [fit.roles.attributes[axis].labels for axis in axes]
    cells = np.ndindex(*(len(labels) for labels in names))
    return [" × ".join(labels[level] for labels, level in zip(names, cell, strict=True)) for cell in cells]


def largest_moves(columns: Sequence[Marginal]) -> tuple[Move, ...]:
    """Return the levels whose share changed most, among all columns; none that seems not to have changed."""
    moves = [
        Move(column.name, shift.label, shift.before or 0.0, shift.after or 0.0)
        for column in columns
        for shift in column.shifts
    ]
    moved = [move for move in moves if abs(move.after - move.before) >= _NOTABLE]
    # Rounded, so that ties stay in the order of the columns whatever the last bit says.
    moved.sort(key=lambda move: -round(abs(move.after - move.before), 12))
    return tuple(moved[:_MOVES])


def _shifts(labels: Sequence[str], before: Reals, after: Reals, rows: Reals | None = None) -> tuple[Shift, ...]:
    counts = [None] * len(labels) if rows is None else rows.astype(int).tolist()
    return tuple(
        Shift(label, _known(old), _known(new), count)
        for label, old, new, count in zip(labels, before, after, counts, strict=True)
    )


def _known(share: float) -> float | None:
    return None if np.isnan(share) else float(share)
