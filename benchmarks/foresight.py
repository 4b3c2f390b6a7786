"""Foresight: what the certificate expects of a model trained on the result, against
what such a model then does.

The estimate is made from the people to learn from alone; the model is trained on the
fit's weights and judged on people that neither has seen, over several random splits. An
estimate is good if it is near what is measured, or if what is measured is in the stated
95 % range: people not seen are a sample too, and of a small table a small one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.judging import judge_people
from benchmarks.learners import LEARNERS, Encoder
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.people import TABLES, split
from benchmarks.process import JobFailedError, fresh

WITHIN = 0.03  # of what is measured
GOOD = 0.9  # of all estimates

# What is asked of relabelling, by name; None: rows are reweighed.
ASKED: Mapping[str, str | None] = {"reweigh": None, "relabel": "probabilities"}
MEASURES = ("accuracy", "auc", "predictions", "probabilities")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    tables: Sequence[str]
    splits: int
    rows: int | None  # of each data set; None: all


FULL = Sizes(tables=TABLES, splits=5, rows=None)
QUICK = Sizes(tables=("german",), splits=1, rows=600)


def measure(sizes: Sizes) -> Outcome:
    """Compare estimates with measurements, each data set and request in a process of
    its own.
    """
    rows: list[tuple[Any, ...]] = []
    bars = []
    for data in sizes.tables:
        for asked in ASKED:
            compared, why = None, ""
            try:
                compared = fresh(
                    expected_and_measured, data, asked, sizes.splits, sizes.rows
                )
            except JobFailedError as problem:
                why = str(problem)
            rows += (
                []
                if compared is None
                else [(data, asked, *cell) for cell in _cells(compared)]
            )
            share = (
                None
                if compared is None
                else float(np.mean([_is_good(own).mean() for own in compared.values()]))
            )
            name = (
                f"{data}, {asked}: share of estimates within {WITHIN:g} of people not"
                " seen, or with them in their range"
            )
            bars.append(Bar(name, share, GOOD, at_least=True, why=why))
    columns = (
        "data",
        "asked for",
        "model",
        "measure",
        "expected",
        "measured",
        "width of the range",
        "splits inside it",
        "splits inside or near",
    )
    return Outcome(
        "Foresight",
        "Means over random splits; models trained on weights. Rates by predictions at"
        " 0.5, and by probabilities.",
        (Table("", columns, tuple(rows)),),
        tuple(bars),
    )


def _cells(compared: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Of each model and measure: the mean estimate and measurement, the share of splits
    inside the range, and good.
    """
    for model, of_splits in compared.items():
        expected, low, high, measured = np.moveaxis(
            np.array(of_splits, dtype=float), 1, 0
        )
        inside, good = (low <= measured) & (measured <= high), _is_good(of_splits)
        for column, name in enumerate(MEASURES):
            shown = (expected, measured, high - low, inside, good)
            yield model, name, *(float(values[:, column].mean()) for values in shown)


def _is_good(of_splits: Sequence[Any]) -> NDArray[np.bool_]:
    """Whether each estimate (splits × measures) is near what is measured, or has it in
    its range.
    """
    expected, low, high, measured = np.moveaxis(np.array(of_splits, dtype=float), 1, 0)
    return (np.abs(expected - measured) <= WITHIN) | (
        (low <= measured) & (measured <= high)
    )


def expected_and_measured(
    data: str, asked: str, splits: int, rows: int | None
) -> dict[str, Any]:
    """By model, of each split: the certificate's four numbers, their lower and upper
    ends, and the measured ones.
    """
    import fairmaxent

    compared: dict[str, Any] = {name: [] for name in LEARNERS}
    for number in range(splits):
        fold = split(data, number, rows)
        for name, learner in LEARNERS.items():
            encoder = Encoder.of(fold.features(fold.train))
            model = learner.build(encoder)
            # The library's own gradient boosting, or the user's classifier.
            student = None if name == "gradient boosting" else model
            wanted = None
            if ASKED[asked] is not None:
                wanted = fairmaxent.Model("boosting", parity=ASKED[asked])
            fit = fairmaxent.debias(
                fold.train,
                fold.outcome,
                fold.protected,
                favourable=fold.favourable,
                model=wanted,
                estimate=fairmaxent.Estimate(output="weights", model=student),
            )
            weighed = fit.weigh(fold.train, weight_name="fair_weight")
            seen = learner.view(
                encoder, fold.features(weighed.drop(columns="fair_weight"))
            )
            model.fit(
                seen,
                fold.labels(weighed),
                sample_weight=weighed["fair_weight"].to_numpy(),
            )
            chances = model.predict_proba(
                learner.view(encoder, fold.features(fold.test))
            )[:, 1]
            judged = judge_people(fold, chances, chances > 0.5)
            compared[name].append(
                [
                    *_expected(fit, fold.protected),
                    [judged[measure] for measure in MEASURES],
                ]
            )
    return compared


def _expected(fit: Any, grouping: str) -> list[list[float]]:
    """The four numbers, their lower ends and their upper ends."""
    after = fit.certificate.estimate.after
    compared = [after.by_predictions[grouping], after.by_probabilities[grouping]]
    ranges = [
        after.range_of("accuracy"),
        after.range_of("auc"),
        after.range_of("by_predictions", grouping),
        after.range_of("by_probabilities", grouping),
    ]
    return [
        [after.accuracy, after.auc, *compared],
        *([span[end] for span in ranges] for end in (0, 1)),
    ]
