"""The whole core on random small problems against full enumeration: bases × features ×
solvers.
"""

import numpy as np
import pytest

from fairmaxent.data.table import Blocks
from fairmaxent.errors import InfeasibleError
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import attribute_features, cell_features
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.bases import Product
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.solvers import Newton, NewtonCG, Status
from oracle import KINDS, dense, matrix_of, one_hot, random_blocks, random_prior
from reproduction.box_newton import BoxNewton
from tables import times

MODES = ["cells", "attributes", "moments"]


def _features(mode: str, blocks: Blocks, levels, rng):
    moments = [None] * len(blocks.sizes)
    if mode == "moments":
        moments = [
            rng.permutation(size).astype(float) if rng.random() < 0.7 else None
            for size in blocks.sizes
        ]
        for scores in moments:
            if scores is not None and rng.random() < 0.3:
                # a missing level has no value
                scores[int(rng.integers(len(scores)))] = np.nan
    build = cell_features if mode == "cells" else attribute_features
    return build(blocks, moments, levels)


def _problem(
    seed: int,
    kind: str,
    mode: str,
    *,
    attributes: int | None = None,
    largest: int = 4,
    tilt: float = 1.0,
):
    """A prior and a target that some tilt of it reaches."""
    rng = np.random.default_rng([seed, KINDS.index(kind), MODES.index(mode)])
    blocks = random_blocks(rng, attributes=attributes, largest=largest)
    prior = random_prior(rng, blocks, kind)
    levels = prior.tilt(tilt * rng.normal(size=blocks.width)).levels
    return prior, _features(mode, blocks, levels, rng), levels


def _check_optimum(prior, features, levels, solution, *, atol=1e-9):
    """λ is optimal iff the enumerated p ∝ q·e^⟨λ,φ⟩ has the wanted averages; then −h is
    its KL from q.
    """
    indicators = one_hot(prior.blocks)
    phi = indicators @ matrix_of(features)
    q = dense(prior) * (indicators @ ~features.possible == 0)
    with np.errstate(divide="ignore"):
        scores = np.log(q) + phi @ solution.multipliers
    p = np.exp(scores - scores.max())
    p /= p.sum()
    np.testing.assert_allclose(phi.T @ p, levels @ matrix_of(features), atol=atol)
    seen = p > 0
    divergence = p[seen] @ np.log(p[seen] / q[seen])
    assert -solution.value == pytest.approx(divergence, abs=atol)
    return p


@pytest.mark.some(9)
@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (100, 200, 300))],
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_newton_finds_the_enumerated_optimum(kind, mode, first):
    """9 priors × 3 kinds of features × 90 problems, and as many three times more in the
    exhaustive run.
    """
    for seed in range(first, first + times(90)):
        prior, features, levels = _problem(seed, kind, mode)
        optimum = maximise_entropy(prior, features, levels, describe=str)
        assert optimum.solution.status is Status.CONVERGED
        p = _check_optimum(optimum.dual.prior, features, levels, optimum.solution)
        dual = Dual(optimum.dual.prior, features, features.mean(levels))
        point = dual.at(optimum.solution.multipliers)
        phi = one_hot(prior.blocks) @ matrix_of(features)
        mean = phi.T @ p
        np.testing.assert_allclose(
            point.hessian(),
            phi.T @ (p[:, None] * phi) - np.outer(mean, mean),
            atol=1e-9,
        )


@pytest.mark.some(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_other_solvers_agree(kind, mode):
    """Algorithm 5 (box) takes steps of at most 1/8ne², so its problems are small and
    close to the prior.
    """
    small = {"attributes": 3, "largest": 2, "tilt": 0.3}
    boxed = mode != "moments" and kind in (
        "uniform",
        "tree",
        "uniform mixture",
        "tree mixture",
    )
    cases = [(1000 + seed, NewtonCG(), {}) for seed in range(times(12))]
    for seed, solver, sizes in cases + [
        (2000 + seed, BoxNewton(C=0.5), small) for seed in range(3 * boxed)
    ]:
        prior, features, levels = _problem(seed, kind, mode, **sizes)
        optimum = maximise_entropy(prior, features, levels, describe=str, solver=solver)
        _check_optimum(optimum.dual.prior, features, levels, optimum.solution)


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_equal_finite_differences(kind):
    for seed in range(8):
        prior, features, levels = _problem(3000 + seed, kind, "cells")
        dual = Dual(prior, features, features.mean(levels))
        rng = np.random.default_rng(seed)
        point = dual.at(rng.normal(size=dual.size))
        hessian = point.hessian()
        step = 1e-5
        for j in range(dual.size):
            nudge = step * (np.arange(dual.size) == j)
            ahead, behind = (
                dual.at(point.multipliers + nudge),
                dual.at(point.multipliers - nudge),
            )
            assert (ahead.value - behind.value) / (2 * step) == pytest.approx(
                point.gradient[j], abs=1e-8
            )
            slope = (ahead.gradient - behind.gradient) / (2 * step)
            np.testing.assert_allclose(slope, hessian[:, j], atol=1e-8)
        np.testing.assert_allclose(point.variance(), np.diag(hessian), atol=1e-12)


def test_a_level_wanted_at_zero_is_removed_exactly():
    blocks = Blocks.rooted([2, 2, 3], [0, 1])
    levels = np.array([0.1, 0.2, 0.3, 0.4, 0.0, 0.5, 0.5])
    prior = Product.of(blocks, np.ones(blocks.width))
    optimum = maximise_entropy(
        prior, cell_features(blocks, [None] * 3, levels), levels, describe=str
    )
    tilted = prior.tilt(optimum.dual.features.potentials(optimum.solution.multipliers))
    assert tilted.levels[4] == 0.0
    np.testing.assert_allclose(tilted.levels, levels, atol=1e-12)


def test_a_target_on_the_face_of_the_rows_is_met_by_dropping_the_others():
    """Three rows span a triangle; a target on its edge uses two of them."""
    blocks = Blocks.rooted([2, 2], [0])
    rows = Rows.weighted(blocks, np.array([[0, 0], [0, 1], [1, 1]]), np.full(3, 1 / 3))
    # P(first=0) = P(second=0): the row (0, 1) cannot be used
    levels = np.array([0.3, 0.7, 0.3, 0.7])
    optimum = maximise_entropy(
        rows, attribute_features(blocks, [None] * 2, levels), levels, describe=str
    )
    assert optimum.dual.prior.codes.tolist() == [[0, 0], [1, 1]]
    tilted = optimum.dual.prior.tilt(
        optimum.dual.features.potentials(optimum.solution.multipliers)
    )
    np.testing.assert_allclose(tilted.levels, levels, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "levels", "says"),
    [
        ([2, 2], [0.3, 0.7, 0.6, 0.4], r"level [0-3].*base_share > 0"),
        # which no row has
        ([2, 3], [0.5, 0.5, 0.4, 0.4, 0.2], r"level 4 with probability 0\.2"),
    ],
)
def test_a_target_outside_the_rows_is_refused_by_name(sizes, levels, says):
    blocks, levels = Blocks.rooted(sizes, [0]), np.array(levels)
    rows = Rows.weighted(blocks, np.array([[0, 0], [1, 1]]), np.full(2, 0.5))
    features = attribute_features(blocks, [None] * 2, levels)
    with pytest.raises(InfeasibleError, match=says):
        maximise_entropy(
            rows, features, levels, describe=lambda level: f"level {level}"
        )


def test_contradicting_targets_of_a_pruned_base_are_refused():
    """Where the base forbids (0, 0), P(first=0) + P(second=0) cannot exceed 1."""
    blocks = Blocks.rooted([2, 2], [0])
    base = Tree.of(
        blocks, [0], np.array([0.5, 0.5]), [np.array([[[0.0, 1.0]], [[0.5, 0.5]]])]
    )
    levels = np.array([0.7, 0.3, 0.7, 0.3])
    with pytest.raises(InfeasibleError, match="cannot all be met"):
        maximise_entropy(
            base, attribute_features(blocks, [None] * 2, levels), levels, describe=str
        )


def test_rare_targets_are_met():
    """Targets far from the prior: a level of prior mass 1e-6 wanted at 0.9 and the
    other way round.
    """
    blocks = Blocks.rooted([2, 3], [0])
    prior = Product.of(blocks, np.array([1e-6, 1.0, 1e-9, 1.0, 1.0]))
    levels = np.array([0.9, 0.1, 0.999, 1e-3 - 1e-8, 1e-8])
    features = cell_features(blocks, [None] * 2, levels)
    for solver in (Newton(), NewtonCG()):
        optimum = maximise_entropy(prior, features, levels, describe=str, solver=solver)
        tilted = prior.tilt(
            optimum.dual.features.potentials(optimum.solution.multipliers)
        )
        np.testing.assert_allclose(tilted.levels, levels, atol=1e-11)
