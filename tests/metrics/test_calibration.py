"""Calibration by group: against scikit-learn, by hand, and by simulation."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.calibration import calibration_curve

from fairmaxent import metrics
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.surpluses import quantile_bins, surpluses_of

# In tables of a few rows every group counts.
calibration = partial(metrics.calibration, smallest_group=0)
# Observed minus promised: F 0.5 − 0.4, M 0.75 − 0.85.
COLUMNS = {
    "sex": ["F", "F", "M", "M", "M", "M"],
    "hired": ["yes", "no", "yes", "yes", "yes", "no"],
    "chance": [0.6, 0.2, 0.9, 0.9, 0.9, 0.7],
    "weight": [3.0, 1.0, 1.0, 1.0, 1.0, 1.0],
}
LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])


def promised(rng: np.random.Generator, rows: int, shift=(0.0, 0.0, 0.0)):
    """Groups, true probabilities and outcomes; what is promised is off by a shift in
    each group.
    """
    group = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    chance = rng.beta(2, 3, rows) * 0.8 + 0.1
    return group, chance - np.array(shift)[group], rng.random(rows) < chance


@LIBRARIES
def test_what_happened_is_compared_with_what_was_promised_in_bins_of_all_rows_together(
    library,
):
    result = calibration(
        library(COLUMNS), "hired", "chance", "sex", favourable="yes", bins=2
    )
    women, men = result.groups
    assert (women.group, women.count, women.predicted, women.observed) == (
        ("F",),
        2,
        pytest.approx(0.4),
        0.5,
    )
    assert (men.group, men.count, men.predicted, men.observed) == (
        ("M",),
        4,
        pytest.approx(0.85),
        0.75,
    )
    assert (women.surplus, men.surplus) == (pytest.approx(0.1), pytest.approx(-0.1))
    assert result.gap == pytest.approx(0.2)
    assert (result.worst.outcome, result.worst.lowest, result.worst.highest) == (
        "yes",
        ("M",),
        ("F",),
    )
    assert str(result).startswith("gap 0.200 (between 0.000 and ")
    assert str(result).endswith(
        ": sex, M against F for outcome yes; error 0.250 (0.195 by chance alone) in M"
    )
    # Half of all rows have at most 0.7: both women, and one man.
    assert women.error == pytest.approx(0.1)
    assert men.error == result.error == pytest.approx((0.7 + 3 * 0.1) / 4)
    by_chance = (np.sqrt(0.7 * 0.3) + np.sqrt(3 * 0.9 * 0.1)) * np.sqrt(2 / np.pi) / 4
    assert men.by_chance == pytest.approx(by_chance)
    assert all(
        0 <= part.interval[0] <= part.observed <= part.interval[1] <= 1
        for part in (women, men)
    )


def test_intersections_are_compared_and_groups_without_weight_are_not():
    frame = pd.DataFrame(COLUMNS).assign(age=["old", "new"] * 3)
    joint = calibration(
        frame, "hired", "chance", ["sex", "age"], favourable="yes", groups="joint"
    )
    assert [group.group for group in joint.groups] == [
        ("F", "new"),
        ("F", "old"),
        ("M", "new"),
        ("M", "old"),
    ]
    each = calibration(frame, "hired", "chance", ["sex", "age"], favourable="yes")
    assert [group.group[0] for group in each.groups] == ["F", "M", "new", "old"]
    assert each.worst.columns in (("sex",), ("age",))
    weight = (frame["sex"] == "M").astype(float)
    alone = calibration(
        frame, "hired", "chance", "sex", favourable="yes", weight=weight
    )
    assert [group.group for group in alone.groups] == [("M",)]
    assert (alone.gap, alone.interval, alone.worst.lowest) == (0.0, (0.0, 0.0), ("M",))
    assert "all groups equal" in str(alone)


def test_the_error_is_that_of_scikit_learns_curve():
    _, chance, happened = promised(np.random.default_rng(1), 1000)
    (everybody,) = calibration(
        pl.DataFrame({"g": ["all"] * 1000}), happened, chance, "g", favourable=True
    ).groups
    share, mean = calibration_curve(happened, chance, n_bins=10, strategy="quantile")
    assert everybody.error == pytest.approx(np.abs(share - mean).mean())


def test_the_errors_of_weighted_groups_are_those_of_group_by():
    rng = np.random.default_rng(2)
    group, chance, happened = promised(rng, 700, (0.05, -0.05, 0.0))
    weight = rng.gamma(2.0, size=700)
    result = calibration(
        pl.DataFrame({"g": group}),
        happened,
        chance,
        "g",
        favourable=True,
        weight=weight,
        bins=7,
    )
    rows = pd.DataFrame(
        {"g": group, "bin": quantile_bins(chance, weight, 7), "w": weight}
    )
    rows = rows.assign(surplus=weight * (happened - chance), promised=weight * chance)
    totals = rows.groupby("g").sum()
    errors = (
        rows.groupby(["g", "bin"])["surplus"].sum().abs().groupby("g").sum()
        / totals["w"]
    )
    np.testing.assert_allclose([part.error for part in result.groups], errors)
    np.testing.assert_allclose(
        [part.predicted for part in result.groups], totals["promised"] / totals["w"]
    )
    assert (result.gap, result.error) == pytest.approx(
        (np.ptp(totals["surplus"] / totals["w"]), errors.max())
    )


def test_probabilities_that_say_nothing_add_a_variance_that_is_widened_like_students():
    chance = np.random.default_rng(5).random(9)
    happened = np.arange(9) % 2 > 0
    counts = EffectiveCounts.of_rates(np.array([4 / 9]), np.array([9.0]))
    added = surpluses_of(counts, [(happened, chance, np.ones(9))]).added
    alone = (np.var(happened - chance) - np.var(happened)) / 9
    assert added == pytest.approx(alone * (8 + 1) / (8 - 2))  # eight degrees of freedom


@pytest.mark.more
def test_chance_alone_makes_the_error_that_is_stated():
    rng = np.random.default_rng(3)
    errors, stated = [], []
    for _ in range(100):
        group, chance, happened = promised(rng, 600)
        result = calibration(
            pl.DataFrame({"g": group}), happened, chance, "g", favourable=True
        )
        errors.append([part.error for part in result.groups])
        stated.append([part.by_chance for part in result.groups])
    np.testing.assert_allclose(
        np.mean(errors, axis=0), np.mean(stated, axis=0), rtol=0.05
    )


@pytest.mark.more
@pytest.mark.parametrize("shift", [(0.0, 0.0, 0.0), (0.05, 0.0, -0.05)])
def test_the_interval_of_the_gap_covers(shift):
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(40):
        group, chance, happened = promised(rng, 400, shift)
        low, high = calibration(
            pl.DataFrame({"g": group}), happened, chance, "g", favourable=True
        ).interval
        hits += low <= max(shift) - min(shift) <= high
    assert hits >= 36


def test_a_single_row_says_little_about_its_group():
    frame = pd.DataFrame(
        {"g": ["a"] * 50 + ["b"], "y": [0, 1] * 25 + [1], "p": [0.5] * 51}
    )
    result = calibration(frame, "y", "p", "g", favourable=1)
    assert result.gap == 0.5
    # all of b, and as few of a as there may be
    assert result.interval == (0.0, pytest.approx(0.65, abs=0.01))
    assert result.groups[1].interval == (pytest.approx(0.1, abs=0.1), 1.0)


def test_probabilities_that_vary_for_no_reason_add_their_variance():
    happened = np.array([True, False, True, False] * 5)
    chance = np.array([0.2, 0.2, 0.8, 0.8] * 5)  # of 0.5, whatever happened
    counts = EffectiveCounts.of_rates(np.array([0.5]), np.array([20.0]))
    surpluses = surpluses_of(counts, [(happened, chance, np.ones(20))])
    compared = surpluses.compared(counts)
    # Σ (c − c̄)² / n², times n / (n − 3)
    np.testing.assert_allclose(compared.added, [20 * 0.3**2 / 20**2 * 20 / 17])
