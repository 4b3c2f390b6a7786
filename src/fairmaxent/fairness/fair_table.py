"""The fair table t(y, z): the table closest to the data that meets the wanted rates.

It takes two convex steps, each with one solution:

1. Group shares: for each grouping the shares closest to the data's (smallest KL) whose representation rate is at least
   ρ, unless the user gave a target.
2. Outcomes: with those shares fixed, the table closest to the data (smallest KL(t‖e)) whose statistical rate for the
   favourable outcomes is at least σ.

Choosing both at once is not convex. `algorithm_1` is the paper's own construction, for two groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.data.table import Counted
from fairmaxent.errors import ForbiddenError, InfeasibleError, Option, RateError, TargetError
from fairmaxent.fairness.group_shares import closest_shares
from fairmaxent.fairness.projection import LEAST_ROOM, Conditions, fewest_cells, project, room
from fairmaxent.fairness.rates import Grouping, group_table

Cell = tuple[int, ...]
Cells = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FairTable:
    """The fair table t(y, z) and how it was reached.

    `filled` lists the cells that have no rows but needed mass. `residual` is the largest relative error of a condition
    (a group's share or rate).
    """

    table: Reals
    filled: tuple[Cell, ...]
    iterations: int
    residual: float


@dataclass(frozen=True, eq=False)
class _Setting:
    """What the fair table starts from, and what it must respect."""

    data: Reals  # e(y, z) without forbidden cells
    allowed: Mask
    targets: Mapping[int, Reals]  # the user's marginals, by axis
    fill: float  # mass that an empty cell counts with if it is needed
    describe: Callable[[Cell], str]


@dataclass(frozen=True, eq=False)
class _WantedShares:
    """Shares wanted for the levels of some axes."""

    axes: Grouping
    shares: Reals


def fair_table(
    empirical: Reals,
    *,
    groupings: tuple[Grouping, ...],
    representation: tuple[float | None, ...],
    statistical: tuple[float | None, ...],
    favourable: tuple[int, ...],
    describe: Callable[[Cell], str],
    shares: Mapping[int, Reals] | None = None,
    outcome_shares: Reals | None = None,
    allowed: Mask | None = None,
    fill: float = 0.0,
) -> FairTable:
    """Return the table closest to `empirical`, e(y, z), that meets the wanted rates ρ and σ.

    `representation` and `statistical` hold one rate per grouping; None asks for nothing. `shares` (by protected axis)
    and `outcome_shares` are the user's target marginals: they override ρ, and a level with target 0 is removed.
    `allowed` is False for cells that must stay at 0. A cell that has no rows but needs mass counts as having
    probability `fill`; with `fill` = 0 it causes an `InfeasibleError`, which names the cell by `describe`.

    >>> e = np.array([[0.4, 0.3], [0.2, 0.1]])
    >>> wanted = dict(groupings=((1,),), representation=(1.0,), statistical=(1.0,), favourable=(1,))
    >>> fair_table(e, **wanted, describe=str).table.round(4)
    array([[0.3551, 0.3551],
           [0.1449, 0.1449]])
    """
    for rate in chain(representation, statistical):
        if rate is not None:
            check_rate("a wanted rate", rate)
    setting = _read_setting(empirical, shares, outcome_shares, allowed, fill, describe)
    grouped = [_wanted_shares(setting, group, rate) for group, rate in zip(groupings, representation, strict=True)]
    alone = [axis for axis in sorted(setting.targets) if all(axis not in grouping for grouping in groupings)]
    marginals = grouped + [_WantedShares((axis,), setting.targets[axis]) for axis in alone]
    cells = np.argwhere(_possible(setting, marginals))
    conditions = _conditions(cells, marginals, tuple(zip(grouped, statistical, strict=True)), favourable)
    support = _support(setting, cells, marginals, conditions)
    return _solved(setting, cells[support], marginals, conditions.on(support))


def algorithm_1(table: Reals, tau: float) -> Reals:
    """Algorithm 1 of the paper, exactly as written: t(y, z) ∝ c(y)·τ^[z=0] for a table of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ (Lemma 7.2 (3)).

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    check_rate("tau", tau)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InfeasibleError(
            f"Algorithm 1 needs a table of outcome × 2 groups, but this one has shape {table.shape}; "
            "use fairmaxent.debias for more groups or more protected columns"
        )
    if not (table > 0).all():
        outcome, group = (int(index) for index in np.argwhere(table <= 0)[0])
        raise InfeasibleError(
            f"Algorithm 1 needs rows in every cell, but outcome {outcome} of group {group} has none; "
            "merge levels, or use fairmaxent.debias with ",
            Option("base_share"),
            " > 0",
        )
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return np.asarray(weighted / weighted.sum())


def reweigh(rows: Counted, table: Reals) -> Counted:
    """Weights w on the distinct rows that give them the table t: w(α) ∝ n_α · t(cell(α)) / e(cell(α)).

    This changes the mass of each cell and keeps p(x | y, z). `rows` are in block codes, root first; `table` is t over
    the levels of the root. Cells without rows cannot get any weight, so the result is normalised.
    """
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = np.divide(table, empirical, out=np.zeros(len(table)), where=empirical > 0)
    return rows.reweighed(factor / (factor @ empirical))


def check_rate(name: object, rate: float, *, hint: object = "") -> float:
    """Refuse a wanted rate outside (0, 1]; `name` and `hint` are parts of the message, as errors take them."""
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate <= 1:
        percent = f"; write {rate / 100:g} for {rate:g} %" if isinstance(rate, Real) and 1 < rate <= 100 else ""
        raise RateError(name, f" is {rate!r}; a rate must be above 0 and at most 1{percent}", hint)
    return float(rate)


def _read_setting(
    empirical: Reals,
    shares: Mapping[int, Reals] | None,
    outcome_shares: Reals | None,
    allowed: Mask | None,
    fill: float,
    describe: Callable[[Cell], str],
) -> _Setting:
    """Check the user's targets; drop the mass of forbidden cells."""
    targets = dict(shares or {})
    if outcome_shares is not None:
        targets[0] = outcome_shares
    for axis, target in targets.items():
        sound = np.shape(target) == (empirical.shape[axis],) and bool((np.asarray(target) >= 0).all())
        if not (sound and abs(float(np.sum(target)) - 1.0) <= 1e-9):
            raise TargetError(
                f"the target of axis {axis} must consist of {empirical.shape[axis]} non-negative shares that sum to 1, "
                f"but it is {np.asarray(target).tolist()}"
            )
    targets = {axis: np.asarray(target / np.sum(target)) for axis, target in targets.items()}
    allowed = np.ones(empirical.shape, dtype=bool) if allowed is None else allowed
    _refuse_forbidden_levels(empirical, allowed, targets, describe)
    data = np.where(allowed, empirical, 0.0)
    return _Setting(data / data.sum(), allowed, targets, fill, describe)


def _refuse_forbidden_levels(
    empirical: Reals, allowed: Mask, targets: Mapping[int, Reals], describe: Callable[[Cell], str]
) -> None:
    """A level that has rows, or a target above 0, needs at least one allowed cell."""
    for axis in range(empirical.ndim):
        others = tuple(other for other in range(empirical.ndim) if other != axis)
        needed = targets[axis] > 0 if axis in targets else empirical.sum(axis=others) > 0
        for level in np.flatnonzero(needed & ~allowed.any(axis=others)):
            slab = np.zeros(empirical.shape, dtype=bool)
            np.moveaxis(slab, axis, 0)[level] = True
            cell = _first(slab & (empirical > 0)) or _first(slab)
            raise ForbiddenError(
                f"every combination with a needed level is forbidden, e.g. {describe(cell)}; remove a rule from ",
                Option("forbid"),
                ", or set this level's ",
                Option("target"),
                " to 0 to remove the level",
            )


def _first(mask: Mask) -> Cell:
    """Return the first cell of a mask, () if it has none."""
    cells = np.argwhere(mask)
    return tuple(int(level) for level in cells[0]) if len(cells) else ()


def _wanted_shares(setting: _Setting, grouping: Grouping, rate: float | None) -> _WantedShares:
    """Shares of the groups of one grouping (step 1).

    Axes with a target keep it; ρ applies to the other axes, within each combination of levels of the former.
    """
    targeted = tuple(axis for axis in grouping if axis in setting.targets)
    axes = targeted + tuple(axis for axis in grouping if axis not in setting.targets)
    shape = tuple(setting.data.shape[axis] for axis in axes)
    outer = _targeted_shares(setting, targeted)
    data = group_table(setting.data, axes).sum(axis=0).reshape(len(outer), -1)
    # A group without rows counts with the mass that filling would give it. With no filling it still gets a
    # share, so that the search for a support detects, and names, the cells that are missing.
    pseudo = setting.fill or setting.data[setting.data > 0].min()
    open_cells = group_table(setting.allowed.astype(float), axes).sum(axis=0).reshape(data.shape)
    known = reduce(np.logical_and.outer, [_known_levels(setting, axis) for axis in axes]).reshape(data.shape)
    complete = np.where(data > 0, data, pseudo * open_cells * known)
    demanded = rate is not None and len(grouping) > 1
    rows = [
        share * closest_shares(filled if demanded or not seen.any() else seen, rate)
        for share, seen, filled in zip(outer, data, complete, strict=True)
    ]
    return _WantedShares(axes, np.concatenate(rows).reshape(shape))


def _known_levels(setting: _Setting, axis: int) -> Mask:
    """Levels of an axis that have rows, or a target above 0; the others are left out."""
    if axis in setting.targets:
        return setting.targets[axis] > 0
    return np.asarray(setting.data.sum(axis=tuple(other for other in range(setting.data.ndim) if other != axis)) > 0)


def _targeted_shares(setting: _Setting, axes: Grouping) -> Reals:
    """Joint shares of axes that all have a target: the data's joint shares, fitted to these marginals."""
    if len(axes) < 2:
        return setting.targets[axes[0]] if axes else np.ones(1)
    open_cells = group_table(setting.allowed.astype(float), axes).sum(axis=0, keepdims=True) > 0

    def describe(cell: Cell) -> str:
        slab = np.zeros(setting.data.shape, dtype=bool)
        np.moveaxis(slab, axes, range(len(axes)))[cell[1:]] = True
        return setting.describe(_first(slab & setting.allowed) or _first(slab))

    fitted = fair_table(
        group_table(setting.data, axes).sum(axis=0, keepdims=True),
        groupings=(),
        representation=(),
        statistical=(),
        favourable=(),
        describe=describe,
        shares={index + 1: setting.targets[axis] for index, axis in enumerate(axes)},
        allowed=open_cells,
        fill=setting.fill,
    )
    return fitted.table.ravel()


def _possible(setting: _Setting, marginals: list[_WantedShares]) -> Mask:
    """Cells whose groups and outcome have a share; also forbidden cells, so that they can be named."""
    outcomes = setting.targets[0] if 0 in setting.targets else group_table(setting.data, ())
    possible = np.zeros(setting.data.shape, dtype=bool)
    possible[outcomes > 0] = True
    for marginal in marginals:
        np.moveaxis(possible, marginal.axes, range(len(marginal.axes)))[marginal.shares == 0] = False
    return possible


def _conditions(
    cells: Cells,
    marginals: list[_WantedShares],
    statistical: tuple[tuple[_WantedShares, float | None], ...],
    favourable: tuple[int, ...],
) -> Conditions:
    """All conditions on the cells, each divided by the share that it fixes, so that errors are relative."""
    rows = [_conditional(cells, marginal) for marginal in marginals]
    values = [np.ones(len(block)) for block in rows]
    rates: list[Reals] = [np.zeros((0, len(cells)))]
    least: list[float] = []
    for marginal, rate in statistical:
        for outcome in favourable:
            has_outcome = cells[:, 0] == outcome
            if rate is None or not has_outcome.any():
                continue
            rates.append(_conditional(cells, marginal) * has_outcome)
            least.append(rate)
    sizes = [len(block) for block in rates[1:]]
    return Conditions(
        np.vstack([np.zeros((0, len(cells))), *rows]),
        np.concatenate([np.zeros(0), *values]),
        np.vstack(rates),
        np.repeat(np.arange(len(sizes)), sizes),
        np.repeat(np.array(least, dtype=float), sizes),
    )


def _conditional(cells: Cells, marginal: _WantedShares) -> Reals:
    """One row per group g with a share: 1 / s(g) on the cells of the group, so that row·t is a probability given g."""
    group = np.ravel_multi_index(tuple(cells[:, list(marginal.axes)].T), marginal.shares.shape)
    shares = marginal.shares.ravel()
    present = np.flatnonzero(shares > 0)
    return np.asarray((group == present[:, np.newaxis]) / shares[present][:, np.newaxis])


def _support(setting: _Setting, cells: Cells, marginals: list[_WantedShares], conditions: Conditions) -> Mask:
    """Cells that get mass: those with rows if they suffice, otherwise also the empty ones that are needed."""
    seen: Mask = setting.data[tuple(cells.T)] > 0
    floor: Reals = _reweighted(setting.data, marginals)[tuple(cells.T)]
    if seen.all() or room(conditions.on(seen), floor[seen]) > LEAST_ROOM:
        return seen
    allowed: Mask = setting.allowed[tuple(cells.T)]
    fewest = fewest_cells(conditions.on(allowed), floor[allowed], ~seen[allowed])
    if fewest is None:
        raise _impossible(setting, cells, conditions, floor)
    needed = np.zeros_like(seen)
    needed[allowed] = fewest
    if setting.fill == 0.0:
        joint = any(len(marginal.axes) > 1 for marginal in marginals)
        raise _rows_missing(_list(setting, cells[needed & ~seen]), joint=joint)
    # A group without any rows has no outcome to prefer: all of them are opened, if the conditions allow it.
    unknown = setting.data.sum(axis=0)[tuple(cells.T[1:])] == 0
    touched = np.zeros(setting.data.shape[1:], dtype=bool)
    touched[tuple(cells[needed & ~seen].T[1:])] = True
    wide = seen | needed | (allowed & unknown & touched[tuple(cells.T[1:])])
    pseudo = np.where(seen, floor, setting.fill)
    return wide if room(conditions.on(wide), pseudo[wide]) > LEAST_ROOM else seen | needed


def _rows_missing(cells: str, *, joint: bool) -> InfeasibleError:
    """Name the cells that would have to be filled."""
    return InfeasibleError(
        f"the wanted shares and rates need rows in combinations that have none: {cells}; set ",
        Option("base_share"),
        " > 0 to fill them, merge levels, ",
        *(("lower the rate, or use ", Option("groups", "each")) if joint else ("or lower the rate",)),
    )


def _impossible(setting: _Setting, cells: Cells, conditions: Conditions, floor: Reals) -> InfeasibleError:
    """Name the forbidden cells that are in the way, if that is the reason."""
    forbidden = ~setting.allowed[tuple(cells.T)]
    needed = fewest_cells(conditions, floor, forbidden)
    if needed is None or not (needed & forbidden).any():
        return InfeasibleError(
            "no table has the wanted shares and rates without emptying a group or an outcome that has rows; "
            "lower the rates, or change ",
            Option("target"),
        )
    return InfeasibleError(
        "the wanted shares and rates need combinations that are forbidden: "
        f"{_list(setting, cells[needed & forbidden])}; remove a rule from ",
        Option("forbid"),
        ", merge levels, or lower the rate",
    )


def _list(setting: _Setting, cells: Cells) -> str:
    """Name up to three cells."""
    names = [setting.describe(tuple(int(level) for level in cell)) for cell in cells[:3]]
    return "; ".join(names) + (f" and {len(cells) - 3} more" if len(cells) > 3 else "")


def _reweighted(table: Reals, marginals: list[_WantedShares]) -> Reals:
    """Scale a table to one marginal after the other: roughly what its cells will get, exact for one marginal."""
    expected = table.copy()
    for marginal in marginals:
        front = np.moveaxis(expected, marginal.axes, range(len(marginal.axes)))
        shares = front.sum(axis=tuple(range(len(marginal.axes), front.ndim)))
        ratio = np.divide(marginal.shares, shares, out=np.zeros_like(shares), where=shares > 0)
        front *= ratio.reshape(ratio.shape + (1,) * (front.ndim - ratio.ndim))
    return expected


def _solved(setting: _Setting, cells: Cells, marginals: list[_WantedShares], conditions: Conditions) -> FairTable:
    """Project the data onto the conditions (step 2)."""
    index = tuple(cells.T)
    prior = np.zeros_like(setting.data)
    prior[index] = np.where(setting.data[index] > 0, setting.data[index], setting.fill)
    # Scaling groups does not change where the projection ends, only how fast it gets there.
    projection = project(_reweighted(prior, marginals)[index], conditions)
    table = np.zeros_like(setting.data)
    table[index] = projection.point / projection.point.sum()
    filled = tuple(tuple(int(level) for level in cell) for cell in cells[setting.data[index] == 0])
    return FairTable(table, filled, projection.iterations, projection.residual)
