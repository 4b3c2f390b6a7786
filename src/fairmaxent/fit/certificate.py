"""What a fit promises, and what it reached."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.draws import check_count, quotas
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Reals
from fairmaxent.document import Block, Heading, Listing, Note, Paragraph, Table
from fairmaxent.document.text import to_text
from fairmaxent.document.words import percent, times
from fairmaxent.engines.rows import divergence, tilted_rows
from fairmaxent.errors import Option, cut, spelled
from fairmaxent.fairness.rates import Rates, group_table, rates_of_many, smallest_over_largest
from fairmaxent.fit.costs import measure_costs
from fairmaxent.fit.facts import (
    Facts,
    OutcomeShare,
    Told,
    column_facts,
    forbidden_rows,
    group_means,
    multiplier_bound,
    outcome_shares,
    rate_bound,
    removed_levels,
    small_groups,
)
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.relabel import Decisions
from fairmaxent.fit.remarks import SLACK, cost_remarks, other_remarks
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.statements import (
    REACHED,
    RateLine,
    changed_lines,
    copies_of,
    cost_blocks,
    decision_blocks,
    estimate_blocks,
    filled_lines,
    outcome_lines,
    privacy_lines,
    rates_table,
)
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.plain_text import plain_json

Intervals = dict[str, dict[str, tuple[float, float]]]

_LINES = 12  # warnings, rates or means shown before the rest is counted
_OUTCOMES = 4  # likewise
_NOTABLE = 1.05  # times the average weight
_LONGEST = 1000  # characters of a sentence at a glance
_DRAWS = 2000
_QUOTAS = 100, 2000  # fewest and most simulated quotas
_CELLS = 200_000  # which have this many cells together, as they take some time

# What can be done with a fit: the call, and what it gives.
_ROWS = ("fit.weigh(table): your rows with their weights", "fit.top_up(): rows to add")  # of the data
_NEXT = (
    "fit.sample(n): new rows",
    *_ROWS,
    "fit.summary(): group by group",
    "fit.plot(): a picture",
    'fit.report("report.html"): a report to file',
    "print(fit.certificate): everything; after debias(..., estimate='rows') also how a model will treat people",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(Facts):
    """Rates wanted, before and achieved, how good the solution is, and the facts to know about it.

    The achieved rates are exact: they are taken from the fitted distribution, not from drawn rows.
    """

    before: Rates
    bound: float  # Theorem 4.5: the statistical rate is at least this, whatever the solver did to single cells
    delta: float  # δ of Theorem 4.5
    dual: float  # h(λ*) = −KL(p*‖q)
    iterations: int
    residual: float  # max |E[φ] − θ|
    method: str
    status: str
    multiplier_norm: float  # ‖λ*‖₂
    multiplier_bound: float | None  # Lemma 4.2; None if its assumptions do not hold
    distance: dict[str, float]  # "to_prior": KL(p*‖q); "from_data": KL(data‖p*)
    table: Reals  # p*(y, z)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Everything a careful reader should know, as sentences: first what it costs, beyond a line."""
        return tuple(spelled(remark, str) for remark in (*cost_remarks(self), *other_remarks(self)))

    def interval(self, n: int, *, iid: bool = False, confidence: float = 0.95) -> Intervals:
        """The range that the rates of ``n`` drawn rows will fall into.

        Draws are simulated from the exact table, with a fixed seed. Each cell of rows drawn by quota is within one row
        of its share, so their rates vary little. A rate is a minimum over pairs of groups, so drawn rows mostly have a
        lower one than the exact table.
        """
        count, measure = check_count(n), self.measure
        check_confidence(confidence)
        rng = np.random.default_rng(0)
        if iid:
            tables = rng.multinomial(count, self.table.ravel() / self.table.sum(), size=_DRAWS)
        else:
            tables = quotas(self.table, count, int(np.clip(_CELLS // self.table.size, *_QUOTAS)), rng)
        stack = tables.reshape(-1, *self.table.shape).astype(float)
        intervals: Intervals = {"representation_rate": {}, "statistical_rate": {}}
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        for name, axes in zip(measure.names, measure.groupings, strict=True):
            for index, (kind, compared) in enumerate(
                zip(intervals, (measure.groups_compared, measure.outcomes_compared), strict=True)
            ):
                rates = rates_of_many(
                    compared(stack, axes),
                    compared(self.table, axes),
                    axes,
                    measure.favourable_of(axes),
                    strata=measure.strata,
                )
                low, high = np.quantile(rates[index], ends)
                intervals[kind][name] = (float(low), float(high))
        return intervals

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON: a number that is not finite is None."""
        skipped = ("measure", "table", "privacy")
        values = {key: plain_json(value) for key, value in vars(self).items() if key not in skipped}
        ledger = None if self.privacy is None else plain_json(self.privacy.to_dict())
        return values | {"privacy": ledger}

    @property
    def compared_outcomes(self) -> tuple[OutcomeShare, ...]:
        """The outcomes that the statistical rate compares, before and after."""
        # The levels of the other outcomes come after those of the first.
        result, start = [], 0
        for axis, levels in ((0, self.measure.favourable), *self.measure.others):
            result += [self.outcome_shares[start + level] for level in levels]
            start += self.table.shape[axis]
        return tuple(result)

    @property
    def rate_lines(self) -> Iterator[RateLine]:
        """Each rate wanted, before and achieved."""
        for kind, name in self.rates_shown:
            wanted, before, achieved = (rates[kind][name] for rates in (self.wanted, self.before, self.achieved))
            yield RateLine(self.measure.rate_name(kind, name), wanted, before, achieved)

    def blocks(self) -> Iterator[Block]:
        """Everything that it states: what it costs first, then what was reached, and what to know."""
        yield from map(Paragraph, privacy_lines(self.privacy))
        yield from (Paragraph(f"warning: {spelled(remark, str)}") for remark in cost_remarks(self))
        yield from (Paragraph(f"outcomes changed for {line}") for line in changed_lines(self.costs))
        yield from map(Paragraph, outcome_lines(self.compared_outcomes))
        yield from self._costs()
        yield rates_table(list(self.rate_lines), ("wanted", "before", "achieved"))
        rows = tuple((f"mean of {mean.group}", f"{mean.before:.5g}", f"{mean.after:.5g}") for mean in self.means)
        if rows:
            yield Table("Means of groups", ("wanted equal", "before", "achieved"), rows[:_LINES])
        yield from _more(len(rows), "means")
        yield from decision_blocks(self.decisions)
        yield from estimate_blocks(self.estimate)
        yield Paragraph(
            f"{self.method}: {self.iterations} iterations, residual {self.residual:.1e}; "
            f"distance to prior {self.distance['to_prior']:.4f}, from data {self.distance['from_data']:.4f}"
        )
        others = [Paragraph(spelled(remark, str)) for remark in other_remarks(self)]
        yield from [*others[:_LINES], *_more(len(others), "warnings")]

    def _costs(self) -> Iterator[Block]:
        if self.costs is None:
            return
        yield Paragraph(f"effective rows: {self.effective_rows:,.0f} of {self.rows:,}")
        yield from cost_blocks(self.costs.groups, self.costs.worst_cell, ("largest weight", "most copies"))
        yield from map(Paragraph, filled_lines(sum(self.filled_shares)))
        if self.copied_share:
            copies = copies_of(redrawn=self.redrawn is not None)
            yield Paragraph(
                f"copies: about {percent(self.copied_share)} of drawn rows are {copies.are}, and {copies.mean}; for "
                f"rows to share, use {Option('release', value=True)}"
            )

    def __str__(self) -> str:
        return to_text(self.blocks())

    def at_a_glance(self, roles: Roles) -> Iterator[Block]:
        """What people see first of a fit: asked for, reached, cost, and what to do next."""
        rates = [replace(rate, label=cut(rate.label)) for rate in self._judged_rates()]
        yield Heading(
            f"<Fit of {', '.join(roles.outcome_names)!r} by {list(roles.protected_names)}, {self.rows:,} rows>"
        )
        yield rates_table(rates[:_LINES], ("asked", "before", "reached"))
        yield from _more(len(rates), "rates")
        yield from (Note(cut(f"warning: {spelled(remark, str)}", _LONGEST)) for remark in cost_remarks(self))
        yield from (Paragraph(cut(line, _LONGEST)) for line in self._costs_in_short())
        yield Paragraph("next:")
        yield Listing(tuple(call for call in _NEXT if self.privacy is None or call not in _ROWS))

    def _judged_rates(self) -> Iterator[RateLine]:
        """Rates of the table, of the decisions of a student, and of a model, if they are known."""
        yield from (replace(rate, slack=REACHED) for rate in self.rate_lines)
        for rate in () if self.decisions is None else self.decisions.rates:
            yield RateLine(f"statistical rate of decisions for {rate.grouping}", rate.wanted, None, rate.rate, SLACK)
        if (estimate := self.estimate) is not None:
            for name, before in estimate.before.by_predictions.items():
                wanted, after = self.wanted_of_decisions.get(name), estimate.after.by_predictions[name]
                yield RateLine(f"a model's decisions for {name}, estimated", wanted, before, after, SLACK)

    def _costs_in_short(self) -> Iterator[str]:
        yield from privacy_lines(self.privacy)
        shares = self.compared_outcomes
        yield from outcome_lines(shares[:_OUTCOMES])
        if len(shares) > _OUTCOMES:
            yield f"and {len(shares) - _OUTCOMES} more outcomes"
        if self.privacy is None:
            yield (
                f"the fair weights carry as much information as {self.effective_rows:,.0f} equally weighted rows (of "
                f"{self.rows:,})"
            )
        worst = None if self.costs is None else self.costs.worst_cell
        if worst is not None and worst.largest_weight >= _NOTABLE:
            yield f"one row counts up to {times(worst.largest_weight)} times as much as the average row ({worst.name})"
        yield from (f"outcomes changed for {line}" for line in changed_lines(self.costs))
        yield from filled_lines(sum(self.filled_shares))


def _more(count: int, what: str) -> list[Block]:
    return [Paragraph(f"and {count - _LINES} more {what}")] if count > _LINES else []


def certify(solved: Solved, told: Told) -> Certificate:
    """Take every promised quantity from the fitted distribution itself.

    Where τ is not known, Theorem 4.5 is applied with the ratio that the prior's table has.
    """
    problem, distribution, solution = solved.problem, solved.distribution, solved.optimum.solution
    filled, achieved, copied = solved.filled, distribution.root_table, tilted_rows(distribution.tilted)
    costs = None if isinstance(solved.request, PaperRequest) else measure_costs(solved, filled=bool(filled))
    bound, delta = rate_bound(solved, achieved)
    return Certificate(
        **vars(told),
        **column_facts(problem, achieved),
        wanted=_wanted(problem, told.decisions),
        before=problem.measure.rates(problem.data_table),
        achieved=problem.measure.rates(achieved),
        bound=bound,
        delta=delta,
        dual=solution.value,
        iterations=solution.iterations,
        residual=solution.residual,
        method=solution.method,
        status=solution.status.value,
        multiplier_norm=float(np.linalg.norm(solution.multipliers)),
        multiplier_bound=multiplier_bound(solved),
        distance={"to_prior": -solution.value, "from_data": divergence(problem.counted, distribution.density)},
        rows=problem.table.size,
        effective_rows=solved.weighted.worth if costs is None else costs.effective_rows,
        small_groups=small_groups(problem),
        filled_cells=tuple(problem.roles.describe_cell(cell) for cell in filled),
        filled_shares=tuple(float(achieved[cell]) for cell in filled),
        costs=costs,
        removed_levels=removed_levels(distribution),
        means=group_means(problem, achieved),
        largest_weight=problem.largest_weight,
        forbidden_rows=forbidden_rows(problem),
        outcome_shares=outcome_shares(problem, achieved),
        notes=solved.domain.notes,
        copied_share=0.0 if copied is None or told.privacy is not None else copied[0],
        measure=problem.measure,
        table=achieved,
    )


def _wanted(problem: Problem, decisions: Decisions | None) -> Rates:
    """The wanted rates of the table; its statistical rates are free if they give way to those of decisions."""
    names = problem.measure.names
    free = decisions is not None and not decisions.keeps_means
    shares = [
        _target_rate(problem, grouping, rate)
        for grouping, rate in zip(problem.measure.groupings, problem.representation, strict=True)
    ]
    return {
        "representation_rate": dict(zip(names, shares, strict=True)),
        "statistical_rate": dict.fromkeys(names) if free else dict(zip(names, problem.statistical, strict=True)),
    }


def _target_rate(problem: Problem, grouping: tuple[int, ...], rate: float | None) -> float | None:
    """ρ, or the rate of the shares that the user named; None if they are about a part of the grouping only."""
    named = [axis for axis in grouping if axis in problem.root_targets and axis not in problem.roles.strata_axes]
    if not named:
        return rate
    if len(grouping) > 1:
        return None
    table = problem.measure.groups_compared(np.broadcast_to(1.0, problem.data_table.shape), grouping)
    shares = problem.root_targets[named[0]] * (group_table(table, grouping).sum(axis=0) > 0)
    return float(smallest_over_largest(shares[shares > 0]))
