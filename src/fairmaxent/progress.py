"""Progress: the callback by which long work reports how far it is."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with a stage and how much of it is done, from 0 to 1; if it raises, the work stops."""


def silent(stage: str, share: float) -> None:
    """Ignore the progress of stages."""


def unwatched(share: float) -> None:
    """Ignore the progress of a solver."""
