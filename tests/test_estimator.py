"""FairMaxEnt: the conventions of scikit-learn and imbalanced-learn, and nothing but
debias underneath.
"""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import sklearn.pipeline
from imblearn.pipeline import Pipeline
from imblearn.utils.estimator_checks import estimator_checks_generator as sampler_checks
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import fairmaxent
from fairmaxent.estimator import FairMaxEnt
from tables import EQUAL_PROBABILITIES, as_table, random_frame, rates_of

EXAMPLES = Path(__file__).parent.parent / "examples"
# Of all checks, scikit-learn's and imbalanced-learn's, these two are not met.
NOT_MET = {
    "check_samplers_multiclass_ova": (
        "an outcome spread over several 0/1 columns is refused: the outcome is one"
        " column"
    ),
    "check_samplers_pandas_sparse": (
        "pandas' sparse columns are read as single values, never binned"
    ),
}


def check_name(value: object) -> str:
    """A check is a partial; its id must be the same in every process of a parallel
    run.
    """
    return getattr(getattr(value, "func", value), "__name__", "")


CHECKED = FairMaxEnt(0, base="product", random_state=0)
BOTH = [
    *estimator_checks_generator(CHECKED),
    *sampler_checks(CHECKED, expected_failed_checks=NOT_MET, mark="xfail"),
]


@pytest.mark.some(12)
@pytest.mark.parametrize(("estimator", "check"), BOTH, ids=check_name)
def test_it_keeps_the_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return random_frame(np.random.default_rng(3), (2, 3), 2, rows=400)


@pytest.fixture(scope="module")
def parts(frame) -> tuple[pd.DataFrame, pd.Series]:
    return frame.drop(columns="y"), frame["y"]


def encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["z0", "z1", "x0"]),
        (StandardScaler(), ["x1", "x2"]),
    )


def expected_rows(frame: pd.DataFrame, n: int, **options) -> pd.DataFrame:
    joined = frame.drop(columns="y").assign(y=frame["y"])
    return fairmaxent.debias(joined, "y", "z0", **options).sample(n, random_state=5)


def test_pandas_rows_are_those_of_debias(frame, parts):
    options = {
        "statistical_rate": 0.9,
        "favourable": "o1",
        "base_share": 0.2,
        "target": {"x2": None},
    }
    X, y = FairMaxEnt("z0", random_state=5, **options).fit_resample(*parts)
    expected = expected_rows(frame, len(frame), **options)
    assert_frame_equal(X, expected.drop(columns="y"))
    assert_series_equal(y, expected["y"])


def test_pyarrow_rows_are_those_of_debias(frame, parts):
    given = pa.table(parts[0]), pa.chunked_array([parts[1].tolist()])
    X, y = FairMaxEnt("z0", random_state=5, rows=70).fit_resample(*given)
    expected = expected_rows(frame, 70)
    assert X.equals(pa.table(expected.drop(columns="y"), schema=X.schema))
    assert y.to_pylist() == expected["y"].tolist()


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_array_rows_are_those_of_debias(frame, dtype):
    codes = (
        frame[sorted(frame)]
        .apply(lambda column: column.rank(method="dense") % 50)
        .astype(dtype)
    )
    X, y = codes.drop(columns="y").to_numpy(), codes["y"].to_numpy()
    # 3: z0
    drawn_X, drawn_y = FairMaxEnt(3, random_state=5, rows=90).fit_resample(X, y)
    expected = expected_rows(codes, 90)
    assert_array_equal(drawn_X, expected.drop(columns="y").to_numpy(), strict=True)
    assert_array_equal(drawn_y, expected["y"].to_numpy(), strict=True)


def test_an_index_of_their_own_does_not_mix_rows_up(parts):
    X, y = parts
    shuffled = np.random.default_rng(0).permutation(len(X))
    drawn = FairMaxEnt("z0", random_state=1).fit_resample(
        X.set_index(shuffled), y.set_axis(shuffled[::-1])
    )
    expected = FairMaxEnt("z0", random_state=1).fit_resample(X, y)
    assert_frame_equal(drawn[0], expected[0])
    assert_series_equal(drawn[1], expected[1])


@pytest.mark.parametrize("name", [None, "z9"])
def test_the_outcome_keeps_its_name(parts, name):
    X, y = parts
    assert FairMaxEnt("z0").fit_resample(X, y.rename(name))[1].name == name
    labels = ["y" if name is None else name]
    assert (
        FairMaxEnt("z0")
        .fit_resample(X, y.rename(labels[0]).to_frame())[1]
        .columns.tolist()
        == labels
    )


def test_weights_are_fair(parts):
    X, y = parts
    estimator = FairMaxEnt("z0").fit(X, y)
    weight = estimator.sample_weight_
    assert weight.mean() == pytest.approx(1)
    table = X.assign(y=y, probability=weight / weight.sum())
    sizes, _ = rates_of(as_table(table), ["z0"], "y")
    # groups keep their sizes
    assert rates_of(table, ["z0"], "y") == pytest.approx((sizes, 1))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_y_has_several_outcomes(frame, library):
    if library == "polars":
        frame = pl.from_pandas(frame)
    y = frame[["y", "x2"]]
    X = frame[[name for name in frame.columns if name not in ("y", "x2")]]
    fair = FairMaxEnt("z0", random_state=0)
    drawn_X, drawn_y = fair.fit_resample(X, y)
    assert list(drawn_X.columns) == list(X.columns)
    assert list(drawn_y.columns) == ["y", "x2"]
    wanted = fair.fit_.certificate.achieved["statistical_rate"]
    assert wanted == pytest.approx({"y by z0": 1.0, "x2 by z0": 1.0})


def test_weights_that_cannot_be_fair_say_so():
    X = pd.DataFrame({"sex": ["f"] * 10 + ["m"] * 10})
    estimator = FairMaxEnt("sex").fit(X, [0] * 10 + [0, 1] * 5)
    with pytest.raises(
        fairmaxent.InfeasibleError, match=r"no rows to weigh\. Use sample"
    ):
        _ = estimator.sample_weight_
    assert not hasattr(estimator, "sample_weight_")
    # what a notebook shows looks at every attribute
    assert "FairMaxEnt" in estimator._repr_html_()


def test_attributes(parts):
    estimator = FairMaxEnt("z0", random_state=0)
    _, y = estimator.fit_resample(*parts)
    assert estimator.sampling_strategy_ == y.value_counts().to_dict()
    assert estimator.n_features_in_ == 5
    assert estimator.get_feature_names_out().tolist() == ["z0", "z1", "x0", "x1", "x2"]
    assert estimator.fit_.certificate.achieved["statistical_rate"] == {
        "z0": pytest.approx(1)
    }


@pytest.mark.slow
def test_a_fitted_estimator_pickles_and_travels_to_other_processes(parts):
    estimator = FairMaxEnt("z0", random_state=1).fit(*parts)
    here = estimator.sample(30)
    there = pickle.loads(pickle.dumps(estimator)).sample(30)
    drawn = joblib.Parallel(n_jobs=2)(
        joblib.delayed(estimator.sample)(30, random_state=seed) for seed in (1, 2)
    )
    for X, y in (there, drawn[0]):
        assert_frame_equal(X, here[0])
        assert_series_equal(y, here[1])
    assert not drawn[1][0].equals(here[0])


@pytest.mark.more
def test_in_a_pipeline_under_grid_search(parts):
    fair = FairMaxEnt("z0", random_state=0)
    pipeline = Pipeline(
        [("fair", fair), ("encode", encoder()), ("fit", LogisticRegression())]
    )
    search = GridSearchCV(
        pipeline, {"fair__statistical_rate": [None, 1.0]}, cv=2, scoring="accuracy"
    ).fit(*parts)
    assert len(search.cv_results_["mean_test_score"]) == 2
    assert search.best_score_ > 0.5
    best = search.best_estimator_["fair"]
    X, y = clone(best).fit_resample(*parts)
    by_hand = LogisticRegression().fit(encoder().fit_transform(X), y)
    assert_array_equal(search.best_estimator_["fit"].coef_, by_hand.coef_)
    # nothing is drawn when predicting
    assert len(search.predict(parts[0])) == len(parts[0])


def test_a_pipeline_that_cannot_have_it_says_which_can(parts):
    steps = [("fair", FairMaxEnt("z0", random_state=0)), ("encode", encoder())]
    steps.append(("fit", LogisticRegression()))
    with pytest.raises(TypeError) as refused:
        sklearn.pipeline.Pipeline(steps).fit(*parts)
    assert "a sampler: use the Pipeline of imblearn.pipeline" in str(refused.value)
    # which works
    assert len(Pipeline(steps).fit(*parts).predict(parts[0])) == len(parts[0])


def test_sensitive_features_join_the_fit_and_stay_out_of_the_rows(frame, parts):
    X, y = parts
    estimator = FairMaxEnt(random_state=5)
    drawn_X, drawn_y = estimator.fit_resample(
        X.drop(columns="z0"), y, sensitive_features=X["z0"]
    )
    assert drawn_X.columns.tolist() == ["z1", "x0", "x1", "x2"]
    whole = fairmaxent.debias(
        frame[["z1", "x0", "x1", "x2", "z0", "y"]], "y", "z0"
    ).sample(len(X), random_state=5)
    assert_frame_equal(drawn_X.assign(z0=whole["z0"], y=drawn_y), whole)
    assert_frame_equal(estimator.fit_.sample(len(X)), whole)  # how to get them back


@pytest.mark.parametrize("kind", ["list", "array", "two columns", "table"])
def test_sensitive_features_of_any_kind(parts, kind):
    X, y = parts
    groups = X[["z0", "z1"]]
    kinds = {
        "list": X["z0"].tolist(),
        "array": X["z0"].to_numpy(),
        "two columns": groups.to_numpy(),
        "table": groups,
    }
    fit = (
        FairMaxEnt()
        .fit(X.drop(columns=["z0", "z1"]), y, sensitive_features=kinds[kind])
        .fit_
    )
    names = {
        "two columns": ["sensitive_feature0", "sensitive_feature1"],
        "table": ["z0", "z1"],
    }
    protected = names.get(kind, ["sensitive_feature"])
    assert fit.roles.names == ("y", *protected)
    achieved = fit.distribution.marginal([protected[0], "y"])
    sizes, _ = rates_of(as_table(X.assign(y=y)), ["z0"], "y")
    # groups keep their sizes
    assert rates_of(achieved, [protected[0]], "y") == pytest.approx((sizes, 1))


def test_sensitive_features_are_routed_through_a_pipeline(parts):
    X, y = parts
    rest = X[["x1", "x2"]]
    with sklearn.config_context(enable_metadata_routing=True):
        sampler = FairMaxEnt(random_state=0).set_fit_resample_request(
            sensitive_features=True
        )
        pipeline = Pipeline([("fair", sampler), ("fit", LogisticRegression())])
        pipeline.fit(rest, y, sensitive_features=X["z0"])
    expected = FairMaxEnt(random_state=0).fit_resample(
        rest, y, sensitive_features=X["z0"]
    )
    assert_array_equal(pipeline["fit"].coef_, LogisticRegression().fit(*expected).coef_)
    assert pipeline["fair"].fit_.roles.names == ("y", "z0")


@pytest.mark.parametrize(
    ("estimator", "change", "message"),
    [
        (FairMaxEnt(), {}, r"no protected column; name columns of X"),
        (FairMaxEnt("z7"), {}, r"no column 'z7'; known: 'z0'"),
        (FairMaxEnt(9), {}, r"protected holds 9; pass names .* of the 5 columns of X"),
        (FairMaxEnt(0.5), {}, r"protected holds a float; pass names"),
        (
            FairMaxEnt(pd.Series(["a"] * 400)),
            {},
            r"protected holds a Series; .* go to fit as sensitive_features",
        ),
        (
            FairMaxEnt(),
            {},
            (
                r"enable_metadata_routing=True\) and"
                r" FairMaxEnt\(…\)\.set_fit_resample_request"
            ),
        ),
        (FairMaxEnt("z0", weight=True), {}, r"weight is a bool; pass the name"),
        (FairMaxEnt("z0", rows=0), {}, r"ask for a positive whole number of rows"),
        (
            FairMaxEnt("z0", random_state=np.random.RandomState(0)),
            {},
            r"random_state is RandomState",
        ),
        (FairMaxEnt("z0", base_share=2), {}, r"base_share is 2; it must lie between"),
        (
            FairMaxEnt(),
            {"sensitive_features": pd.Series(["a"] * 400, name="z0")},
            r"more than one column 'z0' in X",
        ),
        (
            FairMaxEnt("z0"),
            {"y": pd.Series([0, 1] * 200, name="x1")},
            r"more than one column 'x1' in X",
        ),
        (FairMaxEnt("z0"), {"y": ["a"] * 400}, r"y has one class \('a'\)"),
        (
            FairMaxEnt("z0"),
            {"y": np.linspace(0, 1, 400)},
            r"Unknown label type: continuous",
        ),
        (
            FairMaxEnt("z0"),
            {"y": pd.Series([0, None] * 200)},
            r"y has missing values; drop",
        ),
        (FairMaxEnt("z0"), {"y": np.zeros((400, 2))}, r"y has 2 columns"),
        (FairMaxEnt("z0"), {"y": [0, 1]}, r"inconsistent numbers of samples"),
        (
            FairMaxEnt("z0"),
            {"y": pl.Series([0, 1] * 200)},
            r"y comes from polars and X from pandas; pass both from one library",
        ),
        (
            FairMaxEnt("z0"),
            {"X": pl.LazyFrame({"z0": ["a"]})},
            r"call \.collect\(\) first",
        ),
    ],
)
def test_bad_input(parts, estimator, change, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit_resample(**{"X": parts[0], "y": parts[1]} | change)


def test_nothing_is_drawn_before_the_fit():
    with pytest.raises(NotFittedError):
        FairMaxEnt("z0").sample(3)
    with pytest.raises(NotFittedError):
        _ = FairMaxEnt("z0").sample_weight_


@pytest.mark.parametrize("blocked", ["sklearn", "imblearn"])
@pytest.mark.process
def test_what_is_not_installed(blocked):
    code = f"""
import sys
sys.modules[{blocked!r}] = None
try:
    from fairmaxent.estimator import FairMaxEnt
    print(FairMaxEnt(0, random_state=0).fit_resample([[0], [1]] * 10, [0, 1, 1, 1] * 5)[1].count(1))
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    expected = {
        "sklearn": r"DependencyError .*pip install 'scikit-learn>=1\.6'",
        "imblearn": r"\d+",
    }
    assert re.match(expected[blocked], done.stdout)


@pytest.mark.slow
@pytest.mark.process
def test_the_worked_example_runs_and_the_fair_models_are_fairer():
    example = [sys.executable, EXAMPLES / "fairlearn_metric_frame.py"]
    # threads of tests that run side by side wait for each other
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        example, capture_output=True, text=True, check=True, env=alone
    )
    lines = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[1:]]
    ratio = {(training, model): float(rest[-1]) for training, model, *rest in lines}
    for model in ("logistic", "boosted"):
        assert ratio["fair rows", model] > 1.5 * ratio["raw rows", model]
        assert ratio["fair weights", model] > 1.5 * ratio["raw rows", model]


def test_relabelled_rows_come_with_weights(frame, parts):
    X, y = parts
    options = {"model": EQUAL_PROBABILITIES, "favourable": "o1"}
    sampler = FairMaxEnt("z0", random_state=0, **options)
    rows, labels, weights = sampler.fit_weigh(X, y)
    fit = fairmaxent.debias(frame, "y", "z0", random_state=0, **options)
    expected = fit.weigh(frame[[*X.columns, "y"]])
    assert_frame_equal(rows, expected[X.columns])
    assert_series_equal(labels, expected["y"])
    assert_array_equal(weights, expected["fair_weight"])
    model = LogisticRegression(max_iter=1000).fit(
        encoder().fit_transform(rows), labels, sample_weight=weights
    )
    assert set(model.classes_) == set(y)


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_weighed_arrays_and_lists_come_back_as_such(kind):
    X = [
        [0, 5],
        [0, 6],
        [0, 7],
        [1, 6],
        [1, 5],
        [1, 8],
        [0, 8],
        [0, 9],
        [1, 9],
        [1, 7],
    ] * 4
    y = [0, 1, 0, 1, 0, 1, 0, 1, 1, 1] * 4
    rows, labels, weights = FairMaxEnt(0, model=EQUAL_PROBABILITIES).fit_weigh(
        kind(X), kind(y)
    )
    assert type(rows) is type(kind(X))
    assert len(rows) == len(labels) == len(weights) == 2 * len(X)


def test_one_weight_per_row_is_refused_where_a_row_has_several(parts):
    sampler = FairMaxEnt("z0", model=EQUAL_PROBABILITIES).fit(*parts)
    assert sampler.fit_.weights().ndim == 2
    with pytest.raises(fairmaxent.InfeasibleError, match="fit_weigh"):
        _ = sampler.sample_weight_
    assert not hasattr(sampler, "sample_weight_")
