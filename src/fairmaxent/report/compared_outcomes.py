"""Which outcomes the statistical rates compare, in words."""

from __future__ import annotations

from fairmaxent.fairness.rates import outcome_axis
from fairmaxent.fit.fit import Fit

EACH = ("each level of ", "each of ")  # how the words for several outcomes begin
_OUTCOMES = 3  # outcome levels named before the rest is counted


def outcomes_compared(fit: Fit) -> str:
    """Name the outcomes that the statistical rates compare: one, several, or each level; of each outcome column."""
    measure = fit.certificate.measure
    count = len(measure.of_first_outcome)
    return " and ".join(levels_compared(fit, axes) for axes in measure.groupings[::count])


def levels_compared(fit: Fit, axes: tuple[int, ...]) -> str:
    """Name the levels of the outcome that the rate of a grouping compares."""
    outcome, levels = fit.roles.attributes[outcome_axis(axes)], fit.certificate.measure.favourable_of(axes)
    if len(levels) == outcome.size - (outcome.missing is not None and outcome.missing not in levels) > 1:
        return f"{EACH[0]}{outcome.name}"
    shown = ", ".join(f"{outcome.name} = {outcome.labels[level]}" for level in levels[:_OUTCOMES])
    if len(levels) == 1:
        return shown
    return f"{EACH[1]}{shown}{'' if len(levels) <= _OUTCOMES else f' and {len(levels) - _OUTCOMES} more levels'}"
