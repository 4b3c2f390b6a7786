"""What a fit changes unasked, and what it does not: outcome shares, group sizes,
missing values, weights.
"""

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent.errors import InfeasibleError, InputError, LevelError, TargetError


def people(rows=600, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows, p=[0.3, 0.7])
    race = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    hired = np.where(rng.random(rows) < np.where(sex == "M", 0.5, 0.2), "yes", "no")
    frame = pd.DataFrame(
        {"sex": sex, "race": race, "skill": rng.integers(0, 5, rows), "hired": hired}
    )
    if missing:
        frame.loc[rng.random(rows) < missing, "sex"] = None
    return frame


def share(frame, column, value, weights):
    return float(np.average(frame[column].to_numpy() == value, weights=weights))


@pytest.mark.parametrize(
    ("protected", "representation"),
    [(["sex"], None), (["race"], 0.8), (["sex", "race"], 1.0)],
)
def test_the_outcome_keeps_its_share(protected, representation):
    frame = people()
    fit = fairmaxent.debias(
        frame, "hired", protected, representation_rate=representation
    )
    weights = fit.weights()
    assert share(frame, "hired", "yes", weights) == pytest.approx(
        (frame["hired"] == "yes").mean(), abs=1e-10
    )
    for shift in fit.certificate.outcome_shares:
        assert shift.after == pytest.approx(shift.before, abs=1e-10)


def test_a_free_outcome_is_closer_to_the_data_and_rarer():
    frame = people()
    kept = fairmaxent.debias(frame, "hired", "sex")
    free = fairmaxent.debias(frame, "hired", "sex", target={"hired": "free"})
    assert (
        free.certificate.outcome_shares[1].after
        < kept.certificate.outcome_shares[1].after - 0.01
    )
    data = (
        kept.roles.blocks.shape(0),
        kept.table.tables([(0,)], kept.roles.blocks.levels)[0],
    )
    empirical = data[1].reshape(data[0]) / data[1].sum()

    def divergence(fit):
        table = fit.certificate.table
        return float((table * np.log(table / empirical)).sum())

    assert divergence(free) < divergence(kept)
    assert free.certificate.achieved["statistical_rate"]["sex"] == pytest.approx(
        1.0, abs=1e-9
    )


def test_only_the_outcome_can_be_free():
    with pytest.raises(TargetError, match="only an outcome can be 'free'"):
        fairmaxent.debias(people(), "hired", "sex", target={"sex": "free"})


def test_missing_groups_keep_their_rows_as_they_are():
    frame = people(missing=0.02)
    fit = fairmaxent.debias(frame, "hired", "sex", representation_rate=1.0)
    weights = fit.weights()
    unknown = frame["sex"].isna().to_numpy()
    np.testing.assert_allclose(weights[unknown], 1.0, rtol=1e-9)
    assert share(frame, "sex", "F", weights) == pytest.approx(
        share(frame, "sex", "M", weights), abs=1e-10
    )
    assert fit.certificate.achieved["representation_rate"]["sex"] == pytest.approx(
        1.0, abs=1e-9
    )
    assert fit.certificate.kept_missing[0].column == "sex"
    assert fit.certificate.kept_missing[0].share == pytest.approx(unknown.mean())
    assert "keep their share and are not compared" in " ".join(fit.certificate.warnings)


def test_rows_without_an_outcome_keep_their_weight():
    frame = people()
    frame.loc[::15, "hired"] = None
    fit = fairmaxent.debias(frame, "hired", ["sex", "race"])
    weights = fit.weights()
    known = frame["hired"].notna().to_numpy()
    for sex in "FM":
        members = (frame["sex"] == sex).to_numpy() & known
        rate = (
            weights[members & (frame["hired"] == "yes")].sum() / weights[members].sum()
        )
        assert rate == pytest.approx((frame["hired"][known] == "yes").mean(), abs=1e-9)
    assert weights[~known].mean() == pytest.approx(1.0, abs=1e-9)


def test_a_column_with_one_level_and_missing_values_needs_them_compared():
    frame = people()
    frame["sex"] = frame["sex"].where(frame["sex"] == "F")
    with pytest.raises(
        LevelError, match=r"single level besides missing values.*compare_missing=True"
    ):
        fairmaxent.debias(frame, "hired", "sex")
    fairmaxent.debias(frame, "hired", "sex", compare_missing=True)


def test_no_row_counts_more_than_the_limit_and_the_shortfall_is_certified():
    frame = people()
    frame.loc[3:, "race"] = np.where(frame["race"][3:] == "c", "a", frame["race"][3:])
    frame.loc[:2, "race"] = "c"
    frame.loc[:2, "hired"] = ["yes", "no", "no"]
    full = fairmaxent.debias(frame, "hired", "race", representation_rate=1.0)
    limited = fairmaxent.debias(
        frame, "hired", "race", representation_rate=1.0, largest_weight=5
    )
    assert full.weights().max() > 50
    assert limited.weights().max() == pytest.approx(5.0, abs=1e-9)
    assert limited.certificate.achieved["representation_rate"]["race"] < 0.2
    assert share(frame, "hired", "yes", limited.weights()) == pytest.approx(
        (frame["hired"] == "yes").mean(), abs=1e-9
    )
    assert "no row may count more than 5 times" in " ".join(
        limited.certificate.warnings
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "asked",
    [
        {"weight": "w"},
        {"within": "s", "outcome": ["hired", "t"]},
        {"compare_missing": True, "representation_rate": 1.0},
    ],
)
def test_forbidden_rows_count_in_the_limit_and_strata_keep_their_sizes(asked):
    frame, rng = (
        people(missing=0.05 * ("compare_missing" in asked)),
        np.random.default_rng(1),
    )
    frame = frame.assign(
        s=rng.choice(["s", "t"], 600),
        t=rng.choice(["s", "t"], 600),
        w=rng.lognormal(0, 0.5, 600),
    )
    design = frame["w"] / frame["w"].mean() if "weight" in asked else np.ones(600)
    asked = {
        "outcome": "hired",
        "forbid": [{"race": "a", "skill": 0}, {"race": "a", "skill": 1, "sex": "M"}],
        **asked,
    }
    fit = fairmaxent.debias(
        frame, protected=["sex", "race"], largest_weight=1.6, base_share=0, **asked
    )
    weights = fit.weights().reshape(600, -1).sum(axis=1)
    assert weights.mean() == pytest.approx(1)
    assert (weights / design).max() == pytest.approx(1.6)
    if "within" in asked:
        np.testing.assert_allclose(
            np.bincount(frame["s"] == "s", weights), np.bincount(frame["s"] == "s")
        )
    with pytest.raises(
        InfeasibleError,
        match=r"largest_weight=1.2 is too low: .* have to count 1.\d+ times",
    ):
        fairmaxent.debias(
            frame, protected=["sex", "race"], largest_weight=1.2, base_share=0, **asked
        )


@pytest.mark.parametrize(
    "asked",
    [{"largest_weight": bad} for bad in (1, "5", float("inf"))]
    + [{"target": {"skill": None}}],
)
def test_a_limit_that_makes_no_sense_or_meets_a_target_of_another_column_is_refused(
    asked,
):
    with pytest.raises(
        InputError,
        match=(
            r"^largest_weight .*must"
            r"|^target\['skill'\] cannot go together with largest_weight"
        ),
    ):
        fairmaxent.debias(people(), "hired", "sex", **{"largest_weight": 5, **asked})


def with_gaps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"z": rng.choice(["p", "q", "r"], 600), "x": rng.choice(["a", "b"], 600)}
    )
    frame["y"] = np.where(
        rng.random(600) < np.where(frame.z == "p", 0.3, 0.6), "yes", "no"
    ).astype(object)
    frame.loc[rng.random(600) < 0.1, "y"] = None
    frame.loc[rng.random(600) < 0.05, "z"] = None
    return frame


def shares_of(column, weights):
    return {
        str(level): weights[part].sum() / weights.sum()
        for level, part in column.groupby(column).groups.items()
    }


def test_missing_outcomes_keep_their_share_beside_forbidden_rows():
    frame = with_gaps()
    fit = fairmaxent.debias(
        frame, "y", "z", forbid=[{"x": "a", "z": "p"}], estimate=None
    )
    weights, outcome, groups = fit.weights(), frame.y.fillna("missing"), frame.z
    assert weights[((frame.x == "a") & (frame.z == "p")).to_numpy()].max() == 0
    assert shares_of(outcome, weights) == pytest.approx(
        outcome.value_counts(normalize=True).to_dict()
    )
    known = (frame.y.notna() & groups.notna()).to_numpy()
    sums = (
        pd.Series(weights)[known]
        .groupby([groups[known], frame.y[known]])
        .sum()
        .unstack()
    )
    assert np.ptp((sums["yes"] / sums.sum(axis=1)).to_numpy()) < 1e-8


@pytest.mark.parametrize(
    "wanted", [{"yes": 0.5, "no": 0.5}, {"yes": 0.5, "no": 0.3, None: 0.2}]
)
def test_a_target_of_the_outcome_also_sets_the_share_of_missing_ones(wanted):
    frame = with_gaps()
    fit = fairmaxent.debias(frame, "y", "z", target={"y": wanted}, estimate=None)
    shares = shares_of(frame.y.fillna("missing"), fit.weights())
    assert shares == pytest.approx(
        {"yes": wanted["yes"], "no": wanted["no"], "missing": wanted.get(None, 0.0)}
    )
    assert fit.certificate.achieved["statistical_rate"]["z"] == pytest.approx(1)
