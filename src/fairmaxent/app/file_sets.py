"""File sets: which files were made from a table, so that files of another result get names of their own."""

from __future__ import annotations


class FileSets:
    """What was made, in this order; what makes the same bytes is the same set.

    >>> sets = FileSets()
    >>> sets.number("a"), sets.number("b")  # nothing is made yet
    (1, 1)
    >>> sets.add("a")
    >>> sets.number("a"), sets.number("b")
    (1, 2)
    """

    def __init__(self) -> None:
        self._made: list[str] = []

    def number(self, made_from: str) -> int:
        """The number of a set, or the one that it will have."""
        return 1 + (self._made.index(made_from) if made_from in self._made else len(self._made))

    def add(self, made_from: str) -> None:
        """Remember that a set was made."""
        if made_from not in self._made:
            self._made.append(made_from)


def numbered(tag: str, number: int) -> str:
    """A part of a file name, with the number of its set.

    >>> numbered("-report", 1), numbered("-report", 2)
    ('-report', '-report-2')
    """
    return tag if number == 1 else f"{tag}-{number}"
