"""The new rows that are nearest to people, by all columns, by some, and by all but one.

The distance of two rows is Gower's: the sum over the columns of |a − b| / range for numbers and dates, and of 0 or 1
for everything else. A missing value is at distance 0 from another one and 1 from any value.

One pass serves every attack: the distance by all columns but one is the whole distance less that column's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Reals
from fairmaxent.evaluation.pooled import Pooled, PooledColumn, TableName

_WHOLE = 1 << 30  # the largest distance of two rows: whole numbers add up exactly, in any order
_KEPT = 1 << 27  # bytes of distances that are kept for the next person with the same value

Distances = NDArray[np.int32]
Rows = NDArray[np.intp]
Done = Callable[[float], None]  # is told which part of the work is done


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each of some people, the nearest rows among the candidates (by position), and how far the nearest is."""

    distance: Reals  # (people,): by all columns, each of which counts at most 1
    by_parts: Rows  # (people, parts): the nearest by the columns of each part
    by_others: Rows  # (people, columns): the nearest by all columns but this one


class _ColumnDistances:
    """Distances of all candidates from a person by one column; they depend on the person's value only."""

    def __init__(self, column: PooledColumn, candidates: Rows, unit: int, *, keeps: bool) -> None:
        self._codes = column.codes
        self._values = None if column.numbers is None else _scaled(column.numbers, unit)
        self._unit, self._keeps = np.int32(unit), keeps
        self._candidates = (column.codes if self._values is None else self._values)[candidates]
        self._missing = column.codes[candidates] == 0
        self._known: dict[int, Distances] = {}

    def of(self, person: int) -> Distances:
        """The distances from one person."""
        code = int(self._codes[person])
        known = self._known.get(code)
        if known is None:
            known = self._computed(person, code)
            if self._keeps:
                self._known[code] = known
        return known

    def _computed(self, person: int, code: int) -> Distances:
        if self._values is None:
            return np.where(self._candidates != code, self._unit, np.int32(0))
        if code == 0:
            return np.where(self._missing, np.int32(0), self._unit)
        apart: Distances = np.abs(self._candidates - self._values[person])
        apart[self._missing] = self._unit
        return apart


def _scaled(numbers: Reals, unit: int) -> Distances:
    """Numbers between 0 and ``unit``; missing ones are 0."""
    missing = np.isnan(numbers)
    present = numbers[~missing]
    low, span = (present.min(), np.ptp(present)) if len(present) else (0.0, 0.0)
    return np.round(np.where(missing, 0.0, (numbers - low) / (span or 1.0)) * unit).astype(np.int32)


def nearest(
    pooled: Pooled,
    people: Rows,
    candidates: Rows,
    *,
    parts: Sequence[Sequence[int]] = (),
    others: Sequence[int] = (),
    done: Done = lambda share: None,
) -> Nearest:
    """Find the nearest candidates of each person; the first of several that are equally near.

    ``people`` and ``candidates`` are rows of all tables; ``parts`` are sets of columns, ``others`` the columns that are
    left out one at a time.
    """
    unit = _WHOLE // len(pooled.columns)
    columns = _columns(pooled, candidates, unit)
    distance = np.empty(len(people), np.int32)
    by_parts, by_others = (np.empty((len(people), len(of)), np.intp) for of in (parts, others))
    one = np.empty(len(candidates), np.int32)
    for at, person in enumerate(people.tolist()):
        apart = [column.of(person) for column in columns]
        whole = _added(apart)
        distance[at] = whole.min()
        for number, part in enumerate(parts):
            by_parts[at, number] = _added([apart[index] for index in part]).argmin()
        for number, index in enumerate(others):
            by_others[at, number] = np.subtract(whole, apart[index], out=one).argmin()
        if at % 50 == 0:
            done(at / len(people))
    done(1.0)
    return Nearest(distance / unit, by_parts, by_others)


def _columns(pooled: Pooled, candidates: Rows, unit: int) -> list[_ColumnDistances]:
    """The columns; those with the fewest values keep their distances as long as there is room."""
    room, keeping = _KEPT, set()
    for index in sorted(range(len(pooled.columns)), key=lambda index: pooled.columns[index].size):
        room -= pooled.columns[index].size * len(candidates) * 4
        if room >= 0:
            keeping.add(index)
    return [
        _ColumnDistances(column, candidates, unit, keeps=index in keeping)
        for index, column in enumerate(pooled.columns)
    ]


def _added(distances: Sequence[Distances]) -> Distances:
    total = distances[0].copy()
    for one in distances[1:]:
        total += one
    return total


def shuffled(pooled: Pooled, table: TableName, rng: np.random.Generator, most: int | None = None) -> Rows:
    """Rows of a table in random order, at most so many."""
    part = pooled.parts[table]
    return np.asarray(part.start + rng.permutation(part.stop - part.start)[:most])


# ---------------------------------------------------------------- the closest record


WHY_NOT = (
    "Do not rely on this distance: it is an average over the table, so rows can be far from most people and still copy "
    "some of them. It misses leaks that the attacks above find (Yao et al., 2025)."
)


@dataclass(frozen=True)
class ClosestRecord:
    """Median distance of new rows, and of other people, to the closest real row; each column counts at most 1."""

    new: float
    others: float | None
    """Of control rows; None: there are none."""
    why_not: str = WHY_NOT


def closest_record(
    pooled: Pooled, rows: int, *, rng: np.random.Generator, done: Done = lambda share: None
) -> ClosestRecord:
    """Measure the distances of so many rows of either kind."""
    real = shuffled(pooled, "real", rng)
    new = nearest(pooled, shuffled(pooled, "new", rng, rows), real, done=lambda share: done(share / 2))
    others = None
    if "control" in pooled.parts:
        people = shuffled(pooled, "control", rng, rows)
        near = nearest(pooled, people, real, done=lambda share: done((1 + share) / 2))
        others = float(np.median(near.distance))
    return ClosestRecord(float(np.median(new.distance)), others)
