"""Fidelity: how much the shares of levels, and of their combinations, differ between new and real rows.

The total variation of two tables p and q is ½ Σ |p − q|: the share of rows that would have to change. It is averaged
over all columns, pairs of columns and triples of columns, as levels: numbers in the bins that `debias` would use.

Even rows drawn at random from the real table differ from it. How much they do is reported beside each distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.table import row_keys
from fairmaxent.evaluation.nearest import Done
from fairmaxent.evaluation.pooled import Pooled
from fairmaxent.evaluation.quality import Quality, quality

MOST_SETS = 1000  # triples of columns; of more, so many are drawn at random
_COUNTABLE = 1 << 20  # combinations of levels that are counted one by one
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
        sets = list(_sets(len(domain.sizes), size, rng))
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


def _sets(width: int, size: int, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    if size < 3 or math.comb(width, size) <= MOST_SETS:
        return combinations(range(width), size)
    return iter({tuple(sorted(rng.choice(width, size, replace=False).tolist())): None for _ in range(MOST_SETS)})


def _apart(
    real: Codes, new: Codes, times: Reals, columns: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[float, float]:
    """Total variation of the new rows, and of real rows taken so many times, from the real table."""
    rows = np.concatenate([real[:, columns], new[:, columns]])
    cells, span = row_keys(rows, [sizes[index] for index in columns])
    if span > _COUNTABLE:
        cells = np.unique(cells, return_inverse=True)[1]
        span = int(cells.max()) + 1
    first, second = cells[: len(real)], cells[len(real) :]
    shares = _shares(first, span)
    return _variation(shares, _shares(second, span)), _variation(shares, _shares(first, span, times))


def _shares(cells: NDArray[np.int64], span: int, times: Reals | None = None) -> Reals:
    counts = np.bincount(cells, times, minlength=span)
    return np.asarray(counts / counts.sum())


def _variation(first: Reals, second: Reals) -> float:
    return float(np.abs(first - second).sum() / 2)
