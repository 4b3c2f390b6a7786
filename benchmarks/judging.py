"""Judging: what a treatment did to the table, and what models trained on it do to real,
untouched people.
"""

import os
import time
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learners import LEARNERS, Encoder, Learner
from benchmarks.people import Fold, split
from benchmarks.treatments import TREATMENTS, Training

Reals = NDArray[np.float64]

THRESHOLD = 0.5
_DIGITS = 6  # kept of what is measured
_SHUFFLES = 200


def judge_splits(
    name: str, treatment: str, splits: list[int], rows: int | None, iterations: int
) -> list[Any]:
    """Judge one treatment on some splits of one table: a job of a process of its
    own.
    """
    return [
        judge(split(name, number, rows), treatment, iterations) for number in splits
    ]


def judge(fold: Fold, treatment: str, iterations: int) -> dict[str, Any]:
    """Measure one treatment on one fold; ``iterations`` bounds a treatment that trains
    many models.
    """
    treat = TREATMENTS[treatment].treat
    began = _cpu_seconds()
    training = Training(fold.train) if treat is None else treat(fold)
    seconds = _cpu_seconds() - began
    encoder = Encoder.of(fold.features(fold.train))
    models = {}
    for name, learner in LEARNERS.items():
        began = time.process_time()
        if treat is None:
            chances, predicted = _in_processing(fold, learner, encoder, iterations)
        else:
            chances = _chances(fold, training, learner, encoder)
            predicted = chances > THRESHOLD
        models[name] = judge_people(fold, chances, predicted) | {
            "seconds": time.process_time() - began
        }
    return _rounded(
        {
            "split": fold.seed,
            "seconds": seconds,
            "table": judge_table(fold, training),
            "models": models,
        }
    )


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _chances(
    fold: Fold, training: Training, learner: Learner, encoder: Encoder
) -> Reals:
    """Train, and return the predicted probability of the favourable outcome for the
    people of the test fold.
    """
    model = learner.build(encoder)
    seen, labels = (
        learner.view(encoder, fold.features(training.frame)),
        fold.labels(training.frame),
    )
    model.fit(seen, labels, sample_weight=training.weights)
    return model.predict_proba(learner.view(encoder, fold.features(fold.test)))[:, 1]


def _in_processing(
    fold: Fold, learner: Learner, encoder: Encoder, iterations: int
) -> tuple[Reals, NDArray[np.bool_]]:
    """fairlearn's ExponentiatedGradient: a random choice among models, its
    probabilities and one draw of it.
    """
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    train, test = (
        learner.view(encoder, fold.features(part)) for part in (fold.train, fold.test)
    )
    labels = fold.labels(fold.train).astype(int)
    model = ExponentiatedGradient(
        learner.build(encoder), DemographicParity(), max_iter=iterations
    )
    model.fit(train, labels, sensitive_features=fold.groups(fold.train))
    # the only way that fairlearn offers to its probabilities
    chances = model._pmf_predict(test)[:, 1]
    return chances, np.asarray(model.predict(test, random_state=fold.seed)) == 1


def judge_people(
    fold: Fold, chances: Reals, predicted: NDArray[np.bool_]
) -> dict[str, float | None]:
    """Accuracy, AUC, and the statistical rate by predictions and by probabilities, on
    the people of the test fold.
    """
    from sklearn.metrics import roc_auc_score

    labels, groups = fold.labels(fold.test), fold.groups(fold.test)
    return {
        "accuracy": float((predicted == labels).mean()),
        "auc": float(roc_auc_score(labels, chances)),
        "predictions": worst_ratio(group_means(predicted, groups)),
        "probabilities": worst_ratio(group_means(chances, groups)),
        "predictions, shuffled": shuffled_ratio(predicted, groups),
        "probabilities, shuffled": shuffled_ratio(chances, groups),
    }


def judge_table(fold: Fold, training: Training) -> dict[str, float | None]:
    """Rates of the table itself, its distance from the people it came from, and how
    many of its rows they are.
    """
    frame, weights = training.frame, training.weights
    weights = np.ones(len(frame)) if weights is None else weights
    groups = fold.groups(frame)
    codes, old = fold.domain.encode(frame), fold.domain.encode(fold.train)
    one, two = marginal_distances(codes, weights, old, fold.domain.sizes)
    return {
        "representation": worst_ratio(np.bincount(groups, weights)),
        "statistical": worst_ratio(group_means(fold.labels(frame), groups, weights)),
        "distance 1": one,
        "distance 2": two,
        "copies": _copied(frame, fold.train, weights),
        "same levels": _copied(_framed(codes), _framed(old), weights),
    }


def group_means(
    values: NDArray[Any], groups: NDArray[np.intp], weights: Reals | None = None
) -> Reals:
    """Return the weighted mean of the values in each group."""
    weights = np.ones(len(values)) if weights is None else weights
    return np.bincount(groups, weights * values) / np.bincount(groups, weights)


def worst_ratio(values: Reals) -> float | None:
    """Smallest over largest; None where all are zero.

    >>> worst_ratio(np.array([0.2, 0.4])), worst_ratio(np.array([0.0, 0.0]))
    (0.5, None)
    """
    return float(values.min() / values.max()) if values.max() > 0 else None


def shuffled_ratio(values: NDArray[Any], groups: NDArray[np.intp]) -> float | None:
    """Return the mean of `worst_ratio` where people's groups are dealt anew: what an
    exactly fair model would measure.

    Few people differ by chance, and the smallest over the largest is below 1 whichever
    group is ahead.
    """
    if not np.any(values):
        return None
    rng = np.random.default_rng(0)
    ratios = [
        worst_ratio(group_means(values, rng.permutation(groups)))
        for _ in range(_SHUFFLES)
    ]
    return float(np.mean([ratio for ratio in ratios if ratio is not None]))


def marginal_distances(
    codes: NDArray[Any], weights: Reals, old: NDArray[Any], sizes: tuple[int, ...]
) -> tuple[float, float]:
    """Total variation ½ Σ |p − q| between two tables: mean over all columns, and over
    all pairs of columns.
    """
    alone = [
        _variation(codes[:, [a]], weights, old[:, [a]], sizes[a : a + 1])
        for a in range(len(sizes))
    ]
    pairs = [
        _variation(codes[:, [a, b]], weights, old[:, [a, b]], (sizes[a], sizes[b]))
        for a, b in combinations(range(len(sizes)), 2)
    ]
    return float(np.mean(alone)), float(np.mean(pairs))


def _variation(
    codes: NDArray[Any], weights: Reals, old: NDArray[Any], sizes: tuple[int, ...]
) -> float:
    cells, old_cells = (
        np.ravel_multi_index(tuple(own.T.astype(np.intp)), sizes)
        for own in (codes, old)
    )
    new = np.bincount(cells, weights, minlength=int(np.prod(sizes)))
    before = np.bincount(old_cells, minlength=int(np.prod(sizes)))
    return float(np.abs(new / new.sum() - before / before.sum()).sum() / 2)


def _copied(frame: Any, old: Any, weights: Reals) -> float:
    """Share of the rows, by weight, that equal an old row in every column."""
    import pandas as pd

    new, known = (pd.util.hash_pandas_object(own, index=False) for own in (frame, old))
    return float(weights @ new.isin(known).to_numpy() / weights.sum())


def _framed(codes: NDArray[Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(codes)


def _rounded(record: Any) -> Any:
    if isinstance(record, dict):
        return {name: _rounded(value) for name, value in record.items()}
    return round(record, _DIGITS) if isinstance(record, float) else record
