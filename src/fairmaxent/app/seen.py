"""What See shows: a fit as values for the page, in people as well as in rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fairmaxent.app.page_options import as_labelled
from fairmaxent.errors import spelled
from fairmaxent.fairness.rates import (
    OutcomeGrouping,
    group_table,
    outcome_axis,
    representation_rate,
    statistical_rate,
)
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.groups import group_changes, group_label
from fairmaxent.fit.remarks import cost_remarks, other_remarks, unfair_decisions
from fairmaxent.fit.statements import changed_lines, copies_of, expected_lines
from fairmaxent.plain_text import visible
from fairmaxent.report.delivered import data_table


def seen(fit: Fit) -> dict[str, Any]:
    """Rates wanted, before and after; every group; who gains and who loses; costs; what to know."""
    certificate, costs = fit.certificate, fit.certificate.costs
    about_models = _sentences(unfair_decisions(certificate))
    groups = () if costs is None else costs.groups
    changed = () if costs is None else costs.changed
    return {
        "rows": fit.table.size,
        "rates": [
            {
                "kind": kind,
                "name": certificate.measure.about(kind, name),
                "wanted": certificate.wanted[kind][name],
                "before": certificate.before[kind][name],
                "after": certificate.achieved[kind][name],
            }
            for kind, name in certificate.rates_shown
        ],
        "overall": list(_overall(fit)),
        "groups": list(_groups(fit)),
        "means": certificate.means,
        "effective_rows": certificate.effective_rows,
        "copied_share": certificate.copied_share,
        "copied_rows": copies_of(redrawn=certificate.redrawn is not None).are,
        "heaviest": max((group.largest_weight for group in groups), default=None),
        "most_copies": max((group.most_copies for group in groups), default=None),
        "costs": [
            [one.beyond_line, one.name, one.rows, one.effective_rows, one.largest_weight, one.most_copies]
            for one in groups
        ],
        # Every grouping counts all people who get another outcome.
        "changed_people": sum(one.changed for one in changed if one.grouping == changed[0].grouping),
        "changed": [visible(line) for line in changed_lines(costs)],
        "warnings": _sentences(cost_remarks(certificate)),
        "notes": [note for note in _sentences(other_remarks(certificate)) if note not in about_models],
        "about_models": about_models,
        "estimate": _estimate(fit),
    }


def expected(fit: Fit, rows: int | None, *, iid: bool) -> list[dict[str, Any]]:
    """The range in which each rate of new rows will be: a row cannot be split, so it is not exactly that of the fit."""
    ranges = fit.certificate.interval(rows or fit.table.size, iid=iid)
    return [
        {"kind": kind, "name": fit.certificate.measure.about(kind, name), "range": ranges[kind][name]}
        for kind, name in fit.certificate.rates_shown
    ]


def _sentences(remarks: Iterable[Any]) -> list[str]:
    return [visible(spelled(remark, as_labelled)) for remark in remarks]


def _overall(fit: Fit) -> Iterator[dict[str, Any]]:
    """The rates of each column of groups over all strata, so that scenarios that compare other groups line up."""
    roles, measure, table = fit.roles, fit.certificate.measure, fit.certificate.table
    columns = list(enumerate(roles.protected_names, 1))
    for axis, name in columns:
        share = representation_rate(measure.groups_compared(table, (axis,)), (axis,))
        yield {"kind": "representation_rate", "name": name, "outcome": None, "after": float(share)}
    for outcome in (0, *roles.other_axes):
        for axis, name in columns:
            by = OutcomeGrouping((axis,), outcome)
            rate = statistical_rate(measure.outcomes_compared(table, by), by, measure.favourable_of(by))
            yield {"kind": "statistical_rate", "name": name, "outcome": roles.names[outcome], "after": float(rate)}


def _groups(fit: Fit) -> Iterator[dict[str, Any]]:
    """Each group and outcome, with how many people of a table of the same size have it, before and after.

    These are counted: a rate is about those whose outcome is known, so a rate times the size of its group would be too
    much.
    """
    measure, rows, people = fit.certificate.measure, fit.table.size, {}
    for axes, name in zip(measure.groupings, measure.names, strict=True):
        before, after = (group_table(table / table.sum(), axes) for table in (data_table(fit), fit.certificate.table))
        labels = fit.roles.attributes[outcome_axis(axes)].labels
        for group in np.ndindex(before.shape[1:]):
            for level in measure.favourable_of(axes):
                shares = before[level][group], after[level][group]
                people[name, group_label(fit, axes, group), labels[level]] = shares
    for change in group_changes(fit):
        before, after = people[change.column, change.group, change.outcome]
        yield {
            **vars(change),
            "people_before": change.share_before * rows,
            "people_after": change.share_after * rows,
            "with_before": before * rows,
            "with_after": after * rows,
        }


def _estimate(fit: Fit) -> dict[str, Any] | None:
    estimate = fit.certificate.estimate
    if estimate is None:
        return None
    outcomes = group_table(fit.certificate.measure.with_outcome(data_table(fit), ()), ())
    return {
        "student": estimate.student,
        "output": estimate.output,
        "people": estimate.measured_on,
        "lines": [
            {
                "name": line.label,
                "meaning": line.meaning,
                "before": line.before.value,
                "after": line.after.value,
                "range": line.after.span,
            }
            for line in expected_lines(estimate)
        ],
        "same_for_all": float(outcomes.max() / outcomes.sum()),  # the accuracy of the same answer for everybody
    }
