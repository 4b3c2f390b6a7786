"""The judgement of a model: against scikit-learn, fairlearn, AIF360 and definitions written out row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, roc_auc_score

from fairmaxent.errors import InputError
from fairmaxent.metrics.group_calibration import quantile_bins
from fairmaxent.metrics.trial import area_under_curve
from judgement import calibration_errors, judge, worst_ratio

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)


def scored(seed: int, *, rows: int = 400, outcomes: int = 2, groups: int = 3):
    """Outcomes, probabilities with ties, groups of unequal size, and weights."""
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, rows, p=np.arange(1, groups + 1) / (groups * (groups + 1) / 2))
    scores = rng.normal(size=(rows, outcomes)) + 0.4 * np.outer(group, np.arange(outcomes))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = (chances.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    chances = np.round(chances, 2) + 1e-9
    return truth, chances / chances.sum(axis=1, keepdims=True), group, rng.gamma(2.0, size=rows)


# ---------------------------------------------------------------- area under the curve


@given(ROWS)
@settings(max_examples=200, deadline=None)
def test_the_area_is_the_share_of_pairs_in_order(rows):
    positive, score, weight = (np.array(part) for part in zip(*rows, strict=True))
    better = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weight[i] * weight[j]
            better += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
            total += pair
    area = area_under_curve(positive, score.astype(float), weight.astype(float))
    assert np.isnan(area) if total == 0 else area == pytest.approx(better / total)


@pytest.mark.parametrize("digits", [1, 2, 12])
def test_the_area_is_scikit_learns_with_weights_and_ties(digits):
    truth, chances, _, weight = scored(1, rows=3000)
    score = np.round(chances[:, 1], digits)
    assert area_under_curve(truth == 1, score, weight) == pytest.approx(
        roc_auc_score(truth, score, sample_weight=weight), abs=1e-12
    )
    plain = judge(truth, score, np.zeros_like(truth))
    assert plain.auc == pytest.approx(roc_auc_score(truth, score), abs=1e-12)


def test_no_positives_or_no_negatives_have_no_area():
    for truth in (np.zeros(4, dtype=int), np.ones(4, dtype=int)):
        assert np.isnan(judge(truth, np.array([0.1, 0.2, 0.3, 0.9]), np.zeros(4, dtype=int)).auc)


# ---------------------------------------------------------------- two outcomes


@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_two_outcomes_are_judged_as_fairlearn_does(threshold):
    truth, chances, group, weight = scored(2)
    result = judge(truth, chances[:, 1], group, weight, threshold=threshold)
    predicted = (chances[:, 1] > threshold).astype(int)
    shared = {"sensitive_features": group, "sample_weight": weight}
    by_group = fairlearn.MetricFrame(
        metrics={
            "predicted": fairlearn.selection_rate,
            "true_positive": fairlearn.true_positive_rate,
            "false_positive": fairlearn.false_positive_rate,
        },
        y_true=truth,
        y_pred=predicted,
        sensitive_features=group,
        sample_params={name: {"sample_weight": weight} for name in ("predicted", "true_positive", "false_positive")},
    ).by_group
    for name in by_group.columns:
        np.testing.assert_allclose(getattr(result, name)[0], by_group[name].to_numpy(dtype=float))
    for ours, theirs in (
        (result.rate_by_predictions, fairlearn.demographic_parity_ratio),
        (result.equal_opportunity, fairlearn.equal_opportunity_ratio),
        (result.equal_opportunity_difference, fairlearn.equal_opportunity_difference),
        (result.equalised_odds, fairlearn.equalized_odds_ratio),
        (result.equalised_odds_difference, fairlearn.equalized_odds_difference),
    ):
        assert ours == pytest.approx(theirs(truth, predicted, **shared))
    assert result.accuracy == pytest.approx(accuracy_score(truth, predicted, sample_weight=weight))
    means = [np.average(chances[group == g, 1], weights=weight[group == g]) for g in range(3)]
    assert result.rate_by_probabilities == pytest.approx(min(means) / max(means))


def test_two_groups_are_judged_as_aif360_does():
    aif360 = pytest.importorskip("aif360.sklearn.metrics", reason="AIF360 is not installed: make engines")
    truth, chances, group, weight = scored(3, groups=2)
    result = judge(truth, chances[:, 1], group, weight)
    index = pd.Index(group, name="group")
    happened, predicted = pd.Series(truth, index=index), pd.Series(chances[:, 1] > 0.5, index=index).astype(int)
    asked = {"prot_attr": "group", "priv_group": 1, "sample_weight": weight}
    difference = aif360.equal_opportunity_difference(happened, predicted, **asked)
    assert result.equal_opportunity_difference == pytest.approx(abs(difference))
    true, false = (float(np.ptp(rate)) for rate in (result.true_positive, result.false_positive))
    average = aif360.average_odds_error(happened, predicted, **asked)
    assert (true + false) / 2 == pytest.approx(abs(average))


def test_either_of_two_outcomes_may_be_favourable():
    truth, chances, group, weight = scored(4)
    clear = np.abs(chances[:, 0] - 0.5) > 1e-6  # a tie is decided against either outcome, when that one is favourable
    truth, chances, group, weight = (part[clear] for part in (truth, chances, group, weight))
    first, second = (judge(truth, chances, group, weight, favourable=(y,), bins=1) for y in (0, 1))
    np.testing.assert_allclose(first.true_positive, 1 - second.false_positive)
    np.testing.assert_allclose(first.miscalibration, second.miscalibration)
    assert (first.auc, first.accuracy) == pytest.approx((second.auc, second.accuracy))
    vector = judge(truth, chances[:, 1], group, weight)
    np.testing.assert_allclose(vector.expected, second.expected)


def test_what_is_exactly_at_the_threshold_is_not_predicted():
    result = judge(np.array([1, 1, 0]), np.array([0.5, 0.6, 0.5]), np.zeros(3, dtype=int))
    assert result.predicted.tolist() == [[pytest.approx(1 / 3)]]
    assert result.accuracy == pytest.approx(2 / 3)


# ---------------------------------------------------------------- several outcomes


def test_several_outcomes_are_judged_one_against_the_rest():
    truth, chances, group, weight = scored(5, outcomes=4)
    result = judge(truth, chances, group, weight, favourable=(1, 3))
    predicted = chances.argmax(axis=1)
    assert result.accuracy == pytest.approx(accuracy_score(truth, predicted, sample_weight=weight))
    for row, outcome in enumerate((1, 3)):
        area = roc_auc_score(truth == outcome, chances[:, outcome], sample_weight=weight)
        assert result.aucs[row] == pytest.approx(area)
        for g in range(3):
            rows = [i for i in range(len(truth)) if group[i] == g]
            mass = sum(weight[i] for i in rows)
            yes = [i for i in rows if truth[i] == outcome]
            no = [i for i in rows if truth[i] != outcome]
            assert result.observed[row, g] == pytest.approx(sum(weight[i] for i in yes) / mass)
            assert result.expected[row, g] == pytest.approx(sum(weight[i] * chances[i, outcome] for i in rows) / mass)
            for rate, among in (("predicted", rows), ("true_positive", yes), ("false_positive", no)):
                hits = sum(weight[i] for i in among if predicted[i] == outcome)
                assert getattr(result, rate)[row, g] == pytest.approx(hits / sum(weight[i] for i in among))
    assert result.auc == pytest.approx(result.aucs.mean())
    assert result.equal_opportunity == min(worst_ratio(result.true_positive[[row]]) for row in (0, 1))


def test_a_threshold_needs_two_outcomes_of_which_one_is_favourable():
    for outcomes, favourable in ((3, (1,)), (2, (0, 1))):
        truth, chances, group, _ = scored(6, outcomes=outcomes)
        with pytest.raises(InputError, match=f"threshold decides between two .* there are {outcomes} outcomes"):
            judge(truth, chances, group, favourable=favourable, threshold=0.3)


# ---------------------------------------------------------------- calibration


def test_the_bins_are_scikit_learns():
    truth, chances, _, _ = scored(7, rows=1000)
    chance = chances[:, 1] * np.random.default_rng(7).uniform(1 - 1e-6, 1, 1000)  # without ties
    share, mean = calibration_curve(truth, chance, n_bins=10, strategy="quantile")
    bins = quantile_bins(chance, np.ones(1000), 10)
    assert np.bincount(bins).tolist() == [100] * 10
    error = np.average(np.abs(share - mean), weights=np.bincount(bins))
    assert judge(truth, chance, np.zeros_like(truth)).calibration_error == pytest.approx(error)


@pytest.mark.parametrize("digits", [1, 12])
def test_the_calibration_error_is_an_average_over_bins(digits):
    truth, chances, group, weight = scored(8)
    chance = np.round(chances[:, 1], digits)
    bins = quantile_bins(chance, weight, 5)
    errors = calibration_errors(truth == 1, chance, group, weight, bins, 3)
    for g in range(3):
        error = 0.0
        for one in set(bins[group == g]):
            rows = (bins == one) & (group == g)
            gap = np.average(truth[rows] == 1, weights=weight[rows]) - np.average(chance[rows], weights=weight[rows])
            error += abs(gap) * weight[rows].sum()
        assert errors[g] == pytest.approx(error / weight[group == g].sum())


def test_the_calibration_gap_is_the_widest_between_two_groups():
    truth = np.array([1, 1, 0, 0, 1, 0])
    chance = np.array([0.5, 0.5, 0.5, 0.5, 0.2, 0.2])
    group = np.array([0, 0, 1, 1, 2, 2])
    assert judge(truth, chance, group).calibration_gap == pytest.approx((1 - 0.5) - (0 - 0.5))


@given(st.integers(0, 10_000), st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_a_weight_is_that_many_rows(seed, bins):
    truth, chances, group, _ = scored(seed, rows=60, outcomes=3)
    times = np.random.default_rng(seed).integers(0, 4, 60)
    weighted = judge(truth, chances, group, times.astype(float), favourable=(0, 2), group_count=3, bins=bins)
    again = np.repeat(np.arange(60), times)
    repeated = judge(truth[again], chances[again], group[again], favourable=(0, 2), group_count=3, bins=bins)
    for name in vars(repeated):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12, err_msg=name)


# ---------------------------------------------------------------- what cannot be compared


def test_a_group_without_positives_takes_no_part():
    truth = np.array([1, 0, 1, 0, 0, 0])
    chance = np.array([0.9, 0.1, 0.1, 0.1, 0.9, 0.1])
    group = np.array([0, 0, 1, 1, 2, 2])
    result = judge(truth, chance, group)
    np.testing.assert_array_equal(result.true_positive, [[1.0, 0.0, np.nan]])
    assert (result.equal_opportunity, result.equal_opportunity_difference) == (0.0, 1.0)
    two = judge(truth[2:], chance[2:], group[2:] - 1)
    assert np.isnan([two.equal_opportunity, two.equalised_odds, two.equalised_odds_difference]).all()
    assert not np.isnan(two.rate_by_predictions)


def test_groups_without_rows_are_counted_and_take_no_part():
    truth, chances, group, weight = scored(9)
    result, wide = (judge(truth, chances, group, weight, group_count=count) for count in (None, 5))
    assert wide.predicted.shape == (1, 5)
    assert np.isnan(wide.predicted[0, 3:]).all()
    for name in ("rate_by_predictions", "equalised_odds", "calibration_error", "calibration_gap"):
        assert getattr(result, name) == getattr(wide, name)


def test_one_group_is_treated_like_itself():
    result = judge(np.array([0, 1]), np.array([0.2, 0.7]), np.zeros(2, dtype=int))
    assert (result.equal_opportunity, result.equalised_odds, result.calibration_gap) == (1.0, 1.0, 0.0)


def test_small_types_of_codes_are_enough():
    truth, chances, _, weight = scored(10)
    group = np.arange(400) % 60
    result, small = (judge(truth.astype(kind), chances, group.astype(kind), weight) for kind in (np.intp, np.uint8))
    np.testing.assert_array_equal(result.miscalibration, small.miscalibration)
