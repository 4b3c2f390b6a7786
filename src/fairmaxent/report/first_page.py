"""The first page: the answers that a busy reader looks for, in the same words in every
form of the report.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has
the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

import numpy as np

from fairmaxent.document import Document, Listing, Note, Paragraph, Section, Table
from fairmaxent.document.words import (
    counted,
    percent,
    rounded,
    short_name,
    shortened,
    times,
)
from fairmaxent.errors import Option, cut
from fairmaxent.fit.groups import GroupChange
from fairmaxent.fit.statements import (
    cost_row,
    expected_lines,
    noise_of_counts,
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
    """The report without its appendix: what it is filed under, the warnings, the
    answers, and what identifies it.
    """
    wishes = [shortened(wish, _LINE) for wish in _all(report.wishes, _WISHES, "point")]
    alerts = tuple(
        shortened(alert, _ALERT) for alert in _all(report.alerts, _ALERTS, "warning")
    )
    few, (in_people, groups) = (
        Note("This result rests on very few people:", alerts),
        _groups(report),
    )
    answers = (
        groups,
        *([Section("warning", "Warning", "Warning", (few,))] if alerts else []),
        _answer("asked", "What was asked and done", [*wishes, report.summary()]),
        _reached(report),
        _costs(report),
        _model(report),
        _answer("copies", "Copies of real people", [*_copies(report)]),
        _answer("not-for", "Do not use this", [*_prohibitions(report)]),
    )
    page = Document(
        kind="Fairness report",
        title=cut(
            report.filing.title
            or f"{report.favourable}, by {', '.join(report.protected)}",
            _TITLE,
        ),
        filing=report.filing.pairs,
        summary=in_people or report.verdict(),
        first_page=(*answers, report.source.section(report.versions)),
        appendix=(),
        footer=(
            f"{report.rows:,} rows, {report.distinct_rows:,} of them distinct as"
            f" combinations of levels, {report.columns} columns, {report.points:.3g}"
            " possible combinations. Written by fairmaxent. What such rates are"
            " evidence of, in law: docs/questions/law.md."
        ),
    )
    texts = [page.title, page.summary, *(value for _, value in page.filing)]
    for block in (block for answer in answers for block in answer.blocks):
        if isinstance(block, Table):
            texts += [cell for row in block.rows for cell in row]
        texts += getattr(block, "items", [getattr(block, "text", "")])
    return replace(page, print_size=min(1.0, (_MOST / sum(map(len, texts))) ** 0.5))


def _answer(
    key: str,
    question: str,
    lines: Sequence[str],
    table: Table | None = None,
    notes: Sequence[str] = (),
) -> Section:
    """One sentence as it is, several as a list; then a table, if numbers say it better,
    and what is said below it.
    """
    if len(lines) > 1:
        first = Listing(tuple(lines))
    else:
        first = Paragraph("".join(lines))
    return Section(
        key,
        question,
        question,
        (first, *([] if table is None else [table]), *map(Paragraph, notes)),
    )


def _first(
    items: Sequence[Item], room: int, what: str
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The first items, and how many there are more; one item is not left out to say
    so.
    """
    if len(items) <= room:
        kept = items
    else:
        kept = items[: room - 1]
    left = len(items) - len(kept)
    return kept, (
        (f"{counted(left, f'more {what}')}: see the appendix.",) if left else ()
    )


def _all(lines: Sequence[str], room: int, what: str) -> tuple[str, ...]:
    kept, more = _first(lines, room, what)
    return (*kept, *more)


def _groups(report: Report) -> tuple[str, Section]:
    """How often groups have an outcome, the rarest of those compared in the first
    protected column: said, and drawn.
    """
    own = [
        change for change in report.groups if change.column == report.groups[0].column
    ]
    outcome = min(
        own, key=lambda change: np.nan_to_num(change.rate_before, nan=1.0)
    ).about
    groups = [change for change in report.groups if change.about == outcome]
    by_column: dict[str, list[GroupChange]] = {}
    for change in sorted(groups, key=lambda change: -change.rows):
        by_column.setdefault(change.column, []).append(change)
    ranked = [
        change
        for rank in zip_longest(*by_column.values())
        for change in rank
        if change is not None
    ]
    kept, more = _first(ranked, max(_DRAWN, 2 * len(by_column) + 1), "group")
    about = f"Before: in the data. After: in the {report.delivered_name.lower()}."
    ledger = report.certificate.privacy
    about = (
        f"{about}"
        f" {_RANGE if ledger is None else f'{_NOISE} {noise_of_counts(ledger)}.'}"
    )
    shown = [change for change in groups if change in kept]
    table = outcome_table(
        f"How often each group has {short_name(outcome)}", shown, about
    )
    left = len({change.about for change in report.groups}) - 1
    if left:
        more += (f"{counted(left, 'more outcome')}: see the appendix.",)
    section = Section(
        "groups", "Before and after", "Groups", (table, *map(Paragraph, more))
    )
    return _in_people(by_column[own[0].column]), section


def _in_people(groups: Sequence[GroupChange]) -> str:
    """Say how many of a hundred people of the two largest groups have the outcome; of
    more if that is less than one.
    """
    largest = [
        group for group in groups if not np.isnan(group.rate_before + group.rate_after)
    ][:2]
    rates = [
        rate
        for group in largest
        for rate in (group.rate_before, group.rate_after)
        if rate > 0
    ]
    people = next(
        (number for number in (100, 1000) if number * min(rates, default=1.0) >= 1),
        10_000,
    )
    parts = []
    have = f" have {short_name(groups[0].about)}"
    for group in sorted(largest, key=lambda group: group.rate_before):
        before, after = (
            f"{rounded(people * rate, 0):,.0f}"
            for rate in (group.rate_before, group.rate_after)
        )
        who = f"f {people:,} people with {short_name(group.name)}, {before}{have}"
        have = ""
        parts.append(f"{who} in the data and {after} in the result")
    if parts:
        return f"O{'; o'.join(parts)}."
    return ""


def _reached(report: Report) -> Section:
    """The rates asked for, those that are not met first; all of them if none was asked
    for.
    """
    asked = [rate for rate in report.rates if rate.wanted is not None]
    rates, more = _first(
        sorted(asked or report.rates, key=lambda rate: bool(rate.met)), _RATES, "rate"
    )
    rows = []
    states = []
    for rate in rates:
        grouping, (state, words) = short_name(rate.grouping), report.state(rate)
        name = f"How equal in size the groups of {grouping} are (representation rate)"
        if rate.outcome is not None:
            outcome = short_name(rate.outcome)
            name = (
                f"How equally common {outcome} is in the groups of {grouping}"
                " (statistical rate)"
            )
        rows.append(
            (
                name,
                rate.wanted_text,
                f"{rate.before:.4f}",
                rate_text(rate.delivered),
                words,
            )
        )
        states.append(state)
    heads = ("1 means equal", "Wanted", "Data", report.delivered_name, "State")
    table = Table(
        "Rates that were reached", heads, tuple(rows), state=4, states=tuple(states)
    )
    lines = (report.verdict(), *(shortened(line, _LINE) for line in report.means))
    return _answer("reached", "What was reached", lines, table, more)


def _costs(report: Report) -> Section:
    chosen, more = _first(
        sorted(report.costs.groups, key=lambda group: group.effective_rows),
        _GROUPS,
        "group",
    )
    shown = [group for group in report.costs.groups if group in chosen]
    rows = tuple(
        cost_row(short_name(group.name), group, [report.last_cost]) for group in shown
    )
    heads = (
        "Group",
        "Rows",
        "Share before",
        "Share after",
        "Effective rows",
        report.last_cost.capitalize(),
    )
    table = None
    if rows:
        table = Table("What it cost each group", heads, rows)
    if rows:
        notes = (_EFFECTIVE, *more)
    else:
        notes = more
    return _answer(
        "costs", "What it cost, and whom", tuple(_cost_lines(report)), table, notes
    )


def _cost_lines(report: Report) -> Iterator[str]:
    most = report.counting["most"]
    least = report.counting["least"]
    for share in report.costs.outcomes if len(report.costs.outcomes) == 1 else ():
        before = percent(share.before)
        after = percent(share.after)
        if before == after:
            kept = f"as common as in the data ({before})"
        else:
            kept = f"{after} of the result, {before} before"
        yield f"{short_name(share.outcome)} is {kept}."
    if report.changed:
        for change in _all(report.changed, _CHANGES, "group"):
            yield (
                "Outcomes were changed for"
                f" {shortened(change, _LINE)}{'' if change.endswith('.') else '.'}"
            )
    elif _factor(most.times) == _factor(least.times):
        yield "Everyone counts the same as in the data."
    else:
        names = [short_name(cell.name) for cell in (most, least)]
        yield (
            f"Those with {names[0]} count most: {_factor(most.times)} times their share"
            f" of the data. Those with {names[1]} count least: {_factor(least.times)}"
            " times."
        )
    if report.costs.filled:
        filled = percent(report.costs.filled)
        yield (
            f"{filled} of the result has a combination of outcome and groups that"
            " nobody in the data has."
        )
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
    question = "What a model trained on this will do"
    outcome = short_name(report.favourable)
    if estimate is None and decisions is not None:
        lines = tuple(
            f"It is made for {decisions.student}: among people it has not seen, the"
            f" statistical rate of its decisions for {short_name(rate.grouping)}"
            f" ({outcome}) is expected to be {rate_text(rate.rate, 3)}."
            for rate in decisions.rates[:_GROUPINGS]
        )
        return _answer("model", question, lines)
    if estimate is None:
        asked = Option("estimate", "weights" if report.mode == "weights" else "rows")
        how = (
            "write the report"
            if report.promise is None
            else "which spends nothing, write a report from its model"
        )
        parts = (
            f"This was not estimated for this fit. To estimate it, {how} with ",
            asked,
            ".",
        )
        return _answer("model", question, (report.source.front_door.text_of(parts),))
    trained = "new rows" if estimate.output == "rows" else "weighted rows"
    compared, more = _first(
        list(expected_lines(estimate, ["by_predictions"])), _GROUPINGS, "rate"
    )
    rows = []
    for line in (*compared, *expected_lines(estimate, ["accuracy"])):
        name = line.label
        if line.grouping is not None:
            groups = short_name(line.grouping)
            name = (
                f"How equally often it predicts {outcome} in the groups of {groups} (1"
                " means equal)"
            )
        rows.append(
            (
                name,
                *(rate_text(value, 3) for value in line.values),
                range_text(line.ranges[1]),
            )
        )
    heads = (
        "Expected",
        "Trained on the data",
        f"On the {trained}",
        f"95% range, {trained}",
    )
    head = f"An estimate for {estimate.student}, on people that it has not seen:"
    if report.advice is None:
        advice = []
    else:
        advice = [shortened(report.advice, _ALERT)]
    table = Table("What a model is expected to do", heads, tuple(rows))
    return _answer("model", question, (head,), table, (*advice, *more))


def _copies(report: Report) -> Iterator[str]:
    copies = report.copies
    if report.promise is not None:
        yield (
            "No row of the data was used to draw the new rows, only noisy counts. A new"
            " row that equals a real one does so by chance, and that cannot be told"
            " without the data."
        )
    elif copies is None:
        weighted = (
            "each appears once per outcome, with a weight"
            if report.relabelled
            else "only weights were added"
        )
        reason = weighted if report.mode == "weights" else "none had to be added"
        yield f"All rows are real: {reason}. Sharing them means sharing the data."
    if copies is None:
        return
    new = "added" if report.mode == "top-up" else "new"
    rows = (
        f"{'the first ' if copies.rows < report.new_rows else ''}{copies.rows:,} {new}"
        " rows"
    )
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
    copies = report.copies
    estimate = report.certificate.estimate
    if report.promise is not None:
        yield (
            "together with another private fit of the same people without adding up"
            " what both reveal (their ρ)."
        )
    else:
        why = "every row is a real one"
        if copies is not None:
            alike = (
                "copies of real ones"
                if copies.same_values is not None
                else "like real ones in every column"
            )
            if copies.same_values is None:
                share = copies.same_levels
            else:
                share = copies.same_values
            why = f"{percent(share)} of the rows are {alike}"
        yield (
            f"as anonymous data, and do not share it more widely than the data: {why}."
        )
    what = (
        "outcomes were changed"
        if report.relabelled
        else "shares and rates were changed"
    )
    yield (
        f"for statistics about the real world, or to judge a person: {what} on purpose."
    )
    tiny = [
        short_name(group.name) for group in report.costs.groups if group.beyond_line
    ]
    if tiny:
        if len(tiny) > 1:
            others = f" and {counted(len(tiny) - 1, 'more group')}"
        else:
            others = ""
        yield (
            f"to say anything about {tiny[0]}{others}: too much rests on too few"
            " people."
        )
    if estimate is None:
        expected = {}
    else:
        expected = estimate.after.by_predictions
    rates = [
        (rate, short_name(name)) for name, rate in expected.items() if rate is not None
    ]
    if rates:
        least = " (expected: {:.3f} for {})".format(
            *min(rates, key=lambda rate: rate[0])
        )
    else:
        least = ""
    yield (
        f"as proof that a model trained on it is fair{least}: test the decisions of"
        " your own model on people it has not seen."
    )
    columns = short_name(", ".join(report.protected))
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and"
        " only by how often they have the outcome."
    )
