"""Cost remarks: plain warnings, with their remedies, about groups that rest on too few people."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.errors import Option
from fairmaxent.fit.costs import FEWEST_ROWS, MOST_TIMES, GroupCost
from fairmaxent.fit.facts import Facts
from fairmaxent.fit.share_text import percent, times

Remark = tuple[object, ...]

_SHOWN = 3  # groups warned about one by one; the rest is counted


def cost_remarks(facts: Facts) -> Iterator[Remark]:
    """Warn of the groups beyond the line, worst first; a person who is in two of them is named once."""
    groups = _beyond_line(facts)
    said: list[Remark] = []
    for group in groups[:_SHOWN]:
        remedy = _remedy(group, facts)
        yield (_statement(group, facts.rows), *(["."] if remedy in said else remedy))
        said.append(remedy)
    more = len(groups) - _SHOWN
    if more > 0:
        rest = "group rests" if more == 1 else "groups rest"
        yield (
            f"{more:,} more {rest} on fewer than {FEWEST_ROWS} effective rows, or on a person who counts more than "
            f"{MOST_TIMES} times.",
        )


def _beyond_line(facts: Facts) -> list[GroupCost]:
    listed: list[GroupCost] = []
    for group in sorted(facts.costs.groups if facts.costs else (), key=lambda group: group.effective_rows):
        known = any(abs(group.times - other.times) <= 1e-9 * group.times for other in listed)
        if group.beyond_line and not (known and group.effective_rows >= FEWEST_ROWS):
            listed.append(group)
    return listed


def _statement(group: GroupCost, rows: int) -> str:
    if not group.rows:
        return f"{group.name} is {percent(group.after)} of the result, but nobody in the data is in this group"
    people = "a single row" if group.rows == 1 else f"{group.rows:,} rows"
    if _grows(group):
        text = f"{group.name}: {percent(group.after)} of the result rests on {people}"
        text += f" ({percent(group.before)} of the data)"
    else:
        text = f"{group.name}: all that the result says about this group rests on {people}"
    if round(group.effective_rows) < group.rows:
        text += f", which carry as much information as {times(group.effective_rows)} equally weighted ones"
    if group.times > MOST_TIMES:
        text += f"; one person has {times(group.largest_weight)} times the average weight"
        if group.most_copies >= 1:
            text += f", and is expected {times(group.most_copies)} times among {rows:,} drawn rows"
    return text


def _remedy(group: GroupCost, facts: Facts) -> Remark:
    merge = "merge it with another group"
    if not _grows(group) and group.times <= MOST_TIMES:
        return (f". To do better, {merge}, or collect more rows.",)
    size = _keep_size(group, facts)
    # A limit that was asked for is met already, so a lower one would only lower the rates.
    cap = ("limit the weight of one person with ", Option("largest_weight"))
    ways = [way for way in (size, (merge,), () if facts.largest_weight or not group.rows else cap) if way]
    return (". To avoid this, ", *_alternatives(ways), ".")


def _alternatives(ways: list[Remark]) -> Remark:
    """Join ways to go: "this", "this, or that", "this, that, or another"."""
    *others, last = ways
    return (*(part for way in others for part in (*way, ", ")), *(["or "] if others else []), *last)


def _keep_size(group: GroupCost, facts: Facts) -> Remark:
    """How to let a group grow less; nothing if its size was not asked for."""
    wanted = facts.wanted["representation_rate"]
    if not _grows(group) or (wanted.get(group.grouping) is None and not group.targeted):
        return ()
    if group.targeted:
        return ("ask for a smaller share of the group in ", Option("target"))
    rates = {name: wanted[name] for name, _ in facts.measure.of_first_outcome} | {group.grouping: None}
    by_column = {facts.measure.columns_of(name): rate for name, rate in rates.items()}
    joint = " × " in group.grouping and len(by_column) == 1
    return ("leave the group at its size with ", Option("representation_rate", None if joint else by_column))


def _grows(group: GroupCost) -> bool:
    return group.after > group.before * (1 + 1e-6)
