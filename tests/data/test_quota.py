"""Quotas: without bias, and within one row for cells, outcomes and groups, by simulation and by enumeration."""

from itertools import combinations

import numpy as np
import pytest

from fairmaxent.data.draws import _long_cycles, _short_cycles, quota, quotas
from tables import times

SIXTY = np.stack([np.full(30, 0.6 / 30), np.full(30, 0.4 / 30)])  # 30 groups, P(y = 1) = 0.4
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
    error = np.sqrt(part * (1 - part) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - wanted) <= 4 * error + 1e-9).all()


@pytest.mark.parametrize(
    ("table", "count"), [*((SIXTY, count) for count in (1, 7, 30, 60, 1000)), (UNEVEN, 7), (UNEVEN, 1000)]
)
def test_sixty_cells_over_two_thousand_draws(table, count):
    drawn = quotas(table, count, times(2000), np.random.default_rng(0))
    assert (drawn.sum(axis=(1, 2)) == count).all()
    check_without_bias(drawn, table * count)
    for kept in ((0, 1), (0,), (1,)):
        assert deviations(drawn, table, count, kept).max() < 1


@pytest.mark.parametrize("count", [7, 1000])
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 4, 2), (2, 2, 3, 4)], ids=str)
def test_several_protected_columns(shape, count):
    """Joint groups and the column of fewest levels are within one, the one of most levels for each outcome."""
    table = np.random.default_rng(sum(shape)).gamma(2.0, size=shape)
    table.flat[::7] = 0.0
    table /= table.sum()
    drawn = quotas(table, count, times(2000), np.random.default_rng(0))
    check_without_bias(drawn, table * count)
    columns = sorted(range(1, len(shape)), key=lambda axis: shape[axis])
    for kept in (tuple(range(len(shape))), (0,), tuple(columns), (columns[0],), (0, columns[-1])):
        assert deviations(drawn, table, count, kept).max() < 1
    assert deviations(drawn, table, count, (columns[-1],)).max() < shape[0]
    assert not drawn[:, table == 0].any()


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
        sums = [np.abs(counts.sum(axis=axis) - wanted.sum(axis=axis)).max() < 1 for axis in (0, 1)]
        if counts.sum() == 4 and all(sums) and (np.abs(counts - wanted) < 1).all():
            possible.add(tuple(counts.ravel()))
    seen = {tuple(counts.ravel()) for counts in quotas(table, 4, 3000, np.random.default_rng(0))}
    assert seen <= possible
    assert len(seen) > 2


def test_exact_multiples_are_hit_exactly():
    table = np.array([[0.1, 0.2], [0.3, 0.4]]) / 10 * 3  # sums and shares that float64 cannot hold
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


def test_cycles_are_numbered_alike_by_both_ways():
    """So that a seed gives the same rows, whichever is faster."""
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 50, 700):
        following = rng.permutation(size).astype(np.int32)
        cycle = _short_cycles(following)
        assert np.array_equal(cycle, _long_cycles(following))
        assert np.array_equal(cycle[following], cycle)
        assert len({frozenset(np.flatnonzero(cycle == one).tolist()) for one in cycle}) == cycle.max(initial=-1) + 1


def test_every_rounding_of_a_small_table_occurs_as_often_as_coins_say():
    """With 1/2 in each of four cells, one of two roundings is taken, each with probability 1/2."""
    drawn = quotas(np.full((2, 2), 0.25), 2, 4000, np.random.default_rng(0))
    first = (drawn == np.eye(2)).all(axis=(1, 2))
    second = (drawn == 1 - np.eye(2)).all(axis=(1, 2))
    assert (first | second).all()
    assert first.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))
