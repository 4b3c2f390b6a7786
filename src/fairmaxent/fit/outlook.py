"""Outlook: what a model trained on the result is expected to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fairmaxent.fairness.measure import ByGrouping

# What to try if a model is not fair enough: relabelling, equal decisions too, weights instead of rows, or nothing.
Remedy = Literal["relabel", "predictions", "weights", "none"]


@dataclass(frozen=True)
class Outlook:
    """How a model does on the people of the data; comparisons are by grouping, None if there is nothing to compare."""

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    equalised_odds: ByGrouping  # worst ratio of true positive rates or of false positive rates
    calibration_gap: ByGrouping  # largest difference between groups in observed minus predicted rate


@dataclass(frozen=True)
class Downstream:
    """What a student, a model trained on the result, is expected to do, beside one trained on the data as they are.

    Estimated by cross-fitting: it decides about people whose rows neither it nor the fit has seen.
    """

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    threshold: float  # the probability of the favourable outcome from which it decides for it
    remedy: Remedy
    before: Outlook
    after: Outlook
