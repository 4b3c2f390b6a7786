"""Statements: the sentences and tables of a certificate, a command and a report."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from fairmaxent.data.reading import RedrawnValues
from fairmaxent.document import Block, Note, Paragraph, Table
from fairmaxent.document.words import capital, counted, first, more, percent, times
from fairmaxent.errors import Option, Spell
from fairmaxent.fit.costs import Costs, GroupCost
from fairmaxent.fit.facts import (
    GroupMean,
    ModelEstimate,
    OutcomeShare,
    Range,
    UnderivedFacts,
)
from fairmaxent.fit.groups import GroupChange
from fairmaxent.fit.student import DecidedRate, DecidedShare, Decisions
from fairmaxent.metrics.trial import OVERALL
from fairmaxent.privacy.budget import Ledger

REACHED = 1e-6  # solvers stop a little short of an exact rate
SHOWN_GROUPS = 12
_RATES = 3  # of a small group
# by the way of a table that was made for a student: what it does to the rows
_WAYS = {
    "none": (
        "The table stays as it is: from no other that was tried would this model decide"
        " more equally."
    ),
    "tilt": "Each row keeps its outcome, and counts more or less.",
    "soft": (
        "Rows count partly for each outcome, by how likely it is: weights alone, or"
        " rows to add, teach this model less."
    ),
}
_FLATTERED = (
    "What is expected may be too favourable: what is likely was learned from the people"
    " who are compared."
)
_MEANINGS = {
    "accuracy": ("Accuracy", "share of people whose outcome it predicts correctly"),
    "auc": ("AUC", "how well it ranks people: 0.5 is chance, 1 is perfect"),
    "by_predictions": (
        "Statistical rate of its predictions",
        "lowest share of {} among its predictions in any group, divided by the highest",
    ),
    "by_probabilities": (
        "Statistical rate of its probabilities",
        "the same for the mean probability of {}",
    ),
    "equal_opportunity": (
        "Equal opportunity",
        "how equally often it recognises people who have {}, across groups",
    ),
    "equalised_odds": (
        "Equalised odds",
        "the same, and how equally often it mistakes other people for them",
    ),
    "calibration_gap": (
        "Calibration gap",
        (
            "how much groups differ in observed minus predicted rate; 0 means no"
            " difference"
        ),
    ),
}
# what is shown if there is little room, and if there is less
_MAIN = ("accuracy", "auc", "by_predictions", "by_probabilities")
FEWEST_KINDS = ("accuracy", "by_predictions")


# ---------------------------------------------------------------- rates


@dataclass(frozen=True)
class RateLine:
    """One rate: what was asked for, what the data have, and what was reached."""

    label: str
    wanted: float | None  # None: nothing was asked for
    before: float | None  # None: unknown
    reached: float | None  # None: unknown
    # how far below what was asked for still counts as reached; None: not to be judged
    slack: float | None = None

    @property
    def state(self) -> str:
        """Whether what was asked for was reached, in a word."""
        if self.wanted is None or self.slack is None:
            return ""
        if self.reached is None or self.reached < self.wanted - self.slack:
            return "✗ short"
        return "✓ reached"


def rates_table(lines: Sequence[RateLine], heads: tuple[str, str, str]) -> Table:
    """Each rate as it was asked for, before and after, and how it is judged."""
    shown = ["", *heads]
    if any(line.state for line in lines):
        shown.append("")
    rows = []
    for line in lines:
        wanted = rate_text(line.wanted, nothing="any")
        before = rate_text(line.before)
        row = (line.label, wanted, before, rate_text(line.reached), line.state)
        rows.append(row[: len(shown)])
    return Table("Rates, 1 is equal", tuple(shown), tuple(rows))


def rate_text(value: float | None, nothing: str = "–") -> str:
    """Write a rate, with no sign before a zero; a dash, say, if there is none."""
    if value is None or np.isnan(value):
        return nothing
    return f"{round(value, 4) + 0.0:.4f}"


def small_group_lines(groups: Sequence[GroupChange]) -> list[str]:
    """Who is set apart, with their number and rates; nothing if nobody is."""
    by_name: dict[str, list[GroupChange]] = {}
    for group in groups:
        if group.rate_after >= 0:  # or nobody of it is left
            by_name.setdefault(group.name, []).append(group)
    lines = []
    for name, own in by_name.items():
        rates = [
            f"{one.about} {percent(one.rate_before)} before,"
            f" {percent(one.rate_after)} after"
            for one in own
        ]
        text = "; ".join(first(rates, _RATES, "rate"))
        people = "1 person" if own[0].rows == 1 else f"{own[0].rows:,} people"
        lines.append(f"set apart, as too small to compare: {name} ({people}; {text})")
    return lines


# ---------------------------------------------------------------- costs


def cost_blocks(
    groups: Sequence[GroupCost],
    worst_cell: GroupCost | None,
    last: Sequence[str],
    where: str = "",
    most: int = SHOWN_GROUPS,
) -> list[Block]:
    """A row for each group, and for the worst cell; nothing if it is not known.

    Of many groups, those with the fewest effective rows are shown. ``last`` are the
    columns about one person: the "largest weight", or copies; ``where`` says where
    other groups are.
    """
    if worst_cell is None:
        return []
    by_rows = sorted(range(len(groups)), key=lambda index: groups[index].effective_rows)
    shown = [groups[index] for index in sorted(by_rows[:most])]
    named_cell = replace(worst_cell, name=f"worst cell: {worst_cell.name}")
    rows = []
    for cost in (*shown, named_cell):
        ends = {"largest weight": cost.most_weight}
        rows.append(
            (
                cost.name,
                f"{cost.rows:,}",
                percent(cost.before),
                percent(cost.after),
                times(cost.effective_rows),
                *(times(ends.get(head, cost.most_copies)) for head in last),
            )
        )
    heads = ("group", "rows", "before", "after", "effective rows", *last)
    hidden = more(len(groups), most, "group", where)
    return [Table("Costs by group", heads, tuple(rows)), *map(Paragraph, hidden)]


def outcome_lines(shares: Sequence[OutcomeShare]) -> Iterator[str]:
    """How common each outcome is, before and after."""
    for share in shares:
        yield (
            f"outcome {share.outcome}: {percent(share.before)} before,"
            f" {percent(share.after)} after"
        )


def filled_lines(share: float) -> Iterator[str]:
    """How much of the result nobody in the data stands for, if any."""
    if share > 0:
        yield (
            f"filled in: {percent(share)} of the result has a combination of outcome"
            " and groups that no row has"
        )


def changed_lines(costs: Costs | None) -> Iterator[str]:
    """How many people of each group get another outcome, and in which direction."""
    if costs is None:
        return
    for group, changes in groupby(costs.changed, key=lambda change: change.group):
        seen = [change for change in changes if change.changed >= 0.5]
        seen.sort(key=lambda change: -change.changed)
        if seen:
            parts = ", ".join(
                f"{change.changed:,.0f} from {change.old} to {change.new}"
                for change in seen
            )
            yield f"{group}: of {seen[0].people:,} people, {parts}"


def changed_blocks(costs: Costs | None) -> list[Block]:
    """The same, as sentences of their own."""
    return [
        Paragraph(f"Outcomes were changed for {line}") for line in changed_lines(costs)
    ]


def warnings_about(costs: Iterable[str]) -> list[Block]:
    """Costs beyond the line, with their remedies: the first thing that is said."""
    return [Note(f"Warning: {cost}") for cost in costs]


def mean_blocks(means: Sequence[GroupMean]) -> list[Block]:
    """The mean of each group before and after, if equal means were asked for."""
    if not means:
        return []
    rows = tuple(
        (f"mean of {mean.group}", f"{mean.before:.5g}", f"{mean.after:.5g}")
        for mean in means[:SHOWN_GROUPS]
    )
    heads = ("wanted equal", "before", "achieved")
    hidden = more(len(means), SHOWN_GROUPS, "mean")
    return [Table("Means of groups", heads, rows), *map(Paragraph, hidden)]


def beyond_lines(decisions: Decisions | None) -> Iterator[str]:
    """For which model a table was made, if any, and that it is not at parity itself."""
    if decisions is None:
        return
    sees = "sees"
    need = "it needs them to decide"
    if decisions.hide_protected:
        sees = "does not see"
        need = "leave them out when you train it"
    yield (
        f"This table is made for a model: {decisions.student} that {sees} the protected"
        f" columns; {need}. Other models, and this one if it sees other columns, may"
        f" decide differently. {_WAYS[decisions.way]}"
    )
    if decisions.parity == "opportunity" and decisions.way == "soft":
        yield _FLATTERED
    for rate in decisions.rates:
        taught = [one for one in decisions.shares if one.grouping == rate.grouping]
        taught.sort(key=lambda share: share.taught)
        if taught:
            least = taught[0]
            most = taught[-1]
            yield (
                f"The table itself is not made equal for {rate.grouping}, but so that"
                f" this model decides as equally as it can: {most.outcome} is most"
                f" common for {most.group} ({percent(most.taught)}), least for"
                f" {least.group} ({percent(least.taught)})."
            )


def decision_blocks(decisions: Decisions | None) -> list[Block]:
    """What the model that a table was made for decides; nothing if there is none."""
    if decisions is None:
        return []
    whom = " whose outcome is good" if decisions.parity == "opportunity" else ""
    head = (
        f"decisions of {decisions.student} about people of the data{whom} it did not"
        f" learn from: the good outcome for"
        f" {percent(decisions.decided)} of them"
        f" ({percent(decisions.before)} if it learns from the data as they are). It was"
        f" trained {counted(decisions.trainings, 'time')} to find this table."
    )
    rows = [
        (
            f"rate of {rate.grouping}",
            rate_text(rate.wanted, nothing="any"),
            rate_text(rate.rate),
            _interval(rate),
            "",
        )
        for rate in decisions.rates
    ]
    rows += [
        (
            f"{share.outcome} for {share.group}",
            "",
            rate_text(share.share),
            _interval(share),
            rate_text(share.taught),
        )
        for share in decisions.shares
    ]
    heads = ("", "wanted", "expected", "95 % interval", "in the table")
    table = Table("Decisions about people it has not seen", heads, tuple(rows))
    return [Paragraph(head), table]


def _interval(part: DecidedRate | DecidedShare) -> str:
    if part.low is None or part.high is None:
        return ""
    return f"{part.low:.4f} to {part.high:.4f}"


# -------------------------------------------- what a model trained on it will do


class Expected(NamedTuple):
    """A quantity before and after, with the ranges it will have on other people."""

    label: str
    grouping: str | None  # of those that compare groups
    meaning: str
    # before and after; None: there is nothing to compare
    values: tuple[float | None, ...]
    ranges: tuple[Range | None, ...]  # None: not known

    @property
    def texts(self) -> Iterator[str]:
        """Both numbers with their ranges."""
        for value, span in zip(self.values, self.ranges, strict=True):
            text = rate_text(value)
            if value is not None and span is not None:
                text += f" ({span[0]:.2f} to {span[1]:.2f})"
            yield text


def expected_lines(
    estimate: ModelEstimate,
    kinds: Sequence[str] = tuple(_MEANINGS),
    *,
    favourable: str = "the outcome",
) -> Iterator[Expected]:
    """Each quantity before and after; those that compare groups, for each grouping."""
    sides = (estimate.before, estimate.after)
    for kind in kinds:
        name, meaning = _MEANINGS[kind]
        before = getattr(estimate.before, kind)
        after = getattr(estimate.after, kind)
        groupings = [None] if kind in ("accuracy", "auc") else list(before)
        for grouping in groupings:
            label = name
            values = (before, after)
            if grouping is not None:
                label = f"{name}, {grouping}"
                values = (before[grouping], after[grouping])
            yield Expected(
                label=label,
                grouping=grouping,
                meaning=meaning.replace("{}", favourable),
                values=values,
                ranges=tuple(
                    scores.ranges[kind][grouping or OVERALL] for scores in sides
                ),
            )


def estimate_blocks(
    estimate: ModelEstimate | None, about: str = "", kinds: Sequence[str] = _MAIN
) -> list[Block]:
    """What a model trained on the result is expected to do, if it was estimated."""
    if estimate is None:
        return []
    head = (
        f"expected of {estimate.student} trained on the {estimate.output}{about}; in"
        f" brackets: 95 % of measurements on {estimate.measured_on:,} other people:"
    )
    rows = tuple((line.label, *line.texts) for line in expected_lines(estimate, kinds))
    return [
        Paragraph(head),
        Table("A model trained on this", ("", "before", "after"), rows),
    ]


def not_estimated(mode: str, spell: Spell, how: str = "use") -> str:
    """How to estimate what a model will do, if nobody did."""
    option = Option("estimate", "weights" if mode == "weights" else "rows")
    return (
        "How a model trained on this will treat people was not estimated; to estimate"
        f" it, {how} {spell(option)}"
    )


# ---------------------------------------------------------------- what may be shared


def copies_of(redrawn: RedrawnValues | None) -> tuple[str, str]:
    """What copies of real rows are, and what that means for who shares them."""
    if redrawn is None:
        return "rows of the data", "sharing them means sharing real people"
    are = "rows of the data but for their numbers, which are redrawn within bins"
    return are, "sharing them can still give real people away"


def copies_sentence(drawn: str, facts: UnderivedFacts, spell: Spell = str) -> str:
    """Say of so many drawn rows that they are copies, and how to draw rows to share."""
    are, mean = copies_of(facts.redrawn)
    sentence = f"{drawn} are copies of {are}, and {mean}"
    if facts.likely is None:
        release = spell(Option("release", value=True))
        sentence += f"; for rows to share, add {release}"
    return f"{sentence}."


def promise(ledger: Ledger) -> str:
    """What a private fit promises, in a sentence."""
    return (
        f"private with {ledger.privacy}: if any one person had not been in the table,"
        " whatever anybody learns from this result would have been at most"
        f" e^{ledger.privacy.epsilon:g} times (e is 2.7) more or less likely, up to a"
        " probability of δ"
    )


def privacy_lines(ledger: Ledger | None) -> Iterator[str]:
    """What a private fit promises, and what its numbers are."""
    if ledger is not None:
        yield capital(promise(ledger))
        yield (
            f"{len(ledger.spent)} measurements of the table spent ρ ="
            f" {ledger.rho:.6g} of {ledger.privacy.rho:.6g}; counts, and all numbers"
            " before, are noisy estimates, from drawn rows that stand for the data, and"
            f" the achieved rates are exact. {noise_of_counts(ledger)}"
        )


def noise_of_counts(ledger: Ledger) -> str:
    """How far off noisy counts are, in a sentence."""
    cell, rows = ledger.count_ranges
    return (
        f"Noise moves the count of an outcome in a group by up to {cell:,.0f}, and that"
        f" of all rows by up to {rows:,.0f}, with 95% confidence; a group that is"
        " hardly larger is mostly noise"
    )
