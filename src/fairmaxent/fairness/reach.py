"""Reach: the best rates that tables below a ceiling can have, and what they need.

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

References: W. Dinkelbach (1967), On nonlinear fractional programming, Management
Science 13; J.-P. Crouzeix and J. A. Ferland (1991), Algorithms for generalized
fractional programming, Mathematical Programming 52.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import SolverError
from fairmaxent.fairness.projection import Conditions, block_count, minimum

# Slacks are relative: to the ceiling of a cell, or to the smallest rate of a block.
_ROOM = 1e-3  # a slack that counts as much as a larger one
_NO_ROOM = 1e-7  # one that is a rounding error
_SAME_RATE = 1e-11
# What is asked for less than a linear program found possible, if that does not do.
_ROUNDING = (1e-12, 1e-9, 1e-7)
_NO_TABLE = (
    "no table with this largest weight was reached; allow a larger one, or ask for less"
)


def smallest_limit(conditions: Conditions) -> float:
    """The smallest multiple of the ceiling below which some t meets the conditions.

    Infinity if none does.
    """
    nothing = np.zeros((len(_slacks(conditions)), 0))
    answer = _best(conditions, nothing, [1.0], [(0.0, None)])
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
        answer = _best(conditions, excess, [0.0, 1.0], bounds)
        if answer is None:
            raise SolverError(_NO_TABLE)
        ratios = _ratios(conditions, answer[:cells] * _unit(conditions))
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
    asked = conditions.least
    for less in _ROUNDING:
        conditions = replace(conditions, least=asked * (1 - less))
        has_room = _has_room(conditions)
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
        rows=np.vstack([conditions.rows, full / _unit(conditions)]),
        values=np.concatenate([conditions.values, np.ones(len(full))]),
        rates=conditions.rates * factor[:, None],
        least=np.where(above_least & below_most, conditions.least, 1.0),
        ceiling=np.where(below, ceiling, np.inf),
    )
    return reduced.on(filled), filled


def _has_room(conditions: Conditions) -> Mask | None:
    """The slacks that are above zero for some t; None if none meets the conditions."""
    slacks = _slacks(conditions)
    unknowns = slacks.shape[1]
    found = np.zeros(len(slacks), dtype=bool)
    while not found.all():
        # Each program gives room to as many more as it can; the mean of all answers
        # has room for all of them.
        sought = ~found
        bounds: list[Any] = [(1.0, 1.0), *((0.0, float(one)) for one in sought)]
        cost = [0.0, *-sought.astype(float)]
        answer = _best(conditions, -_ROOM * np.eye(len(slacks)), cost, bounds)
        if answer is None:
            return None
        more = sought & (slacks @ answer[:unknowns] > _NO_ROOM)
        if not more.any():
            break
        found |= more
    return found


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


def _slacks(conditions: Conditions) -> Reals:
    """Rows whose products with the unknowns are t, z·l − t, r − m, and m − σ·r.

    The unknowns are t (in units of its ceiling), m, and z, which is usually 1.
    """
    unit = _unit(conditions)
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
    beside: Reals,
    cost: list[float],
    bounds: list[Any],
) -> Reals | None:
    """The unknowns of least cost; None if there are none.

    They are those of the slacks and some more, which count as the columns of
    ``beside``. Costs and bounds are those of z and of the latter.
    """
    slacks = _slacks(conditions)
    free = slacks.shape[1] - 1
    rows = conditions.rows * _unit(conditions)
    others = np.zeros((len(rows), free + len(cost) - rows.shape[1]))
    return minimum(
        np.concatenate([np.zeros(free), cost]),
        -np.hstack([slacks, beside]),
        np.hstack([rows, others]),
        conditions.values,
        [(0.0, None)] * free + bounds,
    )
