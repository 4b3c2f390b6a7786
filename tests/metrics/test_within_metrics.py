"""Metrics within strata against a group-by written by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from fairmaxent.metrics import (
    conditional_demographic_disparity,
    equal_opportunity,
    equalised_odds,
    representation_rate,
    statistical_rate,
)

DEPARTMENTS = ("a", "b", "c", "d")


def people(seed, rows=400):
    rng = np.random.default_rng(seed)
    columns = {"department": rng.choice(DEPARTMENTS, rows)}
    columns |= {
        "year": rng.integers(2020, 2022, rows),
        "sex": rng.choice(["f", "m"], rows),
    }
    columns["race"] = rng.choice(["x", "y", "z"], rows, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame(
        columns
        | {
            "hired": rng.choice(["no", "yes"], rows),
            "weight": rng.gamma(2.0, size=rows),
        }
    )
    # d has one group
    return frame[~((frame.department == "d") & (frame.sex == "m"))].reset_index(
        drop=True
    )


def by_hand(frame, columns, within, weights, level="yes"):
    """Rate of the outcome in every group of every stratum, by a plain group-by:
    {stratum: {group: rate}}.
    """
    result = {}
    for stratum, part in frame.groupby(within):
        rates = {}
        for group, rows in part.groupby(columns):
            weight = weights[rows.index]
            rates[group] = weight[rows.hired == level].sum() / weight.sum()
        result[stratum if isinstance(stratum, tuple) else (stratum,)] = rates
    return result


def worst(rates):
    ratios = [
        min(groups.values()) / max(groups.values())
        for groups in rates.values()
        if len(groups) > 1
    ]
    return min(ratios)


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("within", [["department"], ["department", "year"]])
def test_the_statistical_rate_is_that_of_the_worst_stratum(seed, within):
    frame = people(seed)
    rate = statistical_rate(
        frame,
        "hired",
        "sex",
        favourable="yes",
        within=within,
        weight=frame.weight.to_numpy(),
        smallest_group=0,
    )
    expected = by_hand(frame, "sex", within, frame.weight)
    assert rate.value == pytest.approx(worst(expected), abs=1e-12)
    for group in rate.groups:
        stratum = tuple(value for _, value in group.stratum)
        assert group.rate == pytest.approx(expected[stratum][group.group[0]], abs=1e-12)
    assert {group.stratum[0] for group in rate.left_out} == {("department", "d")}
    assert rate.interval[0] <= rate.value <= rate.interval[1]


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(5))
def test_joint_groups_every_level_and_shares(seed):
    frame = people(seed, 2000)
    ones = pd.Series(np.ones(len(frame)))
    both = statistical_rate(
        frame, "hired", ["sex", "race"], groups="joint", within="department"
    )
    expected = min(
        worst(by_hand(frame, ["sex", "race"], ["department"], ones, level=level))
        for level in ("no", "yes")
    )
    assert both.value == pytest.approx(expected, abs=1e-12)
    shares = representation_rate(frame, "sex", within="department")
    counts = frame.groupby(["department", "sex"]).size().unstack()
    ratios = (counts.min(axis=1) / counts.max(axis=1))[["a", "b", "c"]]
    assert shares.value == pytest.approx(ratios.min(), abs=1e-12)
    assert shares.worst.stratum == (("department", ratios.idxmin()),)
    each = statistical_rate(
        frame, "hired", ["sex", "race"], favourable="yes", within="department"
    )
    assert each.value == pytest.approx(
        min(
            worst(by_hand(frame, column, ["department"], ones))
            for column in ("sex", "race")
        ),
        abs=1e-12,
    )


def test_equal_opportunity_of_recorded_decisions_is_a_rate_within_the_label():
    frame = people(3, 1000).assign(
        label=lambda rows: np.where(rows.weight > 1.5, "good", "bad")
    )
    within = statistical_rate(
        frame, "hired", "sex", favourable="yes", within={"label": "good"}
    )
    hired = frame.hired.map({"yes": "good", "no": "bad"})
    predicted = equal_opportunity(frame, "label", hired, "sex", favourable="good")
    assert within.value == pytest.approx(predicted.value, abs=1e-12)
    odds = statistical_rate(frame, "hired", "sex", favourable="yes", within="label")
    both = equalised_odds(frame, "label", hired, "sex", favourable="good")
    assert odds.value == pytest.approx(both.value, abs=1e-12)


def test_probabilities_within_strata():
    frame = people(4)
    chance = np.random.default_rng(0).random(len(frame))
    rate = statistical_rate(
        frame, chance, "sex", as_probability=True, favourable="yes", within="department"
    )
    means = (
        frame.assign(chance=chance)
        .groupby(["department", "sex"])
        .chance.mean()
        .unstack()
    )
    assert rate.value == pytest.approx(
        (means.min(axis=1) / means.max(axis=1))[["a", "b", "c"]].min(), abs=1e-12
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(10))
def test_conditional_demographic_disparity_is_the_weighted_mean_over_strata(seed):
    frame = people(seed)
    asked = {"favourable": "yes", "within": "department", "weight": "weight"}
    result = conditional_demographic_disparity(frame, "hired", "sex", **asked)
    total, mean = frame.weight.sum(), {"f": 0.0, "m": 0.0}
    for _, part in frame.groupby("department"):
        away, taken = part[part.hired == "no"], part[part.hired == "yes"]
        for sex in mean:
            shares = [
                rows.weight[rows.sex == sex].sum() / rows.weight.sum()
                for rows in (away, taken)
            ]
            mean[sex] += part.weight.sum() / total * (shares[0] - shares[1])
    assert {group.group[0]: group.value for group in result.groups} == pytest.approx(
        mean, abs=1e-12
    )
    assert result.value == pytest.approx(max(mean.values()), abs=1e-12)
    assert result.worst.group[0] in str(result)


def test_disparity_without_strata_and_with_strata_where_nobody_is_taken():
    frame = people(1)
    plain = conditional_demographic_disparity(frame, "hired", "sex", favourable="yes")
    away, taken = frame[frame.hired == "no"], frame[frame.hired == "yes"]
    assert plain.value == pytest.approx(
        abs((away.sex == "f").mean() - (taken.sex == "f").mean()), abs=1e-12
    )
    frame.loc[frame.department == "a", "hired"] = "no"
    result = conditional_demographic_disparity(
        frame, "hired", "sex", favourable="yes", within="department"
    )
    assert result.left_out == ((("department", "a"),),)
    assert "department = a" in str(result)
    with pytest.raises(fairmaxent.errors.LevelError, match="nothing to compare"):
        conditional_demographic_disparity(
            frame, "hired", "sex", favourable="yes", within={"department": "a"}
        )


def test_missing_strata_are_compared_only_if_asked_for():
    frame = people(2)
    frame.loc[::7, "department"] = None
    asked = {"favourable": "yes", "within": "department"}
    kept = statistical_rate(frame, "hired", "sex", **asked)
    assert {group.stratum[0][1] for group in (*kept.groups, *kept.left_out)} == set(
        DEPARTMENTS
    )
    compared = statistical_rate(
        pl.from_pandas(frame), "hired", "sex", **asked, compare_missing=True
    )
    assert "missing" in {group.stratum[0][1] for group in compared.groups}


def test_a_fit_is_measured_exactly_within_strata():
    frame = people(5).drop(columns="weight")
    fit = fairmaxent.debias(frame, "hired", "sex", within="department", estimate=None)
    assert statistical_rate(
        fit, "hired", "sex", within="department"
    ).value == pytest.approx(1, abs=1e-9)
    disparity = conditional_demographic_disparity(
        fit, "hired", "sex", favourable="yes", within="department"
    )
    assert disparity.value == pytest.approx(0, abs=1e-9)
