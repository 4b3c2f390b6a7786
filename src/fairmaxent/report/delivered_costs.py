"""What was delivered costs each group: the costs of the fit, with shares and copies taken from what was delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import highest, tally
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.fairness.rates import group_shares, group_table
from fairmaxent.fit.costs import GroupCost
from fairmaxent.fit.facts import OutcomeShare
from fairmaxent.fit.fit import Fit
from fairmaxent.relabelling.people import root_shape
from fairmaxent.report.copies import row_values
from fairmaxent.report.delivered import Delivered

Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class DeliveredCosts:
    """Shares after are those of what was delivered, and `most_copies` of a group is about its rows.

    Copies are counted if the data are in memory: how often a real row's values come, divided by how many real rows
    have them; among old and added rows, each old one counts once more. Otherwise they are expected.
    """

    outcomes: tuple[OutcomeShare, ...]  # those that are compared
    groups: tuple[GroupCost, ...]  # none: not known for this fit
    worst_cell: GroupCost | None
    filled: float  # share of combinations of outcome and groups that nobody in the data has
    counted: bool


def delivered_costs(fit: Fit, delivered: Delivered | None, data: Any) -> DeliveredCosts:
    """Take the costs of what was delivered; None: nothing was, so they are those of the fitted distribution."""
    table = fit.distribution.root_table if delivered is None else delivered.table
    outcomes, filled, costs = _outcomes(fit, table), _filled(fit, table), fit.certificate.costs
    if costs is None:
        return DeliveredCosts(outcomes, (), None, filled, counted=False)
    if delivered is None:
        return DeliveredCosts(outcomes, costs.groups, costs.worst_cell, filled, counted=False)
    copies = _Copies.counted(fit, delivered, data)
    drawn = delivered.rows / fit.table.size
    groups: list[GroupCost] = []
    for columns, axes in fit.certificate.measure.of_first_outcome:
        shares, most = group_shares(table, axes), None if copies is None else copies.by_group(axes)
        listed = [cost for cost in costs.groups if cost.grouping == columns]
        groups += _delivered(fit, listed, axes, shares, most, drawn)
    (cell,) = _delivered(
        fit, [costs.worst_cell], tuple(range(table.ndim)), table, None if copies is None else copies.cells, drawn
    )
    return DeliveredCosts(outcomes, tuple(groups), cell, filled, counted=copies is not None)


def _delivered(
    fit: Fit, costs: Sequence[GroupCost], axes: tuple[int, ...], shares: Reals, most: Reals | None, drawn: float
) -> Iterator[GroupCost]:
    """Replace what is expected by what was delivered; ``drawn`` is how many rows were, for each row of the data."""
    cells = {fit.roles.describe_group(axes, cell): cell for cell in np.ndindex(shares.shape)}
    for cost in costs:
        cell = cells[cost.name]
        copies = cost.most_copies * drawn if most is None else float(most[cell])
        yield replace(cost, after=float(shares[cell]), most_copies=copies)


def _outcomes(fit: Fit, table: Reals) -> tuple[OutcomeShare, ...]:
    certificate = fit.certificate
    measure = certificate.measure
    levels = [(0, level) for level in measure.favourable]
    levels += [(axis, level) for axis, favourable in measure.others for level in favourable]
    return tuple(
        replace(share, after=float(group_table(np.swapaxes(table, 0, axis), ())[level]))
        for (axis, level), share in zip(levels, certificate.compared_outcomes, strict=False)
    )


def _filled(fit: Fit, table: Reals) -> float:
    names = set(fit.certificate.filled_cells)
    cells = np.ndindex(table.shape) if names else ()
    return float(sum(table[cell] for cell in cells if fit.roles.describe_cell(cell) in names))


@dataclass(frozen=True, eq=False)
class _Copies:
    """The most copies of one person, in each cell (y, z) and each group z, one axis per column."""

    cells: Reals
    groups: Reals

    @classmethod
    def counted(cls, fit: Fit, delivered: Delivered, data: Any) -> _Copies | None:
        """Count copies of real rows among all delivered rows; a relabelled copy may have any outcome."""
        codes = delivered.codes
        if data is None or open_lazy(data) is not None or codes is None or len(codes) < delivered.rows:
            return None
        shape, (_, groups) = fit.roles.blocks.shape(0), root_shape(fit.roles.blocks)
        once = 1.0 if delivered.mode == "top-up" else 0.0
        if not len(codes):
            return cls(np.full(shape, once), np.full(shape[1:], once))
        names = [name for name in fit.domain.names if fit.soft is None or name != fit.roles.names[0]]
        real, new = row_values(data, delivered.frame, names)
        people = tally(real, None, int(max(real.max(), new.max())) + 1)
        root = codes[:, 0].astype(np.intp)
        return cls(
            (once + _most(new, root, people, int(np.prod(shape)))).reshape(shape),
            (once + _most(new, root % groups, people, groups)).reshape(shape[1:]),
        )

    def by_group(self, axes: tuple[int, ...]) -> Reals:
        """The most copies in each group of a grouping."""
        others = tuple(axis for axis in range(self.groups.ndim) if axis + 1 not in axes)
        return np.asarray(self.groups.max(axis=others))


def _most(values: Numbers, cells: Numbers, people: Reals, size: int) -> Reals:
    """The most copies of one person in each cell: how often equal values come, shared by the people who have them."""
    pairs, counts = np.unique(cells * len(people) + values, return_counts=True)
    sharing = people[pairs % len(people)]
    copies = np.divide(counts, sharing, out=np.zeros(len(counts)), where=sharing > 0)
    return highest(pairs // len(people), copies, size)
