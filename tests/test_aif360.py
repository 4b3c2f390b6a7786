"""The adapter for AIF360, on a stand-in for its data sets and, where AIF360 is
installed, on its own.
"""

import copy
import logging
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fairmaxent
from fairmaxent.aif360 import FairMaxEntPreprocessing

UNPRIVILEGED, PRIVILEGED = [{"sex": 0}], [{"sex": 1}]


class StandIn(SimpleNamespace):
    """The attributes and methods of a BinaryLabelDataset that the adapter uses."""

    def copy(self, deepcopy: bool = False):
        return copy.deepcopy(self) if deepcopy else copy.copy(self)

    def convert_to_dataframe(self):
        frame = pd.DataFrame(
            self.features, columns=self.feature_names, index=self.instance_names
        )
        frame[self.protected_attribute_names] = self.protected_attributes
        return frame.assign(label=self.labels.ravel()), {}


def stand_in(frame: pd.DataFrame, protected: list[str]) -> StandIn:
    features = frame.drop(columns=["label", "weight"])
    return StandIn(
        features=features.to_numpy(),
        feature_names=features.columns.tolist(),
        labels=frame[["label"]].to_numpy(),
        label_names=["label"],
        scores=frame[["label"]].to_numpy() == 1.0,
        protected_attributes=frame[protected].to_numpy(),
        protected_attribute_names=protected,
        instance_weights=frame["weight"].to_numpy(),
        instance_names=frame.index.astype(str).tolist(),
        favorable_label=1.0,
        unfavorable_label=0.0,
    )


def load_aif360(*names: str):
    """Import from AIF360, which warns about its own docstrings and about libraries that
    it can do without.
    """
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                pytest.importorskip(
                    name, reason="AIF360 is not installed: make engines"
                )
                for name in names
            ]
    finally:
        logging.disable(logging.NOTSET)


def original(frame: pd.DataFrame, protected: list[str]):
    (datasets,) = load_aif360("aif360.datasets")
    return datasets.BinaryLabelDataset(
        df=frame,
        label_names=["label"],
        protected_attribute_names=protected,
        instance_weights_name="weight",
    )


@pytest.fixture(params=[stand_in, original], ids=["stand-in", "aif360"])
def make(request):
    return request.param


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Sex, three regions of which the third is in neither group, a one-hot coded
    school, hours, and labels.
    """
    rng = np.random.default_rng(0)
    sex, region = rng.random(600) < 0.7, rng.choice(3, 600)
    label = rng.random(600) < 0.2 + 0.4 * sex + 0.1 * region
    school = pd.get_dummies(
        rng.choice(["a", "b", "c"], 600), prefix="school", prefix_sep="="
    )
    rest = {
        "hours": rng.normal(40, 5, 600).round() + 5 * label,
        "label": label,
        "weight": rng.random(600) + 0.5,
    }
    return (
        pd.DataFrame({"sex": sex, "region": region})
        .join(school)
        .assign(**rest)
        .astype(float)
    )


def reweighed(sex, label, weights):
    """Kamiran and Calders: P(group) · P(label) / P(group, label), by group-by."""
    table = pd.DataFrame({"sex": sex, "label": label, "weight": weights})
    total, cell = (
        table["weight"].sum(),
        table.groupby(["sex", "label"])["weight"].transform("sum"),
    )
    by_sex, by_label = (
        table.groupby(name)["weight"].transform("sum") for name in ("sex", "label")
    )
    return (weights * by_sex * by_label / (total * cell)).to_numpy()


def rates(dataset, rows=slice(None)) -> tuple[float, float]:
    """Both rates by sex, by hand."""
    sex, label = dataset.protected_attributes[rows, 0], dataset.labels[rows, 0]
    weights = dataset.instance_weights[rows]
    shares = [weights[sex == value].sum() for value in (0, 1)]
    favourable = [
        weights[(sex == value) & (label == 1)].sum() / share
        for value, share in enumerate(shares)
    ]
    return min(shares) / max(shares), min(favourable) / max(favourable)


def test_by_default_it_is_reweighing(make, frame):
    dataset = make(frame, ["sex"])
    fair = FairMaxEntPreprocessing(UNPRIVILEGED, PRIVILEGED).fit_transform(dataset)
    expected = reweighed(frame["sex"], frame["label"], frame["weight"])
    np.testing.assert_allclose(fair.instance_weights, expected, rtol=1e-7)


def test_by_default_it_is_the_reweighing_of_aif360(frame):
    dataset = original(frame, ["sex"])
    (preprocessing,) = load_aif360("aif360.algorithms.preprocessing")
    expected = preprocessing.Reweighing(UNPRIVILEGED, PRIVILEGED).fit_transform(dataset)
    fair = FairMaxEntPreprocessing(UNPRIVILEGED, PRIVILEGED).fit_transform(dataset)
    np.testing.assert_allclose(
        fair.instance_weights, expected.instance_weights, rtol=1e-7
    )


def test_weights_are_fair_and_nothing_else_changes(make, frame):
    dataset = make(frame, ["sex"])
    before = dataset.copy(deepcopy=True)
    fair = FairMaxEntPreprocessing(UNPRIVILEGED, PRIVILEGED).fit_transform(dataset)
    assert type(fair) is type(dataset)
    # groups keep their sizes
    assert rates(fair) == pytest.approx((rates(dataset)[0], 1))
    assert rates(dataset)[1] < 0.8
    assert fair.instance_weights.sum() == pytest.approx(dataset.instance_weights.sum())
    np.testing.assert_array_equal(fair.features, before.features)
    np.testing.assert_array_equal(dataset.instance_weights, before.instance_weights)


def test_rows_in_neither_group_stay_as_they_are(make, frame):
    dataset = make(frame, ["sex", "region"])
    unprivileged = [{"sex": 0, "region": 0}, {"sex": 0, "region": 1}]
    privileged = [{"sex": 1, "region": 0}, {"sex": 1, "region": 1}]
    inside = (frame["region"] < 2).to_numpy()
    for output in ("weights", "rows"):
        fair = FairMaxEntPreprocessing(
            unprivileged, privileged, output=output, random_state=0
        ).fit_transform(dataset)
        assert rates(fair, inside) == pytest.approx(
            (rates(dataset, inside)[0], 1), abs=0.02
        )
        for name in ("features", "labels", "protected_attributes", "instance_weights"):
            np.testing.assert_array_equal(
                getattr(fair, name)[~inside], getattr(dataset, name)[~inside]
            )
        assert set(fair.protected_attributes[inside, 1]) == {0, 1}


def test_new_rows_are_fair_and_sound(make, frame):
    dataset = make(frame, ["sex"])
    adapter = FairMaxEntPreprocessing(
        UNPRIVILEGED,
        PRIVILEGED,
        output="rows",
        representation_rate=1.0,
        base_share=0.9,
        random_state=0,
    )
    fair = adapter.fit_transform(dataset)
    assert rates(fair) == pytest.approx((1, 1), abs=0.02)
    assert fair.instance_weights.sum() == pytest.approx(dataset.instance_weights.sum())
    drawn = pd.DataFrame(fair.features, columns=fair.feature_names)
    assert drawn.columns.tolist() == [
        "sex",
        "region",
        "school=a",
        "school=b",
        "school=c",
        "hours",
    ]
    assert (drawn.filter(like="school").sum(axis=1) == 1).all()  # still one-hot
    np.testing.assert_array_equal(drawn["sex"], fair.protected_attributes[:, 0])
    # ... and the column "group" of the fit never contradicts the attribute it is made of
    table = adapter.fit_.distribution.marginal(["sex", "group"]).set_index(
        ["sex", "group"]
    )["probability"]
    assert table.get((1.0, "unprivileged"), 0.0) == 0
    assert table[1.0, "privileged"] == pytest.approx(0.5)
    np.testing.assert_array_equal(fair.scores, fair.labels)
    assert len(set(fair.instance_names)) == len(frame)


def test_new_rows_of_aif360_are_a_valid_dataset(frame):
    fair = FairMaxEntPreprocessing(
        UNPRIVILEGED, PRIVILEGED, output="rows"
    ).fit_transform(original(frame, ["sex"]))
    fair.validate_dataset()
    (metrics,) = load_aif360("aif360.metrics")
    measured = metrics.BinaryLabelDatasetMetric(fair, UNPRIVILEGED, PRIVILEGED)
    assert measured.disparate_impact() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("unprivileged", "privileged", "message"),
    [
        (
            [{"sexx": 0}],
            PRIVILEGED,
            (
                r"'sexx' is not a protected attribute of the data set; did you mean"
                r" 'sex'\?"
            ),
        ),
        ([{"sex": 1}], PRIVILEGED, r"rows are both privileged and unprivileged"),
        ([{"sex": 5}], PRIVILEGED, r"no row belongs to unprivileged_groups"),
    ],
)
def test_bad_groups(frame, unprivileged, privileged, message):
    with pytest.raises(fairmaxent.InputError, match=message):
        FairMaxEntPreprocessing(unprivileged, privileged).fit(stand_in(frame, ["sex"]))


def test_bad_use(frame):
    with pytest.raises(
        fairmaxent.InputError, match="output is 'row'; did you mean 'rows'"
    ):
        FairMaxEntPreprocessing(UNPRIVILEGED, PRIVILEGED, output="row")
    adapter = FairMaxEntPreprocessing(UNPRIVILEGED, PRIVILEGED)
    with pytest.raises(fairmaxent.InputError, match="call fit or fit_transform"):
        adapter.transform(stand_in(frame, ["sex"]))
    with pytest.raises(fairmaxent.InputError, match="DataFrame has no favorable_label"):
        adapter.fit(frame)
    with pytest.raises(
        fairmaxent.errors.ColumnError, match="the data set has a column 'group'"
    ):
        adapter.fit(stand_in(frame.assign(group=1.0), ["sex"]))
    adapter.fit(stand_in(frame, ["sex"]))
    with pytest.raises(fairmaxent.InputError, match="not the data set that was fitted"):
        adapter.transform(stand_in(frame.assign(hours=40.0), ["sex"]))
