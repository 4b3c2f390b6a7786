"""Metrics: how groups differ in a frame, in predictions, or in a fit.

With intervals, and the groups behind a number.

A new metric is a function of `definitions`, and its name in the list below.
"""

from fairmaxent.metrics.definitions import (
    calibration,
    conditional_demographic_disparity,
    equal_opportunity,
    equalised_odds,
    representation_rate,
    statistical_rate,
)
from fairmaxent.metrics.scorer import fair_scorer

__all__ = [
    "calibration",
    "conditional_demographic_disparity",
    "equal_opportunity",
    "equalised_odds",
    "fair_scorer",
]
__all__ += ["representation_rate", "statistical_rate"]
