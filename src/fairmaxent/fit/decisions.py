"""Decisions: what the student of a closed loop decides about people it has not learned from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.fairness.measure import Measure
from fairmaxent.fairness.rates import first_largest, first_smallest, group_table, outcome_rates, smallest_over_largest
from fairmaxent.fit.problem import Problem
from fairmaxent.relabelling.closed_loop import Levelled

_DRAWS = 4000
_ENDS = (0.025, 0.975)


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


def decisions_of(problem: Problem, levelled: Levelled, student: str, *, threshold: float, blind: bool) -> Decisions:
    """Take the rates of the decisions, and how certain they are."""
    attempt, measure, shape = levelled.attempt, problem.measure, problem.blocks.shape(0)
    weights, squares = (tally(attempt.group, attempt.weight**power, attempt.decided.shape[1]) for power in (1, 2))
    # Of those decided each way: the estimate may differ from what was decided about the people themselves.
    squares = attempt.decided * np.divide(squares, weights, out=np.zeros_like(weights), where=weights > 0)
    tables = [table.reshape(shape) for table in (attempt.decided, squares)]
    rates, shares = [], []
    for name, grouping, wanted in zip(measure.names, measure.groupings, problem.statistical, strict=True):
        decided = _Decided.of(*(group_table(measure.outcomes_compared(table, grouping), grouping) for table in tables))
        rates.append(_rate(name, wanted, decided, measure, strata=math.prod(shape[len(shape) - measure.strata :])))
        shares += _shares(problem, name, grouping, decided)
    return Decisions(
        student=student,
        blind=blind,
        threshold=threshold,
        folds=levelled.folds,
        rounds=levelled.rounds,
        keeps_means=attempt.keeps_means,
        rates=tuple(rates),
        shares=tuple(shares),
        offsets=tuple(tuple(row) for row in attempt.offsets.tolist()),
    )


@dataclass(frozen=True, eq=False)
class _Decided:
    """Shares decided each way in each group (outcomes × groups), and draws of what they might be (Jeffreys)."""

    shares: Reals
    draws: Reals  # (draws, outcomes, groups)

    @classmethod
    def of(cls, weight: Reals, squares: Reals) -> _Decided:
        weight, squares = (table.reshape(len(table), -1) for table in (weight, squares))
        shares = outcome_rates(weight, (1,))
        total = weight.sum(axis=0)
        people = np.divide(total**2, squares.sum(axis=0), out=np.zeros_like(total), where=total > 0)
        counts = np.nan_to_num(shares) * people
        draws = np.random.default_rng(0).beta(counts + 0.5, people - counts + 0.5, (_DRAWS, *counts.shape))
        return cls(shares, np.where(np.isnan(shares), np.nan, draws))


def _rate(name: str, wanted: float | None, decided: _Decided, measure: Measure, *, strata: int) -> DecidedRate:
    """The worst ratio over favourable outcomes and strata; its interval is that of the two groups that determine it."""
    levels = [y for y in measure.favourable if (decided.shares[y] > 0).any()]
    vacuous = not levels or bool(np.nanmin(decided.shares[levels]) >= 1)
    compared = np.flatnonzero(np.isfinite(decided.shares[0].reshape(-1, strata)).sum(axis=0) > 1)
    if not levels or not len(compared):
        return DecidedRate(name, wanted, None, None, None, vacuous)
    groups = {(y, s): decided.shares[y, s::strata] for y in levels for s in compared}
    worst, stratum = list(groups)[first_smallest([float(smallest_over_largest(group)) for group in groups.values()])]
    shares = groups[worst, stratum]
    lowest, highest = (end * strata + stratum for end in (first_smallest(shares), first_largest(shares)))
    low, high = np.quantile(decided.draws[:, worst, lowest] / decided.draws[:, worst, highest], _ENDS)
    rate = float(smallest_over_largest(shares))
    if lowest == highest:  # all shares are equal
        low, high = rate, 1.0
    return DecidedRate(name, wanted, rate, min(float(low), rate), max(min(float(high), 1.0), rate), vacuous)


def _shares(problem: Problem, name: str, grouping: tuple[int, ...], decided: _Decided) -> list[DecidedShare]:
    """The favourable decisions about each group that has people."""
    outcome, shape = problem.roles.attributes[0], problem.blocks.shape(0)
    low, high = np.quantile(decided.draws, _ENDS, axis=0)
    groups = np.argwhere(np.ones([shape[axis] for axis in grouping]))
    return [
        DecidedShare(
            grouping=name,
            group=problem.roles.describe_group(grouping, groups[index].tolist()),
            outcome=f"{outcome.name} = {outcome.labels[y]}",
            share=float(decided.shares[y, index]),
            low=float(min(low[y, index], decided.shares[y, index])),
            high=float(max(high[y, index], decided.shares[y, index])),
        )
        for y in problem.measure.favourable
        for index in np.flatnonzero(np.isfinite(decided.shares[y]))
    ]
