"""What was asked for, in sentences, and where it was not reached."""

from collections.abc import Iterable, Iterator

from fairmaxent.data.roles import Roles
from fairmaxent.facts.fitted import Facts
from fairmaxent.fairness.rates import Grouping, Measure, outcome_axis
from fairmaxent.telling.rates import is_short, rate_text

# how the words for several outcomes begin
_EACH_LEVEL = "each level of "
_EACH_OF = "each of "
_OUTCOMES = 3  # outcome levels named before the rest is counted


def wishes(facts: Facts, roles: Roles, own: Iterable[str]) -> Iterator[str]:
    """What was asked for, one sentence each; ``own`` are those of the options."""
    measure = facts.measure
    axes_of = dict(measure.named_groupings)
    for kind, name in facts.rates_shown:
        rate = facts.wanted[kind][name]
        if rate is None or _is_by_target(facts, kind, name):
            continue
        groups = measure.groups_of(name)
        if kind == "statistical_rate":
            outcomes = levels_compared(measure, roles, axes_of[name])
            wish = _equal_outcomes(outcomes, groups, rate)
        else:
            wish = _equal_sizes(groups, rate)
        if is_short(facts, kind, name):
            wish += f" It is not: the rate is {rate_text(facts.achieved[kind][name])}."
        yield wish
    yield from own


def _is_by_target(facts: Facts, kind: str, name: str) -> bool:
    """Whether shares that the user named take the place of a representation rate."""
    columns = facts.measure.columns_of(name)
    is_named = any(share.grouping == columns for share in facts.targets)
    return kind == "representation_rate" and is_named


def outcomes_compared(measure: Measure, roles: Roles) -> str:
    """Name the levels that the statistical rates compare, of each outcome column."""
    return " and ".join(
        levels_compared(measure, roles, axes)
        for axes in measure.groupings[:: len(measure.of_first_outcome)]
    )


def levels_compared(measure: Measure, roles: Roles, axes: Grouping) -> str:
    """Name the levels of the outcome that the rate of a grouping compares."""
    outcome = roles.attributes[outcome_axis(axes)]
    levels = measure.favourable_of(axes)
    possible = set(range(outcome.size)) - {outcome.missing}
    if len(levels) > 1 and possible <= set(levels):
        return f"{_EACH_LEVEL}{outcome.name}"
    shown = ", ".join(outcome.describe(level) for level in levels[:_OUTCOMES])
    if len(levels) == 1:
        return shown
    if len(levels) > _OUTCOMES:
        shown += f" and {len(levels) - _OUTCOMES} more levels"
    return f"{_EACH_OF}{shown}"


def _equal_sizes(groups: str, rate: float) -> str:
    if rate == 1:
        return f"All groups of {groups} shall have the same size."
    return (
        f"The smallest group of {groups} shall be at least {rate:.3g} times as large as"
        " the largest."
    )


def _equal_outcomes(outcomes: str, groups: str, rate: float) -> str:
    # A sentence begins with a capital letter, but the name of a column stays as it is.
    if outcomes.startswith((_EACH_LEVEL, _EACH_OF)):
        outcomes = f"E{outcomes[1:]}"
    if rate == 1:
        return f"{outcomes} shall be equally common in all groups of {groups}."
    return (
        f"{outcomes} shall be at least {rate:.3g} times as common in each group of"
        f" {groups} as in any other."
    )
