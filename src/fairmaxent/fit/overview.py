"""Overview: a fit at a glance, in a terminal and in a notebook: asked for, reached, cost, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairmaxent.data.roles import Roles
from fairmaxent.document import Block, Heading, Listing, Note, Paragraph
from fairmaxent.document.words import times
from fairmaxent.errors import cut, spelled
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.remarks import SLACK, cost_remarks
from fairmaxent.fit.statements import (
    REACHED,
    RateLine,
    changed_lines,
    filled_lines,
    outcome_lines,
    privacy_lines,
    rates_table,
)

_MOST = 12  # rates shown before the rest is counted
_OUTCOMES = 4  # likewise
_NOTABLE = 1.05  # times the average weight
_LONGEST = 1000  # characters of a sentence

# What can be done with a fit: the call, and what it gives.
_ROWS = ("fit.weigh(table): your rows with their weights", "fit.top_up(): rows to add")  # of the data
_NEXT = (
    "fit.sample(n): new rows",
    *_ROWS,
    "fit.summary(): group by group",
    "fit.plot(): a picture",
    'fit.report("report.html"): a report to file',
    "print(fit.certificate): everything, and how a model trained on the result will treat people",
)


def overview(certificate: Certificate, roles: Roles) -> list[Block]:
    """What people see first of a fit; an estimate that nobody has asked for yet is not made for this."""
    rates = [replace(rate, label=cut(rate.label)) for rate in _rates(certificate)]
    more = [Paragraph(f"and {len(rates) - _MOST} more rates")] if len(rates) > _MOST else []
    private = certificate.privacy is not None
    outcome = ", ".join(roles.outcome_names)
    return [
        Heading(f"<Fit of {outcome!r} by {list(roles.protected_names)}, {certificate.rows:,} rows>"),
        rates_table(rates[:_MOST], ("asked", "before", "reached")),
        *more,
        *(Note(cut(f"warning: {spelled(remark, str)}", _LONGEST)) for remark in cost_remarks(certificate)),
        *(Paragraph(cut(line, _LONGEST)) for line in _costs(certificate)),
        Paragraph("next:"),
        Listing(tuple(call for call in _NEXT if not private or call not in _ROWS)),
    ]


def _rates(certificate: Certificate) -> Iterator[RateLine]:
    """Rates of the table, of the decisions of a student, and of a model, if they are known: that takes seconds."""
    yield from (replace(rate, slack=REACHED) for rate in certificate.rate_lines)
    for rate in () if certificate.decisions is None else certificate.decisions.rates:
        yield RateLine(f"statistical rate of decisions for {rate.grouping}", rate.wanted, None, rate.rate, SLACK)
    estimate = certificate.estimate_so_far
    if estimate is None:
        return
    for name, before in estimate.before.by_predictions.items():
        wanted, after = certificate.wanted_of_decisions.get(name), estimate.after.by_predictions[name]
        yield RateLine(f"a model's decisions for {name}, estimated", wanted, before, after, SLACK)


def _costs(certificate: Certificate) -> Iterator[str]:
    yield from privacy_lines(certificate.privacy)
    shares = certificate.compared_outcomes
    yield from outcome_lines(shares[:_OUTCOMES])
    if len(shares) > _OUTCOMES:
        yield f"and {len(shares) - _OUTCOMES} more outcomes"
    if certificate.privacy is None:
        yield (
            f"the fair weights carry as much information as {certificate.effective_rows:,.0f} equally weighted rows "
            f"(of {certificate.rows:,})"
        )
    if certificate.costs is not None:
        worst = certificate.costs.worst_cell
        if worst.largest_weight >= _NOTABLE:
            yield f"one row counts up to {times(worst.largest_weight)} times as much as the average row ({worst.name})"
        yield from (f"outcomes changed for {line}" for line in changed_lines(certificate.costs))
    yield from filled_lines(sum(certificate.filled_shares))
