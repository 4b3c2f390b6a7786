"""Baselines: closed forms by group-by, quotas, draws against the exact marginal, and
the errors.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import chisquare

import fairmaxent
from fairmaxent import baselines, paper
from fairmaxent.baselines.models import massaged
from fairmaxent.data.table import tally
from fairmaxent.fairness.fair_table import algorithm_1
from mixed import cells as column_values
from mixed import raw_columns, schema
from oracle import dense, points
from reproduction.calmon import calmon
from reproduction.new_rows import prior
from tables import random_frame, rates_of

REWEIGHING = [baselines.raw, baselines.kamiran_calders, baselines.king_zeng]
METHODS = [*REWEIGHING, prior, calmon]
SHAPES = [((2,), 2), ((3,), 2), ((2,), 3), ((2, 3), 2)]
shapes = pytest.mark.parametrize(("groups", "outcomes"), SHAPES)
methods = pytest.mark.parametrize("method", METHODS)
reweighing = pytest.mark.parametrize("method", REWEIGHING)


def biased(groups=(2,), outcomes=2, seed=0, rows=500):
    """A table with rows in every cell (y, z), without its column of many numbers."""
    for attempt in range(seed, seed + 1000, 100):
        frame = random_frame(
            np.random.default_rng(attempt), groups, outcomes, rows
        ).drop(columns="x1")
        columns = [f"z{number}" for number in range(len(groups))]
        if len(frame.groupby(["y", *columns])) == outcomes * np.prod(groups):
            return frame, columns
    raise AssertionError("no table with rows in every cell")


def joint_rates(result, columns):
    joint = {"groups": "joint"}
    statistical = fairmaxent.metrics.statistical_rate(result, "y", columns, **joint)
    return float(
        fairmaxent.metrics.representation_rate(result, columns, **joint)
    ), float(statistical)


@pytest.mark.parametrize("groups", [(2,), (2, 3)])
def test_massaging_changes_the_people_nearest_to_the_border(groups):
    frame, columns = biased(groups)
    changed = baselines.massaging(frame, "y", columns).data.frame.to_native()
    assert changed.drop(columns="y").equals(frame.drop(columns="y"))
    shares = changed.groupby(columns)["y"].value_counts(normalize=True).unstack()
    assert (
        np.ptp(shares.to_numpy(), axis=0).max()
        < 1 / frame.groupby(columns).size().min()
    )
    good, scores, code = (
        frame["y"] == max(frame["y"]),
        np.arange(len(frame)) % 97,
        frame.groupby(columns).ngroup(),
    )
    result = massaged(good.to_numpy(), scores, code.to_numpy())
    for group in code.unique():
        own = (code == group).to_numpy()
        moved = own & (result != good)
        up = good[own].mean() < good.mean()
        stayed = own & ~moved & (good != up)
        assert (result[moved] == up).all()  # promoted or demoted, not both
        best, worst = (stayed, moved) if up else (moved, stayed)
        assert scores[best].max(initial=-1) <= scores[worst].min(initial=99)
    if groups == (2,):  # M = (P(+ | a) − P(+ | b))·|a|·|b| / N
        (a, b), sizes = good.groupby(code).mean(), code.value_counts()
        assert (result != good).sum() == 2 * round(
            abs(a - b) * sizes[0] * sizes[1] / len(frame)
        )


@shapes
def test_raw_is_the_data(groups, outcomes):
    frame, columns = biased(groups, outcomes)
    result = baselines.raw(frame, "y", columns)
    assert (result.weights() == 1.0).all()
    seen = result.marginal(["x0", *columns]).set_index(["x0", *columns])["probability"]
    counted = frame.groupby(["x0", *columns]).size() / len(frame)
    assert seen[seen > 0].sort_index().to_dict() == pytest.approx(counted.to_dict())


@pytest.mark.some(2)
@shapes
def test_kamiran_calders_is_its_formula(groups, outcomes):
    """W(X) = |X(S) = s|·|X(Class) = c| / (N·|both|), counted row by row."""
    frame, columns = biased(groups, outcomes)
    rows = frame[["y", *columns]].to_dict("records")
    group = [tuple(row[name] for name in columns) for row in rows]
    outcome = [row["y"] for row in rows]
    both = list(zip(group, outcome, strict=True))
    formula = [
        group.count(z) * outcome.count(y) / (len(rows) * both.count((z, y)))
        for z, y in both
    ]
    result = baselines.kamiran_calders(frame, "y", columns)
    np.testing.assert_allclose(result.weights(), formula, rtol=1e-12)
    assert result.weights().mean() == pytest.approx(1)
    assert joint_rates(result, columns) == pytest.approx(
        (rates_of(counted(frame), columns, "y")[0], 1.0)
    )


def counted(frame, weights=1.0):
    return frame.assign(probability=weights / len(frame))


@shapes
def test_king_zeng_balances_groups_and_leaves_their_outcomes(groups, outcomes):
    frame, columns = biased(groups, outcomes)
    result = baselines.king_zeng(frame, "y", columns)
    share = frame.groupby(columns)["y"].transform("size") / len(frame)
    np.testing.assert_allclose(
        result.weights(), 1 / (np.prod(groups) * share), rtol=1e-12
    )
    own_statistical = rates_of(counted(frame), columns, "y")[1]
    assert joint_rates(result, columns) == pytest.approx((1.0, own_statistical))


@pytest.mark.some(2)
@shapes
@reweighing
def test_the_marginal_is_that_of_the_weighted_rows(method, groups, outcomes):
    frame, columns = biased(groups, outcomes, seed=3)
    result = method(frame, "y", columns)
    names = ["x2", "y", *columns]
    by_rows = counted(frame, result.weights()).groupby(names)["probability"].sum()
    exact = result.marginal(names).set_index(names)["probability"]
    assert exact[exact > 0].sort_index().to_dict() == pytest.approx(by_rows.to_dict())
    weighted = fairmaxent.metrics.statistical_rate(
        frame, "y", columns, weight=result.weights(), groups="joint", smallest_group=0
    )
    assert joint_rates(result, columns)[1] == pytest.approx(float(weighted))


@pytest.mark.some(2)
@shapes
@pytest.mark.parametrize("base_share", [0.0, 0.3, 1.0])
def test_the_prior_is_its_definition(groups, outcomes, base_share):
    """q(α) = C/|Ω| + (1 − C)·n_α·t(y, z)/(N·P(y, z)) at every point, with t =
    P(y)/k.
    """
    frame, columns = biased(groups, outcomes, seed=5)
    result = prior(frame, "y", columns, C=base_share)
    domain = result.distribution.domain
    grid = domain.decode(points(domain.sizes), rng=np.random.default_rng(0))
    rows = frame.assign(
        own=frame.groupby(["y", *columns])["x0"].transform("size"),
        wanted=frame.groupby("y")["x0"].transform("size") / np.prod(groups),
    )
    weight = (
        (rows["wanted"] / rows["own"] / len(rows))
        .groupby([rows[name] for name in domain.names])
        .sum()
    )
    weighed = weight.reindex(
        pd.MultiIndex.from_frame(grid[list(domain.names)]), fill_value=0.0
    ).to_numpy()
    definition = base_share / domain.size + (1 - base_share) * weighed
    np.testing.assert_allclose(
        result.distribution.probability(grid), definition, atol=1e-15
    )
    assert definition.sum() == pytest.approx(1)
    assert joint_rates(result, columns) == pytest.approx((1.0, 1.0))


def test_for_two_groups_the_prior_is_the_papers():
    frame, _ = biased(outcomes=3, seed=6)
    result = prior(frame, "y", "z0", C=0.4)
    fit = paper.fit(frame, outcome="y", protected="z0", C=0.4, prior="w", tau=1.0)
    np.testing.assert_allclose(
        dense(result.distribution.prior), dense(fit.optimum.dual.prior), atol=1e-15
    )
    only_rows = prior(frame, "y", "z0", C=0.0).distribution.root_table
    np.testing.assert_allclose(
        only_rows,
        algorithm_1(pd.crosstab(frame["y"], frame["z0"]).to_numpy(float), 1.0),
    )


@pytest.mark.some(3)
@reweighing
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_cells_are_filled_by_quota_with_rows_of_the_data(method, n):
    frame, columns = biased((2, 3), seed=8)
    frame["row"] = pd.Categorical(np.arange(len(frame)) % 50)
    result = method(frame, "y", columns, random_state=1)
    exact = result.marginal(["y", *columns])
    drawn = result.sample(n)
    index = pd.MultiIndex.from_frame(exact[["y", *columns]])
    found = drawn.groupby(["y", *columns]).size().reindex(index, fill_value=0)
    assert (np.abs(found.to_numpy() - n * exact["probability"].to_numpy()) < 1).all()
    assert set(drawn.itertuples(index=False)) <= set(frame.itertuples(index=False))


@pytest.mark.some(3)
@methods
@pytest.mark.parametrize("iid", [True, False])
def test_draws_follow_the_exact_marginal(method, iid):
    frame, _ = biased((3,), 3, seed=9)
    result = method(frame, "y", "z0")
    names = ["z0", "y", "x0"]
    exact = result.marginal(names).set_index(names)["probability"]
    drawn = (
        result.sample(30_000, random_state=2, iid=iid)
        .groupby(names)
        .size()
        .reindex(exact.index, fill_value=0)
    )
    assert drawn[exact == 0].sum() == 0
    # rare ones together
    cell = np.where(exact * 30_000 < 5, 0, np.arange(1, len(exact) + 1))
    test = [
        tally(cell, np.asarray(values, dtype=float), len(exact) + 1)
        for values in (drawn, exact * 30_000)
    ]
    seen = test[1] > 0
    pvalue = chisquare(test[0][seen], test[1][seen]).pvalue
    assert pvalue > 1e-3
    if iid:
        assert pvalue < 1 - 1e-9  # independent draws are not better than chance either


@pytest.mark.some(2)
@methods
def test_the_same_seed_draws_the_same_rows(method):
    frame, _ = biased()
    result = method(frame, "y", "z0", random_state=5)
    assert result.sample(200).equals(result.sample(200, random_state=5))
    assert result.sample(200, iid=True).equals(
        method(frame, "y", "z0", random_state=5).sample(200, iid=True)
    )
    assert not result.sample(200).equals(result.sample(200, random_state=6))


@pytest.mark.some(3)
@methods
def test_frames_come_back_as_they_were(method, table):
    """Every library, every dtype, missing values."""
    names = (
        ["sex", "rank", "paid", "few", "member"]
        if method is calmon
        else list(raw_columns())
    )
    frame = table.select(names) if not isinstance(table, pd.DataFrame) else table[names]
    drawn = method(frame, "member", "sex", random_state=0).sample(300)
    assert type(drawn) is type(frame)
    assert schema(drawn) == schema(frame)
    if isinstance(drawn, pd.DataFrame):
        assert drawn.index.equals(pd.RangeIndex(300))
    for name in names:
        assert set(column_values(drawn, name)) <= set(column_values(frame, name))


@pytest.mark.some(2)
@methods
def test_a_domain_may_have_its_columns_in_another_order(method):
    frame, _ = biased()
    domain = fairmaxent.Domain.infer(frame[frame.columns[::-1]])
    result = method(frame, "y", "z0", domain=domain, random_state=0)
    assert result.sample(50).columns.tolist() == frame.columns.tolist()
    assert joint_rates(result, "z0") == pytest.approx(
        joint_rates(method(frame, "y", "z0"), "z0")
    )


def test_a_cell_that_needs_mass_and_has_no_rows_is_named():
    frame = pl.DataFrame(
        {"sex": ["f", "f", "m", "m"] * 5, "y": ["no", "no", "no", "yes"] * 5}
    )
    for method in (baselines.kamiran_calders, prior):
        with pytest.raises(fairmaxent.InfeasibleError, match="y = yes, sex = f"):
            method(frame, "y", "sex")
    assert baselines.king_zeng(frame, "y", "sex").weights().tolist() == [1.0] * 20


def test_unseen_groups_take_no_part():
    whole = pd.DataFrame(
        {"sex": ["f", "m", "x"] * 8, "y": ["no", "no", "no", "yes", "yes", "yes"] * 4}
    )
    domain, frame = fairmaxent.Domain.infer(whole), whole[whole["sex"] != "x"]
    for method in METHODS[:-2]:
        np.testing.assert_allclose(
            method(frame, "y", "sex", domain=domain).weights(), 1.0
        )
    shares = prior(frame, "y", "sex", domain=domain, C=0.0).marginal("sex")[
        "probability"
    ]
    assert shares.tolist() == pytest.approx([0.5, 0.5, 0.0])


@methods
def test_what_cannot_be_read_is_refused_alike(method):
    frame, _ = biased()
    for outcome, protected in (
        ("yy", "z0"),
        ("y", "zz"),
        ("y", "y"),
        ("y", []),
        (None, "z0"),
    ):
        with pytest.raises(fairmaxent.errors.ColumnError):
            method(frame, outcome, protected)
    with pytest.raises(fairmaxent.InputError, match="random_state"):
        method(frame, "y", "z0", random_state=-1)
    with pytest.raises(fairmaxent.InputError, match="not a table"):
        method([1, 2], "y", "z0")
    with pytest.raises(fairmaxent.InputError, match="n is 0"):
        method(frame, "y", "z0").sample(0)
    if method not in REWEIGHING:
        with pytest.raises(fairmaxent.InputError, match=r"use sample\(\)"):
            method(frame, "y", "z0").weights()


@reweighing
def test_rows_of_a_cell_are_drawn_uniformly(method):
    frame, _ = biased(rows=60)
    frame["row"] = np.arange(len(frame))
    drawn = method(frame, "y", "z0").sample(40_000, random_state=4)
    for _, cell in frame.groupby(["y", "z0"]):
        counts = drawn["row"].value_counts().reindex(cell["row"], fill_value=0)
        assert chisquare(counts).pvalue > 1e-3
