"""What was asked for, in words."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.fairness.rates import outcome_axis
from fairmaxent.fit.fit import Fit
from fairmaxent.report.rates import EACH, is_targeted, levels_compared


def wishes(fit: Fit) -> tuple[str, ...]:
    """What was asked for, one sentence each."""
    return (*_rates(fit), *fit.request.words())


def _rates(fit: Fit) -> Iterator[str]:
    wanted, measure = fit.certificate.wanted, fit.certificate.measure
    for (name, rate), axes in zip(wanted["representation_rate"].items(), measure.groupings, strict=True):
        if rate is not None and not is_targeted(fit, axes) and not outcome_axis(axes):
            groups = measure.groups_of(name)
            yield (
                f"All groups of {groups} have the same size."
                if rate == 1
                else f"The smallest group of {groups} is at least {rate:.3g} times as large as the largest."
            )
    for (name, rate), axes in zip(wanted["statistical_rate"].items(), measure.groupings, strict=True):
        if rate is not None:
            outcomes, groups = levels_compared(fit, axes), measure.groups_of(name)
            yield (
                f"{_sentence(outcomes)} is equally common in all groups of {groups}."
                if rate == 1
                else f"{_sentence(outcomes)} is at least {rate:.3g} times as common in each group of {groups} as in "
                "any other."
            )


def _sentence(outcomes: str) -> str:
    """Begin a sentence with outcomes; a column's name stays as it is."""
    return f"E{outcomes[1:]}" if outcomes.startswith(EACH) else outcomes
