"""Group shares and weights: how large each group should be, and weights on rows that
give them a table.

Shares that the wishes fix are known beforehand: the user's own, the data's if nothing
is asked for, equal ones at a representation rate of 1. The others are free within their
rate, and `closest_shares` takes those of all groupings from one convex program on the
combinations z that have rows: the closest s(z) to the data's, by KL(s‖e).

`capped` is the closest table to a fair one in which no row counts more than a number of
times; rates are then reached as far as that allows. It is t' = min(L·e, t·Π factors),
with one factor for each level of the marginals that are kept (Csiszár): each marginal
in turn gets its factors until all of them hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Counted, Mask, Reals
from fairmaxent.errors import SolverError
from fairmaxent.fairness.projection import project
from fairmaxent.fairness.wishes import (
    Block,
    Cells,
    GroupingWish,
    Row,
    Wishes,
    conditions_of,
    members,
    supported,
)

_TOLERANCE = 1e-13
_MOST_ROUNDS = 10_000


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
        shares = None
        if len(wish.axes) == 1:
            shares = wishes.targets[targeted[0]]
    elif wish.representation is None:
        shares = data
    elif wish.representation == 1:
        equal = wishes.compared(wish)
        shares = np.where(
            skipped, data, equal * (1 - data[skipped].sum()) / max(equal.sum(), 1)
        )
    known = wishes.known(wish)
    return GroupShares(
        wish, shares, known if shares is None else np.asarray((shares > 0) & ~skipped)
    )


def closest_shares(wishes: Wishes, groupings: list[GroupShares]) -> list[GroupShares]:
    """Fix the free shares of all groupings by the closest s(z) to the data's (step 1 of
    the two steps).
    """
    if all(known.shares is not None for known in groupings):
        return groupings
    data = wishes.data.sum(axis=0)
    # A combination without rows counts with the mass that filling its cells would give
    # it.
    opened = wishes.allowed.sum(axis=0)
    combinations = np.ones(data.shape, dtype=bool)
    for axis in wishes.targets.keys() - {0}:  # a level whose target is 0 is removed
        np.moveaxis(combinations, axis - 1, 0)[wishes.targets[axis] == 0] = False
    cells = np.argwhere(combinations)
    rows = [
        Row(np.ones(len(cells), dtype=bool), 1.0),
        *share_rows(wishes, groupings, cells, first=1),
    ]
    blocks = representation_blocks(wishes, groupings, cells, first=1)
    index = tuple(cells.T)
    seen = data[index]

    def describe(number: int) -> str:  # by an allowed cell of the combination
        group = tuple(map(int, cells[number]))
        allowed = np.moveaxis(wishes.allowed, 0, -1)[group]
        return wishes.describe((int(allowed.argmax()), *group))

    conditions = conditions_of(len(cells), rows, blocks)
    support = supported(
        conditions,
        seen=seen > 0,
        allowed=opened[index] > 0,
        floor=seen,
        fill=wishes.fill,
        describe=describe,
        joint=any(len(known.wish.axes) > 1 for known in groupings),
    )
    prior = np.where(seen > 0, seen, wishes.fill * opened[index])[support]
    shares = np.zeros(data.shape)
    shares[tuple(cells[support].T)] = project(
        prior, conditions.on(support).settled()
    ).point
    return [_summed(wishes, known, shares / shares.sum()) for known in groupings]


def _summed(wishes: Wishes, known: GroupShares, shares: Reals) -> GroupShares:
    if known.shares is not None:
        return known
    others = tuple(
        axis for axis in range(shares.ndim) if axis + 1 not in known.wish.axes
    )
    # a grouping names its axes in ascending order
    summed = np.asarray(shares.sum(axis=others))
    return GroupShares(
        known.wish, summed, np.asarray((summed > 0) & ~wishes.skipped(known.wish))
    )


def share_rows(
    wishes: Wishes, groupings: list[GroupShares], cells: Cells, *, first: int
) -> list[Row]:
    """Conditions on group shares: fixed, targeted, left out; ``cells`` name the levels
    of axes from ``first`` on.
    """
    rows: list[Row] = []
    named: set[int] = set()
    for known in groupings:
        if known.shares is not None:
            rows += [
                Row(
                    members(cells, known.wish.axes, group, first),
                    float(known.shares[tuple(group)]),
                )
                for group in np.argwhere(known.shares > 0)
            ]
            if len(known.wish.axes) == 1:
                named |= set(known.wish.axes)
        elif not wishes.targeted(known.wish):
            data = wishes.groups(known.wish)
            rows += [
                Row(
                    members(cells, known.wish.axes, group, first),
                    float(data[tuple(group)]),
                )
                for group in np.argwhere(wishes.skipped(known.wish) & (data > 0))
            ]
    for axis in sorted(wishes.targets.keys() - named - {0}):
        rows += [
            Row(cells[:, axis - first] == level, float(wishes.targets[axis][level]))
            for level in np.flatnonzero(wishes.targets[axis] > 0)
        ]
    return rows


def representation_blocks(
    wishes: Wishes, groupings: list[GroupShares], cells: Cells, *, first: int
) -> list[Block]:
    """One block per grouping with free shares; with targets, one for each combination
    of the targeted levels.
    """
    blocks = []
    for known in groupings:
        rate = known.wish.representation
        if known.shares is not None or rate is None:
            continue
        compared = np.argwhere(wishes.compared(known.wish))
        targeted = [
            number
            for number, axis in enumerate(known.wish.axes)
            if axis in wishes.targets
        ]
        within: dict[tuple[int, ...], list[Reals]] = {}
        for group in compared:
            inside = members(cells, known.wish.axes, group, first)
            within.setdefault(tuple(map(int, group[targeted])), []).append(
                inside.astype(float)
            )
        blocks += [
            Block(np.array(rates), rate) for rates in within.values() if len(rates) > 1
        ]
    return blocks


def capped(
    table: Reals, data: Reals, limit: Reals, kept: Sequence[tuple[int, ...]]
) -> Reals:
    """Return t' of smallest KL(t'‖t) with t'(c) <= limit(c) in all cells, and the
    data's marginals of ``kept``.

    The data must be within the limit. Marginals are named by their axes; () is the
    total.

    >>> capped(np.array([0.5, 0.5]), np.array([0.9, 0.1]), np.array([1.8, 0.2]), [()])
    array([0.8, 0.2])
    """
    if (table <= limit).all():
        return table
    factors = np.ones_like(table)
    summed = [
        tuple(axis for axis in range(table.ndim) if axis not in axes) for axes in kept
    ]
    for _ in range(_MOST_ROUNDS):
        for axes in kept:
            _fit_marginal(table, limit, factors, data, axes)
        result = np.minimum(table * factors, limit)
        if all(
            np.abs(result.sum(axis=others) - data.sum(axis=others)).max() <= _TOLERANCE
            for others in summed
        ):
            return np.asarray(result / result.sum())
    raise SolverError(
        "no table with this largest weight was reached; allow a larger one"
    )


def _fit_marginal(
    table: Reals, limit: Reals, factors: Reals, data: Reals, axes: tuple[int, ...]
) -> None:
    """Multiply the factors of each level of a marginal, so that it has the data's
    mass.
    """
    moved = [
        np.moveaxis(values, axes, range(len(axes)))
        for values in (table, limit, factors, data)
    ]
    for level in np.ndindex(*moved[0].shape[: len(axes)]):
        cells, ceiling, multiplied, mass = (values[level] for values in moved)
        wanted = float(mass.sum())
        if wanted > 0:
            multiplied *= _factor((cells * multiplied).ravel(), ceiling.ravel(), wanted)


def _factor(cells: Reals, ceiling: Reals, wanted: float) -> float:
    """Solve Σ min(f·cells, ceiling) = wanted for f: the sum is piecewise linear, and
    bends where a cell is full.
    """
    positive = cells > 0
    bends = np.full(len(cells), np.inf)
    bends[positive] = ceiling[positive] / cells[positive]
    order = np.argsort(bends, kind="stable")
    full = np.concatenate(
        [[0.0], np.cumsum(np.where(np.isfinite(bends), ceiling, 0.0)[order])]
    )
    open_mass = np.concatenate([np.cumsum(cells[order][::-1])[::-1], [0.0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        candidates = (wanted - full) / open_mass
    ends = np.concatenate([bends[order], [np.inf]])
    fits = np.flatnonzero((open_mass > 0) & (candidates <= ends * (1 + 1e-15)))
    if len(fits):
        return float(candidates[fits[0]])
    return float(bends[positive].max(initial=1.0))


def algorithm_1(table: Reals, tau: float) -> Reals:
    """Algorithm 1 of the paper, exactly as written: t(y, z) ∝ c(y)·τ^[z=0] for a table
    of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ
    (Lemma 7.2 (3)). It is stated for tables that have rows in every cell.

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return np.asarray(weighted / weighted.sum())


def reweigh(rows: Counted, table: Reals) -> Counted:
    """Weights w on the distinct rows that give them the table t: w(α) ∝ n_α ·
    t(cell(α)) / e(cell(α)).
    """
    # This changes the mass of each cell and keeps p(x | y, z). `rows` are in block
    # codes, root first; `table` is t over the levels of the root. Cells without rows
    # cannot get any weight, so the result is normalised.
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = np.divide(table, empirical, out=np.zeros(len(table)), where=empirical > 0)
    return rows.reweighed(factor / (factor @ empirical))
