"""Wishes: what is asked of a fair table.

Also the linear conditions that they are, and the cells that get mass.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from fairmaxent.data.table import Indices, Mask, Reals, marginal
from fairmaxent.errors import BASE_SHARE, ForbiddenError, InfeasibleError, Option
from fairmaxent.fairness.projection import (
    LEAST_ROOM,
    Conditions,
    fewest_cells,
    most_cells,
    room,
)
from fairmaxent.fairness.rates import Grouping, Levels, group_table

Cell = tuple[int, ...]
Cells = Indices
DescribeCell = Callable[[Cell], str]
Describe = Callable[[int], str]  # names a cell by its number
Targets = Mapping[int, Reals]  # wanted marginals, by axis; axis 0 is the outcome


@dataclass(frozen=True)
class GroupingWish:
    """The rates wanted for one grouping; None asks for nothing."""

    axes: Grouping
    representation: float | None  # ρ
    statistical: float | None  # σ
    apart: Mask | None = None  # groups that are not compared, whatever their levels


@dataclass(frozen=True, eq=False)
class OtherOutcome:
    """Another outcome than that of axis 0, with what is asked of it."""

    axis: int
    favourable: Levels
    statistical: tuple[float | None, ...]  # σ of each grouping
    shares: Reals | None  # c(y): None: they may move
    left_out: int | None = None  # the level that is not compared: missing values


@dataclass(frozen=True, eq=False)
class Limit:
    """How much a row may count at most."""

    # the mass of each cell if its rows count once; infinite where there are none
    rows: Reals
    largest: float  # how many times a row may count

    @property
    def ceiling(self) -> Reals:
        """The most mass that each cell may have."""
        return self.largest * self.rows


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is asked of a fair table, whatever data it starts from."""

    groupings: tuple[Grouping, ...]
    # ρ of each grouping; None asks for nothing
    representation: tuple[float | None, ...]
    statistical: tuple[float | None, ...]  # σ of each grouping
    favourable: Levels
    describe: DescribeCell
    # by axis, a level that is not compared: missing values
    left_out: Mapping[int, int] = field(default_factory=dict)
    # by grouping, other groups that are not compared; strata come last
    apart: Sequence[Mask] = ()
    # False for cells that must stay at 0; None: all are allowed
    allowed: Mask | None = None
    # probability of a cell without rows that is needed; 0: none may be needed
    fill: float = 0.0
    others: Sequence[OtherOutcome] = ()  # more outcomes, on axes of their own
    # v(y, z): the numbers of the cells, whose mean becomes equal in all groups
    values: Reals | None = None
    limit: Limit | None = None

    def without_rates(self) -> "Wanted":
        """The same, with nothing asked about rates and means."""
        nothing = (None,) * len(self.groupings)
        return replace(
            self,
            representation=nothing,
            statistical=nothing,
            others=[replace(other, statistical=nothing) for other in self.others],
            values=None,
        )


@dataclass(frozen=True, eq=False)
class Wishes:
    """What a fair table starts from, and what it must respect."""

    data: Reals  # e(y, z) without forbidden cells
    allowed: Mask
    groupings: tuple[GroupingWish, ...]
    favourable: Levels
    targets: Targets
    # by axis, the level that is not compared: missing values
    left_out: Mapping[int, int]
    fill: float  # mass that an empty cell counts with if it is needed
    describe: DescribeCell
    # Of several outcomes, rows without one are to have other masses. Those that lack
    # two cannot be in proportion to both, so each outcome then keeps sums over the
    # others, and groups that are left out keep their sizes alone.
    loose: bool = False

    @classmethod
    def of(
        cls,
        empirical: Reals,
        wanted: Wanted,
        targets: Targets,
    ) -> "Wishes":
        """Take the wanted marginals, and drop the mass of forbidden cells."""
        targets = {axis: target / np.sum(target) for axis, target in targets.items()}
        allowed = wanted.allowed
        if allowed is None:
            allowed = np.ones(empirical.shape, dtype=bool)
        _refuse_forbidden_levels(empirical, allowed, targets, wanted.describe)
        data = np.where(allowed, empirical, 0.0)
        rates = zip(
            wanted.groupings,
            wanted.representation,
            wanted.statistical,
            wanted.apart or (None,) * len(wanted.groupings),
            strict=True,
        )
        wishes = cls(
            data=data / data.sum(),
            allowed=allowed,
            groupings=tuple(GroupingWish(*rate) for rate in rates),
            favourable=wanted.favourable,
            targets=targets,
            left_out=wanted.left_out,
            fill=wanted.fill,
            describe=wanted.describe,
        )
        views = [wishes, *map(wishes.about, wanted.others)]
        if len(views) > 1 and any(view.moves_unknown for view in views):
            return replace(wishes, loose=True)
        return wishes

    def about(self, other: OtherOutcome) -> "Wishes":
        """The same about another outcome, which changes places with the first."""
        axis = other.axis
        targets = {
            at or axis: share for at, share in self.targets.items() if at != axis
        }
        if other.shares is not None:
            targets[0] = other.shares
        left_out = {
            at: level for at, level in self.left_out.items() if at not in (0, axis)
        }
        if other.left_out is not None:
            left_out[0] = other.left_out
        return replace(
            self,
            data=np.swapaxes(self.data, 0, axis),
            allowed=np.swapaxes(self.allowed, 0, axis),
            favourable=other.favourable,
            targets=targets,
            left_out=left_out,
            describe=lambda cell: self.describe(
                (cell[axis], *cell[1:axis], cell[0], *cell[axis + 1 :])
            ),
        )

    @property
    def outcomes(self) -> Reals | None:
        """c(y): the wanted share of each outcome; None: it may move."""
        return self.targets.get(0)

    @property
    def unknown_outcomes(self) -> Reals:
        """Mass of the rows without an outcome, by z.

        As it is, or in proportion if they are to have another share.
        """
        if 0 not in self.left_out:
            return np.zeros(self.data.shape[1:])
        level = self.left_out[0]
        mass = np.array(self.data[level])
        for axis in self.targets.keys() - {0}:
            np.moveaxis(mass, axis - 1, 0)[self.targets[axis] == 0] = 0.0
        total = float(mass.sum())
        if self.outcomes is None or total == 0:
            return mass
        wanted = float(self.outcomes[level])
        if math.isclose(wanted, total, rel_tol=1e-12):
            return mass
        return mass * (wanted / total)

    @property
    def moves_unknown(self) -> bool:
        """Whether rows without an outcome are to have other masses than in the data."""
        return 0 in self.left_out and not np.array_equal(
            self.unknown_outcomes, self.data[self.left_out[0]]
        )

    def targeted(self, grouping: GroupingWish) -> Grouping:
        """Axes of a grouping whose shares the user gave."""
        return tuple(axis for axis in grouping.axes if axis in self.targets)

    def groups(self, grouping: GroupingWish) -> Reals:
        """Share of each group in the data, one axis per axis of the grouping."""
        return group_table(self.data, grouping.axes).sum(axis=0)

    def skipped(self, grouping: GroupingWish) -> Mask:
        """Groups that are not compared: a level of theirs is left out, or they are."""
        shape = [self.data.shape[axis] for axis in grouping.axes]
        levels = np.indices(shape)
        left = [
            levels[number] == self.left_out.get(axis, -1)
            for number, axis in enumerate(grouping.axes)
        ]
        if grouping.apart is not None:
            left.append(grouping.apart)
        return reduce(np.logical_or, left)

    def known(self, grouping: GroupingWish) -> Mask:
        """Groups of levels with rows, or a target above 0, that are not left out."""
        levels = []
        for axis in grouping.axes:
            mass = self.targets.get(axis)
            if mass is None:
                mass = marginal(self.data, (axis,))
            levels.append(mass > 0)
        return reduce(np.logical_and.outer, levels) & ~self.skipped(grouping)

    def compared(self, grouping: GroupingWish) -> Mask:
        """Groups that a representation rate compares.

        All known ones, intersections without rows too.
        """
        allowed = group_table(self.allowed.astype(float), grouping.axes)
        return self.known(grouping) & (allowed.sum(axis=0) > 0)


def _refuse_forbidden_levels(
    empirical: Reals,
    allowed: Mask,
    targets: Targets,
    describe: DescribeCell,
) -> None:
    """A level that has rows, or a target above 0, needs at least one allowed cell."""
    for axis in range(empirical.ndim):
        others = tuple(other for other in range(empirical.ndim) if other != axis)
        if axis in targets:
            needed = targets[axis] > 0
        else:
            needed = empirical.sum(axis=others) > 0
        for level in np.flatnonzero(needed & ~allowed.any(axis=others)):
            slab = np.zeros(empirical.shape)
            np.moveaxis(slab, axis, 0)[level] = 1.0
            slab[empirical > 0] *= 2.0  # a cell with rows, if there is one
            cell = tuple(map(int, np.unravel_index(int(slab.argmax()), slab.shape)))
            raise ForbiddenError(
                "every combination with a needed level is forbidden, e.g."
                f" {describe(cell)}; remove a rule from ",
                Option("forbid"),
                ", or set this level's ",
                Option("target"),
                " to 0 to remove the level",
            )


@dataclass(frozen=True, eq=False)
class Row:
    """The mass of some cells, or their sum with positive weights, is `value` > 0."""

    cells: Mask | Reals
    value: float


@dataclass(frozen=True, eq=False)
class RateBlock:
    """Rates, linear in the cells, that are compared with each other.

    The smallest must be at least `least` times the largest.
    """

    rates: Reals  # one row per number
    least: float


def members(
    cells: Cells,
    axes: Grouping,
    group: Cells,
    first: int = 0,
) -> Mask:
    """Which cells belong to a group.

    ``cells`` name the levels of the axes from ``first`` on.
    """
    return (cells[:, [axis - first for axis in axes]] == group).all(axis=1)


def conditions_of(cells: int, asked: Sequence[Row | RateBlock]) -> Conditions:
    """Write all conditions as one record; rows that leave cells out need the total.

    Each row is divided by its value, so that errors are relative.
    """
    rows = [one for one in asked if isinstance(one, Row)]
    if not np.any([row.cells for row in rows], axis=0).all():
        rows.append(Row(np.ones(cells, dtype=bool), 1.0))
    blocks = [one for one in asked if isinstance(one, RateBlock)]
    sizes = [len(block.rates) for block in blocks]
    least = np.array([block.least for block in blocks], dtype=float)
    return Conditions(
        rows=np.array([row.cells / row.value for row in rows], dtype=float),
        values=np.ones(len(rows)),
        rates=np.vstack([np.zeros((0, cells)), *(block.rates for block in blocks)]),
        block=np.repeat(np.arange(len(blocks)), sizes),
        least=np.repeat(least, sizes),
    )


def supported(
    wishes: Wishes,
    conditions: Conditions,
    *,
    seen: Mask,
    allowed: Mask,
    floor: Reals,
    describe: Describe,
    levels: Sequence[Mask] = (),
    groups: Indices | None = None,
    lower: Callable[[Mask], str] = lambda cells: "; or lower the rate",
) -> Mask:
    """Return the cells with rows if they suffice, or also the empty ones needed.

    Some wishes can only be met if nobody in a cell counts any more: such a cell is left
    out, unless one of the ``levels`` (cells of an outcome that must not vanish) would
    lose all its cells. ``groups`` number the combination z of each cell: one without
    any rows has no outcome to prefer, so if one of its cells is opened, all are.
    ``lower`` is the end of advice: which rate can be reached in some of the cells.
    """
    if seen.all() or room(conditions.on(seen), floor[seen]) > LEAST_ROOM:
        return seen
    widest = np.zeros_like(seen)
    widest[seen] = most_cells(conditions.on(seen), floor[seen])
    if widest.any() and all((widest & level).any() for level in levels):
        return widest
    fewest = fewest_cells(conditions.on(allowed), floor[allowed], ~seen[allowed])
    if fewest is None:
        usable = allowed if wishes.fill else seen
        raise _impossible(conditions, floor, ~allowed, describe, lower(usable))
    needed = np.zeros_like(seen)
    needed[allowed] = fewest
    if wishes.fill == 0.0:
        advice: tuple[object, ...] = ()
        if any(len(wish.axes) > 1 for wish in wishes.groupings):
            advice = ("use ", Option("groups", "each"), ", ")
        raise InfeasibleError(
            "the wanted shares and rates need rows in combinations that have none: "
            f"{_list(np.flatnonzero(needed & ~seen), describe)}; set ",
            BASE_SHARE,
            " > 0 to fill them, ",
            *advice,
            "merge levels, or set small groups apart with ",
            Option("smallest_group", "2%"),
            lower(seen),
        )
    opened = seen | needed
    if groups is None:
        return opened
    unknown = ~np.isin(groups, groups[seen]) & np.isin(groups, groups[needed & ~seen])
    wide = opened | (allowed & unknown)
    pseudo = np.where(seen, floor, wishes.fill)
    if room(conditions.on(wide), pseudo[wide]) > LEAST_ROOM:
        return wide
    return opened


def _impossible(
    conditions: Conditions,
    floor: Reals,
    forbidden: Mask,
    describe: Describe,
    lower: str,
) -> InfeasibleError:
    """Name the forbidden cells that are in the way, if that is the reason."""
    needed = fewest_cells(conditions, floor, forbidden)
    if needed is None or not (needed & forbidden).any():
        return InfeasibleError(
            "no table has the wanted shares and rates without emptying a group or an"
            " outcome that has rows; lower the rates, or change ",
            Option("target"),
        )
    return InfeasibleError(
        "the wanted shares and rates need combinations that are forbidden: "
        f"{_list(np.flatnonzero(needed & forbidden), describe)}; remove a rule from ",
        Option("forbid"),
        f", or merge levels{lower}",
    )


def _list(cells: Indices, describe: Describe) -> str:
    """Name up to three cells."""
    names = "; ".join(describe(int(cell)) for cell in cells[:3])
    if len(cells) > 3:
        return f"{names} and {len(cells) - 3} more"
    return names
