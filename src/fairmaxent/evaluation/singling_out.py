"""Singling out: the new rows show how to describe one real person, and nobody else.

As anonymeter does it ("multivariate"): a guess is made from a random new row and a few random columns. It says that a
number is at least, or at most, the one in that row, whichever is farther from the middle, and that everything else is
the same. Guesses that fit exactly one of the distinct new rows are tried on the real table; one succeeds if it fits
exactly one of the distinct real rows. The control says how many would succeed in a table of other people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.table import Codes, Reals
from fairmaxent.evaluation.attacks import Risk, SuccessRate
from fairmaxent.evaluation.nearest import Done
from fairmaxent.evaluation.pooled import Pooled, cell_numbers, column_sets

COLUMNS = 3  # of a guess
_TRIES = 20  # guesses looked at for each one wanted
_LOOKED_AT, _FEWEST_SETS = 10_000_000, 30  # rows in sets of columns that guesses are drawn from
_PARTS = 10  # of the control rows, left out one at a time

Guess = tuple[tuple[int, int, int], ...]  # column, least and greatest code


def singling_out(
    pooled: Pooled, guesses: int, *, confidence: float, rng: np.random.Generator, done: Done = lambda share: None
) -> Risk | None:
    """Make guesses from the new rows and try them; None if no guess fits exactly one new row."""
    tables = {name: Ranges.of(pooled.distinct(name)) for name in pooled.parts}
    # Guesses about the same few people tell the same, so that there are no more guesses than people.
    wanted = min(guesses, len(tables["new"].codes), len(tables["real"].codes))
    made = _guesses(pooled, tables["new"], wanted, rng, done)
    if not made:
        return None
    successes = sum(tables["real"].count(guess) == 1 for guess in made)
    attack = SuccessRate.of(successes, len(made), confidence)
    outside = None
    if "control" in tables:
        outside = _outside(tables["control"], made, len(tables["real"].codes), confidence, rng)
    return replace(Risk.beyond(attack, outside, len(made)), rate=successes / len(made))


def _outside(
    control: Ranges, made: list[Guess], people: int, confidence: float, rng: np.random.Generator
) -> SuccessRate:
    """How often the guesses would fit exactly one of so many other people.

    Of a smaller control, little is known beyond its size: how much the answer depends on its rows shows the jackknife,
    which leaves out a tenth of them at a time.
    """
    from scipy.special import stdtrit  # slow to import

    fitting = [control.rows(guess) for guess in made]
    counts, rows = np.array([len(matches) for matches in fitting]), len(control.codes)
    expected = min(at_size(counts, rows, people), len(made))
    rate = SuccessRate.of(expected, len(made), confidence)
    parts = min(_PARTS, rows)
    if people <= rows or parts < 2:
        return rate
    part_of_row = rng.permutation(rows) % parts
    left_out = np.array([np.bincount(part_of_row[matches], minlength=parts) for matches in fitting])
    sizes = rows - np.bincount(part_of_row, minlength=parts)
    answers = np.array([at_size(counts - left_out[:, part], sizes[part], people) for part in range(parts)]) / len(made)
    spread = math.sqrt((parts - 1) * answers.var())
    return SuccessRate(rate.value, math.hypot(rate.error, float(stdtrit(parts - 1, (1 + confidence) / 2)) * spread))


def _guesses(pooled: Pooled, new: Ranges, wanted: int, rng: np.random.Generator, done: Done) -> list[Guess]:
    """Guesses that fit exactly one new row, drawn from all of them with equal chances."""
    least, greatest = _bounds(pooled, new.codes)
    chosen = column_sets(len(pooled.columns), COLUMNS, max(_FEWEST_SETS, _LOOKED_AT // len(new.codes)), rng)
    # A guess also fits the rows that are the same in its columns, so that only rows without a double are of use.
    lone = [_lone_rows(new.codes[:, columns], [pooled.columns[index].size for index in columns]) for columns in chosen]
    ends = np.cumsum([len(rows) for rows in lone])
    made: list[Guess] = []
    for tries, number in enumerate(rng.permutation(int(ends[-1]))[: wanted * _TRIES].tolist()):
        at = int(ends.searchsorted(number, side="right"))
        row, columns = lone[at][number - ends[at]], chosen[at]
        guess = tuple((index, int(least[row, index]), int(greatest[row, index])) for index in columns)
        if new.count(guess) == 1:
            made.append(guess)
        if len(made) == wanted:
            break
        if tries % 100 == 0:
            done(max(len(made) / wanted, tries / (wanted * _TRIES)))
    return made


def _lone_rows(codes: Codes, sizes: list[int]) -> NDArray[np.intp]:
    """The rows that no other row equals."""
    cells, _ = cell_numbers(codes, sizes)
    return np.flatnonzero(np.bincount(cells)[cells] == 1)


def _bounds(pooled: Pooled, codes: Codes) -> tuple[Codes, Codes]:
    """The least and the greatest code that a guess allows, for each row and column of the new rows."""
    least, greatest = codes.copy(), codes.copy()
    for index, column in enumerate(pooled.columns):
        present = codes[:, index] > 0
        if column.numbers is not None and present.any():
            beyond = codes[:, index] > np.median(codes[present, index])
            greatest[present & beyond, index] = column.size
            least[present & ~beyond, index] = 1
    return least, greatest


@dataclass(frozen=True, eq=False)
class Ranges:
    """Rows sorted by each column, to count those in ranges of a few columns quickly."""

    codes: Codes  # (rows, columns)
    orders: list[NDArray[np.intp]]  # of each column: rows by their code
    ascending: list[Codes]  # of each column: the codes in this order

    @classmethod
    def of(cls, codes: Codes) -> Ranges:
        """Sort rows by each of their columns."""
        orders = [np.argsort(column, kind="stable") for column in codes.T]
        return cls(codes, orders, [column[order] for column, order in zip(codes.T, orders, strict=True)])

    def count(self, guess: Guess) -> int:
        """How many rows are in all ranges."""
        return len(self.rows(guess))

    def rows(self, guess: Guess) -> NDArray[np.intp]:
        """The rows that are in all ranges."""
        bounds = [self._bounds(*condition) for condition in guess]
        size, start, first = min(bounds)  # only these rows need a closer look
        rows = self.orders[first][start : start + size]
        for column, least, greatest in guess:
            if column != first:
                values = self.codes[rows, column]
                rows = rows[(values >= least) & (values <= greatest)]
        return rows

    def _bounds(self, column: int, least: int, greatest: int) -> tuple[int, int, int]:
        """How many rows are in the range of one column, where they begin in its order, and the column."""
        ascending = self.ascending[column]
        start, stop = int(ascending.searchsorted(least)), int(ascending.searchsorted(greatest, side="right"))
        return stop - start, start, column


def at_size(counts: NDArray[np.intp], rows: int, wanted: int) -> float:
    """How many guesses would fit exactly one row in a table of another size, given how many rows of this one they fit.

    In a random part r of the rows, a guess that fits k of them fits exactly one with probability r·k·(1 − r)^(k − 1).
    In a larger table, it takes a model: guesses fit a person with probability w, spread evenly from 0 to W, so that
    N·((1 − (nW + 1)(1 − W)^n) / (n + 1)) of them fit exactly one of n people (Giomi et al. 2023). N and W are fitted to
    the expected successes in parts of the rows.
    """
    seen = counts[counts > 0].astype(np.float64)
    if wanted == rows or not len(seen):
        return float((counts == 1).sum())
    if wanted < rows:
        part = wanted / rows
        return float((part * seen * (1 - part) ** (seen - 1)).sum())
    sizes = np.linspace(0.1, 1.0, 10)
    successes = np.array([(part * seen * (1 - part) ** (seen - 1)).sum() for part in sizes])
    return float(min(_extrapolated(sizes * rows, successes, wanted), successes[-1] * wanted / rows))


def _extrapolated(sizes: Reals, successes: Reals, wanted: int) -> float:
    """Fit the model on a grid of W; N follows by least squares."""
    width = np.geomspace(1e-3 / sizes[-1], 1.0, 400)[:, None]
    shapes = _one_of(sizes[None, :], width)
    scale = (shapes @ successes) / np.maximum((shapes**2).sum(axis=1), 1e-300)
    best = ((scale[:, None] * shapes - successes) ** 2).sum(axis=1).argmin()
    return float(scale[best] * _one_of(np.array([[float(wanted)]]), width[best : best + 1])[0, 0])


def _one_of(people: Reals, width: Reals) -> Reals:
    with np.errstate(divide="ignore"):
        nobody = np.exp(people * np.log1p(-width))
    return np.asarray((1 - (people * width + 1) * nobody) / (people + 1))
