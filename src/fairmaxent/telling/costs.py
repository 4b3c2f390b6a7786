"""What the result costs, and whom: outcomes, weights, copies of one person."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from fairmaxent.data.table import FEWEST_ROWS, MOST_TIMES
from fairmaxent.document import Blocks, Note, Paragraph, Table
from fairmaxent.document.words import first, more, percent, times
from fairmaxent.errors import Option, Remark
from fairmaxent.facts.costs import Costs, GroupCost
from fairmaxent.facts.fitted import Facts, OutcomeShare
from fairmaxent.telling.case import Case

MOST_WARNED = 3  # groups warned about one by one


def few_people(case: Case) -> Blocks:
    """Warn of the groups beyond the line, worst first."""
    facts = case.facts
    groups = _groups_to_warn_of(facts)
    remedies: list[Remark] = []
    for group in groups[:MOST_WARNED]:
        remedy = _remedy(group, facts)
        statement = _statement(group, facts.rows)
        if remedy in remedies:  # it is said once
            remark: Remark = (statement, ".")
        else:
            remark = (statement, *remedy)
        yield Note(case.text_of(remark))
        remedies.append(remedy)
    others = len(groups) - MOST_WARNED
    if others > 0:
        rest = "group rests" if others == 1 else "groups rest"
        yield Note(
            f"{others:,} more {rest} on fewer than {FEWEST_ROWS} effective rows, or"
            f" on a person who counts more than {MOST_TIMES} times."
        )


def _groups_to_warn_of(facts: Facts) -> list[GroupCost]:
    """Groups beyond the line; a person who is in two of them is named once."""
    groups: list[GroupCost] = []
    if facts.costs is None:
        return groups
    for group in sorted(facts.costs.groups, key=lambda group: group.effective_rows):
        is_named = any(
            abs(group.times - other.times) <= 1e-9 * group.times for other in groups
        )
        is_new = group.effective_rows < FEWEST_ROWS or not is_named
        if group.beyond_line and is_new:
            groups.append(group)
    return groups


def _statement(group: GroupCost, rows: int) -> str:
    if not group.rows:
        return (
            f"{group.name} is {percent(group.after)} of the result, but no row that was"
            " fitted is in this group"
        )
    people = "a single row" if group.rows == 1 else f"{group.rows:,} rows"
    text = f"{group.name}: all that the result says about this group rests on {people}"
    if group.grows:
        text = (
            f"{group.name}: {percent(group.after)} of the result rests on {people}"
            f" ({percent(group.before)} of the data)"
        )
    if round(group.effective_rows) < group.rows:
        text += (
            f", which carry as much information as {times(group.effective_rows)}"
            " equally weighted ones"
        )
    if group.times > MOST_TIMES:
        text += f"; one person has {times(group.most_weight)} times the average weight"
        if group.most_copies >= 1:
            text += (
                f", and is expected {times(group.most_copies)} times among {rows:,}"
                " drawn rows"
            )
    return text


def _remedy(group: GroupCost, facts: Facts) -> Remark:
    merge = "merge it with another group"
    if not group.grows and group.times <= MOST_TIMES:
        return (f". To do better, {merge}, or collect more rows.",)
    ways: list[Remark] = [(merge,)]
    wanted = facts.wanted["representation_rate"]
    if group.grows and group.targeted:
        ways.insert(0, ("ask for a smaller share of the group in ", Option("target")))
    elif group.grows and wanted.get(group.grouping) is not None:
        rates = {name: wanted[name] for name, _ in facts.measure.of_first_outcome} | {
            group.grouping: None
        }
        by_column = {
            facts.measure.columns_of(name): rate for name, rate in rates.items()
        }
        joint = " × " in group.grouping and len(by_column) == 1
        size = Option("representation_rate", None if joint else by_column)
        ways.insert(0, ("leave the group at its size with ", size))
    # a limit that was asked for is met; a lower one would lower the rates
    if not facts.weight_limit and group.rows:
        ways.append(("limit the weight of one person with ", Option("largest_weight")))
    *others, last = ways
    joined = [part for way in others for part in (*way, ", ")]
    if others:
        joined.append("or ")
    return (". To avoid this, ", *joined, *last, ".")


# ---------------------------------------------------------------- in numbers


def changed_lines(costs: Costs | None) -> Iterator[str]:
    """How many people of each group get another outcome, and in which direction."""
    if costs is None:
        return
    for group, changes in groupby(costs.changed, key=lambda change: change.group):
        seen = [change for change in changes if change.changed >= 0.5]
        seen.sort(key=lambda change: -change.changed)
        if seen:
            parts = ", ".join(
                f"{change.changed:,.0f} from {change.old} to {change.new}"
                for change in seen
            )
            yield f"{group}: of {seen[0].people:,} people, {parts}"


def changed_outcomes(case: Case) -> Blocks:
    """The same, as sentences of their own."""
    for line in changed_lines(case.facts.costs):
        yield Paragraph(f"Outcomes were changed for {line}")


def outcomes(case: Case) -> Blocks:
    """How common each outcome is, before and after."""
    lines = [*outcome_lines(case.costs.outcomes)]
    for line in first(lines, case.rows, "outcome", case.rest):
        yield Paragraph(line)


def outcome_lines(shares: Iterable[OutcomeShare]) -> Iterator[str]:
    """Each outcome, before and after."""
    for share in shares:
        yield (
            f"outcome {share.outcome}: {percent(share.before)} before,"
            f" {percent(share.after)} after"
        )


def effective_rows(case: Case) -> Blocks:
    """How much information the fair weights leave."""
    if case.facts.provenance.has_real_rows:
        yield Paragraph(
            "the fair weights carry as much information as"
            f" {case.facts.effective_rows:,.0f} equally weighted rows (of"
            f" {case.facts.rows:,})"
        )


def filled(case: Case) -> Blocks:
    """How much of the result nobody in the data stands for, if any."""
    share = case.costs.filled
    if share > 0:
        yield Paragraph(
            f"filled in: {percent(share)} of the result has a combination of outcome"
            " and groups that no row has"
        )


def group_costs(case: Case) -> Blocks:
    """A row for each group, and for the worst cell; nothing if it is not known.

    Of many groups, those with the fewest effective rows are shown.
    """
    costs = case.costs
    if costs.worst_cell is None:
        yield Paragraph("What the result costs each group is not known for this fit.")
        return
    by_rows = sorted(
        range(len(costs.groups)), key=lambda index: costs.groups[index].effective_rows
    )
    shown = [costs.groups[index] for index in sorted(by_rows[: case.rows])]
    cell = costs.worst_cell
    named_cell = replace(cell, name=f"worst cell: {cell.name}")
    last = _about_one(case)
    rows = []
    for cost in (*shown, named_cell):
        ends = {"largest weight": cost.most_weight}
        rows.append(
            (
                cost.name,
                f"{cost.rows:,}",
                percent(cost.before),
                percent(cost.after),
                times(cost.effective_rows),
                *(times(ends.get(head, cost.most_copies)) for head in last),
            )
        )
    heads = ("group", "rows", "before", "after", "effective rows", *last)
    if case.facts.likely is not None:  # each group has a part of somebody's weight
        heads = tuple(head.replace("weight", "weight in it") for head in heads)
    yield Table("Costs by group", heads, tuple(rows))
    for line in more(len(costs.groups), case.rows, "group", case.rest):
        yield Paragraph(line)


def _about_one(case: Case) -> tuple[str, ...]:
    """The columns about one person: the largest weight, or copies."""
    if case.output is None:
        if any(math.isnan(group.most_copies) for group in case.costs.groups):
            return ("largest weight",)
        return "largest weight", "most copies"
    return (case.output.costs.about_one(case.output.mode),)


def method(case: Case) -> Blocks:
    """How the optimum was found, and how far it is from the data."""
    facts = case.facts
    to_prior = max(0.0, facts.distance["to_prior"])  # not below, but for rounding
    from_data = max(0.0, facts.distance["from_data"])
    yield Paragraph(
        f"{facts.method}: {facts.iterations} iterations, residual"
        f" {facts.residual:.1e}; distance to prior {to_prior:.4f},"
        f" from data {from_data:.4f}"
    )
