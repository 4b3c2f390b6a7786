"""Statements: what a certificate says, as sentences and tables, which every form of it
and every report has.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from typing import NamedTuple

import numpy as np

from fairmaxent.data.roles import RedrawnValues, Roles
from fairmaxent.document import Block, Note, Paragraph, Table
from fairmaxent.document.words import counted, percent, times
from fairmaxent.errors import Option
from fairmaxent.fit.costs import Costs, GroupCost
from fairmaxent.fit.facts import GroupMean, ModelEstimate, OutcomeShare, Range
from fairmaxent.fit.student import DecidedRate, DecidedShare, Decisions
from fairmaxent.metrics.trial import OVERALL
from fairmaxent.privacy.budget import Ledger

REACHED = 1e-6  # solvers stop a little short of an exact rate
SHOWN_GROUPS = 12
_NOTHING = 1e-6  # a difference that is the solver's, relative to the largest mean
# ---------------------------------------------------------------- decisions of a
# student
_LIKELY = (
    "Rows count partly for each outcome, by how likely it is: outcomes, and rows to"
    " add, teach this model less."
)
_WAYS = {
    "none": (
        "The table stays as it is: from no other that was tried would this model decide"
        " more equally."
    ),
    "tilt": "Each row keeps its outcome, and weights teach the model.",
    "soft tilt": _LIKELY,
    "along": (
        "Rows count partly for each outcome: weights alone, or rows to add, teach less"
        " if groups are not seen."
    ),
    "soft along": _LIKELY,
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
# what is shown if there is little room
_MAIN = ("accuracy", "auc", "by_predictions", "by_probabilities")


class Depth(Enum):
    """How much is told: what a fit shows of itself, or everything."""

    HEADLINE = auto()
    ALL = auto()


# ---------------------------------------------------------------- rates


@dataclass(frozen=True)
class RateLine:
    """One rate: what was asked for (None: nothing), what the data have, and what was
    reached (None: unknown).
    """

    label: str
    wanted: float | None
    before: float | None
    reached: float | None
    # how far below what was asked for still counts as reached; None: not to be judged
    slack: float | None = None

    @property
    def state(self) -> str:
        """Whether what was asked for was reached, in a word."""
        if self.wanted is None or self.slack is None:
            return ""
        return (
            "✓ reached"
            if self.reached is not None and self.reached >= self.wanted - self.slack
            else "✗ short"
        )


def rates_table(lines: Sequence[RateLine], heads: tuple[str, str, str]) -> Table:
    """Each rate as it was asked for, before and after; with a last column if any is
    judged.
    """
    judged = any(line.state for line in lines)
    rows = []
    for line in lines:
        wanted = rate_text(line.wanted, nothing="any")
        before = rate_text(line.before)
        reached = rate_text(line.reached)
        rows.append((line.label, wanted, before, reached, line.state)[: 4 + judged])
    return Table("Rates, 1 is equal", ("", *heads, "")[: 4 + judged], tuple(rows))


def rate_text(value: float | None, digits: int = 4, *, nothing: str = "–") -> str:
    """Write a rate; a dash, say, if there is nothing to compare, and no sign before a
    zero.
    """
    if value is None or np.isnan(value):
        return nothing
    return f"{round(value, digits) + 0.0:.{digits}f}"


# ---------------------------------------------------------------- costs


def cost_blocks(
    groups: Sequence[GroupCost],
    worst_cell: GroupCost,
    last: Sequence[str],
    more: str = "",
) -> list[Block]:
    """A row for each group, those with the fewest effective rows if there are many, and
    for the worst cell.

    ``last`` are the columns about one person: the "largest weight", or copies; ``more``
    says where other groups are.
    """
    worst = sorted(range(len(groups)), key=lambda index: groups[index].effective_rows)[
        :SHOWN_GROUPS
    ]
    named = [(groups[index].name, groups[index]) for index in sorted(worst)]
    rows = [
        cost_row(name, cost, last)
        for name, cost in (*named, (f"worst cell: {worst_cell.name}", worst_cell))
    ]
    hidden = len(groups) - len(worst)
    if hidden:
        rest = [Paragraph(f"and {hidden:,} more groups{more}")]
    else:
        rest = []
    return [
        Table(
            "Costs by group",
            ("group", "rows", "before", "after", "effective rows", *last),
            tuple(rows),
        ),
        *rest,
    ]


def cost_row(name: str, cost: GroupCost, last: Sequence[str]) -> tuple[str, ...]:
    """What a group, or a cell, rests on."""
    ends = [
        times(cost.most_weight if column == "largest weight" else cost.most_copies)
        for column in last
    ]
    return (
        name,
        f"{cost.rows:,}",
        percent(cost.before),
        percent(cost.after),
        times(cost.effective_rows),
        *ends,
    )


def outcome_lines(shares: Sequence[OutcomeShare]) -> Iterator[str]:
    """How common each outcome is, before and after."""
    for share in shares:
        yield (
            f"outcome {share.outcome}: {percent(share.before)} before,"
            f" {percent(share.after)} after"
        )


def filled_lines(share: float) -> Iterator[str]:
    """How much of the result nobody in the data stands for; nothing if that is
    nothing.
    """
    if share > 0:
        yield (
            f"filled in: {percent(share)} of the result has a combination of outcome"
            " and groups that no row has"
        )


def changed_lines(costs: Costs | None) -> Iterator[str]:
    """How many people of each group get another outcome, and in which direction;
    nothing if nobody does.
    """
    for group, changes in groupby(
        () if costs is None else costs.changed, key=lambda change: change.group
    ):
        directions = sorted(
            (change for change in changes if change.changed >= 0.5),
            key=lambda change: -change.changed,
        )
        if directions:
            parts = [
                f"{change.changed:,.0f} from {change.old} to {change.new}"
                for change in directions
            ]
            yield f"{group}: of {directions[0].people:,} people, {', '.join(parts)}"


def changed_blocks(costs: Costs | None) -> list[Block]:
    """The same, as sentences of their own."""
    return [
        Paragraph(f"Outcomes were changed for {line}") for line in changed_lines(costs)
    ]


def warnings_about(costs: Iterable[str]) -> list[Block]:
    """Costs beyond the line, with their remedies: the first thing that is said."""
    return [Note(f"Warning: {cost}") for cost in costs]


def mean_lines(means: Sequence[GroupMean], roles: Roles) -> Iterator[str]:
    """How far the means of each grouping are apart, before and after; nothing if nobody
    asked for equal means.
    """
    axes = roles.strata_axes
    strata = np.ndindex(*(roles.attributes[axis].size for axis in axes))
    # Groups of one stratum are compared with each other; the name of a group ends with
    # that of its stratum.
    if axes:
        ends = [f", {roles.describe_group(axes, stratum)}" for stratum in strata]
    else:
        ends = [""]
    for grouping in dict.fromkeys(mean.grouping for mean in means):
        parts = [
            [
                mean
                for mean in means
                if mean.grouping == grouping and mean.group.endswith(end)
            ]
            for end in ends
        ]
        before, after = (
            max(
                max(numbers) - min(numbers)
                for part in parts
                if (numbers := [getattr(mean, side) for mean in part])
            )
            for side in ("before", "after")
        )
        equal = after <= _NOTHING * max(abs(mean.after) for mean in means)
        yield (
            f"The mean of {roles.names[0]} in the groups of {grouping}: up to"
            f" {before:.4g} apart in the data,"
            f" {'equal' if equal else f'up to {after:.4g} apart'} by the fair weights."
        )


def beyond_lines(decisions: Decisions | None) -> Iterator[str]:
    """For which model a table was made, and that it is not at parity itself; nothing if
    for none.
    """
    if decisions is None:
        return
    sees = "sees" if decisions.sees_protected else "does not see"
    need = (
        "it needs them to decide"
        if decisions.sees_protected
        else "leave them out when you train it"
    )
    yield (
        f"This table is made for a model: {decisions.student} that {sees} the protected"
        f" columns; {need}. Other models, and this one if it sees other columns, may"
        f" decide differently. {_WAYS[decisions.way]}"
    )
    if decisions.parity == "opportunity" and decisions.way in (
        "soft tilt",
        "soft along",
    ):
        yield _FLATTERED
    for grouping in (rate.grouping for rate in decisions.rates):
        taught = sorted(
            (share for share in decisions.shares if share.grouping == grouping),
            key=lambda own: own.taught,
        )
        if taught:
            yield (
                f"The table itself is not made equal for {grouping}, but so that this"
                f" model decides as equally as it can: {taught[-1].outcome} is most"
                f" common for {taught[-1].group} ({percent(taught[-1].taught)}), least"
                f" for {taught[0].group} ({percent(taught[0].taught)})."
            )


def decision_blocks(decisions: Decisions | None) -> list[Block]:
    """What the model that a table was made for decides; nothing if there is none."""
    if decisions is None:
        return []
    whom = " whose outcome is good" if decisions.parity == "opportunity" else ""
    head = (
        f"decisions of {decisions.student} about people{whom} it has not seen: it"
        f" decides for {percent(decisions.decided)} of them (found in"
        f" {counted(decisions.trainings, 'training')}):"
    )
    return [Paragraph(head), decisions_table(decisions)]


def decisions_table(decisions: Decisions, digits: int = 4) -> Table:
    """The rate of each grouping, and the share of each group that was decided for."""
    rows = []
    parts: list[DecidedRate | DecidedShare] = [*decisions.rates, *decisions.shares]
    for part in parts:
        if part.low is None or part.high is None:
            interval = ""
        else:
            interval = f"{part.low:.{digits}f} to {part.high:.{digits}f}"
        if isinstance(part, DecidedRate):
            wanted = rate_text(part.wanted, digits, nothing="any")
            name = f"rate of {part.grouping}"
            expected = part.rate
            taught = ""
        else:
            name = f"{part.outcome} for {part.group}"
            wanted = ""
            expected = part.share
            taught = rate_text(part.taught, digits)
        rows.append((name, wanted, rate_text(expected, digits), interval, taught))
    heads = ("", "wanted", "expected", "95 % interval", "in the table")
    return Table("Decisions about people it has not seen", heads, tuple(rows))


# ---------------------------------------------------------------- what a model trained
# on the result will do


class Expected(NamedTuple):
    """A quantity before and after, each with the range in which it will be measured on
    other people.
    """

    label: str
    grouping: str | None  # of those that compare groups
    meaning: str
    # before and after; None: there is nothing to compare
    values: tuple[float | None, ...]
    ranges: tuple[Range | None, ...]  # None: not known

    def texts(self, digits: int) -> Iterator[str]:
        """Write both numbers with their ranges."""
        for value, span in zip(self.values, self.ranges, strict=True):
            yield rate_text(value, digits) + (
                "" if value is None or span is None else f" ({range_text(span)})"
            )


def range_text(span: Range | None) -> str:
    """Write a range."""
    if span is None:
        return "–"
    return f"{span[0]:.2f} to {span[1]:.2f}"


def expected_lines(
    estimate: ModelEstimate,
    kinds: Sequence[str] = tuple(_MEANINGS),
    *,
    favourable: str = "the outcome",
) -> Iterator[Expected]:
    """Each quantity before and after, those that compare groups once per grouping;
    meanings name the outcome.
    """
    for kind in kinds:
        name = _MEANINGS[kind][0]
        meaning = _MEANINGS[kind][1].replace("{}", favourable)
        for grouping in (
            [None]
            if kind in ("accuracy", "auc")
            else list(getattr(estimate.before, kind))
        ):
            sides = [
                getattr(scores, kind) for scores in (estimate.before, estimate.after)
            ]
            values = tuple(
                side if grouping is None else side[grouping] for side in sides
            )
            ranges = tuple(
                scores.ranges[kind][grouping or OVERALL]
                for scores in (estimate.before, estimate.after)
            )
            yield Expected(
                name if grouping is None else f"{name}, {grouping}",
                grouping,
                meaning,
                values,
                ranges,
            )


def estimate_blocks(estimate: ModelEstimate | None, about: str = "") -> list[Block]:
    """What a model trained on the result is expected to do; nothing where it was not
    estimated.
    """
    if estimate is None:
        return []
    head = (
        f"expected of {estimate.student} trained on the {estimate.output}{about}; in"
        f" brackets: 95 % of measurements on {estimate.measured_on:,} other people:"
    )
    rows = tuple(
        (line.label, *line.texts(4)) for line in expected_lines(estimate, _MAIN)
    )
    return [
        Paragraph(head),
        Table("A model trained on this", ("", "before", "after"), rows),
    ]


# ---------------------------------------------------------------- what may be shared


def copies_of(redrawn: RedrawnValues | None) -> tuple[str, str]:
    """What copies of real rows are, and what that means for who shares them."""
    if redrawn is None:
        return "rows of the data", "sharing them means sharing real people"
    are = "rows of the data but for their numbers, which are redrawn within bins"
    return are, "sharing them can still give real people away"


def copies_sentence(
    drawn: str, redrawn: RedrawnValues | None, spell: Callable[[Option], str] = str
) -> str:
    """Say of so many drawn rows that they are copies, and how to draw rows to share."""
    are, mean = copies_of(redrawn)
    release = spell(Option("release", value=True))
    return f"{drawn} are copies of {are}, and {mean}; for rows to share, add {release}."


def promise(ledger: Ledger) -> str:
    """What a private fit promises, in a sentence."""
    return (
        f"private with {ledger.privacy}: whatever anybody learns from this result, they"
        " would almost as likely have learned it without the row of any one person"
    )


def privacy_lines(ledger: Ledger | None) -> Iterator[str]:
    """What a private fit promises, and what its numbers are; nothing if there is no
    promise.
    """
    if ledger is not None:
        sentence = promise(ledger)
        yield f"{sentence[:1].upper()}{sentence[1:]}"
        yield (
            f"{len(ledger.spent)} looks at the table spent ρ = {ledger.rho:.6g} of"
            f" {ledger.privacy.rho:.6g}; counts, and all numbers before, are noisy"
            f" estimates, and the achieved rates are exact. {noise_of_counts(ledger)}"
        )


def noise_of_counts(ledger: Ledger) -> str:
    """How far off noisy counts are, in a sentence."""
    cell, rows = ledger.count_ranges
    return (
        f"Noise moves the count of an outcome in a group by up to {cell:,.0f}, and that"
        f" of all rows by up to {rows:,.0f}, with 95% confidence"
    )
