"""The first page: the answers that a busy reader looks for, in the same words in every form of the report.

It must fit on one sheet of paper, so each answer shows a few lines; the appendix has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.document import Block, Listing, Paragraph, Section, Table
from fairmaxent.document.words import factor, more, percent, short_name, shortened, times
from fairmaxent.errors import cut
from fairmaxent.fit.costs import GroupCost
from fairmaxent.fit.statements import ExpectedLine, expected_lines, rate_text
from fairmaxent.report.facts import Report
from fairmaxent.report.rates import GroupOutcome, Reached
from fairmaxent.report.sentences import (
    COSTS_UNKNOWN,
    DELIVERED_NAMES,
    FILLED,
    copies_note,
    last_costs,
    not_estimated,
    state,
    summary,
    title,
    verdict,
    wanted_text,
)

APPENDIX = "in the appendix"
_EFFECTIVE = (
    "Effective rows: how many equally weighted rows would say as much about a group as its real rows do with their "
    "fair weights."
)
_RANGE = "In brackets: where the rate among all such people lies, with 95% confidence."
_NOISE = "These rates and counts are noisy, because the fit is private."
_ALERTS, _WISHES, _RATES, _GROUPS, _CHANGES, _GROUPINGS = 3, 5, 4, 5, 4, 2  # lines shown of each
_HEAD, _NAME, _TITLE, _LINE, _ALERT = 24, 40, 100, 170, 440  # characters of a head, a name, … and a warning
_MOST = 3200  # characters in all that fit on a sheet in normal print


@dataclass(frozen=True)
class Answer:
    """The answer to one question: sentences, and a table if numbers say it better."""

    key: str
    question: str
    lines: tuple[str, ...]
    table: Table | None = None
    notes: tuple[str, ...] = ()  # what is said below the table

    @property
    def blocks(self) -> tuple[Block, ...]:
        """One sentence as it is, several as a list; then the table, and the notes."""
        text = Listing(self.lines) if len(self.lines) > 1 else Paragraph("".join(self.lines))
        return (text, *([] if self.table is None else [self.table]), *map(Paragraph, self.notes))


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
    def sections(self) -> tuple[Section, ...]:
        """The answers, and what identifies the result."""
        answers = [Section(answer.key, answer.question, answer.question, answer.blocks) for answer in self.answers]
        record = Listing(tuple(f"{name}: {value}" for name, value in self.record))
        return (*answers, Section("record", "Files and versions", "Files", (record,)))

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
    return FirstPage(
        title=cut(title(report), _TITLE),
        author=cut(report.filing.author or "not stated", _TITLE),
        date=report.filing.date,
        purpose=shortened(report.filing.purpose or "not stated", _ALERT),
        summary=summary(report),
        alerts=tuple(shortened(alert, _ALERT) for alert in _first(report.alerts, _ALERTS, "warning")),
        answers=(
            Answer("asked", "What was asked", tuple(_asked(report))),
            _reached(report),
            _costs(report),
            _model(report),
            Answer("copies", "Copies of real people", tuple(_copies(report))),
            Answer("not-for", "Do not use this", tuple(_prohibitions(report))),
        ),
        record=tuple(_record(report)),
    )


def _first(lines: Sequence[str], shown: int, what: str) -> Iterator[str]:
    """The first lines, and how many there are more; one line is not left out to say so."""
    kept = lines if len(lines) <= shown else lines[: shown - 1]
    yield from kept
    if len(kept) < len(lines):
        yield f"{more(len(lines) - len(kept), what)} {APPENDIX}."


def _asked(report: Report) -> Iterator[str]:
    return (shortened(wish, _LINE) for wish in _first(report.wishes, _WISHES, "point"))


# ---------------------------------------------------------------- what was reached


def _reached(report: Report) -> Answer:
    """The rates asked for, those that are not met first; all of them if none was asked for."""
    asked = [rate for rate in report.rates if rate.wanted is not None]
    rates = sorted(asked or report.rates, key=lambda rate: bool(rate.met))
    shown = rates if len(rates) <= _RATES else rates[: _RATES - 1]
    after = DELIVERED_NAMES[report.mode]
    table = Table(
        "Rates that were reached",
        ("1 means equal", "Wanted", "Data", after, "State"),
        tuple(
            (
                _meaning(rate),
                wanted_text(rate),
                f"{rate.before:.4f}",
                rate_text(rate.delivered),
                state(report, rate)[1],
            )
            for rate in shown
        ),
        state=4,
        states=tuple(state(report, rate)[0] for rate in shown),
    )
    left = len(rates) - len(shown)
    return Answer(
        "reached",
        "What was reached",
        (verdict(report), *(shortened(line, _LINE) for line in report.means)),
        table,
        (f"{more(left, 'rate')} {APPENDIX}.",) if left else (),
    )


def _meaning(rate: Reached) -> str:
    """What a rate compares, in plain words, with its name."""
    grouping = short_name(rate.grouping, _NAME)
    if rate.outcome is not None:
        return f"How equally common {short_name(rate.outcome, _NAME)} is in the groups of {grouping} (statistical rate)"
    return f"How equal in size the groups of {grouping} are (representation rate)"


# ---------------------------------------------------------------- what it cost, and whom


def _costs(report: Report) -> Answer:
    groups = sorted(report.costs.groups, key=lambda group: group.effective_rows)
    chosen = groups if len(groups) <= _GROUPS else groups[: _GROUPS - 1]
    left = len(groups) - len(chosen)
    shown = [group for group in report.costs.groups if group in chosen]
    return Answer(
        "costs",
        "What it cost, and whom",
        tuple(_cost_lines(report)),
        _group_table(report, shown) if shown else None,
        (
            *((f"{_EFFECTIVE}{_about_rates(report)}",) if shown else ()),
            *((f"{more(left, 'group')} {APPENDIX}.",) if left else ()),
        ),
    )


def _about_rates(report: Report) -> str:
    """Say what stands in brackets beside the rates of groups, if they are shown."""
    if report.promise:
        return f" {_NOISE}"
    return f" {_RANGE}" if report.counting.outcomes else ""


def _cost_lines(report: Report) -> Iterator[str]:
    for share in report.costs.outcomes if len(report.costs.outcomes) == 1 else ():
        before, after = percent(share.before), percent(share.after)
        kept = f"as common as in the data ({before})" if before == after else f"{after} of the result, {before} before"
        yield f"{short_name(share.outcome, _NAME)} is {kept}."
    if report.changed:
        for change in _first(report.changed, _CHANGES, "group"):
            yield f"Outcomes were changed for {shortened(change, _LINE)}{'' if change.endswith('.') else '.'}"
    elif report.counting.most is not None and report.counting.least is not None:
        yield from _who_counts(report)
    if report.costs.filled:
        yield FILLED.format(percent(report.costs.filled))
    if not report.costs.groups:
        yield COSTS_UNKNOWN


def _who_counts(report: Report) -> Iterator[str]:
    most, least = report.counting.most, report.counting.least
    if most is None or least is None:
        return
    if factor(most.times) == factor(least.times):
        yield "Everyone counts the same as in the data."
        return
    names = [short_name(cell.name, 2 * _NAME) for cell in (most, least)]
    yield (
        f"Those with {names[0]} count most: {factor(most.times)} times their share of the data. Those with {names[1]} "
        f"count least: {factor(least.times)} times."
    )


def _group_table(report: Report, groups: Sequence[GroupCost]) -> Table:
    rates = {outcome.group: outcome for outcome in report.counting.outcomes}
    weights = report.mode == "weights"
    last = last_costs(report).capitalize()
    rate = short_name(report.favourable, _HEAD)
    heads = ("Group", "Rows", "Share before", "Share after", *([f"{rate} before", f"{rate} after"] if rates else []))
    return Table(
        "What it cost each group",
        (*heads, "Effective rows", last),
        tuple(
            (
                short_name(group.name, _NAME),
                f"{group.rows:,}",
                percent(group.before),
                percent(group.after),
                *([_with_interval(rates[group.name]), percent(rates[group.name].after)] if rates else []),
                times(group.effective_rows),
                times(group.largest_weight if weights else group.most_copies),
            )
            for group in groups
        ),
    )


def _with_interval(rate: GroupOutcome) -> str:
    if rate.interval is None:
        return percent(rate.before)
    low, high = (f"{100 * end:.0f}" for end in rate.interval)
    return f"{percent(rate.before)} ({low}–{high})"


# ---------------------------------------------------------------- what a model will do


def _model(report: Report) -> Answer:
    estimate = report.certificate.estimate
    question = "What a model trained on this will do"
    if estimate is None and report.certificate.decisions is None:
        why = "" if report.not_estimated is None else f" The reason: {report.not_estimated}."
        return Answer("model", question, (f"{not_estimated(report)}{why}",))
    if estimate is None:
        return Answer("model", question, tuple(_decided(report)))
    trained = "new rows" if estimate.output == "rows" else "weighted rows"
    compared = list(expected_lines(estimate, ["by_predictions"]))
    shown = compared if len(compared) <= _GROUPINGS else compared[: _GROUPINGS - 1]
    table = Table(
        "What a model is expected to do",
        ("Expected", "Trained on the data", f"On the {trained}", f"95% range, {trained}"),
        tuple(
            (
                _about(report, line),
                *(rate_text(side.value, 3) for side in (line.before, line.after)),
                line.after.range_text,
            )
            for line in (*shown, *expected_lines(estimate, ["accuracy"]))
        ),
    )
    left = len(compared) - len(shown)
    notes = [] if report.advice is None else [shortened(report.advice, _ALERT)]
    notes += [f"{more(left, 'rate')} {APPENDIX}."] if left else []
    head = f"An estimate for {estimate.student}, on people that it has not seen:"
    return Answer("model", question, (head,), table, tuple(notes))


def _about(report: Report, line: ExpectedLine) -> str:
    """Name the outcome that a rate of predictions is about."""
    if line.grouping is None:
        return line.name
    grouping, outcome = short_name(line.grouping, _NAME), short_name(report.favourable, _NAME)
    return f"How equally often it predicts {outcome} in the groups of {grouping} (1 means equal)"


def _decided(report: Report) -> Iterator[str]:
    """What the student of a relabelled fit decided, if nothing else is known."""
    decisions = report.certificate.decisions
    if decisions is None:
        return
    for rate in decisions.rates[:_GROUPINGS]:
        yield (
            f"{decisions.student} decided about people it had not learned from: the statistical rate of its decisions "
            f"for {short_name(rate.grouping, _NAME)} ({short_name(report.favourable, _NAME)}) was "
            f"{rate_text(rate.rate, 3)}."
        )


# ---------------------------------------------------------------- copies


def _copies(report: Report) -> Iterator[str]:
    copies = report.copies
    if copies is None:
        yield copies_note(report)
        return
    new = "added" if report.mode == "top-up" else "new"
    first = copies.rows < report.new_rows
    rows = f"the first {copies.rows:,}" if first else f"{copies.rows:,}"
    if copies.same_values is None or copies.same_values_as_one is None:
        yield (
            f"About {percent(copies.same_levels)} of {rows} {new} rows have the same levels as a real row in every "
            "column. Exact copies were not counted, because the data were not given."
        )
    else:
        yield (
            f"{percent(copies.same_values)} of {rows} {new} rows ({round(copies.same_values * copies.rows):,}) have "
            f"exactly the values of a real row; {percent(copies.same_values_as_one)} have those of a row that occurs "
            "only once, which may point to a person."
        )
    if copies.same_levels > 0:
        yield "Treat the new rows the way you would treat the data."


# ---------------------------------------------------------------- what it must not be used for


def _prohibitions(report: Report) -> Iterator[str]:
    """The uses that this result does not bear, the most dangerous first."""
    yield _as_anonymous(report)
    yield _as_facts(report)
    tiny = [short_name(group.name, _NAME) for group in report.costs.groups if group.beyond_line]
    if tiny:
        others = f" and {len(tiny) - 1} more groups" if len(tiny) > 2 else f" and {tiny[1]}" if len(tiny) == 2 else ""
        yield f"to say anything about {tiny[0]}{others}: too much rests on too few people."
    yield _as_proof(report)
    columns = short_name(", ".join(report.protected), _NAME)
    yield (
        f"to claim fairness in general: only the groups of {columns} were compared, and only by how often they have "
        "the outcome."
    )


def _as_anonymous(report: Report) -> str:
    if report.promise is not None:
        return "together with another private fit of the same table without adding up what both reveal (ε and δ)."
    if report.copies is None:
        return "as anonymous data, and do not share it more widely than the data: every row is a real one."
    known = report.copies.same_values
    share = report.copies.same_levels if known is None else known
    how = "copies of real ones" if known is not None else "like real ones in every column"
    return f"as anonymous data, and do not share it more widely than the data: {percent(share)} of the rows are {how}."


def _as_facts(report: Report) -> str:
    what = "outcomes were changed" if report.relabelled else "shares and rates were changed"
    return f"for statistics about the real world, or to judge a person: {what} on purpose."


def _as_proof(report: Report) -> str:
    estimate = report.certificate.estimate
    expected = {} if estimate is None else estimate.after.by_predictions
    rates = {name: rate for name, rate in expected.items() if rate is not None}
    test = "test the decisions of your own model on people it has not seen"
    if not rates:
        return f"as proof that a model trained on it is fair: {test}."
    name = min(rates, key=lambda grouping: rates[grouping])
    least = f"expected: {rates[name]:.3f} for {short_name(name, _NAME)}"
    return f"as proof that a model trained on it is fair ({least}): {test}."


# ---------------------------------------------------------------- what identifies the result


def _record(report: Report) -> Iterator[tuple[str, str]]:
    source = report.source
    if source.file is not None:
        yield "Data", _named(source.file, source.sha256)
    if source.reading:
        yield "Read as", shortened("; ".join(source.reading), _ALERT)
    for file in source.written:
        yield file.what, _named(file.name, file.sha256)
    if source.file is None and not source.written:
        yield "Files", "none: the table was passed in Python"
    listed = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield "Made with", f"{listed}; {source.front_door.note}"


def _named(name: str, digest: str | None) -> str:
    return f"{short_name(name, _NAME)}{'' if digest is None else f', SHA-256 {digest}'}"
