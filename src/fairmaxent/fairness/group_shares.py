"""Group shares: how large each group of a grouping should be.

Shares that the wishes fix are known beforehand: the user's own, the data's if nothing is asked for, equal ones at a
representation rate of 1. The others are free within their rate, and `closest_shares` takes those of all groupings from
one convex program on the combinations z that have rows: the closest s(z) to the data's, by KL(s‖e).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.fairness.projection import project
from fairmaxent.fairness.wishes import Block, Cells, GroupingWish, Row, Wishes, conditions_of, members, supported


@dataclass(frozen=True, eq=False)
class GroupShares:
    """The groups of one grouping with their wanted shares."""

    wish: GroupingWish
    shares: Reals | None  # one axis per axis of the grouping; None: free within the representation rate
    compared: Mask  # groups whose outcomes are compared


def fixed_shares(wishes: Wishes, wish: GroupingWish) -> GroupShares:
    """Return the shares of a grouping as far as the wishes fix them."""
    data, skipped = wishes.groups(wish), wishes.skipped(wish)
    targeted = wishes.targeted(wish)
    shares = None
    if targeted:
        shares = wishes.targets[targeted[0]] if len(wish.axes) == 1 else None
    elif wish.representation is None:
        shares = data
    elif wish.representation == 1:
        equal = wishes.compared(wish)
        shares = np.where(skipped, data, equal * (1 - data[skipped].sum()) / max(equal.sum(), 1))
    known = wishes.known(wish)
    return GroupShares(wish, shares, known if shares is None else np.asarray((shares > 0) & ~skipped))


def closest_shares(wishes: Wishes, groupings: list[GroupShares]) -> list[GroupShares]:
    """Fix the free shares of all groupings by the closest s(z) to the data's (step 1 of the two steps)."""
    if all(known.shares is not None for known in groupings):
        return groupings
    data = wishes.data.sum(axis=0)
    # A combination without rows counts with the mass that filling its cells would give it.
    opened = wishes.allowed.sum(axis=0)
    cells = np.argwhere(_wanted_combinations(wishes))
    rows = [Row(np.ones(len(cells), dtype=bool), 1.0), *share_rows(wishes, groupings, cells, first=1)]
    blocks = representation_blocks(wishes, groupings, cells, first=1)
    index = tuple(cells.T)
    seen = data[index]
    conditions = conditions_of(len(cells), rows, blocks)
    support = supported(
        conditions,
        seen=seen > 0,
        allowed=opened[index] > 0,
        floor=seen,
        fill=wishes.fill,
        describe=lambda number: wishes.describe(_some_cell(wishes, cells[number])),
        joint=any(len(known.wish.axes) > 1 for known in groupings),
    )
    prior = np.where(seen > 0, seen, wishes.fill * opened[index])[support]
    shares = np.zeros(data.shape)
    shares[tuple(cells[support].T)] = project(prior, conditions.on(support).settled()).point
    return [_summed(wishes, known, shares / shares.sum()) for known in groupings]


def _wanted_combinations(wishes: Wishes) -> Mask:
    """Combinations z without a level whose target is 0: such a level is removed."""
    wanted = np.ones(wishes.data.shape[1:], dtype=bool)
    for axis in wishes.targets.keys() - {0}:
        np.moveaxis(wanted, axis - 1, 0)[wishes.targets[axis] == 0] = False
    return wanted


def _some_cell(wishes: Wishes, group: Cells) -> tuple[int, ...]:
    """An allowed cell of a combination z, to name it by."""
    outcomes = np.flatnonzero(wishes.allowed[(slice(None), *group)])
    return (int(outcomes[0]) if len(outcomes) else 0, *(int(level) for level in group))


def _summed(wishes: Wishes, known: GroupShares, shares: Reals) -> GroupShares:
    if known.shares is not None:
        return known
    axes = tuple(axis - 1 for axis in known.wish.axes)
    others = tuple(axis for axis in range(shares.ndim) if axis not in axes)
    summed = np.asarray(shares.sum(axis=others))  # a grouping names its axes in ascending order
    return GroupShares(known.wish, summed, np.asarray((summed > 0) & ~wishes.skipped(known.wish)))


def share_rows(wishes: Wishes, groupings: list[GroupShares], cells: Cells, *, first: int) -> list[Row]:
    """Conditions on group shares: those that are fixed, the user's targets, and groups that are left out.

    ``cells`` name the levels of the axes from ``first`` on.
    """
    rows: list[Row] = []
    named: set[int] = set()
    for known in groupings:
        if known.shares is not None:
            rows += [
                Row(members(cells, known.wish.axes, group, first), float(known.shares[tuple(group)]))
                for group in np.argwhere(known.shares > 0)
            ]
            named |= set(known.wish.axes) if len(known.wish.axes) == 1 else set()
        elif not wishes.targeted(known.wish):
            data = wishes.groups(known.wish)
            rows += [
                Row(members(cells, known.wish.axes, group, first), float(data[tuple(group)]))
                for group in np.argwhere(wishes.skipped(known.wish) & (data > 0))
            ]
    for axis in sorted(wishes.targets.keys() - named - {0}):
        rows += [
            Row(cells[:, axis - first] == level, float(wishes.targets[axis][level]))
            for level in np.flatnonzero(wishes.targets[axis] > 0)
        ]
    return rows


def representation_blocks(wishes: Wishes, groupings: list[GroupShares], cells: Cells, *, first: int) -> list[Block]:
    """One block per grouping with free shares; with targets, one for each combination of the targeted levels."""
    blocks = []
    for known in groupings:
        rate = known.wish.representation
        if known.shares is not None or rate is None:
            continue
        compared = np.argwhere(wishes.compared(known.wish))
        targeted = [number for number, axis in enumerate(known.wish.axes) if axis in wishes.targets]
        within: dict[tuple[int, ...], list[Reals]] = {}
        for group in compared:
            inside = members(cells, known.wish.axes, group, first)
            within.setdefault(tuple(map(int, group[targeted])), []).append(inside.astype(float))
        blocks += [Block(np.array(rates), rate) for rates in within.values() if len(rates) > 1]
    return blocks
