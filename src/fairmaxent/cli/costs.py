"""What the result costs each group, shown before any rate."""

from __future__ import annotations

from collections.abc import Sequence

from fairmaxent.cli.text import cell_text, text_table
from fairmaxent.fit.cost_text import changed_lines, filled_lines, outcome_lines, worst_groups
from fairmaxent.fit.costs import Costs, GroupCost
from fairmaxent.fit.share_text import percent, times
from fairmaxent.report.delivered import Mode
from fairmaxent.report.delivered_costs import DeliveredCosts


def costs_text(costs: DeliveredCosts, mode: Mode, *, delivered: bool) -> str:
    """The outcomes before and after, each group, those that rest on least if there are many, and the worst cell."""
    lines = [cell_text(line) for line in outcome_lines(costs.outcomes)]
    if costs.worst_cell is None:
        return "\n".join(lines)
    shown = worst_groups(costs.groups)
    named = [(group.name, group) for group in shown] + [(f"worst cell: {costs.worst_cell.name}", costs.worst_cell)]
    heads = ["group", "rows", "before", "after", "effective rows", *_heads(costs, mode, delivered=delivered)]
    rows = [[name, *_numbers(cost, mode, delivered=delivered)] for name, cost in named]
    table = text_table(heads, rows, right=range(1, len(heads)))
    hidden = len(costs.groups) - len(shown)
    more = [f"and {hidden:,} more groups; --json shows them all"] if hidden else []
    return "\n".join([*lines, table, *more, *filled_lines(costs.filled)])


def changed_text(costs: Costs | None) -> str:
    """For how many people the outcome was changed, and in which direction; empty if for nobody."""
    lines = [] if costs is None else list(changed_lines(costs))
    return "\n".join(f"Outcomes were changed for {cell_text(line)}" for line in lines)


def _heads(costs: DeliveredCosts, mode: Mode, *, delivered: bool) -> list[str]:
    if not delivered:
        return ["largest weight", "expected copies"]
    return ["largest weight" if mode == "weights" else "most copies" if costs.counted else "expected copies"]


def _numbers(cost: GroupCost, mode: Mode, *, delivered: bool) -> Sequence[str]:
    each, copies = times(cost.largest_weight), times(cost.most_copies)
    last = [each, copies] if not delivered else [each if mode == "weights" else copies]
    return [f"{cost.rows:,}", percent(cost.before), percent(cost.after), times(cost.effective_rows), *last]
