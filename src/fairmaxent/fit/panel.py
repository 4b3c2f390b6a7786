"""Panel: the people of a table whom an estimate is made from, and parts of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Reals
from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Table
from fairmaxent.errors import InputError, Option
from fairmaxent.relabelling.people import People

_STREAM = 4_201_955  # draws of our own: data that were simulated with a plain seed do not share them


def panel(data: Reading, most: int) -> Reading:
    """Everybody or, of more than ``most`` people, that many with the same shares of outcomes and groups.

    Each person has a row of their own, even if an engine counted the rows.
    """
    table = data.table.collect()
    rng = np.random.default_rng([_STREAM, 0])
    if table.keeps_rows:
        rows = np.arange(len(table.inverse))
        if len(rows) <= most:
            return data
        order = np.lexsort((rng.permutation(len(rows)), table.codes[table.inverse, 0]))
        return some_rows(data, np.sort(order[_steps(len(rows), most, rng)]))
    people = np.cumsum(np.round(table.rows).astype(np.int64))  # distinct rows are sorted by outcome and group
    total = int(people[-1])
    steps = np.arange(total) if total <= most else _steps(total, most, rng)
    distinct = np.searchsorted(people, steps, side="right")
    weights = None if data.weight_column is None else (table.counts / np.maximum(table.rows, 1.0))[distinct]
    return _of(replace(data, positions=None), table, distinct, weights)


def some_rows(data: Reading, rows: NDArray[np.intp]) -> Reading:
    """The people in these rows of a reading that keeps them."""
    table = data.table.collect()
    positions = None if data.positions is None else {index: column[rows] for index, column in data.positions.items()}
    weights = None if data.design is None else data.design[rows]
    return _of(replace(data, positions=positions), table, table.inverse[rows], weights)


def fold_of_each(people: People, folds: int, *, seed: int) -> NDArray[np.intp]:
    """Deal people to folds like cards, at random within each group and outcome.

    Equal rows are not spread evenly over the folds: a model would then learn from as many of each kind as it is asked
    about, and seem to know people whom it has not seen.
    """
    if len(people.size) < 2 * folds:
        raise InputError(
            f"{len(people.size)} rows are too few to learn from in {folds} folds; use ", Option("estimate", None)
        )
    shuffled = np.random.default_rng([_STREAM, seed]).permutation(len(people.size))
    order = np.lexsort((shuffled, people.outcome, people.group))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % folds
    return fold


def _of(data: Reading, table: Table, distinct: NDArray[np.intp], weights: Reals | None) -> Reading:
    codes = np.asfortranarray(table.codes[distinct])
    return replace(data, table=Table.compress(codes, data.roles.blocks.levels, weights), design=weights)


def _steps(total: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """One position from each of ``most`` equal steps."""
    return np.asarray(((np.arange(most) + rng.random(most)) * (total / most)).astype(np.intp))
