"""Costs: what the fair table costs each group, in the numbers that a group-by on the delivered rows or weights gives.

The weight of an input row is 1 on average. In a relabelled fit a row is split between outcomes, and its weight is the
sum of its parts: one person stays one person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.table import Reals, Spread, Table, highest, tally
from fairmaxent.engines.rows import RowWeights, row_prior, row_spread, tilted_rows
from fairmaxent.fairness.rates import group_shares, group_table
from fairmaxent.fit.distribution import asked_of_rows
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.solved import Solved
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.optimum import default_solver
from fairmaxent.maxent.priors.protocol import Tilted
from fairmaxent.maxent.priors.rows import TiltedRows
from fairmaxent.maxent.solvers import Status
from fairmaxent.relabelling.people import Profiles, root_shape

FEWEST_ROWS = 30  # effective rows that a group should rest on
MOST_TIMES = 20  # how many times a person may count
_TIE = 1e-9  # cells whose largest weights differ by less, relatively, count equally much


@dataclass(frozen=True)
class GroupCost:
    """What one group, or one cell of outcome and groups, rests on."""

    grouping: str  # its columns
    name: str
    rows: int  # of the data
    before: float  # its share of the data
    after: float  # its share of the fair distribution
    effective_rows: float  # how many equally weighted rows carry as much information as its fair weights
    most_weight: float  # the largest fair weight of one input row; 1 is the average of all rows
    most_copies: float  # of one input row, expected among as many drawn rows as the data have; see `measure_costs`
    targeted: bool = False  # whether its share follows from shares that the user named
    compared: bool = True  # whether its rates are; missing values mostly are not

    @property
    def times(self) -> float:
        """How many times one person counts, in weights or in drawn rows, whichever is more."""
        return max(self.most_weight, self.most_copies)

    @property
    def grows(self) -> bool:
        """Whether its share does."""
        return self.after > self.before * (1 + 1e-6)

    @property
    def beyond_line(self) -> bool:
        """Whether the group rests on too few people, or one of them counts too often."""
        few = self.compared and self.effective_rows < FEWEST_ROWS
        return self.after > 0 and (few or self.times > MOST_TIMES)


@dataclass(frozen=True)
class ChangedOutcome:
    """How many people of a group get another outcome than the recorded one, in one direction.

    A relabelled person has each outcome with a probability: their fair weight for it divided by their whole weight.
    ``changed`` is the sum of these over the people recorded with the outcome ``old``: the expected number.
    """

    grouping: str
    group: str
    people: int  # in the group, whatever their outcome
    old: str
    new: str
    changed: float


@dataclass(frozen=True)
class Costs:
    """What each group rests on, and the cell in which one person counts most."""

    groups: tuple[GroupCost, ...]
    worst_cell: GroupCost
    effective_rows: float  # of all rows together
    changed: tuple[ChangedOutcome, ...] = ()  # none: every row keeps its outcome


def measure_costs(solved: Solved, *, filled: bool) -> Costs:
    """Take the costs from the fair weights and from the fitted distribution.

    Copies are expected draws of an input row itself; a row from the base that happens to equal it comes on top. Input
    rows that are equal share their copies. ``filled`` says whether the fair table needs cells that no row has.
    """
    problem, distribution = solved.problem, solved.distribution
    drawn = tilted_rows(distribution.tilted)
    fair = _fair_weights(solved, drawn, filled=filled)
    people = None if solved.soft is None else _People.of(problem)
    size = float(problem.table.size)
    weights = _spreads(problem, fair, people).scaled(size)
    copies = weights.scaled(0.0) if drawn is None else _spreads(problem, drawn[1], people).scaled(size * drawn[0])
    every_axis = tuple(range(weights.groups.total.ndim))
    return Costs(
        groups=tuple(_group_costs(problem, distribution.root_table, weights, copies)),
        worst_cell=_worst_cell(problem, distribution.root_table, weights, copies),
        effective_rows=float(weights.groups.over(every_axis).effective_rows),
        changed=() if people is None else people.changed(problem, fair, solved.design_weights),
    )


def _fair_weights(solved: Solved, drawn: tuple[float, RowWeights] | None, *, filled: bool) -> Tilted:
    """The fair distribution on the rows alone (C = 0), as weights deliver it; if they cannot, the rows that are drawn.

    The rows as they are weighted meet the target, unless shares of other columns are asked for or cells are filled.
    """
    if drawn is not None and drawn[0] == 1.0:  # C = 0 already
        return drawn[1]
    problem, weighted = solved.problem, solved.weighted
    rows = row_prior(problem.blocks, weighted) if drawn is None else drawn[1].rows
    if not filled and problem.chosen.keys() <= set(problem.roles.root):
        return rows.tilt(np.zeros(problem.blocks.width))
    features, levels = asked_of_rows(problem, weighted, solved.target)
    dual = Dual(rows, features, features.mean(levels))
    solution = None if filled else default_solver(dual).solve(dual)
    if solution is not None and solution.status is Status.CONVERGED:
        return rows.tilt(features.potentials(solution.multipliers))
    return rows.tilt(np.zeros(problem.blocks.width)) if drawn is None else drawn[1]


@dataclass(frozen=True, eq=False)
class _Spreads:
    """How weights spread over people: in each cell (y, z) and in each group z, one axis per column."""

    cells: Spread
    groups: Spread

    def scaled(self, factor: float) -> _Spreads:
        return _Spreads(self.cells.scaled(factor), self.groups.scaled(factor))


def _spreads(problem: Problem, tilted: Tilted, people: _People | None) -> _Spreads:
    shape = problem.blocks.shape(0)
    if people is None:
        cells = row_spread(problem.table, tilted).shaped(shape)
        return _Spreads(cells, cells.over((0,)))
    parts = people.weights(tilted)
    _, groups = root_shape(problem.blocks)
    by_outcome = [Spread.of(people.table, part, groups) for part in parts]
    whole = Spread.of(people.table, np.asarray(parts.sum(axis=0)), groups)
    return _Spreads(Spread.stacked(by_outcome).shaped(shape), whole.shaped(shape[1:]))


@dataclass(frozen=True, eq=False)
class _People:
    """The people behind relabelled rows: profiles, which share the weights of each outcome."""

    profiles: Profiles
    table: Table  # the profiles as distinct rows, in which forbidden people count zero

    @classmethod
    def of(cls, problem: Problem) -> _People:
        counted = problem.counted.collect()
        profiles = Profiles.of(problem.table.collect(), problem.blocks, counted.counts)
        profile, size = profiles.profile_of_row, len(profiles.codes)
        kept = counted.counts > 0
        table = Table(
            codes=profiles.codes,
            counts=profiles.mass,
            rows=tally(profile, np.where(kept, counted.rows, 0.0), size),
            squares=tally(profile, counted.squares, size),
            peaks=highest(profile, np.where(kept, counted.largest, 0.0), size),
        )
        return cls(profiles, table)

    def weights(self, tilted: Tilted) -> Reals:
        """(outcomes, profiles): the weight of each profile with each outcome; the sum is one."""
        if not isinstance(tilted, TiltedRows):
            raise TypeError("relabelled rows are in memory")
        return tilted.on(self.profiles.labelled()).reshape(-1, len(self.profiles.codes))

    def changed(self, problem: Problem, tilted: Tilted, design: Reals | None) -> tuple[ChangedOutcome, ...]:
        """Count the people whose outcome changes, in each group and each direction."""
        weights = self.weights(tilted)
        total = weights.sum(axis=0)
        labels = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        outcomes, groups = root_shape(problem.blocks)
        recorded = self._recorded(problem, design) * (total > 0)[:, np.newaxis]
        moved = np.zeros((groups, outcomes, outcomes))  # by group, recorded outcome and new one
        np.add.at(moved, self.profiles.groups, recorded[:, :, np.newaxis] * labels.T[:, np.newaxis, :])
        return tuple(_changes(problem, moved.reshape(*problem.blocks.shape(0)[1:], outcomes, outcomes)))

    def _recorded(self, problem: Problem, design: Reals | None) -> Reals:
        """(profiles, outcomes): how many people that count have each recorded outcome."""
        table, counted = problem.table.collect(), problem.counted.collect()
        rows = table.rows
        if design is not None and table.keeps_rows:  # people whose design weight is zero do not count
            rows = tally(table.inverse, (design > 0).astype(float), table.distinct)
        cells = self.profiles.profile_of_row * self.profiles.counts.shape[1] + self.profiles.outcomes
        people = tally(cells, np.where(counted.counts > 0, rows, 0.0), self.profiles.counts.size)
        return people.reshape(self.profiles.counts.shape)


def _changes(problem: Problem, moved: Reals) -> Iterator[ChangedOutcome]:
    """Name the groups and directions; the last two axes are the recorded and the new outcome."""
    labels = problem.roles.attributes[0].labels
    directions = [(old, new) for old, new in np.ndindex(len(labels), len(labels)) if old != new]
    for axes, columns in zip(problem.measure.groupings, problem.measure.names, strict=True):
        others = tuple(axis - 1 for axis in range(1, moved.ndim - 1) if axis not in axes)
        by_group = moved.sum(axis=others)
        for group in np.ndindex(by_group.shape[:-2]):
            name, people = problem.roles.describe_group(axes, group), round(float(by_group[group].sum()))
            for old, new in directions if people else ():
                changed = float(by_group[group][old, new])
                yield ChangedOutcome(columns, name, people, labels[old], labels[new], changed)


# ---------------------------------------------------------------- groups and cells


def _group_costs(problem: Problem, fair: Reals, weights: _Spreads, copies: _Spreads) -> Iterator[GroupCost]:
    """The groups of each grouping that have rows or a share."""
    rows = row_counts(problem)
    for columns, axes in problem.measure.of_first_outcome:
        merged = tuple(axis - 1 for axis in range(1, fair.ndim) if axis not in axes)  # groups have no outcome
        measured = {
            "rows": group_table(rows, axes).sum(axis=0),
            "before": group_shares(problem.data_table, axes),
            "after": group_shares(fair, axes),
            **_of_people(weights.groups.over(merged), copies.groups.over(merged)),
        }
        targeted = any(axis in problem.root_targets for axis in axes)
        for group in map(tuple, np.argwhere((measured["rows"] > 0) | (measured["after"] > 0)).tolist()):
            name, compared = problem.roles.describe_group(axes, group), problem.measure.is_compared(axes, group)
            yield _cost(columns, name, group, measured, targeted=targeted, compared=compared)


def _worst_cell(problem: Problem, fair: Reals, weights: _Spreads, copies: _Spreads) -> GroupCost:
    """The cell of outcome and protected columns in which one person counts most."""
    shares = {"rows": row_counts(problem), "before": problem.data_table, "after": fair}
    largest = weights.cells.largest
    ties = largest >= largest.max() * (1 - _TIE)  # the first of them, whatever the last digits say
    cell = tuple(int(level) for level in np.unravel_index(int(np.argmax(ties)), fair.shape))
    columns, name = problem.roles.grouping_name(range(fair.ndim)), problem.roles.describe_cell(cell)
    return _cost(columns, name, cell, shares | _of_people(weights.cells, copies.cells))


def _of_people(weights: Spread, copies: Spread) -> dict[str, Reals]:
    return {
        "effective_rows": weights.effective_rows,
        "most_weight": weights.largest,
        "most_copies": copies.largest,
    }


def _cost(columns: str, name: str, cell: tuple[int, ...], measured: Mapping[str, Reals], **flags: bool) -> GroupCost:
    numbers: dict[str, Any] = {what: float(values[cell]) for what, values in measured.items()}
    return GroupCost(columns, name, **numbers | {"rows": int(numbers["rows"])}, **flags)


def row_counts(problem: Problem) -> Reals:
    """How many rows of the data each cell of outcome and protected columns has."""
    (rows,) = problem.table.tables([(0,)], problem.blocks.levels, of="rows")
    return rows.reshape(problem.blocks.shape(0))
