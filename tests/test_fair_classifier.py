"""FairClassifier: the conventions of scikit-learn, and nothing but debias underneath."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import fairmaxent
from fairmaxent.errors import ColumnError, InputError
from fairmaxent.fair_classifier import FairClassifier

# Of all checks of scikit-learn, these are not met.
NOT_MET = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight 2 is one person and not two, whom folds would part"
    ),
    "check_dtype_object": (
        "a cell that is a dict is refused in our words, with the column's name"
    ),
    "check_classifiers_one_label_sample_weights": (
        "one class among the rows that count is refused as one level, not class"
    ),
}
CHECKED = estimator_checks_generator(
    FairClassifier(LogisticRegression(), protected=0),
    expected_failed_checks=NOT_MET,
    mark="xfail",
)


def check_name(value: object) -> str:
    """A check is a partial; its id is the same in every process of a parallel run."""
    return getattr(getattr(value, "func", value), "__name__", "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # some checks warn on purpose
@pytest.mark.parametrize(("estimator", "check"), list(CHECKED), ids=check_name)
def test_it_keeps_the_conventions(estimator, check):
    check(estimator)


def people(rows=600, seed=0) -> pd.DataFrame:
    """Women have fewer good outcomes, partly by what else is known of them."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows, p=[0.4, 0.6])
    score = rng.normal(size=rows).round(2) + (sex == "m")
    town = rng.choice(["north", "south"], rows)
    chance = 1 / (1 + np.exp(0.6 - 1.2 * score - 0.5 * (town == "north")))
    hired = np.where(rng.random(rows) < chance, "yes", "no")
    return pd.DataFrame({"sex": sex, "score": score, "town": town, "hired": hired})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def parts(table) -> tuple[pd.DataFrame, pd.Series]:
    return table.drop(columns="hired"), table["hired"]


def pipeline(columns=("sex", "town")) -> Pipeline:
    prepared = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), list(columns)),
        (StandardScaler(), ["score"]),
    )
    return Pipeline([("prepared", prepared), ("clf", LogisticRegression())])


def rate_of(sex, decided) -> float:
    shares = pd.Series(np.asarray(decided) == "yes").groupby(np.asarray(sex)).mean()
    return shares.min() / shares.max()


def test_its_model_is_that_of_debias(table, parts):
    X, y = parts
    model = FairClassifier(pipeline(), "sex").fit(X, y)
    plan = fairmaxent.Model(pipeline())
    fit = fairmaxent.debias(table, "hired", "sex", favourable="yes", model=plan)
    assert_array_equal(model.predict_proba(X), fit.model().predict_proba(X))
    assert_array_equal(model.estimator_["clf"].coef_, fit.model()["clf"].coef_)
    assert model.certificate_.decisions == fit.certificate.decisions
    assert_array_equal(model.weights_, fit.weights())
    assert model.classes_.tolist() == ["no", "yes"]
    raw = clone(pipeline()).fit(X, y).predict(X)
    assert rate_of(X["sex"], raw) < 0.7
    assert rate_of(X["sex"], model.predict(X)) > 0.9


@pytest.mark.more
def test_all_options_arrive(table, parts):
    X, y = parts
    options = {"parity": "opportunity", "threshold": 0.6, "decided": "best"}
    model = FairClassifier(
        pipeline(["town"]),
        "sex",
        favourable="no",
        hide_protected=True,
        statistical_rate=0.9,
        **options,
    ).fit(X, y)
    plan = fairmaxent.Model(pipeline(["town"]), hide_protected=True, **options)
    asked = {"favourable": "no", "model": plan, "statistical_rate": 0.9}
    fit = fairmaxent.debias(table, "hired", "sex", **asked)
    assert model.certificate_.decisions == fit.certificate.decisions
    is_no = model.predict_proba(X)[:, 0] > 0.6
    assert_array_equal(model.predict(X), np.where(is_no, "no", "yes"))
    assert model.weights_.shape == (len(X), 2)


@pytest.mark.more
def test_names_make_models_of_all_parities(parts):
    X, y = parts
    equal = FairClassifier("logistic", "sex", parity="probabilities").fit(X, y)
    means = pd.Series(equal.predict_proba(X)[:, 1]).groupby(X["sex"]).mean()
    assert means.min() / means.max() > 0.95
    assert equal.certificate_.decisions is None
    assert set(equal.predict(X)) == {"no", "yes"}
    equal.fit(X, y, sample_weight=np.ones(len(X)))
    assert list(equal.estimator_.feature_names_in_) == ["sex", "score", "town"]


@pytest.mark.more
def test_sensitive_features_join_the_columns(parts):
    X, y = parts
    others = X.drop(columns="sex")
    joined = FairClassifier("logistic").fit(others, y, sensitive_features=X["sex"])
    whole = FairClassifier("logistic", "sex").fit(others.assign(sex=X["sex"]), y)
    chances = joined.predict_proba(others, sensitive_features=X["sex"])
    assert_array_equal(chances, whole.predict_proba(others.assign(sex=X["sex"])))
    with pytest.raises(ColumnError, match=r"sees 'sex'; pass\s+sensitive_features"):
        joined.predict(others)


@pytest.mark.more
def test_a_hidden_column_need_not_be_there(parts):
    X, y = parts
    others = X.drop(columns="sex")
    options = {"estimator": pipeline(["town"]), "hide_protected": True}
    model = FairClassifier(protected="sex", **options).fit(X, y)
    assert_array_equal(model.predict(X), model.predict(others))
    joined = FairClassifier(**options).fit(others, y, sensitive_features=X["sex"])
    assert_allclose(joined.predict_proba(others), model.predict_proba(others))
    with pytest.raises(ColumnError, match=r"yet now missing:\n- score"):
        model.predict(others.drop(columns="score"))
    sees = FairClassifier(pipeline(), "sex").fit(X, y)
    with pytest.raises(ColumnError, match=r"missing:\n- sex\n[\s\S]*hide_protected=T"):
        sees.predict(others)
    with pytest.raises(ColumnError, match=r"unseen at fit time:\n- more\n$"):
        sees.predict(X.assign(more=1))


@pytest.mark.more
def test_sample_weights_are_design_weights(table, parts):
    X, y = parts
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    model = FairClassifier(pipeline(), "sex").fit(X, y, sample_weight=weight)
    plan = fairmaxent.Model(pipeline())
    fit = fairmaxent.debias(
        table.assign(w=weight), "hired", "sex", favourable="yes", model=plan, weight="w"
    )
    assert_array_equal(model.estimator_["clf"].coef_, fit.model()["clf"].coef_)
    for wrong, said in ((weight[:-1], "inconsistent"), ([weight], "inconsistent")):
        with pytest.raises(ValueError, match=said):
            FairClassifier(pipeline(), "sex").fit(X, y, sample_weight=wrong)
    with pytest.raises(InputError, match="one number for each row"):
        FairClassifier(pipeline(), "sex").fit(X, y, sample_weight=weight[:, None])


@pytest.mark.more
def test_metadata_routing_brings_weights_and_groups(parts):
    X, y = parts
    others = X.drop(columns="sex")
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    given = {"sample_weight": weight, "sensitive_features": X["sex"]}
    plain = FairClassifier("logistic", hide_protected=True)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = plain.set_fit_request(sample_weight=True, sensitive_features=True)
        asking.set_score_request(sample_weight=False)
        routed = make_pipeline(FunctionTransformer(), asking).fit(others, y, **given)
        scores = cross_validate(asking, others, y, params=given, cv=2)
    direct = clone(plain).fit(others, y, **given)
    assert_array_equal(routed.predict_proba(others), direct.predict_proba(others))
    by_hand = []
    for train, test in StratifiedKFold(2).split(others, y):
        own = {name: np.asarray(values)[train] for name, values in given.items()}
        own["sensitive_features"] = X["sex"].iloc[train]
        model = clone(plain).fit(others.iloc[train], y.iloc[train], **own)
        by_hand.append(model.score(others.iloc[test], y.iloc[test]))
    assert_array_equal(scores["test_score"], by_hand)


@pytest.mark.more
def test_it_is_searched_over_and_cross_validated(parts):
    X, y = parts
    model = FairClassifier(pipeline(), "sex")
    scores = cross_validate(model, X, y, cv=3, scoring=["accuracy", "roc_auc"])
    assert scores["test_accuracy"].mean() > 0.5
    grid = {"estimator__clf__C": [0.01, 1.0], "statistical_rate": [0.8, 1.0]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    best = search.best_estimator_
    assert search.best_params_["estimator__clf__C"] == best.estimator_["clf"].C
    assert len(search.cv_results_["params"]) == 4
    again = clone(model).set_params(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict(X), again.predict(X))


@pytest.mark.more
def test_it_pickles(parts):
    X, y = parts
    model = FairClassifier(pipeline(), "sex").fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert str(copied.certificate_) == str(model.certificate_)


@pytest.mark.slow
def test_it_travels_to_other_processes(parts):
    X, y = parts
    model = FairClassifier(pipeline(), "sex")
    alone = cross_validate(model, X, y, cv=2)
    together = cross_validate(model, X, y, cv=2, n_jobs=2)
    assert_array_equal(together["test_score"], alone["test_score"])


@pytest.mark.more
def test_it_stands_at_the_end_of_a_pipeline(parts):
    X, y = parts
    grouped = X.assign(sex=(X["sex"] == "f") * 1.0)
    scaled = make_column_transformer(
        (StandardScaler(), ["score"]),
        ("passthrough", ["sex"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    model = make_pipeline(scaled, FairClassifier(LogisticRegression(), "sex"))
    model.fit(grouped, y)
    assert rate_of(X["sex"], model.predict(grouped)) > 0.9
    by_position = clone(scaled).set_output(transform="default")
    arrays = make_pipeline(by_position, FairClassifier(LogisticRegression(), 1))
    arrays.fit(grouped, y)
    assert_allclose(arrays.predict_proba(grouped), model.predict_proba(grouped))


@pytest.mark.more
def test_a_model_of_arrays_takes_arrays(parts):
    X, y = parts
    numbers = np.column_stack([X["sex"] == "f", X["score"], X["town"] == "north"]) * 1.0
    model = FairClassifier(LogisticRegression(), 0).fit(numbers, y.to_numpy())
    assert model.estimator_.n_features_in_ == 3
    expected = model.estimator_.predict_proba(numbers)
    assert_array_equal(model.predict_proba(numbers), expected)
    assert_array_equal(model.predict_proba(numbers.tolist()), expected)
    frame = pd.DataFrame(numbers)  # whose columns have no names
    assert_array_equal(clone(model).fit(frame, y).predict_proba(frame), expected)


@pytest.mark.more
@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
def test_tables_of_other_libraries(parts, library):
    X, y = parts
    expected = FairClassifier("logistic", "sex").fit(X, y)
    other = library(X)
    model = FairClassifier("logistic", "sex").fit(other, y.to_numpy())
    assert_allclose(model.predict_proba(other), expected.predict_proba(X))


@pytest.mark.more
def test_pipelines_in_pipelines_are_weighted(parts):
    X, y = parts
    nested = make_pipeline(FunctionTransformer(), pipeline())
    model = FairClassifier(nested, "sex").fit(X, y)
    flat = FairClassifier(pipeline(), "sex").fit(X, y)
    assert_array_equal(model.predict_proba(X), flat.predict_proba(X))


@pytest.mark.more
def test_it_writes_a_report(parts, tmp_path):
    X, y = parts
    model = FairClassifier(pipeline(), "sex")
    with pytest.raises(NotFittedError):
        model.report(tmp_path / "report.md")
    model.fit(X, y).report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "LogisticRegression" in text


@pytest.mark.parametrize(
    ("options", "y", "said"),
    [
        ({}, "town", "one class"),
        ({"protected": None}, "hired", r"no protected column.*set_fit_request"),
        ({"threshold": 2}, "hired", "threshold"),
        ({"estimator": "svm"}, "hired", "svm"),
    ],
)
def test_what_is_refused(table, options, y, said):
    asked = {"estimator": "logistic", "protected": "sex"} | options
    table = table.assign(town="north")
    with pytest.raises(InputError, match=said):
        FairClassifier(**asked).fit(table[["sex", "score"]], table[y])


def test_three_classes_are_refused(table):
    y = table["hired"].where(table["score"] > 0, "perhaps")
    with pytest.raises(InputError, match="Only binary classification is supported"):
        FairClassifier("logistic", "sex").fit(table.drop(columns="hired"), y)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="no option 'base'"):
        FairClassifier("logistic", "sex", base="tree")
