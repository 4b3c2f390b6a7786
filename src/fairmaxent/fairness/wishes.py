"""Wishes: what is asked of a fair table, the linear conditions that they are, and the
cells that get mass.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from fairmaxent.data.table import Indices, Mask, Reals
from fairmaxent.errors import BASE_SHARE, ForbiddenError, InfeasibleError, Option
from fairmaxent.fairness.projection import (
    LEAST_ROOM,
    Conditions,
    fewest_cells,
    most_cells,
    room,
)
from fairmaxent.fairness.rates import Grouping, group_table

Cell = tuple[int, ...]
Cells = Indices


@dataclass(frozen=True)
class GroupingWish:
    """The rates wanted for one grouping; None asks for nothing."""

    axes: Grouping
    representation: float | None  # ρ
    statistical: float | None  # σ


@dataclass(frozen=True, eq=False)
class OtherOutcome:
    """Another outcome than that of axis 0, with what is asked of it."""

    axis: int
    favourable: tuple[int, ...]
    statistical: tuple[float | None, ...]  # σ of each grouping
    shares: Reals | None  # c(y): None: they may move
    left_out: int | None = None  # the level that is not compared: missing values


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is asked of a fair table, whatever data it starts from."""

    groupings: tuple[Grouping, ...]
    # ρ of each grouping; None asks for nothing
    representation: tuple[float | None, ...]
    statistical: tuple[float | None, ...]  # σ of each grouping
    favourable: tuple[int, ...]
    describe: Callable[[Cell], str]
    # by axis, a level that is not compared: missing values
    left_out: Mapping[int, int] = field(default_factory=dict)
    # False for cells that must stay at 0; None: all are allowed
    allowed: Mask | None = None
    # probability that a cell without rows counts with if it is needed; 0: it must not
    # be needed
    fill: float = 0.0
    others: Sequence[OtherOutcome] = ()  # more outcomes, on axes of their own
    # v(y, z): the numbers that the cells stand for, whose mean becomes equal in all
    # groups
    values: Reals | None = None


@dataclass(frozen=True, eq=False)
class Wishes:
    """What a fair table starts from, and what it must respect."""

    data: Reals  # e(y, z) without forbidden cells
    allowed: Mask
    groupings: tuple[GroupingWish, ...]
    favourable: tuple[int, ...]
    targets: Mapping[int, Reals]  # wanted marginals, by axis; axis 0 is the outcome
    # by axis, the level that is not compared: missing values
    left_out: Mapping[int, int]
    fill: float  # mass that an empty cell counts with if it is needed
    describe: Callable[[Cell], str]
    # Of several outcomes, rows without one are to have other masses. Those that lack
    # two cannot be in proportion to both, so each outcome then keeps sums over the
    # others, and groups that are left out keep their sizes alone.
    loose: bool = False

    @classmethod
    def of(
        cls, empirical: Reals, wanted: Wanted, targets: Mapping[int, Reals]
    ) -> "Wishes":
        """Take the wanted marginals, and drop the mass of forbidden cells."""
        targets = {
            axis: np.asarray(target / np.sum(target))
            for axis, target in targets.items()
        }
        if wanted.allowed is None:
            allowed = np.ones(empirical.shape, dtype=bool)
        else:
            allowed = wanted.allowed
        _refuse_forbidden_levels(empirical, allowed, targets, wanted.describe)
        data = np.where(allowed, empirical, 0.0)
        kept = (wanted.left_out, wanted.fill, wanted.describe)
        groupings = tuple(
            map(
                GroupingWish,
                wanted.groupings,
                wanted.representation,
                wanted.statistical,
            )
        )
        wishes = cls(
            data / data.sum(), allowed, groupings, wanted.favourable, targets, *kept
        )
        loose = wanted.others and any(
            view.moves_unknown for view in (wishes, *map(wishes.about, wanted.others))
        )
        if loose:
            return replace(wishes, loose=True)
        return wishes

    def about(self, other: OtherOutcome) -> "Wishes":
        """Return the same wishes as wishes about another outcome, which changes places
        with the first.
        """
        axis = other.axis
        targets = {
            at or axis: share for at, share in self.targets.items() if at != axis
        }
        left_out = {
            at: level for at, level in self.left_out.items() if at not in (0, axis)
        }
        return replace(
            self,
            data=np.swapaxes(self.data, 0, axis),
            allowed=np.swapaxes(self.allowed, 0, axis),
            favourable=other.favourable,
            targets=targets if other.shares is None else {**targets, 0: other.shares},
            left_out=(
                left_out if other.left_out is None else {**left_out, 0: other.left_out}
            ),
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
        """Mass of the rows without an outcome, by z: as it is, or in proportion if they
        are to have another share.
        """
        if 0 not in self.left_out:
            return np.zeros(self.data.shape[1:])
        level = self.left_out[0]
        mass = self.data[self.left_out[0]].copy()
        for axis in self.targets.keys() - {0}:
            np.moveaxis(mass, axis - 1, 0)[self.targets[axis] == 0] = 0.0
        total = float(mass.sum())
        if self.outcomes is None:
            wanted = total
        else:
            wanted = float(self.outcomes[level])
        unchanged = total == 0 or math.isclose(wanted, total, rel_tol=1e-12)
        return np.asarray(mass if unchanged else mass * (wanted / total))

    @property
    def moves_unknown(self) -> bool:
        """Whether the rows without an outcome are to have other masses than in the
        data.
        """
        return 0 in self.left_out and not np.array_equal(
            self.unknown_outcomes, self.data[self.left_out[0]]
        )

    def targeted(self, grouping: GroupingWish) -> Grouping:
        """Axes of a grouping whose shares the user gave."""
        return tuple(axis for axis in grouping.axes if axis in self.targets)

    def groups(self, grouping: GroupingWish) -> Reals:
        """Share of each group in the data, one axis per axis of the grouping."""
        return np.asarray(group_table(self.data, grouping.axes).sum(axis=0))

    def skipped(self, grouping: GroupingWish) -> Mask:
        """Groups that are not compared, because a level of theirs is left out."""
        shape = [self.data.shape[axis] for axis in grouping.axes]
        levels = np.indices(shape)
        left = [
            levels[number] == self.left_out.get(axis, -1)
            for number, axis in enumerate(grouping.axes)
        ]
        return np.asarray(reduce(np.logical_or, left))

    def known(self, grouping: GroupingWish) -> Mask:
        """Groups of levels that have rows, or a target above 0, and are not left
        out.
        """
        others = tuple(range(1, self.data.ndim))
        levels = [
            (
                self.targets[axis]
                if axis in self.targets
                else np.moveaxis(self.data, axis, 0).sum(axis=others)
            )
            > 0
            for axis in grouping.axes
        ]
        return np.asarray(reduce(np.logical_and.outer, levels)) & ~self.skipped(
            grouping
        )

    def compared(self, grouping: GroupingWish) -> Mask:
        """Groups that a representation rate compares: all known ones, intersections
        without rows too.
        """
        open_cells = (
            group_table(self.allowed.astype(float), grouping.axes).sum(axis=0) > 0
        )
        return np.asarray(self.known(grouping) & open_cells)


def _refuse_forbidden_levels(
    empirical: Reals,
    allowed: Mask,
    targets: Mapping[int, Reals],
    describe: Callable[[Cell], str],
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
class Block:
    """Numbers, linear in the cells, of which the smallest must be at least `least`
    times the largest.
    """

    rates: Reals  # one row per number
    least: float


def members(cells: Cells, axes: Grouping, group: Cells, first: int = 0) -> Mask:
    """Which cells belong to a group; ``cells`` name the levels of the axes from
    ``first`` on.
    """
    return np.asarray((cells[:, [axis - first for axis in axes]] == group).all(axis=1))


def conditions_of(cells: int, rows: list[Row], blocks: list[Block]) -> Conditions:
    """Write all conditions as one record; each row is divided by its value, so that
    errors are relative.
    """
    sizes = [len(block.rates) for block in blocks]
    matrix = np.array([row.cells / row.value for row in rows], dtype=float).reshape(
        len(rows), cells
    )
    return Conditions(
        matrix,
        np.ones(len(rows)),
        np.vstack([np.zeros((0, cells)), *(block.rates for block in blocks)]),
        np.repeat(np.arange(len(blocks)), sizes),
        np.repeat(np.array([block.least for block in blocks], dtype=float), sizes),
    )


def supported(
    conditions: Conditions,
    *,
    seen: Mask,
    allowed: Mask,
    floor: Reals,
    fill: float,
    describe: Callable[[int], str],
    joint: bool,
    levels: Sequence[Mask] = (),
    groups: Indices | None = None,
) -> Mask:
    """Return the cells with rows if they suffice, otherwise also the empty ones that
    are needed.

    Some wishes can only be met if nobody in a cell counts any more: such a cell is left
    out, unless one of the ``levels`` (cells of an outcome that must not vanish) would
    lose all its cells. ``groups`` number the combination z of each cell: one without
    any rows has no outcome to prefer, so if one of its cells is opened, all are.
    """
    if seen.all() or room(conditions.on(seen), floor[seen]) > LEAST_ROOM:
        return seen
    widest = np.zeros_like(seen)
    widest[seen] = most_cells(conditions.on(seen), floor[seen])
    if widest.any() and all((widest & level).any() for level in levels):
        return widest
    fewest = fewest_cells(conditions.on(allowed), floor[allowed], ~seen[allowed])
    if fewest is None:
        raise _impossible(conditions, floor, ~allowed, describe)
    needed = np.zeros_like(seen)
    needed[allowed] = fewest
    if fill == 0.0:
        raise InfeasibleError(
            "the wanted shares and rates need rows in combinations that have none: "
            f"{_list(np.flatnonzero(needed & ~seen), describe)}; set ",
            BASE_SHARE,
            " > 0 to fill them, merge levels, ",
            *(
                ("lower the rate, or use ", Option("groups", "each"))
                if joint
                else ("or lower the rate",)
            ),
        )
    opened = seen | needed
    if groups is None:
        return opened
    unknown = ~np.isin(groups, groups[seen]) & np.isin(groups, groups[needed & ~seen])
    wide = opened | (allowed & unknown)
    pseudo = np.where(seen, floor, fill)
    return wide if room(conditions.on(wide), pseudo[wide]) > LEAST_ROOM else opened


def _impossible(
    conditions: Conditions,
    floor: Reals,
    forbidden: Mask,
    describe: Callable[[int], str],
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
        ", merge levels, or lower the rate",
    )


def _list(cells: Indices, describe: Callable[[int], str]) -> str:
    """Name up to three cells."""
    names = [describe(int(cell)) for cell in cells[:3]]
    return "; ".join(names) + (f" and {len(cells) - 3} more" if len(cells) > 3 else "")
