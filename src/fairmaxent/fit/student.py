"""The table for a student: one from which the model that somebody trains learns to
decide equally for all groups.

A fair table does not make every model fair, and the one that does is not at parity but
beyond it. `Decisions` say what the model decides then about people it has not learned
from, and how certain that is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Mask, Reals, Table, effective_rows, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.fairness.rates import group_table, outcome_rates
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.progress import Progress
from fairmaxent.relabelling.closed_loop import Closed, search
from fairmaxent.relabelling.labellers import Classroom, ScikitLabeller, Trained
from fairmaxent.relabelling.lessons import Way
from fairmaxent.relabelling.people import Inputs, Lesson
from fairmaxent.relabelling.task import FEW, Task

_ENDS = 0.025, 0.975  # of the intervals
_DRAWS = 4000
# people of a group, decided for as often as others, below which nothing is promised for
# it
_DECIDED = 10.0


@dataclass(frozen=True)
class DecidedShare:
    """The share of a group that was decided for, with a 95 % interval."""

    grouping: str
    group: str
    outcome: str
    share: float
    low: float
    high: float
    # the share that has the good outcome in the table that it learned from
    taught: float


@dataclass(frozen=True)
class DecidedRate:
    """The rate of the decisions for a grouping that is expected of other people, with a
    95 % interval.

    None: there is nothing to compare.
    """

    grouping: str
    wanted: float | None
    rate: float | None
    low: float | None
    high: float | None
    vacuous: bool  # the same was decided for everybody, so the rate says nothing


@dataclass(frozen=True)
class Decisions:
    """What a student decides about people it has not learned from; see
    `closed_loop`.
    """

    student: str
    sees_protected: bool
    # "decisions": about everybody; "opportunity": about those whose outcome is good
    parity: str
    threshold: float
    decided: float  # share of those people whom it decides for
    trainings: int
    way: Way
    rates: tuple[DecidedRate, ...]
    shares: tuple[DecidedShare, ...]
    unsure: tuple[str, ...]  # groups of too few people to promise anything
    offsets: tuple[float, ...]  # λ of each group


@dataclass(frozen=True, eq=False)
class Taught:
    """The table t(y, z) that the student needs, what it decides, and the trained
    student; None in a fit from a file.
    """

    table: Reals
    decisions: Decisions
    student: Any = None
    # how the outcomes of profiles are split; None: rows keep theirs
    labels: Reals | None = None


def teach(frame: Any, data: Reading, request: Request, progress: Progress) -> Taught:
    """Find the table from which the student learns to decide equally."""
    problem = Problem.of(request, data)
    task, student = _task(frame, data, request, problem)
    closed = search(task, lambda share: progress("train", share))
    assert isinstance(closed.student, Trained)
    good, bad = _levels(problem)
    empirical = problem.empirical.reshape(-1, task.groups)
    parts = closed.weight * (1 - closed.good), closed.weight * closed.good
    tilted = empirical * task.factor
    scale = empirical[[bad, good]].sum() / task.weight.sum()
    tilted[[bad, good]] = [
        scale * tally(task.group, part, task.groups) for part in parts
    ]
    labels = None
    if closed.way not in ("none", "tilt"):
        labels = _labels(problem, task, closed, good, bad)
    taught = np.asarray(tilted / tilted.sum()).reshape(problem.empirical.shape)
    decided = _decided(closed.shares, task.mass, good, bad, len(empirical))
    decisions = _decisions(problem, request, closed, decided, taught, student)
    return Taught(taught, decisions, closed.student.model, labels)


def _task(
    frame: Any, data: Reading, request: Request, problem: Problem
) -> tuple[Task, str]:
    """What the student is to learn, from whom, and its name; people without weight or a
    known outcome are left out.
    """
    plan = request.training
    table = data.table
    assert plan is not None
    if not isinstance(table, Table) or not table.keeps_rows:
        raise InputError(
            Option("model"), " needs the table in memory; collect it first"
        )
    good, bad = _levels(problem)
    outcomes = len(problem.empirical)
    groups = problem.empirical[0].size
    outcome, group = (
        part[table.inverse].astype(np.intp)
        for part in np.divmod(table.codes[:, 0], groups)
    )
    counts = problem.counted.collect().counts
    share = np.divide(
        counts, table.counts, out=np.zeros_like(counts), where=table.counts > 0
    )
    weight = share[table.inverse] * (1.0 if data.design is None else data.design)
    known = np.flatnonzero(np.isin(outcome, (good, bad)) & (weight > 0))
    is_good = outcome[known] == good
    group = group[known]
    if plan.sees_protected:
        hidden = []
    else:
        hidden = request.protected_names
    if request.weight is not None:
        hidden += [request.weight]
    profile = problem.profiles.profile_of_row[table.inverse[known]]
    positions = data.positions
    own = None
    if positions is not None:
        own = {index: place[known] for index, place in positions.items()}
    inputs = Inputs.of(problem.roles, problem.profiles.codes[profile], own)
    teacher = ScikitLabeller(
        problem.roles, None, blind=not plan.sees_protected, calm=True
    )

    def foretell(
        labels: NDArray[np.intp], rows: NDArray[np.intp], asked: NDArray[np.intp]
    ) -> Reals:
        weights = weight[known[rows], None] * np.eye(labels.max() + 1)[labels[rows]]
        return teacher.learn(Lesson(inputs.take(rows), weights))(inputs.take(asked))

    whom = frames.open_frame(frame)[known], request.outcome, is_good, plan.estimator
    classroom = Classroom.of(*whom, hidden=hidden, unused=data.left_out)
    everywhere = np.ones(problem.empirical.shape)
    measure = problem.measure
    inside = np.any(
        [
            measure.groups_compared(everywhere, grouping)
            for grouping in measure.groupings
        ],
        axis=0,
    )
    compared = inside[good].ravel()[group]
    fair, before = (
        own.reshape(outcomes, groups).sum(axis=0)
        for own in (problem.fair_table().table, problem.empirical)
    )
    task = Task(
        good=is_good,
        group=group,
        profile=profile,
        weight=weight[known],
        compared=compared & is_good if plan.parity == "opportunity" else compared,
        factor=np.divide(fair, before, out=np.zeros(groups), where=before > 0),
        threshold=plan.threshold,
        sees_group=plan.sees_protected,
        train=classroom.train,
        foretell=foretell,
        fair_shares=lambda shares: fair_shares(
            problem, _decided(shares, task.mass, good, bad, outcomes)
        )[good],
        decided=plan.decided,
    )
    return task, classroom.name


def _labels(problem: Problem, task: Task, closed: Closed, good: int, bad: int) -> Reals:
    """How the outcomes of profiles are split."""
    labels = problem.profiles.counts.copy()
    part, mass = (
        tally(task.profile, own, len(labels))
        for own in (task.weight * closed.good, task.weight)
    )
    known = labels[:, good] + labels[:, bad]
    labels[:, good] = known * np.divide(
        part, mass, out=np.zeros_like(part), where=mass > 0
    )
    labels[:, bad] = known - labels[:, good]
    total = labels.sum(axis=1, keepdims=True)
    return np.asarray(
        np.divide(labels, total, out=np.zeros_like(labels), where=total > 0)
    )


def _levels(problem: Problem) -> tuple[int, int]:
    """The good outcome, and the other one."""
    unknown = [level for axis, level in problem.measure.left_out if axis == 0]
    levels = [
        level for level in range(problem.blocks.shape(0)[0]) if level not in unknown
    ]
    favourable = problem.measure.favourable
    coded = problem.roles.attributes[0].is_value_coded
    if len(levels) != 2 or not coded:
        if coded:
            what = f"levels, not of {len(levels)}"
        else:
            what = "values, not of ranges of numbers"
        raise InputError(Option("model"), f" needs an outcome of two {what}")
    if len(favourable) != 1:
        raise InputError(
            Option("model"),
            " needs to know which outcome is good; name one with ",
            Option("favourable"),
        )
    return favourable[0], next(level for level in levels if level != favourable[0])


def _decided(shares: Reals, mass: Reals, good: int, bad: int, outcomes: int) -> Reals:
    """The table of decisions (outcomes × groups)."""
    table = np.zeros((outcomes, len(mass)))
    table[good], table[bad] = shares * mass, (1 - shares) * mass
    return table


def fair_shares(problem: Problem, decided: Reals) -> Reals:
    """Share of each group that should be decided each way, and over all groups as often
    as it is: the closest table.
    """
    outcomes, number = decided.shape
    decided = decided / decided.sum()
    used = np.flatnonzero(decided.sum(axis=1) > 0)
    result = np.zeros((outcomes, number))
    if len(used) < 2:  # the same is decided for everybody already
        result[used] = 1.0
        return result
    wanted = problem.wanted()
    rows = {int(level): row for row, level in enumerate(used)}
    left_out = {
        axis: level if axis else rows.get(level)
        for axis, level in problem.measure.left_out
    }
    wanted = replace(
        wanted,
        representation=(None,) * len(wanted.groupings),
        favourable=tuple(
            row for level, row in rows.items() if level in wanted.favourable
        ),
        describe=lambda cell: problem.roles.describe_cell(
            [int(used[cell[0]]), *cell[1:]]
        ),
        left_out={axis: level for axis, level in left_out.items() if level is not None},
        allowed=problem.allowed[used],
    )
    shape = problem.blocks.shape(0)
    closest = problem.closest_to(
        decided.reshape(shape)[used], wanted, outcome_shares=decided[used].sum(axis=1)
    )
    fair = closest.table.reshape(len(used), number)
    shares = fair.sum(axis=0)
    result[used] = np.divide(fair, shares, out=np.zeros_like(fair), where=shares > 0)
    return result


# ---------------------------------------------------------------- what the student
# decides, and how certain that is


def _decisions(
    problem: Problem,
    request: Request,
    closed: Closed,
    decided: Reals,
    taught: Reals,
    student: str,
) -> Decisions:
    """Take the rates of the decisions, and how certain they are."""
    measure = problem.measure
    shape = problem.blocks.shape(0)
    plan = request.training
    assert plan is not None
    # A person counts for less where students decide differently from round to round.
    chance = closed.shares * (1 - closed.shares)
    total = (
        np.divide(chance, closed.size, out=np.zeros_like(chance), where=closed.size > 0)
        + closed.noise
    )
    size = np.divide(chance, total, out=closed.size.copy(), where=total > 0)
    squares = np.divide(
        decided * decided.sum(axis=0), size, out=np.zeros_like(decided), where=size > 0
    )
    tables = [table.reshape(shape) for table in (decided, squares, taught)]
    rates = []
    shares = []
    unsure = []
    (good,), outcome, rng = (
        measure.favourable,
        problem.roles.attributes[0],
        np.random.default_rng(0),
    )
    for name, grouping, wanted in zip(
        measure.names, measure.groupings, problem.statistical, strict=True
    ):
        weight, squared, own = (
            group_table(measure.outcomes_compared(table, grouping), grouping).reshape(
                shape[0], -1
            )
            for table in tables
        )
        sizes = np.nan_to_num(effective_rows(weight.sum(axis=0), squared.sum(axis=0)))
        share, of_table = (outcome_rates(table, (1,))[good] for table in (weight, own))
        present = np.isfinite(share)
        overall = float(weight[good].sum() / weight.sum())
        promised = present & (sizes >= FEW) & (overall * sizes >= _DECIDED)
        ends = (
            np.nan_to_num(share) * sizes + 0.5,
            (1 - np.nan_to_num(share)) * sizes + 0.5,
        )
        # the shares of other people, as far as is known
        drawn = rng.beta(*ends, size=(_DRAWS, len(share)))
        rates.append(_expected_rate(problem, name, wanted, drawn, share, promised))
        low, high = np.quantile(drawn, _ENDS, axis=0)
        for index in np.flatnonzero(present):
            levels = [
                int(level)
                for level in np.unravel_index(index, [shape[axis] for axis in grouping])
            ]
            whom = (
                problem.roles.describe_group(grouping, levels),
                f"{outcome.name} = {outcome.labels[good]}",
            )
            numbers = (
                share[index],
                min(low[index], share[index]),
                max(high[index], share[index]),
                of_table[index],
            )
            shares.append(DecidedShare(name, *whom, *map(float, numbers)))
            if not promised[index]:
                unsure += [whom[0]]
    return Decisions(
        student=student,
        sees_protected=plan.sees_protected,
        parity=plan.parity,
        threshold=plan.threshold,
        decided=float(decided[good].sum() / decided.sum()),
        trainings=closed.trainings,
        way=closed.way,
        rates=tuple(rates),
        shares=tuple(shares),
        unsure=tuple(unsure),
        offsets=tuple(closed.offsets.tolist()),
    )


def _expected_rate(
    problem: Problem,
    name: str,
    wanted: float | None,
    drawn: Reals,
    share: Reals,
    promised: Mask,
) -> DecidedRate:
    """The worst ratio between two groups of a stratum, on average over what the shares
    of other people may be.

    The student was chosen so that the estimated shares are equal. The real ones are
    not, by chance, and of several groups the worst counts: what is expected is below
    the ratio of the estimates.
    """
    known = share[promised]
    strata = int(
        np.prod([problem.blocks.sizes[index] for index in problem.roles.strata])
    )
    vacuous = not known.size or bool(known.max() <= 0 or known.min() >= 1)
    stratum = np.arange(len(share)) % strata
    parts = [np.flatnonzero(promised & (stratum == number)) for number in range(strata)]
    parts = [part for part in parts if len(part) > 1]
    if not parts:
        return DecidedRate(name, wanted, None, None, None, vacuous)
    worst = np.min(
        [drawn[:, part].min(axis=1) / drawn[:, part].max(axis=1) for part in parts],
        axis=0,
    )
    # All may be equal, if the group that seems to be lowest may be ahead of the one
    # that seems to be highest.
    ends = [(part[share[part].argmin()], part[share[part].argmax()]) for part in parts]
    surely = any(
        np.quantile(drawn[:, least] / drawn[:, most], _ENDS[1]) < 1
        for least, most in ends
        if least != most
    )
    if surely:
        low, high = np.quantile(worst, _ENDS)
    else:
        low = np.quantile(worst, _ENDS[0])
        high = 1.0
    return DecidedRate(
        name, wanted, float(worst.mean()), float(low), float(high), vacuous
    )
