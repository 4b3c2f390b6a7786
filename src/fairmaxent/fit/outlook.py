"""Outlook: what a model trained on the result is expected to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fairmaxent.fairness.measure import ByGrouping
from fairmaxent.metrics.trial import OVERALL

# What helps if a model is not fair enough: relabelling, equal decisions too, weights instead of rows, or nothing.
Remedy = Literal["relabel", "predictions", "weights", "none"]

Range = tuple[float, float]
Ranges = Mapping[str, Mapping[str, Range | None]]  # by quantity, and by grouping or OVERALL


@dataclass(frozen=True)
class Outlook:
    """How a model does on people it has not seen; comparisons are by grouping, None if there is nothing to compare."""

    accuracy: float
    auc: float
    by_predictions: ByGrouping  # statistical rate of its decisions
    by_probabilities: ByGrouping  # statistical rate of its mean probabilities
    equal_opportunity: ByGrouping  # worst ratio of true positive rates
    equalised_odds: ByGrouping  # worst ratio of true positive rates or of false positive rates
    calibration_gap: ByGrouping  # largest difference between groups in observed minus predicted rate
    decided: float | None = None  # share of people whom it decides for; of several favourable outcomes, for the rarest
    ranges: Ranges = field(default_factory=dict)  # 95 % ranges, see `metrics.trial`; fits of before have none

    def range_of(self, quantity: str, grouping: str = OVERALL) -> Range | None:
        """The range in which a quantity will be measured on other people; None if it is not known."""
        return self.ranges.get(quantity, {}).get(grouping)


@dataclass(frozen=True)
class Downstream:
    """What a student, a model trained on the result, is expected to do, beside one trained on the data as they are.

    Estimated by cross-fitting: it decides about people whose rows neither it nor the fit has seen.
    """

    student: str
    output: str  # what it learns from: "rows" or "weights"
    folds: int
    threshold: float  # the probability of the favourable outcome above which it decides for it
    remedy: Remedy
    before: Outlook
    after: Outlook
    blind: bool = False  # it does not see the protected columns
    rounds: int = 1  # how many times people were split into folds
    people: int = 0  # whom it decided about in each round; 0: not known
    measured_on: int = 0  # the ranges are those of measurements on so many other people; 0: there are none
    refitted: bool = True  # the fit was repeated without the people decided about; else its own labels were used
    remedied: ByGrouping | None = None  # rate of its decisions with the remedy, where it helps; None: it was not tried


@dataclass(frozen=True)
class NotEstimated:
    """Why there is no estimate: texts and options (`errors.Option`)."""

    why: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Later:
    """An estimate that is made when it is first asked for."""

    make: Callable[[], Downstream | NotEstimated]

    @cached_property
    def made(self) -> Downstream | NotEstimated:
        """The estimate."""
        return self.make()

    @property
    def is_made(self) -> bool:
        """Whether it was asked for already."""
        return "made" in vars(self)


Foresight = Downstream | NotEstimated | Later | None  # None: nothing was asked for
