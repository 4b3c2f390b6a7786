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

from fairmaxent.data.arrays import Reals
from fairmaxent.evaluation.pooled import Pooled, PooledColumn, TableName

_AT_ONCE = 1 << 18  # distances in memory at a time, for each sum that is kept
_WHOLE = 1 << 30  # the largest distance of two rows: whole numbers add up exactly, in any order

Distances = NDArray[np.int32]
Rows = NDArray[np.intp]
Done = Callable[[float], None]  # is told which part of the work is done


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each of some people, the nearest rows among the candidates (by position), and how far the nearest is."""

    distance: Reals  # (people,): by all columns, each of which counts at most 1
    by_parts: Rows  # (people, parts): the nearest by the columns of each part
    by_others: Rows  # (people, columns): the nearest by all columns but this one


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A column as distances need it: numbers between 0 and ``unit``, or codes."""

    values: Distances
    unit: int  # the largest distance
    is_number: bool
    missing: NDArray[np.bool_] | None  # of a column of numbers, if any is

    @classmethod
    def of(cls, column: PooledColumn, unit: int) -> _Scaled:
        if column.numbers is None:
            return cls(column.codes.astype(np.int32), unit, is_number=False, missing=None)
        missing = np.isnan(column.numbers)
        present = column.numbers[~missing]
        low, span = (present.min(), np.ptp(present)) if len(present) else (0.0, 0.0)
        scaled = np.where(missing, 0.0, (column.numbers - low) / (span or 1.0)) * unit
        return cls(np.round(scaled).astype(np.int32), unit, is_number=True, missing=missing if missing.any() else None)

    def apart(self, people: Rows, candidates: Rows, out: Distances) -> Distances:
        """Distances of people (rows) and candidates (columns) by this column, written to ``out``."""
        first, second = self.values[people][:, None], self.values[candidates][None, :]
        if not self.is_number:
            np.multiply(first != second, np.int32(self.unit), out=out)
            return out
        np.subtract(first, second, out=out)
        np.abs(out, out=out)
        if self.missing is not None:
            out[self.missing[people][:, None] != self.missing[candidates][None, :]] = self.unit
        return out


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
    columns = [_Scaled.of(column, unit) for column in pooled.columns]
    step = max(1, _AT_ONCE // len(candidates))
    results = []
    for start in range(0, len(people), step):
        results.append(_nearest(columns, people[start : start + step], candidates, parts, others))
        done(min(1.0, (start + step) / len(people)))
    distances, by_parts, by_others = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
    return Nearest(distances / unit, by_parts, by_others)


def _nearest(
    columns: Sequence[_Scaled],
    people: Rows,
    candidates: Rows,
    parts: Sequence[Sequence[int]],
    others: Sequence[int],
) -> tuple[Distances, Rows, Rows]:
    shape = (len(people), len(candidates))
    whole, one = np.zeros(shape, np.int32), np.empty(shape, np.int32)
    sums = [np.zeros(shape, np.int32) for _ in parts]
    for index, column in enumerate(columns):
        column.apart(people, candidates, one)
        whole += one
        for part, total in zip(parts, sums, strict=True):
            if index in part:
                total += one
    by_others = np.empty((len(people), len(others)), dtype=np.intp)
    for at, index in enumerate(others):
        np.subtract(whole, columns[index].apart(people, candidates, one), out=one)
        by_others[:, at] = one.argmin(axis=1)
    by_parts = np.empty((len(people), len(parts)), dtype=np.intp)
    for at, total in enumerate(sums):
        by_parts[:, at] = total.argmin(axis=1)
    return whole.min(axis=1), by_parts, by_others


def shuffled(pooled: Pooled, table: TableName, rng: np.random.Generator, most: int | None = None) -> Rows:
    """Rows of a table in random order, at most so many."""
    part = pooled.parts[table]
    return np.asarray(part.start + rng.permutation(part.stop - part.start)[:most])
