"""Overview: a fit at a glance, as text and as HTML: asked for, reached, cost, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from fairmaxent.errors import cut, spelled
from fairmaxent.fit.cost_remarks import cost_remarks
from fairmaxent.fit.cost_text import changed_lines, filled_lines, outcome_lines
from fairmaxent.fit.decision_text import SLACK
from fairmaxent.fit.estimate import Deferred
from fairmaxent.fit.learned import Learned
from fairmaxent.fit.remarks import DOWNSTREAM_SLACK, REACHED
from fairmaxent.fit.share_text import times
from fairmaxent.fit.sharing_text import privacy_lines
from fairmaxent.plain_text import isolated, visible

_MOST = 12  # rates shown before the rest is counted
_OUTCOMES = 4  # likewise
_NOTABLE = 1.05  # times the average weight

# What can be done with a fit: the call, and what it gives.
_ROWS = (("fit.weigh(table)", "your rows with their weights"), ("fit.top_up()", "rows to add"))  # of the data
_NEXT = (
    ("fit.sample(n)", "new rows"),
    *_ROWS,
    ("fit.summary()", "group by group"),
    ("fit.plot()", "a picture"),
    ('fit.report("report.html")', "a report to file"),
    ("print(fit.certificate)", "everything, and how a model trained on the result will treat people"),
)


@dataclass(frozen=True)
class RateLine:
    """One rate: what was asked for (None: nothing), what the data have, and what was reached (None: unknown)."""

    label: str
    wanted: float | None
    before: float | None
    reached: float | None
    slack: float = REACHED  # how far below what was asked for still counts as reached

    @property
    def state(self) -> str:
        """Whether what was asked for was reached, in a word."""
        if self.wanted is None:
            return ""
        return "reached" if self.reached is not None and self.reached >= self.wanted - self.slack else "short"


@dataclass(frozen=True)
class Overview:
    """What people see first of a fit."""

    outcome: str
    protected: tuple[str, ...]
    rows: int
    rates: tuple[RateLine, ...]
    warnings: tuple[str, ...]
    costs: tuple[str, ...]
    next: tuple[tuple[str, str], ...] = _NEXT

    @classmethod
    def of(cls, fit: Learned) -> Overview:
        """Take everything from the certificate; an estimate that nobody has asked for yet is not made for this."""
        outcome, protected = ", ".join(fit.roles.outcome_names), fit.roles.protected_names
        warnings = tuple(spelled(remark, str) for remark in cost_remarks(fit.certificate))
        rates = (*_table_rates(fit), *_decision_rates(fit), *_model_rates(fit))
        possible = _NEXT if fit.certificate.privacy is None else tuple(call for call in _NEXT if call not in _ROWS)
        return cls(outcome, protected, fit.table.size, rates, warnings, tuple(_costs(fit)), possible)

    def __str__(self) -> str:
        width = max(24, *(len(_short(line.label)) + 2 for line in self.rates))
        lines = [f"<Fit of {self.outcome!r} by {list(self.protected)}, {self.rows:,} rows>"]
        lines.append(f"{'':<{width}}{'asked':>8}{'before':>8}{'reached':>9}")
        for rate in self.rates[:_MOST]:
            asked, before, reached = (_number(value) for value in (rate.wanted, rate.before, rate.reached))
            state = "  (short)" if rate.state == "short" else ""
            lines.append(
                f"{_short(rate.label):<{width}}{asked or 'any':>8}{before or '–':>8}{reached or '–':>9}{state}"
            )
        if len(self.rates) > _MOST:
            lines.append(f"and {len(self.rates) - _MOST} more rates")
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += self.costs
        lines += wrap("next: " + ", ".join(call for call, _ in self.next), 80, subsequent_indent="      ")
        return visible("\n".join(lines))

    def html(self) -> str:
        """A small piece of HTML that needs nothing else; names from the data are escaped."""
        protected = ", ".join(self.protected)
        rows = [_row(rate) for rate in self.rates[:_MOST]]
        if len(self.rates) > _MOST:
            rows.append(f'<tr><td colspan="5">and {len(self.rates) - _MOST} more rates</td></tr>')
        heads = "".join(f'<th style="{_RIGHT}">{head}</th>' for head in ("asked", "before", "reached"))
        return "\n".join(
            [
                '<div style="max-width: 50em">',
                f"<p><b>Fit of {_markup(self.outcome)} by {_markup(protected)}</b>, {self.rows:,} rows</p>",
                f'<table><thead><tr><th style="{_LEFT}">rate, 1 is equal</th>{heads}<th></th></tr></thead>',
                f"<tbody>{''.join(rows)}</tbody></table>",
                *(f"<p><b>Warning:</b> {_markup(warning)}</p>" for warning in self.warnings),
                _list("Cost", [_markup(cost[:1].upper() + cost[1:]) for cost in self.costs]),
                _list("Next", [f"<code>{escape(call)}</code> {escape(gives)}" for call, gives in self.next]),
                "</div>",
            ]
        )


_LEFT, _RIGHT = "text-align: left", "text-align: right"


def _row(rate: RateLine) -> str:
    numbers = [_number(rate.wanted) or "any", _number(rate.before) or "–", _number(rate.reached) or "–"]
    state = {"reached": "✓ reached", "short": "✗ short", "": ""}[rate.state]
    cells = "".join(f'<td style="{_RIGHT}">{number}</td>' for number in numbers)
    return f'<tr><td style="{_LEFT}">{_markup(rate.label)}</td>{cells}<td style="{_LEFT}">{state}</td></tr>'


def _list(title: str, items: list[str]) -> str:
    return f"<p><b>{title}</b></p><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _markup(text: str) -> str:
    return escape(isolated(cut(text, 400)))


def _short(label: str) -> str:
    return visible(cut(label))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table_rates(fit: Learned) -> Iterator[RateLine]:
    certificate = fit.certificate
    stated = (certificate.wanted, certificate.before, certificate.achieved)
    for kind, name in certificate.rates_shown:
        wanted, before, achieved = (rates[kind][name] for rates in stated)
        yield RateLine(certificate.measure.rate_name(kind, name), wanted, before, achieved)


def _decision_rates(fit: Learned) -> Iterator[RateLine]:
    decisions = fit.certificate.decisions
    for rate in decisions.rates if decisions is not None else ():
        yield RateLine(f"statistical rate of decisions for {rate.grouping}", rate.wanted, None, rate.rate, SLACK)


def _model_rates(fit: Learned) -> Iterator[RateLine]:
    """What a model trained on the result will decide, if that is known already: finding out takes seconds."""
    estimated = fit.certificate.estimated
    if (isinstance(estimated, Deferred) and not estimated.is_done) or fit.certificate.estimate is None:
        return
    known = fit.certificate.estimate
    for name, before in known.before.by_predictions.items():
        wanted, after = fit.certificate.wanted_of_decisions.get(name), known.after.by_predictions[name]
        yield RateLine(f"a model's decisions for {name}, estimated", wanted, before, after, DOWNSTREAM_SLACK)


def _costs(fit: Learned) -> Iterator[str]:
    certificate = fit.certificate
    if certificate.privacy is not None:
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
