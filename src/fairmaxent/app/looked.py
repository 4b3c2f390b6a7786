"""What Look shows: an inspection as plain values for the page, with the values that each group lacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from fairmaxent.app.labels import as_labelled
from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import page_options
from fairmaxent.cli.inspect import domain_draft, inspect_command, inspected
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.request import RoleOptions
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.errors import cut, spelled
from fairmaxent.inspection import Inspection
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates
from fairmaxent.inspection.hints import NOTABLE
from fairmaxent.plain_text import visible

ROLE_NAMES = tuple(field.name for field in fields(RoleOptions))
COLUMN_NAMES = ("bins", "kinds", "order", "max_levels")
_LEVELS = 40  # of a column, shown
_PROXIES = 12
# A column that looks like an identifier, by whether it is kept.
_IDENTIFIER = {
    False: "{!r} looks like an identifier, so it is left out of new rows. To keep it, press “Keep” in its row of the "
    "list of all columns below.",
    True: "{!r} looks like an identifier, and is kept as you asked. In new rows, its values can be repeated, and can "
    "stand in the rows of people they do not belong to.",
}


def look_at(opened: OpenedTable, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the table with the roles, and the ways to read its columns, that the page chose."""
    frame, roles, domain = _looked_at(opened, asked)
    inspection = inspected(frame, roles, domain)
    look = _looked(opened, inspection, frame, domain, tuple(asked.get("keep_columns") or ()))
    if asked:  # what nobody chose is not taken for granted
        look |= {} if roles.outcome else {"outcome": None}
        look |= {} if roles.protected else {"protected": []}
    return look


def drafted(opened: OpenedTable, asked: Mapping[str, Any]) -> str:
    """A draft of the values that every column can have, as 'fairmaxent inspect --write-domain' writes it."""
    return domain_draft(*_looked_at(opened, asked))


def _looked_at(opened: OpenedTable, asked: Mapping[str, Any]) -> tuple[Any, RoleOptions, Domain]:
    """The rows that Look shows, the roles of the columns, and their levels."""
    names = (*ROLE_NAMES, *COLUMN_NAMES, "drop")
    given = {name: value for name, value in asked.items() if name in names}
    options = page_options(inspect_command, ["-"], given, names=names)
    drop = options.context.params["drop"] or ()
    roles = options.record(RoleOptions).checked(opened.file(drop), opened.typed)
    return opened.looked_at(drop), roles, opened.levels(drop, options.record(DomainOptions), roles.weight)


def _looked(
    opened: OpenedTable, inspection: Inspection, frame: Any, domain: Domain, kept: Sequence[str]
) -> dict[str, Any]:
    """Columns, proposals, groups with rates and intervals, proxies, and what to watch out for."""
    notes = [*opened.file().notes_spelled(as_labelled), *inspection.notes]
    for hint in inspection.hints:
        if hint.kind == "identifier":
            notes += [_IDENTIFIER[name in kept].format(name) for name in hint.columns]
        else:
            notes.append(spelled(hint.parts, as_labelled))
    if opened.is_partly_looked_at:
        notes.insert(0, f"The rates here are those of {inspection.rows:,} of the {opened.rows:,} rows; See uses all.")
    return {
        "rows": opened.rows,
        "outcome": inspection.outcome,
        "favourable": [value_text(level) for level in inspection.favourable],
        "protected": list(inspection.protected),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "values": column.values,
                "missing": column.missing,
                "levels": [cut(level) for level in column.shown[:_LEVELS]],
                "choices": _choices(column),
                "shares": _shares(column, domain),
                "more": max(0, len(column.shown) - _LEVELS),
                "identifier": column.identifier,
            }
            for column in inspection.columns
        ],
        "reasons": [
            {"role": proposal.role, "value": value_text(proposal.value), "reason": proposal.reason}
            for proposal in inspection.proposals
        ],
        "groupings": [_grouping(grouping, inspection.protected, frame, domain) for grouping in inspection.groupings],
        "proxies": [vars(proxy) for proxy in inspection.proxies if proxy.strength >= NOTABLE][:_PROXIES],
        "notes": [visible(note) for note in notes],
    }


def _choices(column: ColumnSummary) -> list[str]:
    """The levels of a column that can be chosen, if they are few; missing is none, and stands last."""
    levels = column.shown[: len(column.shown) - (column.missing > 0)]
    return list(levels) if len(levels) <= _LEVELS else []


def _shares(column: ColumnSummary, domain: Domain) -> list[tuple[str, float]]:
    """The share of each level, missing too, if they are few."""
    attribute = domain.attribute(column.name)
    counts = attribute.level_counts()
    if not _choices(column) or not counts.sum():
        return []
    return list(zip(attribute.labels, (counts / counts.sum()).tolist(), strict=True))


def _grouping(grouping: GroupingRates, protected: tuple[str, ...], frame: Any, domain: Domain) -> dict[str, Any]:
    sizes = {group.group: group for group in grouping.representation.groups}
    gaps = _gaps_by_group(frame, domain, [grouping.name] if grouping.name in protected else protected)
    return {
        "name": grouping.name,
        "representation_rate": _finite(grouping.representation.value),
        "statistical_rate": _finite(grouping.statistical.value),
        "groups": [
            {
                "group": _group_text(group.group),
                "outcome": value_text(group.outcome),
                "rows": sizes[group.group].count,
                "share": _finite(sizes[group.group].rate),
                "rate": _finite(group.rate),
                "interval": group.interval,
                "missing": gaps.get(_group_text(group.group)),
            }
            for group in grouping.statistical.groups
        ],
    }


def _gaps_by_group(frame: Any, domain: Domain, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The missing values of each group of a column, or of the intersections of several.

    By group: their share of its cells in all other columns, the column with most of them, and their share there.
    """
    attributes = tuple(domain.attribute(name) for name in columns)
    codes = Domain(attributes, ()).encode(frame.select(columns))
    groups, members = np.unique(codes, axis=0, return_inverse=True)
    members = members.ravel()
    others = [name for name in frame.columns if name not in columns]
    missing = [np.bincount(members, frame[name].is_null().to_numpy(), minlength=len(groups)) for name in others]
    by_group = np.array(missing).reshape(len(others), len(groups)).T
    return {
        " × ".join(attribute.labels[code] for attribute, code in zip(attributes, group, strict=True)): _gaps(
            counts, size, others
        )
        for group, counts, size in zip(groups.tolist(), by_group, np.bincount(members).tolist(), strict=True)
    }


def _gaps(missing: Any, size: int, others: Sequence[str]) -> dict[str, Any]:
    if not missing.sum():
        return {"share": 0.0, "most_in": None, "most": 0.0}
    worst = int(missing.argmax())
    share = float(missing.sum() / (size * len(others)))
    return {"share": share, "most_in": others[worst], "most": float(missing[worst] / size)}


def _group_text(group: tuple[object, ...]) -> str:
    return " × ".join(map(value_text, group))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Plain values for JSON, in which a number that does not exist is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
