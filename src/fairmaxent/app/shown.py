"""What Look and See show, as plain values for the page: an inspection, and a fit in people as well as in rates."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.app.page_options import KEPT, as_labelled, page_options
from fairmaxent.app.scenario import COLUMN_NAMES, ROLE_NAMES, OpenedTable
from fairmaxent.cli.inspect import inspect_command, inspected
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.request import RoleOptions
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.document import Block
from fairmaxent.errors import cut, spelled
from fairmaxent.fairness.rates import group_table
from fairmaxent.fit.certificate import cost_remarks, other_remarks, unfair_decisions
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.groups import group_changes
from fairmaxent.fit.statements import beyond_lines, changed_lines, copies_of, expected_lines
from fairmaxent.inspection.findings import ColumnSummary, GroupingRates
from fairmaxent.inspection.hints import NOTABLE
from fairmaxent.metrics.group_rates import group_text
from fairmaxent.plain_text import plain_json, visible

_LEVELS = 40  # of a column, shown
_PROXIES = 12
# A column that looks like an identifier, by whether it is kept.
_IDENTIFIER = {
    False: "{!r} looks like an identifier, so it is left out of new rows. To keep it, press “Keep” in its row of the "
    "list of all columns below.",
    True: "{!r} looks like an identifier, and is kept as you asked. In new rows, its values can be repeated, and can "
    "stand in the rows of people they do not belong to. If each must stay with its person, take “your rows with "
    "weights”.",
}


def look_at(opened: OpenedTable, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Columns, proposals, groups with rates and intervals, proxies, and what to watch out for.

    ``asked`` are the roles, and the ways to read columns, that the page chose.
    """
    frame, roles, domain = looked_at(opened, asked)
    inspection = inspected(frame, roles, domain)
    kept = asked.get(KEPT) or ()
    notes = [*opened.file().notes_spelled(as_labelled), *inspection.notes]
    for hint in inspection.hints:
        if hint.kind == "identifier":
            notes += [_IDENTIFIER[name in kept].format(name) for name in hint.columns]
        else:
            notes.append(spelled(hint.parts, as_labelled))
    if len(frame) < opened.rows:
        notes.insert(0, f"The rates here are those of {inspection.rows:,} of the {opened.rows:,} rows; See uses all.")
    look: dict[str, Any] = plain_json(
        {
            "rows": opened.rows,
            # If anything was chosen, what nobody chose is not taken for granted.
            "outcome": roles.outcome or None if asked else inspection.outcome,
            "protected": roles.protected if asked else inspection.protected,
            "favourable": [value_text(level) for level in inspection.favourable],
            "columns": [_column(column, domain) for column in inspection.columns],
            "verdicts": [visible(str(verdict)) for verdict in inspection.verdicts],
            "reasons": [vars(one) | {"value": value_text(one.value)} for one in inspection.proposals],
            "groupings": [_grouping(one, inspection.protected, frame, domain) for one in inspection.groupings],
            "proxies": [vars(proxy) for proxy in inspection.proxies if proxy.strength >= NOTABLE][:_PROXIES],
            "notes": [visible(note) for note in notes],
        }
    )
    return look


def looked_at(opened: OpenedTable, asked: Mapping[str, Any]) -> tuple[Any, RoleOptions, Domain]:
    """The rows that Look shows, the roles of the columns, and their levels."""
    names = (*ROLE_NAMES, *COLUMN_NAMES, "drop")
    given = {name: value for name, value in asked.items() if name in names}
    options = page_options(inspect_command, ["-"], given, names=names)
    roles = options.record(RoleOptions).checked(opened.file(options.drop), opened.typed)
    levels = opened.levels(options.drop, options.record(DomainOptions), roles.weight)
    return opened.looked_at.drop(list(options.drop)), roles, levels


def _column(column: ColumnSummary, domain: Domain) -> dict[str, Any]:
    """A column; if its levels are few, with those that can be chosen, of which missing is none, and all shares."""
    attribute, more = domain.attribute(column.name), len(column.shown) - _LEVELS
    choices = column.shown[: len(column.shown) - (column.missing > 0)]
    choices = choices if len(choices) <= _LEVELS else ()
    counts = attribute.level_counts()
    has_shares = choices and counts.sum()
    edges = [] if attribute.kind != "numeric" or attribute.edges is None else [*map(float, attribute.edges)]
    return vars(column) | {
        "shown": (),
        "levels": ", ".join(map(cut, column.shown[:_LEVELS])) + (f", and {more} more" if more > 0 else ""),
        "choices": choices,
        "shares": list(zip(attribute.labels, (counts / counts.sum()).tolist(), strict=True)) if has_shares else [],
        # The ends of a column of numbers, and a round one in the middle.
        **({"range": (edges[0], edges[-1]), "middle": float(f"{edges[len(edges) // 2]:.2g}")} if edges else {}),
    }


def _grouping(grouping: GroupingRates, protected: tuple[str, ...], frame: Any, domain: Domain) -> dict[str, Any]:
    sizes = {group.group: group for group in grouping.representation.groups}
    gaps = _gaps(frame, domain, [grouping.name] if grouping.name in protected else protected)
    return {
        "name": grouping.name,
        "groups": [
            vars(group)
            | {"group": (name := group_text(group.group)), "outcome": value_text(group.outcome)}
            | {"rows": sizes[group.group].count, "share": sizes[group.group].rate, "missing": gaps.get(name)}
            for group in grouping.statistical.groups
        ],
    }


def _gaps(frame: Any, domain: Domain, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The missing values of each group of a column, or of the intersections of several.

    By group: their share of its cells in all other columns, the column with most of them, and their share there.
    """
    attributes = tuple(domain.attribute(name) for name in columns)
    groups, members = np.unique(Domain(attributes, ()).encode(frame.select(columns)), axis=0, return_inverse=True)
    members, others = members.ravel(), [name for name in frame.columns if name not in columns]
    missing = [np.bincount(members, frame[name].is_null().to_numpy()) for name in others]
    shares = np.array(missing).reshape(len(others), len(groups)).T / np.bincount(members)[:, None]
    gaps = {}
    for group, share in zip(groups, shares, strict=True) if others else ():
        name = " × ".join(attribute.labels[code] for attribute, code in zip(attributes, group, strict=True))
        worst = others[share.argmax()] if share.any() else None
        gaps[name] = {"share": share.mean(), "most_in": worst, "most": share.max()}
    return gaps


# What is said about a group, and what the people of a table of the same size are called who it is about.
_PEOPLE = {"share_before": "people_before", "share_after": "people_after"}
_PEOPLE |= {"having_before": "with_before", "having_after": "with_after"}
_COSTS = attrgetter("beyond_line", "name", "rows", "effective_rows", "most_weight", "most_copies")


def seen(fit: Fit, *, is_whole: bool = True) -> dict[str, Any]:
    """Rates wanted, before and after; every group; costs, copies of a whole fit only; what to know."""
    certificate, costs, measure = fit.certificate, fit.certificate.costs, fit.certificate.measure
    made_for = [visible(line) for line in beyond_lines(certificate.decisions)]
    about_models = [*made_for, *_sentences(unfair_decisions(certificate))]
    groups, changed = ((), ()) if costs is None else (costs.groups, costs.changed)
    rates = {"wanted": certificate.wanted, "before": certificate.before, "after": certificate.achieved}
    return {
        "rows": fit.table.size,
        "rates": [
            {"kind": kind, "name": measure.about(kind, name), "grouping": name, "columns": measure.columns_of(name)}
            | {when: known[kind][name] for when, known in rates.items()}
            for kind, name in certificate.rates_shown
        ],
        "groups": [
            vars(one) | {people: fit.table.size * getattr(one, share) for share, people in _PEOPLE.items()}
            for one in group_changes(fit)
        ],
        "means": certificate.means,
        "effective_rows": certificate.effective_rows,
        "copied_share": certificate.copied_share if is_whole else None,
        "copied_rows": copies_of(certificate.redrawn)[0],
        "heaviest": max((group.most_weight for group in groups), default=None),
        "most_copies": max((group.most_copies for group in groups), default=None),
        "costs": [*map(_COSTS, groups)],
        # Every grouping counts all people who get another outcome.
        "changed_people": sum(one.changed for one in changed if one.grouping == changed[0].grouping),
        "changed": [visible(line) for line in changed_lines(costs)],
        "warnings": _sentences(cost_remarks(certificate)),
        "notes": [note for note in _sentences(other_remarks(certificate)) if note not in about_models],
        "about_models": about_models,
        "estimate": _estimate(fit),
    }


def drawn_blocks(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """The blocks of a document, for the page, which draws each kind in its way."""
    return [
        {"kind": type(block).__name__, **plain_json(block), "numeric": getattr(block, "numeric", ())}
        for block in blocks
    ]


def _sentences(remarks: Iterable[Any]) -> list[str]:
    return [visible(spelled(remark, as_labelled)) for remark in remarks]


def _estimate(fit: Fit) -> dict[str, Any] | None:
    estimate = fit.certificate.estimate
    if estimate is None:
        return None
    outcomes = group_table(fit.certificate.measure.with_outcome(fit.problem.data_table, ()), ())
    about = {"student": estimate.student, "output": estimate.output, "people": estimate.measured_on}
    # With the accuracy of the same answer for everybody.
    return {**about, "lines": [*expected_lines(estimate)], "same_for_all": float(outcomes.max() / outcomes.sum())}
