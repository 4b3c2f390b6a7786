"""Progress: how long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with a stage and how much of it is done, from 0 to 1; what it raises stops the work."""


def silent(stage: str, share: float) -> None:
    """Report nothing."""


def unwatched(share: float) -> None:
    """Look away."""
