"""Foresight: what the certificate expects of a model trained on the result, against what such a model then does.

The estimate is made from the people to learn from alone; the model is trained on the fit's weights and judged on people
that neither has seen, over several random splits, as the estimate of one small fold says little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.judging import judge_people
from benchmarks.learners import LEARNERS, Encoder
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.people import split
from benchmarks.process import JobFailedError, fresh

STUDENT = "gradient boosting"
WITHIN = 0.03

# What is asked of debias(), by name.
ASKED: Mapping[str, Mapping[str, str]] = {
    "reweigh": {},
    "relabel, predictions": {"relabel": "predictions"},
}
MEASURES = ("accuracy", "auc", "predictions", "probabilities")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    splits: Mapping[str, int]  # of each data set
    rows: int | None  # of each data set; None: all


FULL = Sizes(splits={"adult": 2, "german": 10, "compas": 5}, rows=None)
QUICK = Sizes(splits={"german": 1}, rows=600)


def measure(sizes: Sizes) -> Outcome:
    """Compare means over splits, each data set and request in a process of its own."""
    rows: list[tuple[Any, ...]] = []
    bars = []
    for data, splits in sizes.splits.items():
        for name in ASKED:
            found, why = None, ""
            try:
                found = np.array(fresh(expected_and_measured, data, name, splits, sizes.rows))
            except JobFailedError as problem:
                why = str(problem)
            worst = None
            if found is not None:
                means, spread = found.mean(axis=0), found.std(axis=0)
                worst = float(np.abs(means[0] - means[1]).max())
                for place, measured in enumerate(MEASURES):
                    rows.append((data, name, measured, *(float(m) for m in means[:, place]), float(spread[1, place])))
            bars.append(Bar(f"{data}, {name}: estimate against people not seen", worst, WITHIN, why=why))
    columns = ("data", "asked for", "measure", "expected", "measured", "standard deviation over splits")
    return Outcome(
        "Foresight",
        f"Means over random splits; {STUDENT} trained on weights. Rates by predictions at 0.5, and by probabilities.",
        (Table("", columns, tuple(rows)),),
        tuple(bars),
    )


def expected_and_measured(data: str, asked: str, splits: int, rows: int | None) -> list[Any]:
    """Of each split, the certificate's four numbers and the measured ones."""
    import fairmaxent

    found = []
    for number in range(splits):
        fold = split(data, number, rows)
        fit = fairmaxent.debias(
            fold.train, fold.outcome, fold.protected, favourable=fold.favourable, estimate="weights", **ASKED[asked]
        )
        after = fit.certificate.downstream.after
        expected = [
            after.accuracy, after.auc, after.by_predictions[fold.protected], after.by_probabilities[fold.protected]
        ]  # fmt: skip
        weighed = fit.weigh(fold.train, name="fair_weight")
        learner, encoder = LEARNERS[STUDENT], Encoder.of(fold.features(fold.train))
        model = learner.build(encoder)
        seen = learner.view(encoder, fold.features(weighed.drop(columns="fair_weight")))
        model.fit(seen, fold.labels(weighed), sample_weight=weighed["fair_weight"].to_numpy())
        chances = model.predict_proba(learner.view(encoder, fold.features(fold.test)))[:, 1]
        judged = judge_people(fold, chances, chances > 0.5)
        found.append([expected, [judged[name] for name in MEASURES]])
    return found
