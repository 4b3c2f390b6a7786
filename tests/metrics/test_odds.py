"""Equal opportunity and equalised odds: against fairlearn, the statistical rate of part
of the rows, and by hand.
"""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st

import fairmaxent
from fairmaxent.errors import LevelError
from tables import random_frame, times

# In most tests, missing values are a group of their own.
HOW = {"compare_missing": True, "smallest_group": 0}  # every group counts
equal_opportunity = partial(fairmaxent.metrics.equal_opportunity, **HOW)
equalised_odds = partial(fairmaxent.metrics.equalised_odds, **HOW)
statistical_rate = partial(fairmaxent.metrics.statistical_rate, **HOW)
# Predicted among those hired: F 1 of 2, M 2 of 2, missing 1 of 1; among the others: F 1
# of 2, M 0 of 2, missing none.
COLUMNS = {
    "sex": ["F", "F", "F", "F", "M", "M", "M", "M", None],
    "hired": ["yes", "yes", "no", "no", "yes", "yes", "no", "no", "yes"],
    "said": ["yes", "no", "yes", "no", "yes", "yes", "no", "no", "yes"],
    "weight": [3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
}
CHANCE = [0.8, 0.4, 0.6, 0.1, 0.9, 0.7, 0.3, 0.5, 0.6]
LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])


def predicted_frame(seed: int, outcomes: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, (2, 3), outcomes, rows=800)
    noise = rng.random(800) < 0.4
    return frame.assign(
        said=np.where(noise, rng.permutation(frame["y"]), frame["y"]),
        w=rng.gamma(2.0, size=800),
    )


@LIBRARIES
def test_true_positive_rates_are_compared_and_the_worse_of_true_and_false_ones_counts(
    library,
):
    rate = equal_opportunity(library(COLUMNS), "hired", "said", "sex", favourable="yes")
    assert (rate.value, rate.difference) == (0.5, 0.5)
    assert (rate.worst.outcome, rate.worst.lowest, rate.worst.highest) == (
        "yes",
        ("F",),
        ("M",),
    )
    rates = [(group.group[0], group.rate, group.count) for group in rate.groups]
    assert rates == [("F", 0.5, 2), ("M", 1.0, 2), ("missing", 1.0, 1)]
    assert all(
        low <= group.rate <= high
        for group in rate.groups
        for low, high in [group.interval]
    )
    assert rate.left_out == ()
    odds = equalised_odds(library(COLUMNS), "hired", "said", "sex", favourable="yes")
    assert (odds.true_positive.value, odds.false_positive.value, float(odds)) == (
        0.5,
        0.0,
        0.0,
    )
    found = [
        (group.group[0], group.rate, group.count)
        for group in odds.false_positive.groups
    ]
    assert found == [("F", 0.5, 2), ("M", 0.0, 2)]
    assert odds.difference == 0.5
    assert odds < 0.8
    assert str(odds).startswith("0.000 (between 0.000 and ")
    assert str(odds).endswith(
        ": false positives, sex, M against F for outcome yes; not compared: missing"
    )


def test_probabilities_count_above_the_threshold():
    frame = pd.DataFrame(COLUMNS)
    odds = equalised_odds(
        frame, "hired", CHANCE, "sex", favourable="yes", as_probability=True
    )
    # As text, because a rate of nobody is NaN, which equals nothing from Python 3.13
    # on.
    assert repr(odds) == repr(
        equalised_odds(frame, "hired", "said", "sex", favourable="yes")
    )
    low = equalised_odds(
        frame,
        "hired",
        CHANCE,
        "sex",
        favourable="yes",
        as_probability=True,
        threshold=0.3,
    )
    assert [group.rate for group in low.true_positive.groups] == [1.0, 1.0, 1.0]
    assert [group.rate for group in low.false_positive.groups] == [0.5, 0.5]


@pytest.mark.some(1)
@pytest.mark.parametrize("weight", [None, "w"])
def test_the_values_are_fairlearns(weight):
    frame = predicted_frame(1)
    for outcome in ("o0", "o1", "o2"):
        shared = {
            "sensitive_features": frame["z1"],
            "sample_weight": None if weight is None else frame[weight],
        }
        happened, said = frame["y"] == outcome, frame["said"] == outcome
        odds = equalised_odds(
            frame, "y", "said", "z1", favourable=outcome, weight=weight
        )
        assert odds.value == pytest.approx(
            fairlearn.equalized_odds_ratio(happened, said, **shared)
        )
        assert odds.difference == pytest.approx(
            fairlearn.equalized_odds_difference(happened, said, **shared)
        )
        opportunity = equal_opportunity(
            frame, "y", "said", "z1", favourable=outcome, weight=weight
        )
        assert opportunity == odds.true_positive
        assert opportunity.value == pytest.approx(
            fairlearn.equal_opportunity_ratio(happened, said, **shared)
        )


@pytest.mark.parametrize("groups", ["each", "joint"])
def test_equal_opportunity_is_the_statistical_rate_of_those_with_the_outcome(groups):
    frame = predicted_frame(2)
    odds = equalised_odds(
        frame, "y", "said", ["z0", "z1"], favourable="o1", groups=groups, weight="w"
    )
    for rate, rows in (
        (odds.true_positive, frame["y"] == "o1"),
        (odds.false_positive, frame["y"] != "o1"),
    ):
        part = frame[rows]
        expected = statistical_rate(
            part, part["said"], ["z0", "z1"], favourable="o1", groups=groups, weight="w"
        )
        assert (rate.value, rate.interval) == (
            pytest.approx(expected.value),
            pytest.approx(expected.interval),
        )
        assert rate.worst == expected.worst
        assert [(g.group, g.count) for g in rate.groups] == [
            (g.group, g.count) for g in expected.groups
        ]
        np.testing.assert_allclose(
            [g.rate for g in rate.groups], [g.rate for g in expected.groups]
        )


def test_several_outcomes_are_compared_each_on_its_own():
    frame = predicted_frame(3)
    alone = [
        equalised_odds(frame, "y", "said", "z1", favourable=outcome)
        for outcome in ("o0", "o1", "o2")
    ]
    for favourable in (None, ["o0", "o1", "o2"]):
        together = equalised_odds(frame, "y", "said", "z1", favourable=favourable)
        assert together.value == min(odds.value for odds in alone)
        assert together.difference == max(odds.difference for odds in alone)


@pytest.mark.more
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
@settings(max_examples=times(100), deadline=None)
def test_any_table_has_a_rate_or_a_reason(rows):
    frame = pl.DataFrame(rows, schema=["g", "y", "said"], orient="row")
    shares = {
        group: [said for g, y, said in rows if g == group and y]
        for group in sorted({row[0] for row in rows})
    }
    known = {group: sum(said) / len(said) for group, said in shares.items() if said}
    foreign = {y for _, y, _ in rows}.isdisjoint({said for _, _, said in rows})
    if foreign or len(known) < min(2, len(shares)):
        with pytest.raises(LevelError):
            equal_opportunity(frame, "y", "said", "g", favourable=True)
        return
    rate = equal_opportunity(frame, "y", "said", "g", favourable=True)
    assert {group.group[0]: group.rate for group in rate.groups} == pytest.approx(known)
    assert {group.group[0] for group in rate.left_out} == set(shares) - set(known)
    assert rate.value == pytest.approx(
        min(known.values()) / max(known.values()) if max(known.values()) else 1.0
    )
    assert rate.interval[0] <= rate.value <= rate.interval[1]


@pytest.mark.more
def test_the_interval_of_equalised_odds_covers():
    rng = np.random.default_rng(4)
    true, false = np.array([0.8, 0.7, 0.75]), np.array([0.2, 0.3, 0.25])
    hits = 0
    for _ in range(40):
        group, happened = rng.integers(0, 3, 900), rng.random(900) < 0.4
        said = rng.random(900) < np.where(happened, true[group], false[group])
        low, high = equalised_odds(
            pl.DataFrame({"g": group}), happened, said, "g", favourable=True
        ).interval
        hits += low <= 0.2 / 0.3 <= high
    assert hits >= 36


def test_what_cannot_be_compared_says_so():
    frame = pd.DataFrame(COLUMNS)
    women_only = frame.assign(hired=np.where(frame["sex"] == "F", frame["hired"], "no"))
    with pytest.raises(
        LevelError,
        match=r"true positive rates cannot be compared: .* with the favourable outcome",
    ):
        equal_opportunity(women_only, "hired", "said", "sex", favourable="yes")
    with pytest.raises(
        LevelError,
        match=r"false positive rates cannot be compared: .* without the favourable",
    ):
        equalised_odds(
            frame.assign(hired="yes"), "hired", "said", "sex", favourable="yes"
        )
