"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a model trained on the result still
predicts the old outcome. Relabelling keeps p(x, z) and moves the outcome, so that such a model learns the fair one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.reading import Reading
from fairmaxent.data.table import Counted, Table, tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.fair_table import FairTable, fair_table
from fairmaxent.fit.problem import HALF_A_ROW, Problem
from fairmaxent.fit.request import Relabel, Request
from fairmaxent.maxent.priors.bases import reachable_roots
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import choose_labeller, cross_fit
from fairmaxent.relabelling.people import People
from fairmaxent.relabelling.pooling import pooled_labels
from fairmaxent.relabelling.profiles import Profiles, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, Labels, decisions_of, match_decisions, tilt


def relabelled_if_asked(
    problem: Problem, request: Request, data: Reading, soft: Reals | None, progress: Progress
) -> tuple[FairTable, Problem, Reals | None]:
    """Return the fair table t(y, z), the problem with its rows relabelled if asked for, and the soft labels.

    ``soft`` are the soft labels of the same rows, if an earlier fit learned them.
    """
    plan = request.relabelling
    if plan is None:
        return problem.fair_table(may_fill=request.base_share > 0), problem, None
    fair = problem.relabelled_table()
    check_in_memory(Option("relabel"), problem.table)
    progress("label", 0.0)
    soft = soft_labels(problem, plan, data, soft)
    return fair, relabel(problem, fair.table, plan, soft), soft


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        raise InputError(
            option,
            " needs the distinct rows in memory, but they are on the workers of a cluster; compute() the frame first, "
            "or close the client",
        )


def soft_labels(problem: Problem, plan: Relabel, data: Reading, known: Reals | None = None) -> Reals:
    """π(y | x, z) of the profiles of a problem: known already, or cross-fitted; zero only where a rule forbids it."""
    people = everybody(problem, data)
    if known is None:
        labeller = choose_labeller(problem.roles, plan.labeller, blind=plan.blind)
        soft = pooled_labels(people, cross_fit(labeller, people))
    else:
        soft = known
    raised = np.maximum(soft, FLOOR)
    codes = people.profiles.labelled()
    for rule in problem.rules:
        raised[rule.breaks(codes).reshape(soft.shape[::-1]).T] = 0.0
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def everybody(problem: Problem, data: Reading) -> People:
    """The people of the data; those whom a rule forbids count nothing."""
    counts = problem.counted.collect().counts
    return People.of(problem.roles, problem.table.collect(), counts, positions=data.positions, design=data.design)


def relabel(problem: Problem, fair: Reals, plan: Relabel, soft: Reals) -> Problem:
    """Return the problem with every profile once per outcome, counting n(x, z)·g(y | x, z).

    ``fair`` is the fair table t(y, z). Then e(y | z) is t(y | z) exactly, and each profile is as common as it was.
    """
    blocks = problem.blocks
    profiles = Profiles.of(problem.table.collect(), blocks, problem.counted.collect().counts)
    handicap = _handicap(problem, plan.threshold)
    fair = fair.reshape(root_shape(blocks))
    shares = fair.sum(axis=0)
    wanted = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    mass, groups = profiles.mass, profiles.groups
    people = np.flatnonzero((mass > 0) & (shares > 0)[groups])
    _refuse_lost_rows(soft[people], wanted[:, groups[people]])
    labels = tilt(soft, mass, groups, wanted)
    if plan.parity == "predictions":
        decided = _decided_shares(problem, labels, mass, groups, handicap)
        labels = match_decisions(soft, mass, groups, wanted, decided, handicap=handicap)
    return replace(problem, table=_labelled_table(problem, profiles, labels))


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


def _decided_shares(problem: Problem, labels: Reals, mass: Reals, groups: Labels, handicap: Reals) -> Reals:
    """Share of each group that should be decided each way: the fair table of the decisions that the labels lead to.

    Taken after means were made fair, these are shares that the soft labels come to by themselves on average.
    """
    outcomes, number = root_shape(problem.blocks)
    cells = decisions_of(labels, handicap) * number + groups
    decided = tally(cells, mass / mass.sum(), outcomes * number)
    made = np.flatnonzero(decided.reshape(outcomes, number).sum(axis=1) > 0)
    result = np.zeros((outcomes, number))
    if len(made) < 2:  # the same is decided for everybody already
        result[made] = 1.0
        return result
    shape = problem.blocks.shape(0)
    fair = fair_table(
        decided.reshape(shape)[made],
        groupings=problem.measure.groupings,
        representation=(None,) * len(problem.measure.groupings),
        statistical=problem.statistical,
        favourable=tuple(row for row, level in enumerate(made) if level in problem.measure.favourable),
        allowed=reachable_roots(problem.blocks, problem.rules).reshape(shape)[made],
        fill=HALF_A_ROW / problem.table.size,
        describe=lambda cell: problem.roles.describe_cell([int(made[cell[0]]), *cell[1:]]),
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
