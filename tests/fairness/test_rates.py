"""Rates of a table, against the definitions written out."""

import itertools

import numpy as np
import pandas as pd
import pytest

from fairmaxent import metrics
from fairmaxent.fairness.rates import (
    group_shares,
    outcome_rates,
    rates_of_many,
    smallest_over_largest,
    statistical_pair,
    worst_pair,
)
from handrates import representation_rate, statistical_rate

TABLE = np.random.default_rng(0).gamma(1.0, size=(3, 2, 4))


@pytest.mark.parametrize("grouping", [(1,), (2,), (1, 2), (2, 1)])
def test_definitions_2_1_and_2_2(grouping):
    groups = list(itertools.product(*(range(TABLE.shape[axis]) for axis in grouping)))
    mass, rates = {}, {}
    for group in groups:
        index = [slice(None)] * 3
        for axis, level in zip(grouping, group, strict=True):
            index[axis] = level
        mass[group] = TABLE[tuple(index)].sum()
        part = TABLE[tuple(index)].reshape(3, -1).sum(axis=1)
        rates[group] = part / part.sum()
    ratio = min(mass[a] / mass[b] for a, b in itertools.permutations(groups, 2))
    assert representation_rate(TABLE, grouping) == pytest.approx(ratio)
    worst = min(
        rates[a][y] / rates[b][y]
        for y in (0, 2)
        for a, b in itertools.permutations(groups, 2)
    )
    assert statistical_rate(TABLE, grouping, [0, 2]) == pytest.approx(worst)
    for group in groups:
        assert group_shares(TABLE, grouping)[group] == pytest.approx(
            mass[group] / TABLE.sum()
        )
        np.testing.assert_allclose(
            outcome_rates(TABLE, grouping)[(slice(None), *group)], rates[group]
        )


def test_groups_without_mass_are_left_out_and_the_pair_names_the_others():
    table = TABLE.copy()
    table[:, 1, 2] = 0.0
    assert representation_rate(table, (1, 2)) > 0
    assert np.isnan(outcome_rates(table, (1, 2))[:, 1, 2]).all()
    table = np.array([[8.0, 1.0, 5.0], [2.0, 9.0, 5.0]])
    pair = statistical_pair(outcome_rates(table, (1,)), [0, 1])
    assert (pair.outcome, pair.lowest, pair.highest) == (0, (1,), (0,))
    assert pair.rate == pytest.approx(0.125)
    assert worst_pair(group_shares(table, (1,))).outcome is None


@pytest.mark.parametrize("if_all_zero", [1.0, np.nan])
def test_smallest_over_largest_of_one_row_and_of_many(if_all_zero):
    cases = [
        ([0.2, 0.8], 0.25),
        ([0.0, 0.8], 0.0),
        ([0.5, np.nan], 1.0),  # one group is compared with itself
        ([0.0, 0.0], if_all_zero),
        ([0.0, np.nan], if_all_zero),
        ([np.nan, np.nan], np.nan),
    ]
    rates, ratios = (np.array(part) for part in zip(*cases, strict=True))
    np.testing.assert_array_equal(
        smallest_over_largest(rates, if_all_zero=if_all_zero), ratios
    )
    for row, ratio in cases:
        np.testing.assert_array_equal(
            smallest_over_largest(np.array(row), if_all_zero=if_all_zero), ratio
        )
    assert np.isnan(smallest_over_largest(np.zeros(0), if_all_zero=if_all_zero))


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(5))
def test_rates_of_many_tables_are_those_of_each(seed):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 4, size=(40, 3, 2, 3)).astype(float)
    tables[:, :, 1, 2] = 0.0  # a group that the model does not have either
    tables[tables.sum(axis=(1, 2, 3)) == 0] = 1.0
    for grouping in ((1,), (2,), (1, 2), (2, 1)):
        for outcomes in ((0,), (0, 2), (0, 1, 2)):
            shares, ratios = rates_of_many(
                tables, tables.sum(axis=0), grouping, outcomes
            )
            whole = np.array(
                [(group_shares(table, grouping) > 0).sum() for table in tables]
            )
            whole = whole == (group_shares(tables.sum(axis=0), grouping) > 0).sum()
            expected = np.array(
                [representation_rate(table, grouping) for table in tables]
            )
            np.testing.assert_allclose(shares, np.where(whole, expected, 0.0))
            np.testing.assert_allclose(
                ratios,
                [statistical_rate(table, grouping, outcomes) for table in tables],
            )


@pytest.mark.some(3)
@pytest.mark.parametrize("last_digits", range(8))
@pytest.mark.parametrize("size", [1e-15, 1e-10])
def test_rounding_does_not_change_the_groups_that_are_named_nor_hide_the_smallest_rate(
    size, last_digits
):
    noise = 1 + size * np.random.default_rng(last_digits).standard_normal((2, 4))
    table = np.array([[1.0, 1, 3, 3], [2.0, 2, 1, 1]]) * noise
    pair = statistical_pair(outcome_rates(table, (1,)), [0])
    assert (pair.lowest, pair.highest) == ((0,), (2,))
    # the rarer outcome has the smaller rate, but for the rounding
    even = np.array([[0.05], [0.2]]) * noise
    assert (
        worst_pair(group_shares(even, (1,))).lowest
        == worst_pair(group_shares(even, (1,))).highest
        == (0,)
    )
    assert statistical_pair(outcome_rates(even, (1,)), [1, 0]).outcome == 1
    smallest = min(
        a / b
        for row in even / even.sum(axis=0)
        for a, b in itertools.permutations(row, 2)
    )
    frame = pd.DataFrame(
        {"y": np.repeat([1, 0], 4), "z": np.tile(range(4), 2), "w": even.ravel()}
    )
    measured = metrics.statistical_rate(
        frame, "y", "z", weight="w", smallest_group=0
    ).value
    assert [statistical_rate(even, (1,), [1, 0]), measured] == pytest.approx(
        [smallest, smallest], abs=1e-14
    )
