"""Drawn rows against weights: what a model learns from them, tested on real people it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.outcome import Bar, Outcome, Table

DEFAULT_LOSS, INVENTED_LOSS = 0.01, 0.03
PROTECTED = {"adult": "sex", "german": "sex", "compas": "race"}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "rows, by default": {},
    "rows, detail bins": {"detail": "bins"},
    "rows, base_share 0": {"base_share": 0.0},
    "rows, base_share 1": {"base_share": 1.0},
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    splits: Mapping[str, int]  # of each data set


FULL = Sizes(splits={"adult": 3, "german": 20, "compas": 5})
QUICK = Sizes(splits={"german": 2})


def measure(sizes: Sizes) -> Outcome:
    """Train on weighted rows and on drawn rows of the same size, and compare."""
    rows, bars = [], []
    for name, splits in sizes.splits.items():
        found = [split(name, seed) for seed in range(splits)]
        reference = np.array([one["Kamiran–Calders weights"]["auc"] for one in found])
        for method in found[0]:
            own = [one[method] for one in found]
            loss = reference - [one["auc"] for one in own]
            mean, error = float(loss.mean()), float(loss.std() / np.sqrt(max(splits - 1, 1)))
            shown = (float(np.mean([one[key] for one in own])) for key in ("auc", "rate", "copies"))
            rows.append((name, splits, method, *shown, mean, error))
            if method in ("rows, by default", "rows, base_share 1"):
                limit = DEFAULT_LOSS if method == "rows, by default" else INVENTED_LOSS
                bars.append(Bar(f"{name}, {method}: AUC lost to weights", mean, limit))
    columns = (
        "data", "splits", "learned from", "AUC", "statistical rate of the rows", "exact copies of real rows",
        "AUC lost to weights", "its standard error",
    )  # fmt: skip
    return Outcome(
        "Rows",
        "Gradient boosting with scikit-learn's defaults learns from as many drawn rows as there are, and is tested on "
        "30 % of the real rows, which the fit has not seen.",
        (Table("", columns, tuple(rows)),),
        tuple(bars),
    )


def split(name: str, seed: int) -> dict[str, dict[str, float]]:
    """AUC, the rows' own rate and the copies among them, for every method on one split."""
    from sklearn.model_selection import train_test_split

    import fairmaxent
    from fairmaxent import baselines, datasets

    data = datasets.load(name)  # type: ignore[arg-type]
    outcome, protected, favourable = data.outcome, PROTECTED[name], data.favourable
    train, test = train_test_split(data.frame, test_size=0.3, random_state=seed, stratify=data.frame[outcome])
    weights = baselines.kamiran_calders(train, outcome, protected).weights()
    found = {"Kamiran–Calders weights": {"auc": auc(train, test, outcome, favourable, weights), "rate": 1, "copies": 1}}
    for method, asked in ASKED.items():
        fit = fairmaxent.debias(train, outcome, protected, favourable=favourable, random_state=seed, **asked)
        drawn = fit.sample(len(train))
        rate = fairmaxent.statistical_rate(drawn, outcome, protected, favourable=favourable)
        copies = (drawn.merge(train.drop_duplicates(), how="left", indicator=True)["_merge"] == "both").mean()
        found[method] = {"auc": auc(drawn, test, outcome, favourable), "rate": float(rate), "copies": float(copies)}
    return found


def auc(train: Any, test: Any, outcome: str, favourable: object, weights: Any = None) -> float:
    """Area under the ROC curve on the test rows of gradient boosting that learned from the others."""
    import pandas
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    both = pandas.concat([train, test]).drop(columns=outcome)
    text = [name for name in both if not pandas.api.types.is_numeric_dtype(both[name])]
    both = both.assign(**{name: _categories(both[name]) for name in text})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(both[: len(train)], train[outcome] == favourable, sample_weight=weights)
    return float(roc_auc_score(test[outcome] == favourable, model.predict_proba(both[len(train) :])[:, 1]))


def _categories(column: Any) -> Any:
    """Text as categories; the rarest beyond what the model takes are missing."""
    known = column.value_counts().index[:250]
    return column.where(column.isin(known)).astype("category")
