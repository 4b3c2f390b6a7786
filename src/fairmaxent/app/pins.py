"""Pins: scenarios that are kept by name, to be compared with others and to be put back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fairmaxent.app.fitted import Fitted
from fairmaxent.app.scenario import Scenario
from fairmaxent.errors import InputError
from fairmaxent.plain_text import visible

MOST_PINS = 3
_NAME_LENGTH = 40


@dataclass(frozen=True, eq=False)
class Pin:
    """One scenario with its fit, which need not be made again when the scenario is put back."""

    number: int
    name: str
    fitted: Fitted
    answer: dict[str, Any]  # what See showed

    def to_json(self) -> dict[str, Any]:
        """The pin as plain values, for the page."""
        return {"number": self.number, "name": self.name, "answer": self.answer}


class Pins:
    """The pins of the table that is open."""

    def __init__(self) -> None:
        self._pins: list[Pin] = []
        self._added = 0

    def to_json(self) -> list[dict[str, Any]]:
        """All of them, oldest first."""
        return [pin.to_json() for pin in self._pins]

    def add(self, number: int, fitted: Fitted, answer: dict[str, Any]) -> None:
        """Pin a scenario; none of the others goes for it, as people may have named them."""
        if len(self._pins) >= MOST_PINS:
            raise InputError(f"{MOST_PINS} scenarios are pinned already; remove one of them first")
        self._added += 1
        self._pins.append(Pin(number, f"Pin {self._added}", fitted, answer))

    def rename(self, number: int, name: object) -> None:
        """Give a pin another name; an empty one changes nothing."""
        given = visible(name).strip()[:_NAME_LENGTH] if isinstance(name, str) else ""
        self._pins = [replace(pin, name=given or pin.name) if pin.number == number else pin for pin in self._pins]

    def remove(self, number: int) -> None:
        """Forget a pin."""
        self._pins = [pin for pin in self._pins if pin.number != number]

    def update(self, fitted: Fitted, answer: dict[str, Any]) -> None:
        """Let pins of the same scenario know what was found out about it later."""
        given = fitted.scenario.to_json()
        same = [pin.fitted.scenario.to_json() == given for pin in self._pins]
        self._pins = [
            replace(pin, fitted=fitted, answer=answer) if is_same else pin
            for pin, is_same in zip(self._pins, same, strict=True)
        ]

    def fitted_as(self, scenario: Scenario) -> Fitted | None:
        """The fit of a scenario, if it was pinned."""
        known = (pin.fitted.taken_as(scenario) for pin in reversed(self._pins))
        return next((fitted for fitted in known if fitted is not None), None)
