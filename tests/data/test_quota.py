"""Quotas: without bias, and within one row for cells, outcomes and groups, by
simulation and by enumeration.
"""

from itertools import combinations, product

import numpy as np
import pytest

from fairmaxent.data import quotas as quotas_module
from fairmaxent.data.quotas import quota, quotas
from fairmaxent.data.roles import LARGEST_ROOT
from tables import times

# 30 groups, P(y = 1) = 0.4
SIXTY = np.stack([np.full(30, 0.6 / 30), np.full(30, 0.4 / 30)])
UNEVEN = np.random.default_rng(3).gamma(2.0, size=(2, 30))
UNEVEN /= UNEVEN.sum()


def deviations(drawn, table, count, kept):
    """How far the drawn totals of some axes are from count · share."""
    summed = tuple(axis for axis in range(table.ndim) if axis not in kept)
    wanted = (table / table.sum() * count).sum(axis=summed)
    return np.abs(drawn.sum(axis=tuple(axis + 1 for axis in summed)) - wanted)


def check_without_bias(drawn, wanted):
    """Every cell's mean count is within 4 standard errors of what is wanted."""
    part = wanted % 1
    error = np.sqrt(np.maximum(part * (1 - part), drawn.var(axis=0)) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - wanted) <= 4 * error + 1e-9).all()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("table", "count"),
    [*((SIXTY, count) for count in (1, 7, 30, 60, 1000)), (UNEVEN, 7), (UNEVEN, 1000)],
)
def test_sixty_cells_over_two_thousand_draws(table, count):
    drawn = quotas(table, count, times(2000), np.random.default_rng(0))
    assert (drawn.sum(axis=(1, 2)) == count).all()
    check_without_bias(drawn, table * count)
    for kept in ((0, 1), (0,), (1,)):
        assert deviations(drawn, table, count, kept).max() < 1


def check_all_totals(drawn, table, count, cells=1):
    """Outcomes, groups, and groups with outcomes are within one row and without bias;
    zeros stay zero.
    """
    for kept in (
        (),
        (0,),
        *((axis,) for axis in range(1, table.ndim)),
        *((0, axis) for axis in range(1, table.ndim)),
    ):
        assert deviations(drawn, table, count, kept).max() < 1, kept
        summed = [axis for axis in range(table.ndim) if axis not in kept]
        wanted = (table / table.sum() * count).sum(axis=tuple(summed))
        check_without_bias(drawn.sum(axis=tuple(axis + 1 for axis in summed)), wanted)
    check_without_bias(drawn, table / table.sum() * count)
    assert deviations(drawn, table, count, range(table.ndim)).max() < cells
    assert not drawn[:, table == 0].any()
    assert (drawn >= 0).all()


@pytest.mark.some(2)
@pytest.mark.parametrize("count", [7, 1000])
@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (3, 4, 2), (2, 2, 3, 4), (2, 2, 2, 2)], ids=str
)
def test_several_protected_columns(shape, count):
    """Every total is held; in small tables, a cell may have to give way by one row
    more.
    """
    table = np.random.default_rng(sum(shape)).gamma(2.0, size=shape)
    table.flat[::7] = 0.0
    check_all_totals(
        quotas(table, count, times(2000), np.random.default_rng(0)),
        table,
        count,
        cells=2,
    )


@pytest.mark.more
@pytest.mark.parametrize("seeds", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_three_columns_of_1200_rows(seeds):
    """Levels 3, 4 and 6, one of them of ten people, at equal rates of the outcome: each
    seed by itself.
    """
    table = np.random.default_rng(5).gamma(2.0, size=(2, 3, 4, 6))
    groups = [
        np.array([600, 350, 250]),
        np.array([500, 300, 250, 150]),
        np.array([430, 250, 210, 180, 120, 10]),
    ]
    for _ in range(200):
        for axis, sizes in enumerate(groups, start=1):
            others = tuple(other for other in (1, 2, 3) if other != axis)
            shape = [len(sizes) if other == axis else 1 for other in range(1, 4)]
            wanted = (
                np.array([0.62, 0.38]).reshape(2, 1, 1, 1) * sizes.reshape(shape) / 1200
            )
            table *= wanted / table.sum(axis=others, keepdims=True)
    drawn = np.stack(
        [quota(table, 1200, np.random.default_rng(seed)) for seed in range(seeds)]
    )
    check_all_totals(drawn, table, 1200)
    assert deviations(drawn, table, 1200, (1, 2, 3)).max() < 1  # joint groups too
    np.testing.assert_array_equal(
        drawn[0], quota(table, 1200, np.random.default_rng(0))
    )


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(4))
def test_small_tables_of_two_columns_against_all_roundings(seed):
    """Of all ways to round the cells, only those that hold every total come; their
    mixture has the right mean.
    """
    table = np.random.default_rng(seed).dirichlet(np.ones(8)).reshape(2, 2, 2)
    wanted, possible = 9 * table, set()
    for up in product((0, 1), repeat=8):
        counts = np.floor(wanted) + np.reshape(up, (2, 2, 2))
        sums = [
            counts.sum(axis=axes) - wanted.sum(axis=axes)
            for axes in ((1, 2), (0, 2), (0, 1), 1, 2)
        ]
        if counts.sum() == 9 and all(np.abs(off).max() < 1 for off in sums):
            possible.add(tuple(counts.ravel()))
    drawn = quotas(table, 9, 4000, np.random.default_rng(0))
    within = {
        tuple(counts)
        for counts in drawn.reshape(-1, 8)
        if (np.abs(counts - wanted.ravel()) < 1).all()
    }
    assert within <= possible
    assert len(within) > 2
    check_all_totals(drawn, table, 9, cells=2)


def test_a_table_that_no_whole_table_holds_stays_without_bias():
    """Half a row in each of four cells, which meet in every column: every whole table
    misses a total by one row.
    """
    table = np.zeros((2, 2, 2, 2))
    for cell in ((0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)):
        table[cell] = 0.5
    drawn = quotas(table, 2, 4000, np.random.default_rng(0))
    assert (drawn.sum(axis=(1, 2, 3, 4)) == 2).all()
    assert not drawn[:, table == 0].any()
    check_without_bias(drawn, table)


@pytest.mark.more
def test_a_single_axis_and_a_single_row():
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    drawn = quotas(shares, 3, 4000, np.random.default_rng(0))
    assert (np.abs(drawn - 3 * shares) < 1).all()
    check_without_bias(drawn, 3 * shares)
    one = quotas(UNEVEN, 1, 4000, np.random.default_rng(1))
    assert (one.reshape(4000, -1).sum(axis=1) == 1).all()


def test_only_tables_with_rounded_totals_come_and_all_vertices_can():
    """Every drawn table is one of those that a search over all roundings finds."""
    table = np.array([[0.15, 0.2, 0.1], [0.25, 0.05, 0.25]])
    wanted = 4 * table
    possible = set()
    for up in (chosen for size in range(7) for chosen in combinations(range(6), size)):
        counts = np.floor(wanted)
        counts.flat[list(up)] += 1
        sums = [
            np.abs(counts.sum(axis=axis) - wanted.sum(axis=axis)).max() < 1
            for axis in (0, 1)
        ]
        if counts.sum() == 4 and all(sums) and (np.abs(counts - wanted) < 1).all():
            possible.add(tuple(counts.ravel()))
    seen = {
        tuple(counts.ravel())
        for counts in quotas(table, 4, 3000, np.random.default_rng(0))
    }
    assert seen <= possible
    assert len(seen) > 2


def test_exact_multiples_are_hit_exactly():
    # sums and shares that float64 cannot hold
    table = np.array([[0.1, 0.2], [0.3, 0.4]]) / 10 * 3
    drawn = quotas(table, 30, 2000, np.random.default_rng(0))
    assert (drawn == np.array([[3, 6], [9, 12]])).all()
    for count in (10, 1000, 10**7, 10**12):
        np.testing.assert_array_equal(
            quota(np.array([[0.3, 0.3], [0.2, 0.2]]), count, np.random.default_rng(1)),
            np.array([[3, 3], [2, 2]]) * (count // 10),
        )


def test_counts_of_rows_can_be_divided():
    """Part of the rows of a drawn table: no cell gets more rows than there are."""
    rng = np.random.default_rng(0)
    left = quota(UNEVEN, 997, rng)
    for _ in range(9):
        now = quota(left, 100, rng)
        assert now.sum() == 100
        assert ((now >= 0) & (now <= left)).all()
        left = left - now
    assert left.sum() == 97


def test_every_rounding_of_a_small_table_occurs_as_often_as_coins_say():
    """With 1/2 in each of four cells, one of two roundings is taken, each with
    probability 1/2.
    """
    drawn = quotas(np.full((2, 2), 0.25), 2, 4000, np.random.default_rng(0))
    first = (drawn == np.eye(2)).all(axis=(1, 2))
    second = (drawn == 1 - np.eye(2)).all(axis=(1, 2))
    assert (first | second).all()
    assert first.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))


def test_every_table_that_is_fitted_is_small_enough_to_hold_all_totals():
    """Larger ones hold those of two chains alone; fits of them are refused."""
    assert LARGEST_ROOT <= quotas_module._MOST_CELLS


@pytest.mark.more
def test_cells_that_give_way_do_so_by_two_rows_at_most():
    """Several columns, so that whole tables are mixed."""
    rng = np.random.default_rng(11)
    for _ in range(25):
        shape = (2, *rng.integers(2, 5, rng.integers(2, 4)))
        table = rng.gamma(0.3, size=shape)
        table = table / table.sum()
        count = int(rng.integers(20, 200))
        for drawn in quotas(table, count, 3, rng):
            assert np.abs(drawn - count * table).max() < 2
