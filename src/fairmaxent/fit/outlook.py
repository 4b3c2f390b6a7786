"""Outlook: what a model trained on the result is expected to do."""

from __future__ import annotations

from dataclasses import dataclass

from fairmaxent.fairness.measure import ByGrouping


@dataclass(frozen=True)
class Outlook:
    """How a model does on the people of the data; what compares groups is by grouping, None where nothing can be."""

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    equalised_odds: ByGrouping  # worst ratio of true positive rates or of false positive rates
    calibration_gap: ByGrouping  # largest difference of what happened over what was promised


@dataclass(frozen=True)
class Downstream:
    """What a student, a model trained on the result, is expected to do, beside one trained on the data as they are.

    Estimated by cross-fitting: it decides about people whose rows neither it nor the fit has seen.
    """

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    threshold: float  # of the favourable outcome's probability, from which it decides for it
    remedy: str  # what to try where it is not fair enough
    before: Outlook
    after: Outlook
