"""The frontier on few rows: splits, classifiers, methods and measures against independent ones, and what is kept."""

from __future__ import annotations

import doctest
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent.experiments.cells import made_with

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.learners import LEARNERS, Encoder
from benchmarks.massaging import massage, massaged_labels
from benchmarks.people import PROTECTED, split
from benchmarks.treatments import RAW, REFERENCE, ROWS, TREATMENTS, WEIGHTS, Training

from benchmarks import frontier, frontier_page, judging

TINY = frontier.Sizes(rows=300, splits=2, iterations=2, seconds=120)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of gradient boosting that wait for each other take longer than one."""
    import sklearn.ensemble  # noqa: F401  (limits reach only what is loaded)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def fold():
    return split("german", 0)


# ---------------------------------------------------------------- people


@pytest.mark.parametrize("name", PROTECTED)
def test_people_are_split_alike_in_outcome_and_group_and_nobody_is_on_both_sides(name):
    fold = split(name, 1, rows=800)
    assert (len(fold.train), len(fold.test)) == (560, 240)
    shares = [
        np.bincount(2 * fold.groups(part) + fold.labels(part), minlength=4) / len(part)
        for part in (fold.train, fold.test)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.006  # a row or so per cell
    assert len(np.unique(fold.groups(fold.test))) == 2
    again, other = split(name, 1, rows=800), split(name, 2, rows=800)
    pd.testing.assert_frame_equal(fold.test, again.test)
    assert not fold.test.equals(other.test)
    both = pd.concat([fold.train, fold.test])
    pd.testing.assert_frame_equal(
        both.sort_values(list(both), ignore_index=True),
        pd.concat([other.train, other.test]).sort_values(list(both), ignore_index=True),
    )


def test_no_feature_says_the_outcome():
    fold = split("compas", 0)
    features = fold.features(fold.train)
    labels = fold.labels(fold.train)
    assert fold.outcome not in features
    assert fold.protected in features
    for name in features:
        told = pd.Series(labels).groupby(features[name].astype(str)).transform("mean")
        assert ((told > 0.5) == labels).mean() < 0.75, name  # is_recid alone would be right nearly always


# ---------------------------------------------------------------- classifiers


def test_tables_are_read_as_scikit_learn_reads_them():
    from sklearn.compose import make_column_transformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    fold = split("compas", 0, rows=1000)
    train, test = fold.features(fold.train), fold.features(fold.test)
    texts = list(train.select_dtypes(exclude="number"))
    numbers = [name for name in train if name not in texts]
    train, test = (part.astype(dict.fromkeys(numbers, "float64")) for part in (train, test))
    assert train[numbers].isna().any().any()
    theirs = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), texts),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (MissingIndicator(features="all"), numbers),
    ).fit(train)
    encoder = Encoder.of(fold.features(fold.train))
    np.testing.assert_allclose(encoder.indicators(fold.features(fold.test)), theirs.transform(test), atol=1e-12)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan).fit(train[texts])
    expected = np.hstack([codes.transform(test[texts]), test[numbers]])
    np.testing.assert_array_equal(encoder.coded(fold.features(fold.test)), expected)


def test_missing_text_has_no_indicator_and_no_code():
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1.0, 2.0, 3.0]})
    encoder = Encoder.of(frame)
    np.testing.assert_array_equal(encoder.indicators(frame)[:, :2], [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(encoder.coded(frame), [[0, 1], [np.nan, 2], [1, 3]])


# ---------------------------------------------------------------- methods


def swapped_in_pairs(labels, scores, groups):
    """Kamiran and Calders' Algorithm 1 for two groups: swap one of each until the rates are as equal as they get."""
    labels = labels.copy()
    low, high = sorted((0, 1), key=lambda group: labels[groups == group].mean())

    def gap():
        return labels[groups == high].mean() - labels[groups == low].mean()

    while True:
        up, down = ((groups == low) & ~labels).nonzero()[0], ((groups == high) & labels).nonzero()[0]
        before, best, worst = gap(), up[np.argmax(scores[up])], down[np.argmin(scores[down])]
        labels[best], labels[worst] = True, False
        if abs(gap()) > abs(before):
            labels[best], labels[worst] = False, True
            return labels


@pytest.mark.parametrize("seed", range(5))
def test_massaging_is_swapping_pairs_at_the_border(seed):
    rng = np.random.default_rng(seed)
    groups, scores = rng.integers(0, 2, 200), rng.random(200)
    labels = rng.random(200) < np.where(groups == 1, 0.7, 0.3) * 0.5 + scores * 0.5
    ours, theirs = massaged_labels(labels, scores, groups), swapped_in_pairs(labels, scores, groups)
    # Theirs changes as many in both groups, ours rounds each group's own number: one row apart at most.
    assert np.count_nonzero(ours != theirs) <= 2
    means = judging.group_means(ours, groups)
    assert abs(means[0] - means[1]) < 1 / 50
    for group in (0, 1):
        changed = (ours != labels) & (groups == group)
        assert len(set(ours[changed])) == 1  # one direction


def test_massaging_changes_labels_alone_and_the_rate_of_three_groups_too(fold):
    frame = massage(fold)
    pd.testing.assert_frame_equal(fold.features(frame), fold.features(fold.train))
    assert frame.dtypes.equals(fold.train.dtypes)
    assert float(fairmaxent.statistical_rate(frame, fold.outcome, fold.protected, favourable="good")) > 0.99
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 900)
    labels = massaged_labels(rng.random(900) < 0.2 + 0.2 * groups, rng.random(900), groups)
    assert np.ptp(judging.group_means(labels, groups)) < 0.004


# Those that try a student out in many rounds take most of a minute each.
TREATED = [
    pytest.param(name, marks=pytest.mark.slow) if name.startswith("relabel predictions") else name
    for name, treatment in TREATMENTS.items()
    if treatment.treat
]


@pytest.mark.parametrize("name", TREATED)
def test_every_method_gives_a_table_like_the_one_it_got(fold, name):
    if name == "tabfairgdt" and "TABFAIRGDT_PYTHON" not in os.environ:
        pytest.skip("TABFAIRGDT_PYTHON does not name an environment with tabfairgdt")
    given = TREATMENTS[name].treat(fold)
    assert list(given.frame) == list(fold.train)
    assert given.frame.dtypes.equals(fold.train.dtypes)
    copies = 2 if name.startswith("relabel") and given.weights is not None else 1  # every row once per outcome
    assert len(given.frame) == copies * len(fold.train)
    assert set(fold.labels(given.frame)) == {True, False}
    if given.weights is not None:
        assert given.weights.shape == (len(given.frame),)
    again = TREATMENTS[name].treat(fold)
    pd.testing.assert_frame_equal(given.frame, again.frame)
    if TREATMENTS[name].ours:
        rates = judging.judge_table(fold, given)
        before = judging.judge_table(fold, Training(fold.train))
        assert rates["representation"] == pytest.approx(before["representation"], abs=0.005)  # groups keep their sizes
        if not name.startswith("relabel predictions"):
            assert rates["statistical"] == pytest.approx(1, abs=0.01)  # a row per cell of rows that are drawn


# ---------------------------------------------------------------- measures


def test_rates_on_people_are_those_of_other_libraries(fold):
    metrics = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(0)
    chances = rng.random(len(fold.test))
    measured = judging.judge_people(fold, chances, chances > 0.5)
    groups, labels = fold.test[fold.protected], fold.labels(fold.test)
    theirs = metrics.demographic_parity_ratio(labels, chances > 0.5, sensitive_features=groups)
    assert measured["predictions"] == pytest.approx(theirs)
    rate = fairmaxent.statistical_rate(fold.test, chances, fold.protected, favourable="good", as_probability=True)
    assert measured["probabilities"] == pytest.approx(float(rate))
    better = np.subtract.outer(chances[labels], chances[~labels]) > 0
    assert measured["auc"] == pytest.approx(better.mean())
    assert measured["accuracy"] == pytest.approx(
        np.mean([(c > 0.5) == y for c, y in zip(chances, labels, strict=True)])
    )


def test_where_nobody_is_predicted_the_outcome_there_is_no_rate(fold):
    nobody = np.zeros(len(fold.test))
    assert judging.judge_people(fold, nobody, nobody > 0.5)["predictions"] is None
    assert judging.worst_ratio(np.array([0.0, 0.5])) == 0.0
    assert judging.judge_people(fold, nobody, nobody > 0.5)["predictions, shuffled"] is None


def test_shuffled_groups_measure_what_an_exactly_fair_model_would():
    # Two of four people are chosen. Of the six ways to deal two groups of two, four put one of them into each.
    chosen, groups = np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1])
    assert judging.shuffled_ratio(chosen, groups) == pytest.approx(4 / 6, abs=0.1)
    assert judging.worst_ratio(judging.group_means(chosen, groups)) == 0


def test_the_table_itself_is_measured_as_the_library_does(fold):
    weights = np.random.default_rng(1).random(len(fold.train))
    measured = judging.judge_table(fold, Training(fold.train, weights))
    asked = {"favourable": "good", "weight": weights}
    rate = fairmaxent.statistical_rate(fold.train, fold.outcome, fold.protected, **asked)
    assert measured["statistical"] == pytest.approx(float(rate))
    rate = fairmaxent.representation_rate(fold.train, fold.protected, weight=weights)
    assert measured["representation"] == pytest.approx(float(rate))
    assert measured["copies"] == measured["same levels"] == pytest.approx(1.0)


def test_copies_are_counted_by_weight(fold):
    changed = fold.train.assign(age=np.where(np.arange(len(fold.train)) < 70, -1, fold.train["age"]))
    weights = np.where(np.arange(len(fold.train)) < 70, 3.0, 1.0)
    measured = judging.judge_table(fold, Training(changed.assign(age=changed["age"].clip(lower=18)), weights))
    assert measured["copies"] == pytest.approx(630 / (630 + 210), abs=0.02)  # some are 18, or have a twin
    assert measured["copies"] <= measured["same levels"] < 1


def test_distances_are_total_variations_of_marginals():
    rng = np.random.default_rng(2)
    new, old = rng.integers(0, 3, (60, 3)), rng.integers(0, 3, (80, 3))
    weights = rng.random(60)

    def shares(codes, columns, weights):
        return pd.Series(weights).groupby([codes[:, column] for column in columns]).sum() / weights.sum()

    def distance(columns):
        found = shares(new, columns, weights).sub(shares(old, columns, np.ones(80)), fill_value=0)
        return found.abs().sum() / 2

    one, two = judging.marginal_distances(new, weights, old, (3, 3, 3))
    assert one == pytest.approx(np.mean([distance([a]) for a in range(3)]))
    assert two == pytest.approx(np.mean([distance(pair) for pair in ([0, 1], [0, 2], [1, 2])]))
    assert judging.marginal_distances(old, np.ones(80), old, (3, 3, 3)) == (0, 0)


def test_models_are_trained_on_what_was_given_and_judged_on_people(fold):
    """By hand with scikit-learn: the same model on the same weighted rows."""
    from sklearn.linear_model import LogisticRegression

    measured = judging.judge(fold, REFERENCE, iterations=2)
    assert list(measured["models"]) == list(LEARNERS)
    dummies = pd.get_dummies(pd.concat([fold.features(fold.train), fold.features(fold.test)]))
    train, test = dummies[: len(fold.train)], dummies[len(fold.train) :]
    texts = [name for name in dummies if dummies[name].dtype == bool]
    scale = train.drop(columns=texts)
    train, test = (part.assign(**((part[list(scale)] - scale.mean()) / scale.std(ddof=0))) for part in (train, test))
    weights = fairmaxent.baselines.kamiran_calders(fold.train, fold.outcome, fold.protected).weights()
    model = LogisticRegression(max_iter=1000).fit(train, fold.labels(fold.train), weights)
    accuracy = (model.predict(test) == fold.labels(fold.test)).mean()
    assert measured["models"]["logistic regression"]["accuracy"] == pytest.approx(accuracy, abs=0.007)


@pytest.mark.filterwarnings("ignore")  # fairlearn's way with pandas
def test_training_in_processing_is_fairer_on_its_own_people(fold):
    pytest.importorskip("fairlearn")
    own, learner = replace(fold, test=fold.train), LEARNERS["logistic regression"]
    encoder = Encoder.of(own.features(own.train))
    fair = judging.judge_people(own, *judging._in_processing(own, learner, encoder, iterations=10))
    chances = judging._chances(own, Training(own.train), learner, encoder)
    raw = judging.judge_people(own, chances, chances > 0.5)
    assert fair["predictions"] > max(raw["predictions"], 0.95)
    assert 0.5 < fair["auc"] <= raw["auc"]


# ---------------------------------------------------------------- what is kept and shown


def test_methods_that_nothing_beats_are_found():
    rng = np.random.default_rng(0)
    places = {str(place): (float(x), float(y)) for place, (x, y) in enumerate(rng.random((40, 2)).round(1))}
    left = set(places)
    for name, (x, y) in places.items():
        for u, v in places.values():
            if u >= x and v >= y and (u > x or v > y):
                left.discard(name)
    assert frontier_page.undominated(places) == left
    assert doctest.testmod(frontier_page) == (0, 1)
    assert doctest.testmod(judging) == (0, 1)


def command(monkeypatch, folder, *options):
    monkeypatch.setattr(frontier, "QUICK", TINY)
    monkeypatch.setattr(sys, "argv", ["frontier.py", "--quick", "--out", str(folder), *options])
    frontier.main()
    return json.loads((folder / "frontier.json").read_text())


@pytest.mark.slow
def test_the_command_measures_what_is_missing_and_shows_all(tmp_path, monkeypatch, capsys):
    options = ("--only", "german", "--methods", REFERENCE, ROWS)
    record = command(monkeypatch, tmp_path, *options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frontier.json", "frontier.md", "frontier.svg"]
    cells = record["cells"]
    assert [(cell["data"], cell["method"], cell["split"]) for cell in cells] == [
        ("german", method, number) for method in (REFERENCE, ROWS) for number in (0, 1)
    ]
    losses = [
        np.subtract(*(cell["models"]["decision tree"]["auc"] for cell in (a, b))) for a, b in (cells[::2], cells[1::2])
    ]
    page = (tmp_path / "frontier.md").read_text()
    assert f"| {ROWS} |" in page
    lines = [line for line in page.splitlines() if line.startswith("| frontier | german, decision tree: AUC lost")]
    assert len(lines) == 1
    assert float(lines[0].split(" | ")[2]) == pytest.approx(np.mean(losses), abs=0.002)
    drawn = (tmp_path / "frontier.svg").read_bytes()
    capsys.readouterr()

    monkeypatch.setattr(frontier, "fresh", lambda *_, **__: pytest.fail("measured again"))
    assert command(monkeypatch, tmp_path, *options)["cells"] == cells
    assert (tmp_path / "frontier.svg").read_bytes() == drawn
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit, match="other sizes"):
        frontier.load(tmp_path, frontier.FULL)


def test_a_method_that_fails_says_why_and_is_tried_again(tmp_path, monkeypatch):
    def failing(*_, **__):
        raise frontier.JobFailedError("ValueError: no")

    monkeypatch.setattr(frontier, "fresh", failing)
    options = ("--only", "german", "--methods", WEIGHTS)
    assert [cell["failed"] for cell in command(monkeypatch, tmp_path, *options)["cells"]] == ["ValueError: no"] * 2
    assert f"| {WEIGHTS} |  |  |  |  |  | ValueError: no |" in (tmp_path / "frontier.md").read_text()
    monkeypatch.setattr(frontier, "write_page", lambda *_: None)
    monkeypatch.setattr(frontier, "fresh", measured_nothing)
    assert command(monkeypatch, tmp_path, *options)["cells"] == [
        {"data": "german", "method": WEIGHTS, "code": made_with()["fingerprint"], "split": number} for number in (0, 1)
    ]


def measured_nothing(_job, _table, _method, splits, *_, **__):
    return [{"split": number} for number in splits]


def test_again_replaces_what_is_named_only(tmp_path, monkeypatch):
    old = [{"data": "german", "method": name, "split": 0, "code": "old"} for name in (RAW, WEIGHTS)]
    frontier.keep(tmp_path, old, TINY)
    monkeypatch.setattr(frontier, "write_page", lambda *_: None)
    monkeypatch.setattr(frontier, "fresh", measured_nothing)
    cells = command(monkeypatch, tmp_path, "--only", "german", "--methods", RAW, "--again")["cells"]
    assert [(cell["method"], cell["split"], cell["code"] == "old") for cell in cells] == [
        (RAW, 0, False), (RAW, 1, False), (WEIGHTS, 0, True),
    ]  # fmt: skip
