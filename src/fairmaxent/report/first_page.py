"""The first page: the answers that a busy reader looks for, in the same words in every form of the report.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fairmaxent.document import Listing, Paragraph, Section, Table
from fairmaxent.document.words import counted, percent, rounded, short_name, shortened, times
from fairmaxent.errors import cut
from fairmaxent.fit.statements import expected_lines, rate_text
from fairmaxent.report.facts import COSTS_UNKNOWN, FILLED, Report
from fairmaxent.report.rates import Reached

_EFFECTIVE = (
    "Effective rows: how many equally weighted rows would say as much about a group as its real rows do with their "
    "fair weights."
)
_RANGE = " In brackets: where the rate among all such people lies, with 95% confidence."
_NOISE = " These rates and counts are noisy, because the fit is private."
_ALERTS, _WISHES, _RATES, _GROUPS, _CHANGES, _GROUPINGS = 3, 5, 4, 5, 4, 2  # lines shown of each
_HEAD, _NAME, _TITLE, _LINE, _ALERT = 24, 40, 100, 170, 440  # characters of a head, a name, … and a warning
_MOST = 3200  # characters in all that fit on a sheet in normal print

Item = TypeVar("Item")


@dataclass(frozen=True)
class Answer:
    """The answer to one question: sentences, and a table if numbers say it better."""

    key: str
    question: str
    lines: tuple[str, ...]
    table: Table | None = None
    notes: tuple[str, ...] = ()  # what is said below the table


@dataclass(frozen=True)
class FirstPage:
    """What the report is filed under, the warnings, the answers, and what identifies the result."""

    title: str
    author: str
    date: str
    purpose: str
    summary: str
    alerts: tuple[str, ...]  # costs beyond the line
    answers: tuple[Answer, ...]
    record: tuple[tuple[str, str], ...]  # files with their digests, and versions

    @property
    def sections(self) -> Iterator[Section]:
        """The answers: one sentence as it is, several as a list; then a table and notes. Then the record."""
        for answer in self.answers:
            lines = Listing(answer.lines) if len(answer.lines) > 1 else Paragraph("".join(answer.lines))
            table = [] if answer.table is None else [answer.table]
            blocks = (lines, *table, *map(Paragraph, answer.notes))
            yield Section(answer.key, answer.question, answer.question, blocks)
        record = Listing(tuple(f"{name}: {value}" for name, value in self.record))
        yield Section("record", "Files and versions", "Files", (record,))

    @property
    def is_long(self) -> bool:
        """Whether its text needs smaller print to fit on a sheet."""
        texts = [self.title, self.author, self.purpose, self.summary, *self.alerts]
        for answer in self.answers:
            texts += [*answer.lines, *answer.notes]
            texts += [] if answer.table is None else [cell for row in answer.table.rows for cell in row]
        return sum(map(len, texts)) > _MOST


def first_page(report: Report) -> FirstPage:
    """Take the answers from the report."""
    alerts, wishes = _all(report.alerts, _ALERTS, "warning"), _all(report.wishes, _WISHES, "point")
    named = report.filing.title or f"{report.favourable}, by {', '.join(report.protected)}"
    return FirstPage(
        title=cut(named, _TITLE),
        author=cut(report.filing.author or "not stated", _TITLE),
        date=report.filing.date,
        purpose=shortened(report.filing.purpose or "not stated", _ALERT),
        summary=report.summary(),
        alerts=tuple(shortened(alert, _ALERT) for alert in alerts),
        answers=(
            Answer("asked", "What was asked", tuple(shortened(wish, _LINE) for wish in wishes)),
            _reached(report),
            _costs(report),
            _model(report),
            Answer("copies", "Copies of real people", tuple(_copies(report))),
            Answer("not-for", "Do not use this", tuple(_prohibitions(report))),
        ),
        record=tuple(_record(report)),
    )


def _first(items: Sequence[Item], room: int, what: str) -> tuple[Sequence[Item], tuple[str, ...]]:
    """The first items, and how many there are more; one item is not left out to say so."""
    kept = items if len(items) <= room else items[: room - 1]
    left = len(items) - len(kept)
    return kept, (f"{counted(left, f'more {what}')} in the appendix.",) if left else ()


def _all(lines: Sequence[str], room: int, what: str) -> tuple[str, ...]:
    kept, more = _first(lines, room, what)
    return (*kept, *more)


def _reached(report: Report) -> Answer:
    """The rates asked for, those that are not met first; all of them if none was asked for."""
    asked = [rate for rate in report.rates if rate.wanted is not None]
    rates, more = _first(sorted(asked or report.rates, key=lambda rate: bool(rate.met)), _RATES, "rate")
    states = [report.state(rate) for rate in rates]
    rows = tuple(
        (_meaning(rate), rate.wanted_text, f"{rate.before:.4f}", rate_text(rate.delivered), words)
        for rate, (_, words) in zip(rates, states, strict=True)
    )
    heads = ("1 means equal", "Wanted", "Data", report.delivered_name, "State")
    table = Table("Rates that were reached", heads, rows, state=4, states=tuple(kind for kind, _ in states))
    lines = (report.verdict(), *(shortened(line, _LINE) for line in report.means))
    return Answer("reached", "What was reached", lines, table, more)


def _meaning(rate: Reached) -> str:
    """What a rate compares, in plain words, with its name."""
    grouping = short_name(rate.grouping, _NAME)
    if rate.outcome is not None:
        return f"How equally common {short_name(rate.outcome, _NAME)} is in the groups of {grouping} (statistical rate)"
    return f"How equal in size the groups of {grouping} are (representation rate)"


# ---------------------------------------------------------------- what it cost, and whom


def _costs(report: Report) -> Answer:
    groups = sorted(report.costs.groups, key=lambda group: group.effective_rows)
    chosen, more = _first(groups, _GROUPS, "group")
    brackets = _NOISE if report.promise else _RANGE if report.counting.outcomes else ""
    notes = (f"{_EFFECTIVE}{brackets}", *more) if chosen else more
    lines, table = tuple(_cost_lines(report)), _group_table(report, [group.name for group in chosen])
    return Answer("costs", "What it cost, and whom", lines, table, notes)


def _cost_lines(report: Report) -> Iterator[str]:
    most, least = report.counting.most, report.counting.least
    for share in report.costs.outcomes if len(report.costs.outcomes) == 1 else ():
        before, after = percent(share.before), percent(share.after)
        kept = f"as common as in the data ({before})" if before == after else f"{after} of the result, {before} before"
        yield f"{short_name(share.outcome, _NAME)} is {kept}."
    if report.changed:
        for change in _all(report.changed, _CHANGES, "group"):
            yield f"Outcomes were changed for {shortened(change, _LINE)}{'' if change.endswith('.') else '.'}"
    elif most is not None and least is not None and _factor(most.times) == _factor(least.times):
        yield "Everyone counts the same as in the data."
    elif most is not None and least is not None:
        names = [short_name(cell.name, 2 * _NAME) for cell in (most, least)]
        yield (
            f"Those with {names[0]} count most: {_factor(most.times)} times their share of the data. Those with "
            f"{names[1]} count least: {_factor(least.times)} times."
        )
    if report.costs.filled:
        yield FILLED.format(percent(report.costs.filled))
    if not report.costs.groups:
        yield COSTS_UNKNOWN


def _factor(multiple: float) -> str:
    """Write how many times as large a share is; below one with two digits."""
    return times(multiple) if multiple >= 0.995 else f"{rounded(multiple, 2):.2f}"


def _group_table(report: Report, names: Sequence[str]) -> Table | None:
    rates = {}
    for outcome in report.counting.outcomes:
        span = "" if outcome.interval is None else " ({:.0f}–{:.0f})".format(*(100 * end for end in outcome.interval))
        rates[outcome.group] = (f"{percent(outcome.before)}{span}", percent(outcome.after))
    rows = tuple(
        (
            short_name(group.name, _NAME),
            f"{group.rows:,}",
            *(percent(group.before), percent(group.after), *rates.get(group.name, ())),
            times(group.effective_rows),
            times(group.most_weight if report.mode == "weights" else group.most_copies),
        )
        for group in report.costs.groups
        if group.name in names
    )
    outcome_heads = [f"{short_name(report.favourable, _HEAD)} {when}" for when in ("before", "after") if rates]
    heads = ("Group", "Rows", "Share before", "Share after", *outcome_heads, "Effective rows")
    return Table("What it cost each group", (*heads, report.last_cost.capitalize()), rows) if rows else None


# ---------------------------------------------------------------- what a model will do


def _model(report: Report) -> Answer:
    estimate, decisions = report.certificate.estimate, report.certificate.decisions
    question, outcome = "What a model trained on this will do", short_name(report.favourable, _NAME)
    if estimate is None and decisions is not None:
        lines = tuple(
            f"{decisions.student} decided about people it had not learned from: the statistical rate of its decisions "
            f"for {short_name(rate.grouping, _NAME)} ({outcome}) was {rate_text(rate.rate, 3)}."
            for rate in decisions.rates[:_GROUPINGS]
        )
        return Answer("model", question, lines)
    if estimate is None:
        why = "" if report.not_estimated is None else f" The reason: {report.not_estimated}."
        return Answer("model", question, (f"{report.how_to_estimate()}{why}",))
    trained = "new rows" if estimate.output == "rows" else "weighted rows"
    compared, more = _first(list(expected_lines(estimate, ["by_predictions"])), _GROUPINGS, "rate")
    rows = tuple(
        (
            line.label
            if line.grouping is None
            else f"How equally often it predicts {outcome} in the groups of {short_name(line.grouping, _NAME)} "
            "(1 means equal)",
            rate_text(line.before.value, 3),
            rate_text(line.after.value, 3),
            line.after.range_text,
        )
        for line in (*compared, *expected_lines(estimate, ["accuracy"]))
    )
    heads = ("Expected", "Trained on the data", f"On the {trained}", f"95% range, {trained}")
    head = f"An estimate for {estimate.student}, on people that it has not seen:"
    advice = [] if report.advice is None else [shortened(report.advice, _ALERT)]
    table = Table("What a model is expected to do", heads, rows)
    return Answer("model", question, (head,), table, (*advice, *more))


# ---------------------------------------------------------------- copies, and what it must not be used for


def _copies(report: Report) -> Iterator[str]:
    copies = report.copies
    if copies is None:
        yield report.copies_note()
        return
    new = "added" if report.mode == "top-up" else "new"
    rows = f"{'the first ' if copies.rows < report.new_rows else ''}{copies.rows:,} {new} rows"
    if copies.same_values is None or copies.same_values_as_one is None:
        yield (
            f"About {percent(copies.same_levels)} of {rows} have the same levels as a real row in every column. Exact "
            "copies were not counted, because the data were not given."
        )
    else:
        yield (
            f"{percent(copies.same_values)} of {rows} ({round(copies.same_values * copies.rows):,}) have exactly the "
            f"values of a real row; {percent(copies.same_values_as_one)} have those of a row that occurs only once, "
            "which may point to a person."
        )
    if copies.same_levels > 0:
        yield "Treat the new rows the way you would treat the data."


def _prohibitions(report: Report) -> Iterator[str]:
    """The uses that this result does not bear, the most dangerous first."""
    copies, estimate = report.copies, report.certificate.estimate
    if report.promise is not None:
        yield "together with another private fit of the same table without adding up what both reveal (ε and δ)."
    else:
        why = "every row is a real one"
        if copies is not None and copies.same_values is not None:
            why = f"{percent(copies.same_values)} of the rows are copies of real ones"
        elif copies is not None:
            why = f"{percent(copies.same_levels)} of the rows are like real ones in every column"
        yield f"as anonymous data, and do not share it more widely than the data: {why}."
    what = "outcomes were changed" if report.relabelled else "shares and rates were changed"
    yield f"for statistics about the real world, or to judge a person: {what} on purpose."
    tiny = [short_name(group.name, _NAME) for group in report.costs.groups if group.beyond_line]
    if tiny:
        others = f" and {len(tiny) - 1} more groups" if len(tiny) > 2 else f" and {tiny[1]}" if len(tiny) == 2 else ""
        yield f"to say anything about {tiny[0]}{others}: too much rests on too few people."
    expected = {} if estimate is None else estimate.after.by_predictions
    rates = [(rate, short_name(name, _NAME)) for name, rate in expected.items() if rate is not None]
    least = " (expected: {:.3f} for {})".format(*min(rates, key=lambda rate: rate[0])) if rates else ""
    yield (
        f"as proof that a model trained on it is fair{least}: test the decisions of your own model on people it has "
        "not seen."
    )
    columns = short_name(", ".join(report.protected), _NAME)
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and only by how often they have "
        "the outcome."
    )


# ---------------------------------------------------------------- what identifies the result


def _record(report: Report) -> Iterator[tuple[str, str]]:
    source = report.source
    if source.file is not None:
        digest = "" if source.sha256 is None else f", SHA-256 {source.sha256}"
        yield "Data", f"{short_name(source.file, _NAME)}{digest}"
    if source.reading:
        yield "Read as", shortened("; ".join(source.reading), _ALERT)
    for file in source.written:
        yield file.what, f"{short_name(file.name, _NAME)}, SHA-256 {file.sha256}"
    if source.file is None and not source.written:
        yield "Files", "none: the table was passed in Python"
    listed = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield "Made with", f"{listed}; {source.front_door.note}"
