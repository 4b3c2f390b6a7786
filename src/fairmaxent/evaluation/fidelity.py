"""Fidelity: how much the shares of levels, and of their combinations, differ between new and real rows.

The total variation of two tables p and q is ½ Σ |p − q|, averaged over all columns, pairs and triples of columns, as
levels: numbers in the bins that `debias` would use. Beside it stands that of rows drawn at random from the real table.

Quality is as SDMetrics defines it (version 0.32). Column shapes: 1 minus the Kolmogorov–Smirnov statistic for numbers
and dates, 1 minus the total variation for other columns, missing values aside; the mean over the columns. Pair trends:
1 − |r − r'| / 2 for the correlations r, r' of two columns of numbers, otherwise 1 minus the total variation of the
table of both columns, in which numbers are in ten bins between the least and the greatest of their own table; the mean
over pairs with |r| > 0.5 or Cramér's V > 0.3 in the real table. The score is the mean of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Reals
from fairmaxent.evaluation.pooled import Pooled, PooledColumn, cell_numbers, column_sets

MOST_SETS = 1000  # triples of columns; of more, so many are drawn at random


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


def fidelity(pooled: Pooled, *, rng: np.random.Generator) -> Fidelity:
    """Compare the new rows with the real table."""
    domain, encoded = pooled.learned
    codes = encoded.codes.astype(np.int64)
    real, new = (codes[pooled.parts[name]] for name in ("real", "new"))
    times = rng.multinomial(len(new), np.full(len(real), 1 / len(real))).astype(np.float64)
    distances = {}
    for size in range(1, min(3, len(domain.sizes)) + 1):
        apart = []
        for columns in column_sets(len(domain.sizes), size, MOST_SETS if size == 3 else math.inf, rng):
            rows = np.concatenate([real[:, columns], new[:, columns]])
            cells, span = cell_numbers(rows, [domain.sizes[index] for index in columns])
            shares, drawn = (_shares(cells[: len(real)], span, weights) for weights in (None, times))
            apart.append((_variation(shares, _shares(cells[len(real) :], span)), _variation(shares, drawn)))
        distances[size] = np.array(apart)
    means = (
        TotalVariation(size, float(apart[:, 0].mean()), float(apart[:, 1].mean()), len(apart))
        for size, apart in distances.items()
    )
    by_column = dict(zip(pooled.names, distances[1][:, 0].tolist(), strict=True))
    return Fidelity(tuple(means), by_column, quality(pooled))


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
    sides = {
        column.name: tuple(_Side.of(column, pooled.parts[name]) for name in ("real", "new"))
        for column in pooled.columns
    }
    by_column = {name: _shape(*pair) for name, pair in sides.items()}
    scored = ((first, second, _trend(sides[first], sides[second])) for first, second in combinations(sides, 2))
    by_pair = tuple(PairTrend(first, second, score) for first, second, score in scored if score is not None)
    shapes, trends = _mean(by_column.values()), _mean(pair.score for pair in by_pair)
    return Quality(_mean([shapes, trends]), shapes, trends, by_column, by_pair)


def _mean(scores: Iterable[float | None]) -> float | None:
    present = [score for score in scores if score is not None]
    return float(np.mean(present)) if present else None


def _shape(real: _Side, new: _Side) -> float | None:
    if not real.codes.any() or not new.codes.any():
        return None
    size = int(max(real.codes.max(), new.codes.max()))
    first, second = (_shares(side.codes[side.codes > 0] - 1, size) for side in (real, new))
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
    height, width = (int(max(side.binned.max() for side in sides)) + 1 for sides in (first, second))
    table, another = (
        _shares(side.binned * width + other.binned, height * width).reshape(height, width)
        for side, other in zip(first, second, strict=True)
    )
    apart = 1 - _variation(table, another)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    least = min(table.shape) - 1
    # Cramér's V: the root of Σ (p − q)² / q over the smaller side less one, q being the product of the margins.
    if least < 1 or math.sqrt(float(((table - expected) ** 2 / expected).sum()) / least) <= ASSOCIATED:
        return None
    return apart


def _correlation(first: Any, second: Any) -> float | None:
    """Pearson's correlation over rows with both values; None if a column is constant."""
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return None
    first, second = (values[both] - values[both].mean() for values in (first, second))
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread > 0 else None
