"""Smoothing: what small cells borrow, from whom, and how much."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from fairmaxent.data.table import Blocks, Table
from fairmaxent.maxent.logspace import log_gamma
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.maxent.priors.learned_tree import (
    OUTCOME_STRENGTH,
    STRENGTHS,
    best_strength,
    smoothed,
)


def likelihood(counts, towards, strength):
    """The slow twin: the rows come one after the other, each foreseen from those before
    it.
    """
    total = 0.0
    for cell in np.ndindex(counts.shape[:-1]):
        before = np.zeros(counts.shape[-1])
        for level, rows in enumerate(counts[cell]):
            for _ in range(int(rows)):
                total += np.log(
                    (before[level] + strength * towards[cell][level])
                    / (before.sum() + strength)
                )
                before[level] += 1
    return total


def test_the_strength_of_smoothing_makes_the_rows_most_likely():
    rng = np.random.default_rng(3)
    for spread in np.repeat([0.3, 2.0, 20.0, 500.0], 5):
        towards = np.broadcast_to(rng.dirichlet(np.ones(4)), (3, 2, 4))
        drawn = [
            rng.multinomial(9, rng.dirichlet(spread * towards[0, 0])) for _ in range(6)
        ]
        counts = np.array(drawn).reshape(3, 2, 4)
        twin = [likelihood(counts, towards, strength) for strength in STRENGTHS]
        assert (
            best_strength(counts.astype(float), towards)
            == STRENGTHS[int(np.argmax(twin))]
        )


def test_the_strength_is_that_of_the_large_margins_not_of_three_who_agree():
    rng = np.random.default_rng(4)
    towards = np.full(4, 0.25)
    large = np.array(
        [rng.multinomial(5000, rng.dirichlet(50 * towards)) for _ in range(20)]
    ).astype(float)
    assert best_strength(np.vstack([large, [3.0, 0, 0, 0]]), towards) in (16, 64)


def test_log_gamma_is_scipys():
    x = np.concatenate([10.0 ** np.linspace(-300, 7, 500), np.linspace(0.01, 30, 500)])
    np.testing.assert_allclose(log_gamma(x), gammaln(x), rtol=1e-6, atol=1e-6)


def slow_step(table, counts, margin, strength=None):
    """One step of the ladder, cell by cell: multiply by T_m / E_m, where m are some of
    the axes before the last.
    """
    shape, levels = counts.shape[:-1], counts.shape[-1]

    def part(cell):
        return tuple(cell[axis] for axis in margin)

    parts = sorted({part(cell) for cell in np.ndindex(shape)})
    inside = {m: [cell for cell in np.ndindex(shape) if part(cell) == m] for m in parts}
    seen = np.array([sum(counts[cell] for cell in inside[m]) for m in parts])
    expected = np.zeros((len(parts), levels))
    for number, m in enumerate(parts):
        rows = [counts[cell].sum() for cell in inside[m]]
        if sum(rows) > 0:
            expected[number] = np.average(
                [table[cell] for cell in inside[m]], axis=0, weights=rows
            )
        elif len(inside[m]) == 1:
            expected[number] = table[inside[m][0]]
    if strength is None:
        strength = STRENGTHS[
            int(np.argmax([likelihood(seen, expected, s) for s in STRENGTHS]))
        ]
    result = table.copy()
    for number, m in enumerate(parts):
        wanted = (seen[number] + strength * expected[number]) / (
            seen[number].sum() + strength
        )
        for cell in inside[m]:
            ratio = np.where(
                expected[number] > 0,
                wanted / np.where(expected[number] > 0, expected[number], 1),
                1.0,
            )
            result[cell] = table[cell] * ratio / (table[cell] * ratio).sum()
    return result


@pytest.mark.parametrize("parents", [1, 3])
@pytest.mark.parametrize("root", [(2, 3), (2, 2, 2)])
def test_the_ladder_of_margins_cell_by_cell(root, parents):
    rng = np.random.default_rng(parents)
    cells = rng.poisson(
        rng.gamma(0.7, 6, (*root, parents, 1))
        * rng.dirichlet(np.ones(4), (*root, parents))
    )
    cells = cells.astype(float)
    cells[0, 1] = 0.0  # nobody is in these
    axes = len(root)
    table = np.broadcast_to(
        cells.sum(axis=tuple(range(axes + 1))) / cells.sum(), (*root, 4)
    )
    in_root = cells.sum(axis=axes)
    table = slow_step(table, in_root, (0,), OUTCOME_STRENGTH)
    for margin in (*((axis,) for axis in range(1, axes)), tuple(range(axes))):
        table = slow_step(table, in_root, margin)
    if parents > 1:
        table = np.repeat(table[..., None, :], parents, axis=axes)
        for margin in ((axes,), tuple(range(axes + 1))):
            table = slow_step(table, cells, margin)
    ours = smoothed(cells.reshape(-1, parents, 4), root)
    np.testing.assert_allclose(ours, table.reshape(ours.shape), rtol=1e-12)


def test_smoothing_comes_closer_to_the_truth_than_a_fixed_strength():
    """Root and parent each matter on their own, and a little together; the twin is as
    if five more rows were seen.
    """
    ours, fixed = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = (
            rng.dirichlet(np.ones(5), (4, 1))
            * rng.dirichlet(np.full(5, 2.0), 10)
            * rng.gamma(8, 1, (4, 10, 5))
        )
        truth /= truth.sum(axis=-1, keepdims=True)
        seen = np.array(
            [[rng.multinomial(8, row) for row in rows] for rows in truth]
        ).astype(float)
        table, twin = smoothed(seen, (2, 2)), seen.sum(axis=(0, 1)) / seen.sum()
        for counts in (seen.sum(axis=0), seen):
            twin = (counts + 5 * twin) / (counts.sum(axis=-1, keepdims=True) + 5)
        np.testing.assert_allclose(table.sum(axis=-1), 1)
        assert (table > 0).all()
        ours.append((truth * np.log(truth / table)).sum())
        fixed.append((truth * np.log(truth / twin)).sum())
    assert np.mean(ours) < 0.75 * np.mean(fixed)


def additive_truth(rng, outcomes, groups, levels):
    """P(level | outcome, group) without an interaction of the two."""
    logits = rng.normal(0, 0.7, (outcomes, 1, levels)) + rng.normal(
        0, 0.7, (1, groups, levels)
    )
    weights = np.exp(logits)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_a_small_cell_is_like_its_outcome_and_its_group():
    """Three rows of their own say little; what their outcome and group are like
    elsewhere says much.
    """
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = additive_truth(rng, 2, 5, 4)
        rows = np.full((2, 5), 2000)
        rows[1, 4] = 3
        seen = np.array(
            [
                [rng.multinomial(rows[y, z], truth[y, z]) for z in range(5)]
                for y in range(2)
            ]
        ).astype(float)
        table = smoothed(seen.reshape(10, 1, 4), (2, 5)).reshape(2, 5, 4)
        # as if one more row had been seen
        alone = (seen[1, 4] + seen.sum(axis=(0, 1)) / seen.sum()) / 4
        errors.append(
            [np.abs(guess - truth[1, 4]).sum() for guess in (table[1, 4], alone)]
        )
    ours, alone = np.mean(errors, axis=0)
    assert ours < 0.3 * alone


def test_confounded_outcomes_are_not_counted_twice():
    """The block depends on the outcome alone, and so do the groups: the group must then
    add nothing.
    """
    rng = np.random.default_rng(0)
    given_outcome = np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
    rows = np.array([[9000, 1000, 9], [1000, 9000, 1]])
    seen = np.array(
        [
            [rng.multinomial(rows[y, z], given_outcome[y]) for z in range(3)]
            for y in range(2)
        ]
    ).astype(float)
    table = smoothed(seen.reshape(6, 1, 3), (2, 3)).reshape(2, 3, 3)
    np.testing.assert_allclose(
        table, np.broadcast_to(given_outcome[:, None], (2, 3, 3)), atol=0.04
    )


def test_a_large_cell_has_what_was_seen_in_it():
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(4), (2, 3, 5))  # everything depends on everything
    for rows in (10**4, 10**6):
        seen = (
            np.array([rng.multinomial(rows, cell) for cell in truth.reshape(-1, 4)])
            .astype(float)
            .reshape(6, 5, 4)
        )
        np.testing.assert_allclose(smoothed(seen, (2, 3)), seen / rows, atol=30 / rows)


def test_levels_and_cells_without_rows():
    """A level nobody has keeps probability zero, a cell nobody is in is like its
    outcome, group and parent.
    """
    rng = np.random.default_rng(2)
    seen = rng.integers(1, 9, (6, 3, 5)).astype(float)
    seen[:, :, 2] = 0.0
    seen[4] = 0.0
    seen[:, 1] = 0.0
    table = smoothed(seen, (2, 3))
    np.testing.assert_allclose(table.sum(axis=-1), 1)
    assert (table[:, :, 2] == 0).all()
    assert (np.delete(table, 2, axis=-1) > 0).all()
    np.testing.assert_allclose(
        table[:, 1], smoothed(seen.sum(axis=1, keepdims=True), (2, 3))[:, 0]
    )


def rows_of_three(rng, columns=6):
    """15,000 rows with two outcomes and five groups, the last of three people, and
    blocks that depend on both.
    """
    blocks = Blocks.rooted([2, 5, *([4] * columns)], [0, 1])
    group = rng.choice(4, 15_000, p=[0.6, 0.2, 0.1, 0.1])
    group[:3] = 4
    root = (rng.random(15_000) < 0.3) * 5 + group
    codes = [root]
    for _ in range(columns):
        table = additive_truth(rng, 2, 5, 4).reshape(10, 4)
        drawn = (rng.random((15_000, 1)) > np.cumsum(table[root], axis=1)).sum(axis=1)
        codes.append(np.where(rng.random(15_000) < 0.3, codes[-1] % 4, drawn))
    return blocks, np.column_stack(codes)


def test_design_weights_count_by_the_rows_they_are_worth():
    """A row that stands for 1,000 is one row: the table is that of the same rows, each
    counted once.
    """
    blocks, codes = rows_of_three(np.random.default_rng(1), columns=3)
    codes = codes[:300]
    plain = Table.compress(codes, blocks.levels)
    heavy = Table.compress(
        codes, blocks.levels, np.where(codes[:, 0] % 2, 1000.0, 0.01)
    )
    trees = [
        build_base("tree", blocks, counted, plain, root=np.full(10, 0.1))
        for counted in (plain, heavy)
    ]
    assert trees[0].parents == trees[1].parents
    for first, second in zip(*(tree.log_tables for tree in trees), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_records_of_three_people_are_not_repeated(seed):
    """No record makes up more than 10 % of the base's rows of a group that three people
    were seen of.
    """
    blocks, codes = rows_of_three(np.random.default_rng(seed))
    counted = Table.compress(codes, blocks.levels)
    tree = build_base("tree", blocks, counted, counted, root=np.full(10, 0.1))
    assert tree.full_support
    records = [
        (outcome * 5 + 4, *record)
        for outcome, record in itertools.product(
            range(2), np.unique(codes[:3, 1:], axis=0).tolist()
        )
    ]
    by_record = (
        np.exp(tree.log_probability(np.array(records))).reshape(2, -1).sum(axis=0) / 0.2
    )
    assert by_record.max() < 0.03
