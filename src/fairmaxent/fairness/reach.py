"""Reach: the best rates that tables within a limit can have, and the limit they need.

**Program.** With conditions A·t = b, rates r = R·t in blocks with a bound m each, and a
ceiling 0 ≤ t ≤ l, σ* is the largest σ at which some t has m ≤ r_k and
min(σ_k, σ)·r_k ≤ m for every rate k: one common σ for the blocks that cannot be met,
and what was asked for the others.

**Steps.** For one σ, the smallest x with min(σ_k, σ)·r_k ≤ m + x in the blocks that ask
for more than σ is a linear program. Its t reaches some σ⁺, from which the next step
starts (Dinkelbach). The first step is at what was asked, so x ≤ 0 says that it can be
had. All later ones are reached by a table, so they rise, and faster than linearly. They
end where x = 0: by the duality of linear programs that is a proof that no table within
the limit reaches more.

References: W. Dinkelbach (1967), On nonlinear fractional programming, Management
Science 13; J.-P. Crouzeix and J. A. Ferland (1991), Algorithms for generalized
fractional programming, Mathematical Programming 52.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.errors import SolverError
from fairmaxent.fairness.projection import (
    Conditions,
    block_count,
    minimum,
    relative,
)

_LITTLE=1e-3
_NOTHING=1e-7
_STEP = 1e-11  # a step that is not larger is the last
_NO_TABLE = (
    "no table with this largest weight was reached; allow a larger one, or ask for less"
)


def within(conditions: Conditions, ceiling: Reals) -> Conditions:
    """The conditions below a ceiling, with the best rates that are possible there.

    Some table must meet all but the rates.
    """
    limited = replace(conditions, ceiling=ceiling)
    rate = best_rate(limited) * (1 - 1e-12)
    if rate > 0.0:
        return replace(limited, least=np.minimum(conditions.least, rate))
    return replace(
        limited,
        rates=conditions.rates[:0],
        block=conditions.block[:0],
        least=conditions.least[:0],
    )


def face(conditions: Conditions) -> tuple[Conditions, Mask]:
    """The same conditions, with equalities where nothing else is possible.

    Also the cells that can have mass.
    """
    assert conditions.ceiling is not None
    ceiling = conditions.ceiling
    is_loose = _loose(conditions)
    cells = len(ceiling)
    rates = len(conditions.rates)
    filled, below, above_m, below_m = np.split(
        is_loose, np.cumsum([cells, cells, rates])
    )
    full = np.flatnonzero(filled & ~below & np.isfinite(ceiling))
    fixed = np.eye(cells)[full] / ceiling[full][:, None]
    lowered = np.where(below_m, 1.0, conditions.least)
    least = np.where(above_m & below_m, conditions.least, 1.0)
    reduced = replace(
        conditions,
        rows=np.vstack([conditions.rows, fixed]),
        values=np.concatenate([conditions.values, np.ones(len(full))]),
        rates=conditions.rates * lowered[:, None],
        least=least,
        ceiling=np.where(below, ceiling, np.inf),
    )
    return reduced.on(filled), filled


def _loose(conditions: Conditions) -> Mask:
    """Which inequalities are not equalities for all that meet them.

    t >= 0, t <= l, m <= r, and σ·r <= m, in this order.
    """
    assert conditions.ceiling is not None
    unit = _unit(conditions.ceiling)
    conditions = relative(conditions, unit)
    cells = len(unit)
    blocks = block_count(conditions)
    member = np.eye(blocks)[conditions.block]
    rates = conditions.rates * unit
    each = np.eye(cells)
    capped = np.isfinite(conditions.ceiling)[:, None]
    # The unknowns are t/unit, m, and 1.
    slack = np.vstack(
        [
            np.hstack([each, np.zeros((cells, blocks + 1))]),
            np.hstack([-each * capped, np.zeros((cells, blocks)), np.ones((cells, 1))]),
            np.hstack([rates, -member, np.zeros((len(rates), 1))]),
            np.hstack(
                [
                    -rates * conditions.least[:, None],
                    member,
                    np.zeros((len(rates), 1)),
                ]
            ),
        ]
    )
    rows = conditions.rows * unit
    count = len(slack)
    equal = np.hstack([rows, np.zeros((len(rows), blocks + 1 + count))])
    below = np.hstack([-slack, _LITTLE * np.eye(count)])
    is_loose = np.zeros(count, dtype=bool)
    while not is_loose.all():
        wanted = ~is_loose
        cost = np.concatenate([np.zeros(cells + blocks + 1), -wanted.astype(float)])
        bounds: list[Any] = [(0.0, None)] * (cells + blocks)
        bounds.append((1.0, 1.0))
        bounds += [(0.0, float(one)) for one in wanted]
        answer = minimum(cost, below, equal, conditions.values, bounds)
        if answer is None:
            raise SolverError(_NO_TABLE)
        more = (slack @ answer[: cells + blocks + 1] > _NOTHING) & wanted
        if not more.any():
            break
        is_loose |= more
    return is_loose


def smallest_limit(conditions: Conditions, rows: Reals) -> float:
    """The smallest limit within which some table meets the conditions.

    Infinity if none does.
    """
    cells = len(rows)
    each = np.eye(cells)[np.isfinite(rows)]
    between = np.zeros((len(each), block_count(conditions)))
    limits = np.hstack([each, between, -np.ones((len(each), 1))])
    bounds: list[Any] = [(0.0, None)] * (cells + between.shape[1] + 1)
    answer = _extreme(
        conditions,
        _unit(rows),
        pressed=np.zeros(len(conditions.least), dtype=bool),
        limits=limits,
        bounds=bounds,
    )
    if answer is None:
        return float("inf")
    return float(answer[-1])


def best_rate(conditions: Conditions) -> float:
    """σ*: the best rate that tables below the ceiling have in common."""
    assert conditions.ceiling is not None
    unit = _unit(conditions.ceiling)
    most = np.where(np.isfinite(conditions.ceiling), 1.0, np.inf)
    bounds: list[Any] = [(0.0, share) for share in most.tolist()]
    bounds += [(0.0, None)] * block_count(conditions)
    bounds.append((None, None))
    pressed = np.ones(len(conditions.least), dtype=bool)
    reached = -1.0
    at_reached = conditions
    while pressed.any():
        answer = _extreme(
            at_reached,
            unit,
            pressed=pressed,
            limits=np.zeros((0, len(bounds))),
            bounds=bounds,
        )
        if answer is None:
            raise SolverError(_NO_TABLE)
        rates = conditions.rates @ (answer[: len(unit)] * unit)
        higher = _reached(conditions, rates, pressed)
        if higher <= reached + _STEP:
            break
        reached = higher
        pressed = conditions.least > reached
        least = np.minimum(conditions.least, reached)
        at_reached = replace(conditions, least=least)
    return reached


def _reached(conditions: Conditions, rates: Reals, pressed: Mask) -> float:
    """The smallest of the pressed blocks' rates that are short of what was asked.

    If none is short, the highest that was asked for.
    """
    block = conditions.block
    lowest = np.full(block_count(conditions), np.inf)
    highest = np.zeros(block_count(conditions))
    np.minimum.at(lowest, block, rates)
    np.maximum.at(highest, block, rates)
    ratios = np.ones(len(lowest))
    np.divide(lowest, highest, out=ratios, where=highest > 0)
    short = pressed & (ratios[block] < conditions.least)
    return float(ratios[block][short].min(initial=conditions.least[pressed].max()))


def _unit(masses: Reals) -> Reals:
    """Masses that unknowns are counted in; where there is no limit, the smallest."""
    return np.where(np.isfinite(masses), masses, masses.min())


def _extreme(
    conditions: Conditions,
    unit: Reals,
    *,
    pressed: Mask,
    limits: Reals,
    bounds: list[Any],
) -> Reals | None:
    """The unknowns t/unit, m and x of smallest x; None if there are none.

    In pressed blocks σ·r ≤ m + x, in the others σ·r ≤ m; and limits·unknowns ≤ 0.
    """
    conditions = relative(conditions, unit)
    blocks = block_count(conditions)
    member = np.eye(blocks)[conditions.block]
    rates = conditions.rates * unit
    high = conditions.least[:, None] * rates
    below = np.hstack([-rates, member, np.zeros((len(rates), 1))])
    above = np.hstack([high, -member, -pressed[:, None].astype(float)])
    rows = conditions.rows * unit
    equal = np.hstack([rows, np.zeros((len(rows), blocks + 1))])
    cost = np.zeros(len(bounds))
    cost[-1] = 1.0
    inequalities = np.vstack([below, above, limits])
    return minimum(cost, inequalities, equal, conditions.values, bounds)
