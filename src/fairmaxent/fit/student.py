"""The table for a student, from which it learns to decide equally for all groups.

A fair table does not make every model fair, and the one that does is not at parity but
beyond it. `Decisions` say what the model decides then about people it has not learned
from, and how certain that is.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.reading import Reading
from fairmaxent.data.table import (
    Mask,
    Reals,
    Table,
    effective_rows,
    ratio,
    tally,
)
from fairmaxent.errors import InputError, Option
from fairmaxent.facts.models import DecidedRate, DecidedShare, Decisions
from fairmaxent.fairness.rates import Grouping, outcome_rates
from fairmaxent.fit.problem import HALF_A_ROW, Problem
from fairmaxent.fit.request import Request
from fairmaxent.progress import Progress
from fairmaxent.relabelling.closed_loop import Closed, search
from fairmaxent.relabelling.labellers import (
    Classroom,
    Predict,
    ScikitLabeller,
    Trained,
)
from fairmaxent.relabelling.people import Inputs, Lesson, weight_of_rows
from fairmaxent.relabelling.task import FEW, Rows, Task

_ENDS = 0.025, 0.975  # of the intervals
_DRAWS = 4000
# people of a group, decided for as often as others, below which nothing is promised
_DECIDED = 10.0


@dataclass(frozen=True, eq=False)
class Taught:
    """The table t(y, z) that the student needs, and what the student then decides."""

    table: Reals
    decisions: Decisions
    student: Any = None  # as it was trained; None in a fit from a file
    # how the outcomes of profiles are split; None: rows keep theirs
    labels: Reals | None = None


@dataclass(frozen=True)
class Levels:
    """The two outcomes that are decided between, of all that the table has."""

    good: int
    bad: int
    outcomes: int

    @classmethod
    def of(cls, problem: Problem) -> "Levels":
        """Find them, or refuse the table."""
        measure = problem.measure
        outcomes = problem.blocks.shape(0)[0]
        unknown = [level for axis, level in measure.left_out if axis == 0]
        levels = [level for level in range(outcomes) if level not in unknown]
        what = None
        if not problem.roles.attributes[0].is_value_coded:
            what = "values, not of ranges of numbers"
        elif len(levels) != 2:
            what = f"levels, not of {len(levels)}"
        if what is not None:
            raise InputError(Option("model"), f" needs an outcome of two {what}")
        if len(measure.favourable) != 1:
            raise InputError(
                Option("model"),
                " needs to know which outcome is good; name one with ",
                Option("favourable"),
            )
        (good,) = measure.favourable
        (bad,) = (level for level in levels if level != good)
        return cls(
            good=good,
            bad=bad,
            outcomes=outcomes,
        )

    def decided(self, shares: Reals, mass: Reals) -> Reals:
        """Decisions (outcomes × groups), if these shares are decided for."""
        table = np.zeros((self.outcomes, len(mass)))
        table[self.good] = shares * mass
        table[self.bad] = (1 - shares) * mass
        return table


def teach(
    frame: Any,
    data: Reading,
    request: Request,
    progress: Progress,
) -> Taught:
    """Find the table from which the student learns to decide equally."""
    problem = Problem.of(request, data)
    table = data.table
    if not isinstance(table, Table) or not table.keeps_rows:
        raise InputError(
            Option("model"), " needs the table in memory; collect it first"
        )
    levels = Levels.of(problem)
    task, name = _task(frame, data, table, request, problem, levels)
    closed = search(task, lambda share: progress("train", share))
    assert isinstance(closed.student, Trained)

    labels = None
    if closed.way not in ("none", "tilt"):
        labels = _labels(problem, levels, task, closed)
    taught = taught_table(problem, levels, task, closed)
    return Taught(
        table=taught,
        decisions=_decisions(problem, request, task, closed, taught, name),
        student=closed.student.learned.model,
        labels=labels,
    )


# ---------------------------------------------------------------- what is learned


def _task(
    frame: Any,
    data: Reading,
    table: Table,
    request: Request,
    problem: Problem,
    levels: Levels,
) -> tuple[Task, str]:
    """What the student is to learn, from whom, and its name.

    People without weight or a known outcome are left out.
    """
    plan = request.training
    assert plan is not None
    groups = problem.empirical[0].size
    cells = table.codes[table.inverse, 0].astype(np.intp)
    outcome, group = np.divmod(cells, groups)
    counts = problem.counted.collect().counts
    weight = weight_of_rows(table, counts, data.design)
    is_known = np.isin(outcome, (levels.good, levels.bad))
    known = np.flatnonzero(is_known & (weight > 0))
    profile = problem.profiles.profile_of_row[table.inverse]
    inputs = Inputs.of(problem.roles, problem.profiles.codes[profile], data.positions)
    good = outcome[known] == levels.good
    group = group[known]
    weight = weight[known]
    compared = _is_compared(problem)[levels.good].ravel()[group]
    if plan.parity == "opportunity":
        compared &= good

    classroom = Classroom.of(
        frames.open_frame(frame)[known],
        request.outcome_name,
        good,
        plan.estimator,
        hidden=_hidden(request),
        unused=data.left_out,
    )
    fair = problem.fair_table().table.reshape(-1, groups).sum(axis=0)
    before = problem.empirical.reshape(-1, groups).sum(axis=0)
    task = Task(
        good=good,
        group=group,
        profile=profile[known],
        weight=weight,
        compared=compared,
        of_good=plan.parity == "opportunity",
        factor=ratio(fair, before),
        threshold=plan.threshold,
        sees_group=not plan.hide_protected,
        train=classroom.train,
        advise=Adviser(
            ScikitLabeller(problem.roles, None, blind=plan.hide_protected, calm=True),
            inputs.take(known),
        ).train,
        fair_shares=lambda shares: fair_shares(
            problem, levels.decided(shares, task.mass)
        )[levels.good],
        decided=plan.decided,
    )
    return task, classroom.name


def _hidden(request: Request) -> list[str]:
    """The columns, beside the outcome, that the student does not see."""
    assert request.training is not None
    hidden = []
    if request.training.hide_protected:
        hidden += request.protected_names
    if request.weight is not None:
        hidden.append(request.weight)
    return hidden


def _is_compared(problem: Problem) -> Mask:
    """The cells of the table whose group is compared in some grouping."""
    measure = problem.measure
    everywhere = np.ones(problem.empirical.shape)
    compared = [
        measure.groups_compared(everywhere, grouping) for grouping in measure.groupings
    ]
    return np.any(compared, axis=0)


@dataclass(frozen=True, eq=False)
class Adviser:
    """Our own model, which learns from what is in the table."""

    labeller: ScikitLabeller
    inputs: Inputs

    def train(self, rows: Rows, good: Mask, weight: Reals) -> "Advice":
        """Learn who has a label."""
        labels = weight[:, None] * np.column_stack([~good, good])
        lesson = Lesson(self.inputs.take(rows), labels)
        return Advice(self.labeller.learn(lesson), self.inputs)


@dataclass(frozen=True, eq=False)
class Advice:
    """What it has learned."""

    predict: Predict
    inputs: Inputs

    def chances(self, rows: Rows) -> Reals:
        """The chance of the label."""
        return self.predict(self.inputs.take(rows))[:, 1]


def fair_shares(problem: Problem, decided: Reals) -> Reals:
    """Share of each group that should be decided each way: the closest fair table.

    Over all groups, as many are decided for as in the table of decisions.
    """
    outcomes, groups = decided.shape
    decided = decided / decided.sum()
    used = np.flatnonzero(decided.sum(axis=1) > 0)
    result = np.zeros((outcomes, groups))
    if len(used) < 2:  # the same is decided for everybody already
        result[used] = 1.0
        return result

    wanted = problem.wanted()
    favourable = np.flatnonzero(np.isin(used, wanted.favourable))
    wanted = replace(
        wanted,
        representation=(None,) * len(wanted.groupings),
        favourable=tuple(favourable.tolist()),
        describe=lambda cell: problem.roles.describe_cell(
            [int(used[cell[0]]), *cell[1:]]
        ),
        # a decision takes no row, so that cells without any can have some
        fill=HALF_A_ROW / problem.table.size,
        # nobody is decided to have an unknown outcome
        left_out={axis: level for axis, level in problem.measure.left_out if axis},
        allowed=problem.allowed[used],
    )
    closest = problem.closest_to(
        decided.reshape(problem.blocks.shape(0))[used],
        wanted,
        outcome_shares=decided[used].sum(axis=1),
    )
    fair = closest.table.reshape(len(used), groups)
    result[used] = ratio(fair, fair.sum(axis=0))
    return result


# ---------------------------------------------------------------- what is taught


def taught_table(
    problem: Problem,
    levels: Levels,
    task: Task,
    closed: Closed,
) -> Reals:
    """t(y, z): the table that the loop found, with unknown outcomes as they are."""
    known = [levels.bad, levels.good]
    empirical = problem.empirical.reshape(-1, task.groups)
    scale = empirical[known].sum() / task.weight.sum()
    bad = tally(task.group, closed.weight * (1 - closed.good), task.groups)
    good = tally(task.group, closed.weight * closed.good, task.groups)
    table = empirical * task.factor
    table[known] = [scale * bad, scale * good]
    return (table / table.sum()).reshape(problem.empirical.shape)


def _labels(
    problem: Problem,
    levels: Levels,
    task: Task,
    closed: Closed,
) -> Reals:
    """How the outcomes of profiles are split."""
    labels = problem.profiles.counts.copy()
    known = labels[:, levels.good] + labels[:, levels.bad]
    part = tally(task.profile, task.weight * closed.good, len(labels))
    mass = tally(task.profile, task.weight, len(labels))
    labels[:, levels.good] = known * ratio(part, mass)
    labels[:, levels.bad] = known - labels[:, levels.good]
    total = labels.sum(axis=1, keepdims=True)
    np.divide(labels, total, out=labels, where=total > 0)
    return labels


# ---------------------------------------------------------------- what is decided


@dataclass(frozen=True, eq=False)
class Estimates:
    """Shares of the groups of a grouping that are decided for, and how certain."""

    share: Reals  # NaN: nobody is there
    drawn: Reals  # (draws, groups): shares of other people, as far as is known
    promised: Mask  # groups of people enough to promise something

    @classmethod
    def of(
        cls,
        weight: Reals,
        squares: Reals,
        good: int,
        rng: Generator,
    ) -> "Estimates":
        """Draw shares of other people.

        ``weight`` and ``squares`` (outcomes × groups) are how much people count who
        are decided each way, and the squares of that.
        """
        size = np.nan_to_num(effective_rows(weight.sum(axis=0), squares.sum(axis=0)))
        share = outcome_rates(weight, (1,))[good]
        known = np.nan_to_num(share)
        overall = float(weight[good].sum() / weight.sum())
        # Jeffreys' prior
        drawn = rng.beta(
            known * size + 0.5, (1 - known) * size + 0.5, size=(_DRAWS, len(share))
        )
        promised = np.isfinite(share) & (size >= FEW) & (overall * size >= _DECIDED)
        return cls(
            share=share,
            drawn=drawn,
            promised=promised,
        )


def certain_size(closed: Closed) -> Reals:
    """People of each group, as many as would make its share as certain as it is.

    Each counts for less where students decide differently from round to round.
    """
    chance = closed.shares * (1 - closed.shares)
    variance = closed.noise + ratio(chance, closed.size)
    return np.divide(chance, variance, out=closed.size.copy(), where=variance > 0)


def _decisions(
    problem: Problem,
    request: Request,
    task: Task,
    closed: Closed,
    taught: Reals,
    student: str,
) -> Decisions:
    """Take the rates of the decisions, and how certain they are."""
    measure = problem.measure
    decided = Levels.of(problem).decided(closed.shares, task.mass)
    plan = request.training
    assert plan is not None
    size = certain_size(closed)
    squares = ratio(decided * decided.sum(axis=0), size)
    (good,) = measure.favourable
    rng = np.random.default_rng(0)
    rates = []
    shares: list[DecidedShare] = []
    unsure: list[str] = []
    for name, grouping, wanted in zip(
        measure.names, measure.groupings, problem.statistical, strict=True
    ):
        estimates = Estimates.of(
            _by_group(problem, grouping, decided),
            _by_group(problem, grouping, squares),
            good,
            rng,
        )
        of_table = outcome_rates(_by_group(problem, grouping, taught), (1,))[good]
        rates.append(_expected_rate(problem, name, wanted, estimates))
        found = _decided_shares(problem, name, grouping, estimates, of_table)
        shares += found.values()
        unsure += [
            share.group
            for index, share in found.items()
            if not estimates.promised[index]
        ]
    return Decisions(
        student=student,
        hide_protected=plan.hide_protected,
        parity=plan.parity,
        threshold=plan.threshold,
        decided=task.overall(closed.shares),
        before=task.overall(closed.before),
        trainings=math.ceil(closed.trainings),
        way=closed.way,
        rates=tuple(rates),
        shares=tuple(shares),
        unsure=tuple(unsure),
        offsets=tuple(closed.offsets.tolist()),
    )


def _by_group(problem: Problem, grouping: Grouping, table: Reals) -> Reals:
    """A table of outcomes × groups of this grouping, of what is compared."""
    shape = problem.blocks.shape(0)
    having = problem.measure.having(table.reshape(shape), grouping)
    return having.reshape(shape[0], -1)


def _decided_shares(
    problem: Problem,
    name: str,
    grouping: Grouping,
    estimates: Estimates,
    of_table: Reals,
) -> dict[int, DecidedShare]:
    """The share of each group that has people."""
    shape = [problem.blocks.shape(0)[axis] for axis in grouping]
    (good,) = problem.measure.favourable
    low, high = np.quantile(estimates.drawn, _ENDS, axis=0)
    result = {}
    for index in np.flatnonzero(np.isfinite(estimates.share)).tolist():
        levels = [int(level) for level in np.unravel_index(index, shape)]
        share = float(estimates.share[index])
        result[index] = DecidedShare(
            grouping=name,
            group=problem.roles.describe_group(grouping, levels),
            outcome=problem.roles.describe_group((0,), (good,)),
            share=share,
            low=min(float(low[index]), share),
            high=max(float(high[index]), share),
            taught=float(of_table[index]),
        )
    return result


def _expected_rate(
    problem: Problem,
    name: str,
    wanted: float | None,
    estimates: Estimates,
) -> DecidedRate:
    """The worst ratio between two groups of a stratum, as is expected of other people.

    The student was chosen so that the estimated shares are equal. The real ones are
    not, by chance, and of several groups the worst counts: what is expected is below
    the ratio of the estimates.
    """
    strata = [problem.blocks.sizes[index] for index in problem.roles.strata]
    known = estimates.share[estimates.promised]
    rate = DecidedRate(
        grouping=name,
        wanted=wanted,
        rate=None,
        low=None,
        high=None,
        vacuous=not known.size or bool(known.max() <= 0 or known.min() >= 1),
    )
    parts = compared_parts(estimates.promised, int(np.prod(strata)))
    if not parts:
        return rate
    drawn = estimates.drawn
    ratios = [drawn[:, part].min(axis=1) / drawn[:, part].max(axis=1) for part in parts]
    worst = np.min(ratios, axis=0)
    low, high = np.quantile(worst, _ENDS)
    if not any(surely_unequal(estimates, part) for part in parts):
        high = 1.0
    return replace(
        rate,
        rate=float(worst.mean()),
        low=float(low),
        high=float(high),
    )


def compared_parts(promised: Mask, strata: int) -> list[Rows]:
    """The groups of each stratum that are compared, where there are two at least.

    Groups are numbered with the strata last.
    """
    stratum = np.arange(len(promised)) % strata
    parts = [np.flatnonzero(promised & (stratum == number)) for number in range(strata)]
    return [part for part in parts if len(part) > 1]


def surely_unequal(estimates: Estimates, part: Rows) -> bool:
    """Whether the group that seems to be lowest cannot be ahead of the highest."""
    least = part[estimates.share[part].argmin()]
    most = part[estimates.share[part].argmax()]
    if least == most:
        return False
    ratios = estimates.drawn[:, least] / estimates.drawn[:, most]
    return bool(np.quantile(ratios, _ENDS[1]) < 1)
