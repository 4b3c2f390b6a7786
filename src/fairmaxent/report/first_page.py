"""The first page: what a busy reader looks for, in the same words in every form.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has
the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

import numpy as np

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
    counted,
    percent,
    rounded,
    short_name,
    shortened,
    times,
)
from fairmaxent.errors import Option, cut
from fairmaxent.fit.facts import ModelEstimate
from fairmaxent.fit.groups import GroupChange
from fairmaxent.fit.statements import (
    cost_row,
    expected_lines,
    filled_lines,
    noise_of_counts,
    outcome_lines,
    range_text,
    rate_text,
)
from fairmaxent.report.report import Report
from fairmaxent.report.shares import outcome_table

_EFFECTIVE = (
    "Effective rows: how many equally weighted rows would say as much about a group as"
    " its real rows do with their fair weights."
)
_RANGE = "95% range: where the rate among all such people lies, with 95% confidence."
_NOISE = "These rates and counts are noisy, because the fit is private."
_MODEL = "What a model trained on this will do"
# lines shown of each
_DRAWN = 12
_ALERTS = 3
_WISHES = 5
_RATES = 4
_GROUPS = 4
_CHANGES = 4
_GROUPINGS = 2
# characters of the title, a line and a warning
_TITLE = 100
_LINE = 220
_ALERT = 440
_MOST = 2500  # characters in all that fit on a sheet in normal print

Item = TypeVar("Item")


def first_page(report: Report) -> Document:
    """The report without its appendix: warnings, answers, and what identifies it."""
    people, groups = _groups(report)
    answers = (
        groups,
        *_warning(report),
        _asked(report),
        _reached(report),
        _costs(report),
        _model(report),
        _answer("copies", "Copies of real people", [*_copies(report)]),
        _answer("not-for", "Do not use this", [*_prohibitions(report)]),
    )
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
            " possible combinations. Written by fairmaxent. What such rates are"
            " evidence of, in law: docs/questions/law.md."
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


# ---------------------------------------------------------------- parts of an answer


def _answer(
    key: str,
    question: str,
    lines: Sequence[str],
    table: Table | None = None,
    notes: Sequence[str] = (),
) -> Section:
    """One sentence, or several as a list; then a table, and what is said below it."""
    blocks: list[Block] = [Paragraph("".join(lines))]
    if len(lines) > 1:
        blocks = [Listing(tuple(lines))]
    if table is not None:
        blocks.append(table)
    blocks += map(Paragraph, notes)
    return Section(key, question, question, tuple(blocks))


def _first(
    items: Sequence[Item], room: int, what: str
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The first items, and a line that counts the others, which are at least two."""
    if len(items) <= room:
        return items, ()
    left = len(items) - room + 1
    return items[: room - 1], (f"{counted(left, f'more {what}')}: see the appendix.",)


def _all(lines: Sequence[str], room: int, what: str) -> tuple[str, ...]:
    kept, more = _first(lines, room, what)
    return (*kept, *more)


# ---------------------------------------------------------------- answers


def _warning(report: Report) -> Iterator[Section]:
    if report.alerts:
        alerts = _all(report.alerts, _ALERTS, "warning")
        shown = tuple(shortened(alert, _ALERT) for alert in alerts)
        note = Note("This result rests on very few people:", shown)
        yield Section("warning", "Warning", "Warning", (note,))


def _asked(report: Report) -> Section:
    wishes = [shortened(wish, _LINE) for wish in _all(report.wishes, _WISHES, "point")]
    return _answer("asked", "What was asked and done", [*wishes, report.summary()])


def _groups(report: Report) -> tuple[str, Section]:
    """How often groups have an outcome: said of people, and drawn.

    The outcome is the rarest of those compared in the first protected column.
    """
    column = report.groups[0].column
    own = [change for change in report.groups if change.column == column]
    outcome = min(own, key=_known_rate).about
    groups = [change for change in report.groups if change.about == outcome]
    by_column: dict[str, list[GroupChange]] = {}
    for change in sorted(groups, key=lambda change: -change.rows):
        by_column.setdefault(change.column, []).append(change)
    # the largest group of each column, then the second largest, …
    ranks = zip_longest(*by_column.values())
    ranked = [change for rank in ranks for change in rank if change is not None]
    kept, more = _first(ranked, max(_DRAWN, 2 * len(by_column) + 1), "group")
    label = f"How often each group has {short_name(outcome)}"
    shown = [change for change in groups if change in kept]
    left = len({change.about for change in report.groups}) - 1
    if left:
        more += (f"{counted(left, 'more outcome')}: see the appendix.",)
    blocks: list[Block] = [outcome_table(label, shown, _about_groups(report))]
    blocks += map(Paragraph, more)
    section = Section("groups", "Before and after", "Groups", tuple(blocks))
    return _in_people(by_column[column]), section


def _known_rate(change: GroupChange) -> float:
    return float(np.nan_to_num(change.rate_before, nan=1.0))


def _about_groups(report: Report) -> str:
    ledger = report.certificate.privacy
    sure = _RANGE
    if ledger is not None:
        sure = f"{_NOISE} {noise_of_counts(ledger)}."
    rows = report.delivered_name.lower()
    return f"Before: in the data. After: in the {rows}. {sure}"


def _in_people(groups: Sequence[GroupChange]) -> str:
    """Say how many of a hundred people of the two largest groups have the outcome.

    Say it of a thousand people, or of more, if that is less than one.
    """
    known = (group.rate_before + group.rate_after for group in groups)
    largest = [
        group for group, rate in zip(groups, known, strict=True) if not np.isnan(rate)
    ][:2]
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
            f"f {people:,} people with {short_name(group.name)}, {before}{have} in the"
            f" data and {after} in the result"
        )
        have = ""  # what they have is said once
    if parts:
        return f"O{'; o'.join(parts)}."
    return ""


def _reached(report: Report) -> Section:
    """The rates asked for, the ones not met first; all rates if none was asked for."""
    asked = [rate for rate in report.rates if rate.wanted is not None]
    by_need = sorted(asked or report.rates, key=lambda rate: bool(rate.met))
    rates, more = _first(by_need, _RATES, "rate")
    rows = []
    states = []
    for rate in rates:
        grouping = short_name(rate.grouping)
        name = f"How equal in size the groups of {grouping} are (representation rate)"
        if rate.outcome is not None:
            name = (
                f"How equally common {short_name(rate.outcome)} is in the groups of"
                f" {grouping} (statistical rate)"
            )
        before = f"{rate.before:.4f}"
        state, words = report.state(rate)
        rows.append((name, rate.wanted_text, before, rate_text(rate.delivered), words))
        states.append(state)
    table = Table(
        "Rates that were reached",
        ("1 means equal", "Wanted", "Data", report.delivered_name, "State"),
        tuple(rows),
        state=4,
        states=tuple(states),
    )
    lines = (report.verdict(), *(shortened(line, _LINE) for line in report.means))
    return _answer("reached", "What was reached", lines, table, more)


def _costs(report: Report) -> Section:
    by_rows = sorted(report.costs.groups, key=lambda group: group.effective_rows)
    chosen, notes = _first(by_rows, _GROUPS, "group")
    table = None
    if chosen:
        heads = ("Group", "Rows", "Share before", "Share after", "Effective rows")
        rows = tuple(
            cost_row(short_name(group.name), group, [report.last_cost])
            for group in report.costs.groups
            if group in chosen
        )
        table = Table(
            "What it cost each group", (*heads, report.last_cost.capitalize()), rows
        )
        notes = (_EFFECTIVE, *notes)
    return _answer(
        "costs", "What it cost, and whom", tuple(_cost_lines(report)), table, notes
    )


def _cost_lines(report: Report) -> Iterator[str]:
    if len(report.costs.outcomes) == 1:
        (share,) = report.costs.outcomes
        yield from outcome_lines([replace(share, outcome=short_name(share.outcome))])
    most = report.counting["most"]
    least = report.counting["least"]
    if report.changed:
        for change in _all(report.changed, _CHANGES, "group"):
            end = "" if change.endswith(".") else "."
            yield f"Outcomes were changed for {shortened(change, _LINE)}{end}"
    elif _factor(most.times) == _factor(least.times):
        yield "Everyone counts the same as in the data."
    else:
        yield (
            f"Those with {short_name(most.name)} count most: {_factor(most.times)}"
            f" times their share of the data. Those with {short_name(least.name)} count"
            f" least: {_factor(least.times)} times."
        )
    yield from filled_lines(report.costs.filled)
    if not report.costs.groups:
        yield "What the result costs each group is not known for this fit."


def _factor(multiple: float) -> str:
    """Write how many times as large a share is; below one with two digits."""
    if multiple >= 0.995:
        return times(multiple)
    return f"{rounded(multiple, 2):.2f}"


def _model(report: Report) -> Section:
    estimate = report.certificate.estimate
    decisions = report.certificate.decisions
    if estimate is not None:
        return _estimated(report, estimate)
    if decisions is not None:
        outcome = short_name(report.favourable)
        lines = tuple(
            f"It is made for {decisions.student}: among people it has not seen, the"
            f" statistical rate of its decisions for {short_name(rate.grouping)}"
            f" ({outcome}) is expected to be {rate_text(rate.rate, 3)}."
            for rate in decisions.rates[:_GROUPINGS]
        )
        return _answer("model", _MODEL, lines)
    how = "write the report"
    if report.promise is not None:
        how = "which spends nothing, write a report from its model"
    parts = (
        f"This was not estimated for this fit. To estimate it, {how} with ",
        Option("estimate", "weights" if report.mode == "weights" else "rows"),
        ".",
    )
    return _answer("model", _MODEL, (report.source.front_door.text_of(parts),))


def _estimated(report: Report, estimate: ModelEstimate) -> Section:
    """How equal a model's predictions will be, and how often they will be right."""
    rates = list(expected_lines(estimate, ["by_predictions"]))
    compared, notes = _first(rates, _GROUPINGS, "rate")
    rows = []
    for line in (*compared, *expected_lines(estimate, ["accuracy"])):
        name = line.label
        if line.grouping is not None:
            name = (
                f"How equally often it predicts {short_name(report.favourable)} in the"
                f" groups of {short_name(line.grouping)} (1 means equal)"
            )
        before, after = (rate_text(value, 3) for value in line.values)
        rows.append((name, before, after, range_text(line.ranges[1])))
    trained = "new rows" if estimate.output == "rows" else "weighted rows"
    heads = (
        "Expected",
        "Trained on the data",
        f"On the {trained}",
        f"95% range, {trained}",
    )
    table = Table("What a model is expected to do", heads, tuple(rows))
    head = f"An estimate for {estimate.student}, on people that it has not seen:"
    if report.advice is not None:
        notes = (shortened(report.advice, _ALERT), *notes)
    return _answer("model", _MODEL, (head,), table, notes)


def _copies(report: Report) -> Iterator[str]:
    """How many rows are real ones, and what to do about that."""
    copies = report.copies
    if report.promise is not None:
        yield (
            "No row of the data was used to draw the new rows, only noisy counts. A new"
            " row that equals a real one does so by chance, and that cannot be told"
            " without the data."
        )
        return
    if copies is None:
        reason = "none had to be added"
        if report.mode == "weights":
            reason = "only weights were added"
            if report.relabelled:
                reason = "each appears once per outcome, with a weight"
        yield f"All rows are real: {reason}. Sharing them means sharing the data."
        return
    new = "added" if report.mode == "top-up" else "new"
    rows = f"{copies.rows:,} {new} rows"
    if copies.rows < report.new_rows:
        rows = f"the first {rows}"
    if copies.same_values is None or copies.same_values_as_one is None:
        yield (
            f"About {percent(copies.same_levels)} of {rows} have the same levels as a"
            " real row in every column. Exact copies were not counted, because the"
            " data were not given."
        )
    else:
        yield (
            f"{percent(copies.same_values)} of {rows}"
            f" ({round(copies.same_values * copies.rows):,}) have exactly the values of"
            f" a real row; {percent(copies.same_values_as_one)} have those of a row"
            " that occurs only once, which may point to a person."
        )
    if copies.same_levels > 0:
        yield "Treat the new rows the way you would treat the data."


def _prohibitions(report: Report) -> Iterator[str]:
    """The uses that this result does not bear, the most dangerous first."""
    if report.promise is not None:
        yield (
            "together with another private fit of the same people without adding up"
            " what both reveal (their ρ)."
        )
    else:
        yield (
            "as anonymous data, and do not share it more widely than the data:"
            f" {_likeness(report)}."
        )
    what = "shares and rates were changed"
    if report.relabelled:
        what = "outcomes were changed"
    yield (
        f"for statistics about the real world, or to judge a person: {what} on purpose."
    )
    tiny = [
        short_name(group.name) for group in report.costs.groups if group.beyond_line
    ]
    if tiny:
        who = tiny[0]
        if len(tiny) > 1:
            who += f" and {counted(len(tiny) - 1, 'more group')}"
        yield f"to say anything about {who}: too much rests on too few people."
    yield (
        f"as proof that a model trained on it is fair{_least_expected(report)}: test"
        " the decisions of your own model on people it has not seen."
    )
    columns = short_name(", ".join(report.protected))
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and"
        " only by how often they have the outcome."
    )


def _likeness(report: Report) -> str:
    """How many rows are real ones, or look like real ones."""
    if report.copies is None:
        return "every row is a real one"
    if report.copies.same_values is None:
        alike = percent(report.copies.same_levels)
        return f"{alike} of the rows are like real ones in every column"
    same = percent(report.copies.same_values)
    return f"{same} of the rows are copies of real ones"


def _least_expected(report: Report) -> str:
    """The lowest statistical rate that a model's decisions are expected to have."""
    estimate = report.certificate.estimate
    if estimate is None:
        return ""
    expected = estimate.after.by_predictions.items()
    rates = [(rate, short_name(name)) for name, rate in expected if rate is not None]
    if not rates:
        return ""
    rate, name = min(rates, key=lambda pair: pair[0])
    return f" (expected: {rate:.3f} for {name})"
