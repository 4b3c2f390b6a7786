"""The report as Markdown: the same numbers, for a repository or a wiki."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from fairmaxent.fit.share_text import percent
from fairmaxent.plain_text import isolated, visible
from fairmaxent.report import decisions, evaluated, model_estimate, sentences, tables
from fairmaxent.report.build import Report
from fairmaxent.report.first_page import FirstPage, first_page, left_out_alerts
from fairmaxent.report.text_table import TextTable

# Characters that would begin markup; each is written as text.
_MARKUP = re.compile(r"([\\`*_\[\]|#~$])")


def to_markdown(report: Report) -> str:
    """Render the report."""
    return "\n\n".join([*_first_page(first_page(report)), "## Appendix", *_sections(report)]) + "\n"


def _first_page(page: FirstPage) -> Iterator[str]:
    yield f"# Fairness report: {text(page.title)}"
    filed = (("Author", page.author), ("Written", page.date), ("Purpose", page.purpose))
    yield _list(f"{name}: {value}" for name, value in filed)
    yield text(page.summary)
    if page.alerts:
        yield from (f"**{text(sentences.ALERTS)}**", _list(page.alerts))
    for answer in page.answers:
        yield f"## {answer.question}"
        yield _list(answer.lines) if len(answer.lines) > 1 else text("".join(answer.lines))
        if answer.table is not None:
            yield table(answer.table)
        yield from map(text, answer.notes)
    yield from ("## Files and versions", _list(f"{name}: {value}" for name, value in page.record))


def _sections(report: Report) -> Iterator[str]:
    yield from ("### Everything that was asked for", _list(report.wishes))
    yield from ("### The rates in detail", text(sentences.rates_note(report)), table(tables.rates_table(report)))
    if report.warnings:
        yield from (text(sentences.WARNINGS), _list(report.warnings))
    yield from ("### The costs in detail", *_costs(report))
    yield from ("### The groups and their outcomes", *_groups(report))
    yield from ("### A model trained on this", *_model(report))
    yield "### What changed most"
    yield from (text(sentences.MOVES), table(tables.moves_table(report))) if report.moves else (sentences.NO_MOVES,)
    yield from ("### Every column", text(sentences.MARGINALS), *_columns(report))
    yield from ("### Pairwise structure", text(sentences.associations_note(report)), *_pairs(report))
    yield from ("### Trade-off", *_trade_off(report))
    if report.promise is not None:
        yield from ("### Privacy", text(sentences.ledger_note(report)), table(tables.ledger_table(report)))
    yield from ("### Copies of real rows", text(sentences.copies_note(report)))
    if report.copies is not None:
        yield _list(f"{share} {line}" for line, share in sentences.copy_lines(report))
        yield text(sentences.privacy_note(report))
    yield from _evaluation(report)
    yield from ("### Certificate", text(sentences.CERTIFICATE), table(tables.certificate_table(report)))
    yield from ("### Limits of the method", _list(sentences.LIMITS))
    yield "### How to repeat it"
    if report.source.command is not None:
        yield _code(report.source.command)
    yield from (
        sentences.call_note(report),
        _code(report.call),
        text(f"{sentences.seed(report)} {sentences.options_note(report)}"),
        text(sentences.footer(report)),
    )


def _costs(report: Report) -> Iterator[str]:
    yield from map(_list, filter(None, (left_out_alerts(report), sentences.changed_shares(report))))
    if report.changed:
        yield from (text(sentences.CHANGED), _list(report.changed))
    yield text(sentences.costs_note(report))
    costs = tables.costs_table(report)
    if costs.rows:
        yield table(costs)
    hidden = sentences.hidden_costs(report)
    if hidden is not None:
        yield text(hidden)


def _groups(report: Report) -> Iterator[str]:
    for grouping in report.groupings:
        what = "size" if grouping.outcome is None else f"{grouping.column} = {grouping.outcome}"
        yield f"#### {text(f'{grouping.name}: {what}')}"
        rows = [(shift.label, f"{shift.rows:,}", *_change(shift.before, shift.after)) for shift in grouping.shifts]
        yield lines_table(("Group", "Rows", "Before", "After"), rows)


def _model(report: Report) -> Iterator[str]:
    yield model_estimate.WHY
    tried = report.certificate["decisions"]
    if tried is not None:
        yield text(decisions.how(tried))
        yield table(tables.decisions_table(tried, report.favourable))
    known = report.certificate["estimate"]
    if known is None:
        yield text(sentences.not_estimated(report))
        return
    yield text(model_estimate.how(known, favourable=report.favourable, private=report.promise is not None))
    yield table(tables.model_table(known, report.favourable))
    advice = report.advice
    if advice is not None:
        yield text(advice)
    yield model_estimate.ONE_NOTION


def _columns(report: Report) -> Iterator[str]:
    for column in report.marginals:
        yield f"#### {text(column.name)}"
        yield text(f"{column.role}, {column.kind}, distance {percent(column.distance)}")
        levels = [(shift.label, *_change(shift.before, shift.after)) for shift in column.shifts]
        yield lines_table(("Level", "Before", "After"), levels)


def _pairs(report: Report) -> Iterator[str]:
    pairs = report.associations
    yield from ("#### Pairs that changed most", text(sentences.pairs_note(report)))
    if pairs.shifts:
        yield table(tables.pairs_table(report))
    for when, matrix in (("Before", pairs.before), ("After", pairs.after)):
        yield f"{when}:"
        lines = [
            (name, *(f"{value:.2f}" for value in values)) for name, values in zip(pairs.names, matrix, strict=True)
        ]
        yield lines_table(("", *pairs.names), lines)


def _trade_off(report: Report) -> Iterator[str]:
    if report.trade_off.skipped is not None:
        yield f"The trade-off was not computed: {text(report.trade_off.skipped)}."
        return
    yield from (text(sentences.trade_off_note(report)), table(tables.trade_off_table(report)))


def _evaluation(report: Report) -> Iterator[str]:
    if report.evaluation is None:
        return
    yield "### What the rows give away"
    judged = report.evaluation.evaluation
    if judged is None:
        yield f"The rows were not judged: {text(report.evaluation.skipped or '')}."
        return
    answer, *reasons = report.evaluation.verdict
    yield from (f"**{text(answer)}** {text(' '.join(reasons))}", text(evaluated.how(judged)))
    yield from (table(evaluated.risk_table(judged)), text(evaluated.closest(judged)))
    if judged.utility is not None:
        yield from (text(evaluated.UTILITY), table(evaluated.utility_table(judged)))
    yield from (text(evaluated.FIDELITY), table(evaluated.fidelity_table(judged)))


def _change(before: float | None, after: float | None) -> tuple[str, str]:
    return percent(before), percent(after)


def text(raw: str) -> str:
    """Write any text so that Markdown shows it as it is, on one line.

    >>> text("<b> a|b")
    '&lt;b&gt; a\\\\|b'
    """
    return _MARKUP.sub(r"\\\1", html.escape(isolated(" ".join(raw.splitlines())), quote=False))


def table(shown: TextTable) -> str:
    """Write a table."""
    return lines_table(shown.heads, shown.rows)


def lines_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table from its lines; every cell is text."""
    lines = [heads, ["---"] * len(heads), *rows]
    written = [[cell if number == 1 else text(cell) for cell in line] for number, line in enumerate(lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in written)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {text(line)}" for line in lines)


def _code(raw: str) -> str:
    """Indent, which no content can end."""
    return "\n".join(f"    {line}" for line in visible(raw).splitlines())
