"""Fair tables within strata: t(y, z, s) = P(s)·t(y, z | s), with rates of each s.

The strata are the last axes of the table. Each keeps its size P(s) and its outcomes'
shares P(y | s), so the closest table is made stratum by stratum. Shares that the user
names are about the whole table: they first become shares in each stratum, the closest
to the data's, by KL, that have the named marginal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Mask, Reals, marginal, ratio
from fairmaxent.errors import FairMaxEntError, InfeasibleError, Option
from fairmaxent.fairness.fair_table import FairTable, fair_table, refuse_low_limit
from fairmaxent.fairness.projection import LEAST_ROOM, project, room
from fairmaxent.fairness.rates import Grouping
from fairmaxent.fairness.wishes import (
    Cell,
    DescribeCell,
    Row,
    Targets,
    Wanted,
    conditions_of,
    members,
)

# axes of a table, and the shares wanted on them
Margins = Sequence[tuple[Grouping, Reals]]
_UNREACHABLE = (
    Option("target"),
    " cannot be met while every stratum keeps its size, because some strata have no"
    " rows of a level; name shares closer to those of the data, merge strata, or name"
    " their shares too",
)


@dataclass(frozen=True, eq=False)
class Stratified:
    """What is asked of a table whose last axes are strata."""

    empirical: Reals  # e(y, z, s)
    data: Reals  # the same with forbidden rows, which the shares that are kept include
    strata: int  # number of axes
    compared: Mask  # by stratum: whether its groups are; the others stay as they are
    # in every stratum that is compared; cells are those of the whole table
    wanted: Wanted
    targets: Targets  # of the whole table, by axis
    outcome_is_free: bool
    describe_stratum: DescribeCell

    def closest(self) -> FairTable:
        """Return the closest table, made of the closest table of each stratum."""
        sizes = self._sizes()
        if self.wanted.limit is not None:
            old = marginal(self.empirical, self._strata_axes)
            refuse_low_limit(self.empirical * ratio(sizes, old), self.wanted.limit)
        # P(y | s), None if it may move, and P(z | s) of the protected axes that have a
        # target; strata last.
        outcomes = None
        if not self.outcome_is_free:
            outcomes = self._within(0, self.targets.get(0), sizes)
        other_axes = [other.axis for other in self.wanted.others]
        shares = {
            axis: self._within(axis, target, sizes)
            for axis, target in self.targets.items()
            if 0 < axis < self._first and axis not in other_axes
        }
        is_product, products = self._products(sizes, outcomes, shares)
        table = np.zeros_like(self.empirical)
        table[..., is_product] = products[..., is_product]
        emptied = list[Cell]()
        needed_limits = list[float]()
        for stratum in map(tuple, np.argwhere((sizes > 0) & ~is_product).tolist()):
            part = self._stratum(stratum, sizes, outcomes, shares)
            inside: Any = (..., *stratum)
            table[inside] = part.table * sizes[stratum]
            emptied += [(*cell, *stratum) for cell in part.emptied]
            if part.needed_limit is not None:
                needed_limits.append(part.needed_limit)
        return FairTable(
            table / table.sum(),
            tuple(emptied),
            max(needed_limits, default=None),
        )

    # ------------------------------------------------------------ shares

    @property
    def _first(self) -> int:
        """The first axis of the strata."""
        return self.empirical.ndim - self.strata

    @property
    def _strata_axes(self) -> tuple[int, ...]:
        return tuple(range(self._first, self.empirical.ndim))

    def _sizes(self) -> Reals:
        """P(s): the data's, or the closest sizes with the shares that were named."""
        sizes = marginal(self.data, self._strata_axes)
        lost = (sizes > 0) & (marginal(self.empirical, self._strata_axes) == 0)
        if lost.any():
            stratum = self.describe_stratum(tuple(np.argwhere(lost)[0].tolist()))
            raise InfeasibleError(
                Option("forbid"),
                f" leaves no row in a stratum, {stratum}, which keeps its size; drop a"
                " rule",
            )
        named = [
            ((axis - self._first,), target)
            for axis, target in self.targets.items()
            if axis >= self._first
        ]
        if named:
            return rake(sizes, named, option=_UNREACHABLE)
        return sizes

    def _within(
        self,
        axis: int,
        target: Reals | None,
        sizes: Reals,
    ) -> Reals:
        """Shares of an axis in each stratum."""
        joint = marginal(self.data, (axis, *self._strata_axes))
        if target is not None:
            margins = [((0,), target), (tuple(range(1, joint.ndim)), sizes)]
            joint = rake(joint, margins, option=_UNREACHABLE)
        return ratio(joint, joint.sum(axis=0))

    # ------------------------------------------------------------ strata

    def _products(
        self,
        sizes: Reals,
        outcomes: Reals | None,
        shares: Targets,
    ) -> tuple[Mask, Reals]:
        """The strata where t(y, z | s) = P(y | s)·P(z | s) is the only answer, and t.

        That is the case for a rate of 1 if all shares are known and nothing is left out
        or forbidden.
        """
        wanted = self.wanted
        axes = tuple(range(1, self._first))
        forbids = wanted.allowed is not None and not wanted.allowed.all()
        asks_more = (
            wanted.groupings != (axes,)
            or wanted.representation != (None,)
            or wanted.statistical != (1.0,)
            or wanted.others
        )
        skips = wanted.left_out or wanted.apart
        if outcomes is None or shares or skips or forbids or asks_more:
            return np.zeros(sizes.shape, dtype=bool), self.empirical
        groups = self.empirical.sum(axis=0)
        groups = ratio(groups, groups.sum(axis=tuple(range(self._first - 1))))
        by_outcome = outcomes.reshape(len(outcomes), *(1,) * len(axes), *sizes.shape)
        cells = by_outcome * groups * sizes
        others = np.delete(outcomes, list(wanted.favourable), axis=0)
        is_sure = self.compared & (np.count_nonzero(others, axis=0) <= 1) & (sizes > 0)
        if wanted.limit is not None:
            heavy = cells > wanted.limit.ceiling
            is_sure &= ~heavy.any(axis=tuple(range(self._first)))
        if wanted.fill == 0:  # the general way names the cells that have no rows
            without_rows = (self.empirical == 0) & (cells > 0)
            is_sure &= ~without_rows.any(axis=tuple(range(self._first)))
        return is_sure, cells

    def _stratum(
        self,
        stratum: Cell,
        sizes: Reals,
        outcomes: Reals | None,
        shares: Targets,
    ) -> FairTable:
        """The fair table of one stratum; errors name it."""
        inside: Any = (..., *stratum)
        part = self.empirical[inside]
        is_compared = bool(self.compared[stratum])
        if not (is_compared or self.targets):
            return FairTable(part / part.sum(), ())
        wanted = self.wanted
        others = []
        for other in wanted.others:  # whose shares in the stratum are the data's
            if other.shares is not None:
                target = self.targets.get(other.axis)
                kept = self._within(other.axis, target, sizes)[inside]
                other = replace(other, shares=kept)
            others.append(other)
        asked = replace(
            wanted,
            fill=wanted.fill / float(sizes[stratum]),
            describe=lambda cell: wanted.describe((*cell, *stratum)),
            others=others,
            apart=[apart[inside] for apart in wanted.apart],
        )
        if wanted.allowed is not None:
            asked = replace(asked, allowed=wanted.allowed[inside])
        if wanted.values is not None:
            asked = replace(asked, values=wanted.values[inside])
        if wanted.limit is not None:
            rows = wanted.limit.rows[inside] / float(sizes[stratum])
            asked = replace(asked, limit=replace(wanted.limit, rows=rows))
        if not is_compared:
            asked = asked.without_rates()
        targets = {axis: share[inside] for axis, share in shares.items()}
        if outcomes is not None:
            targets[0] = outcomes[inside]
        try:
            return fair_table(part / part.sum(), asked, targets)
        except FairMaxEntError as problem:
            name = self.describe_stratum(stratum)
            raise type(problem)(f"within {name}: ", problem) from problem


def rake(table: Reals, margins: Margins, *, option: tuple[object, ...]) -> Reals:
    """Return the closest table, by KL, with the wanted shares on some axes.

    ``option`` says what is wrong if none is.

    >>> table = np.array([[0.2, 0.2], [0.2, 0.4]])
    >>> rake(table, [((0,), np.array([0.5, 0.5]))], option=("no",)).round(4)
    array([[0.25  , 0.25  ],
           [0.1667, 0.3333]])
    """
    cells = np.argwhere((table > 0) & _possible(table, margins))
    index = tuple(cells.T)
    rows = [
        Row(members(cells, axes, level), float(wanted[tuple(level)]))
        for axes, wanted in margins
        for level in np.argwhere(wanted > 0)
    ]
    if not all(row.cells.any() for row in rows):
        raise InfeasibleError(*option)
    conditions = conditions_of(len(cells), rows)
    if (table == 0).any() and room(conditions, table[index]) <= LEAST_ROOM:
        raise InfeasibleError(*option)
    result = np.zeros_like(table)
    result[index] = project(table[index], conditions).point
    return result / result.sum()


def _possible(table: Reals, margins: Margins) -> Mask:
    """Cells without a level whose wanted share is 0."""
    result = np.ones(table.shape, dtype=bool)
    for axes, wanted in margins:
        np.moveaxis(result, axes, range(len(axes)))[wanted == 0] = False
    return result
