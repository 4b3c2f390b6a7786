"""The front door through which a report was asked for, so that it names options as its readers know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairmaxent.errors import Option, spelled


@dataclass(frozen=True)
class FrontDoor:
    """Python, the command line or the app: how options are spelled there, and what others are told about that."""

    where: str
    spell: Callable[[Option], str]

    def said(self, parts: tuple[object, ...]) -> str:
        """Join texts and options to one text."""
        return spelled(parts, self.spell)

    @property
    def note(self) -> str:
        """What a reader who came in by another door should know."""
        return f"options are named as {self.where}"


IN_PYTHON = FrontDoor("in Python", str)
