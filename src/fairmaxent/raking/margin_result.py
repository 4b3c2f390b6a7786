"""What became of a margin: its levels before and after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MarginLevel:
    """One level of a margin; shares are of the total weight."""

    level: str
    rows: int
    before: float
    wanted: float
    achieved: float
    effective_rows: float
    """How many equally weighted rows would carry as much information, with the new weights."""


@dataclass(frozen=True)
class MarginResult:
    """What became of one margin."""

    columns: tuple[str, ...]
    levels: tuple[MarginLevel, ...]

    @property
    def name(self) -> str:
        """Its columns as one text."""
        return " × ".join(self.columns)

    @property
    def largest_error(self) -> float:
        """The largest difference between an achieved and a wanted share."""
        return max(abs(level.achieved - level.wanted) for level in self.levels)
