"""Fitted: a scenario with its fit, and with what is expected of models trained on what can be made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fairmaxent.app.scenario import Scenario
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.plans import OutputOption


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

    @property
    def estimated_otherwise(self) -> bool:
        """Whether the only estimate is about something else than what is taken."""
        return bool(self.estimates) and self.estimated is None

    def taken_as(self, scenario: Scenario) -> Fitted | None:
        """The same fit for a scenario that differs only in what is taken; None if it needs another fit."""
        return replace(self, scenario=scenario) if self.scenario.fits_like(scenario) else None

    def with_estimate(self, fit: Fit) -> Fitted:
        """The same with an estimate for what is taken."""
        return replace(self, estimates={**self.estimates, self.output: fit})
