"""Metrics: how groups differ in a frame, in predictions, or in a fit, with intervals and the groups behind a number.

A new metric is a function of `definitions`, and its name in the list below.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "representation_rate",
    "statistical_rate",
]


def __getattr__(name: str) -> Any:
    """Load a metric when it is first asked for, so that importing the package costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'fairmaxent.metrics' has no attribute {name!r}")
    home = "scorer" if name == "fair_scorer" else "definitions"
    return getattr(importlib.import_module(f"fairmaxent.metrics.{home}"), name)


def __dir__() -> list[str]:
    return list(__all__)
