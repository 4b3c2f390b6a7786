"""Singling out: the new rows show how to describe one real person, and nobody else.

As anonymeter does it ("multivariate"): a guess is made from a random new row and a few
random columns. It says that a number is at least, or at most, the one in that row,
whichever is farther from the middle, and that everything else is the same. Guesses that
fit exactly one of the distinct new rows are tried on the real table; one succeeds if it
fits exactly one of the distinct real rows. The control says how many would succeed in a
table of other people.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from fairmaxent.data.table import Codes, Indices, Reals
from fairmaxent.evaluation.attacks import Risk, SuccessRate
from fairmaxent.evaluation.pooled import Pooled, cell_numbers, column_sets

COLUMNS = 3  # of a guess
_TRIES = 20  # guesses looked at for each one wanted
# rows in sets of columns that guesses are drawn from
_LOOKED_AT = 10_000_000
_FEWEST_SETS = 30
_PARTS = 10  # of the control rows, left out one at a time

Guess = tuple[tuple[int, int, int], ...]  # column, least and greatest code


def singling_out(
    pooled: Pooled,
    guesses: int,
    *,
    confidence: float,
    rng: Generator,
) -> Risk | None:
    """Make guesses from the new rows and try them; None if no guess fits just one."""
    tables = {name: Ranges.of(pooled.distinct(name)) for name in pooled.parts}
    # Guesses about the same few people tell the same, so that there are no more guesses
    # than people.
    people = len(tables["real"].codes)
    wanted = min(guesses, len(tables["new"].codes), people)
    tried = make_guesses(pooled, tables["new"], wanted, rng)
    if not tried:
        return None
    successes = sum(len(tables["real"].rows(guess)) == 1 for guess in tried)
    attack = SuccessRate.of(successes, len(tried), confidence)
    outside = None
    if "control" in tables:
        outside = _outside(tables["control"], tried, people, confidence, rng)
    return Risk.beyond(attack, outside, attempts=len(tried))


def _outside(
    control: "Ranges",
    tried: list[Guess],
    people: int,
    confidence: float,
    rng: Generator,
) -> SuccessRate:
    """How often the guesses would fit exactly one of so many other people."""
    # Of a smaller control, little is known beyond its size: how much the answer depends
    # on its rows is shown by the jackknife, which leaves out a tenth of them at a time.
    from scipy.special import stdtrit  # slow to import

    fitting = [control.rows(guess) for guess in tried]
    counts = np.array([len(matches) for matches in fitting])
    rows = len(control.codes)
    successes = min(at_size(counts, rows, people), len(tried))
    rate = SuccessRate.of(successes, len(tried), confidence)
    error = rate.error
    parts = min(_PARTS, rows)
    if people > rows and parts > 1:
        part_of_row = rng.permutation(rows) % parts
        left_out = np.array(
            [np.bincount(part_of_row[matches], minlength=parts) for matches in fitting]
        )
        sizes = rows - np.bincount(part_of_row, minlength=parts)
        answers = [
            at_size(counts - left_out[:, part], sizes[part], people)
            for part in range(parts)
        ]
        spread = math.sqrt((parts - 1) * (np.array(answers) / len(tried)).var())
        t = float(stdtrit(parts - 1, (1 + confidence) / 2))
        error = math.hypot(error, t * spread)
    return SuccessRate(rate.value, error, rate.value)


def make_guesses(
    pooled: Pooled,
    new: "Ranges",
    wanted: int,
    rng: Generator,
) -> list[Guess]:
    """Guesses that fit exactly one new row, all with equal chances."""
    # The least and the greatest code that a guess allows, for each row and column of
    # the new rows.
    least = new.codes.copy()
    greatest = new.codes.copy()
    for index, column in enumerate(pooled.columns):
        present = new.codes[:, index] > 0
        if column.numbers is not None and present.any():
            beyond = new.codes[:, index] > np.median(new.codes[present, index])
            greatest[present & beyond, index] = column.size
            least[present & ~beyond, index] = 1
    most = max(_FEWEST_SETS, _LOOKED_AT // len(new.codes))
    chosen = column_sets(len(pooled.columns), COLUMNS, most, rng)
    # A guess also fits the rows that are the same in its columns, so that only rows
    # without a double are of use.
    lone = []
    for columns in chosen:
        sizes = [pooled.columns[index].size for index in columns]
        cells, _ = cell_numbers(new.codes[:, columns], sizes)
        lone.append(np.flatnonzero(np.bincount(cells)[cells] == 1))
    ends = np.cumsum([len(rows) for rows in lone])
    guesses: list[Guess] = []
    for number in rng.permutation(int(ends[-1]))[: wanted * _TRIES].tolist():
        at = int(ends.searchsorted(number, side="right"))
        row = lone[at][number - ends[at]]
        guess = tuple(
            (index, int(least[row, index]), int(greatest[row, index]))
            for index in chosen[at]
        )
        if len(new.rows(guess)) == 1:
            guesses.append(guess)
        if len(guesses) == wanted:
            break
    return guesses


@dataclass(frozen=True, eq=False)
class Ranges:
    """Rows sorted by each column, to count those in ranges of a few columns quickly."""

    codes: Codes  # (rows, columns)
    orders: list[Indices]  # of each column: rows by their code
    ascending: list[Codes]  # of each column: the codes in this order

    @classmethod
    def of(cls, codes: Codes) -> "Ranges":
        """Sort rows by each of their columns."""
        orders = [np.argsort(column, kind="stable") for column in codes.T]
        pairs = zip(codes.T, orders, strict=True)
        return cls(codes, orders, ascending=[column[order] for column, order in pairs])

    def rows(self, guess: Guess) -> Indices:
        """The rows that are in all ranges."""
        bounds = []
        for column, least, greatest in guess:
            ascending = self.ascending[column]
            begin = int(ascending.searchsorted(least))
            end = int(ascending.searchsorted(greatest, side="right"))
            bounds.append((end - begin, begin, column))
        size, start, first = min(bounds)  # only these rows need a closer look
        rows = self.orders[first][start : start + size]
        for column, least, greatest in guess:
            if column != first:
                values = self.codes[rows, column]
                rows = rows[(values >= least) & (values <= greatest)]
        return rows


def at_size(counts: Indices, rows: int, wanted: int) -> float:
    """How many guesses would fit exactly one row in a table of another size.

    ``counts`` says how many of this one's rows each fits. In a random part r of the
    rows, a guess that fits k of them fits exactly one with probability r·k·(1 − r)^(k −
    1). In a larger table, it takes a model: guesses fit a person with probability w,
    spread evenly from 0 to W, so that N·((1 − (nW + 1)(1 − W)^n) / (n + 1)) of them fit
    exactly one of n people (Giomi et al. 2023). N and W are fitted to the expected
    successes in parts of the rows.
    """
    seen = counts[counts > 0].astype(float)
    if wanted == rows or not len(seen):
        return float((counts == 1).sum())
    if wanted < rows:
        part = wanted / rows
        return float((part * seen * (1 - part) ** (seen - 1)).sum())
    sizes = np.linspace(0.1, 1.0, 10)
    successes = np.array(
        [(part * seen * (1 - part) ** (seen - 1)).sum() for part in sizes]
    )
    # On a grid of W; N follows by least squares.
    width = np.geomspace(1e-3 / rows, 1.0, 400)[:, None]
    shapes = _one_of(sizes[None, :] * rows, width)
    scale = (shapes @ successes) / np.maximum((shapes**2).sum(axis=1), 1e-300)
    best = ((scale[:, None] * shapes - successes) ** 2).sum(axis=1).argmin()
    one = _one_of(np.array([[float(wanted)]]), width[best : best + 1])
    expected = float(scale[best] * one[0, 0])
    return float(min(expected, successes[-1] * wanted / rows))


def _one_of(people: Reals, width: Reals) -> Reals:
    with np.errstate(divide="ignore"):
        nobody = np.exp(people * np.log1p(-width))
    return (1 - (people * width + 1) * nobody) / (people + 1)
