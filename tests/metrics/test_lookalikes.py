"""Values that are easily taken for another: the text "missing" for a missing value, and True for 1."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairmaxent

GROUPS = ["a"] * 10 + ["b"] * 10 + ["missing"] * 10 + [None] * 5
OUTCOMES = ["no", "yes"] * 10 + ["no"] * 9 + ["yes"] * 6


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_group_called_missing_is_compared(library):
    frame = library({"y": OUTCOMES, "z": GROUPS})
    rate = fairmaxent.metrics.statistical_rate(frame, "y", "z", favourable="yes")
    assert float(rate) == pytest.approx(0.2)  # 1 of 10 against 5 of 10
    assert [group.group for group in rate.groups] == [("a",), ("b",), ("missing",)]
    assert [group.group for group in rate.left_out] == [("missing",)]  # those without a value
    fit = fairmaxent.debias(frame, "y", "z", favourable="yes", statistical_rate=None, random_state=0)
    assert fit.certificate.before["statistical_rate"]["z"] == pytest.approx(0.2)
    assert float(fairmaxent.metrics.statistical_rate(fit, "y", "z", favourable="yes")) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("favourable", "expected"),
    [
        (None, 1 / 11 / (9 / 19)),  # each text is compared, and "missing" differs most
        ("missing", 1 / 11 / (9 / 19)),
        (math.nan, 0.0),  # 5 of 16 against none
    ],
)
def test_an_outcome_called_missing_is_not_the_missing_one(favourable, expected):
    frame = pd.DataFrame({"y": GROUPS, "z": OUTCOMES})
    rate = fairmaxent.metrics.statistical_rate(frame, "y", "z", favourable=favourable)
    assert float(rate) == pytest.approx(expected)


def test_a_stratum_called_missing_counts():
    frame = pd.DataFrame({"y": OUTCOMES, "z": ["p", "q", "q", "p", "p"] * 7, "s": GROUPS})
    rate = fairmaxent.metrics.statistical_rate(frame, "y", "z", favourable="yes", within="s")
    strata = {dict(group.stratum)["s"] for group in rate.groups}
    assert strata == {"a", "b", "missing"}
    by_hand = (frame["y"] == "yes").groupby([frame["s"], frame["z"]]).mean().unstack()
    assert float(rate) == pytest.approx((by_hand.min(axis=1) / by_hand.max(axis=1)).min())


def test_missing_numbers_of_a_fit_are_missing_in_bins():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.choice(["no", "yes"], 400), "z": rng.normal(size=400).round(3)})
    frame.loc[::5, "z"] = np.nan
    fit = fairmaxent.debias(frame, "y", "z", favourable="yes", keep_columns=["z"], random_state=0)
    for rate in (
        fairmaxent.metrics.representation_rate(fit, "z"),
        fairmaxent.metrics.representation_rate(frame, "z", domain=fit.domain),
    ):
        assert float(rate) == pytest.approx(fit.certificate.before["representation_rate"]["z"])
        assert [group.group for group in rate.left_out] == [("missing",)]


@pytest.mark.parametrize(("favourable", "expected"), [(1, 1.0), (True, 0.5)])
def test_true_is_not_one_where_a_column_has_both(favourable, expected):
    outcomes = pd.Series([1, True, True, 1, True, 0] * 10, dtype=object)
    frame = pd.DataFrame({"y": outcomes, "z": ["a", "a", "a", "b", "b", "b"] * 10})
    assert float(fairmaxent.metrics.statistical_rate(frame, "y", "z", favourable=favourable)) == expected
    fit = fairmaxent.debias(frame, "y", "z", favourable=favourable, estimate=None, random_state=0)
    assert fit.certificate.before["statistical_rate"]["z"] == pytest.approx(expected)
