"""Random raking problems, with what is known about them by construction, and slow twins
of the solver.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from scipy.optimize import linprog


@dataclass(frozen=True)
class Random:
    """A table, margins, and bounds."""

    frame: pl.DataFrame
    margins: dict[tuple[str, ...], dict[tuple[str, ...], float]]
    bounds: tuple[float, float]

    @property
    def shares(self) -> np.ndarray:
        return (self.frame["design"] / self.frame["design"].sum()).to_numpy()

    def incidence(self, chosen=None):
        """Which rows have which level of the chosen margins, and the wanted shares."""
        rows, wanted = [], []
        for columns in self.margins if chosen is None else chosen:
            values = self.margins[columns]
            keys = list(
                zip(*(self.frame[name].to_list() for name in columns), strict=True)
            )
            for level, value in values.items():
                rows.append([key == level for key in keys])
                wanted.append(value)
        return np.array(rows, dtype=float), np.array(wanted)


def table(rng, columns, rows):
    """Text levels, each of which some row has."""
    sizes = rng.integers(2, 5, size=columns)
    codes = np.column_stack(
        [
            np.append(np.arange(size), rng.integers(0, size, rows)[: rows - size])
            for size in sizes
        ]
    )
    for column in codes.T:
        rng.shuffle(column)
    frame = pl.DataFrame(
        {
            f"c{number}": [f"l{code}" for code in column]
            for number, column in enumerate(codes.T)
        }
    )
    design = rng.gamma(2.0, size=rows) + 0.05
    return frame.with_columns(design=pl.Series(design)), codes, design


def random_margins(rng, frame, shares):
    """Margins of one or two columns, overlapping ones too, that these shares of the
    rows have.
    """
    names = [name for name in frame.columns if name != "design"]
    every = [(name,) for name in names] + list(combinations(names, 2))
    count = int(rng.integers(1, min(len(every), 5) + 1))
    chosen = [every[number] for number in rng.choice(len(every), count, replace=False)]
    return {columns: margin(frame, columns, shares) for columns in chosen}


def margin(frame, columns, shares):
    counted = (
        frame.with_columns(share=pl.Series(shares))
        .group_by(columns)
        .agg(pl.col("share").sum())
    )
    return {tuple(row[:-1]): row[-1] for row in counted.sort(columns).iter_rows()}


def feasible(seed, *, tight=False):
    """A problem that some factors within its bounds solve; tight: all but one of them
    are at a bound.
    """
    rng = np.random.default_rng(seed)
    frame, _, design = table(rng, int(rng.integers(2, 5)), int(rng.integers(12, 80)))
    low, high = float(rng.uniform(0.05, 0.9)), float(rng.uniform(1.2, 4))
    shares = design / design.sum()
    factors = rng.uniform(low, high, len(shares))
    total = shares @ factors
    factors = (
        low + (factors - low) * (1 - low) / (total - low) if total > 1 else factors
    )
    factors = (
        high - (high - factors) * (high - 1) / (high - total) if total <= 1 else factors
    )
    if tight:
        left, factors = 1 - low, np.full(len(shares), low)
        for row in rng.permutation(len(shares)):
            more = min(left, shares[row] * (high - low))
            factors[row] += more / shares[row]
            left -= more
    return Random(frame, random_margins(rng, frame, shares * factors), (low, high))


def infeasible(seed):
    """A problem of several margins, most of which contradict each other; the bounds may
    have no part in it.
    """
    rng = np.random.default_rng(seed)
    frame, codes, design = table(
        rng, int(rng.integers(2, 5)), int(rng.integers(10, 40))
    )
    margins = {}
    for columns in random_margins(rng, frame, design / design.sum()):
        tilted = (
            design
            * rng.uniform(0.05, 4, size=(64,))[
                codes @ rng.integers(0, 9, codes.shape[1]) % 64
            ]
        )
        margins[columns] = margin(frame, columns, tilted / tilted.sum())
    bounds = (
        (0.0, np.inf)
        if rng.random() < 0.3
        else (float(rng.uniform(0, 0.6)), float(rng.uniform(1.5, 5)))
    )
    return Random(frame, margins, bounds)


def miss(problem, chosen=None):
    """The smallest Σ |achieved − wanted| of some margins, by a linear program over the
    rows themselves.
    """
    incidence, wanted = problem.incidence(chosen)
    levels, rows = incidence.shape
    low, high = problem.bounds
    high = 1e9 if np.isinf(high) else high
    unit = np.eye(levels)
    program = linprog(
        np.append(np.zeros(rows), np.ones(2 * levels)),
        A_eq=np.vstack(
            [
                np.hstack([incidence, unit, -unit]),
                np.append(np.ones(rows), np.zeros(2 * levels)),
            ]
        ),
        b_eq=np.append(wanted, 1.0),
        bounds=[
            *((low * share, high * share) for share in problem.shares),
            *[(0, None)] * (2 * levels),
        ],
        method="highs",
    )
    return program.fun if program.status == 0 else np.inf


def proportional_fitting(frame, margins, weights, rounds=20_000):
    """Iterative proportional fitting, margin after margin: the slow twin without
    bounds.
    """
    weights = np.asarray(weights, dtype=float) / np.sum(weights)
    cells = []
    for column, values in margins.items():
        position = {level: number for number, level in enumerate(values)}
        cells.append(
            (
                np.array([position[key] for key in frame[column]]),
                np.array(list(values.values()), dtype=float),
            )
        )
    for _ in range(rounds):
        before = weights
        for position, wanted in cells:
            weights = (
                weights
                * (wanted / wanted.sum() / np.bincount(position, weights, len(wanted)))[
                    position
                ]
            )
        if np.abs(weights - before).max() < 1e-17:
            break
    return weights * len(weights)


def cycle(seed):
    """Columns in a circle, each nearly equal to the next, but the last nearly opposite
    to the first.

    Any of these margins can be left out, so the smallest conflicting set is the circle;
    another margin agrees with all.
    """
    rng = np.random.default_rng(seed)
    length = int(rng.integers(3, 5))
    codes = np.array(list(np.ndindex(*[2] * (length + 1))))
    names = [f"c{number}" for number in range(length + 1)]
    frame = pl.DataFrame(
        {
            name: [f"l{code}" for code in column]
            for name, column in zip(names, codes.T, strict=True)
        }
    )
    frame = frame.with_columns(design=pl.Series(rng.uniform(0.5, 2, len(codes))))
    margins = {(names[-1],): {("l0",): 0.4, ("l1",): 0.6}}
    for number in range(length):
        agree = (
            float(rng.uniform(0.9, 0.99))
            if number < length - 1
            else float(rng.uniform(0.01, 0.1))
        )
        columns = (names[number], names[(number + 1) % length])
        margins[columns] = {
            (f"l{a}", f"l{b}"): (agree if a == b else 1 - agree) / 2
            for a in (0, 1)
            for b in (0, 1)
        }
    order = rng.permutation(length + 1)
    shuffled = {
        list(margins)[number]: list(margins.values())[number] for number in order
    }
    return Random(frame, shuffled, (0.0, np.inf))
