"""Relabelling: change which outcome rows have, rather than how much they count.

Reweighing keeps p(x | y, z) and moves the mass of the cells; if x predicts y well, a
model trained on the result still predicts the old outcome. Relabelling keeps p(x, z)
and moves the outcome, so that such a model learns the fair one.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.reading import Reading
from fairmaxent.data.table import Counted, Reals, Table, ratio, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.fairness.fair_table import FairTable
from fairmaxent.fit.option_values import Model
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.fit.student import Taught
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import LOGISTIC, choose_labeller, cross_fit
from fairmaxent.relabelling.people import People, pooled_labels, root_shape
from fairmaxent.relabelling.soft_labels import FLOOR, tilt


@dataclass(frozen=True, eq=False)
class Labelling:
    """How the outcomes of profiles are split.

    A refit is given what the fit before it has learned of that.
    """

    soft: Reals | None = None  # π(y | x, z); None: rows keep their outcome
    labels: Reals | None = None  # g(y | x, z)
    # the table that a student needs; None: none is asked for
    taught: Taught | None = None


def relabelled(
    problem: Problem,
    request: Request,
    data: Reading,
    learned: Labelling,
    progress: Progress,
) -> tuple[FairTable, Problem, Labelling]:
    """Make the fair table t(y, z), and relabel the rows if that is asked for.

    Every relabelled profile is there once per outcome, and as common as it was; e(y |
    z) is t(y | z) exactly. A student may need another table.
    """
    fair = problem.fair_table()
    taught = learned.taught
    if taught is not None:
        labels = taught.labels
        if labels is not None:
            problem = with_labels(problem, labels)
        table = replace(fair, table=taught.table)  # in the place of the fair one
        return table, problem, Labelling(labels, labels, taught)

    plan = request.relabelling
    if plan is None:
        return fair, problem, Labelling()

    check_in_memory(Option("model"), problem.table)
    progress("label", 0.0)
    soft = learned.soft
    if soft is None:
        soft = _soft_labels(problem, plan, data)
    labels = learned.labels
    if labels is None:
        raised = np.maximum(soft, FLOOR)
        soft = raised / raised.sum(axis=1, keepdims=True)
        labels = _fair_labels(problem, fair, soft)
    return fair, with_labels(problem, labels), Labelling(soft, labels)


def check_in_memory(option: Option, table: Counted) -> None:
    """Refuse rows that are on the workers of a cluster."""
    if not isinstance(table, Table):
        raise InputError(
            option,
            " needs the distinct rows in memory, but they are on the workers of a"
            " cluster; compute() the frame first, or close the client",
        )


def _soft_labels(problem: Problem, plan: Model, data: Reading) -> Reals:
    """π(y | x, z): what the named model predicts for people it has not seen."""
    people = People.of(
        problem.roles,
        problem.table.collect(),
        problem.counted.collect().counts,
        positions=data.positions,
        design=data.design,
    )
    labeller = choose_labeller(problem.roles, plan.estimator or LOGISTIC)
    return pooled_labels(people, cross_fit(labeller, people))


def _fair_labels(problem: Problem, fair: FairTable, soft: Reals) -> Reals:
    """g(y | x, z): soft labels moved until their mean in each group is t(y | z)."""
    table = fair.table.reshape(root_shape(problem.blocks))
    sizes = table.sum(axis=0)  # t(z)
    wanted = ratio(table, sizes)
    profiles = problem.profiles
    return tilt(soft, profiles.mass, profiles.groups, wanted)


def with_labels(problem: Problem, labels: Reals) -> Problem:
    """The problem with every profile once per outcome, counting by its labels."""
    profiles = problem.profiles

    def shared(per_row: Reals) -> Reals:
        per_profile = tally(profiles.profile_of_row, per_row, len(labels))
        return (per_profile * labels.T).ravel()

    # The parts of a row stay one row: squared weights are shared out like the rest, or
    # rows would seem to be gained.
    rows = shared(problem.table.collect().rows)
    squares = shared(problem.counted.collect().squares)
    counts = (profiles.mass * labels.T).ravel()
    return replace(problem, table=Table(profiles.labelled(), counts, rows, squares))
