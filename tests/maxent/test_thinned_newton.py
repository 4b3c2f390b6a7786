"""Many rows: packed columns, thinned tables, and Newton with an estimated Hessian,
against their plain twins.
"""

import numpy as np
import pandas as pd
import pytest

from fairmaxent import datasets, debias
from fairmaxent.data.table import Blocks, Table
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.optimum import default_solver, maximise_entropy
from fairmaxent.maxent.priors.bases import Product
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.solvers import _inverse
from fairmaxent.solvers import Newton, NewtonCG, Status, ThinnedNewton

SIZES = (3, 2, 5, 4, 7, 2, 6, 3)


def dependent_rows(
    seed: int, count: int = 20_000, sizes: tuple[int, ...] = SIZES
) -> Rows:
    """Rows whose columns follow one hidden number; the last level of the last column is
    very rare.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=count)
    codes = np.empty((count, len(sizes)), dtype=np.uint8)
    for place, size in enumerate(sizes):
        noisy = hidden * rng.normal() + rng.normal(size=count)
        codes[:, place] = np.searchsorted(
            np.quantile(noisy, np.linspace(0, 1, size + 1)[1:-1]), noisy
        )
    rare = codes[:, -1] == sizes[-1] - 1
    codes[rare & (rng.random(count) < 0.999), -1] = 0
    blocks = Blocks.rooted(sizes, [0, 1])
    table = Table.compress(blocks.pool(codes), blocks.levels)
    return Rows.weighted(
        blocks, table.codes, table.counts * rng.gamma(2.0, size=len(table.counts))
    )


def target_of(rows: Rows, seed: int):
    """Levels that a real tilt has, so that they can be reached, and features for
    them.
    """
    levels = rows.tilt(
        np.random.default_rng(seed).normal(0, 0.5, rows.blocks.width)
    ).levels
    return levels, cell_features(rows.blocks, [None] * len(rows.blocks.sizes), levels)


@pytest.mark.parametrize("count", [3, 50, 20_000])
def test_packed_columns_give_the_scores_levels_and_pairs_of_single_ones(count):
    rows = dependent_rows(1, count)
    potentials = np.random.default_rng(2).normal(size=rows.blocks.width)
    potentials[4] = -np.inf
    plain = sum(
        part[column]
        for column, part in zip(
            rows.codes.T, rows.blocks.split(potentials), strict=True
        )
    )
    np.testing.assert_allclose(rows.scores(potentials), plain, rtol=1e-12, atol=1e-12)
    tilted = rows.tilt(potentials)
    columns = zip(rows.codes.T, rows.blocks.levels, strict=True)
    indicators = np.hstack([np.eye(size)[column] for column, size in columns])
    expected = indicators.T @ (tilted.weights[:, None] * indicators)
    np.testing.assert_allclose(tilted.levels, np.diag(expected), atol=1e-13)
    pairs = tilted.pairs()
    np.testing.assert_allclose(pairs, expected, atol=1e-12)
    assert not pairs[expected == 0].any()
    np.testing.assert_array_equal(pairs, pairs.T)
    for packs in (rows.packs, rows.pair_packs):
        number = len(rows.blocks.levels)
        assert [
            block for pack in packs for block in range(pack.first, pack.last)
        ] == list(range(number))
        assert len(packs) < number or count < 1000


def test_a_block_with_many_levels_keeps_the_tables_of_pairs_small():
    blocks = Blocks((4096, 16, 16, 16), ((0,), (1,), (2,), (3,)))
    codes = (
        np.random.default_rng(0)
        .integers(0, blocks.levels, (50_000, 4))
        .astype(np.uint16)
    )
    rows = Rows.weighted(blocks, codes, np.ones(len(codes)))
    assert [pack.shape for pack in rows.pair_packs] == [(4096,), (16,), (16,), (16,)]


def test_thinned_rows_have_nearly_the_same_levels_and_pairs():
    rows = dependent_rows(3)
    thinned = rows.thinned(4000)
    assert len(thinned.codes) == 4000
    still = np.zeros(rows.blocks.width)
    np.testing.assert_allclose(
        thinned.tilt(still).levels, rows.tilt(still).levels, atol=0.02
    )
    np.testing.assert_allclose(
        thinned.tilt(still).pairs(), rows.tilt(still).pairs(), atol=0.02
    )
    assert rows.thinned(len(rows.codes)) is rows
    base = Product.of(rows.blocks, np.ones(rows.blocks.width))
    mixture = Mixture.of((0.3, 0.7), (base, rows))
    assert mixture.thinned(10**9) is mixture
    assert mixture.rows == len(rows.codes)
    assert mixture.thinned(100).rows == 100


@pytest.mark.some(4)
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("refresh", [1, 7, 1000])
@pytest.mark.parametrize("kept", [300, 3000])
def test_it_ends_where_newton_ends(share, refresh, kept):
    rows = dependent_rows(4)
    levels, features = target_of(rows, 5)
    base = Product.of(rows.blocks, np.ones(rows.blocks.width))
    dual = Dual(
        Mixture.of((share, 1 - share), (base, rows)), features, features.mean(levels)
    )
    exact = Newton().solve(dual)
    solution = ThinnedNewton(rows=kept, refresh=refresh).solve(dual)
    assert solution.status is Status.CONVERGED
    assert solution.residual < 1e-11
    np.testing.assert_allclose(solution.multipliers, exact.multipliers, atol=1e-7)
    assert solution.value == pytest.approx(exact.value, abs=1e-12)


def test_a_feature_that_no_thinned_row_has_is_met_all_the_same():
    rows = dependent_rows(6)
    levels, features = target_of(rows, 7)
    last = rows.blocks.slices[-1]
    assert 0 < levels[last][-1] < 0.002
    thinned = rows.thinned(60)
    assert thinned.tilt(np.zeros(rows.blocks.width)).levels[last][-1] == 0
    dual = Dual(rows, features, features.mean(levels))
    assert ThinnedNewton(rows=60, refresh=50).solve(dual).residual < 1e-9


@pytest.mark.more
def test_the_solver_is_chosen_by_the_size_of_the_problem():
    few = dependent_rows(8, 2000)
    levels, features = target_of(few, 9)
    assert isinstance(
        default_solver(Dual(few, features, features.mean(levels))), Newton
    )
    many = dependent_rows(8, 600_000, (2, 2, *(6,) * 10))
    levels, features = target_of(many, 9)
    chosen = default_solver(Dual(many, features, features.mean(levels)))
    assert isinstance(chosen, ThinnedNewton)
    assert chosen.rows < len(many.codes)
    # so many features that a Hessian does not pay
    blocks = Blocks.rooted((2, 2, 4000), [0, 1])
    wide = np.concatenate([np.full(4, 0.25), np.full(4000, 1 / 4000)])
    cells = cell_features(blocks, [None] * 3, wide)
    product = Product.of(blocks, np.ones(blocks.width))
    assert isinstance(default_solver(Dual(product, cells, cells.mean(wide))), NewtonCG)
    optimum = maximise_entropy(many, features, levels, describe=str)
    assert optimum.solution.method == "thinned-newton"
    np.testing.assert_allclose(
        optimum.dual.at(optimum.solution.multipliers).tilted.levels, levels, atol=1e-11
    )


@pytest.mark.parametrize("seed", range(4))
def test_preconditioning_inverts_the_covariance_of_independent_blocks(seed):
    rng = np.random.default_rng(seed)
    blocks = Blocks.rooted((2, 3, 4, 5, 2), [0, 1])
    levels = np.concatenate([rng.dirichlet(np.ones(size)) for size in blocks.levels])
    levels[blocks.slices[1]][0] = 0.0  # a level that the target removes
    levels[blocks.slices[1]] /= levels[blocks.slices[1]].sum()
    moments = [None, None, None, rng.normal(size=5), None]
    features = cell_features(blocks, moments, levels)
    independent = Product.of(blocks, np.where(levels > 0, levels, 0.0)).tilt(
        np.zeros(blocks.width)
    )
    covariance = features.covariance(independent.levels, independent.pairs())
    vector = rng.normal(size=features.count)
    found = covariance @ features.precondition(independent.levels, vector)
    np.testing.assert_allclose(found, vector, rtol=1e-9, atol=1e-9)


@pytest.mark.more
def test_columns_that_nearly_repeat_each_other_are_met():
    """One column for each category beside its number: what a thinned Hessian says of
    these is wrong at the end.
    """
    adult = datasets.load("adult").frame.iloc[::12].drop(columns=["final_weight"])
    numbers = pd.get_dummies(adult.drop(columns=["income", "sex"]))
    fit = debias(
        numbers.assign(income=adult["income"], sex=adult["sex"]),
        "income",
        "sex",
        estimate=None,
    )
    assert fit.optimum.solution.method == "thinned-newton"
    assert fit.optimum.solution.residual < 1e-11


def test_an_estimated_hessian_has_the_exact_variances():
    rows = dependent_rows(4, 2_000)
    levels, features = target_of(rows, 5)
    dual = Dual(rows, features, features.mean(levels))
    thinned = dual.thinned(500)
    assert thinned is not dual
    rough = np.diag(thinned.start.hessian())
    exact = dual.start.variance()
    assert not np.allclose(rough, exact, rtol=1e-3)
    estimated = np.linalg.inv(_inverse(dual.start, thinned))
    np.testing.assert_allclose(np.diag(estimated), exact, rtol=1e-5)
