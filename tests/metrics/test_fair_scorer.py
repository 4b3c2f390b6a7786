"""The scorer: its value by hand, and inside the searches of scikit-learn."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from imblearn.pipeline import make_pipeline
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.preprocessing import OneHotEncoder

from fairmaxent import FairMaxEnt, metrics

# In tables of a few rows every group counts.
fair_scorer = partial(metrics.fair_scorer, smallest_group=0)
COLUMNS = {
    "sex": [*"FFFFMMMM"],
    "race": ["a", "b"] * 4,
    "said": [1, 0, 0, 0, 1, 1, 1, 0],
}
X = pd.DataFrame(COLUMNS, index=range(10, 18))
Y = pd.Series([1, 0, 1, 0, 1, 1, 0, 0], index=X.index)


class Says(ClassifierMixin, BaseEstimator):
    """A model that predicts a column as it is."""

    def __init__(self, column="said", always=None):
        self.column, self.always = column, always

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        if self.always is not None:
            return np.full(len(X), self.always)
        return np.asarray(X["said"] if hasattr(X, "columns") else X[:, 2])


MODEL = Says().fit(X, Y)
# Of the women 1 of 4 is predicted a 1, of the men 3 of 4; 6 of 8 predictions are right.
FAIRNESS, ACCURACY = (1 / 4) / (3 / 4), 6 / 8


def test_the_score_is_the_base_minus_what_is_missing():
    scorer = fair_scorer("sex", favourable=1, rate=0.8)
    assert scorer(MODEL, X, Y) == pytest.approx(ACCURACY - (0.8 - FAIRNESS))
    scorer = fair_scorer("sex", favourable=1, rate=0.8, penalty=3)
    assert scorer(MODEL, X, Y) == pytest.approx(ACCURACY - 3 * (0.8 - FAIRNESS))
    assert fair_scorer("sex", favourable=1, rate=0.3)(MODEL, X, Y) == ACCURACY
    assert fair_scorer("sex", favourable=1, base=None)(MODEL, X, Y) == pytest.approx(
        FAIRNESS
    )


def test_weights_count_in_both_parts():
    weights = np.array([1, 1, 1, 5, 1, 1, 2, 4.0])
    right, predicted = np.array([1, 1, 0, 1, 1, 1, 0, 1]), X["said"].to_numpy()
    women = (X["sex"] == "F").to_numpy()
    rates = [
        np.average(predicted[rows], weights=weights[rows]) for rows in (women, ~women)
    ]
    expected = np.average(right, weights=weights) - (0.8 - min(rates) / max(rates))
    assert fair_scorer("sex", favourable=1)(
        MODEL, X, Y, sample_weight=weights
    ) == pytest.approx(expected)


def test_other_notions_of_fairness():
    # Of the women with a 1, 1 of 2 is predicted it; of the men with a 1, 2 of 2.
    assert fair_scorer("sex", favourable=1, base=None, metric="equal_opportunity")(
        MODEL, X, Y
    ) == pytest.approx(0.5)
    # Of the women with a 0, none is predicted a 1; of the men with a 0, 1 of 2.
    assert (
        fair_scorer("sex", favourable=1, base=None, metric="equalised_odds")(
            MODEL, X, Y
        )
        == 0
    )


@pytest.mark.parametrize("always", [0, 1])
def test_the_same_for_everybody_is_fair(always):
    assert (
        fair_scorer("sex", favourable=1, base=None)(Says(always=always).fit(X, Y), X, Y)
        == 1
    )


@pytest.mark.parametrize(
    ("protected", "people"),
    [
        (0, X.to_numpy()),
        ([0], X.to_numpy()),
        ("sex", pl.from_pandas(X)),
        (0, X),
        (X["sex"], X.drop(columns="sex")),
        (X[["sex"]].iloc[[2, 3, 4, 5, 6, 7, 0, 1]], X.drop(columns="sex")),
    ],
)
def test_where_the_protected_column_may_be(protected, people):
    assert fair_scorer(protected, favourable=1, base=None)(
        MODEL, people, Y
    ) == pytest.approx(FAIRNESS)


def test_sensitive_features_may_come_with_the_call():
    scorer = fair_scorer(favourable=1, base=None)
    for features in (X["sex"], X["sex"].tolist(), X[["sex"]], X["sex"].to_numpy()):
        assert scorer(MODEL, X, Y, sensitive_features=features) == pytest.approx(
            FAIRNESS
        )


@pytest.fixture(scope="module")
def people():
    """A skill decides, and so does being a man."""
    rng = np.random.default_rng(0)
    sex, skill = rng.choice(["F", "M"], 600), rng.choice(["low", "high"], 600)
    outcome = rng.random(600) < 0.1 + 0.4 * (sex == "M") + 0.4 * (skill == "high")
    return pd.DataFrame({"sex": sex, "skill": skill}), pd.Series(outcome.astype(int))


def _pipeline():
    columns = make_column_transformer((OneHotEncoder(), ["sex", "skill"]))
    return make_pipeline(
        FairMaxEnt("sex", favourable=1, random_state=0), columns, LogisticRegression()
    )


@pytest.mark.more
def test_a_search_chooses_the_fair_model(people):
    choices = {"fairmaxent__statistical_rate": [None, 1.0]}
    by_accuracy = GridSearchCV(_pipeline(), choices, cv=3).fit(*people)
    fairly = GridSearchCV(
        _pipeline(), choices, cv=3, scoring=fair_scorer("sex", favourable=1)
    ).fit(*people)
    assert fairly.best_params_ == {"fairmaxent__statistical_rate": 1.0}
    # The scores of the search are those of the models on the people left out, by hand.
    for number, split in enumerate(_splits(people)):
        for candidate, rate in enumerate(choices["fairmaxent__statistical_rate"]):
            model = (
                _pipeline().set_params(fairmaxent__statistical_rate=rate).fit(*split[0])
            )
            frame, outcome = split[1]
            predicted = pd.Series(model.predict(frame), index=frame.index)
            rates = predicted.groupby(frame["sex"]).mean()
            fairness = rates.min() / rates.max() if rates.max() else 1.0
            expected = (predicted == outcome).mean() - max(0, 0.8 - fairness)
            assert fairly.cv_results_[f"split{number}_test_score"][
                candidate
            ] == pytest.approx(expected)
    assert by_accuracy.best_params_ == {"fairmaxent__statistical_rate": None}


def _splits(people):
    frame, outcome = people
    for train, test in StratifiedKFold(3).split(frame, outcome):
        yield (
            (frame.iloc[train], outcome.iloc[train]),
            (
                frame.iloc[test],
                outcome.iloc[test],
            ),
        )


def weighted(people):
    """The people with their skill as a number, their outcomes, and weights."""
    frame, outcome = people
    numbers = pd.DataFrame({"skill": (frame["skill"] == "high").astype(int)})
    return frame, numbers, outcome, np.random.default_rng(1).integers(1, 4, len(frame))


def test_a_search_with_weights_passes_them_to_the_scorer(people):
    frame, numbers, outcome, weights = weighted(people)
    scoring = fair_scorer(frame["sex"], favourable=1)
    search = GridSearchCV(
        LogisticRegression(), {"C": [1.0]}, cv=2, scoring=scoring, error_score="raise"
    )
    search.fit(numbers, outcome, sample_weight=weights)
    assert np.isfinite(search.best_score_)


def test_metadata_routing_brings_features_and_weights(people):
    frame, numbers, outcome, weights = weighted(people)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = fair_scorer(favourable=1).set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        how = {
            "cv": 2,
            "params": {"sensitive_features": frame["sex"], "sample_weight": weights},
            "error_score": "raise",
        }
        measured = cross_validate(
            model, numbers, outcome, scoring={"fair": routed}, **how
        )["test_fair"]
    expected = []
    for train, test in StratifiedKFold(2).split(numbers, outcome):
        fitted = LogisticRegression().fit(numbers.iloc[train], outcome.iloc[train])
        predicted, true = fitted.predict(numbers.iloc[test]), outcome.iloc[test]
        women = (frame["sex"].iloc[test] == "F").to_numpy()
        rates = [
            np.average(predicted[rows], weights=weights[test][rows])
            for rows in (women, ~women)
        ]
        accuracy = accuracy_score(true, predicted, sample_weight=weights[test])
        expected.append(accuracy - max(0, 0.8 - min(rates) / max(rates)))
    assert measured.tolist() == pytest.approx(expected)


def test_a_scorer_can_be_copied_and_sent_to_other_processes():
    scorer = fair_scorer("sex", favourable=1, base=make_scorer(accuracy_score))
    for copied in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert copied(MODEL, X, Y) == scorer(MODEL, X, Y)
    assert "rate=0.8" in repr(scorer)
