"""The fair table from a general convex solver that is given the data and the wishes, and nothing of ours.

The steps are those of the definition: the closest group shares with the wanted representation rate; the cells that get
mass; the closest table with these shares and the wanted statistical rate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.errors import ForbiddenError, InfeasibleError
from fairmaxent.fairness.fair_table import fair_table

# Tighter than the solver can always reach; it then says "inaccurate", which here means better than 1e-9.
TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

RATES = [None, 0.3, 0.8, 1.0]


@dataclass(frozen=True)
class Wishes:
    """What is asked for: one representation and one statistical rate for all groupings, and named shares by axis."""

    groupings: tuple[tuple[int, ...], ...]
    representation: float | None
    statistical: float | None
    favourable: tuple[int, ...]
    named: dict[int, np.ndarray] = field(default_factory=dict)


# ---------------------------------------------------------------- the steps, by cvxpy


def minimum(objective, conditions):
    """The least value, None where nothing meets the conditions."""
    problem = cp.Problem(cp.Minimize(objective), conditions)
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    return problem.value if problem.status in ("optimal", "optimal_inaccurate") else None


def closest(shares, rate):
    """Of the groups that have mass, the shares of least KL with min >= ρ·max."""
    present = shares > 0
    prior = shares[present] / shares.sum()
    s = cp.Variable(present.sum())
    conditions = [cp.sum(s) == 1] + ([] if rate is None else [cp.min(s) >= rate * cp.max(s)])
    assert minimum(cp.sum(cp.kl_div(s, prior)), conditions) is not None
    result = np.zeros(shares.shape)
    result[present] = s.value
    return result / result.sum()


def group_sums(table, axes):
    """Mass by the levels of some axes, in their order."""
    result = np.zeros([table.shape[axis] for axis in axes])
    for cell in np.ndindex(table.shape):
        result[tuple(cell[axis] for axis in axes)] += table[cell]
    return result


def wanted_shares(data, allowed, wishes, fill):
    """Step 1, for each grouping. A named axis keeps its shares, and the rate rules within each of its levels."""
    for grouping in wishes.groupings:
        first = [axis for axis in grouping if axis in wishes.named]
        axes = (*first, *(axis for axis in grouping if axis not in first))
        masses = group_sums(data, axes)
        if wishes.representation is not None and len(grouping) > 1:
            # A group that could have rows and has none counts with what it would be filled with.
            could = group_sums(allowed.astype(float), axes)
            for place, axis in enumerate(axes):
                known = wishes.named[axis] > 0 if axis in wishes.named else group_sums(data, (axis,)) > 0
                could *= known.reshape([-1 if other == place else 1 for other in range(len(axes))])
            masses = np.where(masses > 0, masses, could * (fill or data[data > 0].min()))
        if first:
            outer = wishes.named[first[0]]
            rows = masses.reshape(len(outer), -1)
            shares = np.array([o * closest(row, wishes.representation) for o, row in zip(outer, rows, strict=True)])
            yield axes, shares.reshape(masses.shape)
        else:
            yield axes, closest(masses, wishes.representation)


def conditions_on(t, cells, shares, wishes):
    """The wanted shares, and for each favourable outcome min P(y | g) >= σ·max P(y | g)."""
    conditions = []
    for axes, wanted in shares:
        groups = [group for group in np.ndindex(wanted.shape) if wanted[group] > 0]
        rows = np.array([(cells[:, axes] == group).all(axis=1) / wanted[group] for group in groups])
        conditions.append(rows @ t == 1)
        for y in wishes.favourable if wishes.statistical is not None and axes != (0,) else ():
            if (cells[:, 0] == y).any():
                rates = (rows * (cells[:, 0] == y)) @ t
                conditions.append(cp.min(rates) >= wishes.statistical * cp.max(rates))
    return conditions


def room(cells, data, shares, wishes):
    """The largest share of itself that every cell with rows can keep; 0 where nothing meets the wishes."""
    if not len(cells):
        return 0.0
    t, kept = cp.Variable(len(cells), nonneg=True), cp.Variable()
    floor = scaled(data, shares)[tuple(cells.T)]
    value = minimum(-kept, [*conditions_on(t, cells, shares, wishes), t >= kept * floor, kept <= 1, kept >= 0])
    return 0.0 if value is None else -value


def scaled(data, shares):
    """What cells with rows can expect: the data, scaled to one wanted marginal after the other."""
    result = data.copy()
    for axes, wanted in shares:
        own = group_sums(result, axes)
        factor = np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)
        for cell in np.ndindex(data.shape):
            result[cell] *= factor[tuple(cell[axis] for axis in axes)]
    return result


def fillable(cells, data, shares, wishes):
    """Empty cells that some solution of least mass on empty cells uses; those with rows keep half of their room."""
    half = room(cells, data, shares, wishes) / 2
    t = cp.Variable(len(cells), nonneg=True)
    floor, empty = scaled(data, shares)[tuple(cells.T)], data[tuple(cells.T)] == 0
    assert minimum(empty @ t, [*conditions_on(t, cells, shares, wishes), t >= half * floor]) is not None
    return {tuple(map(int, cell)) for cell in cells[empty & (t.value > 1e-7)]}


def closest_table(prior, shares, wishes):
    """Step 2 on the cells that have mass in the prior."""
    cells = np.argwhere(prior > 0)
    t = cp.Variable(len(cells))
    objective = cp.sum(cp.kl_div(t, prior[prior > 0]))
    assert minimum(objective, conditions_on(t, cells, shares, wishes)) is not None
    result = np.zeros(prior.shape)
    result[prior > 0] = t.value
    return result


# ---------------------------------------------------------------- random tables and wishes


def random_problem(seed, *, empty):
    rng = np.random.default_rng([31, seed])
    shape = (rng.integers(2, 4), *rng.integers(2, 4, size=1 + seed % 3))
    table = rng.gamma(rng.choice([0.7, 2.0]), size=shape) + 1e-3
    table[rng.random(shape) < empty] = 0.0
    axes = tuple(range(1, len(shape)))
    groupings = (axes,) if rng.random() < 0.5 else tuple((axis,) for axis in axes)
    favourable = tuple(sorted(map(int, rng.choice(shape[0], size=rng.integers(1, shape[0] + 1), replace=False))))
    named = {}
    if seed % 4 == 1:
        named = {1: rng.dirichlet(np.full(shape[1], 3.0))}
    if seed % 4 == 2:
        named = {0: rng.dirichlet(np.full(shape[0], 3.0))}
    rates = (RATES[rng.integers(4)], RATES[rng.integers(1, 4)])
    if empty and seed % 5 == 0 and len(axes) > 1:  # an intersection without any rows, which a rate asks for
        table[(slice(None), *(0,) * len(axes))] = 0.0
        groupings, rates, named = (axes,), (RATES[rng.integers(1, 3)], rates[1]), {}
    return table / table.sum(), Wishes(groupings, *rates, favourable, named), rng


def ours(table, wishes, allowed, fill):
    count = len(wishes.groupings)
    return fair_table(
        table,
        groupings=wishes.groupings,
        representation=(wishes.representation,) * count,
        statistical=(wishes.statistical,) * count,
        favourable=wishes.favourable,
        shares={axis: shares for axis, shares in wishes.named.items() if axis > 0},
        outcome_shares=wishes.named.get(0),
        allowed=allowed,
        fill=fill,
        describe=str,
    )


def all_shares(data, allowed, wishes, fill):
    outcome = [((0,), wishes.named[0])] if 0 in wishes.named else []
    return [*wanted_shares(data, allowed, wishes, fill), *outcome]


def possible(data, shares, wishes):
    """Cells whose outcome and groups have a share."""
    result = np.ones(data.shape, dtype=bool)
    if 0 not in wishes.named:
        result[group_sums(data, (0,)) == 0] = False
    for axes, wanted in shares:
        for cell in np.argwhere(result):
            result[tuple(cell)] = wanted[tuple(cell[list(axes)])] > 0
    return result


@pytest.mark.parametrize("seed", range(24))
def test_full_tables(seed):
    table, wishes, _ = random_problem(seed, empty=0.0)
    allowed = np.ones(table.shape, dtype=bool)
    expected = closest_table(table, all_shares(table, allowed, wishes, 0.0), wishes)
    result = ours(table, wishes, allowed, 0.0)
    assert result.filled == ()
    np.testing.assert_allclose(result.table, expected, atol=5e-5)


@pytest.mark.parametrize("seed", range(40))
def test_empty_and_forbidden_cells(seed):
    table, wishes, rng = random_problem(seed, empty=0.1)
    allowed = rng.random(table.shape) > 0.1 * (seed % 4 == 3)
    fill = 1e-3 * (seed % 6 != 1)
    data = np.where(allowed, table, 0.0) / table[allowed].sum()
    shares = all_shares(data, allowed, wishes, fill)
    cells = np.argwhere(possible(data, shares, wishes))
    seen, open_cells = (cells[mask[tuple(cells.T)]] for mask in (data > 0, allowed))
    try:
        result = ours(table, wishes, allowed, fill)
    except ForbiddenError:
        assert any_level_is_forbidden(table, allowed, wishes)
        return
    except InfeasibleError:
        assert room(open_cells if fill else seen, data, shares, wishes) < 1e-5
        return
    unknown = group_sums(data, range(1, data.ndim)) == 0
    if room(seen, data, shares, wishes) > 1e-5:
        assert result.filled == ()
    else:
        assert fill
        assert {cell for cell in result.filled if not unknown[cell[1:]]} <= fillable(open_cells, data, shares, wishes)
    prior = data.copy()
    for cell in result.filled:
        assert data[cell] == 0
        assert allowed[cell]
        prior[cell] = fill
    prior[~possible(data, shares, wishes)] = 0.0
    np.testing.assert_allclose(result.table, closest_table(prior, shares, wishes), atol=5e-5)


def any_level_is_forbidden(table, allowed, wishes):
    """Whether a level with rows, or with a named share, has no cell left."""
    for axis in range(table.ndim):
        needed = wishes.named[axis] > 0 if axis in wishes.named else group_sums(table, (axis,)) > 0
        if (needed & (group_sums(allowed.astype(float), (axis,)) == 0)).any():
            return True
    return False
