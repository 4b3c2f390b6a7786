"""Fidelity: how much the shares of levels, and of their combinations, differ between new and real rows.

The total variation of two tables p and q is ½ Σ |p − q|: the share of rows that would have to change. It is averaged
over all columns, pairs of columns and triples of columns, as levels: numbers in the bins that `debias` would use.

Even rows drawn at random from the real table differ from it. How much they do is reported beside each distance.

Quality is as SDMetrics defines it (version 0.32): one score between 0 and 1, known to many users. Column shapes: 1
minus the Kolmogorov–Smirnov statistic for numbers and dates, 1 minus the total variation for other columns, missing
values aside; the mean over the columns. Pair trends: 1 − |r − r'| / 2 for the correlations r, r' of two columns of
numbers, otherwise 1 minus the total variation of the table of both columns, in which numbers are in ten bins between
the least and the greatest of their own table; the mean over pairs that belong together in the real table, which is to
say |r| > 0.5 or Cramér's V > 0.3. The score is the mean of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Codes, Reals
from fairmaxent.evaluation.nearest import Done
from fairmaxent.evaluation.pooled import Pooled, PooledColumn, cell_numbers, column_sets

MOST_SETS = 1000  # triples of columns; of more, so many are drawn at random
_NAMED = 3  # columns


@dataclass(frozen=True)
class TotalVariation:
    """Mean total variation over sets of so many columns."""

    columns: int
    value: float
    by_chance: float
    """The same for as many rows drawn at random from the real table."""
    sets: int
    """How many sets of columns were compared."""


@dataclass(frozen=True)
class Fidelity:
    """How close the new rows are to the real table."""

    total_variation: tuple[TotalVariation, ...]
    by_column: dict[str, float]
    """Total variation of each column."""
    quality: Quality

    @property
    def farthest(self) -> tuple[tuple[str, float], ...]:
        """The columns that differ most."""
        return tuple(sorted(self.by_column.items(), key=lambda item: -item[1])[:_NAMED])


def fidelity(pooled: Pooled, *, rng: np.random.Generator, done: Done = lambda share: None) -> Fidelity:
    """Compare the new rows with the real table."""
    domain, encoded = pooled.learned
    codes = encoded.codes.astype(np.int64)
    real, new = (codes[pooled.parts[name]] for name in ("real", "new"))
    times = rng.multinomial(len(new), np.full(len(real), 1 / len(real))).astype(np.float64)
    distances = {}
    for size in range(1, min(3, len(domain.sizes)) + 1):
        sets = column_sets(len(domain.sizes), size, MOST_SETS if size == 3 else math.inf, rng)
        distances[size] = np.array([_apart(real, new, times, columns, domain.sizes) for columns in sets])
        done(size / 4)
    return Fidelity(
        total_variation=tuple(
            TotalVariation(size, float(apart[:, 0].mean()), float(apart[:, 1].mean()), len(apart))
            for size, apart in distances.items()
        ),
        by_column=dict(zip(pooled.names, distances[1][:, 0].tolist(), strict=True)),
        quality=quality(pooled),
    )


def _apart(real: Codes, new: Codes, times: Reals, columns: list[int], sizes: tuple[int, ...]) -> tuple[float, float]:
    """Total variation of the new rows, and of real rows taken so many times, from the real table."""
    rows = np.concatenate([real[:, columns], new[:, columns]])
    cells, span = cell_numbers(rows, [sizes[index] for index in columns])
    first, second = cells[: len(real)], cells[len(real) :]
    shares = _shares(first, span)
    return _variation(shares, _shares(second, span)), _variation(shares, _shares(first, span, times))


def _shares(cells: NDArray[np.int64], span: int, times: Reals | None = None) -> Reals:
    counts = np.bincount(cells, times, minlength=span)
    return np.asarray(counts / counts.sum())


def _variation(first: Reals, second: Reals) -> float:
    return float(np.abs(first - second).sum() / 2)


CORRELATED, ASSOCIATED = 0.5, 0.3
_BINS = 10


@dataclass(frozen=True)
class PairTrend:
    """Two columns that belong together in the real table, and how much they do so in the new rows."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Quality:
    """SDMetrics' quality; None if there is nothing to take a mean of."""

    score: float | None
    shapes: float | None
    trends: float | None
    by_column: dict[str, float | None]
    by_pair: tuple[PairTrend, ...]
    """Of the pairs that belong together in the real table."""


@dataclass(frozen=True, eq=False)
class _Side:
    """A column in one of the tables."""

    codes: NDArray[np.intp]
    numbers: Reals | None
    binned: NDArray[np.intp]

    @classmethod
    def of(cls, column: PooledColumn, part: slice) -> _Side:
        codes = column.codes[part]
        if column.numbers is None:
            return cls(codes, None, codes)
        numbers = column.numbers[part]
        present = numbers[~np.isnan(numbers)]
        binned = np.digitize(numbers, np.histogram_bin_edges(present, _BINS)) if len(present) else codes
        return cls(codes, numbers, binned)


def quality(pooled: Pooled) -> Quality:
    """Score the new rows."""
    sides = [tuple(_Side.of(column, pooled.parts[name]) for name in ("real", "new")) for column in pooled.columns]
    by_column = {name: _shape(*pair) for name, pair in zip(pooled.names, sides, strict=True)}
    pairs = [
        (pooled.names[i], pooled.names[j], _trend(sides[i], sides[j])) for i, j in combinations(range(len(sides)), 2)
    ]
    by_pair = tuple(PairTrend(one, other, score) for one, other, score in pairs if score is not None)
    shapes, trends = _mean(by_column.values()), _mean(pair.score for pair in by_pair)
    return Quality(_mean([shapes, trends]), shapes, trends, by_column, by_pair)


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return float(np.mean(known)) if known else None


def _shape(real: _Side, new: _Side) -> float | None:
    if not (real.codes > 0).any() or not (new.codes > 0).any():
        return None
    one, other = (side.codes[side.codes > 0] for side in (real, new))
    size = int(max(one.max(), other.max())) + 1
    first, second = (np.bincount(codes, minlength=size) / len(codes) for codes in (one, other))
    if real.numbers is None:
        return 1 - _variation(first, second)
    return float(1 - np.abs(np.cumsum(first) - np.cumsum(second)).max())


def _trend(first: tuple[_Side, ...], second: tuple[_Side, ...]) -> float | None:
    """The score of a pair; None if the columns have little to do with each other in the real table."""
    (real, new), (other_real, other_new) = first, second
    if real.numbers is not None and other_real.numbers is not None:
        correlation = _correlation(real.numbers, other_real.numbers)
        if correlation is None or abs(correlation) <= CORRELATED:
            return None
        again = _correlation(new.numbers, other_new.numbers)
        return None if again is None else 1 - abs(correlation - again) / 2
    width = int(max(other_real.binned.max(), other_new.binned.max())) + 1
    height = int(max(real.binned.max(), new.binned.max())) + 1
    table, another = (
        _shares(one.binned * width + other.binned, height * width).reshape(height, width)
        for one, other in ((real, other_real), (new, other_new))
    )
    if _association(table) <= ASSOCIATED:
        return None
    return 1 - _variation(table, another)


def _correlation(first: Reals | None, second: Reals | None) -> float | None:
    """Pearson's correlation over rows with both values; None if a column is constant."""
    assert first is not None
    assert second is not None
    both = ~(np.isnan(first) | np.isnan(second))
    one, other = (values[both] - values[both].mean() if both.any() else values[:0] for values in (first, second))
    spread = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / spread if spread > 0 else None


def _association(table: Reals) -> float:
    """Cramér's V: the root of Σ (p − q)² / q over the smaller side less one, q being the product of the margins."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(table.shape) - 1
    if least < 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return math.sqrt(float(((table - expected) ** 2 / expected).sum()) / least)
