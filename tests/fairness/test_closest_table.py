"""The fair table from a general convex solver that is given the data and the wishes,
and nothing of ours.

Where all wishes are linear in the table the solver gets the whole problem, otherwise
each of the two steps of the definition: the closest group shares, then the closest
table with these shares.
"""

from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.errors import InfeasibleError
from fairmaxent.fairness.fair_table import fair_table
from fairmaxent.fairness.wishes import Wanted
from oracle import closest, divergence
from tables import seeds

RATES = [None, 0.3, 0.8, 1.0]


@dataclass(frozen=True)
class Wishes:
    """What is asked for: representation and statistical rate by grouping, outcome
    shares, and named shares by axis.
    """

    groupings: tuple[tuple[int, ...], ...]
    representation: tuple[float | None, ...]
    statistical: tuple[float | None, ...]
    favourable: tuple[int, ...]
    outcomes: np.ndarray | None
    named: dict[int, np.ndarray] = field(default_factory=dict)


def solved(vector, prior, conditions):
    """The vector of least KL to the prior, None where nothing meets the conditions."""
    value = closest(vector, prior, [cp.sum(vector) == 1, *conditions])
    return None if value is None else np.maximum(value, 0.0)


def groups_of(cells, axes):
    """The levels of some axes that cells have, and which cells have them."""
    keys = sorted(
        {tuple(int(level) for level in cell) for cell in cells[:, list(axes)]}
    )
    return keys, [
        (cells[:, list(axes)] == key).all(axis=1).astype(float) for key in keys
    ]


def share_conditions(t, cells, mass, wishes):
    """Group shares: named, within the wanted ratio of each other, or as in the data."""
    conditions = []
    for axis, wanted in wishes.named.items():
        conditions += [
            (cells[:, axis] == level).astype(float) @ t == share
            for level, share in enumerate(wanted)
        ]
    for axes, rate in zip(wishes.groupings, wishes.representation, strict=True):
        if len(axes) == 1 and axes[0] in wishes.named:
            continue
        _, masks = groups_of(cells, axes)
        shares = np.array(masks) @ t
        if rate is None:
            conditions.append(shares == np.array(masks) @ mass)
        else:
            conditions.append(cp.min(shares) >= rate * cp.max(shares))
    return conditions


def fixed(axes, rate, wishes):
    """Whether the wishes leave no choice of the group shares."""
    return rate in (None, 1.0) or axes[0] in wishes.named


def is_whole(wishes):
    """Whether the whole problem is one convex program."""
    return all(
        fixed(axes, rho, wishes)
        or sigma is None
        or (sigma == 1.0 and wishes.outcomes is not None)
        for axes, rho, sigma in zip(
            wishes.groupings, wishes.representation, wishes.statistical, strict=True
        )
    )


def outcome_conditions(t, cells, mass, wishes, shares):
    """Shares of outcomes, and rates of outcomes in groups; ``shares``: those of each
    grouping, None if unknown.
    """
    conditions = []
    if wishes.outcomes is not None:
        conditions += [
            (cells[:, 0] == y).astype(float) @ t == share
            for y, share in enumerate(wishes.outcomes)
        ]
    for axes, sigma, known in zip(
        wishes.groupings, wishes.statistical, shares, strict=True
    ):
        keys, masks = groups_of(cells, axes)
        for y in wishes.favourable if sigma is not None else ():
            inside = [mask * (cells[:, 0] == y) for mask in masks]
            if sigma == 1.0 and wishes.outcomes is not None:
                for mask, both in zip(masks, inside, strict=True):
                    conditions.append(both @ t == wishes.outcomes[y] * (mask @ t))
            else:
                rates = (
                    np.array(
                        [
                            both / known[key]
                            for key, both in zip(keys, inside, strict=True)
                        ]
                    )
                    @ t
                )
                conditions.append(cp.min(rates) >= sigma * cp.max(rates))
    return conditions


def expected_table(data, wishes):
    """The closest table by the definition, and whether the problem was solved in one
    piece; None: there is none.
    """
    cells = np.argwhere(data > 0)
    mass = data[data > 0]
    t = cp.Variable(len(cells), nonneg=True)
    if is_whole(wishes):
        shares = [known_shares(cells, mass, axes, wishes) for axes in wishes.groupings]
        conditions = share_conditions(t, cells, mass, wishes)
    else:
        groups = np.argwhere(data.sum(axis=0) > 0)
        s = cp.Variable(len(groups), nonneg=True)
        padded = np.column_stack([np.zeros(len(groups), dtype=int), groups])
        prior = data.sum(axis=0)[tuple(groups.T)]
        step_1 = solved(s, prior, share_conditions(s, padded, prior, wishes))
        if step_1 is None:
            return None
        shares = []
        conditions = []
        for axes in wishes.groupings:
            keys, masks = groups_of(padded, axes)
            shares.append(
                dict(zip(keys, (mask @ step_1 for mask in masks), strict=True))
            )
            _, masks = groups_of(cells, axes)
            conditions.append(
                np.array(masks) @ t == np.array([shares[-1][key] for key in keys])
            )
    value = solved(
        t, mass, conditions + outcome_conditions(t, cells, mass, wishes, shares)
    )
    if value is None:
        return None
    result = np.zeros(data.shape)
    result[data > 0] = value
    return result


def known_shares(cells, mass, axes, wishes):
    keys, masks = groups_of(cells, axes)
    rate = wishes.representation[wishes.groupings.index(axes)]
    if len(axes) == 1 and axes[0] in wishes.named:
        return {key: wishes.named[axes[0]][key[0]] for key in keys}
    if rate is None:
        return {key: mask @ mass for key, mask in zip(keys, masks, strict=True)}
    return {key: 1 / len(keys) for key in keys}  # only asked for at a rate of 1


def random_problem(seed):
    """A table of 1–3 protected columns, every other one with empty cells, and wishes of
    all kinds.
    """
    rng = np.random.default_rng([31, seed])
    shape = (rng.integers(2, 4), *rng.integers(2, 4, size=1 + seed % 3))
    table = rng.gamma(rng.choice([0.7, 2.0]), size=shape) + 1e-2
    axes = tuple(range(1, len(shape)))
    is_joint = len(axes) > 1 and rng.random() < 0.3
    if seed % 2:
        table[rng.random(shape) < 0.15] = 0.0
        # an intersection without rows that a rate asks for is another matter
        if is_joint:
            table[0][table.sum(axis=0) == 0] = 0.05
    for axis in range(len(shape)):  # every level has rows
        for level in np.flatnonzero(
            table.sum(axis=tuple(other for other in range(len(shape)) if other != axis))
            == 0
        ):
            np.moveaxis(table, axis, 0)[level] += 0.1
    groupings = (axes,) if is_joint else tuple((axis,) for axis in axes)
    favourable = tuple(
        sorted(
            map(
                int,
                rng.choice(shape[0], size=rng.integers(1, shape[0] + 1), replace=False),
            )
        )
    )
    table /= table.sum()
    outcomes = [table.sum(axis=axes), None, rng.dirichlet(np.full(shape[0], 3.0))][
        rng.choice(3, p=[0.7, 0.15, 0.15])
    ]
    named = (
        {1: rng.dirichlet(np.full(shape[1], 3.0))}
        if seed % 4 == 1 and not is_joint
        else {}
    )
    count = len(groupings)
    rates = [
        tuple(RATES[number] for number in rng.integers(4, size=count)) for _ in range(2)
    ]
    return table, Wishes(groupings, *rates, favourable, outcomes, named)


def ours(table, wishes, **options):
    rates = wishes.representation, wishes.statistical
    wanted = Wanted(wishes.groupings, *rates, wishes.favourable, str, **options)
    return fair_table(
        table,
        wanted,
        {**wishes.named, **({} if wishes.outcomes is None else {0: wishes.outcomes})},
    )


@pytest.mark.some(6)
@pytest.mark.parametrize("seed", seeds(60, 500))
def test_closest_table(seed):
    table, wishes = random_problem(seed)
    expected = expected_table(table, wishes)
    if expected is None:
        with pytest.raises(InfeasibleError):
            ours(table, wishes)
        return
    # an outcome that has rows must not vanish
    if any(expected[y].sum() < 1e-7 for y in range(len(table))):
        assert wishes.outcomes is None
        return
    result = ours(table, wishes)
    assert not result.table[table == 0].any()
    assert abs(divergence(result.table, table) - divergence(expected, table)) < 1e-7
    np.testing.assert_allclose(result.table, expected, atol=1e-4)
    for axes, rho, sigma in zip(
        wishes.groupings, wishes.representation, wishes.statistical, strict=True
    ):
        others = tuple(axis for axis in range(1, table.ndim) if axis not in axes)
        by_group = result.table.sum(axis=others).reshape(len(table), -1)
        by_group = by_group[:, by_group.sum(axis=0) > 0]
        shares = by_group.sum(axis=0)
        if rho is not None and axes[0] not in wishes.named:
            assert shares.min() >= rho * shares.max() * (1 - 1e-9)
        if sigma is not None:
            rates = (by_group / shares)[list(wishes.favourable)]
            assert (rates.min(axis=1) >= sigma * rates.max(axis=1) * (1 - 1e-9)).all()
    if wishes.outcomes is not None:
        np.testing.assert_allclose(
            result.table.sum(axis=tuple(range(1, table.ndim))),
            wishes.outcomes,
            atol=1e-12,
        )


def test_rows_of_correlated_columns_are_left_out_only_if_nothing_else_will_do():
    """The example of the design: 80, 15 and 5 rows; nobody has a = 1 and b = 0."""
    counts = np.array([[[48, 9], [0, 3]], [[32, 6], [0, 2]]]) / 100
    wishes = Wishes(((1,), (2,)), (0.5, 0.5), (None, None), (1,), None)
    result = ours(counts, wishes)
    assert not result.table[counts == 0].any()
    shares = result.table.sum(axis=0)
    np.testing.assert_allclose(
        shares, [[2 / 3 * 80 / 95, 2 / 3 * 15 / 95], [0.0, 1 / 3]], atol=1e-9
    )
    # The design names another table of the same rows with these rates; it is further
    # from the data.
    named = np.array([[0.6, 1 / 15], [0.0, 1 / 3]])
    assert (
        divergence(shares, counts.sum(axis=0))
        < divergence(named, counts.sum(axis=0)) - 0.009
    )
    # Equal shares of both columns leave nothing for a = 0 and b = 1.
    result = ours(counts, Wishes(((1,), (2,)), (1.0, 1.0), (None, None), (1,), None))
    np.testing.assert_allclose(
        result.table.sum(axis=0), [[0.5, 0.0], [0.0, 0.5]], atol=1e-9
    )
    assert result.emptied == ((0, 0, 1), (1, 0, 1))


def test_a_group_that_is_left_out_keeps_its_rows_as_they_are():
    table = np.random.default_rng(5).dirichlet(np.full(6, 2.0)).reshape(2, 3)
    wanted = Wanted(((1,),), (1.0,), (1.0,), (1,), str, left_out={1: 2})
    result = fair_table(table, wanted, {0: table.sum(axis=1)}).table
    np.testing.assert_allclose(result[:, 2], table[:, 2], rtol=1e-12)
    np.testing.assert_allclose(result.sum(axis=1), table.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(result[:, 0], result[:, 1], rtol=1e-10)


@pytest.mark.parametrize("sigma", [0.8, 1.0])
def test_rows_without_an_outcome_stay_and_do_not_count_in_a_rate(sigma):
    table = np.random.default_rng(6).dirichlet(np.full(9, 2.0)).reshape(3, 3)
    wanted = Wanted(((1,),), (None,), (sigma,), (0, 1, 2), str, left_out={0: 2})
    result = fair_table(table, wanted, {0: table.sum(axis=1)}).table
    np.testing.assert_allclose(result[2], table[2], rtol=1e-12)
    np.testing.assert_allclose(result.sum(axis=0), table.sum(axis=0), rtol=1e-12)
    rates = result[:2] / result[:2].sum(axis=0)
    assert (rates.min(axis=1) >= sigma * rates.max(axis=1) * (1 - 1e-9)).all()
