"""Bases: the structure of the rooted tree, and what is struck out of it."""

import itertools

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from fairmaxent.data.table import Blocks, Table
from fairmaxent.maxent.forbidden import Rule
from fairmaxent.maxent.priors.bases import build_base, reachable_roots, rerooted
from fairmaxent.maxent.priors.learned_tree import spanning_parents
from fairmaxent.maxent.priors.tree import Tree
from oracle import dense, points


def test_the_forest_is_as_heavy_as_scipys():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size = int(rng.integers(2, 12))
        information = np.tril(rng.normal(0.3, 0.5, (size, size)), -1)
        information[:, 0] = 0.0  # block 0 is the root, parent of all
        parents = spanning_parents(information, [])
        both = information + information.T
        weight = sum(
            both[block, parent]
            for block, parent in enumerate(parents, start=1)
            if parent
        )
        cost = np.where(information > 0, 10 - information, 0)
        tree = minimum_spanning_tree(cost).toarray()
        assert weight == pytest.approx((10 - tree[tree > 0]).sum())
        assert all(
            both[block, parent] > 0
            for block, parent in enumerate(parents, start=1)
            if parent
        )


def test_forced_edges_are_in_the_forest():
    rng = np.random.default_rng(1)
    for _ in range(50):
        information = np.tril(rng.normal(size=(7, 7)), -1)
        information[:, 0] = 0.0
        forced = [(1, 4), (4, 6), (2, 5)]
        parents = spanning_parents(information, forced)
        edges = {
            frozenset((block, parent)) for block, parent in enumerate(parents, start=1)
        }
        assert all(frozenset(edge) in edges for edge in forced)


def chained_rows(seed, rows=4000):
    """Blocks 1 – 3 – 2 hang together given the root, block 4 on nothing, and all of
    them but 4 on the root.
    """
    rng = np.random.default_rng(seed)
    blocks = Blocks.rooted([2, 2, 3, 4, 3, 5], [0, 1])

    def noisy(source, size, keep):
        return np.where(
            rng.random(rows) < keep, source % size, rng.integers(0, size, rows)
        )

    root = rng.integers(0, 4, rows)
    middle = noisy(root, 3, 0.3)
    first, second = noisy(middle + root, 3, 0.6), noisy(middle + 1, 4, 0.6)
    codes = np.column_stack([root, first, second, middle, rng.integers(0, 5, rows)])
    return blocks, Table.compress(codes, blocks.levels)


def test_the_tree_has_the_edges_of_the_conditional_mutual_information():
    """I(i; j | root) of the weighted rows from dense tables, less its bias; the blocks
    that hang together are found.
    """
    for seed in range(3):
        blocks, counted = chained_rows(seed)
        factor = np.array([0.4, 1.0, 1.6, 1.0])[counted.codes[:, 0]]
        weighted = counted.counting(counted.counts * factor / (counted.counts @ factor))
        root = np.bincount(counted.codes[:, 0], weighted.counts)
        tree = build_base("tree", blocks, counted, weighted, root=root)
        edges = {
            frozenset((block, parent))
            for block, parent in enumerate(tree.parents, start=1)
            if parent
        }
        assert edges >= {frozenset((1, 3)), frozenset((2, 3))}
        information = np.zeros((5, 5))
        for i, j in itertools.combinations(range(1, 5), 2):
            table = np.zeros([blocks.levels[b] for b in (0, i, j)])
            np.add.at(
                table, tuple(counted.codes[:, [0, i, j]].astype(int).T), weighted.counts
            )
            first, second, both = (
                table.sum(axis, keepdims=True) for axis in (2, 1, (1, 2))
            )
            apart = first * second / both
            bias = (
                (blocks.levels[i] - 1)
                * (blocks.levels[j] - 1)
                * 4
                / (2 * counted.total)
            )
            information[i, j] = (
                table * np.log(np.where(table > 0, table / apart, 1.0))
            ).sum() - bias
        assert list(tree.parents) == spanning_parents(information.T, [])


def test_the_tree_is_closer_to_dependent_rows_than_bases_without_edges():
    blocks, counted = chained_rows(5)
    weighted = counted.counting(counted.counts / counted.total)
    root = np.bincount(counted.codes[:, 0], weighted.counts)
    log_likelihood = {
        kind: (
            weighted.counts
            @ build_base(kind, blocks, counted, weighted, root=root).log_probability(
                counted.codes
            )
        )
        for kind in ("uniform", "product", "tree")
    }
    assert log_likelihood["uniform"] + 0.01 < log_likelihood["product"]
    assert log_likelihood["product"] + 0.3 < log_likelihood["tree"]


@pytest.mark.parametrize("kind", ["uniform", "product", "tree"])
def test_a_base_is_itself_given_that_no_rule_is_broken(kind):
    """Striking out cells and normalising is conditioning: enumerate both."""
    rng = np.random.default_rng(2)
    blocks = Blocks.rooted([2, 2, 3, 2, 3], [0, 1])
    rows = np.unique(
        np.column_stack([rng.integers(0, k, 300) for k in blocks.levels]), axis=0
    )
    counts = rng.integers(1, 5, len(rows)).astype(float)
    rules = [
        Rule.of(blocks, {0: 1, 2: 2}, "root and one other"),
        Rule.of(blocks, {2: 0, 3: 1}, "two others"),
        Rule.of(blocks, {1: 0, 3: 0, 4: 2}, "root and two others"),
        Rule.of(blocks, {0: 0, 1: 1}, "a cell of the root"),
    ]
    counted = Table(rows, counts, counts, counts)
    weighted, root = (
        counted.counting(counts / counts.sum()),
        np.array([0.1, 0.2, 0.3, 0.4]),
    )
    forbidding = build_base(kind, blocks, counted, weighted, root=root, rules=rules)
    grid = points(blocks.levels)
    broken = np.logical_or.reduce([rule.breaks(grid) for rule in rules])
    q = dense(forbidding)
    assert (q[broken] == 0).all()
    assert (q[~broken] > 0).all()
    assert q.sum() == pytest.approx(1, abs=1e-12)
    # the rules add edges to the tree, so only the others are comparable
    if kind != "tree":
        plain = dense(build_base(kind, blocks, counted, weighted, root=root)) * ~broken
        np.testing.assert_allclose(q, plain / plain.sum(), atol=1e-14)
    by_hand = np.bincount(grid[:, 0], weights=~broken) > 0
    np.testing.assert_array_equal(reachable_roots(blocks, rules), by_hand)


def test_what_is_struck_out_of_a_tree_with_a_hub_is_what_breaks_a_rule_and_no_more():
    blocks, rng = (
        Blocks((2, 3, 2, 3), ((0,), (1,), (2,), (3,))),
        np.random.default_rng(0),
    )
    for assignment in (
        {1: 2},
        {0: 1, 2: 0},
        {0: 1, 1: 0, 3: 2},
        {2: 1, 1: 1},
        {2: 1, 3: 0},
        {0: 0, 2: 1, 3: 0},
    ):
        tables = [
            rng.dirichlet(np.ones(size), above)
            for size, above in ((3, (2, 1)), (2, (6, 1)), (3, (6, 2)))
        ]
        tree, rule = (
            Tree.of(blocks, (1, 0, 2), np.array([0.5, 0.5]), tables),
            Rule.of(blocks, assignment, ""),
        )
        pruned = rerooted(tree, np.array([0.4, 0.6]), [rule])
        np.testing.assert_array_equal(
            dense(pruned) == 0, rule.breaks(points(blocks.levels))
        )
