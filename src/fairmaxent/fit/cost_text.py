"""Costs as text: which groups are shown, the table in a certificate, and sentences about changed outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fairmaxent.fit.costs import ChangedOutcome, Costs, GroupCost
from fairmaxent.fit.facts import OutcomeShare
from fairmaxent.fit.share_text import percent, times

SHOWN_GROUPS = 12
_DIRECTIONS = 4  # of change within one group

_HEADS = ("rows", "before", "after", "effective rows", "largest weight", "most copies")
_WIDTHS = (10, 10, 10, 16, 16, 13)


def cost_table(costs: Costs, width: int) -> Iterator[str]:
    """A line for each group, those that rest on least if there are many, and for the worst cell."""
    yield " " * width + _cells(_HEADS)
    shown = worst_groups(costs.groups)
    for group in shown:
        yield f"{group.name:<{width}}" + _cells(cost_numbers(group))
    if len(shown) < len(costs.groups):
        yield f"and {len(costs.groups) - len(shown):,} more groups"
    yield f"{'worst cell:':<{width}}" + _cells(cost_numbers(costs.worst_cell))
    yield f"  {costs.worst_cell.name}"


def cost_numbers(cost: GroupCost) -> tuple[str, ...]:
    """The numbers of one group, as text."""
    return (
        f"{cost.rows:,}",
        percent(cost.before),
        percent(cost.after),
        times(cost.effective_rows),
        times(cost.largest_weight),
        times(cost.most_copies),
    )


def worst_groups(groups: Sequence[GroupCost]) -> list[GroupCost]:
    """All groups if they are few; otherwise those with the fewest effective rows, in their order."""
    worst = sorted(range(len(groups)), key=lambda index: groups[index].effective_rows)[:SHOWN_GROUPS]
    return [groups[index] for index in sorted(worst)]


def outcome_lines(shares: Sequence[OutcomeShare]) -> Iterator[str]:
    """How common each outcome is, before and after."""
    for share in shares:
        yield f"outcome {share.outcome}: {percent(share.before)} before, {percent(share.after)} after"


def filled_lines(share: float) -> Iterator[str]:
    """How much of the result nobody in the data stands for; nothing if that is nothing."""
    if share > 0:
        yield f"filled in: {percent(share)} of the result has a combination of outcome and groups that no row has"


def changed_lines(costs: Costs) -> Iterator[str]:
    """How many people of each group get another outcome, and in which direction; nothing if nobody does."""
    for group, changes in groupby(costs.changed, key=lambda change: change.group):
        text = _changed(list(changes))
        if text is not None:
            yield f"{group}: {text}"


def _changed(changes: Sequence[ChangedOutcome]) -> str | None:
    directions = sorted((change for change in changes if change.changed >= 0.5), key=lambda change: -change.changed)
    if not directions:
        return None
    people = f"{directions[0].people:,}"
    parts = [f"{change.changed:,.0f} from {change.old} to {change.new}" for change in directions[:_DIRECTIONS]]
    if len(directions) > _DIRECTIONS:
        parts.append(f"{sum(change.changed for change in directions[_DIRECTIONS:]):,.0f} in other directions")
    return f"of {people} people, {', '.join(parts)}"


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{width}}" for text, width in zip(texts, _WIDTHS, strict=True))
