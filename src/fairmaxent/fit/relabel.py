"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a model trained on the result still
predicts the old outcome. Relabelling keeps p(x, z) and moves the outcome, so that such a model learns the fair one.
`Decisions` are what it then decides about people it has not learned from.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Counted, Reals, Table, effective_rows, tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.fair_table import FairTable
from fairmaxent.fairness.rates import Grouping, group_table, outcome_rates, smallest_over_largest, statistical_pair
from fairmaxent.fit.option_values import Relabel
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import Compared, ratio_ends, share_interval, widened
from fairmaxent.progress import Progress
from fairmaxent.relabelling.closed_loop import Levelled, Shortfall, Wish, close_loop, moved_labels, rehearse
from fairmaxent.relabelling.labellers import choose_labeller, cross_fit, name_of
from fairmaxent.relabelling.people import People, pooled_labels, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, tilt

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class DecidedShare:
    """The share of a group that was decided for, with a 95 % interval."""

    grouping: str
    group: str
    outcome: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class DecidedRate:
    """The statistical rate of the decisions for a grouping, with a 95 % interval; None: there is nothing to compare."""

    grouping: str
    wanted: float | None
    rate: float | None
    low: float | None
    high: float | None
    vacuous: bool  # the same was decided for everybody, so the rate says nothing


@dataclass(frozen=True)
class Decisions:
    """What a student decides about people it has not learned from, estimated by folds; see `closed_loop`."""

    student: str
    blind: bool  # it did not see the protected columns
    threshold: float
    folds: int
    rounds: int  # in which it was tried out
    keeps_means: bool  # the table itself has the wanted statistical rate, too
    rates: tuple[DecidedRate, ...]
    shares: tuple[DecidedShare, ...]
    offsets: tuple[tuple[float, ...], ...]  # by which the labels of each group were moved, for each outcome


@dataclass(frozen=True, eq=False)
class Labelling:
    """How the outcomes of profiles are split, or what an earlier fit of the same rows, or of more, learned of that."""

    soft: Reals | None = None  # π(y | x, z); None: rows keep their outcome
    labels: Reals | None = None  # g(y | x, z)
    decisions: Decisions | None = None  # for which labels were moved; None: they were not asked for


NO_LABELS = Labelling()


def relabelled_if_asked(
    problem: Problem, request: Request, data: Reading, learned: Labelling, progress: Progress
) -> tuple[FairTable, Problem, Labelling]:
    """Make the fair table t(y, z), and relabel the rows if that is asked for: every profile once per outcome.

    Each profile is as common as it was. e(y | z) is t(y | z) exactly, unless equal decisions take other means: then the
    fair table is the one that the labels have.
    """
    plan, fair = request.relabelling, problem.fair_table()
    if plan is None:
        return fair, problem, NO_LABELS
    check_in_memory(Option("relabel"), problem.table)
    progress("label", 0.0)
    labelling = learned if learned.labels is not None else _learn(problem, fair, plan, data, learned, progress)
    labels, profiles = labelling.labels, problem.profiles
    assert labels is not None
    if labelling.decisions is not None and not labelling.decisions.keeps_means:
        table = fair.table.reshape(labels.shape[1], -1)
        means = np.stack([tally(profiles.groups, profiles.mass * label, table.shape[1]) for label in labels.T])
        total = means.sum(axis=0)
        means = np.divide(means * table.sum(axis=0), total, out=table.copy(), where=total > 0)
        fair = replace(fair, table=np.asarray(means.reshape(fair.table.shape)))
    return fair, with_labels(problem, labels), labelling


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        where = "on the workers of a cluster; compute() the frame first, or close the client"
        raise InputError(option, f" needs the distinct rows in memory, but they are {where}")


def _learn(
    problem: Problem, fair: FairTable, plan: Relabel, data: Reading, learned: Labelling, progress: Progress
) -> Labelling:
    """Learn soft labels, unless they are known, and move them until they, or a student's decisions, are fair."""
    counts = problem.counted.collect().counts  # those whom a rule forbids count nothing
    table, profiles = problem.table.collect(), problem.profiles
    people = People.of(problem.roles, table, counts, positions=data.positions, design=data.design)
    labeller = choose_labeller(problem.roles, plan.labeller, blind=plan.blind)
    soft = pooled_labels(people, cross_fit(labeller, people)) if learned.soft is None else learned.soft
    soft = _allowed(problem, people, soft)
    fair_table = fair.table.reshape(root_shape(problem.blocks))
    shares, mass, groups = fair_table.sum(axis=0), profiles.mass, profiles.groups
    wanted = np.divide(fair_table, shares, out=np.zeros_like(fair_table), where=shares > 0)
    present = np.flatnonzero((mass > 0) & (shares > 0)[groups])
    if not ((soft[present] > 0) & (wanted.T[groups[present]] > 0)).any(axis=1).all():
        advice = "take them out of the table, or change one of the two"
        both = Option("forbid"), " and ", Option("target")
        raise InfeasibleError(*both, f" together leave no outcome for some rows; {advice}")
    handicap = _handicap(problem, plan.threshold)
    if plan.parity == "probabilities":
        return Labelling(soft, tilt(soft, mass, groups, wanted))
    sizes = tally(groups, mass, len(shares))
    factor = np.divide(shares * sizes.sum(), sizes, out=np.zeros_like(shares), where=sizes > 0)
    wish = Wish(wanted, factor, handicap, partial(_fair_shares, problem), partial(_shortfall, problem))
    if (before := learned.decisions) is not None:
        moved = moved_labels(people, soft, wish, np.array(before.offsets), keeps_means=before.keeps_means)
        return Labelling(soft, moved, before)
    student = choose_labeller(problem.roles, plan.student, blind=plan.blind)
    rehearsals = rehearse(people, labeller, partial(_allowed, problem, people))
    progress("label", 0.5)
    levelled = close_loop(people, soft, rehearsals, student, wish)
    return Labelling(soft, levelled.labels, _decisions(problem, levelled, name_of(student), plan))


def _allowed(problem: Problem, people: People, soft: Reals) -> Reals:
    """Keep soft labels away from zero, but for outcomes that a rule forbids: those are zero."""
    raised = np.maximum(soft, FLOOR)
    codes = people.profiles.labelled()
    for rule in problem.rules:
        raised[rule.breaks(codes).reshape(soft.shape[::-1]).T] = 0.0
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def _handicap(problem: Problem, threshold: float) -> Reals:
    """What the favourable outcome's odds must exceed, as a logarithm, for two outcomes; none for more."""
    outcomes, _ = root_shape(problem.blocks)
    result, favourable = np.zeros(outcomes), problem.measure.favourable
    if threshold == 0.5:
        return result
    if outcomes > 2 or len(favourable) != 1:
        here = f"here {problem.roles.names[0]!r} has {outcomes} levels. Name it with "
        needs = f" needs an outcome of two levels and the favourable one named; {here}", Option("favourable")
        advice = ", or leave the threshold at 0.5, which predicts the likeliest outcome."
        raise InputError(Option("threshold", threshold), *needs, advice)
    result[favourable[0]] = np.log(threshold / (1 - threshold))
    return result


def _shortfall(problem: Problem, decided: Reals, people: Reals) -> Shortfall:
    """How far the statistical rate of decisions is below the wanted one, for the grouping where it is worst."""
    shape = problem.blocks.shape(0)
    worst = Shortfall(0.0, 0.0)
    for grouping, wanted in zip(problem.measure.groupings, problem.statistical, strict=True):
        if wanted is None:
            continue
        compared = problem.measure.outcomes_compared(decided.reshape(shape), grouping)
        if not compared.any():  # nobody is decided for in a way that is compared
            continue
        pair = statistical_pair(compared, grouping, problem.measure.favourable, strata=problem.measure.strata)
        if np.isfinite(pair.rate) and wanted - pair.rate >= worst.value:
            shares = outcome_rates(compared, grouping)[pair.outcome or 0]
            sizes = group_table(people.reshape((1, *shape[1:])), grouping)[0]
            ends = [(shares[group], sizes[group]) for group in (pair.lowest, pair.highest)]
            variance = sum((1 - share + 1 / size) / max(share * size, 0.5) for share, size in ends if size > 0)
            worst = Shortfall(wanted - pair.rate, float(max(pair.rate, 0.05) * np.sqrt(variance)))
    return worst


def _fair_shares(problem: Problem, decided: Reals) -> Reals:
    """Share of each group that should be decided each way, and over all groups as often as it is: the closest table."""
    outcomes, number = decided.shape
    decided = decided / decided.sum()
    used = np.flatnonzero(decided.sum(axis=1) > 0)
    result = np.zeros((outcomes, number))
    if len(used) < 2:  # the same is decided for everybody already
        result[used] = 1.0
        return result
    wanted, rows = problem.wanted(), {int(level): row for row, level in enumerate(used)}
    left_out = {axis: level if axis else rows.get(level) for axis, level in problem.measure.left_out}
    wanted = replace(
        wanted,
        representation=(None,) * len(wanted.groupings),
        favourable=tuple(row for level, row in rows.items() if level in wanted.favourable),
        describe=lambda cell: problem.roles.describe_cell([int(used[cell[0]]), *cell[1:]]),
        left_out={axis: level for axis, level in left_out.items() if level is not None},
        allowed=problem.allowed[used],
    )
    shape = problem.blocks.shape(0)
    closest = problem.closest_to(decided.reshape(shape)[used], wanted, outcome_shares=decided[used].sum(axis=1))
    fair = closest.table.reshape(len(used), number)
    shares = fair.sum(axis=0)
    result[used] = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    return result


def with_labels(problem: Problem, labels: Reals) -> Problem:
    """The problem with every profile once per outcome; what it counts is shared out by its labels."""
    profiles = problem.profiles

    def shared(per_row: Reals) -> Reals:
        return np.asarray((tally(profiles.profile_of_row, per_row, len(labels)) * labels.T).ravel())

    # The parts of a row stay one row: squared weights are shared out like the rest, or rows would seem to be gained.
    rows, squares = shared(problem.table.collect().rows), shared(problem.counted.collect().squares)
    counts = np.asarray((profiles.mass * labels.T).ravel())
    return replace(problem, table=Table(profiles.labelled(), counts, rows, squares))


# ---------------------------------------------------------------- what the student decides, and how certain that is


def _decisions(problem: Problem, levelled: Levelled, student: str, plan: Relabel) -> Decisions:
    """Take the rates of the decisions, and how certain they are."""
    attempt, measure, shape = levelled.attempt, problem.measure, problem.blocks.shape(0)
    weights, squares = (tally(attempt.group, attempt.weight**power, attempt.decided.shape[1]) for power in (1, 2))
    # Of those decided each way: the estimate may differ from what was decided about the people themselves.
    squares = attempt.decided * np.divide(squares, weights, out=np.zeros_like(weights), where=weights > 0)
    tables = [table.reshape(shape) for table in (attempt.decided, squares)]
    rates: list[DecidedRate] = []
    shares: list[DecidedShare] = []
    for name, grouping, wanted in zip(measure.names, measure.groupings, problem.statistical, strict=True):
        weight, squared = (
            group_table(measure.outcomes_compared(table, grouping), grouping).reshape(shape[0], -1) for table in tables
        )
        sizes = np.nan_to_num(effective_rows(weight.sum(axis=0), squared.sum(axis=0)))
        decided = EffectiveCounts.of_rates(outcome_rates(weight, (1,)), sizes)
        rates.append(_decided_rate(problem, name, wanted, decided))
        shares.extend(_decided_shares(problem, name, grouping, decided))
    return Decisions(
        student=student,
        blind=plan.blind,
        threshold=plan.threshold,
        folds=levelled.folds,
        rounds=levelled.rounds,
        keeps_means=attempt.keeps_means,
        rates=tuple(rates),
        shares=tuple(shares),
        offsets=tuple(tuple(row) for row in attempt.offsets.tolist()),
    )


def _decided_rate(problem: Problem, name: str, wanted: float | None, decided: EffectiveCounts) -> DecidedRate:
    """The worst ratio between two groups of a stratum, over the favourable outcomes that anybody is decided for."""
    shares, strata = decided.rates, math.prod(problem.blocks.sizes[index] for index in problem.roles.strata)
    levels = [y for y in problem.measure.favourable if (shares[y] > 0).any()]
    vacuous = not levels or bool(np.nanmin(shares[levels]) >= 1)
    groups = [s + strata * np.flatnonzero(np.isfinite(shares[0, s::strata])) for s in range(strata)]
    compared = [decided[y, of_stratum] for y in levels for of_stratum in groups if len(of_stratum) > 1]
    if not compared:
        return DecidedRate(name, wanted, None, None, None, vacuous)
    rate = min(float(smallest_over_largest(counts.rates)) for counts in compared)
    low, high = widened(ratio_ends([Compared(counts) for counts in compared], _CONFIDENCE), rate)
    return DecidedRate(name, wanted, rate, low, high, vacuous)


def _decided_shares(problem: Problem, name: str, axes: Grouping, decided: EffectiveCounts) -> Iterator[DecidedShare]:
    """The favourable decisions about each group that has people."""
    outcome, shape = problem.roles.attributes[0], [problem.blocks.shape(0)[axis] for axis in axes]
    present = np.flatnonzero(np.isfinite(decided.rates[0]))
    for y in problem.measure.favourable:
        low, high = share_interval(decided[y, present], _CONFIDENCE)
        for number, index in enumerate(present):
            levels = [int(level) for level in np.unravel_index(index, shape)]
            group, about = problem.roles.describe_group(axes, levels), f"{outcome.name} = {outcome.labels[y]}"
            numbers = decided.rates[y, index], low[number], high[number]
            yield DecidedShare(name, group, about, *map(float, numbers))
