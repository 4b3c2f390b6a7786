"""Conditions: wishes about a table, as linear conditions on a vector of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Mask, Reals
from fairmaxent.fairness.projection import Conditions
from fairmaxent.fairness.rates import Grouping
from fairmaxent.fairness.wishes import Cells


@dataclass(frozen=True, eq=False)
class Row:
    """The mass of some cells, or their sum with positive weights, is `value` > 0."""

    cells: Mask | Reals
    value: float


@dataclass(frozen=True, eq=False)
class Block:
    """Numbers, linear in the cells, of which the smallest must be at least `least` times the largest."""

    rates: Reals  # one row per number
    least: float


def members(cells: Cells, axes: Grouping, group: Cells, first: int = 0) -> Mask:
    """Which cells belong to a group; ``cells`` name the levels of the axes from ``first`` on."""
    return np.asarray((cells[:, [axis - first for axis in axes]] == group).all(axis=1))


def conditions_of(cells: int, rows: list[Row], blocks: list[Block]) -> Conditions:
    """Write all conditions as one record; each row is divided by its value, so that errors are relative."""
    sizes = [len(block.rates) for block in blocks]
    matrix = np.array([row.cells / row.value for row in rows], dtype=float).reshape(len(rows), cells)
    return Conditions(
        matrix,
        np.ones(len(rows)),
        np.vstack([np.zeros((0, cells)), *(block.rates for block in blocks)]),
        np.repeat(np.arange(len(blocks)), sizes),
        np.repeat(np.array([block.least for block in blocks], dtype=float), sizes),
    )
