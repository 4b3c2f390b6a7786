"""The certificate: what a fit promises and reached, as blocks and as remarks.

A remark is a tuple of texts and options (`errors.Option`), so that each front end can
spell the options its own way.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.draws import check_count
from fairmaxent.data.levels import Notes
from fairmaxent.data.quotas import quotas
from fairmaxent.data.table import FEWEST_ROWS, MOST_TIMES
from fairmaxent.document import Blocks, Paragraph
from fairmaxent.document.text import to_text
from fairmaxent.document.words import first, percent, times
from fairmaxent.errors import KEEP_COLUMNS, Option, Remark, spelled
from fairmaxent.fairness.rates import rates_of_many
from fairmaxent.fit import statements
from fairmaxent.fit.costs import GroupCost
from fairmaxent.fit.facts import (
    Facts,
    OutcomeShare,
    Range,
    UnderivedFacts,
    facts_of,
)
from fairmaxent.fit.likely import likely_blocks
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.statements import (
    REACHED,
    RateLine,
    outcome_lines,
    rates_table,
)
from fairmaxent.fit.student import DecidedRate, Decisions
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.plain_text import Values, plain_json

Intervals = dict[str, dict[str, Range]]

# how far below the wanted rate a model's decisions may stay without a remark
SLACK = 0.1
_LINES = 12  # warnings shown before the rest is counted
# likewise, strata in one sentence, and groups warned about one by one
_STRATA = 6
_GROUPS = 3
_DRAWS = 2000
_QUOTAS = 100, 2000  # fewest and most simulated quotas
_CELLS = 200_000  # which have this many cells together, as they take some time

_HEADS = ("wanted", "before", "achieved")
_COPIES_AND_WEIGHT = ("largest weight", "most copies")


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(Facts):
    """Rates wanted, before and exactly achieved, and all there is to know beside."""

    @property
    def warnings(self) -> Notes:
        """What a careful reader should know, as sentences: first what it costs."""
        return tuple(self._spelled((*cost_remarks(self), *other_remarks(self))))

    def interval(
        self,
        n: int,
        *,
        iid: bool = False,
        confidence: float = 0.95,
    ) -> Intervals:
        """The range that the rates of ``n`` drawn rows will fall into.

        Draws are simulated from the exact table, with a fixed seed. Groups of rows
        drawn by quota are within one row of their shares, for each outcome too, so
        their rates vary little. A rate is a minimum over pairs of groups, so drawn rows
        mostly have a lower one than the exact table.
        """
        count = check_count(n)
        measure = self.measure
        check_confidence(confidence)
        rng = np.random.default_rng(0)
        if iid or self.likely is not None:  # of a group nobody counts a quota
            tables = rng.multinomial(
                count, self.table.ravel() / self.table.sum(), size=_DRAWS
            )
        else:
            draws = int(np.clip(_CELLS // self.table.size, *_QUOTAS))
            tables = quotas(
                self.table,
                count,
                draws,
                rng,
                sums=measure.sums,
            )
        stack = tables.reshape(-1, *self.table.shape).astype(float)
        intervals: Intervals = {"representation_rate": {}, "statistical_rate": {}}
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        for name, axes in measure.named_groupings:
            outcomes = measure.favourable_of(axes)
            compared = (measure.groups_compared, measure.outcomes_compared)
            for index, kind in enumerate(intervals):
                drawn = compared[index](stack, axes)
                exact = compared[index](self.table, axes)
                rates = rates_of_many(
                    drawn,
                    exact,
                    axes,
                    outcomes,
                    strata=measure.strata,
                    apart=measure.apart_of(axes),
                )
                low, high = np.quantile(rates[index], ends)
                intervals[kind][name] = (float(low), float(high))
        return intervals

    def to_dict(self) -> Values:
        """Everything as plain values, for JSON; a number that is not finite is None."""
        stated = {
            key: plain_json(value)
            for key, value in vars(self).items()
            if key not in ("measure", "table", "privacy")
        }
        stated["privacy"] = None
        if self.privacy is not None:
            stated["privacy"] = plain_json(self.privacy.to_dict())
        return stated

    @property
    def digest(self) -> str:
        """The SHA-256 of what it states, to six digits; it names this fit in papers."""
        stated = json.loads(
            json.dumps(self.to_dict()),
            parse_float=lambda number: f"{float(number):.6g}",
        )
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    def compared(self, shares: Sequence[OutcomeShare]) -> list[OutcomeShare]:
        """Of the shares of all outcomes, those that the statistical rate compares."""
        # The levels of the other outcomes come after those of the first.
        result = []
        start = 0
        for axis, levels in ((0, self.measure.favourable), *self.measure.others):
            result += [shares[start + level] for level in levels]
            start += self.table.shape[axis]
        return result

    @property
    def rate_lines(self) -> Iterator[RateLine]:
        """Each rate wanted, before and achieved."""
        for kind, name in self.rates_shown:
            label = self.measure.rate_name(kind, name)
            if self.likely is not None and self.likely.is_about(name):
                label += " (as assumed)"
            yield RateLine(
                label,
                wanted=self.wanted[kind][name],
                before=self.before[kind][name],
                reached=self.achieved[kind][name],
                slack=REACHED,
            )

    def headline(self) -> Blocks:
        """The first of it: for whom it is, what it promises, and what to beware of."""
        yield from map(Paragraph, statements.beyond_lines(self.decisions))
        yield from map(Paragraph, statements.privacy_lines(self.privacy))
        yield from likely_blocks(self.likely)
        yield from statements.warnings_about(self._spelled(cost_remarks(self)))

    def rates(self) -> Blocks:
        """The rates of the table, and those of a model if they are known."""
        yield rates_table([*self.rate_lines], _HEADS)
        yield from map(Paragraph, statements.small_group_lines(self.set_apart))
        yield from statements.mean_blocks(self.means)
        yield from statements.decision_blocks(self.decisions)
        yield from statements.estimate_blocks(self.estimate)

    def blocks(self) -> Blocks:
        """What it states: what it costs first, then what was reached, and the rest."""
        yield from self.headline()
        yield from statements.changed_blocks(self.costs)
        shares = self.compared(self.outcome_shares)
        yield from map(Paragraph, outcome_lines(shares))
        if self.privacy is None:
            yield Paragraph(
                "the fair weights carry as much information as"
                f" {self.effective_rows:,.0f} equally weighted rows (of {self.rows:,})"
            )
        yield from map(Paragraph, statements.filled_lines(sum(self.filled_shares)))
        yield from self._cost_blocks()
        yield from self.rates()
        yield Paragraph(
            f"{self.method}: {self.iterations} iterations, residual"
            f" {self.residual:.1e}; distance to prior {self.distance['to_prior']:.4f},"
            f" from data {self.distance['from_data']:.4f}"
        )
        remarks = [*self._spelled(other_remarks(self))]
        yield from map(Paragraph, first(remarks, _LINES, "warning"))

    def __str__(self) -> str:
        return to_text(self.blocks())

    def _cost_blocks(self) -> Blocks:
        """What each group rests on, and how many drawn rows are copies."""
        if self.costs is None:
            return
        yield from statements.cost_blocks(
            self.costs.groups, self.costs.worst_cell, _COPIES_AND_WEIGHT
        )
        if self.copied_share:
            drawn = f"About {percent(self.copied_share)} of drawn rows"
            yield Paragraph(statements.copies_sentence(drawn, self))

    def _spelled(self, remarks: Iterable[Remark]) -> Iterator[str]:
        return (spelled(remark, str) for remark in remarks)


def certify(solved: Solved, told: UnderivedFacts) -> Certificate:
    """Take every promised quantity from the fitted distribution itself."""
    return Certificate(**vars(told), **facts_of(solved, told))


# ---------------------------------------------------------------- remarks


def other_remarks(facts: Facts) -> Iterator[Remark]:
    """What a careful reader should know after the warnings about costs."""
    yield from _privacy_remarks(facts)
    if facts.costs is None:
        for name, rows in facts.small_groups.items():
            yield (f"small group: {name} ({rows:,} rows)",)
    yield from _changes_to_the_table(facts)
    yield from _uncompared(facts)
    for combination, rows in facts.forbidden_rows.items():
        yield (
            (
                f"{rows:,} rows have the forbidden combination {combination}; they get"
                " weight zero"
            ),
        )
    if facts.weight_limit is not None and facts.needed_limit is not None:
        yield from _missed_for_the_limit(facts, facts.weight_limit, facts.needed_limit)
    yield from _decision_remarks(facts)
    yield from unfair_decisions(facts)


def _privacy_remarks(facts: Facts) -> Iterator[Remark]:
    if facts.privacy is None:
        return
    epsilon = facts.privacy.privacy.epsilon
    delta = facts.privacy.privacy.delta
    yield (
        (
            "another private fit of the same people, even one that follows advice"
            f" given here, spends another ε = {epsilon:g}, and all of it adds up;"
            " more rows and reports from this one spend nothing"
        ),
    )
    if delta * facts.rows >= 1:
        yield (
            (
                f"δ = {delta:g} is not below 1 divided by the number of rows (about"
                f" {facts.rows:,}), so the promise may fail for somebody; choose a"
                " smaller "
            ),
            Option("delta"),
        )


def _missed_for_the_limit(
    facts: Facts, limit: float, needed: float
) -> Iterator[Remark]:
    """What was asked for, what can be reached, and the limit that would allow it."""
    if needed <= limit * (1 + REACHED):
        return
    short = []
    for kind, name in facts.rates_shown:
        wanted = facts.wanted[kind][name]
        reached = facts.achieved[kind][name]
        if wanted is not None and reached is not None and reached < wanted - REACHED:
            rate = facts.measure.rate_name(kind, name)
            short.append(f"the {rate} is {reached:.3f}, not {wanted:.3f}")
    missed = ", ".join(short) or "not all shares are those asked for"
    yield (
        (
            f"{missed}: that is the most that can be reached, because no row may count"
            f" more than {limit:g} times; a limit of {math.ceil(100 * needed) / 100:g}"
            " would allow what was asked for ("
        ),
        Option("largest_weight"),
        ")",
    )


def _changes_to_the_table(facts: Facts) -> Iterator[Remark]:
    """What was filled in, removed, left out, redrawn, binned or emptied."""
    for cell, share in zip(facts.filled_cells, facts.filled_shares, strict=True):
        yield (
            (
                f"no row that was fitted has {cell}: the base fills in this"
                f" combination, {percent(share)} of the result"
            ),
        )
    for level in facts.removed_levels:
        yield (f"level removed, because its share was 0, or is to be: {level}",)
    if columns := ", ".join(map(repr, facts.left_out_columns)):
        yield (
            (
                "left out, because they look like identifiers or notes about people:"
                f" {columns}. To keep them, use "
            ),
            replace(KEEP_COLUMNS, value=list(facts.left_out_columns)),
        )
    yield from ((note,) for note in facts.notes)
    if facts.redrawn is not None and facts.redrawn.reason is not None:
        what = (
            f"in new rows, values of {', '.join(map(repr, facts.redrawn.columns))} are"
            " redrawn within their bins ("
        )
        yield (what, Option("detail", "bins"), f"), because {facts.redrawn.reason}")
    for name, bins in facts.binned_columns.items():
        yield (
            (
                f"column {name!r} is compared in {len(bins)} bins:"
                f" {', '.join(bins[:3])}, …"
            ),
        )
    for cell in facts.emptied_cells:
        yield (
            (
                f"the rows with {cell} get weight zero: the wanted rates cannot be met"
                " with them. To keep them, lower "
            ),
            Option("representation_rate"),
            " or ",
            Option("statistical_rate"),
        )


def _uncompared(facts: Facts) -> Iterator[Remark]:
    """Name missing values and strata that are not compared."""
    columns = []
    keep = "keep their share and "  # as most missing values do
    for missing in facts.kept_missing:
        share = f"{missing.share:.1%} of the rows"
        if percent(missing.after) != percent(missing.share):
            share += f", {percent(missing.after)} of the result"
            keep = ""
        columns.append(f"{missing.column!r} ({share})")
    if columns:
        yield (
            (
                f"missing values of {', '.join(columns)} {keep}are not compared; to"
                " compare them as a group, use "
            ),
            Option("compare_missing", value=True),
        )
    for grouping, names in facts.single_groups.items():
        strata = "; ".join(names[:_STRATA])
        if len(names) > _STRATA:
            strata += f" and {len(names) - _STRATA} more"
        yield (
            (
                f"{grouping}: not compared, because they have rows of a single group:"
                f" {strata}"
            ),
        )


def cost_remarks(facts: Facts) -> Iterator[Remark]:
    """Warn of the groups beyond the line, worst first."""
    groups = _groups_to_warn_of(facts)
    remedies: list[Remark] = []
    for group in groups[:_GROUPS]:
        remedy = _remedy(group, facts)
        statement = _statement(group, facts.rows)
        if remedy in remedies:  # it is said once
            yield (statement, ".")
        else:
            yield (statement, *remedy)
        remedies.append(remedy)
    others = len(groups) - _GROUPS
    if others > 0:
        rest = "group rests" if others == 1 else "groups rest"
        yield (
            (
                f"{others:,} more {rest} on fewer than {FEWEST_ROWS} effective rows, or"
                f" on a person who counts more than {MOST_TIMES} times."
            ),
        )


def _groups_to_warn_of(facts: Facts) -> list[GroupCost]:
    """Groups beyond the line; a person who is in two of them is named once."""
    groups: list[GroupCost] = []
    if facts.costs is None:
        return groups
    for group in sorted(facts.costs.groups, key=lambda group: group.effective_rows):
        is_named = any(
            abs(group.times - other.times) <= 1e-9 * group.times for other in groups
        )
        is_new = group.effective_rows < FEWEST_ROWS or not is_named
        if group.beyond_line and is_new:
            groups.append(group)
    return groups


def _statement(group: GroupCost, rows: int) -> str:
    if not group.rows:
        return (
            f"{group.name} is {percent(group.after)} of the result, but no row that was"
            " fitted is in this group"
        )
    people = "a single row" if group.rows == 1 else f"{group.rows:,} rows"
    text = f"{group.name}: all that the result says about this group rests on {people}"
    if group.grows:
        text = (
            f"{group.name}: {percent(group.after)} of the result rests on {people}"
            f" ({percent(group.before)} of the data)"
        )
    if round(group.effective_rows) < group.rows:
        text += (
            f", which carry as much information as {times(group.effective_rows)}"
            " equally weighted ones"
        )
    if group.times > MOST_TIMES:
        text += f"; one person has {times(group.most_weight)} times the average weight"
        if group.most_copies >= 1:
            text += (
                f", and is expected {times(group.most_copies)} times among {rows:,}"
                " drawn rows"
            )
    return text


def _remedy(group: GroupCost, facts: Facts) -> Remark:
    merge = "merge it with another group"
    if not group.grows and group.times <= MOST_TIMES:
        return (f". To do better, {merge}, or collect more rows.",)
    ways: list[Remark] = [(merge,)]
    wanted = facts.wanted["representation_rate"]
    if group.grows and group.targeted:
        ways.insert(0, ("ask for a smaller share of the group in ", Option("target")))
    elif group.grows and wanted.get(group.grouping) is not None:
        rates = {name: wanted[name] for name, _ in facts.measure.of_first_outcome} | {
            group.grouping: None
        }
        by_column = {
            facts.measure.columns_of(name): rate for name, rate in rates.items()
        }
        joint = " × " in group.grouping and len(by_column) == 1
        size = Option("representation_rate", None if joint else by_column)
        ways.insert(0, ("leave the group at its size with ", size))
    # a limit that was asked for is met; a lower one would lower the rates
    if not facts.weight_limit and group.rows:
        ways.append(("limit the weight of one person with ", Option("largest_weight")))
    *others, last = ways
    joined = [part for way in others for part in (*way, ", ")]
    if others:
        joined.append("or ")
    return (". To avoid this, ", *joined, *last, ".")


def _decision_remarks(facts: Facts) -> Iterator[Remark]:
    """Say where parity of a student's decisions means nothing, or was not reached."""
    decisions = facts.decisions
    if decisions is None:
        return
    for rate in decisions.rates:
        if rate.vacuous:
            yield _vacuous(decisions, rate)
        elif (
            rate.wanted is not None
            and rate.rate is not None
            and rate.rate < rate.wanted - SLACK
        ):
            yield (
                (
                    f"the decisions of {decisions.student} for {rate.grouping} are"
                    f" expected to have a rate of {rate.rate:.2f} (wanted"
                    f" {rate.wanted:.2f}) among other people. Try more rows, larger"
                    " groups, or another "
                ),
                Option("model"),
            )
    if decisions.unsure:
        groups = "; ".join(decisions.unsure[:_STRATA])
        if len(decisions.unsure) > _STRATA:
            groups += ", and others"
        yield (
            (
                "too few people to promise anything about the decisions of"
                f" {decisions.student}: {groups}"
            ),
        )


def _vacuous(decisions: Decisions, rate: DecidedRate) -> Remark:
    """Say that equal decisions mean nothing if all people get the same."""
    shares = [share for share in decisions.shares if share.grouping == rate.grouping]
    outcomes = " or ".join(sorted({share.outcome for share in shares}))
    whom = "everybody"
    threshold = "higher"
    if all(share.share == 0 for share in shares):
        whom = "nobody"
        threshold = "lower"
    return (
        (
            f"{decisions.student} decides for {outcomes} for {whom} at a probability of"
            f" {decisions.threshold:g}, so that equal decisions for {rate.grouping} say"
            f" nothing. Choose a {threshold} "
        ),
        Option("threshold"),
    )


def unfair_decisions(facts: Facts) -> Iterator[Remark]:
    """Say for which groups a model is expected to stay less fair, and what helps."""
    estimate = facts.estimate
    if estimate is None:
        return
    if estimate.after.decided == 0:
        yield (
            (
                "a model trained on the result is expected to decide for nobody in any"
                " group, so equal rates of its decisions mean nothing"
            ),
        )
    for name, rate in estimate.after.by_predictions.items():
        wanted = facts.wanted_of_decisions[name]
        if rate is None or wanted is None or rate >= wanted - SLACK:
            continue
        span = estimate.after.ranges["by_predictions"][name]
        between = "" if span is None else ", between {:.2f} and {:.2f}".format(*span)
        yield (
            (
                "fair data are not enough: if a model is trained on them, the"
                f" statistical rate of its decisions for {name} is expected to be"
                f" {rate:.2f}{between} (wanted {wanted:.2f}). To make the table for"
                " your model, use "
            ),
            Option("model"),
        )
