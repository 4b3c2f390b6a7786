"""Reach: which cells tables can fill, and the best rates that they can have.

**Program.** With conditions A·t = b, rates r = R·t in blocks with a bound m each, and a
ceiling 0 ≤ t ≤ l, σ* is the largest σ at which some t has m ≤ r_k and
min(σ_k, σ)·r_k ≤ m for every rate k: one common σ for the blocks that cannot be met,
and what was asked for the others.

**Steps.** For one σ, the smallest x with min(σ_k, σ)·r_k ≤ m + x in the blocks that ask
for more than σ is a linear program. Its t reaches some σ⁺, from which the next step
starts (Dinkelbach). The first step is at what was asked. All later ones start from a σ
that a table reaches, so they rise, and faster than linearly. They end where x = 0: by
the duality of linear programs that is a proof that no table below the ceiling reaches
more.

**Face.** At σ* some inequalities are equalities for all tables that are left: cells are
full or empty, rates at their bounds. Between them there is no room for the
interior-point method, so they are found, by linear programs too, and it is told.

**Room.** Without a ceiling, the same programs say whether all cells that have rows can
keep some of their mass, and if not, which can, or which others have to have some.

References: W. Dinkelbach (1967), On nonlinear fractional programming, Management
Science 13; J.-P. Crouzeix and J. A. Ferland (1991), Algorithms for generalized
fractional programming, Mathematical Programming 52.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import SolverError
from fairmaxent.fairness.projection import Conditions, block_count

# Every cell with rows must be able to keep this share of its mass: 10⁴ times the
# tolerance of the linear program that decides it, so that a "yes" is never a rounding
# error.
LEAST_ROOM = 1e-6
_NO_MASS = 1e-9
# Slacks are relative: to the ceiling of a cell, or to the smallest rate of a block.
_ROOM = 1e-3  # a slack that counts as much as a larger one
_NO_ROOM = 1e-7  # one that is a rounding error
_SAME_RATE = 1e-11
# What is asked for less than a linear program found possible, if that does not do.
_ROUNDING = (1e-12, 1e-9, 1e-7)
_NO_TABLE = (
    "no table with this largest weight was reached; allow a larger one, or ask for less"
)


def room(conditions: Conditions, floor: Reals) -> float:
    """Return the largest share x <= 1 such that some t >= x·floor meets the conditions.

    0 if there is none.
    """
    answer = _above(conditions, floor, np.zeros(len(floor)), -1.0, (0.0, 1.0))
    if answer is None:
        return 0.0
    return float(answer[-1])


def fewest_cells(conditions: Conditions, floor: Reals, costly: Mask) -> Mask | None:
    """Return the cells of a t with as little mass as possible on the costly cells.

    It meets the conditions. The other cells keep half of the share that they can keep;
    None if they can keep none.
    """
    half = room(conditions, floor) / 2
    if half <= LEAST_ROOM:
        return None
    answer = _above(conditions, floor, costly.astype(float), 0.0, (half, half))
    if answer is None:
        return None
    return (answer[: len(floor)] * _unit_above(floor) > _NO_MASS) | ~costly


def most_cells(conditions: Conditions, floor: Reals) -> Mask:
    """Return the cells that can have mass in a t that meets the conditions.

    None of them if nothing meets them.
    """
    cells = len(floor)
    asked = np.arange(len(_slacks(conditions, floor))) < cells
    has_room = _has_room(conditions, floor, asked, LEAST_ROOM)
    if has_room is None:
        return np.zeros(cells, dtype=bool)
    return has_room[:cells]


def smallest_limit(conditions: Conditions) -> float:
    """The smallest multiple of the ceiling below which some t meets the conditions.

    Infinity if none does.
    """
    unit = _unit(conditions)
    nothing = np.zeros((len(_slacks(conditions, unit)), 0))
    answer = _best(conditions, unit, nothing, [1.0], [(0.0, None)])
    if answer is None:
        return float("inf")
    return float(answer[-1])


def with_best_rates(conditions: Conditions) -> Conditions:
    """The same conditions with the best rates that are possible below the ceiling."""
    rate = best_rate(conditions)
    if rate > _NO_ROOM:
        return replace(conditions, least=np.minimum(conditions.least, rate))
    return replace(conditions, rates=0 * conditions.rates).settled()


def best_rate(conditions: Conditions) -> float:
    """σ*: the best rate that is possible below the ceiling.

    Some t must meet all but the rates.
    """
    asked = conditions.least
    cells = conditions.rows.shape[1]
    pressed = np.ones(len(asked), dtype=bool)
    reached = -1.0
    while pressed.any():
        excess = np.zeros((2 * cells + 2 * len(asked), 1))
        excess[2 * cells + len(asked) :, 0] = pressed
        bounds = [(1.0, 1.0), (None, None)]
        unit = _unit(conditions)
        answer = _best(conditions, unit, excess, [0.0, 1.0], bounds)
        if answer is None:
            raise SolverError(_NO_TABLE)
        ratios = _ratios(conditions, answer[:cells] * unit)
        short = pressed & (ratios < asked)
        higher = float(ratios[short].min(initial=asked[pressed].max()))
        if higher <= reached + _SAME_RATE:
            break
        reached = higher
        pressed = asked > reached
        conditions = replace(conditions, least=np.minimum(asked, reached))
    return reached


def face(conditions: Conditions) -> tuple[Conditions, Mask]:
    """The conditions as equalities where no t has room below the ceiling.

    Also the cells that can have mass.
    """
    ceiling = conditions.ceiling
    assert ceiling is not None
    cells = len(ceiling)
    unit = _unit(conditions)
    every = np.ones(len(_slacks(conditions, unit)), dtype=bool)
    asked = conditions.least
    for less in _ROUNDING:
        conditions = replace(conditions, least=asked * (1 - less))
        has_room = _has_room(conditions, unit, every, _NO_ROOM)
        if has_room is not None:
            break
    else:
        raise SolverError(_NO_TABLE)
    of_cells, of_rates = np.split(has_room, [2 * cells])
    filled, below = of_cells.reshape(2, cells)
    above_least, below_most = of_rates.reshape(2, -1)
    full = np.eye(cells)[filled & ~below]
    factor = np.where(below_most, 1.0, conditions.least)
    reduced = replace(
        conditions,
        rows=np.vstack([conditions.rows, full / unit]),
        values=np.concatenate([conditions.values, np.ones(len(full))]),
        rates=conditions.rates * factor[:, None],
        least=np.where(above_least & below_most, conditions.least, 1.0),
        ceiling=np.where(below, ceiling, np.inf),
    )
    return reduced.on(filled), filled


def _has_room(
    conditions: Conditions, unit: Reals, asked: Mask, least: float
) -> Mask | None:
    """The slacks, of those asked for, that are above the least for some t.

    None if no t meets the conditions.
    """
    slacks = _slacks(conditions, unit)
    unknowns = slacks.shape[1]
    beside = -_ROOM * np.eye(len(slacks))[:, asked]
    found = ~asked
    while not found.all():
        # Each program gives room to as many more as it can; the mean of all answers
        # has room for all of them.
        sought = ~found
        bounds: list[Any] = [(1.0, 1.0)]
        bounds += [(0.0, float(one)) for one in sought[asked]]
        cost = [0.0, *-sought[asked].astype(float)]
        answer = _best(conditions, unit, beside, cost, bounds)
        if answer is None:
            return None
        more = sought & (slacks @ answer[:unknowns] > least)
        if not more.any():
            break
        found |= more
    return found & asked


def _above(
    conditions: Conditions,
    floor: Reals,
    cost: Reals,
    cost_of_share: float,
    share: tuple[float, float],
) -> Reals | None:
    """The unknowns of least cost, for t >= x·floor with a share x within bounds."""
    unit = _unit_above(floor)
    slacks = _slacks(conditions, unit)
    beside = np.zeros((len(slacks), 1))
    beside[: len(floor), 0] = -(floor > 0).astype(float)
    costs = np.zeros(slacks.shape[1] + 1)
    costs[: len(floor)] = cost * unit
    costs[-1] = cost_of_share
    return _best(conditions, unit, beside, costs, [(1.0, 1.0), share])


def _unit_above(floor: Reals) -> Reals:
    """What cells are counted in if they keep a share of a floor, which may be 0."""
    return np.where(floor > 0, floor, 1.0)


def _ratios(conditions: Conditions, point: Reals) -> Reals:
    """For each rate, the smallest of its block divided by the largest."""
    rates = conditions.rates @ point
    lowest = np.full(block_count(conditions), np.inf)
    highest = np.full(block_count(conditions), np.finfo(float).tiny)
    np.minimum.at(lowest, conditions.block, rates)
    np.maximum.at(highest, conditions.block, rates)
    return np.asarray((lowest / highest)[conditions.block])


def _unit(conditions: Conditions) -> Reals:
    """What cells are counted in: their ceilings, or the lowest of all."""
    assert conditions.ceiling is not None
    ceiling = conditions.ceiling
    return np.where(np.isfinite(ceiling), ceiling, ceiling.min())


def _slacks(conditions: Conditions, unit: Reals) -> Reals:
    """Rows whose products with the unknowns are t, z·l − t, r − m, and m − σ·r.

    The unknowns are t (of each cell in its unit), m, and z, which is usually 1. Cells
    with a ceiling l are counted in it.
    """
    cells = len(unit)
    member = np.eye(block_count(conditions))[conditions.block]
    rates = conditions.rates * unit
    most = rates.sum(axis=1)
    smallest = np.full(member.shape[1], most.max(initial=1.0))
    np.minimum.at(smallest, conditions.block[most > 0], most[most > 0])
    rates /= smallest[conditions.block][:, None]
    each = np.eye(cells)
    has_limit = (conditions.steepness > 0)[:, None]
    no_bound = np.zeros((cells, member.shape[1]))
    nothing = np.zeros((len(rates), 1))
    return np.vstack(
        [
            np.hstack([each, no_bound, np.zeros((cells, 1))]),
            np.hstack([-each * has_limit, no_bound, np.ones((cells, 1))]),
            np.hstack([rates, -member, nothing]),
            np.hstack([-conditions.least[:, None] * rates, member, nothing]),
        ]
    )


def _best(
    conditions: Conditions,
    unit: Reals,
    beside: Reals,
    cost: Sequence[float] | Reals,
    bounds: list[Any],
) -> Reals | None:
    """The unknowns of least cost; None if there are none.

    They are those of the slacks and some more, which count as the columns of
    ``beside``. Costs are those of the last unknowns; bounds those of z and of the
    latter.
    """
    below = np.hstack([_slacks(conditions, unit), beside])
    unknowns = below.shape[1]
    rows = conditions.rows * unit
    others = np.zeros((len(rows), unknowns - rows.shape[1]))
    return _minimum(
        np.concatenate([np.zeros(unknowns - len(cost)), cost]),
        -below,
        np.hstack([rows, others]),
        conditions.values,
        [(0.0, None)] * (unknowns - len(bounds)) + bounds,
    )


def _minimum(
    cost: Reals,
    below: Reals,
    equal: Reals,
    values: Reals,
    bounds: list[Any],
) -> Reals | None:
    """Minimise cost·x under below·x <= 0, equal·x = values and the bounds.

    None if nothing meets them.
    """
    # SciPy is slow to import, and only tables with empty cells need it.
    from scipy import optimize, sparse

    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = optimize.linprog(
        cost,
        A_ub=sparse.csr_array(below),
        b_ub=np.zeros(len(below)),
        A_eq=sparse.csr_array(equal),
        b_eq=values,
        bounds=bounds,
        options=tight,
    )
    if answer.status == 0:
        return answer.x
    return None
