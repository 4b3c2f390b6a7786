"""A certificate from a file, trusted only after its fields have the types and ranges that they can have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.estimate import ModelEstimate, ModelScores
from fairmaxent.fit.record_types import check_fields
from fairmaxent.fit.relabel import Decisions


def check_ranges(certificate: Certificate) -> None:
    """Refuse fields of other types, and numbers that nothing measured can be."""
    check_fields(certificate)
    estimate, decisions = certificate.estimate, certificate.decisions
    numbers: list[Any] = [certificate.wanted, certificate.before, certificate.achieved, *certificate.filled_shares]
    if estimate is not None:
        numbers += _estimated(estimate)
    if decisions is not None:
        numbers += _decided(decisions)
    if not all(0 <= number <= 1 + 1e-9 or math.isnan(number) for number in _numbers(numbers)):
        raise ValueError("a rate or share of the certificate is outside its range")
    str(certificate)  # raises if groupings do not fit together


def _estimated(estimate: ModelEstimate) -> list[Any]:
    """What lies between 0 and 1 in an estimate; its counts are refused here."""
    if min(estimate.folds, estimate.rounds, estimate.people, estimate.measured_on) < 0:
        raise ValueError("the estimate of the certificate counts below zero")
    both: list[ModelScores] = [estimate.before, estimate.after]
    fields = ("accuracy", "auc", "by_predictions", "by_probabilities", "equal_opportunity", "equalised_odds", "decided")
    numbers = [getattr(scores, name) for scores in both for name in (*fields, "calibration_gap")]
    return [*numbers, estimate.threshold, estimate.remedied, *(scores.ranges for scores in both)]


def _decided(decisions: Decisions) -> list[Any]:
    if min(decisions.folds, decisions.rounds) < 0:
        raise ValueError("the decisions of the certificate count below zero")
    rates = [(rate.wanted, rate.rate, rate.low, rate.high) for rate in decisions.rates]
    return [decisions.threshold, *rates, *((share.share, share.low, share.high) for share in decisions.shares)]


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in nested mappings and sequences; None is no number."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield float(value)
