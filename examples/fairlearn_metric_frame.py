"""A classifier of Adult trained on the table as it is, on fair rows and with fair
weights, measured with fairlearn.
"""

from __future__ import annotations

from typing import Any

from fairlearn.metrics import MetricFrame, selection_rate
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import fairmaxent
from fairmaxent.estimator import FairMaxEnt


def classifiers() -> dict[str, Any]:
    """A linear and a boosted model, each with the encoding it needs."""
    text, numbers = (
        make_column_selector(dtype_exclude="number"),
        make_column_selector(dtype_include="number"),
    )
    dummies = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers)
    )
    codes = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), text),
        remainder="passthrough",
    )
    return {
        "logistic": make_pipeline(dummies, LogisticRegression(max_iter=300)),
        "boosted": make_pipeline(
            codes, HistGradientBoostingClassifier(max_iter=30, random_state=0)
        ),
    }


def main() -> None:
    """Train each model three ways and compare what it does to women and men of the test
    set.
    """
    adult = fairmaxent.datasets.load("adult")
    table = adult.frame.drop(columns="final_weight")
    X, y = (
        table.drop(columns=adult.outcome),
        (table[adult.outcome] == adult.favourable).rename("rich"),
    )
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    fair = FairMaxEnt("sex", random_state=0)
    X_fair, y_fair = fair.fit_resample(X_train, y_train)
    trainings = {
        "raw rows": (X_train, y_train, None),
        "fair rows": (X_fair, y_fair, None),
        "fair weights": (X_train, y_train, fair.sample_weight_),
    }
    print(
        f"{'trained on':<14}{'model':<10}{'accuracy':>10}"
        f"{'women >50K':>12}{'men >50K':>10}{'ratio':>8}"
    )
    for training, (features, labels, weights) in trainings.items():
        for name, model in classifiers().items():
            model.fit(
                features, labels, **{f"{model.steps[-1][0]}__sample_weight": weights}
            )
            measured = MetricFrame(
                metrics={"accuracy": accuracy_score, "rate": selection_rate},
                y_true=y_test,
                y_pred=model.predict(X_test),
                sensitive_features=X_test["sex"],
            )
            rates = measured.by_group["rate"]
            print(
                f"{training:<14}{name:<10}{measured.overall['accuracy']:>10.3f}{rates['Female']:>12.3f}"
                f"{rates['Male']:>10.3f}{measured.ratio()['rate']:>8.3f}"
            )


if __name__ == "__main__":
    main()
