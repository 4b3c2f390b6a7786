"""Group shares: how large each group should be.

Shares that the wishes fix are known beforehand: the user's own, the data's if nothing
is asked for, equal ones at a representation rate of 1. The others are free within their
rate, and `closest_shares` takes those of all groupings from one convex program on the
combinations z that have rows: the closest s(z) to the data's, by KL(s‖e).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Mask, Reals, marginal
from fairmaxent.fairness.projection import project
from fairmaxent.fairness.wishes import (
    Cell,
    Cells,
    GroupingWish,
    RateBlock,
    Row,
    Wishes,
    conditions_of,
    members,
    supported,
)


@dataclass(frozen=True, eq=False)
class GroupShares:
    """The groups of one grouping with their wanted shares."""

    wish: GroupingWish
    # one axis per axis of the grouping; None: free within the representation rate
    shares: Reals | None
    compared: Mask  # groups whose outcomes are compared


def fixed_shares(wishes: Wishes, wish: GroupingWish) -> GroupShares:
    """Return the shares of a grouping as far as the wishes fix them."""
    data = wishes.groups(wish)
    skipped = wishes.skipped(wish)
    targeted = wishes.targeted(wish)
    shares = None
    if targeted:
        if len(wish.axes) == 1:
            shares = wishes.targets[targeted[0]]
    elif wish.representation is None:
        shares = data
    elif wish.representation == 1:
        equal = wishes.compared(wish)
        share = equal * (1 - data[skipped].sum()) / max(equal.sum(), 1)
        shares = np.where(skipped, data, share)
    if shares is None:
        return GroupShares(wish, None, wishes.known(wish))
    return GroupShares(wish, shares, (shares > 0) & ~skipped)


def closest_shares(wishes: Wishes, groupings: list[GroupShares]) -> list[GroupShares]:
    """Fix the free shares of all groupings by the closest s(z) to the data's.

    This is step 1 of the two steps.
    """
    if all(known.shares is not None for known in groupings):
        return groupings
    data = wishes.data.sum(axis=0)
    # A combination without rows counts with the mass of its cells, if they are filled.
    opened = wishes.allowed.sum(axis=0)
    combinations = np.ones(data.shape, dtype=bool)
    for axis in wishes.targets.keys() - {0}:  # a level whose target is 0 is removed
        np.moveaxis(combinations, axis - 1, 0)[wishes.targets[axis] == 0] = False
    cells = np.argwhere(combinations)
    asked: list[Row | RateBlock] = [
        Row(np.ones(len(cells), dtype=bool), 1.0),
        *share_rows(wishes, groupings, cells, first=1),
        *representation_blocks(wishes, groupings, cells, first=1),
    ]
    index = tuple(cells.T)
    seen = data[index]

    def describe(number: int) -> str:  # by an allowed cell of the combination
        group = tuple(cells[number].tolist())
        allowed = np.moveaxis(wishes.allowed, 0, -1)[group]
        return wishes.describe((int(allowed.argmax()), *group))

    conditions = conditions_of(len(cells), asked)
    support = supported(
        wishes,
        conditions,
        seen=seen > 0,
        allowed=opened[index] > 0,
        floor=seen,
        describe=describe,
    )
    prior = np.where(seen > 0, seen, wishes.fill * opened[index])[support]
    point = project(prior, conditions.on(support).settled()).point
    shares = np.zeros(data.shape)
    shares[tuple(cells[support].T)] = point
    shares /= shares.sum()
    result = []
    for known in groupings:
        if known.shares is None:
            # a grouping names its axes in ascending order
            summed = marginal(shares, [axis - 1 for axis in known.wish.axes])
            compared = (summed > 0) & ~wishes.skipped(known.wish)
            known = GroupShares(known.wish, summed, compared)
        result.append(known)
    return result


def share_rows(
    wishes: Wishes,
    groupings: list[GroupShares],
    cells: Cells,
    *,
    first: int,
) -> Iterator[Row]:
    """Conditions on group shares: fixed, targeted, left out.

    ``cells`` name the levels of axes from ``first`` on.
    """
    named: set[int] = set()
    for known in groupings:
        axes = known.wish.axes
        if known.shares is not None:
            kept = known.shares
            if len(axes) == 1:
                named |= set(axes)
        elif not wishes.targeted(known.wish):
            # groups that are left out have the data's shares
            kept = np.where(wishes.skipped(known.wish), wishes.groups(known.wish), 0.0)
        else:
            continue
        for group in np.argwhere(kept > 0):
            inside = members(cells, axes, group, first)
            yield Row(inside, float(kept[tuple(group)]))
    for axis in sorted(wishes.targets.keys() - named - {0}):
        target = wishes.targets[axis]
        for level in np.flatnonzero(target > 0):
            yield Row(cells[:, axis - first] == level, float(target[level]))


def representation_blocks(
    wishes: Wishes,
    groupings: list[GroupShares],
    cells: Cells,
    *,
    first: int,
) -> Iterator[RateBlock]:
    """One block per grouping with free shares.

    With targets, one for each combination of the targeted levels.
    """
    for known in groupings:
        rate = known.wish.representation
        if known.shares is not None or rate is None:
            continue
        targeted = [axis in wishes.targets for axis in known.wish.axes]
        within: dict[Cell, list[Reals]] = {}
        for group in np.argwhere(wishes.compared(known.wish)):
            inside = members(cells, known.wish.axes, group, first)
            levels = tuple(group[targeted].tolist())
            within.setdefault(levels, []).append(inside.astype(float))
        for rates in within.values():
            if len(rates) > 1:
                yield RateBlock(np.array(rates), rate)
