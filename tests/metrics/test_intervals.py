"""Intervals of shares, rates and differences: by their definitions, and against simulation."""

import numpy as np
import polars as pl
import pytest

from fairmaxent.metrics.group_rates import representation_rate, statistical_rate
from fairmaxent.metrics.intervals import difference_interval, normal_quantile, wilson_interval


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_wilsons_ends_are_the_shares_from_which_the_observed_one_is_z_errors_away(share):
    z, size = normal_quantile(0.975), 40.0
    assert z == pytest.approx(1.959964, abs=1e-6)
    low, high = wilson_interval(np.array(share), np.array(size), z)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / size, abs=1e-12)


def test_the_interval_of_a_difference_allows_for_every_pair_and_stays_in_its_range():
    low, high = difference_interval(np.array([-0.3]), np.array([0.01]), 0.95)
    assert (low, high) == pytest.approx((0.3 - 0.196, 0.3 + 0.196), abs=1e-4)
    wider = difference_interval(np.array([-0.3, 0.1, 0.2]), np.array([0.01] * 3), 0.95)
    margin = 0.1 * normal_quantile(1 - 0.05 / 6)
    assert wider == pytest.approx((0.3 - margin, 0.3 + margin))
    assert difference_interval(np.array([0.3]), np.array([np.inf]), 0.95) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("rates", "rows"),
    [((0.3, 0.4), 300), ((0.05, 0.1), 300), ((0.3,) * 5, 1000), ((0.2, 0.3, 0.3, 0.35, 0.4), 1000)],
)
def test_the_interval_of_a_statistical_rate_covers(rates, rows):
    rng = np.random.default_rng(11)
    truth, hits = min(rates) / max(rates), 0
    for _ in range(300):
        group = rng.integers(0, len(rates), rows)
        frame = pl.DataFrame({"g": group, "y": rng.random(rows) < np.array(rates)[group]})
        low, high = statistical_rate(frame, "y", "g", favourable=True).interval
        hits += low <= truth <= high
    assert hits / 300 >= 0.93


@pytest.mark.parametrize("shares", [(0.3, 0.7), (0.5, 0.5), (0.2,) * 5, (0.05, 0.2, 0.25, 0.25, 0.25)])
def test_the_interval_of_a_representation_rate_covers(shares):
    rng = np.random.default_rng(12)
    truth, hits = min(shares) / max(shares), 0
    for _ in range(300):
        frame = pl.DataFrame({"g": rng.choice(len(shares), 400, p=shares)})
        low, high = representation_rate(frame, "g").interval
        hits += low <= truth <= high
    assert hits / 300 >= 0.93


def test_two_groups_get_the_interval_of_a_risk_ratio():
    frame = pl.DataFrame({"g": ["a"] * 1000 + ["b"] * 1000, "y": [1] * 300 + [0] * 700 + [1] * 400 + [0] * 600})
    low, high = statistical_rate(frame, "y", "g", favourable=1).interval
    error = 1.96 * np.sqrt(0.7 / 300 + 0.6 / 400)
    assert (low, high) == pytest.approx((0.75 * np.exp(-error), 0.75 * np.exp(error)), rel=2e-3)
    wide = statistical_rate(frame, "y", "g", favourable=1, confidence=0.99).interval
    assert wide[0] < low < high < wide[1]
