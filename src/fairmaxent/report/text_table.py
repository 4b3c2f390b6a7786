"""A table of texts, as every form of the report shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextTable:
    """Heads and rows of texts; the first cell of a row names it, the others hold numbers unless ``words`` lists them.

    ``states`` has a word for each row ("good", "short", "bad" or none), about the column `state`.
    """

    label: str  # what the table shows
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = ()
    state: int | None = None
    states: tuple[str, ...] = ()

    def mark(self, row: int, column: int) -> str:
        """The state that a cell shows, if it shows one."""
        return self.states[row] if column == self.state else ""
