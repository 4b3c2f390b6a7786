"""Massaging: change the labels of the people closest to the border, until every group has the same rate.

Kamiran and Calders, "Classifying without discriminating", 2009, and "Data preprocessing techniques for classification
without discrimination", 2012, Algorithm 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learners import Encoder
from benchmarks.people import Fold


def massage(fold: Fold) -> Any:
    """Return the training rows with the labels changed, ranked by a logistic regression of the same rows."""
    from sklearn.linear_model import LogisticRegression

    features, labels = fold.features(fold.train), fold.labels(fold.train)
    seen = Encoder.of(features).indicators(features)
    scores = LogisticRegression(max_iter=1000).fit(seen, labels).predict_proba(seen)[:, 1]
    changed = massaged_labels(labels, scores, fold.groups(fold.train))
    other = next(value for value in fold.train[fold.outcome] if value != fold.favourable)
    outcome = fold.train[fold.outcome].where(~changed, fold.favourable).where(changed, other)
    return fold.train.assign(**{fold.outcome: outcome.astype(fold.train[fold.outcome].dtype)})


def massaged_labels(
    labels: NDArray[np.bool_], scores: NDArray[np.float64], groups: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Promote the best-scored of a group below the overall rate, demote the worst-scored of one above it.

    For two groups the numbers of changes are the paper's M = (P(+ | a) − P(+ | b))·|a|·|b| / N in each of them, and
    this form holds for any number of groups.
    """
    result, rate = labels.copy(), labels.mean()
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        changes = round(len(rows) * rate - labels[rows].sum())
        movable = rows[labels[rows] != (changes > 0)]
        border = movable[np.argsort(-scores[movable] if changes > 0 else scores[movable], kind="stable")]
        result[border[: abs(changes)]] = changes > 0
    return result
