"""The judgement of a model: against scikit-learn, fairlearn, AIF360 and definitions written out row by row."""

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from fairmaxent.errors import InputError
from fairmaxent.metrics.trial import OVERALL, Run, Trial
from judgement import judge, worst_ratio
from tables import times

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


def area_under_curve(positive, score, weights):
    """As trials measure it."""
    nobody = np.zeros(len(score), dtype=np.intp)
    runs = [Run(nobody, np.column_stack([1 - score, score]))]
    trial = Trial(positive.astype(np.intp), nobody, weights, runs, (1,), {"": np.zeros(1, dtype=np.intp)})
    return trial.scores(trial.sums())["auc"][OVERALL][0]


@given(ROWS)
@settings(max_examples=times(200), deadline=None)
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


@given(st.integers(0, 10_000), st.integers(1, 12))
@settings(max_examples=times(50), deadline=None)
def test_a_weight_is_that_many_rows(seed, bins):
    truth, chances, group, _ = scored(seed, rows=60, outcomes=3)
    times = np.random.default_rng(seed).integers(0, 4, 60)
    weighted = judge(truth, chances, group, times.astype(float), favourable=(0, 2), group_count=3, bins=bins)
    again = np.repeat(np.arange(60), times)
    repeated = judge(truth[again], chances[again], group[again], favourable=(0, 2), group_count=3, bins=bins)
    for name in vars(repeated):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12, err_msg=name)
