"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a
model trained on the result still predicts the old outcome. Relabelling keeps p(x, z)
and moves the outcome, so that such a model learns the fair one.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.reading import Reading
from fairmaxent.data.table import Counted, Reals, Table, tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.fairness.fair_table import FairTable
from fairmaxent.fit.option_values import Relabel
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.student import Taught
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import choose_labeller, cross_fit
from fairmaxent.relabelling.people import People, pooled_labels, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, tilt


@dataclass(frozen=True, eq=False)
class Labelling:
    """How the outcomes of profiles are split, or what an earlier fit of the same rows
    learned of that.
    """

    soft: Reals | None = None  # π(y | x, z); None: rows keep their outcome
    labels: Reals | None = None  # g(y | x, z)
    # the table that a student needs; None: none is asked for
    taught: Taught | None = None


NO_LABELS = Labelling()


def relabelled_if_asked(
    problem: Problem,
    request: Request,
    data: Reading,
    learned: Labelling,
    progress: Progress,
) -> tuple[FairTable, Problem, Labelling]:
    """Make the fair table t(y, z), and relabel the rows if that is asked for: every
    profile once per outcome.
    """
    # Each profile is as common as it was, and e(y | z) is t(y | z) exactly. A student
    # may need another table.
    plan = request.relabelling
    fair = problem.fair_table()
    if (taught := learned.taught) is not None:
        if taught.labels is None:
            labelled = problem
        else:
            labelled = with_labels(problem, taught.labels)
        return (
            replace(fair, table=taught.table),
            labelled,
            replace(learned, soft=taught.labels, labels=taught.labels),
        )
    if plan is None:
        return fair, problem, NO_LABELS
    check_in_memory(Option("relabel"), problem.table)
    progress("label", 0.0)
    if learned.labels is not None:
        labelling = learned
    else:
        labelling = _learn(problem, fair, plan, data, learned)
    assert labelling.labels is not None
    return fair, with_labels(problem, labelling.labels), labelling


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        where = (
            "on the workers of a cluster; compute() the frame first, or close the"
            " client"
        )
        raise InputError(
            option, f" needs the distinct rows in memory, but they are {where}"
        )


def _learn(
    problem: Problem, fair: FairTable, plan: Relabel, data: Reading, learned: Labelling
) -> Labelling:
    """Learn soft labels, unless they are known, and move them until they are fair."""
    counts = problem.counted.collect().counts  # those whom a rule forbids count nothing
    table = problem.table.collect()
    profiles = problem.profiles
    people = People.of(
        problem.roles, table, counts, positions=data.positions, design=data.design
    )
    labeller = choose_labeller(problem.roles, plan.labeller)
    if learned.soft is None:
        soft = pooled_labels(people, cross_fit(labeller, people))
    else:
        soft = learned.soft
    soft = _allowed(problem, people, soft)
    fair_table = fair.table.reshape(root_shape(problem.blocks))
    shares = fair_table.sum(axis=0)
    mass = profiles.mass
    groups = profiles.groups
    wanted = np.divide(
        fair_table, shares, out=np.zeros_like(fair_table), where=shares > 0
    )
    present = np.flatnonzero((mass > 0) & (shares > 0)[groups])
    if not ((soft[present] > 0) & (wanted.T[groups[present]] > 0)).any(axis=1).all():
        advice = "take them out of the table, or change one of the two"
        both = Option("forbid"), " and ", Option("target")
        raise InfeasibleError(
            *both, f" together leave no outcome for some rows; {advice}"
        )
    return Labelling(soft, tilt(soft, mass, groups, wanted))


def _allowed(problem: Problem, people: People, soft: Reals) -> Reals:
    """Keep soft labels away from zero, but for outcomes that a rule forbids: those are
    zero.
    """
    raised = np.maximum(soft, FLOOR)
    codes = people.profiles.labelled()
    for rule in problem.rules:
        raised[rule.breaks(codes).reshape(soft.shape[::-1]).T] = 0.0
    return np.asarray(raised / np.maximum(raised.sum(axis=1, keepdims=True), FLOOR))


def with_labels(problem: Problem, labels: Reals) -> Problem:
    """The problem with every profile once per outcome; what it counts is shared out by
    its labels.
    """
    profiles = problem.profiles

    def shared(per_row: Reals) -> Reals:
        return np.asarray(
            (tally(profiles.profile_of_row, per_row, len(labels)) * labels.T).ravel()
        )

    # The parts of a row stay one row: squared weights are shared out like the rest, or
    # rows would seem to be gained.
    rows = shared(problem.table.collect().rows)
    squares = shared(problem.counted.collect().squares)
    counts = np.asarray((profiles.mass * labels.T).ravel())
    return replace(problem, table=Table(profiles.labelled(), counts, rows, squares))
