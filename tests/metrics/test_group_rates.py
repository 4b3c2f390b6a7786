"""Public metrics: values against the definitions, errors by name."""

import math
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairmaxent
from fairmaxent import metrics
from fairmaxent.errors import LevelError

# In tables of a few rows every group counts; in most tests, missing values are a group
# of their own.
EVERY = {"smallest_group": 0}
representation_rate = partial(
    metrics.representation_rate, compare_missing=True, **EVERY
)
statistical_rate = partial(metrics.statistical_rate, compare_missing=True, **EVERY)
COLUMNS = {
    "sex": ["F", "F", "M", "M", "M", "M", None, None],
    "age": ["old", "new", "old", "old", "new", "new", "old", "new"],
    "hired": ["no", "yes", "yes", "yes", "yes", "no", "yes", "no"],
    "weight": [1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
}
LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])


class Fitted:
    """Stands for a fitted distribution: its marginals are those of a frame's rows."""

    def __init__(self, frame):
        self.frame = frame

    def marginal(self, columns):
        shares = self.frame.group_by(list(columns), maintain_order=True).len()
        return shares.with_columns(probability=pl.col("len") / len(self.frame)).drop(
            "len"
        )


@LIBRARIES
def test_missing_groups_and_outcomes_are_not_compared_by_default(library):
    """As a fit leaves them alone, its rates and those of its rows are about the same
    groups.
    """
    columns = COLUMNS | {"hired": ["no", "yes", "yes", None, "yes", "no", "yes", "no"]}
    frame = library(columns)
    shares = metrics.representation_rate(frame, "sex")
    assert [(group.group, group.count) for group in shares.groups] == [
        (("F",), 2),
        (("M",), 4),
    ]
    assert shares.value == pytest.approx(2 / 4)
    assert [group.group for group in shares.left_out] == [("missing",)]
    hired = metrics.statistical_rate(frame, "hired", "sex", favourable="yes", **EVERY)
    assert [group.rate for group in hired.groups] == [
        pytest.approx(1 / 2),
        pytest.approx(2 / 3),
    ]
    every = metrics.statistical_rate(frame, "hired", "sex", **EVERY)
    assert {group.outcome for group in every.groups} == {"no", "yes"}
    missing = metrics.statistical_rate(
        frame, "hired", "sex", favourable=[None], **EVERY
    )
    assert [group.rate for group in missing.groups] == [0.0, pytest.approx(1 / 4)]


@LIBRARIES
def test_rates_count_missing_as_a_group_and_name_the_worst_pair(library):
    rate = representation_rate(library(COLUMNS), "sex")
    assert float(rate) == rate.value == pytest.approx(2 / 4)
    assert rate.worst.columns == ("sex",)
    assert rate.worst.highest == ("M",)
    assert [(group.group, group.count) for group in rate.groups] == [
        (("F",), 2),
        (("M",), 4),
        (("missing",), 2),
    ]
    assert all(
        low < group.rate < high
        for group in rate.groups
        for low, high in [group.interval]
    )
    rate = statistical_rate(library(COLUMNS), "hired", ["age", "sex"], favourable="yes")
    assert rate.value == pytest.approx((2 / 4) / (3 / 4))
    assert (rate.worst.columns, rate.worst.lowest, rate.worst.highest) == (
        ("age",),
        ("new",),
        ("old",),
    )
    assert {group.columns for group in rate.groups} == {("age",), ("sex",)}
    assert str(rate).startswith("0.667 (between ")
    assert str(rate).endswith(": age, new against old for outcome yes")


@pytest.mark.more
def test_means_of_probabilities_vary_less_than_labels_and_are_widened_in_small_groups():
    rng = np.random.default_rng(8)
    hits = {20: 0, 400: 0}
    for rows in hits:
        frame = pl.DataFrame({"g": ["a"] * rows + ["b"] * rows})
        for _ in range(20):
            chance = np.append(rng.beta(2, 3, rows), rng.beta(3, 3, rows))
            rate = statistical_rate(frame, chance, "g", as_probability=True)
            hits[rows] += rate.interval[0] <= 0.8 <= rate.interval[1]
            labels = statistical_rate(frame, chance > 0.5, "g", favourable=True)
            assert np.ptp(rate.groups[0].interval) < np.ptp(labels.groups[0].interval)
    assert min(hits.values()) >= 17


def test_every_outcome_counts_unless_one_is_named_and_the_widest_difference_too():
    frame = pl.DataFrame(COLUMNS)
    rate = statistical_rate(frame, "hired", "age")
    assert rate.worst.outcome == "no"
    assert rate.value == pytest.approx((1 / 4) / (2 / 4))
    assert (
        statistical_rate(frame, "hired", "age", favourable=["no", "yes"]).value
        == rate.value
    )
    assert statistical_rate(
        frame, "hired", "sex", favourable="yes"
    ).difference == pytest.approx(3 / 4 - 1 / 2)
    assert statistical_rate(frame, "hired", ["sex", "age"]).difference == pytest.approx(
        3 / 4 - 1 / 2
    )
    assert representation_rate(frame, "sex").difference == pytest.approx(4 / 8 - 2 / 8)


def test_a_group_of_weight_zero_takes_no_part_and_is_named():
    frame = pd.DataFrame(COLUMNS).assign(weight=[0.0, 0.0, 1, 1, 1, 1, 1, 1])
    rate = statistical_rate(frame, "hired", "sex", favourable="yes", weight="weight")
    assert [group.group for group in rate.groups] == [("M",), ("missing",)]
    assert [(group.group, group.count, group.interval) for group in rate.left_out] == [
        (("F",), 2, None)
    ]
    assert str(rate).endswith("; not compared: F")
    assert statistical_rate(frame, "hired", "sex").left_out == ()
    assert representation_rate(frame, "sex", weight="weight").value == pytest.approx(
        0.5
    )


@pytest.mark.some(4)
@LIBRARIES
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_predictions_stand_for_the_outcome_column(library, kind):
    frame = library(COLUMNS)
    predicted = statistical_rate(frame, kind(COLUMNS["hired"]), "age", favourable="yes")
    assert predicted == statistical_rate(frame, "hired", "age", favourable="yes")


def test_probabilities_are_compared_by_their_means():
    chance = np.array([0.2, 0.4, 0.5, 0.7, 0.9, 0.5, 0.1, 0.3])
    rate = statistical_rate(pl.DataFrame(COLUMNS), chance, "sex", as_probability=True)
    assert rate.value == pytest.approx(0.2 / 0.65)
    assert (rate.worst.lowest, rate.worst.highest) == (("missing",), ("M",))
    labels = statistical_rate(
        pl.DataFrame(COLUMNS), (chance > 0.3).astype(float), "sex", as_probability=True
    )
    counted = statistical_rate(
        pl.DataFrame(COLUMNS), chance > 0.3, "sex", favourable=True
    )
    assert labels.value == counted.value
    assert labels.groups[1].interval == pytest.approx(counted.groups[1].interval)


def test_a_distribution_has_exact_rates():
    frame = pl.DataFrame(COLUMNS)
    fitted = Fitted(frame)
    for exact, sampled in [
        (representation_rate(fitted, "sex"), representation_rate(frame, "sex")),
        (
            statistical_rate(fitted, "hired", ["sex", "age"]),
            statistical_rate(frame, "hired", ["sex", "age"]),
        ),
    ]:
        assert exact.value == pytest.approx(sampled.value)
        assert exact.worst == sampled.worst
        assert exact.interval is None
        assert all(
            group.count is None and group.interval is None for group in exact.groups
        )
        assert "between" not in str(exact)


def test_a_rate_behaves_like_a_number_and_its_level_may_be_named_by_its_text():
    rate = statistical_rate(people(), "hired", "sex", favourable="yes")
    value = float(rate)
    assert round(rate, 2) == round(value, 2)
    assert f"{rate:.3f}" == f"{value:.3f}"
    assert f"{rate}" == str(rate)
    assert rate < value + 0.1
    assert rate > value - 0.1
    assert rate <= value <= rate
    assert rate >= value
    assert float(
        statistical_rate(people(), "code", "sex", favourable="1")
    ) == pytest.approx(0.5)


def people() -> pd.DataFrame:
    columns = {"sex": ["f"] * 40 + ["m"] * 60, "age": [20 + i % 50 for i in range(100)]}
    columns["hired"] = (["yes"] + ["no"] * 3) * 10 + ["yes", "no"] * 30
    return pd.DataFrame(columns | {"code": [1, 0, 0, 0] * 10 + [1, 0] * 30})


def test_levels_of_a_domain_are_compared_instead_of_single_numbers():
    frame = people()
    domain = fairmaxent.Domain.infer(frame, bins={"age": [0, 40, 100]})
    rate = representation_rate(frame, "age", domain=domain)
    young = (frame["age"] < 40).mean()
    assert float(rate) == pytest.approx(min(young, 1 - young) / max(young, 1 - young))
    fit = fairmaxent.debias(frame, "hired", "age", domain=domain, base_share=0.5)
    drawn = fit.sample(1000, random_state=0)
    assert float(
        statistical_rate(drawn, "hired", "age", domain=fit.domain)
    ) == pytest.approx(1, abs=1e-2)
    assert float(statistical_rate(fit, "hired", "age")) == pytest.approx(1, abs=1e-8)


def test_columns_that_no_row_has_both_of_are_refused():
    frame = pl.DataFrame(
        {
            "hired": ["no", "yes", None],
            "sex": [None, None, "F"],
            "team": ["a", "a", "b"],
        }
    )
    with pytest.raises(
        LevelError, match="no row has both an outcome and a group of 'sex'"
    ):
        metrics.statistical_rate(frame, "hired", "sex", **EVERY)
    with pytest.raises(LevelError, match="no stratum has rows of more than one group"):
        metrics.statistical_rate(frame, "hired", "sex", within="team", **EVERY)
    with pytest.raises(LevelError, match="no row has a group of 'sex'"):
        metrics.representation_rate(frame[:2], "sex")


GROUPS = ["a"] * 10 + ["b"] * 10 + ["missing"] * 10 + [None] * 5
OUTCOMES = ["no", "yes"] * 10 + ["no"] * 9 + ["yes"] * 6


@LIBRARIES
def test_a_group_called_missing_is_compared(library):
    frame = library({"y": OUTCOMES, "z": GROUPS})
    rate = metrics.statistical_rate(frame, "y", "z", favourable="yes", **EVERY)
    assert float(rate) == pytest.approx(0.2)  # 1 of 10 against 5 of 10
    assert [group.group for group in rate.groups] == [("a",), ("b",), ("missing",)]
    # those without a value
    assert [group.group for group in rate.left_out] == [("missing",)]
    fit = fairmaxent.debias(
        frame, "y", "z", favourable="yes", statistical_rate=None, random_state=0
    )
    assert fit.certificate.before["statistical_rate"]["z"] == pytest.approx(0.2)
    assert float(
        metrics.statistical_rate(fit, "y", "z", favourable="yes")
    ) == pytest.approx(0.2)


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
    rate = metrics.statistical_rate(frame, "y", "z", favourable=favourable, **EVERY)
    assert float(rate) == pytest.approx(expected)


def test_a_stratum_called_missing_counts():
    frame = pd.DataFrame(
        {"y": OUTCOMES, "z": ["p", "q", "q", "p", "p"] * 7, "s": GROUPS}
    )
    rate = metrics.statistical_rate(
        frame, "y", "z", favourable="yes", within="s", **EVERY
    )
    strata = {dict(group.stratum)["s"] for group in rate.groups}
    assert strata == {"a", "b", "missing"}
    by_hand = (frame["y"] == "yes").groupby([frame["s"], frame["z"]]).mean().unstack()
    assert float(rate) == pytest.approx(
        (by_hand.min(axis=1) / by_hand.max(axis=1)).min()
    )


def test_missing_numbers_of_a_fit_are_missing_in_bins():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"y": rng.choice(["no", "yes"], 400), "z": rng.normal(size=400).round(3)}
    )
    frame.loc[::5, "z"] = np.nan
    fit = fairmaxent.debias(
        frame, "y", "z", favourable="yes", keep_columns=["z"], random_state=0
    )
    for rate in (
        metrics.representation_rate(fit, "z"),
        metrics.representation_rate(frame, "z", domain=fit.domain),
    ):
        assert float(rate) == pytest.approx(
            fit.certificate.before["representation_rate"]["z"]
        )
        assert [group.group for group in rate.left_out] == [("missing",)]


@pytest.mark.parametrize(("favourable", "expected"), [(1, 1.0), (True, 0.5)])
def test_true_is_not_one_where_a_column_has_both(favourable, expected):
    outcomes = pd.Series([1, True, True, 1, True, 0] * 10, dtype=object)
    frame = pd.DataFrame({"y": outcomes, "z": ["a", "a", "a", "b", "b", "b"] * 10})
    assert (
        float(metrics.statistical_rate(frame, "y", "z", favourable=favourable, **EVERY))
        == expected
    )
    fit = fairmaxent.debias(
        frame, "y", "z", favourable=favourable, estimate=None, random_state=0
    )
    assert fit.certificate.before["statistical_rate"]["z"] == pytest.approx(expected)
