"""What See shows: a fit as plain values for the page, in people as well as in rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from fairmaxent.app.labels import as_labelled
from fairmaxent.app.looked import plain
from fairmaxent.errors import spelled
from fairmaxent.fairness.rates import (
    OutcomeGrouping,
    group_table,
    outcome_axis,
    representation_rate,
    statistical_rate,
)
from fairmaxent.fit.costs import Costs
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.groups import GroupChange, group_label
from fairmaxent.fit.groups import group_changes as changes_of
from fairmaxent.fit.remarks import cost_remarks, other_remarks, unfair_decisions
from fairmaxent.fit.statements import changed_lines, copies_of, expected_lines
from fairmaxent.plain_text import visible
from fairmaxent.report.delivered import data_table


def seen(fit: Fit) -> dict[str, Any]:
    """Rates wanted, before and after; every group; who gains and who loses; costs; what to know."""
    certificate, rows = fit.certificate, fit.table.size
    costs, shares = certificate.costs, dict(_outcome_shares(fit))
    about_models = _sentences(unfair_decisions(certificate))
    return {
        "rows": rows,
        "rates": list(_rates(fit)),
        "overall": list(_overall(fit)),
        "groups": [plain(_group(change, rows, shares)) for change in changes_of(fit)],
        "means": [plain(asdict(mean)) for mean in certificate.means],
        "outcomes": [plain(asdict(share)) for share in certificate.compared_outcomes],
        "effective_rows": certificate.effective_rows,
        "copied_share": certificate.copied_share,
        "copied_rows": copies_of(redrawn=certificate.redrawn is not None).are,
        "largest_weight": None
        if costs is None
        else max((group.largest_weight for group in costs.groups), default=None),
        "most_copies": None if costs is None else max((group.most_copies for group in costs.groups), default=None),
        "costs": [] if costs is None else [plain({**asdict(one), "beyond": one.beyond_line}) for one in costs.groups],
        "changed_people": 0.0 if costs is None else _changed_people(costs),
        "changed": [] if costs is None else [visible(line) for line in changed_lines(costs)],
        "filled": sum(certificate.filled_shares),
        "warnings": _sentences(cost_remarks(certificate)),
        "notes": [note for note in _sentences(other_remarks(certificate)) if note not in about_models],
        "about_models": about_models,
        "estimate": _estimate(fit),
    }


def expected(fit: Fit, rows: int | None, *, iid: bool) -> list[dict[str, Any]]:
    """The range in which each rate of new rows will be: a row cannot be split, so it is not exactly that of the fit."""
    ranges = fit.certificate.interval(rows or fit.table.size, iid=iid)
    return [
        plain({"kind": kind, "name": fit.certificate.measure.about(kind, name), "range": ranges[kind][name]})
        for kind, name in fit.certificate.rates_shown
    ]


def _sentences(remarks: Iterable[Any]) -> list[str]:
    return [visible(spelled(remark, as_labelled)) for remark in remarks]


def _changed_people(costs: Costs) -> float:
    """How many people get another outcome; every grouping counts all of them."""
    first = costs.changed[0].grouping if costs.changed else None
    return sum(one.changed for one in costs.changed if one.grouping == first)


def _rates(fit: Fit) -> Iterator[dict[str, Any]]:
    certificate = fit.certificate
    for kind, name in certificate.rates_shown:
        yield plain(
            {
                "kind": kind,
                "name": certificate.measure.about(kind, name),
                "wanted": certificate.wanted[kind][name],
                "before": certificate.before[kind][name],
                "after": certificate.achieved[kind][name],
            }
        )


def _overall(fit: Fit) -> Iterator[dict[str, Any]]:
    """The rates of each column of groups over all strata, so that scenarios that compare other groups line up."""
    certificate, roles = fit.certificate, fit.roles
    measure, table = certificate.measure, certificate.table
    columns = list(enumerate(roles.protected_names, 1))
    for axis, name in columns:
        share = representation_rate(measure.groups_compared(table, (axis,)), (axis,))
        yield plain({"kind": "representation_rate", "name": name, "outcome": None, "after": float(share)})
    for outcome in (0, *roles.other_axes):
        for axis, name in columns:
            by = OutcomeGrouping((axis,), outcome)
            rate = statistical_rate(measure.outcomes_compared(table, by), by, measure.favourable_of(by))
            outcome_name = roles.names[outcome]
            yield plain({"kind": "statistical_rate", "name": name, "outcome": outcome_name, "after": float(rate)})


_Shares = dict[tuple[str, str, str], tuple[float, float]]


def _outcome_shares(fit: Fit) -> Iterator[tuple[tuple[str, str, str], tuple[float, float]]]:
    """The share of all rows that are in a group and have an outcome, before and after, as counting rows gives it.

    A rate is about those whose outcome is known, so a rate times the size of its group would be too much.
    """
    measure = fit.certificate.measure
    for axes, name in zip(measure.groupings, measure.names, strict=True):
        before, after = (group_table(table / table.sum(), axes) for table in (data_table(fit), fit.certificate.table))
        labels = fit.roles.attributes[outcome_axis(axes)].labels
        for group in np.ndindex(before.shape[1:]):
            for level in measure.favourable_of(axes):
                key = (name, group_label(fit, axes, group), labels[level])
                yield key, (float(before[level][group]), float(after[level][group]))


def _group(change: GroupChange, rows: int, shares: _Shares) -> dict[str, Any]:
    """One group and one outcome, with how many people of a table of the same size have it, before and after."""
    before, after = shares[change.column, change.group, change.outcome]
    return {
        **asdict(change),
        "people_before": change.share_before * rows,
        "people_after": change.share_after * rows,
        "with_before": before * rows,
        "with_after": after * rows,
    }


def _estimate(fit: Fit) -> dict[str, Any] | None:
    estimate = fit.certificate.estimate
    if estimate is None:
        return None
    lines = [
        {
            "name": line.label,
            "meaning": line.meaning,
            "before": line.before.value,
            "after": line.after.value,
            "range": line.after.span,
        }
        for line in expected_lines(estimate)
    ]
    shown: dict[str, Any] = plain(
        {"student": estimate.student, "output": estimate.output, "people": estimate.measured_on, "lines": lines}
    )
    outcomes = group_table(fit.certificate.measure.with_outcome(data_table(fit), ()), ())
    shown["same_for_all"] = float(outcomes.max() / outcomes.sum())  # the accuracy of the same answer for everybody
    return shown
