"""Progress: the callback by which long work reports how far it is."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with a stage and how much of it is done, from 0 to 1; if it raises, the work
stops.
"""

# What is going on at each stage, for people; a stage that is not here says it itself.
STEPS = {
    "read": "reading the rows",
    "count": "counting the rows",
    "measure": "adding noise to the counts",
    "label": "learning labels",
    "train": "training your model, to find the table that it needs",
    "base": "fitting the base",
    "solve": "fitting",
    "estimate": "trying out a model, to estimate what it will do",
    "rows": "drawing rows",
}


def silent(stage: str, share: float) -> None:
    """Ignore the progress of stages."""


def unwatched(share: float) -> None:
    """Ignore the progress of a solver."""
