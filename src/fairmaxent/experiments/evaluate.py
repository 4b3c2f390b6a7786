"""What is measured: on drawn rows, on classifiers trained on them, and on the distribution itself."""

from __future__ import annotations

from typing import Any

import numpy as np

import fairmaxent
from fairmaxent.experiments.data import ExperimentData, Reals, correlation

_SMALLEST = 1e-7  # added to the share of every point of the raw data, as in the authors' code


def measure_rows(rows: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Fairness of drawn rows, and their distance from the raw data."""
    rate = fairmaxent.statistical_rate(rows, data.outcome, protected, favourable=data.favourable)
    numbers = data.numbers(rows)
    measured = {
        "data_sr": float(rate),
        "data_rr": float(fairmaxent.representation_rate(rows, protected)),
        "correlation_distance": float(((correlation(numbers) - data.raw_correlation) ** 2).sum()),
        "covariance_distance": float(((np.cov(numbers, rowvar=False) - data.raw_covariance) ** 2).sum()),
    }
    if data.is_enumerable:
        measured["kl_plugin"] = divergence(data.probabilities(rows), data.raw_probabilities)
    return measured


def measure_exactly(distribution: fairmaxent.Distribution, data: ExperimentData) -> dict[str, float]:
    """KL divergence from the raw data, computed from the distribution itself, without drawing rows."""
    if not data.is_enumerable:
        return {}
    points = distribution.marginal(data.domain.names)
    probabilities = data.probabilities(points, points["probability"].to_numpy())
    return {"kl_exact": divergence(probabilities, data.raw_probabilities)}


def measure_classifiers(rows: Any, test: Any, data: ExperimentData, protected: str) -> dict[str, float]:
    """Train on drawn rows, test on the real rows of the fold. The protected column is a feature, as in the paper."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    features, outcomes = data.split(rows)
    test_features, test_outcomes = data.split(test)
    measured: dict[str, float] = {}
    for name, classifier in (("tree", DecisionTreeClassifier(random_state=0)), ("bayes", GaussianNB())):
        chance = classifier.fit(features, outcomes).predict_proba(test_features)[:, 1].clip(0.0, 1.0)
        predicted = chance > 0.5
        rates = fairmaxent.statistical_rate
        measured |= {
            f"{name}_accuracy": float((predicted == test_outcomes).mean()),
            f"{name}_sr_probabilities": float(rates(test, chance, protected, favourable=1, as_probability=True)),
            # If the outcome is predicted for nobody, there is no ratio.
            f"{name}_sr_predictions": float(rates(test, predicted, protected, favourable=True))
            if predicted.any()
            else float("nan"),
        }
    return measured


def divergence(probabilities: Reals, raw: Reals) -> float:
    """KL(p ‖ raw + 1e-7), with the second argument normalised again."""
    seen = probabilities > 0
    reference = raw + _SMALLEST
    return float(probabilities[seen] @ np.log(probabilities[seen] / reference[seen]) + np.log(reference.sum()))
