"""The first page: what a busy reader looks for, in the same words in every form.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has
the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from fairmaxent.data.levels import Notes
from fairmaxent.document import (
    Block,
    Blocks,
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
    percent,
    rounded,
    short_name,
    shortened,
)
from fairmaxent.errors import cut
from fairmaxent.fit.groups import Changes
from fairmaxent.fit.likely import likely_blocks
from fairmaxent.fit.statements import (
    FEWEST_KINDS,
    cost_blocks,
    decision_blocks,
    estimate_blocks,
    filled_lines,
    mean_blocks,
    noise_of_counts,
    not_estimated,
    outcome_lines,
    rate_text,
    small_group_lines,
)
from fairmaxent.report.rates import Reached
from fairmaxent.report.report import Report
from fairmaxent.report.shares import by_outcome, outcome_table, units_of, with_room

EFFECTIVE = (
    "Effective rows: how many equally weighted rows would say as much about a group as"
    " its real rows do with their fair weights."
)
_RANGE = (
    "95% range: where the rate among all such people lies, with 95% confidence, if they"
    " are independent of each other."
)
_NOISE = "These rates and counts are noisy, because the fit is private."
_ELSEWHERE = ": see the appendix."
# shown of each: lines of an answer, rows of a table, groups, and copies
_LINES = 4
_ROWS = 6
_DRAWN = 11
_COPIES = 2
# characters of the title, a line and a warning
_TITLE = 100
_LINE = 220
_ALERT = 440
_MOST = 2500  # characters in all that fit on a sheet in normal print


def first_page(report: Report) -> Document:
    """The report without its appendix: warnings, answers, and what identifies it."""
    people, groups = _groups(report)
    asked = (*_first(report.wishes, "point"), report.summary())
    answers = [
        Section("groups", "Before and after", "Groups", groups),
        _answer("asked", "What was asked and done", [Listing(asked)]),
        _answer("reached", "What was reached", _reached(report)),
        _answer("costs", "What it cost, and whom", _costs(report)),
        _answer("model", "What a model trained on this will do", _model(report)),
        _answer(
            "copies", "Copies of real people", [Listing(copy_lines(report)[:_COPIES])]
        ),
        _answer("not-for", "Do not use this", [Listing(tuple(_prohibitions(report)))]),
    ]
    likely = tuple(likely_blocks(report.certificate.likely))
    if likely:
        answers.insert(1, _answer("likely", "Groups that nobody wrote down", likely))
    if report.alerts:
        warning = Note("This result rests on very few people:", report.alerts)
        answers.insert(1, _answer("warning", "Warning", [warning]))
    title = f"{report.favourable}, by {', '.join(report.protected)}"
    page = Document(
        kind="Fairness report",
        title=cut(report.filing.title or title, _TITLE),
        filing=report.filing.pairs,
        summary=people or report.verdict(),
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
    if report.certificate.privacy is not None:
        known_from = "by noisy counts"
    return _in_people(by_column[column, outcome], known_from), (
        outcome_table(label, shown, _about_groups(report)),
        *_hidden(len(groups), len(shown), "group"),
        *_hidden(len(outcomes), 1, "outcome"),
    )


def _about_groups(report: Report) -> str:
    ledger = report.certificate.privacy
    sure = _RANGE
    if ledger is not None:
        sure = f"{_NOISE} {noise_of_counts(ledger)}."
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


def _reached(report: Report) -> Blocks:
    """The rates asked for, the ones not met first; all rates if none was asked for."""
    yield Paragraph(report.verdict())
    asked = [rate for rate in report.rates if rate.wanted is not None]
    by_need = sorted(asked or report.rates, key=lambda rate: bool(rate.met))
    yield rates_table(report, by_need)
    apart = small_group_lines(report.certificate.set_apart)
    if apart:
        yield Listing(_first(apart, "group"))
    yield from mean_blocks(report.certificate.means)


def rates_table(
    report: Report, rates: Sequence[Reached], *, in_detail: bool = False
) -> Table:
    """Each rate wanted, before and as it was delivered; in detail, there is more."""
    heads = ["1 means equal", "Wanted", "Before", report.delivered_name, "State"]
    if in_detail:
        heads += ["Achieved", "Worst before"]
        if report.mode == "rows":
            heads.append("Independent draws")
    rows = []
    states = []
    for rate in rates:
        state, words = report.state(rate)
        cells = (
            rate.name,
            rate.wanted_text,
            rate_text(rate.before),
            rate_text(rate.delivered),
            words,
            rate_text(rate.achieved),
            rate.worst_before,
            rate.interval_text,
        )
        rows.append(cells[: len(heads)])
        states.append(state)
    return Table(
        "Rates",
        tuple(heads),
        tuple(rows),
        state=4,
        states=tuple(states),
    )


def _costs(report: Report) -> Blocks:
    costs = report.costs
    yield Listing(tuple(_cost_lines(report)))
    yield from cost_blocks(
        costs.groups, costs.worst_cell, [costs.about_one(report.mode)], _ELSEWHERE, 3
    )
    if costs.groups:
        yield Paragraph(EFFECTIVE)


def _cost_lines(report: Report) -> Iterator[str]:
    yield from _first([*outcome_lines(report.costs.outcomes)], "outcome")
    for change in _first(report.changed, "group"):
        yield f"Outcomes were changed for {change}"
    yield from filled_lines(report.costs.filled)
    if not report.costs.groups:
        yield "What the result costs each group is not known for this fit."


def _model(report: Report) -> Blocks:
    certificate = report.certificate
    if certificate.estimate is not None:
        yield from estimate_blocks(certificate.estimate, kinds=FEWEST_KINDS)
    elif certificate.decisions is not None:
        yield from decision_blocks(certificate.decisions)
    elif certificate.likely is not None:
        yield Paragraph("It was not estimated, because nobody's group is known.")
    else:
        how = "use"
        if report.promise is not None:
            how = "which spends nothing, write a report from its file with"
        spell = report.source.front_door.spell
        yield Paragraph(f"{not_estimated(report.mode, spell, how)}.")
    if report.advice is not None:
        yield Paragraph(report.advice)


def copy_lines(report: Report) -> Notes:
    """How many rows are real ones, or why there is nothing to count."""
    copies = report.copies
    if report.promise is not None:
        return (
            "No row of the data was used to draw the new rows, only noisy counts. A new"
            " row that equals a real one does so by chance, and that cannot be told"
            " without the data.",
        )
    if copies is None:
        reason = "none had to be added"
        if report.mode == "weights":
            reason = "only weights were added"
            if report.relabelled:
                reason = "each appears once per outcome, with a weight"
        return (f"All rows are real: {reason}. Sharing them means sharing the data.",)
    new = "added" if report.mode == "top-up" else "new"
    rows = f"{copies.rows:,} {new} rows"
    if copies.rows < report.new_rows:
        rows = f"the first {rows}"
    shares = {
        "have exactly the values of a real row in every column": copies.same_values,
        "have exactly the values of a real row that occurs once, which may point to a"
        " person": copies.same_values_as_one,
        "have the same levels as a real row in every column": copies.same_levels,
    }
    lines = [
        f"{percent(share)} of {rows} ({round(share * copies.rows):,}) {what}"
        for what, share in shares.items()
        if share is not None
    ]
    if copies.same_values is None:
        lines.insert(
            0, "Exact copies were not counted, because the data were not given."
        )
    lines.append(
        f"{percent(copies.expected_same_levels)} is the exact expectation of that share"
    )
    if copies.twins_in_data is not None:
        lines.append(
            f"{percent(copies.twins_in_data)} of the real rows have exactly the values"
            " of another real row, for comparison"
        )
    return tuple(lines)


def _prohibitions(report: Report) -> Iterator[str]:
    """The uses that this result does not bear, the most dangerous first."""
    if report.promise is not None:
        yield (
            "together with another private fit of the same people without adding up"
            " what both reveal (their ρ)."
        )
    else:
        why = "every row is a real one"
        if report.copies is not None:
            why = "rows may be copies of real ones"
        yield (
            f"as anonymous data, and do not share it more widely than the data: {why}."
        )
    what = "shares and rates were changed"
    if report.relabelled:
        what = "outcomes were changed"
    yield (
        f"for statistics about the real world, or to judge a person: {what} on purpose."
    )
    if report.alerts:
        yield (
            "to say anything about the groups in the warning: too much rests on too few"
            " people."
        )
    yield (
        "as proof that a model trained on it is fair: test the decisions of your own"
        " model on people it has not seen."
    )
    columns = short_name(", ".join(report.protected))
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and"
        " only by how often they have the outcome."
    )
