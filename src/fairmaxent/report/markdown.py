"""The report as Markdown: the same numbers, for a repository or a wiki."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from fairmaxent.plain_text import isolated, visible
from fairmaxent.report import decisions, model_estimate, number_text, sentences
from fairmaxent.report.build import Report

# Characters that would begin markup; each is written as text.
_MARKUP = re.compile(r"([\\`*_\[\]|#~$])")


def to_markdown(report: Report) -> str:
    """Render the report."""
    blocks = [
        f"# Fairness report: {text(sentences.title(report))}",
        *_top(report),
        *_sections(report),
    ]
    return "\n\n".join(blocks) + "\n"


def _top(report: Report) -> Iterator[str]:
    """What must be known first: warnings about costs, changed outcomes, the costs; only then what was reached."""
    if report.alerts:
        yield from (f"**{text(sentences.ALERTS)}**", _list(report.alerts))
    if report.changed:
        yield from (text(sentences.CHANGED), _list(report.changed))
    yield from (text(sentences.summary(report)), "## What it costs", *_costs(report))
    yield text(sentences.verdict(report))


def _costs(report: Report) -> Iterator[str]:
    changes = sentences.changed_shares(report)
    if changes:
        yield _list(changes)
    yield text(sentences.costs_note(report))
    lines = sentences.cost_lines(report)
    if lines:
        yield table(sentences.cost_heads(report), lines)
    hidden = sentences.hidden_costs(report)
    if hidden is not None:
        yield text(hidden)


def _sections(report: Report) -> Iterator[str]:
    yield from ("## What was asked for", _list(report.wishes))
    yield from ("## What was reached", text(sentences.rates_note(report)), _rates(report))
    if report.warnings:
        yield from (text(sentences.WARNINGS), _list(report.warnings))
    yield from ("## The groups, and the outcome in them", *_groups(report))
    yield from ("## A model trained on this", *_model(report))
    yield from ("## What changed most", text(sentences.MOVES), _moves(report))
    yield from ("## Every column", text(sentences.MARGINALS), *_columns(report))
    yield from ("## Pairwise structure", text(sentences.ASSOCIATIONS), *_pairs(report))
    yield from ("## Trade-off", *_trade_off(report))
    yield from ("## Copies of real rows", text(sentences.copies_note(report)))
    if report.copies is not None:
        yield from (_list(f"{share} {line}" for line, share in sentences.copy_lines(report)), sentences.PRIVACY)
    lines = sentences.certificate_lines(report)
    yield from ("## Certificate", text(sentences.CERTIFICATE), table(("Quantity", "Value", "Meaning"), lines))
    yield from ("## Limits of the method", _list(sentences.LIMITS))
    yield "## How to repeat it"
    data = sentences.data_file(report)
    if data is not None:
        yield text(data)
    if report.source.command is not None:
        yield _code(report.source.command)
    yield from (
        sentences.call_note(report),
        _code(report.call),
        text(sentences.versions(report)),
        text(sentences.footer(report)),
    )


def _rates(report: Report) -> str:
    drawn = report.mode == "rows"
    heads = ["Rate", "Wanted", "Before", "Achieved", sentences.DELIVERED_NAMES[report.mode], "State", "Worst before"]
    rows = [
        (
            f"{sentences.RATE_NAMES[rate.kind]}, {rate.grouping}",
            sentences.wanted(rate),
            f"{rate.before:.4f}",
            f"{rate.achieved:.4f}",
            sentences.delivered(rate),
            sentences.state(rate)[1],
            rate.worst_before,
            *([sentences.interval(rate)] if drawn else []),
        )
        for rate in report.rates
    ]
    return table([*heads, *(["Independent draws"] if drawn else [])], rows)


def _groups(report: Report) -> Iterator[str]:
    for grouping in report.groupings:
        what = "size" if grouping.outcome is None else f"{report.outcome} = {grouping.outcome}"
        yield f"### {text(f'{grouping.name}: {what}')}"
        rows = [(shift.label, f"{shift.rows:,}", *_change(shift.before, shift.after)) for shift in grouping.shifts]
        yield table(("Group", "Rows", "Before", "After"), rows)


def _model(report: Report) -> Iterator[str]:
    yield model_estimate.WHY
    tried = report.certificate["decisions"]
    if tried is not None:
        yield text(decisions.how(tried))
        yield table(decisions.HEAD, list(decisions.lines(tried)))
    known = report.certificate["downstream"]
    if known is None:
        yield text(model_estimate.NOT_ESTIMATED)
        return
    yield text(model_estimate.how(known))
    rows = [
        (name, *map(model_estimate.number, values), meaning) for name, meaning, *values in model_estimate.lines(known)
    ]
    yield table(("Expected", "Before", "After", "Meaning"), rows)
    advice = report.advice
    if advice is not None:
        yield text(advice)
    yield model_estimate.ONE_NOTION


def _moves(report: Report) -> str:
    rows = [
        (move.column, move.level, *_change(move.before, move.after), number_text.points(move.before, move.after))
        for move in report.moves
    ]
    return table(("Column", "Level", "Before", "After", "Change, points"), rows)


def _columns(report: Report) -> Iterator[str]:
    for column in report.marginals:
        yield f"### {text(column.name)}"
        yield text(f"{column.role}, {column.kind}, distance {number_text.percent(column.distance)}")
        levels = [(shift.label, *_change(shift.before, shift.after)) for shift in column.shifts]
        yield table(("Level", "Before", "After"), levels)


def _pairs(report: Report) -> Iterator[str]:
    pairs = report.associations
    yield "Pairs that changed most:"
    rows = [(f"{pair.first}, {pair.second}", f"{pair.before:.3f}", f"{pair.after:.3f}") for pair in pairs.shifts]
    yield table(("Columns", "Before", "After"), rows)
    for when, matrix in (("Before", pairs.before), ("After", pairs.after)):
        yield f"{when}:"
        lines = [
            (name, *(f"{value:.2f}" for value in values)) for name, values in zip(pairs.names, matrix, strict=True)
        ]
        yield table(("", *pairs.names), lines)


def _trade_off(report: Report) -> Iterator[str]:
    if report.trade_off.skipped is not None:
        yield f"The trade-off was not computed: {text(report.trade_off.skipped)}."
        return
    yield text(sentences.TRADE_OFF)
    rows = []
    for point in report.trade_off.points:
        name = f"{point.varied} = {point.value:g}" + (" (this fit)" if point.is_this_fit else "")
        if point.effective_rows is None:
            rows.append((name, f"not possible: {point.problem}", "", ""))
        else:
            distance = "–" if point.distance is None else f"{point.distance:.4f}"
            rows.append((name, distance, f"{point.effective_rows:,.0f}", number_text.percent(point.seen)))
    yield table(("Varied", "Distance", "Effective rows", "Seen combinations"), rows)


def _change(before: float | None, after: float | None) -> tuple[str, str]:
    return number_text.percent(before), number_text.percent(after)


def text(raw: str) -> str:
    """Write any text so that Markdown shows it as it is, on one line.

    >>> text("<b> a|b")
    '&lt;b&gt; a\\\\|b'
    """
    return _MARKUP.sub(r"\\\1", html.escape(isolated(" ".join(raw.splitlines())), quote=False))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; every cell is text."""
    lines = [heads, ["---"] * len(heads), *rows]
    written = [[cell if number == 1 else text(cell) for cell in line] for number, line in enumerate(lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {text(line)}" for line in lines)


def _code(raw: str) -> str:
    """Indent, which no content can end."""
    return "\n".join(f"    {line}" for line in visible(raw).splitlines())
