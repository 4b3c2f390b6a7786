"""The first page: what a busy reader looks for, in the same words in every form.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has
the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from fairmaxent.data.levels import Notes
from fairmaxent.document import (
    Block,
    Document,
    Listing,
    Note,
    Paragraph,
    Section,
    Table,
)
from fairmaxent.document.words import (
    capital,
    first,
    more,
    rounded,
    short_name,
    shortened,
)
from fairmaxent.errors import cut
from fairmaxent.fit.groups import Changes
from fairmaxent.report.report import Report
from fairmaxent.report.shares import by_outcome, outcome_table, units_of, with_room
from fairmaxent.telling.case import Topic, Weight
from fairmaxent.telling.entries import told
from fairmaxent.telling.sharing import noise_of_counts

_RANGE = (
    "95% range: where the rate among all such people lies, with 95% confidence, if they"
    " are independent of each other."
)
_NOISE = "These rates and counts are noisy, because the fit is private."
_ELSEWHERE = ": see the appendix."
# what a busy reader asks, by what is said of it
_QUESTIONS: dict[Topic, str] = {
    "warning": "Warning",
    "likely": "Groups that nobody wrote down",
    "privacy": "What is promised",
    "asked": "What was asked and done",
    "reached": "What was reached",
    "costs": "What it cost, and whom",
    "model": "What a model trained on this will do",
    "copies": "Copies of real people",
    "not-for": "Do not use this",
}
# shown of each: lines of an answer, rows of a table, and groups
_LINES = 4
_ROWS = 6
_DRAWN = 11
# characters of the title, a line and a warning
_TITLE = 100
_LINE = 220
_ALERT = 440
_MOST = 2500  # characters in all that fit on a sheet in normal print


def first_page(report: Report) -> Document:
    """The report without its appendix: warnings, answers, and what identifies it."""
    people, groups = _groups(report)
    case = replace(report.case, rest=_ELSEWHERE, rows=_LINES)
    answers = [Section("groups", "Before and after", "Groups", groups)]
    for topic, question in _QUESTIONS.items():
        blocks = [*told(case, least=Weight.COST, topics=[topic])]
        if topic == "warning" and report.alerts:
            blocks = [Note("Read this before you use the result:", report.alerts)]
        if topic == "asked":
            blocks = [Listing((*_first(report.wishes, "point"), report.summary()))]
        if blocks:
            answers.append(_answer(topic, question, blocks))
    title = f"{report.favourable}, by {', '.join(report.protected)}"
    page = Document(
        kind="Fairness report",
        title=cut(report.filing.title or title, _TITLE),
        filing=report.filing.pairs,
        summary=people or report.summary(),
        first_page=(*answers, report.source.section(report.versions)),
        appendix=(),
        footer=(
            f"{report.rows:,} rows, {report.distinct_rows:,} of them distinct as"
            f" combinations of levels, {report.columns} columns, {report.points:.3g}"
            " possible combinations. Written by fairmaxent, whose documentation has a"
            " page on what such rates are evidence of, in law."
        ),
    )
    return replace(page, print_size=_print_size(page, answers))


def _print_size(page: Document, answers: Sequence[Section]) -> float:
    """Smaller than 1 if the page has more text than fits on a sheet."""
    texts = [page.title, page.summary, *(value for _, value in page.filing)]
    for answer in answers:
        for block in answer.blocks:
            if isinstance(block, Table):
                texts += [cell for row in block.rows for cell in row]
            texts += getattr(block, "items", [getattr(block, "text", "")])
    return min(1.0, float((_MOST / sum(map(len, texts))) ** 0.5))


def _answer(key: str, question: str, blocks: Iterable[Block]) -> Section:
    """What a sheet has room for: few rows and lines, each of them cut."""
    shown: list[Block] = []
    for block in blocks:
        match block:
            case Table():
                rows = tuple(
                    (short_name(name, _LINE), *cells)
                    for name, *cells in block.rows[:_ROWS]
                )
                shown.append(replace(block, rows=rows).titled())
                shown += _hidden(len(block.rows), _ROWS, "row")
            case Note(lead, items):
                shown.append(Note(lead, _first(items, "warning", _ALERT)))
            case Listing((line,)):
                shown.append(Paragraph(line))
            case Listing(items):
                shown.append(Listing(_first(items, "line")))
            case Paragraph(text):
                shown.append(Paragraph(shortened(capital(text), _ALERT)))
            case _:
                shown.append(block)
    return Section(key, question, question, tuple(shown))


def _hidden(count: int, shown: int, noun: str) -> list[Paragraph]:
    lines = more(count, shown, noun, _ELSEWHERE)
    return [Paragraph(capital(line)) for line in lines]


def _first(lines: Sequence[str], noun: str, longest: int = _LINE) -> Notes:
    """The first lines, each of them cut, and one that counts the others."""
    kept = [shortened(line, longest) for line in lines]
    return tuple(first(kept, _LINES, noun, _ELSEWHERE))


# ---------------------------------------------------------------- answers


def _groups(report: Report) -> tuple[str, tuple[Block, ...]]:
    """How often groups have an outcome: said of people, and drawn.

    The outcome is the rarest of those compared in the first protected column.
    """
    column = report.groups[0].column
    own = [
        change
        for change in report.groups
        if change.column == column and not change.is_apart
    ] or [*report.groups]
    known = np.nan_to_num([change.rate_before for change in own], nan=1.0)
    outcome = own[known.argmin()].about
    groups = [change for change in report.groups if change.about == outcome]
    by_column = by_outcome(sorted(groups, key=lambda change: -change.rows))
    # the largest group or clearest stratum of each column, then the second, …
    ranks = zip_longest(*map(units_of, by_column.values()))
    ranked = [unit for rank in ranks for unit in rank if unit is not None]
    kept = with_room(ranked, max(_DRAWN, 2 * len(by_column)))
    label = f"How often each group has {short_name(outcome)}"
    shown = [change for change in groups if change in kept]
    outcomes = {change.about for change in report.groups}
    known_from = "in the data"
    if report.certificate.provenance.is_noisy:
        known_from = "by noisy counts"
    return _in_people(by_column[column, outcome], known_from), (
        outcome_table(label, shown, _about_groups(report)),
        *_hidden(len(groups), len(shown), "group"),
        *_hidden(len(outcomes), 1, "outcome"),
    )


def _about_groups(report: Report) -> str:
    provenance = report.certificate.provenance
    sure = _RANGE
    if provenance.is_noisy:
        sure = f"{_NOISE} {noise_of_counts(provenance)}."
    rows = report.delivered_name.lower()
    return f"Before: in the data. After: in the {rows}. {sure}"


def _in_people(groups: Changes, known_from: str) -> str:
    """Say how many of a hundred people of the two largest groups have the outcome.

    Say it of a thousand people, or of more, if that is less than one.
    """
    known = [
        group for group in groups if np.isfinite(group.rate_before + group.rate_after)
    ]
    # those that are set apart, if there are no others
    largest = sorted(known, key=lambda group: group.is_apart)[:2]
    rates = [
        rate
        for group in largest
        for rate in (group.rate_before, group.rate_after)
        if rate > 0
    ]
    least = min(rates, default=1.0)
    people = next((number for number in (100, 1000) if number * least >= 1), 10_000)
    parts = []
    have = f" have {short_name(groups[0].about)}"
    for group in sorted(largest, key=lambda group: group.rate_before):
        before = f"{rounded(people * group.rate_before, 0):,.0f}"
        after = f"{rounded(people * group.rate_after, 0):,.0f}"
        parts.append(
            f"of {people:,} people with {short_name(group.name)}, {before}{have}"
            f" {known_from} and {after} in the result"
        )
        have = ""  # what they have is said once
    if parts:
        return f"{capital('; '.join(parts))}."
    return ""
