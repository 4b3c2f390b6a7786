"""Exact draws: the guide table finds what a plain search finds."""

import numpy as np
import pytest

from fairmaxent.data.draws import Choice, cells_of
from fairmaxent.data.quotas import quota


class Fixed:
    """A generator that returns given numbers."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, dtype=float)

    def random(self, count):
        assert count == len(self.numbers)
        return self.numbers


def by_search(weights, starts, groups, uniform):
    """The slow twin: the first item at which the running share of its group exceeds
    u.
    """
    ends = [*starts[1:], len(weights)]
    result = []
    for group, u in zip(groups, uniform, strict=True):
        own = weights[starts[group] : ends[group]]
        running = np.cumsum(own / own.sum())
        exceeding = np.flatnonzero((running > u) & (own > 0))
        result.append(exceeding[0] if len(exceeding) else np.flatnonzero(own > 0)[-1])
    return np.array(result)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "skew", [0.02, 0.3, 3.0], ids=["one item has nearly all", "uneven", "even"]
)
def test_draws_equal_a_plain_search(skew):
    rng = np.random.default_rng(0)
    for _ in range(40):
        lengths = rng.integers(1, 30, size=int(rng.integers(1, 12)))
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        weights = rng.gamma(skew, size=lengths.sum())
        weights[rng.random(len(weights)) < 0.2] = 0.0
        weights[starts + rng.integers(0, lengths)] = 0.7  # no group is empty
        groups = rng.integers(0, len(lengths), 300)
        uniform = rng.random(300)
        drawn = Choice.grouped(weights, starts).draw(groups, Fixed(uniform))
        np.testing.assert_array_equal(
            drawn, by_search(weights, starts, groups, uniform)
        )


def test_the_ends_of_the_unit_interval_stay_in_the_group_and_miss_impossible_items():
    weights = np.array(
        [[0.0, 0.0, 1.0, 0.0], [0.1, 0.0, 0.9, 0.0], [0.0, 1e-300, 0.0, 0.0]]
    )
    choice = Choice.rows_of(weights)
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        drawn = choice.draw(np.arange(3), Fixed([u] * 3))
        assert (weights[np.arange(3), drawn] > 0).all()


def test_many_groups_keep_to_themselves():
    groups = 100_000
    choice = Choice.rows_of(np.tile([0.5, 0.5, 0.0], (groups, 1)))
    drawn = choice.draw(
        np.arange(groups), Fixed(np.full(groups, np.nextafter(1.0, 0.0)))
    )
    assert (drawn == 1).all()


SHARES = np.array([0.45, 0.0, 0.3, 0.25])


def test_cells_by_quota_are_the_quota_in_random_order():
    table = SHARES.reshape(2, 2)
    cells, rng = (
        cells_of(table, 1001, np.random.default_rng(0), independent=False),
        np.random.default_rng(0),
    )
    counts = quota(table, 1001, rng)
    np.testing.assert_array_equal(np.bincount(cells, minlength=4), counts.ravel())
    assert (np.diff(cells) < 0).any()
    np.testing.assert_array_equal(
        cells, rng.permutation(np.repeat(np.arange(4), counts.ravel()))
    )


def test_independent_cells_are_those_where_the_running_share_exceeds_a_uniform_number():
    cells = cells_of(SHARES, 1000, np.random.default_rng(0), independent=True)
    uniform = np.random.default_rng(0).random(1000)
    np.testing.assert_array_equal(
        cells, np.searchsorted(np.cumsum(SHARES), uniform, side="right")
    )
    assert not (cells == 1).any()


@pytest.mark.more
def test_spread_draws_are_within_one_of_their_share_and_without_bias():
    """Over many seeds, each item of each group comes as often on average as its share
    of the group's draws.
    """
    rng = np.random.default_rng(0)
    weights, starts = rng.gamma(0.5, size=23), np.array([0, 1, 8, 11])
    lengths = np.diff([*starts, len(weights)])
    share = weights / np.repeat(np.add.reduceat(weights, starts), lengths)
    groups = rng.permutation(np.repeat(np.arange(4), [3, 10, 1, 40]))
    expected = share * np.repeat(np.bincount(groups), lengths)
    choice, runs = Choice.grouped(weights, starts), 4000
    total, by_row = np.zeros(len(weights)), np.zeros((len(groups), len(weights)))
    for _ in range(runs):
        items = starts[groups] + choice.draw(groups, rng, spread=True)
        counts = np.bincount(items, minlength=len(weights))
        assert (np.abs(counts - expected) < 1).all()
        total += counts
        by_row[np.arange(len(groups)), items] += 1
    fraction = expected % 1
    error = np.sqrt(np.maximum(fraction * (1 - fraction), 1e-12) / runs)
    assert (np.abs(total / runs - expected) <= 4 * error).all()
    by_hand = np.where(np.repeat(np.arange(4), lengths) == groups[:, None], share, 0.0)
    # each row too
    assert (
        np.abs(by_row / runs - by_hand)
        <= 5 * np.sqrt(by_hand * (1 - by_hand) / runs) + 1e-9
    ).all()
