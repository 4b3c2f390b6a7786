"""fairmaxent.compare, and the verdict: against the rule applied to every method by
hand.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairmaxent
from clifiles import biased_table
from fairmaxent import baselines
from fairmaxent.baselines import cross_validation, models
from fairmaxent.baselines.comparison import choose_method
from fairmaxent.baselines.cross_validation import Scores, TriedMethod, methods
from fairmaxent.fit.request import Request
from tables import times

SAME, SAME_ACCURACY = 0.02, 0.005
# relabelling takes long
FEW = ("fairmaxent, rows", "fairmaxent, weights", "raw", "Kamiran-Calders")


def compared(**rates):
    """Methods by (accuracy, rate of the decisions)."""
    return [
        TriedMethod(name, Scores(0.5, 0.5, *pair, None, 0.1), None)
        for name, pair in rates.items()
    ]


def asked(**options):
    return Request("y", "z", **options)


def test_of_those_that_reach_the_rate_the_most_accurate_is_chosen():
    results = compared(a=(0.80, 0.97), b=(0.82, 0.90), c=(0.85, 0.80), raw=(0.86, 0.40))
    assert choose_method(results, asked(statistical_rate=0.8)).method == "c"
    assert choose_method(results, asked(statistical_rate=0.85)).method == "b"
    chosen = choose_method(results, asked(statistical_rate=1.0))
    assert (chosen.method, chosen.is_reached) == ("a", False)
    assert (
        str(chosen)
        == "No method reaches the statistical rate 1.00. The closest is 'a': the"
        " decisions of a model trained on it have the statistical rate 0.97; the raw"
        " data: 0.40. It costs 6.0 points of accuracy (0.800 instead of 0.860)."
    )


def test_of_equals_the_first_is_chosen():
    assert (
        choose_method(
            compared(a=(0.800, 0.99), b=(0.803, 1.0), raw=(0.86, 0.40)), asked()
        ).method
        == "a"
    )
    assert (
        choose_method(
            compared(a=(0.800, 0.99), b=(0.810, 1.0), raw=(0.86, 0.40)), asked()
        ).method
        == "b"
    )


def test_no_method_beats_the_raw_data_or_they_are_good_enough():
    chosen = choose_method(
        compared(a=(0.9, 0.60), b=(0.7, 0.55), raw=(0.8, 0.65)), asked()
    )
    assert chosen.method is None
    assert str(chosen).startswith(
        "No method beats the raw data: the decisions of a model trained on them have"
        " the "
    )
    assert "0.65; the best method has 0.60" in str(chosen)
    enough = choose_method(
        compared(a=(0.9, 0.99), raw=(0.8, 0.85)), asked(statistical_rate=0.8)
    )
    assert enough.method is None
    assert str(enough).startswith("The raw data are good enough")


def test_group_sizes_that_were_asked_for_must_be_there():
    results = [
        TriedMethod("a", Scores(0.50, 1.0, 0.9, 1.0, None, 0.1), None),
        TriedMethod("b", Scores(1.00, 1.0, 0.8, 0.95, None, 0.1), None),
        TriedMethod("raw", Scores(0.50, 0.9, 0.9, 1.0, None, 0.1), None),
    ]
    assert choose_method(results, asked(representation_rate=1.0)).method == "b"
    assert choose_method(results, asked()).method is None


def test_without_models_the_data_are_compared():
    results = [
        TriedMethod("a", Scores(0.5, 1.0, None, None, None, 0.1), None),
        TriedMethod("raw", Scores(0.5, 0.4, None, None, None, 0.1), None),
    ]
    chosen = choose_method(results, asked())
    assert chosen.method == "a"
    assert (
        str(chosen)
        == "Choose 'a': the outcomes in it have the statistical rate 1.00; the raw"
        " data: 0.40."
    )


def test_nothing_to_choose_by():
    assert "asked for no statistical rate" in str(
        choose_method(compared(a=(0.9, 1.0)), asked(statistical_rate=None))
    )
    assert "No method gave a result" in str(
        choose_method(compared(raw=(0.9, 1.0)), asked())
    )
    nobody = [
        TriedMethod("a", Scores(1.0, 1.0, 0.9, None, None, 0.1), None),
        *compared(raw=(0.9, 0.5)),
    ]
    assert choose_method(nobody, asked()).method is None


@pytest.mark.parametrize("seed", range(times(300)))
def test_the_rule_holds_for_any_numbers(seed):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "raw"]
    numbers = {name: (rng.uniform(0.5, 1), rng.uniform(0.3, 1)) for name in names}
    wanted = rng.choice([0.5, 0.8, 1.0])
    chosen = choose_method(compared(**numbers), asked(statistical_rate=wanted))
    raw_rate = numbers.pop("raw")[1]
    best = max(rate for _, rate in numbers.values())
    if chosen.method is None:
        close = [
            name
            for name, (_, rate) in numbers.items()
            if rate >= min(best, wanted) - SAME
        ]
        likeliest = next(
            n
            for n in close
            if numbers[n][0] >= max(numbers[n][0] for n in close) - SAME_ACCURACY
        )
        assert raw_rate >= wanted - SAME or numbers[likeliest][1] <= raw_rate + SAME / 2
    else:
        accuracy, rate = numbers[chosen.method]
        assert raw_rate < wanted - SAME
        assert rate > raw_rate + SAME / 2
        assert rate >= min(best, wanted) - SAME
        line = min(best, wanted) - SAME
        assert all(
            other <= accuracy + SAME_ACCURACY
            for other, reached in numbers.values()
            if reached >= line
        )
        assert chosen.is_reached == (rate >= wanted - SAME)


@pytest.fixture(scope="module")
def results():
    few = {name: method for name, method in methods().items() if name in FEW}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validation, "methods", lambda _: few)
        frame, stages = biased_table().drop("age", "weight"), []
        options = {
            "favourable": ">50K",
            "folds": 2,
            "progress": lambda stage, share: stages.append(stage),
        }
        tables = (frame, frame.to_pandas(), frame.to_arrow())
        return [
            fairmaxent.compare(table, "income", "sex", **options) for table in tables
        ], stages


def test_every_library_gets_the_same_scores_in_a_frame_of_its_own(results):
    tables = [comparison.to_frame() for comparison in results[0]]
    assert [type(table) for table in tables] == [pl.DataFrame, pd.DataFrame, pa.Table]
    polars, pandas, arrow = (
        pl.DataFrame(table).drop("seconds", "refused") for table in tables
    )
    assert polars.equals(pandas.select(polars.columns), null_equal=True)
    assert polars.equals(arrow.select(polars.columns), null_equal=True)
    assert polars["method"].to_list() == list(FEW)
    assert polars.filter(pl.col("method") == "fairmaxent, weights")["statistical_rate"][
        0
    ] == pytest.approx(1, abs=1e-6)


def test_the_text_has_the_verdict_first_in_80_columns(results):
    (one, *_), _ = results
    assert " ".join(str(one).split("\n\n")[0].split()) == str(one.verdict)
    assert repr(one) == str(one)
    assert all(len(line) <= 80 for line in str(one).splitlines())
    assert "rate of income = >50K" in " ".join(str(one).split())


@pytest.mark.parametrize("method", ["raw", "Kamiran-Calders"])
def test_decisions_are_those_about_everybody(results, method):
    """By hand: each row is decided about by a tree that did not learn from its fold."""
    from sklearn.tree import DecisionTreeClassifier

    (one, *_), _ = results
    frame = biased_table().drop("age", "weight")
    domain = fairmaxent.Domain.infer(frame)
    codes = domain.encode(frame)
    outcome = domain.index("income")
    fold = np.random.default_rng(0).permutation(len(frame)) % 2
    seen, decided = np.delete(codes, outcome, axis=1), np.empty(len(frame), dtype=int)
    for left_out in (0, 1):
        train = fold != left_out
        weigh = {"raw": baselines.raw, "Kamiran-Calders": baselines.kamiran_calders}[
            method
        ]
        weights = weigh(frame.filter(train), "income", "sex", domain=domain).weights()
        tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
        decided[~train] = tree.fit(seen[train], codes[train, outcome], weights).predict(
            seen[~train]
        )
    found = next(result.scores for result in one.results if result.method == method)
    assert found.accuracy == pytest.approx((decided == codes[:, outcome]).mean())
    good = domain.attribute("income").labels.index(">50K")
    women = frame["sex"].to_numpy() == "Female"
    rates = sorted((decided[who] == good).mean() for who in (women, ~women))
    assert found.predicted_rate == pytest.approx(rates[0] / rates[1])
    low, high = found.predicted_interval
    assert 0 <= low < found.predicted_rate < high <= 1
    assert f"{low:.2f}–{high:.2f}" in str(one)
    share = max(frame["income"].value_counts()["count"]) / len(frame)
    assert f"everybody would be right in {100 * share:.1f}%" in " ".join(
        str(one).split()
    )


def test_progress_names_the_methods(results):
    assert results[1] == [*FEW] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds is 1; give a whole number from 2 to 100"),
        ({"folds": 150}, "folds is 150"),
        ({"folds": 100}, "40 rows are too few for 100 folds"),
        ({"classifier": "forest"}, "classifier is 'forest'"),
        ({"weight": "weight"}, "do not support design weights"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, message):
    with pytest.raises(fairmaxent.InputError, match=message):
        fairmaxent.compare(biased_table()[:40], "income", "sex", **options)


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match=r"compare\(\) has no option 'statistic_rate'"):
        fairmaxent.compare(biased_table(), "income", "sex", statistic_rate=1.0)


def test_identifiers_are_left_out_for_all_methods(monkeypatch):
    only(monkeypatch, *FEW)
    frame, options = (
        biased_table().drop("age", "weight"),
        {
            "favourable": ">50K",
            "folds": 2,
        },
    )
    numbers = pl.Series([f"P-{number:05d}" for number in range(len(frame))])
    with_numbers = fairmaxent.compare(
        frame.with_columns(number=numbers), "income", "sex", **options
    )
    without = fairmaxent.compare(frame, "income", "sex", **options)
    for one, other in zip(with_numbers.results, without.results, strict=True):
        assert (one.refused is None) == (other.refused is None), one.refused
        if one.scores is not None:
            assert one.scores.accuracy == other.scores.accuracy
            assert one.scores.statistical_rate == other.scores.statistical_rate


def only(monkeypatch, *names):
    monkeypatch.setattr(
        cross_validation, "methods", lambda _: {name: methods()[name] for name in names}
    )


# of fairlearn's calls of pandas
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_methods_of_fairlearn_are_fairlearns(monkeypatch):
    """By hand: the same trees, each about the fold that it did not learn from."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    only(monkeypatch, *models.FAIRLEARN)
    frame = biased_table().drop("age", "weight")
    found = fairmaxent.compare(
        frame, "income", "sex", favourable=">50K", folds=2
    ).results
    domain = fairmaxent.Domain.infer(frame)
    codes = domain.encode(frame)
    seen, good = (
        np.delete(codes, domain.index("income"), axis=1),
        codes[:, domain.index("income")] == 1,
    )
    sex, fold = (
        codes[:, domain.index("sex")],
        np.random.default_rng(0).permutation(len(frame)) % 2,
    )
    decided = np.empty((3, len(frame)), dtype=bool)
    for left_out in (0, 1):
        train, test = fold != left_out, fold == left_out
        tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
        how, known = {"random_state": left_out}, {"sensitive_features": sex[train]}
        constrained = ExponentiatedGradient(tree, DemographicParity()).fit(
            seen[train], good[train], **known
        )
        decided[0, test] = constrained.predict(seen[test], **how)
        cut = ThresholdOptimizer(estimator=tree, predict_method="predict_proba").fit(
            seen[train], good[train], **known
        )
        decided[1, test] = cut.predict(seen[test], sensitive_features=sex[test], **how)
        others = OneHotEncoder(sparse_output=False).fit_transform(seen[:, 1:])
        both = np.column_stack([np.eye(2)[sex], others])
        remover = CorrelationRemover(sensitive_feature_ids=[0, 1]).fit(both[train])
        learned = tree.fit(remover.transform(both[train]), good[train])
        decided[2, test] = learned.predict(remover.transform(both[test]))
    assert (domain.names[0], domain.names[-1]) == ("sex", "income")
    for result, own in zip(found, decided, strict=True):
        assert result.scores.accuracy == pytest.approx((own == good).mean()), (
            result.method
        )
        shares = sorted(own[sex == group].mean() for group in (0, 1))
        assert result.scores.predicted_rate == pytest.approx(shares[0] / shares[1])


def test_what_a_method_cannot_learn_from_or_where_it_is_not_installed_is_said(
    monkeypatch,
):
    only(monkeypatch, *models.FAIRLEARN, "massaging")
    frame = biased_table().drop("age", "weight")
    three = frame.with_columns(income=pl.Series(np.resize(["a", "b", "c"], len(frame))))
    *_, remover, massaging = fairmaxent.compare(three, "income", "sex", folds=2).results
    assert remover.scores is not None  # which does not ask for two outcomes
    assert "two levels, and here there are 3" in str(massaging.refused)
    monkeypatch.setattr(models.frames, "has_library", lambda name: False)
    for result in fairmaxent.compare(frame, "income", "sex", folds=2).results:
        assert "pip install" in str(result.refused)


def test_the_truth_is_measured_against_and_never_seen(monkeypatch):
    only(monkeypatch, "fairmaxent, weights", "raw")
    frame, options = (
        biased_table().drop("age", "weight"),
        {
            "favourable": ">50K",
            "folds": 2,
        },
    )
    without = fairmaxent.compare(frame, "income", "sex", **options)
    told = frame["income"].to_list()  # a model that sees it would always be right
    known = frame.with_columns(truth=pl.Series([None] * 100 + told[100:]))
    found = fairmaxent.compare(known, "income", "sex", truth="truth", **options)
    for one, other in zip(found.results, without.results, strict=True):
        assert replace(one.scores, true_accuracy=None, seconds=0) == replace(
            other.scores, seconds=0
        )
    turned = frame.with_columns(
        truth=pl.Series([">50K" if value == "<=50K" else "<=50K" for value in told])
    )
    found = fairmaxent.compare(turned, "income", "sex", truth="truth", **options)
    for result in found.results:
        assert result.scores.true_accuracy == pytest.approx(1 - result.scores.accuracy)
    assert found.verdict.by_truth
    for truth, message in {
        "sex": "has another role already",
        "job": "no level",
        "none": "no column 'none'",
    }.items():
        with pytest.raises(fairmaxent.FairMaxEntError, match=message):
            fairmaxent.compare(frame, "income", "sex", truth=truth, **options)
