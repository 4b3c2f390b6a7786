"""The fair table t(y, z): the table closest to the data that meets the wanted rates.

"Closest" is the smallest KL(t‖e). Which shares outcomes and groups have is part of the
wishes (`wishes`, `shares`): by default those of the data. Where all conditions are
linear in t, one convex program gives the whole table. That is the case for every
grouping whose shares are fixed, and for one whose shares are free (a representation
rate below 1) if no statistical rate is asked for, or a rate of 1 while the outcomes'
shares are fixed: t(y, g) = c(y)·t(g) is linear too. Otherwise choosing shares and
outcomes at once is not convex, and there are two convex steps: first the group shares,
then the outcomes with those shares fixed.

**A limit** on what a row may count (`reach`) gives way to nothing. If what is asked for
can be had within it, nothing is lost. If not, first the shares that differ from the
data's come as close to what was asked as they can (the worst of them, compared with the
best, relative to what was asked; a representation rate as high as it can be), while the
others stay as they are. Then the rates are as high as they can be with these shares:
one common rate for those that cannot be had. The table is the closest to the data that
has them. Strata are each on their own. Cells that have no rows, and have no mass
without the limit, do not get any because of it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Mask, Reals, ratio
from fairmaxent.errors import InfeasibleError, Option
from fairmaxent.fairness.projection import Conditions, project
from fairmaxent.fairness.rates import group_table
from fairmaxent.fairness.reach import face, smallest_limit, with_best_rates
from fairmaxent.fairness.shares import (
    GroupShares,
    closest_shares,
    fixed_shares,
    representation_blocks,
    share_rows,
)
from fairmaxent.fairness.wishes import (
    Cell,
    Cells,
    GroupingWish,
    Limit,
    RateBlock,
    Row,
    Targets,
    Wanted,
    Wishes,
    conditions_of,
    members,
    supported,
)

_NOTHING = 1e-15  # a share that is a rounding error
_AS_IT_IS = 1e-9  # a share that differs less from the data's is the data's


@dataclass(frozen=True, eq=False)
class FairTable:
    """The fair table t(y, z), and the cells that have rows but could get no mass."""

    table: Reals
    emptied: tuple[Cell, ...]
    # that would have allowed what was asked for; None: it was reached
    needed_limit: float | None = None


def fair_table(empirical: Reals, wanted: Wanted, targets: Targets) -> FairTable:
    """Return the table closest to `empirical`, e(y, z), with the wanted rates ρ and σ.

    `targets` are wanted marginals by axis: they override ρ, and a level with target 0
    is removed. Without a target for axis 0 the outcomes' shares may move. Rows of a
    level that is left out keep their share. A cell that has no rows but needs mass
    counts as having probability `fill`; with `fill` = 0 it causes an `InfeasibleError`,
    which names the cell by `describe`.

    >>> e = np.array([[0.4, 0.3], [0.2, 0.1]])
    >>> wanted = Wanted(
    ...     groupings=((1,),),
    ...     representation=(None,),
    ...     statistical=(1.0,),
    ...     favourable=(1,),
    ...     describe=str,
    ... )
    >>> fair_table(e, wanted, {0: e.sum(axis=1)}).table.round(4)
    array([[0.42, 0.28],
           [0.18, 0.12]])
    """
    wishes = Wishes.of(empirical, wanted, targets)
    groups = [fixed_shares(wishes, wish) for wish in wishes.groupings]
    are_linear = wanted.values is None and all(
        _is_linear(about, known)
        for about, of_outcome, _ in _each_outcome(wishes, groups, wanted)
        for known in of_outcome
    )
    if not are_linear:
        groups = closest_shares(wishes, groups)
    fair = _closest_table(wishes, groups, wanted)
    if wanted.limit is None or (fair.table <= wanted.limit.ceiling).all():
        return fair
    refuse_low_limit(wishes.data, wanted.limit)
    return _limited_table(wishes, groups, wanted, fair, wanted.limit)


def refuse_low_limit(data: Reals, limit: Limit) -> None:
    """Refuse a limit below what rows have to count on average."""
    least = float((data / limit.rows).max())
    if least >= limit.largest:
        raise InfeasibleError(
            Option("largest_weight", limit.largest),
            " is too low: forbidden rows, or the sizes of strata, leave rows that"
            f" have to count {least:.3g} times on average; allow more than that",
        )


# ---------------------------------------------------------------- conditions


def _is_linear(wishes: Wishes, known: GroupShares) -> bool:
    """Whether the wishes about the outcomes of some groups are linear in t."""
    rate = known.wish.statistical
    if known.shares is not None or rate is None:
        return True
    return rate == 1 and _common_rates(wishes, known) is not None


def _each_outcome(
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
    return mass / mass.sum()


def _compared_outcomes(wishes: Wishes) -> list[int]:
    return [
        outcome for outcome in wishes.favourable if outcome != wishes.left_out.get(0)
    ]


def _possible(wishes: Wishes, groups: list[GroupShares]) -> Mask:
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


def _conditions(
    wishes: Wishes,
    groups: list[GroupShares],
    cells: Cells,
    wanted: Wanted,
) -> Conditions:
    """All wishes as conditions on the cells."""
    asked = _share_conditions(wishes, groups, cells, wanted)
    for about, known, axis in _each_outcome(wishes, groups, wanted):
        asked += _rate_conditions(about, known, _turned(cells, axis))
    if wanted.values is not None:
        for known_shares in groups:
            sizes = _sizes(wishes, known_shares)
            asked += _mean_rows(wishes, known_shares, cells, wanted.values, sizes)
    return conditions_of(len(cells), asked)


def _share_conditions(
    wishes: Wishes,
    groups: list[GroupShares],
    cells: Cells,
    wanted: Wanted,
) -> list[Row | RateBlock]:
    """The wishes about shares: of outcomes, of groups, and of what is left out."""
    summed: Cell = ()
    if wishes.loose:
        summed = tuple(other.axis for other in wanted.others)
    asked: list[Row | RateBlock] = []
    for about, known, axis in _each_outcome(wishes, groups, wanted):
        turned = _turned(cells, axis)
        asked += _outcome_rows(about, turned, summed)
        for one in known:
            asked += _left_out_rows(about, one, turned)
    asked += share_rows(
        wishes,
        groups,
        cells,
        first=0,
    )
    asked += representation_blocks(
        wishes,
        groups,
        cells,
        first=0,
    )
    return asked


def _turned(cells: Cells, axis: int) -> Cells:
    """The cells with the outcome of an axis in the place of the first."""
    turned = cells.copy()
    turned[:, [0, axis]] = cells[:, [axis, 0]]
    return turned


def _rate_conditions(
    wishes: Wishes, groups: list[GroupShares], cells: Cells
) -> Iterator[Row | RateBlock]:
    """Conditions on the rates of the outcome of axis 0."""
    for known in groups:
        if known.wish.statistical is None:
            continue
        if known.shares is None:
            yield from _blocks_within_groups(wishes, known, cells)
            continue
        common = None
        if known.wish.statistical == 1:
            common = _common_rates(wishes, known)
        yield from _compared_rates(wishes, known, cells, _sizes(wishes, known), common)


def _mean_rows(
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


def _left_out_rows(wishes: Wishes, known: GroupShares, cells: Cells) -> Iterator[Row]:
    """Groups that are not compared keep the outcomes that they have in the data."""
    if not _keeps_left_out(wishes, known):
        return
    by_group = group_table(wishes.data, known.wish.axes)
    for cell in np.argwhere((by_group > 0) & wishes.skipped(known.wish)):
        inside = members(cells, (0, *known.wish.axes), cell)
        yield Row(inside, float(by_group[tuple(cell)]))


def _compared_rates(
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
        Option("missing", "compare"),
    )


# ---------------------------------------------------------------- solution


def _closest_table(
    wishes: Wishes, groups: list[GroupShares], wanted: Wanted
) -> FairTable:
    """Project the data onto the conditions."""
    views = list(_each_outcome(wishes, groups, wanted))
    possible = np.logical_and.reduce(
        [np.swapaxes(_possible(about, known), 0, axis) for about, known, axis in views]
    )
    cells = np.argwhere(possible)
    index = tuple(cells.T)
    conditions = _conditions(wishes, groups, cells, wanted)
    seen: Mask = wishes.data[index] > 0
    combinations = None
    if len(index) > 1:
        combinations = np.ravel_multi_index(index[1:], wishes.data.shape[1:])
    support = supported(
        conditions,
        seen=seen,
        allowed=wishes.allowed[index],
        floor=_reweighted(wishes.data, groups)[index],
        fill=wishes.fill,
        describe=lambda number: wishes.describe(tuple(cells[number].tolist())),
        joint=any(len(axes) > 1 for axes in wanted.groupings),
        levels=[
            cells[:, at] == outcome
            for *_, at in views
            for outcome in np.unique(cells[seen, at])
        ],
        groups=combinations,
    )
    kept = tuple(cells[support].T)
    prior = np.zeros_like(wishes.data)
    prior[kept] = np.where(wishes.data[kept] > 0, wishes.data[kept], wishes.fill)
    # Scaling groups whose shares are fixed does not change where the projection ends,
    # only how fast it gets there.
    start = _reweighted(prior, groups)[kept]
    point = project(start, conditions.on(support).settled()).point
    table = np.zeros_like(wishes.data)
    table[kept] = point / point.sum()
    return FairTable(table, tuple(map(tuple, cells[seen & ~support].tolist())))


def _reweighted(table: Reals, groups: list[GroupShares]) -> Reals:
    """Scale a table to one fixed marginal after the other: roughly what cells get."""
    expected = table.copy()
    for known in groups:
        if known.shares is None:
            continue
        axes = known.wish.axes
        front = np.moveaxis(expected, axes, range(len(axes)))
        shares = front.sum(axis=tuple(range(len(axes), front.ndim)))
        factor = ratio(known.shares, shares)
        front *= factor.reshape(factor.shape + (1,) * (front.ndim - factor.ndim))
    return expected


# ---------------------------------------------------------------- limit


def _limited_table(
    wishes: Wishes,
    groups: list[GroupShares],
    wanted: Wanted,
    fair: FairTable,
    limit: Limit,
) -> FairTable:
    """The closest table within a limit, with what was asked for if that can be had."""
    kept = fair.table > 0
    asked = _conditions(wishes, groups, np.argwhere(kept), wanted)
    asked = replace(asked.settled(), ceiling=limit.ceiling[kept])
    needed = smallest_limit(asked)
    if needed <= 1.0:
        return replace(fair, table=_projected(wishes, kept, asked))
    # Cells that have no mass at the rates asked for may have some at lower ones.
    for cell in fair.emptied:
        kept[cell] = True
    free = [_freed(wishes, known.wish) for known in groups]
    shares, sizes = _reachable_shares(wishes, free, kept, wanted, limit)
    blocks = _blocks_given(wishes, free, np.argwhere(kept), wanted, sizes)
    table = _reachable(wishes, kept, [*shares, *blocks], limit)
    return FairTable(table, (), needed * limit.largest)


def _reachable(
    wishes: Wishes, kept: Mask, asked: Sequence[Row | RateBlock], limit: Limit
) -> Reals:
    """The closest table within a limit, with the best rates that are possible there."""
    ceiling = limit.ceiling[kept]
    conditions = conditions_of(len(ceiling), asked).settled()
    conditions = replace(conditions, ceiling=ceiling)
    if smallest_limit(conditions) > 1.0:
        conditions = with_best_rates(conditions)
    return _projected(wishes, kept, conditions)


def _projected(wishes: Wishes, kept: Mask, conditions: Conditions) -> Reals:
    """The closest table to the data under conditions on the cells that are kept."""
    prior = np.where(wishes.data > 0, wishes.data, wishes.fill)[kept]
    reduced, filled = face(conditions)
    point = np.zeros(len(prior))
    point[filled] = project(prior[filled], reduced.settled()).point
    table = np.zeros_like(wishes.data)
    table[kept] = point / point.sum()
    return table


def _freed(wishes: Wishes, wish: GroupingWish) -> GroupShares:
    """The shares of a grouping, without those that only a representation rate fixes."""
    if wish.representation is None or wishes.targeted(wish):
        return fixed_shares(wishes, wish)
    return GroupShares(wish, None, wishes.known(wish))


def _reachable_shares(
    wishes: Wishes,
    groups: list[GroupShares],
    kept: Mask,
    wanted: Wanted,
    limit: Limit,
) -> tuple[list[Row], Reals]:
    """The best shares within a limit, and a table that has them."""
    cells = np.argwhere(kept)
    data = wishes.data[kept]
    everybody = Row(np.ones(len(cells)), 1.0)
    rows = [everybody]
    blocks = []
    for one in _share_conditions(wishes, groups, cells, wanted):
        if isinstance(one, Row):
            rows.append(one)
        else:
            blocks.append(one)
    if wanted.values is not None:  # all groups together keep their mean
        for known in groups:
            sizes = _counted(wishes, wishes.data, known)
            means = list(_mean_rows(wishes, known, cells, wanted.values, sizes))
            whole = np.sum([row.cells for row in means], axis=0)
            rows.append(Row(whole, sum(row.value for row in means)))
    moved = [
        row
        for row in rows
        if not math.isclose(row.cells @ data, row.value, rel_tol=_AS_IT_IS)
    ]
    if not (moved or blocks):
        return rows, wishes.data
    if moved:
        # as parts of what was asked, beside that of everybody, which is 1
        parts = [row.cells / row.value for row in (everybody, *moved)]
        blocks.append(RateBlock(np.array(parts), 1.0))
    fixed = [row for row in rows if row not in moved]
    table = _reachable(wishes, kept, [*fixed, *blocks], limit)
    for known in groups:
        if known.shares is None:
            shares = group_table(table, known.wish.axes).sum(axis=0)
            rows += [
                Row(members(cells, known.wish.axes, group), 1.0)
                for group in np.argwhere(shares > 0)
            ]
    return [replace(row, value=float(row.cells @ table[kept])) for row in rows], table


def _counted(wishes: Wishes, table: Reals, known: GroupShares) -> Reals:
    """The mass of each group in a table, without rows that have no outcome."""
    by_group = group_table(table, known.wish.axes)
    if 0 in wishes.left_out:
        by_group[wishes.left_out[0]] = 0.0
    return by_group.sum(axis=0)


def _blocks_given(
    wishes: Wishes,
    groups: list[GroupShares],
    cells: Cells,
    wanted: Wanted,
    table: Reals,
) -> Iterator[Row | RateBlock]:
    """Rates and means of groups that have the sizes that they have in a table."""
    for about, known, axis in _each_outcome(wishes, groups, wanted):
        for one in known:
            sizes = _counted(about, np.swapaxes(table, 0, axis), one)
            one = replace(one, compared=one.compared & (sizes > 0))
            if one.wish.statistical is not None:
                turned = _turned(cells, axis)
                yield from _compared_rates(about, one, turned, sizes, None)
            if wanted.values is not None and axis == 0:
                means = _mean_rows(about, one, cells, wanted.values, sizes)
                parts = [row.cells / row.value for row in means]
                yield RateBlock(np.array(parts), 1.0)
