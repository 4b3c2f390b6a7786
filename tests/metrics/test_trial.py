"""Scores on people not seen, against the scorecard; their ranges, against new people."""

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


def dealt(rng, people, folds=3):
    return rng.permutation(np.arange(people) % folds)


def random_people(seed, *, people=400, outcomes=2, groups=3, rounds=1, favourable=(1,), weighted=True):
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, outcomes, people), rng.integers(0, groups, people)
    runs = [Run(dealt(rng, people), rng.dirichlet(np.ones(outcomes), people)) for _ in range(rounds)]
    weights = rng.uniform(0.5, 2.0, people) if weighted else np.ones(people)
    groupings = {"each": np.arange(groups), "pooled": np.minimum(np.arange(groups), 1)}
    return Trial(truth, group, weights, runs, favourable, groupings)


def values(held_out):
    return {
        (quantity, name): found.value
        for quantity, by_name in held_out.expected(replicates=20).items()
        for name, found in by_name.items()
    }


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize(("outcomes", "favourable"), [(2, (1,)), (2, (0, 1)), (4, (1, 3))])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_scorecard(seed, outcomes, favourable):
    held = random_people(seed, outcomes=outcomes, favourable=favourable)
    found = values(held)
    for name, group_of in held.groupings.items():
        chances, group = held.runs[0].chances, group_of[held.group]
        wanted = judge(held.truth, chances, group, held.weights, favourable=favourable)
        assert found["accuracy", OVERALL] == pytest.approx(wanted.accuracy, abs=1e-12)
        assert found["auc", OVERALL] == pytest.approx(wanted.auc, abs=1e-12)
        assert found["by_predictions", name] == pytest.approx(wanted.rate_by_predictions, abs=1e-12)
        assert found["by_probabilities", name] == pytest.approx(wanted.rate_by_probabilities, abs=1e-12)
        assert found["equal_opportunity", name] == pytest.approx(wanted.equal_opportunity, abs=1e-12)
        assert found["equalised_odds", name] == pytest.approx(wanted.equalised_odds, abs=1e-12)
        assert found["calibration_gap", name] == pytest.approx(wanted.calibration_gap, abs=1e-12)


def test_rounds_are_pooled_and_not_averaged_score_by_score():
    held = random_people(4, rounds=2)
    decided = np.mean([run.chances[:, 1] > 0.5 for run in held.runs], axis=0)
    means = [np.average(decided[held.group == g], weights=held.weights[held.group == g]) for g in range(3)]
    assert values(held)["by_predictions", "each"] == pytest.approx(min(means) / max(means), abs=1e-12)


def test_a_group_that_is_left_out_is_not_compared():
    held = random_people(5)
    without = Trial(held.truth, held.group, held.weights, held.runs, (1,), {"two": np.array([0, 1, -1])})
    some = held.group < 2
    runs = [Run(run.fold[some], run.chances[some]) for run in held.runs]
    alone = Trial(held.truth[some], held.group[some], held.weights[some], runs, (1,), {"two": np.arange(2)})
    for quantity in ("by_predictions", "equalised_odds", "calibration_gap"):
        assert values(without)[quantity, "two"] == pytest.approx(values(alone)[quantity, "two"], abs=1e-12)
    assert values(without)["accuracy", OVERALL] != pytest.approx(values(alone)["accuracy", OVERALL], abs=1e-3)


def test_where_nothing_can_be_compared_there_is_no_range():
    held = random_people(6)
    held = Trial(np.zeros_like(held.truth), held.group, held.weights, held.runs, (1,), {"each": np.arange(3)})
    found = held.expected(replicates=20)
    for quantity, name in (("auc", OVERALL), ("equal_opportunity", "each"), ("equalised_odds", "each")):
        assert np.isnan([found[quantity][name].value, found[quantity][name].low, found[quantity][name].high]).all()
    assert not np.isnan(found["by_predictions"]["each"].low)


def test_the_auc_of_a_sample_is_a_function_of_sums_to_first_order():
    rng = np.random.default_rng(7)
    people = 2000
    truth = rng.integers(0, 2, people)
    chance = np.round(1 / (1 + np.exp(-rng.normal(truth, 1.5))), 2)  # with ties
    run = Run(dealt(rng, people), np.column_stack([1 - chance, chance]))
    held = Trial(truth, np.zeros(people, dtype=int), np.ones(people), [run], (1,), {"all": np.zeros(1, dtype=int)})
    assert values(held)["auc", OVERALL] == pytest.approx(roc_auc_score(truth, chance), abs=1e-12)
    times = rng.poisson(1.0, (50, people))
    linear = held.scores(held._total(held._mean_features, times.astype(float)))["auc"][OVERALL]
    exact = [roc_auc_score(truth, chance, sample_weight=row) for row in times]
    assert np.abs(linear - exact).max() < 2e-3
    assert np.corrcoef(linear, exact)[0, 1] > 0.995


# ---------------------------------------------------------------- ranges


def test_replicates_vary_with_the_people_of_the_table_and_of_one_fold():
    """Of a share p of n people: p(1 − p)·(1/n + folds/n)."""
    rng = np.random.default_rng(8)
    people, folds = 1500, 3
    chance = (rng.random(people) < 0.3) * 0.5 + 0.25
    run = Run(dealt(rng, people, folds), np.column_stack([1 - chance, chance]))
    held = Trial(
        np.zeros(people, dtype=int),
        np.zeros(people, dtype=int),
        np.ones(people),
        [run],
        (1,),
        {"all": np.zeros(1, int)},
    )
    drawn = held.scores(held.replicates(3000))["decided"][OVERALL]
    share = (chance > 0.5).mean()
    assert drawn.mean() == pytest.approx(share, abs=0.003)
    assert drawn.var() == pytest.approx(share * (1 - share) * (1 + folds) / people, rel=0.1)


def simulated(rng, people, odds, offset):
    """Two groups of 30 % and 70 %, an outcome that x tells, and a model whose groups' thresholds are off by some."""
    group = (rng.random(people) < 0.7).astype(int)
    truth = (rng.random(people) < np.array(odds)[group]).astype(int)
    x = rng.normal(size=people) + 1.5 * truth
    chance = 1 / (1 + np.exp(-(1.2 * x - 1.3 + offset[group])))
    return truth, group, np.column_stack([1 - chance, chance])


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_ranges_hold_what_is_measured_on_new_people(spread):
    """New people, as many as a fold, and a new model: the score is in the range 95 times in 100."""
    rng = np.random.default_rng(9)
    people, folds, odds = 600, 3, (0.5, 0.6)
    inside = []
    for _ in range(100):
        truth, group, _ = simulated(rng, people, odds, np.zeros(2))
        state = rng.integers(1 << 30)
        fold, chances = dealt(rng, people), np.empty((people, 2))
        for number in range(folds):
            offset = spread * rng.normal(size=2)
            again = np.random.default_rng(state)
            truth, group, all_chances = simulated(again, people, odds, offset)
            chances[fold == number] = all_chances[fold == number]
        held = Trial(truth, group, np.ones(people), [Run(fold, chances)], (1,), {"z": np.arange(2)})
        expected = held.expected(replicates=200)
        new = simulated(rng, people // folds, odds, spread * rng.normal(size=2))
        measured = judge(new[0], new[2], new[1])
        wanted = {
            "accuracy": (OVERALL, measured.accuracy),
            "auc": (OVERALL, measured.auc),
            "by_predictions": ("z", measured.rate_by_predictions),
            "by_probabilities": ("z", measured.rate_by_probabilities),
            "equal_opportunity": ("z", measured.equal_opportunity),
            "calibration_gap": ("z", measured.calibration_gap),
        }
        inside.append([expected[q][n].low <= value <= expected[q][n].high for q, (n, value) in wanted.items()])
    coverage = np.mean(inside, axis=0)
    assert coverage.min() >= 0.88  # three standard errors of 100 runs below 0.95
    assert coverage.mean() >= 0.92


def test_models_that_differ_widen_the_ranges():
    rng = np.random.default_rng(10)
    people = 3000
    truth, group, chances = simulated(rng, people, (0.5, 0.6), np.zeros(2))
    fold = dealt(rng, people)
    other = simulated(np.random.default_rng(10), people, (0.5, 0.6), np.array([1.0, -1.0]))[2]
    mixed = np.where((fold == 0)[:, None], other, chances)
    widths = []
    for predicted in (chances, mixed):
        held = Trial(truth, group, np.ones(people), [Run(fold, predicted)], (1,), {"z": np.arange(2)})
        found = held.expected()["by_predictions"]["z"]
        assert found.low <= found.value <= found.high
        widths.append(found.high - found.low)
    assert widths[1] > 1.5 * widths[0]


# ---------------------------------------------------------------- the judgement that trials are compared with

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
