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
rates that are out of reach all get the same, highest possible one. Among the tables
with these shares and rates, the answer is the closest to the data. Each stratum is
solved by itself. Cells that have no rows, and have no mass
without the limit, do not get any because of it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Counted, Mask, Reals, ratio
from fairmaxent.errors import InfeasibleError, Option, SolverError
from fairmaxent.fairness.conditions import (
    compared_rates,
    each_outcome,
    is_linear,
    left_out_rows,
    mean_rows,
    possible_cells,
    share_conditions,
    table_conditions,
    turned,
)
from fairmaxent.fairness.projection import Conditions, project
from fairmaxent.fairness.rates import group_table
from fairmaxent.fairness.reach import (
    best_rate,
    face,
    smallest_limit,
    with_best_rates,
)
from fairmaxent.fairness.shares import (
    GroupShares,
    closest_shares,
    fixed_shares,
    representation_blocks,
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
        is_linear(about, known)
        for about, of_outcome, _ in each_outcome(wishes, groups, wanted)
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


# ---------------------------------------------------------------- solution


def _closest_table(
    wishes: Wishes, groups: list[GroupShares], wanted: Wanted
) -> FairTable:
    """Project the data onto the conditions."""
    views = list(each_outcome(wishes, groups, wanted))
    possible = np.logical_and.reduce(
        [
            np.swapaxes(possible_cells(about, known), 0, axis)
            for about, known, axis in views
        ]
    )
    cells = np.argwhere(possible)
    index = tuple(cells.T)
    conditions = table_conditions(wishes, groups, cells, wanted)
    seen: Mask = wishes.data[index] > 0
    combinations = None
    if len(index) > 1:
        combinations = np.ravel_multi_index(index[1:], wishes.data.shape[1:])
    support = supported(
        wishes,
        conditions,
        seen=seen,
        allowed=wishes.allowed[index],
        floor=_reweighted(wishes.data, groups)[index],
        describe=lambda number: wishes.describe(tuple(cells[number].tolist())),
        levels=[
            cells[:, at] == outcome
            for *_, at in views
            for outcome in np.unique(cells[seen, at])
        ],
        groups=combinations,
        lower=lambda kept: _reachable_rate(wishes, groups, cells[kept], wanted),
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


def _reachable_rate(
    wishes: Wishes, groups: list[GroupShares], cells: Cells, wanted: Wanted
) -> str:
    """The highest rate of a table of some cells, as the end of advice.

    Nothing if none above 0 can be reached.
    """
    fixed = [
        replace(known, wish=replace(known.wish, statistical=_below(rate)))
        for known, rate in zip(
            closest_shares(wishes, groups), wanted.statistical, strict=True
        )
    ]
    others = [
        replace(other, statistical=tuple(map(_below, other.statistical)))
        for other in wanted.others
    ]
    asked = table_conditions(wishes, fixed, cells, replace(wanted, others=others))
    asked = replace(asked.settled(), ceiling=np.ones(len(cells)))
    try:
        thousandths = math.floor(1000 * best_rate(asked))
    except SolverError:
        return ""
    if thousandths < 1:
        return ""
    return (
        f"; or ask for a rate of {thousandths / 1000:g}, the highest that is possible"
    )


def _below(rate: float | None) -> float | None:
    """A rate as one that is compared; 1 is written as shares that are equal."""
    if rate is None:
        return None
    return min(rate, 1 - 1e-9)


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
    asked = table_conditions(wishes, groups, np.argwhere(kept), wanted)
    asked = replace(asked.settled(), ceiling=limit.ceiling[kept])
    heaviest = float((fair.table / limit.ceiling).max())
    needed = min(smallest_limit(asked), heaviest)
    seen = kept.copy()
    for cell in fair.emptied:
        seen[cell] = True
    if needed <= 1.0:
        table = _projected(wishes, kept, asked)
        return FairTable(table, _emptied(table, seen))
    # Cells that have no mass at the rates asked for may have some at lower ones.
    free = [_freed(wishes, known.wish) for known in groups]
    shares, sizes = _reachable_shares(wishes, free, seen, wanted, limit)
    blocks = _blocks_given(wishes, free, np.argwhere(seen), wanted, sizes)
    table = _reachable(wishes, seen, [*shares, *blocks], limit)
    return FairTable(table, _emptied(table, seen), needed * limit.largest)


def _emptied(table: Reals, seen: Mask) -> tuple[Cell, ...]:
    """The cells that could have had mass, and have none."""
    return tuple(map(tuple, np.argwhere(seen & (table == 0)).tolist()))


def _reachable(
    wishes: Wishes, kept: Mask, asked: Sequence[Row | RateBlock], limit: Limit
) -> Reals:
    """The closest table within a limit, with the best rates that are possible there."""
    ceiling = limit.ceiling[kept]
    conditions = conditions_of(len(ceiling), asked).settled()
    conditions = with_best_rates(replace(conditions, ceiling=ceiling))
    return _projected(wishes, kept, conditions)


def _projected(wishes: Wishes, kept: Mask, conditions: Conditions) -> Reals:
    """The closest table to the data under conditions on the cells that are kept."""
    assert conditions.ceiling is not None
    prior = np.where(wishes.data > 0, wishes.data, wishes.fill)[kept]
    reduced, filled = face(conditions)
    point = np.zeros(len(prior))
    point[filled] = project(prior[filled], reduced.settled()).point
    table = np.zeros_like(wishes.data)
    # what is beyond the ceiling is a rounding error
    table[kept] = np.minimum(point / point.sum(), conditions.ceiling)
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
    rows = [everybody, *share_conditions(wishes, groups, cells, wanted)]
    for about, grouped, axis in each_outcome(wishes, groups, wanted):
        for one in grouped:
            rows += left_out_rows(about, one, turned(cells, axis))
    blocks = list(representation_blocks(wishes, groups, cells, first=0))
    if wanted.values is not None:  # all groups together keep their mean
        for known in groups:
            sizes = _counted(wishes, wishes.data, known)
            means = list(mean_rows(wishes, known, cells, wanted.values, sizes))
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
    for about, known, axis in each_outcome(wishes, groups, wanted):
        for one in known:
            sizes = _counted(about, np.swapaxes(table, 0, axis), one)
            one = replace(one, compared=one.compared & (sizes > 0))
            if one.wish.statistical is not None:
                by_outcome = turned(cells, axis)
                yield from compared_rates(about, one, by_outcome, sizes, None)
            if wanted.values is not None and axis == 0:
                means = mean_rows(about, one, cells, wanted.values, sizes)
                parts = [row.cells / row.value for row in means]
                yield RateBlock(np.array(parts), 1.0)


# ---------------------------------------------------------------- weights of rows


def algorithm_1(table: Reals, tau: float) -> Reals:
    """Algorithm 1 of the paper, exactly as written: t(y, z) ∝ c(y)·τ^[z=0].

    For a table of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ
    (Lemma 7.2 (3)). It is stated for tables that have rows in every cell.

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return weighted / weighted.sum()


def reweigh(rows: Counted, table: Reals) -> Counted:
    """Weights w on the distinct rows that give them the table t.

    w(α) ∝ n_α · t(cell(α)) / e(cell(α)).
    """
    # This changes the mass of each cell and keeps p(x | y, z). `rows` are in block
    # codes, root first; `table` is t over the levels of the root. Cells without rows
    # cannot get any weight, so the result is normalised.
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = ratio(table, empirical)
    return rows.reweighed(factor / (factor @ empirical))
