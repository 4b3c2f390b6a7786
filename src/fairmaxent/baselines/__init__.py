"""Other methods that people use today, all called the same way.

They take a frame, its outcome and its protected columns. Every result has
``sample(n)``, ``marginal(columns)`` (exact) and ``weights()``, so one loop can compare
them all, and :func:`fairmaxent.metrics.statistical_rate` and
:func:`fairmaxent.metrics.representation_rate` accept each of them.
"""

from fairmaxent.baselines.data import (
    WeightedRows,
    kamiran_calders,
    king_zeng,
    raw,
)
from fairmaxent.baselines.models import massaging

__all__ = [
    "WeightedRows",
    "kamiran_calders",
    "king_zeng",
    "massaging",
    "raw",
]
