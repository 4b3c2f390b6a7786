"""Fits of the app: the rows they are made from, each fit with its scenario and estimates, and those that are pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairmaxent.app.refusals import UnspentError
from fairmaxent.app.scenario import Scenario
from fairmaxent.data.roles import Reading
from fairmaxent.errors import InputError
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.option_values import OutputOption
from fairmaxent.fit.pipeline import read_frame
from fairmaxent.fit.request import Request
from fairmaxent.plain_text import visible

MOST_PINS = 3
_NAME_LENGTH = 40  # of a pin


class Readings:
    """The rows in codes: the newest reading, and the newest private one, whose noise is paid for only once."""

    def __init__(self) -> None:
        self._newest: dict[bool, tuple[object, Reading]] = {}  # by whether it is private
        self.spent: list[str] = []  # the budget of each private look, as text

    def get(self, scenario: Scenario, request: Request, *, spend: bool) -> Reading:
        """Read the rows, unless they are there; a new private look needs leave to ``spend`` its budget."""
        key, private = _key(scenario, request), request.privacy is not None
        newest = self._newest.get(private)
        if newest is not None and newest[0] == key:
            return newest[1]
        if private and not spend:
            raise UnspentError
        self._newest.pop(private, None)  # two tables need not be in memory at once
        self.spent += [str(request.privacy)] if private else []
        try:
            frame = scenario.file.frame
            data = read_frame(frame, scenario.with_domain(request, frame))
        except Exception as problem:
            if private and "has spent" not in str(problem):  # as `after_spending` says of what fails too late
                self.spent.pop()
            raise
        self._newest[private] = key, data
        return data


def _key(scenario: Scenario, request: Request) -> object:
    """All that the reading depends on."""
    roles = (request.outcome, request.also_names, request.protected_names, request.within_names, request.weight)
    columns = (scenario.drop, scenario.columns_as, scenario.domain_text, request.detail, request.release)
    if request.privacy is not None:
        return repr((roles, columns, replace(request.privacy), request.forbid))
    return repr((scenario.needs_rows_in_memory, roles, columns, sorted(request.named_columns)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scenario and its fit; estimates are kept apart, by what the model is trained on."""

    scenario: Scenario
    bare: Fit  # without an estimate
    estimates: Mapping[OutputOption, Fit] = field(default_factory=dict)

    @property
    def output(self) -> OutputOption:
        """What a model will be trained on, if this is taken."""
        return "weights" if self.scenario.mode == "weights" else "rows"

    @property
    def fit(self) -> Fit:
        """The fit, with the estimate for what is taken, if there is one."""
        return self.estimates.get(self.output, self.bare)

    @property
    def estimated(self) -> OutputOption | None:
        """What the estimate is about; None if there is none for what is taken."""
        return self.output if self.output in self.estimates else None

    def taken_as(self, scenario: Scenario) -> Fitted | None:
        """The same fit for a scenario that differs only in what is taken; None if it needs another fit."""
        return replace(self, scenario=scenario) if self.scenario.fits_like(scenario) else None

    def with_estimate(self, fit: Fit) -> Fitted:
        """The same with an estimate for what is taken."""
        return replace(self, estimates={**self.estimates, self.output: fit})


@dataclass(frozen=True, eq=False)
class Pin:
    """A scenario that is kept by name, with its fit, which need not be made again when the scenario is put back."""

    number: int
    name: str
    fitted: Fitted
    answer: dict[str, Any]  # what See showed


class Pins:
    """The pins of the table that is open, oldest first."""

    def __init__(self) -> None:
        self._pins: list[Pin] = []
        self._added = 0

    def to_json(self) -> list[dict[str, Any]]:
        """All of them as plain values, for the page."""
        return [{"number": pin.number, "name": pin.name, "answer": pin.answer} for pin in self._pins]

    def add(self, number: int, fitted: Fitted, answer: dict[str, Any]) -> None:
        """Pin a scenario; none of the others goes for it, as people may have named them."""
        if len(self._pins) >= MOST_PINS:
            raise InputError(f"{MOST_PINS} scenarios are pinned already; remove one of them first")
        self._added += 1
        self._pins.append(Pin(number, f"Pin {self._added}", fitted, answer))

    def rename(self, number: object, name: object) -> None:
        """Give a pin another name; an empty one changes nothing."""
        given = visible(name).strip()[:_NAME_LENGTH] if isinstance(name, str) else ""
        self._pins = [replace(pin, name=given or pin.name) if pin.number == number else pin for pin in self._pins]

    def remove(self, number: object) -> None:
        """Forget a pin."""
        self._pins = [pin for pin in self._pins if pin.number != number]

    def update(self, fitted: Fitted, answer: dict[str, Any]) -> None:
        """Let pins of the same scenario have what was found out about it later."""
        given = fitted.scenario.to_json()
        self._pins = [
            replace(pin, fitted=fitted, answer=answer) if pin.fitted.scenario.to_json() == given else pin
            for pin in self._pins
        ]

    def fitted_as(self, scenario: Scenario) -> Fitted | None:
        """The fit of a scenario, if it was pinned."""
        pinned = (pin.fitted.taken_as(scenario) for pin in reversed(self._pins))
        return next((fitted for fitted in pinned if fitted is not None), None)
