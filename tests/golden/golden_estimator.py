"""Golden cases: the scikit-learn estimator, and the preprocessing step for AIF360."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fairmaxent.aif360 import FairMaxEntPreprocessing
from golden_results import array, csv, people_in_pandas


def _estimator():
    """The class of the estimator, which needs scikit-learn."""
    pytest.importorskip("sklearn")
    from fairmaxent import FairMaxEnt

    return FairMaxEnt


def estimator_resample():
    table, results = people_in_pandas(), {}
    X, y = table.drop(columns="income"), table["income"]
    for name, options in {"plain": {}, "rows": {"rows": 100, "favourable": ">50K", "statistical_rate": 0.9}}.items():
        sampler = _estimator()(["sex", "race"], random_state=1, **options)
        fair_X, fair_y = sampler.fit_resample(X, y)
        classes = sampler.sampling_strategy_
        results |= {f"{name}, X": csv(fair_X), f"{name}, y": csv(fair_y), f"{name}, classes": classes}
    sampled_X, sampled_y = sampler.sample(40, given={"sex": "Female"}, random_state=3)
    weights = array(sampler.sample_weight_)
    return results | {"weights": weights, "sampled X": csv(sampled_X), "sampled y": csv(sampled_y)}


class _BinaryLabelDataset(SimpleNamespace):
    """The attributes and methods of AIF360's class of this name that fairmaxent uses."""

    def copy(self, deepcopy=False):
        return copy.deepcopy(self) if deepcopy else copy.copy(self)

    def convert_to_dataframe(self):
        table = pd.DataFrame(self.features, columns=self.feature_names, index=self.instance_names)
        table[self.protected_attribute_names] = self.protected_attributes
        return table.assign(label=self.labels.ravel()), {}


def _aif360_data():
    """Sex, three regions, a one-hot coded school, hours, and labels."""
    rng = np.random.default_rng(0)
    sex, region = rng.random(500) < 0.7, rng.choice(3, 500)
    label = rng.random(500) < 0.2 + 0.4 * sex + 0.1 * region
    school = pd.get_dummies(rng.choice(["a", "b", "c"], 500), prefix="school", prefix_sep="=")
    hours = rng.normal(40, 5, 500).round() + 5 * label
    features = pd.DataFrame({"sex": sex, "region": region}).join(school).assign(hours=hours).astype(float)
    return _BinaryLabelDataset(
        features=features.to_numpy(),
        feature_names=features.columns.tolist(),
        labels=label.astype(float)[:, None],
        label_names=["label"],
        scores=label[:, None],
        protected_attributes=features[["sex", "region"]].to_numpy(),
        protected_attribute_names=["sex", "region"],
        instance_weights=rng.integers(2, 7, 500) / 4,
        instance_names=[str(row) for row in range(500)],
        favorable_label=1.0,
        unfavorable_label=0.0,
    )


def aif360_datasets():
    groups = [{"sex": 0.0}], [{"sex": 1.0, "region": 0.0}, {"sex": 1.0, "region": 1.0}]
    results = {}
    for name, options in {
        "weights": {},
        "reweighing": {"representation_rate": None, "target": {"group": None, "label": None}},
        "rows": {"output": "rows", "statistical_rate": 0.9},
    }.items():
        fair = FairMaxEntPreprocessing(*groups, random_state=5, **options).fit_transform(_aif360_data())
        results |= {
            f"{name}, weights": array(fair.instance_weights),
            f"{name}, features": array(fair.features),
            f"{name}, labels": array(fair.labels),
        }
    return results
