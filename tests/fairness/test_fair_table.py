"""The fair table against brute force and against a general convex solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

from fairmaxent.errors import ForbiddenError, InfeasibleError, Option, RateError
from fairmaxent.fairness.fair_table import fair_table
from fairmaxent.fairness.rates import (
    check_rate,
    group_shares,
    group_table,
    outcome_rates,
)
from fairmaxent.fairness.wishes import Wanted
from handrates import representation_rate, statistical_rate
from oracle import closest, divergence
from tables import seeds


def each(table):
    return tuple((axis,) for axis in range(1, table.ndim))


def joint(table):
    return (tuple(range(1, table.ndim)),)


def fair(table, groupings, representation, statistical, favourable, **options):
    outcomes = options.pop("outcome_shares", None)
    targets = options.pop("shares", None) or {}
    count = len(groupings)
    rates = (representation,) * count, (statistical,) * count
    wanted = Wanted(
        groupings, *rates, favourable, lambda cell: f"cell{cell}", **options
    )
    return fair_table(
        table, wanted, targets if outcomes is None else {**targets, 0: outcomes}
    )


def oracle_table(
    prior, groupings, shares, statistical, favourable, outcome_shares=None
):
    """Step 2 as the definition says it: min rate >= σ · max rate, nothing
    rearranged.
    """
    cells = np.argwhere(prior > 0)
    t = cp.Variable(len(cells))
    conditions = []
    if outcome_shares is not None:
        conditions += [
            cp.sum(t[np.flatnonzero(cells[:, 0] == y)]) == share
            for y, share in enumerate(outcome_shares)
            if share > 0
        ]
    for grouping, wanted in zip(groupings, shares, strict=True):
        groups = [group for group in np.ndindex(wanted.shape) if wanted[group] > 0]
        members = [(cells[:, list(grouping)] == group).all(axis=1) for group in groups]
        conditions += [t @ m == wanted[g] for g, m in zip(groups, members, strict=True)]
        for y in favourable if statistical is not None and len(groups) > 1 else ():
            inside = cells[:, 0] == y
            if not inside.any():
                continue
            scale = prior[y].sum()
            matrix = np.array(
                [
                    m * inside / wanted[g] / scale
                    for g, m in zip(groups, members, strict=True)
                ]
            )
            conditions += [cp.min(matrix @ t) >= statistical * cp.max(matrix @ t)]
    result = np.zeros(prior.shape)
    result[prior > 0] = closest(t, prior[prior > 0], conditions)
    return result


def random_table(rng, *, empty=0.0):
    shape = (
        rng.integers(2, 5),
        *rng.integers(2, rng.choice([4, 7]), size=rng.integers(1, 4)),
    )
    table = rng.gamma(rng.choice([0.5, 1.0, 4.0]), size=shape) + 1e-6
    table[rng.random(shape) < empty] = 0.0
    return table / table.sum()


def random_wishes(rng, table):
    rates = [None, 0.3, 0.8, 0.9, 1.0]
    groupings = joint(table) if rng.random() < 0.4 else each(table)
    count = rng.integers(1, table.shape[0] + 1)
    favourable = tuple(
        int(y) for y in np.sort(rng.choice(table.shape[0], size=count, replace=False))
    )
    return groupings, rates[rng.integers(5)], rates[rng.integers(5)], favourable


def assert_meets(result, groupings, shares, statistical, favourable):
    table = result.table
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    assert (table >= 0).all()
    for grouping, wanted in zip(groupings, shares, strict=True):
        np.testing.assert_allclose(
            group_shares(table, grouping), wanted, rtol=1e-10, atol=0
        )
        if statistical is not None:
            assert statistical_rate(table, grouping, favourable) >= statistical * (
                1 - 1e-10
            )


def result_or_error(*arguments, **options):
    try:
        return fair(*arguments, **options)
    except (InfeasibleError, ForbiddenError) as error:
        return str(error)


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", seeds(16, 40))
def test_empty_and_forbidden_cells_against_cvxpy(seed):
    rng = np.random.default_rng(2000 + seed)
    table = random_table(rng, empty=0.1)
    allowed = rng.random(table.shape) > 0.1 * (seed % 2)
    groupings, representation, statistical, favourable = random_wishes(rng, table)
    fill = 1e-4 * (seed % 4 < 2)
    wanted = (groupings, representation, statistical, favourable)
    result = result_or_error(table, *wanted, allowed=allowed, fill=fill)
    if isinstance(result, str):
        assert "cell(" in result or "no table" in result
        return
    assert not (result.table[~allowed] > 0).any()
    prior = np.where(allowed, table, 0.0) / np.where(allowed, table, 0.0).sum()
    filled = (prior == 0) & (result.table > 0)
    assert fill or not filled.any()
    prior[filled] = fill
    np.testing.assert_array_equal(result.table > 0, (prior > 0) & (result.table > 0))
    shares = [group_shares(result.table, grouping) for grouping in groupings]
    assert_meets(result, groupings, shares, statistical, favourable)
    for grouping in groupings:
        assert (
            representation is None
            or representation_rate(result.table, grouping) >= representation - 1e-10
        )
    expected = oracle_table(
        np.where(result.table > 0, prior, 0.0),
        groupings,
        shares,
        statistical,
        favourable,
    )
    assert (
        -1e-8 <= divergence(result.table, prior) - divergence(expected, prior) <= 1e-9
    )


def conditional_tables(shape, steps):
    """All tables with given group shares whose P(y | g) lie on a grid: one column of
    P(· | g) per group.
    """
    outcomes, groups = shape
    column = [
        c
        for c in itertools.product(range(1, steps), repeat=outcomes)
        if sum(c) == steps
    ]
    for columns in itertools.product(column, repeat=groups):
        yield np.array(columns, dtype=float).T / steps


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("shape", "steps"), [((2, 2), 200), ((2, 3), 36), ((3, 2), 20)]
)
@pytest.mark.parametrize(
    "statistical", [pytest.param(0.5, marks=pytest.mark.slow), 0.8, 1.0]
)
def test_no_table_on_a_grid_is_closer(shape, steps, statistical):
    rng = np.random.default_rng(7)
    table = rng.dirichlet(np.full(shape[0] * shape[1], 1.5)).reshape(shape)
    favourable = tuple(range(shape[0]))
    result = fair(table, ((1,),), 0.7, statistical, favourable)
    shares = group_shares(result.table, (1,))
    grid = np.array(list(conditional_tables(shape, steps)))
    fair_enough = (grid.min(axis=2) >= statistical * grid.max(axis=2) - 1e-12).all(
        axis=1
    )
    candidates = grid[fair_enough] * shares
    best = (candidates * np.log(candidates / table)).sum(axis=(1, 2)).min()
    assert divergence(result.table, table) <= best + 1e-12
    assert divergence(result.table, table) >= best - 0.01


@pytest.mark.parametrize("statistical", [None, 0.8, 1.0])
@pytest.mark.parametrize("layout", [each, joint])
def test_a_fair_table_is_its_own_fair_table(layout, statistical):
    table = np.random.default_rng(3).dirichlet(np.full(24, 0.8)).reshape(2, 3, 4)
    once = fair(table, layout(table), 0.8, statistical, (1,)).table
    np.testing.assert_allclose(
        fair(once, layout(table), 0.8, statistical, (1,)).table, once, rtol=1e-12
    )
    np.testing.assert_allclose(
        fair(table, layout(table), None, None, (1,)).table, table, rtol=1e-14
    )


def test_small_cells_are_met_as_exactly_as_large_ones():
    table = np.array([[0.5, 2e-6, 0.2], [0.3 - 3e-6, 1e-6, 1e-6]])
    table /= table.sum()
    result = fair(table, ((1,),), None, 0.8, (0, 1))
    np.testing.assert_allclose(
        group_shares(result.table, (1,)), group_shares(table, (1,)), rtol=1e-12
    )
    assert statistical_rate(result.table, (1,), [0, 1]) == pytest.approx(0.8, rel=1e-11)


def test_targets_are_met_within_intersections():
    table = np.random.default_rng(8).dirichlet(np.full(24, 1.0)).reshape(2, 3, 4)
    target = np.array([0.2, 0.3, 0.5])
    result = fair(table, ((1, 2),), 0.9, 0.8, (1,), shares={1: target}).table
    groups = group_table(result, (1, 2)).sum(axis=0)
    np.testing.assert_allclose(groups.sum(axis=1), target, rtol=1e-10)
    assert (groups.min(axis=1) >= 0.9 * groups.max(axis=1) * (1 - 1e-10)).all()
    assert statistical_rate(result, (1, 2), [1]) >= 0.8 * (1 - 1e-10)


def test_several_targets_fit_the_joint_of_the_data():
    table = np.random.default_rng(9).dirichlet(np.full(24, 1.0)).reshape(2, 3, 4)
    targets = {1: np.array([0.2, 0.3, 0.5]), 2: np.array([0.1, 0.2, 0.3, 0.4])}
    result = fair(table, ((1, 2),), 0.9, None, (1,), shares=targets).table
    fitted = group_table(table, (1, 2)).sum(axis=0)
    for _ in range(500):  # iterative proportional fitting, the textbook way
        fitted *= (targets[1] / fitted.sum(axis=1))[:, np.newaxis]
        fitted *= targets[2] / fitted.sum(axis=0)
    np.testing.assert_allclose(
        group_table(result, (1, 2)).sum(axis=0), fitted, rtol=1e-9
    )


def test_a_level_with_target_zero_is_removed_and_takes_no_part():
    table = np.random.default_rng(10).dirichlet(np.full(8, 1.0)).reshape(2, 4)
    target = np.array([0.5, 0.0, 0.25, 0.25])
    result = fair(table, ((1,),), 0.9, 1.0, (1,), shares={1: target}).table
    np.testing.assert_allclose(group_shares(result, (1,)), target, atol=1e-12)
    assert (result[:, 1] == 0).all()
    np.testing.assert_allclose(
        outcome_rates(result, (1,))[1, [0, 2, 3]], result[1].sum(), rtol=1e-10
    )
    without = fair(
        table, ((1,),), None, None, (1,), outcome_shares=np.array([0.0, 1.0])
    ).table
    assert (without[0] == 0).all()


def test_a_missing_cell_is_named_and_can_be_filled():
    table = np.array([[0.4, 0.3], [0.3, 0.0]])
    with pytest.raises(
        InfeasibleError, match=r"cell\(1, 1\).*base_share > 0.* smallest_group='2%'$"
    ):
        fair(table, ((1,),), None, 0.8, (1,))
    filled = fair(table, ((1,),), None, 0.8, (1,), fill=0.05)
    assert filled.table[1, 1] > 0
    assert statistical_rate(filled.table, (1,), [1]) == pytest.approx(0.8, rel=1e-10)


def test_only_the_empty_cells_that_are_needed_are_filled():
    table = np.array([[0.4, 0.3], [0.2, 0.1], [0.0, 0.0]])
    table[2, 0] = 0.05
    result = fair(table / table.sum(), ((1,),), 1.0, 1.0, (1,), fill=0.01)
    assert result.table[2, 1] == 0
    # Group 1 lacks outcomes 1 and 2; parity is asked for outcome 1 alone.
    table = np.array([[0.3, 0.4], [0.1, 0.0], [0.2, 0.0]])
    filled = fair(table, ((1,),), None, 1.0, (1,), fill=1e-3)
    assert filled.table[1, 1] > filled.table[2, 1] == 0


def test_an_intersection_without_rows_is_named_and_can_be_filled():
    table = np.full((2, 2, 2), 1 / 6)
    table[:, 1, 1] = 0.0
    table /= table.sum()
    with pytest.raises(
        InfeasibleError,
        match=r"cell\(., 1, 1\).*use groups='each'.*; or lower the rate$",
    ):
        fair(table, ((1, 2),), 0.8, None, (1,))
    assert fair(table, ((1, 2),), None, None, (1,)).table[:, 1, 1].sum() == 0
    filled = fair(table, ((1, 2),), 0.8, None, (1,), fill=1e-3)
    assert (filled.table[:, 1, 1] > 0).all()
    assert representation_rate(filled.table, (1, 2)) == pytest.approx(0.8, rel=1e-10)


def test_an_intersection_that_two_targets_need_is_named():
    """Level 2 of axis 1 has rows in level 0 of axis 2 only, and there are too few of
    these.
    """
    table = np.array(
        [[[0.2, 0.1], [0.2, 0.1], [0.1, 0.0]], [[0.1, 0.05], [0.1, 0.0], [0.05, 0.0]]]
    )
    wanted = {1: np.array([0.2, 0.2, 0.6]), 2: np.array([0.3, 0.7])}
    with pytest.raises(InfeasibleError, match=r"cell\(0, 2, 1\)"):
        fair(table, ((1, 2),), None, None, (1,), shares=wanted)
    filled = fair(table, ((1, 2),), None, None, (1,), shares=wanted, fill=1e-3)
    np.testing.assert_allclose(group_shares(filled.table, (1,)), wanted[1], rtol=1e-9)
    np.testing.assert_allclose(group_shares(filled.table, (2,)), wanted[2], rtol=1e-9)


def test_a_forbidden_intersection_is_no_group():
    table = np.full((2, 2, 2), 1 / 6)
    allowed = np.ones(table.shape, dtype=bool)
    allowed[:, 1, 1] = False
    result = fair(table / table.sum(), ((1, 2),), 1.0, 1.0, (1,), allowed=allowed).table
    np.testing.assert_allclose(
        group_shares(result, (1, 2)), [[1 / 3, 1 / 3], [1 / 3, 0]], atol=1e-12
    )


def test_a_forbidden_cell_in_the_way_and_a_wholly_forbidden_level_are_named():
    table = np.array([[0.4, 0.3], [0.2, 0.1]])
    allowed = np.array([[True, True], [True, False]])
    with pytest.raises(InfeasibleError, match=r"forbidden: cell\(1, 1\)"):
        fair(table, ((1,),), None, 0.8, (1,), allowed=allowed, fill=0.01)
    allowed = np.array([[True, True], [False, False]])
    with pytest.raises(ForbiddenError, match=r"cell\(1, 0\)"):
        fair(table, ((1,),), None, None, (1,), allowed=allowed)
    kept = fair(
        table,
        ((1,),),
        None,
        None,
        (1,),
        allowed=allowed,
        outcome_shares=np.array([1.0, 0.0]),
    )
    assert kept.table[1].sum() == 0


def test_an_outcome_shrinks_rather_than_fill_a_cell_unless_its_share_is_named():
    table = np.array([[0.5, 0.48], [0.02, 0.0]])
    shrunk = fair(table / table.sum(), ((1,),), None, 1.0, (1,), fill=1e-12)
    assert 0 < shrunk.table[1].sum() < 1e-3
    named = {"outcome_shares": np.array([0.98, 0.02]), "fill": 1e-12}
    kept = fair(table / table.sum(), ((1,),), None, 1.0, (1,), **named)
    np.testing.assert_allclose(outcome_rates(kept.table, (1,))[1], 0.02, rtol=1e-10)


def test_errors_carry_the_options_they_speak_of():
    no_rows = np.full((2, 2, 2), 1 / 6) * (np.arange(4).reshape(2, 2) < 3)
    forbidden = np.array([[True, True], [False, False]])
    with pytest.raises(InfeasibleError) as missing:
        fair(no_rows, ((1, 2),), 0.8, None, (1,))
    with pytest.raises(ForbiddenError) as barred:
        fair(np.full((2, 2), 0.25), ((1,),), None, None, (1,), allowed=forbidden)
    with pytest.raises(
        RateError, match=r"^statistical_rate is 80; .*; write 0\.8 for 80 %; or none$"
    ) as percent:
        check_rate(Option("statistical_rate"), 80, hint="; or none")
    for caught, options in (
        (
            missing,
            [
                Option("base_share"),
                Option("groups", "each"),
                Option("smallest_group", "2%"),
            ],
        ),
        (barred, [Option("forbid"), Option("target")]),
        (percent, [Option("statistical_rate")]),
    ):
        assert [
            part for part in caught.value.parts if isinstance(part, Option)
        ] == options


def test_relabelling_levels_relabels_the_answer():
    table = np.random.default_rng(4).dirichlet(np.full(18, 0.8)).reshape(2, 3, 3)
    forward = fair(table, each(table), 0.9, 0.8, (0, 1)).table
    backward = fair(table[::-1, ::-1], each(table), 0.9, 0.8, (0, 1)).table
    np.testing.assert_allclose(backward[::-1, ::-1], forward, rtol=1e-9)
    swapped = fair(table.swapaxes(1, 2), each(table), 0.9, 0.8, (0, 1)).table
    np.testing.assert_allclose(swapped.swapaxes(1, 2), forward, rtol=1e-9)
