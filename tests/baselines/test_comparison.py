"""fairmaxent.compare, and the verdict: against the rule applied to every method by
hand.
"""

import importlib
import itertools
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import fairmaxent
from clifiles import biased_table
from fairmaxent import baselines
from fairmaxent.baselines import cross_validation, models
from fairmaxent.baselines.comparison import choose_method, surely_higher
from fairmaxent.baselines.cross_validation import Scores, TriedMethod, methods
from fairmaxent.fit.request import Request

# relabelling takes long
FEW = ("fairmaxent, rows", "fairmaxent, weights", "raw", "Kamiran-Calders")
FOLDS, PARTS = 3, 10


def tried(rng=None, unsure=0.001, sizes=0.5, **numbers):
    """Methods by accuracy and the rate of their decisions, and how unsure both are."""
    rng = rng or np.random.default_rng(0)
    results = []
    for name, (accuracy, rate) in numbers.items():
        interval = (rate - 2 * unsure, min(1.0, rate + 2 * unsure))
        scores = Scores(sizes, 0.5, accuracy, rate, interval, 0.1)
        without = np.array([rate, accuracy])[:, None, None] + rng.normal(
            0, unsure / np.sqrt(FOLDS * PARTS), (2, FOLDS, PARTS)
        )
        results.append(TriedMethod(name, scores, None, without))
    return results


def asked(**options):
    return Request("y", "z", **options)


def test_of_those_that_reach_the_rate_the_most_accurate_is_chosen():
    results = tried(a=(0.80, 0.97), b=(0.82, 0.90), c=(0.85, 0.80), raw=(0.86, 0.40))
    assert choose_method(results, asked(statistical_rate=0.8)).methods == ("c",)
    assert choose_method(results, asked(statistical_rate=0.85)).methods == ("b",)
    chosen = choose_method(results, asked(statistical_rate=1.0))
    assert chosen.methods == ("a",)
    assert (
        str(chosen) == "No method reaches the statistical rate 1.00. Choose 'a': the"
        " decisions of a model trained on it have the statistical rate 0.97; the raw"
        " data: 0.40. It costs 6.0 points of accuracy (0.800 instead of 0.860)."
    )


def test_what_cannot_be_told_apart_is_named_whatever_its_place():
    numbers = {
        "massaging": (0.804, 0.99),
        "a": (0.800, 0.98),
        "B": (0.803, 1.0),
        "raw": (0.9, 0.4),
    }
    for names in itertools.permutations(numbers):
        results = tried(unsure=0.02, **{name: numbers[name] for name in names})
        chosen = choose_method(results, asked())
        assert chosen.methods == ("a", "B", "massaging")
        assert str(chosen) == (
            "These cannot be told apart: 'a', 'B', 'massaging'. The decisions of models"
            " trained on them have the statistical rate 0.98 to 1.00; the raw data:"
            " 0.40."
        )
    surer = tried(unsure=0.0001, **numbers)
    assert choose_method(surer, asked()).methods == ("B",)


def test_the_raw_data_are_a_method_too():
    numbers = {"a": (0.9, 0.60), "b": (0.7, 0.55), "raw": (0.8, 0.65)}
    chosen = choose_method(tried(**numbers), asked())
    assert chosen.methods == ("raw",)
    assert str(chosen) == (
        "No method reaches the statistical rate 1.00. Choose 'raw': the decisions of a"
        " model trained on it have the statistical rate 0.65."
    )
    enough = tried(a=(0.7, 0.99), raw=(0.8, 0.85))
    assert choose_method(enough, asked(statistical_rate=0.8)).methods == ("raw",)
    unsure = tried(unsure=0.1, **numbers)
    assert choose_method(unsure, asked()).methods == ("a", "b", "raw")


def test_group_sizes_that_were_asked_for_must_be_there():
    results = [
        *tried(sizes=0.50, a=(0.9, 1.0)),
        *tried(sizes=1.00, b=(0.8, 0.95)),
        *tried(sizes=0.50, raw=(0.9, 1.0)),
    ]
    assert choose_method(results, asked(representation_rate=1.0)).methods == ("b",)
    assert choose_method(results, asked()).methods == ("a", "raw")


def test_nothing_to_choose_by():
    assert "asked for no statistical rate" in str(
        choose_method(tried(a=(0.9, 1.0)), asked(statistical_rate=None))
    )
    without_models = [TriedMethod("a", Scores(0.5, 1.0, None, None, None, 0.1), None)]
    chosen = choose_method(without_models, asked())
    assert chosen.methods == ()
    assert "No method gave a result" in str(chosen)
    # it gave the outcome to nobody
    nobody = [TriedMethod("a", Scores(1.0, 1.0, 0.9, None, None, 0.1), None)]
    both = [*nobody, *tried(raw=(0.9, 0.5))]
    assert choose_method(both, asked()).methods == ("raw",)


def deciding(rng, methods, *, people, models, differ=0.2):
    """How often equally good methods are right, and without each part of the people.

    They differ about some people, and each has another model in each fold.
    """
    place = rng.permutation(people) % (FOLDS * PARTS)
    chance = rng.beta(8, 2, people)
    numbers, without = [], []
    for _ in range(methods):
        shift = rng.normal(0, models, FOLDS)[place % FOLDS]
        own = rng.random(people) < chance + shift
        right = np.where(rng.random(people) < differ, own, chance > 0.5)
        numbers.append(right.mean())
        parts = [right[place != part].mean() for part in range(FOLDS * PARTS)]
        without.append(np.reshape(parts, (PARTS, FOLDS)).T)
    return np.array(numbers), np.array(without)


@pytest.mark.parametrize("models", [0.0, 0.02])
def test_of_simulated_ties_none_is_favoured(models):
    """In 40 trials chance may tell methods apart in 5 %: of 40, in at most six."""
    rng = np.random.default_rng(7)
    apart, better = 0, np.zeros(8, dtype=int)
    for _ in range(40):
        numbers, without = deciding(rng, 8, people=1000, models=models)
        higher = surely_higher(numbers, without, 0.05)
        apart += higher.any()
        better += higher.any(axis=1)
    assert apart <= stats.binom.ppf(0.99, 40, 0.05)
    assert (better <= stats.binom.ppf(0.99, 40, 0.05)).all()


def test_real_differences_are_seen():
    rng = np.random.default_rng(3)
    found = 0
    gain = np.array([0.06, 0.0, 0.0])  # the first is right more often by that
    for _ in range(40):
        numbers, without = deciding(rng, 3, people=1000, models=0.0)
        higher = surely_higher(numbers + gain, without + gain[:, None, None], 0.05)
        found += bool(higher[0, 1:].all())
        assert not higher[1:, 0].any()
    assert found >= 36


def test_the_deviation_is_that_of_the_difference():
    """Against the spread of differences over many tables of other people."""
    rng = np.random.default_rng(11)
    gaps, deviations = [], []
    for _ in range(400):
        numbers, without = deciding(rng, 2, people=600, models=0.0)
        gaps.append(numbers[0] - numbers[1])
        apart = without[0] - without[1]
        count = apart.size
        squares = ((apart - apart.mean()) ** 2).sum()
        deviations.append(np.sqrt(squares * (1 - 1 / count)))
    assert np.median(deviations) == pytest.approx(np.std(gaps), rel=0.1)


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


@pytest.mark.more
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


def good_level(domain):
    return domain.attribute("income").labels.index(">50K")


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
    assert found.decided == (decided == good_level(domain)).mean()
    assert f"  {found.decided:.0%}  {found.predicted_rate:.3f}  " in str(one)
    assert found.accuracy == pytest.approx((decided == codes[:, outcome]).mean())
    good = good_level(domain)
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


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options",
    [
        {"favourable": ">50K"},
        {"favourable": ">50K", "groups": "joint"},
        {"favourable": ">50K", "within": "job"},
        {},
    ],
)
def test_numbers_without_a_part_are_those_of_the_other_people(monkeypatch, options):
    """The rate is counted in two ways; here it is the metric of the same decisions."""
    decisions = {}
    judged = cross_validation.CrossValidation._judged

    def noted(self, name, folds):
        decided = np.full(len(self.frame), -1)
        for fold in folds:
            decided[fold.tested] = fold.decided
        decisions[name] = (self._part_of_row, self.domain, decided)
        return judged(self, name, folds)

    monkeypatch.setattr(cross_validation.CrossValidation, "_judged", noted)
    only(monkeypatch, "raw")
    frame = biased_table().drop("age", "weight")
    protected = ["sex", "race"] if options.get("groups") else "sex"
    (found,) = fairmaxent.compare(
        frame, "income", protected, folds=2, **options
    ).results
    part_of_row, domain, decided = decisions["raw"]
    outcome = domain.attribute("income")
    recorded = domain.encode(frame)[:, domain.index("income")]
    for part in (0, 7, 19):
        others = part_of_row != part
        rate, accuracy = found.without[:, part % 2, part // 2]
        assert accuracy == (decided == recorded)[others].mean()
        expected = fairmaxent.metrics.statistical_rate(
            frame.filter(others),
            outcome.column_of(decided[others]).alias("decided").to_native(),
            protected,
            smallest_group=0,
            **options,
        )
        assert rate == pytest.approx(float(expected))


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


@pytest.mark.more
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
@pytest.mark.more
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_methods_of_fairlearn_are_fairlearns(monkeypatch):
    """By hand: the same trees, each about the fold that it did not learn from."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    only(monkeypatch, *models.TRAINED)
    monkeypatch.setattr(importlib, "import_module", without("oxonfair"))
    frame = biased_table().drop("age", "weight")
    *found, oxonfair = fairmaxent.compare(
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
        assert result.scores.decided == pytest.approx(own.mean())
    assert "pip install oxonfair" in str(oxonfair.refused)


def without(*libraries):
    """Imports, as they are where these libraries are not installed."""
    found = importlib.import_module

    def import_module(name):
        if name.startswith(libraries):
            raise ImportError(name)
        return found(name)

    return import_module


class OneGroup:
    """Stands in for a thresholder of groups: it decides for the first group alone."""

    def __init__(self, predictor, people):
        assert predictor.predict_proba(people["data"]).shape == (40, 2)
        assert len(people["target"]) == len(people["groups"]) == 40

    def fit(self, objective, constraint, value):
        assert (objective, constraint, value) == ("accuracy", "parity", 0.01)

    def predict(self, people):
        assert not people["target"].any()
        return people["groups"] == 0


def test_a_third_of_the_people_is_held_out_for_oxonfair(monkeypatch):
    metrics = SimpleNamespace(accuracy="accuracy", demographic_parity="parity")
    library = SimpleNamespace(FairPredictor=OneGroup, group_metrics=metrics)
    monkeypatch.setitem(sys.modules, "oxonfair", library)
    frame = biased_table()
    (result,) = compared_by_oxonfair(monkeypatch, frame)
    assert result.scores.decided == (frame["sex"] == "Female").mean()
    assert result.scores.predicted_rate == 0


def test_oxonfair_is_oxonfairs(monkeypatch):
    """By hand: the same trees, each about the fold that it did not learn from."""
    oxonfair = pytest.importorskip("oxonfair")
    from sklearn.tree import DecisionTreeClassifier

    frame = biased_table().drop("age", "weight")
    (result,) = compared_by_oxonfair(monkeypatch, frame)
    domain = fairmaxent.Domain.infer(frame)
    codes = domain.encode(frame)
    outcome = domain.index("income")
    seen = np.delete(codes, outcome, axis=1)
    good = codes[:, outcome] == 1
    sex = codes[:, domain.index("sex")].astype(int)
    fold = np.random.default_rng(0).permutation(len(frame)) % 2
    decided = np.empty(len(frame), dtype=bool)
    for left_out in (0, 1):
        train = np.flatnonzero(fold != left_out)
        test = fold == left_out
        order = train[np.random.default_rng(left_out).permutation(len(train))]
        held, learned = np.split(order, [len(order) // 3])
        tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
        tree.fit(seen[learned], good[learned])
        people = oxonfair.DataDict(good[held], seen[held], sex[held])
        fair = oxonfair.FairPredictor(tree, people)
        metrics = oxonfair.group_metrics
        fair.fit(metrics.accuracy, metrics.demographic_parity, 0.01)
        others = oxonfair.DataDict(good[test], seen[test], sex[test])
        decided[test] = fair.predict(others)
    assert result.scores.accuracy == (decided == good).mean()
    assert result.scores.decided == decided.mean()


def compared_by_oxonfair(monkeypatch, frame):
    only(monkeypatch, "OxonFair")
    frame = frame.drop("age", "weight", strict=False)
    return fairmaxent.compare(
        frame, "income", "sex", favourable=">50K", folds=2
    ).results


@pytest.mark.more
def test_what_a_method_cannot_learn_from_or_where_it_is_not_installed_is_said(
    monkeypatch,
):
    only(monkeypatch, *models.TRAINED, "massaging")
    frame = biased_table().drop("age", "weight")
    three = frame.with_columns(income=pl.Series(np.resize(["a", "b", "c"], len(frame))))
    *_, remover, _, massaging = fairmaxent.compare(
        three, "income", "sex", folds=2
    ).results
    assert remover.scores is not None  # which does not ask for two outcomes
    assert "two levels, and here there are 3" in str(massaging.refused)
    absent = without("fairlearn", "oxonfair", "sklearn")
    monkeypatch.setattr(importlib, "import_module", absent)
    for result in fairmaxent.compare(frame, "income", "sex", folds=2).results:
        assert "pip install" in str(result.refused)


@pytest.mark.more
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
