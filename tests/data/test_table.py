"""Sums over distinct rows, against sums over the input rows one by one."""

from functools import partial

import numpy as np
import pytest

from fairmaxent.data.table import Blocks, Table, grouped_rows, match_rows
from fairmaxent.fairness.fair_table import reweigh
from fairmaxent.maxent.forbidden import Rule, break_any

SIZES = (4, 3, 5)


@pytest.fixture
def rows():
    """Input rows with design weights, some of them zero."""
    rng = np.random.default_rng(8)
    codes = np.column_stack([rng.integers(0, size, 400) for size in SIZES]).astype(
        np.uint8
    )
    return codes, rng.integers(0, 3, 400) / 2


@pytest.mark.parametrize("wanted", [(0,), (2, 1), (0, 2), (1, 0, 2)])
@pytest.mark.parametrize("of", ["counts", "rows", "squares"])
def test_tables_are_sums_over_the_input_rows(rows, wanted, of):
    codes, weight = rows
    expected = np.zeros([SIZES[column] for column in wanted])
    for row, own in zip(
        codes,
        {"counts": weight, "rows": np.ones(400), "squares": weight**2}[of],
        strict=True,
    ):
        expected[tuple(row[list(wanted)])] += own
    first, again = Table.compress(codes, SIZES, weight).tables(
        [wanted, wanted], SIZES, of=of
    )
    np.testing.assert_allclose(first, expected)
    np.testing.assert_array_equal(first, again)


def test_what_the_rows_are_worth_is_by_the_weights_of_the_input_rows(rows):
    codes, weight = rows
    table = Table.compress(codes, SIZES, weight)
    wanted = np.array([0.4, 0.3, 0.2, 0.1])
    weighted = reweigh(table, wanted)
    np.testing.assert_allclose(weighted.tables([(0,)], SIZES)[0], wanted)
    single = weight * (wanted / np.bincount(codes[:, 0], weight))[codes[:, 0]]
    assert weighted.worth == pytest.approx(single.sum() ** 2 / (single**2).sum())
    assert table.counting(weighted.counts).worth == pytest.approx(weighted.worth)
    assert (weighted.total, weighted.size) == (pytest.approx(1.0), 400)


def test_rows_that_break_a_rule_count_nothing(rows):
    codes, weight = rows
    blocks = Blocks.rooted(SIZES, [0])
    rules = [Rule.of(blocks, {0: 1, 2: 3}, "one"), Rule.of(blocks, {1: 2}, "another")]
    kept = Table.compress(codes, SIZES, weight).without(partial(break_any, rules))
    fine = ~(((codes[:, 0] == 1) & (codes[:, 2] == 3)) | (codes[:, 1] == 2))
    assert kept.total == pytest.approx(weight[fine].sum())
    assert kept.worth == pytest.approx(
        weight[fine].sum() ** 2 / (weight[fine] ** 2).sum()
    )
    assert kept.size == 400


def test_thinned_rows_stand_for_all(rows):
    codes, weight = rows
    table = Table.compress(codes, SIZES, weight)
    assert table.thinned(table.distinct) is table
    thinned = table.thinned(40)
    assert (thinned.distinct, thinned.total) == (40, pytest.approx(table.total))
    (exact,), (rough,) = table.tables([(0,)], SIZES), thinned.tables([(0,)], SIZES)
    # rows are sorted: a level is off by one step at most
    assert np.abs(exact - rough).max() <= table.total / 40


@pytest.mark.parametrize(
    "sizes",
    [(3, 4, 2), (900, 900, 900), (2**30, 2**30, 2**30)],
    ids=["countable", "sorted", "ranked"],
)
def test_equal_rows_are_merged_in_lexicographic_order(sizes):
    rng = np.random.default_rng(0)
    few = np.column_stack([rng.integers(0, size, 40) for size in sizes])
    codes = few[rng.integers(0, len(few), 500)]
    table = Table.compress(codes, sizes)
    assert [tuple(row) for row in table.codes] == sorted({tuple(row) for row in codes})
    np.testing.assert_array_equal(table.codes[table.inverse], codes)
    np.testing.assert_array_equal(table.counts, np.bincount(table.inverse))


@pytest.mark.parametrize("count", [1, 7, 300, 70_000])
def test_grouped_rows_keep_the_order_inside_each_group(count):
    groups = np.random.default_rng(count).integers(-1, count, 1000)
    order, starts = grouped_rows(groups, count)
    ends = [*starts[1:], len(order)]
    for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if end > start:
            assert order[start:end].tolist() == np.flatnonzero(groups == group).tolist()
    assert len(order) == np.count_nonzero(groups >= 0)


def test_rows_are_matched_by_value():
    known = np.array([[0, 1], [1, 0], [2, 2]])
    assert match_rows(known, known.copy(), (3, 3)).tolist() == [0, 1, 2]
    assert match_rows(known, known[[2, 0]], (3, 3)).tolist() == [2, 0]
    assert match_rows(known, np.array([[1, 1], [2, 2]]), (3, 3)).tolist() == [-1, 2]
