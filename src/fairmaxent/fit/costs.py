"""Measuring what the fair table costs each group: see `facts.costs`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from fairmaxent.data.table import (
    Axes,
    Reals,
    Spread,
    ratio,
    tally,
)
from fairmaxent.engines.rows import RowWeights, row_prior, row_spread, tilted_rows
from fairmaxent.facts.costs import ChangedOutcome, Costs, GroupCost
from fairmaxent.fairness.rates import group_shares, group_table
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.target import asked_of_rows
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.optimum import default_solver
from fairmaxent.maxent.priors.protocol import Tilted
from fairmaxent.maxent.priors.rows import TiltedRows
from fairmaxent.maxent.search import Status
from fairmaxent.plain_text import Values
from fairmaxent.relabelling.people import root_shape

# cells whose largest weights differ by less, relatively, count equally much
_TIE = 1e-9


def measure_costs(solved: Solved, *, filled: bool) -> Costs:
    """Take the costs from the fair weights and the fitted distribution.

    ``filled``: it needs cells that no row has.
    """
    problem = solved.problem
    table = solved.root_table
    drawn = tilted_rows(solved.distribution.tilted)
    fair = _fair_weights(solved, drawn, filled=filled)
    size = float(problem.table.size)
    cells, groups = (spread.scaled(size) for spread in _spreads(solved, fair))
    # Copies are expected draws of an input row itself; a row from the base that happens
    # to equal it comes on top. Input rows that are equal share their copies.
    share, tilted = drawn or (0.0, fair)
    cell_copies, group_copies = (
        spread.scaled(size * share) for spread in _spreads(solved, tilted)
    )
    # The cell in which one person counts most: the first of ties, whatever the last
    # digits say.
    ties = cells.largest >= cells.largest.max() * (1 - _TIE)
    worst = tuple(
        int(level) for level in np.unravel_index(int(np.argmax(ties)), table.shape)
    )
    changed: tuple[ChangedOutcome, ...] = ()
    if solved.soft is not None:
        changed = tuple(_changed(problem, fair, solved.design_weights))
    everybody = groups.over(tuple(range(groups.total.ndim)))
    return Costs(
        groups=tuple(_group_costs(problem, table, groups, group_copies)),
        worst_cell=_cost(
            problem.roles.grouping_name(range(table.ndim)),
            problem.roles.describe_cell(worst),
            worst,
            rows=problem.cells("rows"),
            before=problem.data_table,
            after=table,
            effective_rows=cells.effective_rows,
            most_weight=cells.largest,
            most_copies=cell_copies.largest,
        ),
        effective_rows=float(everybody.effective_rows),
        changed=changed,
    )


def _fair_weights(
    solved: Solved, drawn: tuple[float, RowWeights] | None, *, filled: bool
) -> Tilted:
    """The fair distribution on the rows alone (C = 0), as weights deliver it.

    If they cannot, it is that of the drawn rows.
    """
    if drawn is not None and drawn[0] == 1.0:  # C = 0 already
        return drawn[1]

    problem = solved.problem
    blocks = solved.blocks
    rows = drawn[1].rows if drawn else row_prior(blocks, solved.weighted)
    # The rows as they are weighted meet the target, unless shares of other columns are
    # asked for or cells are filled.
    others = not problem.chosen.keys() <= set(problem.roles.root)
    # unlike `rows_alone`, it does not look for why there is no solution, which takes
    # minutes
    if others and not filled:
        features, levels = asked_of_rows(problem, solved.weighted, solved.target)
        dual = Dual(rows, features, features.mean(levels))
        solution = default_solver(dual).solve(dual)
        if solution.status is Status.CONVERGED:
            return rows.tilt(features.potentials(solution.multipliers))
    if drawn is not None and (others or filled):
        return drawn[1]

    return rows.tilt(np.zeros(blocks.width))


def _spreads(solved: Solved, tilted: Tilted) -> tuple[Spread, Spread]:
    """How weights spread over people: in each cell (y, z), and in each group z."""
    problem = solved.problem
    shape = solved.root_table.shape
    if solved.weighed is not None:
        spread = solved.weighed.spread
        return spread, spread.over((0,))
    if solved.soft is None:
        cells = row_spread(problem.table, tilted).shaped(shape)
        return cells, cells.over((0,))

    parts = _by_outcome(problem, tilted)
    rows = problem.counted.collect()
    _, groups = root_shape(problem.blocks)
    people = replace(rows, codes=rows.codes[:, :1] % groups)
    by_outcome = [Spread.of(people, part, groups) for part in parts]
    whole = Spread.of(people, parts.sum(axis=0), groups)
    return Spread.stacked(by_outcome).shaped(shape), whole.shaped(shape[1:])


def _by_outcome(problem: Problem, tilted: Tilted) -> Reals:
    """(outcomes, distinct rows): the weights of relabelled people; the sum is one."""
    profiles = problem.profiles
    assert isinstance(tilted, TiltedRows)  # relabelled rows are in memory
    return (
        profiles.by_row(tilted.on(profiles.labelled())).T
        * problem.counted.collect().counts
    )


def _changed(
    problem: Problem, tilted: Tilted, design: Reals | None
) -> Iterator[ChangedOutcome]:
    """Count the people whose outcome changes, in each group and each direction."""
    weights = _by_outcome(problem, tilted)
    table = problem.table.collect()
    profiles = problem.profiles
    rows = table.rows
    total = weights.sum(axis=0)
    # people whose design weight is zero do not count
    if design is not None and table.keeps_rows:
        rows = tally(table.inverse, (design > 0).astype(float), table.distinct)
    new = ratio(weights * rows, total)
    outcomes, groups = root_shape(problem.blocks)
    # Axes: group, recorded outcome, new outcome.
    moved = np.zeros((groups, outcomes, outcomes))
    np.add.at(
        moved, (profiles.groups[profiles.profile_of_row], profiles.outcomes), new.T
    )
    moved = moved.reshape(*problem.blocks.shape(0)[1:], outcomes, outcomes)
    names = problem.roles.attributes[0].labels
    for columns, axes in problem.measure.named_groupings:
        others = [axis - 1 for axis in range(1, moved.ndim - 1) if axis not in axes]
        by_group = moved.sum(axis=tuple(others))
        for group in np.ndindex(by_group.shape[:-2]):
            name = problem.roles.describe_group(axes, group)
            people = round(float(by_group[group].sum()))
            if not people:
                continue
            for old, other in permutations(range(outcomes), 2):
                yield ChangedOutcome(
                    grouping=columns,
                    group=name,
                    people=people,
                    old=names[old],
                    new=names[other],
                    changed=float(by_group[group][old, other]),
                )


def _group_costs(
    problem: Problem,
    fair: Reals,
    weights: Spread,
    copies: Spread,
) -> Iterator[GroupCost]:
    """The groups of each grouping that have rows or a share."""
    rows = problem.cells("rows")
    for columns, axes in problem.measure.of_first_outcome:
        # groups have no outcome
        merged = tuple(axis - 1 for axis in range(1, fair.ndim) if axis not in axes)
        own = weights.over(merged)
        measured = {
            "rows": group_table(rows, axes).sum(axis=0),
            "before": group_shares(problem.data_table, axes),
            "after": group_shares(fair, axes),
            "effective_rows": own.effective_rows,
            "most_weight": own.largest,
            "most_copies": copies.over(merged).largest,
        }
        targeted = any(axis in problem.root_targets for axis in axes)
        present = (measured["rows"] > 0) | (measured["after"] > 0)
        for group in map(tuple, np.argwhere(present).tolist()):
            name = problem.roles.describe_group(axes, group)
            cost = _cost(columns, name, group, **measured)
            compared = problem.measure.is_compared(axes, group)
            yield replace(cost, targeted=targeted, compared=compared)


def _cost(columns: str, name: str, group: Axes, **measured: Reals) -> GroupCost:
    """The numbers of one group of a grouping, or one cell, from arrays of them all."""
    rows = measured.pop("rows")
    own: Values = {key: float(values[group]) for key, values in measured.items()}
    return GroupCost(grouping=columns, name=name, rows=round(rows[group]), **own)
