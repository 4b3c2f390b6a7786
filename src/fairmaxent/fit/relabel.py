"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a model trained on the result still
predicts the old outcome. Relabelling keeps p(x, z) and moves the outcome, so that such a model learns the fair one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Counted, Table, tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.fair_table import FairTable
from fairmaxent.fairness.rates import group_table, outcome_rates, statistical_pair
from fairmaxent.fit.decisions import Decisions, decisions_of
from fairmaxent.fit.problem import HALF_A_ROW, Problem
from fairmaxent.fit.request import Relabel, Request
from fairmaxent.maxent.priors.bases import reachable_roots
from fairmaxent.progress import Progress
from fairmaxent.relabelling.closed_loop import Shortfall, Wish, close_loop, moved_labels, rehearse
from fairmaxent.relabelling.labellers import choose_labeller, cross_fit, name_of
from fairmaxent.relabelling.people import People
from fairmaxent.relabelling.pooling import pooled_labels
from fairmaxent.relabelling.profiles import Profiles, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, Labels, tilt


@dataclass(frozen=True, eq=False)
class Labelled:
    """The fair table t(y, z), and the problem with its rows relabelled, if that was asked for."""

    fair: FairTable
    problem: Problem
    soft: Reals | None = None  # π(y | x, z); None: rows keep their outcome
    decisions: Decisions | None = None  # None: decisions were not asked for


@dataclass(frozen=True, eq=False)
class Known:
    """What an earlier fit learned of the same rows, or, apart from labels, of a table that they are a part of."""

    soft: Reals | None = None  # π(y | x, z)
    labels: Reals | None = None  # g(y | x, z)
    decisions: Decisions | None = None  # of the same student: labels are moved as they were for it


def relabelled_if_asked(
    problem: Problem, request: Request, data: Reading, known: Known, progress: Progress
) -> Labelled:
    """Relabel the rows of a problem, if that is asked for."""
    plan = request.relabelling
    if plan is None:
        return Labelled(problem.fair_table(may_fill=request.base_share > 0), problem)
    fair = problem.relabelled_table()
    check_in_memory(Option("relabel"), problem.table)
    progress("label", 0.0)
    if known.soft is not None and known.labels is not None:
        return _labelled(problem, fair, known.soft, known.labels, known.decisions)
    people, soft = everybody(problem, data), known.soft
    if soft is None:
        labeller = choose_labeller(problem.roles, plan.labeller, blind=plan.blind)
        soft = pooled_labels(people, cross_fit(labeller, people))
    return relabel(problem, fair, plan, people, _allowed(problem, people, soft), known.decisions, progress)


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        raise InputError(
            option,
            " needs the distinct rows in memory, but they are on the workers of a cluster; compute() the frame first, "
            "or close the client",
        )


def _allowed(problem: Problem, people: People, soft: Reals) -> Reals:
    """Keep soft labels away from zero, but for outcomes that a rule forbids: those are zero."""
    raised = np.maximum(soft, FLOOR)
    codes = people.profiles.labelled()
    for rule in problem.rules:
        raised[rule.breaks(codes).reshape(soft.shape[::-1]).T] = 0.0
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def everybody(problem: Problem, data: Reading) -> People:
    """The people of the data; those whom a rule forbids count nothing."""
    counts = problem.counted.collect().counts
    return People.of(problem.roles, problem.table.collect(), counts, positions=data.positions, design=data.design)


def relabel(
    problem: Problem,
    fair: FairTable,
    plan: Relabel,
    people: People,
    soft: Reals,
    decisions: Decisions | None,
    progress: Progress,
) -> Labelled:
    """Return the problem with every profile once per outcome, counting n(x, z)·g(y | x, z).

    Each profile is as common as it was. e(y | z) is t(y | z) exactly, unless equal decisions take other means.
    """
    profiles = Profiles.of(problem.table.collect(), problem.blocks, problem.counted.collect().counts)
    table = fair.table.reshape(root_shape(problem.blocks))
    shares = table.sum(axis=0)
    wanted = np.divide(table, shares, out=np.zeros_like(table), where=shares > 0)
    mass, groups = profiles.mass, profiles.groups
    present = np.flatnonzero((mass > 0) & (shares > 0)[groups])
    _refuse_lost_rows(soft[present], wanted[:, groups[present]])
    handicap = _handicap(problem, plan.threshold)
    if plan.parity == "probabilities":
        return _labelled(problem, fair, soft, tilt(soft, mass, groups, wanted))
    sizes = tally(groups, mass, len(shares))
    factor = np.divide(shares * sizes.sum(), sizes, out=np.zeros_like(shares), where=sizes > 0)
    wish = Wish(wanted, factor, handicap, partial(_fair_shares, problem), partial(_shortfall, problem))
    if decisions is not None:
        labels = moved_labels(people, soft, wish, np.array(decisions.offsets), keeps_means=decisions.keeps_means)
        return _labelled(problem, fair, soft, labels, decisions)
    labeller = choose_labeller(problem.roles, plan.labeller, blind=plan.blind)
    student = choose_labeller(problem.roles, plan.student, blind=plan.blind)
    rehearsals = rehearse(people, labeller, partial(_allowed, problem, people))
    progress("label", 0.5)
    levelled = close_loop(people, soft, rehearsals, student, wish)
    decisions = decisions_of(problem, levelled, name_of(student), threshold=plan.threshold, blind=plan.blind)
    return _labelled(problem, fair, soft, levelled.labels, decisions)


def _labelled(
    problem: Problem, fair: FairTable, soft: Reals, labels: Reals, decisions: Decisions | None = None
) -> Labelled:
    """Put labels on the rows; if they do not keep the fair means, the fair table is the one that they have."""
    profiles = Profiles.of(problem.table.collect(), problem.blocks, problem.counted.collect().counts)
    if decisions is not None and not decisions.keeps_means:
        fair = replace(fair, table=_reached(fair.table, labels, profiles.mass, profiles.groups))
    return Labelled(fair, replace(problem, table=_labelled_table(problem, profiles, labels)), soft, decisions)


def _reached(fair: Reals, labels: Reals, mass: Reals, groups: Labels) -> Reals:
    """The fair table with the group shares that it has, and in each group the mean of the labels."""
    outcomes = labels.shape[1]
    table = fair.reshape(outcomes, -1)
    means = np.stack([tally(groups, mass * labels[:, y], table.shape[1]) for y in range(outcomes)])
    total = means.sum(axis=0)
    means = np.divide(means * table.sum(axis=0), total, out=table.copy(), where=total > 0)
    return np.asarray(means.reshape(fair.shape))


def _refuse_lost_rows(soft: Reals, wanted: Reals) -> None:
    """Refuse rules and targets that leave no outcome for a profile."""
    if not ((soft > 0) & (wanted.T > 0)).any(axis=1).all():
        raise InfeasibleError(
            Option("forbid"),
            " and ",
            Option("target"),
            " together leave no outcome for some rows; take them out of the table, or change one of the two",
        )


def _handicap(problem: Problem, threshold: float) -> Reals:
    """What the favourable outcome's odds must exceed, as a logarithm, for two outcomes; none for more."""
    outcomes, _ = root_shape(problem.blocks)
    result = np.zeros(outcomes)
    if threshold == 0.5:
        return result
    favourable = problem.measure.favourable
    if outcomes > 2 or len(favourable) != 1:
        raise InputError(
            Option("threshold", threshold),
            f" needs an outcome of two levels and the favourable one named; here {problem.roles.names[0]!r} has "
            f"{outcomes} levels. Name it with ",
            Option("favourable"),
            ", or leave the threshold at 0.5, which predicts the likeliest outcome.",
        )
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
    """Share of each group that should be decided each way: the fair table that is closest to the decisions made.

    Each outcome is decided for as often as it is, over all groups together.
    """
    outcomes, number = decided.shape
    decided = decided / decided.sum()
    made = np.flatnonzero(decided.sum(axis=1) > 0)
    result = np.zeros((outcomes, number))
    if len(made) < 2:  # the same is decided for everybody already
        result[made] = 1.0
        return result
    shape, rows = problem.blocks.shape(0), {int(level): row for row, level in enumerate(made)}
    left_out = {axis: level if axis else rows.get(level) for axis, level in problem.measure.left_out}
    fair = problem.closest_to(
        decided.reshape(shape)[made],
        {
            "groupings": problem.groupings,
            "representation": (None,) * len(problem.groupings),
            "statistical": problem.statistical,
            "favourable": tuple(row for level, row in rows.items() if level in problem.measure.favourable),
            "left_out": {axis: level for axis, level in left_out.items() if level is not None},
            "allowed": reachable_roots(problem.blocks, problem.rules).reshape(shape)[made],
            "fill": HALF_A_ROW / problem.table.size,
            "describe": lambda cell: problem.roles.describe_cell([int(made[cell[0]]), *cell[1:]]),
        },
        outcome_shares=decided[made].sum(axis=1),
    ).table.reshape(len(made), number)
    shares = fair.sum(axis=0)
    result[made] = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    return result


def _labelled_table(problem: Problem, profiles: Profiles, labels: Reals) -> Table:
    """Every profile once per outcome; what it counts is shared out by its labels."""

    def shared(per_row: Reals) -> Reals:
        return np.asarray((tally(profiles.profile_of_row, per_row, len(labels)) * labels.T).ravel())

    # The parts of a row stay one row: squared weights are shared out like the rest, or rows would seem to be gained.
    return Table(
        codes=profiles.labelled(),
        counts=np.asarray((profiles.mass * labels.T).ravel()),
        rows=shared(problem.table.collect().rows),
        squares=shared(problem.counted.collect().squares),
    )
