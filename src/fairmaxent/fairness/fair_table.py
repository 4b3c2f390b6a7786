"""The fair table t(y, z): the table closest to the data that meets the wanted rates.

It is found in two convex steps, each with one answer. (1) Group shares: for each grouping the shares closest
to the data's (smallest KL) whose representation rate is at least ρ, or the user's own. (2) Outcomes: with
those shares fixed, the table closest to the data (smallest KL(t‖e)) whose statistical rate for the favourable
outcomes is at least σ. Choosing both at once is not convex. `algorithm_1` is the paper's own, for two groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fairmaxent.errors import ForbiddenError, InfeasibleError, RateError, TargetError
from fairmaxent.fairness.projection import LEAST_ROOM, Conditions, fewest_cells, project, room
from fairmaxent.fairness.rates import Array, Grouping, Mask, group_table

Cell = tuple[int, ...]
Cells = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FairTable:
    """The fair table t(y, z) and how it was reached.

    `filled` lists the cells without rows that had to get mass. `residual` is the largest relative error of a
    condition (a group's share or rate).
    """

    table: Array
    filled: tuple[Cell, ...]
    iterations: int
    residual: float


@dataclass(frozen=True, eq=False)
class _Given:
    """What is given: the data's table without forbidden cells, and the user's own marginals by axis."""

    data: Array
    allowed: Mask
    named: Mapping[int, Array]
    fill: float
    describe: Callable[[Cell], str]


@dataclass(frozen=True, eq=False)
class _Marginal:
    """Shares wanted for the levels of some axes."""

    axes: Grouping
    shares: Array


def fair_table(
    empirical: Array,
    *,
    groupings: tuple[Grouping, ...],
    representation: tuple[float | None, ...],
    statistical: tuple[float | None, ...],
    favourable: tuple[int, ...],
    describe: Callable[[Cell], str],
    shares: Mapping[int, Array] | None = None,
    outcome_shares: Array | None = None,
    allowed: Mask | None = None,
    fill: float = 0.0,
) -> FairTable:
    """Return the table closest to `empirical`, e(y, z), that meets the wanted rates ρ and σ.

    `representation` and `statistical` hold one rate per grouping, None for no demand. `shares` (by protected
    axis) and `outcome_shares` are marginals that the user named: they override ρ, and a level named 0 is
    removed. `allowed` is False for cells that must stay at 0. A cell without rows that must have mass is
    counted as having probability `fill`; with `fill` = 0 that is an `InfeasibleError`, which names the cell by
    `describe`.

    >>> e = np.array([[0.4, 0.3], [0.2, 0.1]])
    >>> wanted = dict(groupings=((1,),), representation=(1.0,), statistical=(1.0,), favourable=(1,))
    >>> fair_table(e, **wanted, describe=str).table.round(4)
    array([[0.3551, 0.3551],
           [0.1449, 0.1449]])
    """
    for rate in chain(representation, statistical):
        if rate is not None:
            check_rate("a wanted rate", rate)
    given = _given(empirical, shares, outcome_shares, allowed, fill, describe)
    grouped = [_wanted(given, group, rate) for group, rate in zip(groupings, representation, strict=True)]
    alone = [axis for axis in sorted(given.named) if all(axis not in grouping for grouping in groupings)]
    marginals = grouped + [_Marginal((axis,), given.named[axis]) for axis in alone]
    cells = np.argwhere(_possible(given, marginals))
    conditions = _conditions(cells, marginals, tuple(zip(grouped, statistical, strict=True)), favourable)
    support = _support(given, cells, marginals, conditions)
    return _solved(given, cells[support], marginals, conditions.on(support))


def algorithm_1(table: Array, tau: float) -> Array:
    """Algorithm 1 of the paper, as written: t(y, z) ∝ c(y)·τ^[z=0] for a table of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ (Lemma 7.2 (3)).

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    check_rate("tau", tau)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InfeasibleError(
            f"Algorithm 1 needs a table of outcome × 2 groups, got shape {table.shape}; "
            "use fair_table for more groups or more protected columns"
        )
    if not (table > 0).all():
        outcome, group = (int(index) for index in np.argwhere(table <= 0)[0])
        raise InfeasibleError(
            f"Algorithm 1 needs rows in every cell, but outcome {outcome} of group {group} has none; "
            "merge levels, or use fair_table with base_share > 0"
        )
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return np.asarray(weighted / weighted.sum())


def check_rate(name: object, rate: float, *, hint: str = "") -> float:
    """Refuse a wanted rate outside (0, 1]."""
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate <= 1:
        percent = f"; write {rate / 100:g} for {rate:g} %" if isinstance(rate, Real) and 1 < rate <= 100 else ""
        raise RateError(name, f" is {rate!r}; a rate lies above 0 and is at most 1{percent}{hint}")
    return float(rate)


def closest_shares(shares: Array, rate: float | None) -> Array:
    """Return the shares s of smallest KL(s‖e) with min s / max s >= ρ; groups without mass take no part.

    The answer raises the i smallest groups to a floor l, lowers the j largest to l/ρ and keeps the others'
    proportions. For given (i, j) the clipped groups have the fixed proportions u, and their total mass A obeys
    A / (1−A) = c / e(rest) with c = e(clipped)·exp(−KL(u‖e_clipped)); the KL is then −log(c + e(rest)). All
    (i, j) are tried at once, and the feasible one of least KL is taken.

    >>> closest_shares(np.array([0.1, 0.3, 0.6]), 0.5).round(4)
    array([0.2251, 0.3247, 0.4502])
    """
    present = shares > 0
    own = shares[present] / shares.sum() if present.any() else shares[present]
    if rate is not None and own.min(initial=1.0) < rate * own.max(initial=0.0) * (1 - 1e-13):
        order = np.argsort(own, kind="stable")
        own[order] = _clipped_shares(own[order], rate)
    result = np.zeros_like(shares)
    result[present] = own
    return result


def _clipped_shares(own: Array, rate: float) -> Array:
    """`closest_shares` for ascending positive shares whose rate is below ρ."""
    size = len(own)
    low, high = np.meshgrid(np.arange(1, size), np.arange(1, size), indexing="ij")
    low, high = low[low + high <= size], high[low + high <= size]
    mass, logs = (np.concatenate([[0.0], np.cumsum(values)]) for values in (own, np.log(own)))
    weight = low + high / rate
    rest = np.where(low + high < size, mass[size - high] - mass[low], 0.0)
    # log c = −Σ u·log(u/e) over the clipped groups, u = 1 or 1/ρ over `weight`.
    log_clipped = (logs[low] + (logs[size] - logs[size - high] + high * np.log(rate)) / rate) / weight
    clipped = np.exp(log_clipped + np.log(weight))
    floor = clipped / (clipped + rest) / weight
    scale = 1.0 / (clipped + rest)
    slack = 1e-12 * floor
    fits = (scale * own[np.minimum(low, size - 1)] >= floor - slack) | (rest == 0)
    fits &= (scale * own[size - high - 1] <= floor / rate + slack) | (rest == 0)
    best = int(np.argmax(np.where(fits, clipped + rest, -np.inf)))
    result = own * scale[best]
    result[: low[best]] = floor[best]
    result[size - high[best] :] = floor[best] / rate
    return np.asarray(result / result.sum())


def _given(
    empirical: Array,
    shares: Mapping[int, Array] | None,
    outcome_shares: Array | None,
    allowed: Mask | None,
    fill: float,
    describe: Callable[[Cell], str],
) -> _Given:
    """Check what the user named; drop the mass of forbidden cells."""
    named = dict(shares or {})
    if outcome_shares is not None:
        named[0] = outcome_shares
    for axis, target in named.items():
        sound = np.shape(target) == (empirical.shape[axis],) and bool((np.asarray(target) >= 0).all())
        if not (sound and abs(float(np.sum(target)) - 1.0) <= 1e-9):
            raise TargetError(
                f"the target of axis {axis} must be {empirical.shape[axis]} shares, none negative, that "
                f"sum to 1; got {np.asarray(target).tolist()}"
            )
    named = {axis: np.asarray(target / np.sum(target)) for axis, target in named.items()}
    allowed = np.ones(empirical.shape, dtype=bool) if allowed is None else allowed
    _refuse_forbidden_levels(empirical, allowed, named, describe)
    data = np.where(allowed, empirical, 0.0)
    return _Given(data / data.sum(), allowed, named, fill, describe)


def _refuse_forbidden_levels(
    empirical: Array, allowed: Mask, named: Mapping[int, Array], describe: Callable[[Cell], str]
) -> None:
    """A level that has rows, or a named share, needs one allowed cell at least."""
    for axis in range(empirical.ndim):
        others = tuple(other for other in range(empirical.ndim) if other != axis)
        needed = named[axis] > 0 if axis in named else empirical.sum(axis=others) > 0
        for level in np.flatnonzero(needed & ~allowed.any(axis=others)):
            slab = np.zeros(empirical.shape, dtype=bool)
            np.moveaxis(slab, axis, 0)[level] = True
            cell = _first(slab & (empirical > 0)) or _first(slab)
            raise ForbiddenError(
                f"every combination of a level that is needed is forbidden, among them {describe(cell)}; "
                "loosen the rule, or set this level's target to 0 to remove it"
            )


def _first(mask: Mask) -> Cell:
    """Return the first cell of a mask, () if it has none."""
    found = np.argwhere(mask)
    return tuple(int(level) for level in found[0]) if len(found) else ()


def _wanted(given: _Given, grouping: Grouping, rate: float | None) -> _Marginal:
    """Shares of the groups of one grouping (step 1).

    Named axes keep their shares; ρ rules the other axes within each combination of the named ones.
    """
    named = tuple(axis for axis in grouping if axis in given.named)
    axes = named + tuple(axis for axis in grouping if axis not in given.named)
    shape = tuple(given.data.shape[axis] for axis in axes)
    outer = _named_shares(given, named)
    own = group_table(given.data, axes).sum(axis=0).reshape(len(outer), -1)
    # A group without rows counts with the mass that filling would give it. With no filling it still gets a
    # share, so that the search for a support finds out, and names, the cells that are missing.
    pseudo = given.fill or given.data[given.data > 0].min()
    open_cells = group_table(given.allowed.astype(float), axes).sum(axis=0).reshape(own.shape)
    known = reduce(np.logical_and.outer, [_known_levels(given, axis) for axis in axes]).reshape(own.shape)
    complete = np.where(own > 0, own, pseudo * open_cells * known)
    demanded = rate is not None and len(grouping) > 1
    rows = [
        share * closest_shares(filled if demanded or not seen.any() else seen, rate)
        for share, seen, filled in zip(outer, own, complete, strict=True)
    ]
    return _Marginal(axes, np.concatenate(rows).reshape(shape))


def _known_levels(given: _Given, axis: int) -> Mask:
    """Levels of an axis that have rows, or a share that the user named: the others take no part."""
    if axis in given.named:
        return given.named[axis] > 0
    return np.asarray(given.data.sum(axis=tuple(other for other in range(given.data.ndim) if other != axis)) > 0)


def _named_shares(given: _Given, axes: Grouping) -> Array:
    """Joint shares of the axes the user named: the data's joint, fitted to the named marginals."""
    if len(axes) < 2:
        return given.named[axes[0]] if axes else np.ones(1)
    open_cells = group_table(given.allowed.astype(float), axes).sum(axis=0, keepdims=True) > 0

    def describe(cell: Cell) -> str:
        slab = np.zeros(given.data.shape, dtype=bool)
        np.moveaxis(slab, axes, range(len(axes)))[cell[1:]] = True
        return given.describe(_first(slab & given.allowed) or _first(slab))

    fitted = fair_table(
        group_table(given.data, axes).sum(axis=0, keepdims=True),
        groupings=(),
        representation=(),
        statistical=(),
        favourable=(),
        describe=describe,
        shares={index + 1: given.named[axis] for index, axis in enumerate(axes)},
        allowed=open_cells,
        fill=given.fill,
    )
    return fitted.table.ravel()


def _possible(given: _Given, marginals: list[_Marginal]) -> Mask:
    """Cells whose groups and outcome have a share; forbidden ones too, so that they can be named."""
    outcomes = given.named[0] if 0 in given.named else group_table(given.data, ())
    possible = np.zeros(given.data.shape, dtype=bool)
    possible[outcomes > 0] = True
    for marginal in marginals:
        np.moveaxis(possible, marginal.axes, range(len(marginal.axes)))[marginal.shares == 0] = False
    return possible


def _conditions(
    cells: Cells,
    marginals: list[_Marginal],
    statistical: tuple[tuple[_Marginal, float | None], ...],
    favourable: tuple[int, ...],
) -> Conditions:
    """All conditions on the cells, each divided by the size of what it fixes: errors are relative."""
    rows = [_conditional(cells, marginal) for marginal in marginals]
    values = [np.ones(len(block)) for block in rows]
    rates: list[Array] = [np.zeros((0, len(cells)))]
    least: list[float] = []
    for marginal, rate in statistical:
        for outcome in favourable:
            here = cells[:, 0] == outcome
            if rate is None or not here.any():
                continue
            rates.append(_conditional(cells, marginal) * here)
            least.append(rate)
    sizes = [len(block) for block in rates[1:]]
    return Conditions(
        np.vstack([np.zeros((0, len(cells))), *rows]),
        np.concatenate([np.zeros(0), *values]),
        np.vstack(rates),
        np.repeat(np.arange(len(sizes)), sizes),
        np.repeat(np.array(least, dtype=float), sizes),
    )


def _conditional(cells: Cells, marginal: _Marginal) -> Array:
    """One row per group with a share: 1 / s(g) on the cells of the group, so that row·t is a P(· | g)."""
    group = np.ravel_multi_index(tuple(cells[:, list(marginal.axes)].T), marginal.shares.shape)
    shares = marginal.shares.ravel()
    present = np.flatnonzero(shares > 0)
    return np.asarray((group == present[:, np.newaxis]) / shares[present][:, np.newaxis])


def _support(given: _Given, cells: Cells, marginals: list[_Marginal], conditions: Conditions) -> Mask:
    """Cells that get mass: those with rows if they can do it alone, else also the empty ones."""
    seen: Mask = given.data[tuple(cells.T)] > 0
    floor: Array = _reweighted(given.data, marginals)[tuple(cells.T)]
    if seen.all() or room(conditions.on(seen), floor[seen]) > LEAST_ROOM:
        return seen
    allowed: Mask = given.allowed[tuple(cells.T)]
    needed = np.zeros_like(seen)
    found = fewest_cells(conditions.on(allowed), floor[allowed], ~seen[allowed])
    if found is None:
        raise _impossible(given, cells, conditions, floor)
    needed[allowed] = found
    if given.fill == 0.0:
        joint = any(len(marginal.axes) > 1 for marginal in marginals)
        raise InfeasibleError(
            f"the wanted shares and rates need rows where there are none: {_list(given, cells[needed & ~seen])}; "
            "set base_share > 0 so that they can be filled, merge levels, "
            + ("lower the rate, or use groups='each'" if joint else "or lower the rate")
        )
    # A group without any rows has no outcome to prefer: all of them are opened, if conditions allow it.
    unknown = given.data.sum(axis=0)[tuple(cells.T[1:])] == 0
    touched = np.zeros(given.data.shape[1:], dtype=bool)
    touched[tuple(cells[needed & ~seen].T[1:])] = True
    wide = seen | needed | (allowed & unknown & touched[tuple(cells.T[1:])])
    pseudo = np.where(seen, floor, given.fill)
    return wide if room(conditions.on(wide), pseudo[wide]) > LEAST_ROOM else seen | needed


def _impossible(given: _Given, cells: Cells, conditions: Conditions, floor: Array) -> InfeasibleError:
    """Say which forbidden cells stand in the way, if they do."""
    forbidden = ~given.allowed[tuple(cells.T)]
    needed = fewest_cells(conditions, floor, forbidden)
    if needed is None or not (needed & forbidden).any():
        return InfeasibleError(
            "no table has the wanted shares and rates without emptying a group or an outcome that has rows; "
            "lower the rates, or change the target"
        )
    return InfeasibleError(
        "the wanted shares and rates need combinations that are forbidden: "
        f"{_list(given, cells[needed & forbidden])}; loosen the rule, merge levels, or lower the rate"
    )


def _list(given: _Given, cells: Cells) -> str:
    """Name up to three cells."""
    names = [given.describe(tuple(int(level) for level in cell)) for cell in cells[:3]]
    return "; ".join(names) + (f" and {len(cells) - 3} more" if len(cells) > 3 else "")


def _reweighted(table: Array, marginals: list[_Marginal]) -> Array:
    """Scale a table to one marginal after the other: what its cells can expect, exact for one marginal."""
    expected = table.copy()
    for marginal in marginals:
        front = np.moveaxis(expected, marginal.axes, range(len(marginal.axes)))
        own = front.sum(axis=tuple(range(len(marginal.axes), front.ndim)))
        ratio = np.divide(marginal.shares, own, out=np.zeros_like(own), where=own > 0)
        front *= ratio.reshape(ratio.shape + (1,) * (front.ndim - ratio.ndim))
    return expected


def _solved(given: _Given, cells: Cells, marginals: list[_Marginal], conditions: Conditions) -> FairTable:
    """Project the data on the conditions (step 2)."""
    index = tuple(cells.T)
    prior = np.zeros_like(given.data)
    prior[index] = np.where(given.data[index] > 0, given.data[index], given.fill)
    # Scaling groups does not change where the projection ends, only how soon.
    projection = project(_reweighted(prior, marginals)[index], conditions)
    table = np.zeros_like(given.data)
    table[index] = projection.point / projection.point.sum()
    filled = tuple(tuple(int(level) for level in cell) for cell in cells[given.data[index] == 0])
    return FairTable(table, filled, projection.iterations, projection.residual)
