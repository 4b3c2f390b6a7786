"""Conditions: what the wishes about outcomes and groups mean for a table's cells."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.fairness.projection import Conditions
from fairmaxent.fairness.rates import group_table
from fairmaxent.fairness.shares import (
    GroupShares,
    representation_blocks,
    share_rows,
)
from fairmaxent.fairness.wishes import (
    Cell,
    Cells,
    RateBlock,
    Row,
    Wanted,
    Wishes,
    conditions_of,
    members,
)

_NOTHING = 1e-15  # a share that is a rounding error


def is_linear(wishes: Wishes, known: GroupShares) -> bool:
    """Whether the wishes about the outcomes of some groups are linear in t."""
    rate = known.wish.statistical
    if known.shares is not None or rate is None:
        return True
    return rate == 1 and _common_rates(wishes, known) is not None


def each_outcome(
    wishes: Wishes, groups: list[GroupShares], wanted: Wanted
) -> Iterator[tuple[Wishes, list[GroupShares], int]]:
    """The wishes about each outcome, as if it were that of axis 0, and its axis.

    The two outcomes change places.
    """
    yield wishes, groups, 0
    for other in wanted.others:
        known = [
            replace(one, wish=replace(one.wish, statistical=rate))
            for one, rate in zip(groups, other.statistical, strict=True)
        ]
        yield wishes.about(other), known, other.axis


def _keeps_left_out(wishes: Wishes, known: GroupShares) -> bool:
    """Whether groups that are left out keep the outcomes that they have in the data."""
    if wishes.targeted(known.wish) or wishes.loose:
        return False
    left = _left_out(wishes, known)
    if wishes.moves_unknown and left[wishes.left_out[0]]:
        return False
    return wishes.outcomes is None or bool((wishes.outcomes >= left - _NOTHING).all())


def _left_out(wishes: Wishes, known: GroupShares) -> Reals:
    """Mass of each outcome in the groups that are left out."""
    by_group = group_table(wishes.data, known.wish.axes)
    return by_group[:, wishes.skipped(known.wish)].sum(axis=1)


def _common_rates(wishes: Wishes, known: GroupShares) -> Reals | None:
    """c(y): the rate of each outcome in all groups compared, if it must be equal.

    None: it is not fixed.
    """
    if wishes.outcomes is None:
        return None
    left = _left_out(wishes, known)
    if left.any() and not _keeps_left_out(wishes, known):
        return None
    mass = np.maximum(wishes.outcomes - left, 0.0)
    mass[mass <= _NOTHING] = 0.0
    if 0 in wishes.left_out:
        mass[wishes.left_out[0]] = 0.0
    if not mass.any():  # nobody is left who has an outcome
        return None
    return mass / mass.sum()


def _compared_outcomes(wishes: Wishes) -> list[int]:
    return [
        outcome for outcome in wishes.favourable if outcome != wishes.left_out.get(0)
    ]


def possible_cells(wishes: Wishes, groups: list[GroupShares]) -> Mask:
    """Cells whose groups and outcome may have a share.

    Also forbidden cells, so that they can be named.
    """
    outcomes = wishes.outcomes
    if outcomes is None:
        outcomes = group_table(wishes.data, ())
    possible = np.zeros(wishes.data.shape, dtype=bool)
    possible[outcomes > 0] = True
    if 0 in wishes.left_out:
        possible[wishes.left_out[0]] = wishes.unknown_outcomes > 0
    for axis, target in wishes.targets.items():
        np.moveaxis(possible, axis, 0)[target == 0] = False
    for known in groups:
        front = np.moveaxis(
            possible, (0, *known.wish.axes), range(len(known.wish.axes) + 1)
        )
        if known.shares is not None:
            front[:, known.shares == 0] = False
        skipped = wishes.skipped(known.wish)
        if skipped.any() and _keeps_left_out(wishes, known):
            front[(group_table(wishes.data, known.wish.axes) == 0) & skipped] = False
        if known.wish.statistical is None:
            continue
        common = _common_rates(wishes, known)
        if common is not None:
            for outcome in _compared_outcomes(wishes):
                if common[outcome] == 0:
                    front[outcome, known.compared] = False
    return possible


def table_conditions(
    wishes: Wishes,
    groups: list[GroupShares],
    cells: Cells,
    wanted: Wanted,
) -> Conditions:
    """All wishes as conditions on the cells."""
    asked: list[Row | RateBlock] = []
    asked += share_conditions(wishes, groups, cells, wanted)
    asked += representation_blocks(
        wishes,
        groups,
        cells,
        first=0,
    )
    for about, known, axis in each_outcome(wishes, groups, wanted):
        asked += _rate_conditions(about, known, turned(cells, axis))
    if wanted.values is not None:
        for known_shares in groups:
            sizes = _sizes(wishes, known_shares)
            asked += mean_rows(wishes, known_shares, cells, wanted.values, sizes)
    return conditions_of(len(cells), asked)


def share_conditions(
    wishes: Wishes,
    groups: list[GroupShares],
    cells: Cells,
    wanted: Wanted,
) -> list[Row]:
    """The shares that are wished for, of outcomes and of groups."""
    summed: Cell = ()
    if wishes.loose:
        summed = tuple(other.axis for other in wanted.others)
    asked: list[Row] = []
    for about, _, axis in each_outcome(wishes, groups, wanted):
        asked += _outcome_rows(about, turned(cells, axis), summed)
    asked += share_rows(
        wishes,
        groups,
        cells,
        first=0,
    )
    return asked


def turned(cells: Cells, axis: int) -> Cells:
    """The cells with the outcome of an axis in the place of the first."""
    result = cells.copy()
    result[:, [0, axis]] = cells[:, [axis, 0]]
    return result


def _rate_conditions(
    wishes: Wishes, groups: list[GroupShares], cells: Cells
) -> Iterator[Row | RateBlock]:
    """Conditions on the rates of the outcome of axis 0."""
    for known in groups:
        yield from left_out_rows(wishes, known, cells)
        if known.wish.statistical is None:
            continue
        if known.shares is None:
            yield from _blocks_within_groups(wishes, known, cells)
            continue
        common = None
        if known.wish.statistical == 1:
            common = _common_rates(wishes, known)
        yield from compared_rates(wishes, known, cells, _sizes(wishes, known), common)


def mean_rows(
    wishes: Wishes,
    known: GroupShares,
    cells: Cells,
    values: Reals,
    sizes: Reals,
) -> Iterator[Row]:
    """Σ v(c)·t(c) over a group is the mean of all groups compared, times its size.

    Rows without an outcome are left.
    """
    numbers = values[tuple(cells.T)]
    left_out = cells[:, 0] == wishes.left_out.get(0, -1)
    counted = np.isfinite(numbers) & ~left_out
    # Values are shifted and scaled to lie between 1 and 2: conditions are about masses,
    # which are positive. A missing outcome that is compared has a share that may move,
    # and no number: with that of the mean it moves none.
    low = float(np.min(numbers[counted]))
    high = float(np.max(numbers[counted]))
    span = max(high - low, np.finfo(float).tiny)
    scaled = np.where(counted, 1 + (numbers - low) / span, 0.0)
    groups = [
        (group, members(cells, known.wish.axes, group))
        for group in np.argwhere(known.compared)
    ]
    is_compared = np.any([inside for _, inside in groups], axis=0)
    mass = wishes.data[tuple(cells.T)] * counted * is_compared
    mean = float((mass * scaled).sum() / mass.sum())
    scaled[~counted & ~left_out] = mean
    for group, inside in groups:
        yield Row(scaled * inside, float(sizes[tuple(group)]) * mean)


def _outcome_rows(wishes: Wishes, cells: Cells, summed: Cell) -> Iterator[Row]:
    """Each outcome has its share.

    Each combination z, but for the axes `summed`, keeps the rows without an outcome.
    """
    if wishes.outcomes is not None:
        for outcome in np.flatnonzero(wishes.outcomes > 0):
            yield Row(cells[:, 0] == outcome, float(wishes.outcomes[outcome]))
    if 0 in wishes.left_out:
        unknown = wishes.unknown_outcomes.sum(axis=tuple(axis - 1 for axis in summed))
        axes = tuple(axis for axis in range(1, cells.shape[1]) if axis not in summed)
        without = cells[:, 0] == wishes.left_out[0]
        for group in dict.fromkeys(map(tuple, cells[without][:, axes].tolist())):
            inside = without & members(cells, axes, np.array(group))
            yield Row(inside, float(unknown[group]))


def left_out_rows(wishes: Wishes, known: GroupShares, cells: Cells) -> Iterator[Row]:
    """Groups that are not compared keep the outcomes that they have in the data."""
    if not _keeps_left_out(wishes, known):
        return
    by_group = group_table(wishes.data, known.wish.axes)
    for cell in np.argwhere((by_group > 0) & wishes.skipped(known.wish)):
        inside = members(cells, (0, *known.wish.axes), cell)
        yield Row(inside, float(by_group[tuple(cell)]))


def compared_rates(
    wishes: Wishes,
    known: GroupShares,
    cells: Cells,
    sizes: Reals,
    common: Reals | None,
) -> Iterator[Row | RateBlock]:
    """P(y | g) of each compared outcome, given the groups' sizes.

    Equal to c(y) if that is fixed, or a block.
    """
    for outcome in _compared_outcomes(wishes):
        rates = []
        for group in np.argwhere(known.compared):
            size = float(sizes[tuple(group)])
            inside = members(cells, (0, *known.wish.axes), np.array([outcome, *group]))
            if common is not None and common[outcome] > 0:
                yield Row(inside, size * float(common[outcome]))
            rates.append(inside / size)
        if common is None and len(rates) > 1 and np.any(rates):
            yield RateBlock(np.array(rates), float(known.wish.statistical or 0.0))


def _blocks_within_groups(
    wishes: Wishes, known: GroupShares, cells: Cells
) -> Iterator[RateBlock]:
    """t(y, g) = c(y)·t(g) without knowing t(g): t(y, g) / c(y) is the same for all.

    Those not compared count as one.
    """
    common = _common_rates(wishes, known)
    assert common is not None
    compared = [
        outcome for outcome in _compared_outcomes(wishes) if common[outcome] > 0
    ]
    others = [outcome for outcome in np.flatnonzero(common) if outcome not in compared]
    parts = [np.array([outcome]) for outcome in compared]
    if others:
        parts.append(np.array(others))
    for group in np.argwhere(known.compared):
        inside = members(cells, known.wish.axes, group)
        rates = [
            inside * np.isin(cells[:, 0], part) / common[part].sum() for part in parts
        ]
        if len(rates) > 1 and np.any(rates):
            yield RateBlock(np.array(rates), 1.0)


def _sizes(wishes: Wishes, known: GroupShares) -> Reals:
    """Mass of the rows with an outcome in each group; those compared must have some."""
    assert known.shares is not None
    axes = known.wish.axes
    unknown = group_table(wishes.unknown_outcomes[None], axes)[0]
    sizes = known.shares - unknown
    too_small = np.argwhere(known.compared & (sizes <= _NOTHING))
    if not len(too_small):
        return sizes
    slab = np.zeros(wishes.data.shape, dtype=bool)
    np.moveaxis(slab, axes, range(len(axes)))[tuple(too_small[0])] = True
    cell = tuple(np.argwhere(slab)[0].tolist())
    if 0 not in wishes.left_out:
        raise InfeasibleError(
            "nearly all weight is on other rows than those of one group, so its"
            f" outcomes cannot be compared: {wishes.describe(cell)}; check the weights,"
            " or merge groups"
        )
    raise InfeasibleError(
        "rows without an outcome keep their share, and in one group they leave none"
        f" for the others: {wishes.describe((wishes.left_out[0], *cell[1:]))}; drop"
        " those rows, or use ",
        Option("compare_missing", value=True),
    )
