"""Scores on people not seen, against other libraries; their ranges, against new
people.
"""

import numpy as np
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from fairmaxent.errors import InputError
from fairmaxent.metrics.trial import OVERALL, Run, Trial, _placements
from tables import times


def dealt(rng, people, folds=3):
    return rng.permutation(np.arange(people) % folds)


def random_people(
    seed, *, people=400, outcomes=2, groups=3, rounds=1, favourable=(1,), threshold=0.5
):
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, outcomes, people), rng.integers(0, groups, people)
    runs = [
        Run(dealt(rng, people), rng.dirichlet(np.ones(outcomes), people))
        for _ in range(rounds)
    ]
    weights = rng.uniform(0.5, 2.0, people)
    groupings = {"each": np.arange(groups), "pooled": np.minimum(np.arange(groups), 1)}
    return Trial(truth, group, weights, runs, favourable, groupings, threshold)


def values(held_out):
    return {
        (quantity, name): found.value
        for quantity, by_name in held_out.expected(replicates=20).items()
        for name, found in by_name.items()
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("outcomes", "favourable", "threshold"),
    [(2, (1,), 0.5), (2, (1,), 0.3), (2, (0, 1), 0.5), (4, (1, 3), 0.5)],
)
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_fairlearn_and_scikit_learn(
    seed, outcomes, favourable, threshold
):
    """Each favourable outcome against all others, of which the worst counts; with
    weights.
    """
    held = random_people(
        seed, outcomes=outcomes, favourable=favourable, threshold=threshold
    )
    found, chances, weights = values(held), held.runs[0].chances, held.weights
    predicted = (
        chances.argmax(axis=1)
        if threshold == 0.5
        else (chances[:, 1] > threshold).astype(int)
    )
    assert found["accuracy", OVERALL] == pytest.approx(
        accuracy_score(held.truth, predicted, sample_weight=weights)
    )
    areas = [
        roc_auc_score(held.truth == y, chances[:, y], sample_weight=weights)
        for y in favourable
    ]
    assert found["auc", OVERALL] == pytest.approx(np.mean(areas), abs=1e-12)
    for name, group_of in held.groupings.items():
        group = group_of[held.group]
        shared = {"sensitive_features": group, "sample_weight": weights}
        for quantity, theirs in (
            ("by_predictions", fairlearn.demographic_parity_ratio),
            ("equal_opportunity", fairlearn.equal_opportunity_ratio),
            ("equalised_odds", fairlearn.equalized_odds_ratio),
        ):
            ratios = [
                theirs(held.truth == y, predicted == y, **shared) for y in favourable
            ]
            assert found[quantity, name] == pytest.approx(min(ratios), abs=1e-12)
        by_group = [
            (weights * (group == g) / weights[group == g].sum())
            for g in np.unique(group)
        ]
        expected = np.array(
            [[share @ chances[:, y] for share in by_group] for y in favourable]
        )
        surplus = (
            np.array(
                [[share @ (held.truth == y) for share in by_group] for y in favourable]
            )
            - expected
        )
        ratios = expected.min(axis=1) / expected.max(axis=1)
        assert found["by_probabilities", name] == pytest.approx(ratios.min(), abs=1e-12)
        assert found["calibration_gap", name] == pytest.approx(
            np.ptp(surplus, axis=1).max(), abs=1e-12
        )


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=times(200), deadline=None)
def test_the_area_is_the_share_of_pairs_in_order(rows):
    positive, score, weight = (np.array(part) for part in zip(*rows, strict=True))
    better = total = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weight[i] * weight[j]
            better += pair * (
                1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0
            )
            total += pair
    nobody, chance = np.zeros(len(rows), dtype=np.intp), score.astype(float)
    runs = [Run(nobody, np.column_stack([1 - chance, chance]))]
    trial = Trial(
        positive.astype(np.intp),
        nobody,
        weight.astype(float),
        runs,
        (1,),
        {"": nobody[:1]},
    )
    area = trial.scores(trial.sums())["auc"][OVERALL][0]
    assert np.isnan(area) if total == 0 else area == pytest.approx(better / total)


def test_positives_and_negatives_have_the_same_mean_placement_which_is_the_area():
    positive = np.array([True, False, True, False, True, False])
    score = np.array([0.5, 0.5, 0.9, 0.1, 0.5, 0.9])  # with ties, which count half
    weights = np.array([1.0, 2.0, 1.0, 3.0, 2.0, 1.0])
    won, lost = _placements(positive, score, weights)
    area = roc_auc_score(positive, score, sample_weight=weights)
    assert np.average(won[positive], weights=weights[positive]) == pytest.approx(area)
    negative = ~positive
    assert np.average(lost[negative], weights=weights[negative]) == pytest.approx(area)


def test_a_threshold_needs_two_outcomes_of_which_one_is_favourable():
    for outcomes, favourable in ((3, (1,)), (2, (0, 1))):
        with pytest.raises(
            InputError,
            match=f"threshold decides between two .* there are {outcomes} outcomes",
        ):
            values(
                random_people(
                    6, outcomes=outcomes, favourable=favourable, threshold=0.3
                )
            )


def test_rounds_are_pooled_and_not_averaged_score_by_score():
    held = random_people(4, rounds=2)
    decided = np.mean([run.chances[:, 1] > 0.5 for run in held.runs], axis=0)
    means = [
        np.average(decided[held.group == g], weights=held.weights[held.group == g])
        for g in range(3)
    ]
    assert values(held)["by_predictions", "each"] == pytest.approx(
        min(means) / max(means), abs=1e-12
    )


def test_a_group_that_is_left_out_is_not_compared():
    held = random_people(5)
    without = Trial(
        held.truth,
        held.group,
        held.weights,
        held.runs,
        (1,),
        {"two": np.array([0, 1, -1])},
    )
    some = held.group < 2
    runs = [Run(run.fold[some], run.chances[some]) for run in held.runs]
    alone = Trial(
        held.truth[some],
        held.group[some],
        held.weights[some],
        runs,
        (1,),
        {"two": np.arange(2)},
    )
    for quantity in ("by_predictions", "equalised_odds", "calibration_gap"):
        assert values(without)[quantity, "two"] == pytest.approx(
            values(alone)[quantity, "two"], abs=1e-12
        )
    assert values(without)["accuracy", OVERALL] != pytest.approx(
        values(alone)["accuracy", OVERALL], abs=1e-3
    )


def test_where_nothing_can_be_compared_there_is_no_range():
    held = random_people(6)
    held = Trial(
        np.zeros_like(held.truth),
        held.group,
        held.weights,
        held.runs,
        (1,),
        {"each": np.arange(3)},
    )
    found = held.expected(replicates=20)
    for quantity, name in (
        ("auc", OVERALL),
        ("equal_opportunity", "each"),
        ("equalised_odds", "each"),
    ):
        assert np.isnan(
            [
                found[quantity][name].value,
                found[quantity][name].low,
                found[quantity][name].high,
            ]
        ).all()
    assert not np.isnan(found["by_predictions"]["each"].low)


def test_the_auc_of_a_sample_is_a_function_of_sums_to_first_order():
    rng = np.random.default_rng(7)
    people = 2000
    truth = rng.integers(0, 2, people)
    chance = np.round(1 / (1 + np.exp(-rng.normal(truth, 1.5))), 2)  # with ties
    run = Run(dealt(rng, people), np.column_stack([1 - chance, chance]))
    held = Trial(
        truth,
        np.zeros(people, dtype=int),
        np.ones(people),
        [run],
        (1,),
        {"all": np.zeros(1, dtype=int)},
    )
    assert values(held)["auc", OVERALL] == pytest.approx(
        roc_auc_score(truth, chance), abs=1e-12
    )
    times = rng.poisson(1.0, (50, people))
    linear = held.scores(held._total(held._mean_features, times.astype(float)))["auc"][
        OVERALL
    ]
    exact = [roc_auc_score(truth, chance, sample_weight=row) for row in times]
    assert np.abs(linear - exact).max() < 2e-3
    assert np.corrcoef(linear, exact)[0, 1] > 0.995


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
    assert drawn.var() == pytest.approx(
        share * (1 - share) * (1 + folds) / people, rel=0.1
    )


def simulated(rng, people, odds, offset):
    """Two groups of 30 % and 70 %, an outcome that x tells, and a model whose groups'
    thresholds are off by some.
    """
    group = (rng.random(people) < 0.7).astype(int)
    truth = (rng.random(people) < np.array(odds)[group]).astype(int)
    x = rng.normal(size=people) + 1.5 * truth
    chance = 1 / (1 + np.exp(-(1.2 * x - 1.3 + offset[group])))
    return truth, group, np.column_stack([1 - chance, chance])


MEASURED = [
    *(
        ("accuracy", OVERALL),
        ("auc", OVERALL),
        ("by_predictions", "z"),
        ("by_probabilities", "z"),
    ),
    *(("equal_opportunity", "z"), ("calibration_gap", "z")),
]


@pytest.mark.more
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_ranges_hold_what_is_measured_on_new_people(spread):
    """New people, as many as a fold, and a new model: the score is in the range 95
    times in 100.
    """
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
        held = Trial(
            truth,
            group,
            np.ones(people),
            [Run(fold, chances)],
            (1,),
            {"z": np.arange(2)},
        )
        expected = held.expected(replicates=200)
        new = simulated(rng, people // folds, odds, spread * rng.normal(size=2))
        nobody, ones = np.zeros(len(new[0]), dtype=np.intp), np.ones(len(new[0]))
        measured = Trial(
            new[0], new[1], ones, [Run(nobody, new[2])], (1,), {"z": np.arange(2)}
        )
        scores = measured.scores(measured.sums())
        inside.append(
            [
                expected[q][n].low <= scores[q][n][0] <= expected[q][n].high
                for q, n in MEASURED
            ]
        )
    coverage = np.mean(inside, axis=0)
    assert coverage.min() >= 0.88  # three standard errors of 100 runs below 0.95
    assert coverage.mean() >= 0.92


def test_models_that_differ_widen_the_ranges():
    rng = np.random.default_rng(10)
    people = 3000
    truth, group, chances = simulated(rng, people, (0.5, 0.6), np.zeros(2))
    fold = dealt(rng, people)
    other = simulated(
        np.random.default_rng(10), people, (0.5, 0.6), np.array([1.0, -1.0])
    )[2]
    mixed = np.where((fold == 0)[:, None], other, chances)
    ones, groups = np.ones(people), {"z": np.arange(2)}
    trials = [
        Trial(truth, group, ones, [Run(fold, predicted)], (1,), groups)
        for predicted in (chances, mixed)
    ]
    alike, apart = (trial.expected()["by_predictions"]["z"] for trial in trials)
    assert all(found.low <= found.value <= found.high for found in (alike, apart))
    assert apart.high - apart.low > 1.5 * (alike.high - alike.low)


def test_models_vary_by_what_folds_differ_beyond_their_people():
    held = random_people(0)
    run = held.runs[0]
    is_right = run.chances.argmax(axis=1) == held.truth
    accuracies = [
        np.average(is_right[run.fold == fold], weights=held.weights[run.fold == fold])
        for fold in range(3)
    ]
    variance = np.var(accuracies, ddof=1)
    drawn = held.scores(held.sums())
    # the variance of these replicates is a quarter of that of the folds
    drawn["accuracy"][OVERALL] = np.sqrt(variance) * np.array([0.0, 1.0])
    found = held._between_models(drawn)["accuracy"][OVERALL]
    # Replicates vary with the people of the table too: 3 / 4 of it is that of a fold.
    assert found == pytest.approx(np.sqrt(variance * (1 - 3 / 4 * 1 / 4)))
