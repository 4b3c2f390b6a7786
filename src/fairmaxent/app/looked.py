"""What Look shows: an inspection as plain values for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.problem_text import as_labelled
from fairmaxent.data.levels import value_text
from fairmaxent.errors import cut, spelled
from fairmaxent.inspection import Inspection
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates
from fairmaxent.inspection.proxies import NOTABLE
from fairmaxent.plain_text import visible

_LEVELS = 40  # of a column, shown
_PROXIES = 12


def looked(opened: OpenedTable, inspection: Inspection) -> dict[str, Any]:
    """Columns, proposals, groups with rates and intervals, proxies, and what to watch out for."""
    notes = [*opened.file().notes_spelled(as_labelled), *inspection.notes]
    notes += [spelled(hint.parts, as_labelled) for hint in inspection.hints]
    if opened.is_partly_looked_at:
        notes.insert(0, f"The rates here are those of {inspection.rows:,} of the {opened.rows:,} rows; See uses all.")
    return {
        "rows": opened.rows,
        "outcome": inspection.outcome,
        "favourable": [value_text(level) for level in inspection.favourable],
        "protected": list(inspection.protected),
        "representation_rate": inspection.representation_rate,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "values": column.values,
                "missing": column.missing,
                "levels": [cut(level) for level in column.shown[:_LEVELS]],
                "choices": _choices(column),
                "more": max(0, len(column.shown) - _LEVELS),
                "identifier": column.identifier,
            }
            for column in inspection.columns
        ],
        "reasons": [
            {"role": one.role, "value": value_text(one.value), "reason": one.reason, "sure": one.confidence}
            for one in inspection.proposals
        ],
        "groupings": [_grouping(grouping) for grouping in inspection.groupings],
        "proxies": [vars(proxy) for proxy in inspection.proxies if proxy.strength >= NOTABLE][:_PROXIES],
        "notes": [visible(note) for note in notes],
        "cost": None if inspection.cost is None else inspection.cost.words,
    }


def _choices(column: ColumnSummary) -> list[str]:
    """The levels of a column that can be chosen, if they are few; missing is none, and stands last."""
    known = column.shown[: len(column.shown) - (column.missing > 0)]
    return list(known) if len(known) <= _LEVELS else []


def _grouping(grouping: GroupingRates) -> dict[str, Any]:
    sizes = {group.group: group for group in grouping.representation.groups}
    return {
        "name": grouping.name,
        "representation_rate": _known(grouping.representation.value),
        "statistical_rate": _known(grouping.statistical.value),
        "groups": [
            {
                "group": " × ".join(map(value_text, group.group)),
                "outcome": value_text(group.outcome),
                "rows": sizes[group.group].count,
                "share": _known(sizes[group.group].rate),
                "rate": _known(group.rate),
                "interval": group.interval,
            }
            for group in grouping.statistical.groups
        ],
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Plain values for JSON, in which a number that does not exist is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
