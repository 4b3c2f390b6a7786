"""Massaging: change the labels of the people closest to the border, until every group
has the same rate.

Kamiran and Calders, "Classifying without discriminating", 2009, and "Data preprocessing
techniques for classification without discrimination", 2012, Algorithm 1.
"""

from typing import Any

from benchmarks.learners import Encoder
from benchmarks.people import Fold


def massage(fold: Fold) -> Any:
    """Return the training rows with the labels changed, ranked by a logistic regression
    of the same rows.
    """
    from sklearn.linear_model import LogisticRegression

    from fairmaxent.baselines.models import massaged

    features, labels = fold.features(fold.train), fold.labels(fold.train)
    seen = Encoder.of(features).indicators(features)
    scores = (
        LogisticRegression(max_iter=1000).fit(seen, labels).predict_proba(seen)[:, 1]
    )
    changed = massaged(labels, scores, fold.groups(fold.train))
    other = next(
        value for value in fold.train[fold.outcome] if value != fold.favourable
    )
    outcome = (
        fold.train[fold.outcome].where(~changed, fold.favourable).where(changed, other)
    )
    return fold.train.assign(
        **{fold.outcome: outcome.astype(fold.train[fold.outcome].dtype)}
    )
