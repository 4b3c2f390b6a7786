"""Every prior against full enumeration, kind by kind."""

import numpy as np
import pytest

from oracle import KINDS, dense, one_hot, points, random_blocks, random_prior, tilted


def _problems(kind: str, count: int):
    for seed in range(count):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        blocks = random_blocks(rng)
        potentials = rng.normal(size=blocks.width) * rng.choice([0.1, 1.0, 5.0])
        yield rng, random_prior(rng, blocks, kind), blocks, potentials


def _evidence(rng, blocks) -> np.ndarray:
    """Fix one attribute, and sometimes exclude a level of another."""
    attribute = int(rng.integers(len(blocks.sizes)))
    level = int(rng.integers(blocks.sizes[attribute]))
    return blocks.spread(
        {attribute: np.where(np.arange(blocks.sizes[attribute]) == level, 0.0, -np.inf)}
    )


@pytest.mark.some(9)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_evidence", [False, True], ids=["free", "evidence"])
def test_tilt_equals_enumeration(kind, with_evidence):
    for rng, prior, blocks, free in _problems(kind, 60):
        potentials = free + _evidence(rng, blocks) if with_evidence else free
        log_partition, p = tilted(dense(prior), blocks, potentials)
        result = prior.tilt(potentials)
        if np.isneginf(log_partition):
            assert np.isneginf(result.log_partition)
            assert not result.levels.any()
            continue
        assert result.log_partition == pytest.approx(log_partition, abs=1e-10)
        indicators = one_hot(blocks)
        np.testing.assert_allclose(result.levels, p @ indicators, atol=1e-12)
        np.testing.assert_allclose(
            result.pairs(), indicators.T @ (p[:, None] * indicators), atol=1e-12
        )


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_joint_tables_equal_enumeration(kind):
    for rng, prior, blocks, potentials in _problems(kind, 40):
        potentials = potentials + (
            _evidence(rng, blocks) if rng.random() < 0.5 else 0.0
        )
        log_partition, p = tilted(dense(prior), blocks, potentials)
        if np.isneginf(log_partition):
            continue
        full = p.reshape(blocks.levels)
        for _ in range(4):
            wanted = [
                int(b)
                for b in rng.permutation(len(blocks.levels))[: int(rng.integers(0, 5))]
            ]
            others = tuple(b for b in range(len(blocks.levels)) if b not in wanted)
            kept = sorted(wanted)
            expected = full.sum(axis=others).transpose([kept.index(b) for b in wanted])
            np.testing.assert_allclose(
                prior.tilt(potentials).joint(wanted), expected, atol=1e-12
            )


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_log_probability_equals_definition_and_sums_to_one(kind):
    for _, prior, blocks, _ in _problems(kind, 30):
        q = np.exp(prior.log_probability(points(blocks.levels)))
        np.testing.assert_allclose(q, dense(prior), atol=1e-13)
        assert q.sum() == pytest.approx(1.0, abs=1e-12)
        assert prior.log_floor() <= np.log(q[q > 0].min()) + 1e-12


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_multipliers_of_norm_700_stay_finite_and_right(kind):
    for rng, prior, blocks, _ in _problems(kind, 20):
        direction = rng.normal(size=blocks.width)
        potentials = 700 * direction / np.linalg.norm(direction)
        log_partition, p = tilted(dense(prior), blocks, potentials)
        result = prior.tilt(potentials)
        assert result.log_partition == pytest.approx(log_partition, rel=1e-13)
        np.testing.assert_allclose(result.levels, p @ one_hot(blocks), atol=1e-10)
        assert np.isfinite(result.pairs()).all()


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_sampler_draws_the_model_given_the_root(kind):
    """Chi-square against the exact conditional of every point given its root."""
    rng = np.random.default_rng(5)
    for _, prior, blocks, potentials in _problems(kind, 3):
        _, p = tilted(dense(prior), blocks, potentials)
        roots = points(blocks.levels)[:, 0]
        mass = np.bincount(roots, weights=p)
        root = int(np.argmax(mass))
        draws = 40_000
        codes = prior.tilt(potentials).draw(np.full(draws, root), rng).codes
        assert (codes[:, 0] == root).all()
        cells = np.ravel_multi_index(codes.T, blocks.levels)
        expected = np.where(roots == root, p, 0.0) / mass[root] * draws
        seen = np.bincount(cells, minlength=len(p))
        assert not seen[expected == 0].any()
        big = expected >= 5
        statistic = ((seen[big] - expected[big]) ** 2 / expected[big]).sum()
        freedom = max(1, int(big.sum()) - 1)
        assert statistic < freedom + 5 * np.sqrt(2 * freedom) + 5
