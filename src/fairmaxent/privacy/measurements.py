"""Measurements: the only ways in which anything about the rows gets out, each with its
cost.

The noise comes from OpenDP, whose samplers are exact and use the operating system's
randomness, so that neither a seed nor floating point gives it away. Each row is in
exactly one cell of each table that is counted: adding or removing one changes one cell
by one. A person of at most k rows changes the cells by k in all, so every table has the
L2 sensitivity k (reached if all are in the same cell).

Which pairs of columns are measured is chosen privately. The score of a pair is how far
the rows are from what the model without it says: Σ |n(a, b) − m(a, b)| over the levels
of both columns, where m is made of noisy tables only. Adding or removing one row
changes one n(a, b) by one, and with it the score by one at most; m stays. Then a third
of the error that the noise of measuring the pair is expected to have is subtracted (as
in AIM: McKenna, Mullins, Sheldon and Miklau 2022); that is a public number. Floating
point could betray more than that, so m and this number are rounded down to multiples of
2⁻²⁰ first: then sums of fewer than 2³² rows are exact. What is charged for is k + 2⁻¹⁹
all the same.

So are the columns that are counted with the outcome, if noise would hide most of them
(decision 025). The score of a column is how many rows would have another outcome if it
said nothing about it: Σ |n(y, a) − p(y)·n(a)|/2 over outcomes y and levels a, where
n(a) = Σ n(y, a), and p is a noisy share, rounded down. Adding or removing a row with y
and a adds e_y − p to the differences of a, or takes it away. That is 1 − p(y) in one
place and at most as much in all others, so the score changes by one at most, too. Of
it, a third of the error of measuring is subtracted as well.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from fairmaxent.data.table import (
    Axes,
    Counted,
    Names,
    Reals,
)
from fairmaxent.errors import DependencyError, InputError
from fairmaxent.maxent.priors.learned_tree import spanning_parents
from fairmaxent.privacy.budget import Spent

# Shares of the budget, chosen on public tables (Adult, German credit, COMPAS, ACS; see
# benchmarks/privacy.py): for the table of outcome and groups; at most, for pairs, which
# get half of it if they are off by so many rows for each row; for choosing them, as a
# part of it. The rest goes to each column alone, and to each with outcome and groups.
# That later shares depend on earlier answers is allowed, as ρ in all is fixed (Feldman
# and Zrnic 2021).
ROOT_SHARE = 0.05
_MOST_FOR_PAIRS = 0.32
_HALVING_ERROR = 0.3
_FOR_CHOOSING = 0.15
# Among tables of one kind, the sum of their expected errors is least if the budget
# grows like cells^(2/3).
_POWER = 2 / 3
# Rows by which a table may be off, for each row that there is: a pair with the root, a
# column with the root, and with the outcome.
_CLEAR = 0.4
_CLEAR_GROUPS = 0.2
_CLEAR_OUTCOMES = 0.125
# columns that are counted with the outcome at least; for choosing them, as a part
_FEWEST = 4
_FOR_COLUMNS = 0.2
Pair = tuple[int, int]
Expected = Callable[[Pair], Reals]
Rhos = tuple[float, float]
_ERROR_SHARE = 1 / 3
_HUB_ERROR_SHARE = 1.0
_GRID = 2.0**20
_GRID_SENSITIVITY = 2.0**-19
_AT_ONCE = 64  # pairs counted in one pass over the rows
_LARGEST_HUB = 32  # levels
_LARGEST_FAMILY = 1 << 20  # cells of root, hub, parent and child


class Noise(Protocol):
    """What protects the rows; tests put others in its place."""

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with noise of this standard deviation."""

    def choice(self, scores: Reals, scale: float) -> int:
        """The position of a score, each with probability ∝ e^{score/scale}."""


class OpenDP:
    """Noise from the library OpenDP."""

    def __init__(self) -> None:
        # module by module: its prelude also imports everything that it can work with
        try:
            import opendp.domains
            import opendp.measurements
            import opendp.measures
            import opendp.metrics
            import opendp.mod
        except ImportError as error:
            raise DependencyError(
                "a private fit needs opendp, which is not installed; pip install"
                " 'fairmaxent[private]'"
            ) from error

        opendp.mod.enable_features("contrib")
        self._dp: Any = opendp

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with discrete Gaussian noise."""
        dp = self._dp
        whole = np.round(table).astype(int)
        counted = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
        distance = dp.metrics.l2_distance(T="f64")
        measure = dp.measurements.make_gaussian(counted, distance, scale=scale)
        _check_cost(measure.map(1.0), scale)
        noisy = measure(whole.ravel().tolist())
        return np.array(noisy, dtype=float).reshape(table.shape)

    def choice(self, scores: Reals, scale: float) -> int:
        """The noisy maximum."""
        dp = self._dp
        scored = dp.domains.vector_domain(dp.domains.atom_domain(T="f64", nan=False))
        distance = dp.metrics.linf_distance(T="f64")
        cost = dp.measures.zero_concentrated_divergence()
        measure = dp.measurements.make_noisy_max(
            scored,
            distance,
            cost,
            scale=scale,
        )
        _check_cost(measure.map(1.0), scale)
        return int(measure(scores.tolist()))


def scale_of(rho: float, sensitivity: float) -> float:
    """The scale at which one look costs ρ = Δ²/(2·scale²), rounded to more noise.

    Δ is by how much a person changes what is looked at.
    """
    return math.nextafter(sensitivity * math.sqrt(1 / (2 * rho)), math.inf)


def _check_cost(stated: float, scale: float) -> None:
    """Refuse a library that charges for its noise in another way than the ledger."""
    if not math.isclose(stated, 1 / (2 * scale**2), rel_tol=1e-9):
        raise InputError(
            f"OpenDP charges {stated:.6g} for noise of scale {scale:.6g}, and the"
            " ledger another amount"
        )


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A noisy table, and what it cost."""

    counts: Reals
    spent: Spent

    @property
    def variance(self) -> float:
        """Of the noise in each cell."""
        return self.spent.scale**2


@dataclass(frozen=True, eq=False)
class NoisyCounter:
    """Counts rows with noise, and in no other way."""

    table: Counted
    levels: Axes  # of each block
    names: Names  # of each block
    noise: Noise
    sensitivity: float = 1.0  # k: how many rows can be about one person
    groups: int = 1  # levels of the root that are counted as one, one after the other

    def exact(self, wanted: Sequence[Axes]) -> list[Reals]:
        """Exact tables, for a mechanism only.

        The root comes first in each if its groups are counted together.
        """
        levels = (self.levels[0] * self.groups, *self.levels[1:])
        tables = self.table.tables(wanted, levels)
        if self.groups == 1:
            return tables
        return [
            table.reshape(-1, self.groups, *table.shape[1:]).sum(axis=1)
            for table in tables
        ]

    def choose(
        self, scores: Sequence[float] | Reals, rho: float, measured: str
    ) -> tuple[int, Spent]:
        """Which score on the grid is about the highest, and what that cost."""
        sensitivity = self.sensitivity + _GRID_SENSITIVITY
        spent = Spent(
            mechanism="noisy maximum",
            measured=measured,
            cells=len(scores),
            sensitivity=sensitivity,
            scale=scale_of(rho, sensitivity),
        )
        return self.noise.choice(np.array(scores), spent.scale), spent

    def for_columns(
        self,
        rho: float,
        rows: float,
        outcomes: int,
        name: str,
    ) -> tuple["NoisyCounter", int]:
        """Who counts columns with the root, and how many of them.

        If noise would hide that, groups are counted together, and fewer columns.
        """
        every = len(self.levels) - 1
        if not every or self.clear(rho, rows, _CLEAR_GROUPS) >= every:
            return self, every
        coarse = replace(
            self,
            levels=(outcomes, *self.levels[1:]),
            names=(name, *self.names[1:]),
            groups=self.levels[0] // outcomes,
        )
        clear = coarse.clear(rho, rows, _CLEAR_OUTCOMES)
        return coarse, min(max(clear, _FEWEST), every)

    def clear(
        self,
        rho: float,
        rows: float,
        error: float,
    ) -> int:
        """How many columns can be counted with the root, for ρ in all.

        None is to be off by more than the error.
        """
        cells = self.levels[0] * math.exp(np.log(self.levels[1:]).mean())
        allowed = error * rows / expected_error(self.sensitivity, cells)
        return int(2 * rho * allowed**2)

    def shares(
        self,
        rho: float,
        rows: float,
        *,
        forced: bool,
    ) -> Reals:
        """What columns alone, with the root, choosing pairs and pairs get of ρ.

        The fewer rows stand out of the noise, the more is it worth to know single
        columns well. Pairs get nothing where noise hides even columns with the root,
        unless some are ``forced``.
        """
        sizes = self.levels[1:]
        # what a table of few columns has no use for goes to the other measurements
        if len(sizes) < 2:
            return np.array([0.5, 0.5, 0.0, 0.0]) * len(sizes)
        # Of a pair: the geometric mean, because large ones are mostly empty.
        cells = math.exp(2 * np.log(sizes).mean())
        scale = scale_of(rho * _MOST_FOR_PAIRS / (len(sizes) - 1), self.sensitivity)
        error = expected_error(scale, cells) / rows
        pairs = _MOST_FOR_PAIRS / (1 + error / _HALVING_ERROR)
        rest = (1 - pairs * (1 + _FOR_CHOOSING)) / 2
        clear = self.clear(rho * rest * (1 - pairs), rows, _CLEAR_GROUPS)
        if not forced and clear < len(sizes):
            pairs = 0.0
            rest = 0.5
        return np.array(
            [rest * (1 + pairs), rest * (1 - pairs), pairs * _FOR_CHOOSING, pairs]
        )

    def families(
        self,
        parents: Mapping[int, int],
        rho: float,
        rows: float,
    ) -> dict[int, NoisyTable]:
        """Count each block with its parent.

        For each level of the root, if noise leaves that visible in so many rows.
        """
        wanted: list[Axes] = []
        for block, parent in parents.items():
            cells = self.levels[0] * self.levels[parent] * self.levels[block]
            scale = scale_of(rho / len(parents), self.sensitivity)
            is_clear = expected_error(scale, cells) <= _CLEAR * rows
            wanted.append((0, parent, block) if is_clear else (parent, block))
        return dict(zip(parents, self.measure(wanted, rho), strict=True))

    def measure(self, wanted: Sequence[Axes], rho: float) -> list[NoisyTable]:
        """Count the levels of a few blocks at a time, for ρ in all."""
        if not wanted:
            return []
        parts = np.array(
            [
                float(math.prod(self.levels[block] for block in blocks)) ** _POWER
                for blocks in wanted
            ]
        )
        shares = parts / parts.sum()
        noisy = []
        for blocks, table, share in zip(
            wanted,
            self.exact(wanted),
            shares,
            strict=True,
        ):
            scale = scale_of(rho * share, self.sensitivity)
            spent = Spent(
                mechanism="discrete Gaussian",
                measured=" × ".join(self.names[block] for block in blocks),
                cells=table.size,
                sensitivity=self.sensitivity,
                scale=scale,
            )
            noisy.append(NoisyTable(self.noise.counts(table, scale), spent))
        return noisy


def choose_columns(
    counter: NoisyCounter,
    root: Reals,
    few: int,
    rho: float,
) -> tuple[list[int], list[Spent]]:
    """Choose a few columns that say most about the root, of about these counts.

    ρ is for choosing and for measuring them.
    """
    waiting = list(range(1, len(counter.levels)))
    chosen = []
    if few >= len(waiting):
        return waiting, []
    p = np.floor(root / root.sum() * _GRID / 2)[:, None] * 2 / _GRID
    noise = scale_of(rho * (1 - _FOR_COLUMNS) / few, counter.sensitivity)
    error = _ERROR_SHARE / 2 * expected_error(noise, 1)
    tables = counter.exact([(0, block) for block in waiting])
    scores = [
        float(np.abs(t - p * t.sum(axis=0)).sum() / 2 - _on_grid(error * t.size))
        for t in tables
    ]
    measured = f"which column to count with {counter.names[0]}"
    spent = []
    for _ in range(few):
        still = [scores[block - 1] for block in waiting]
        best, look = counter.choose(still, rho * _FOR_COLUMNS / few, measured)
        spent.append(look)
        chosen.append(waiting.pop(best))
    return sorted(chosen), spent


def choose_hub(
    counter: NoisyCounter,
    expected: Expected,
    worth: Mapping[int, float],
    *,
    rhos: Rhos,
) -> tuple[int, list[Spent]]:
    """Choose a block that all others are measured with, or none (0), and its cost.

    The score of a block is the mean of the scores of its pairs with all others, times
    what it is ``worth``, a public number from 0 to 1. A mean changes by no more than
    what it is made of. The score of none is zero. ``rhos`` are for choosing it and for
    measuring all pairs with it.
    """
    root, *sizes = counter.levels
    most = min(_LARGEST_HUB, _LARGEST_FAMILY // (root * math.prod(sorted(sizes)[-2:])))
    able = [block for block in worth if 1 < counter.levels[block] <= most]
    others = len(sizes) - 1
    if others < 2 or not able or not rhos[1]:
        return 0, []
    scores = _scores(
        counter,
        expected,
        worth,
        rho=rhos[1] / others,
        share=_HUB_ERROR_SHARE,
    )
    means = [
        sum(scores[pair] for pair in scores if block in pair) / others * worth[block]
        for block in able
    ]
    measured = "which column all others depend on"
    chosen, spent = counter.choose([0.0, *_on_grid(means)], rhos[0], measured)
    return (0, *able)[chosen], [spent]


def _scores(
    counter: NoisyCounter,
    expected: Expected,
    blocks: Iterable[int],
    *,
    rho: float,
    share: float,
) -> dict[Pair, float]:
    """How far the rows are from what is expected of each pair.

    Less a share of the error of measuring it for ρ.
    """
    scores: dict[Pair, float] = {}
    pairs = list(combinations(blocks, 2))
    scale = scale_of(rho, counter.sensitivity)
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        for pair, table in zip(some, counter.exact(some), strict=True):
            error = _on_grid(share * expected_error(scale, table.size))
            scores[pair] = float(np.abs(table - _on_grid(expected(pair))).sum() - error)
    return scores


def choose_edges(
    counter: NoisyCounter,
    expected: Expected,
    blocks: Iterable[int],
    forced: Sequence[Pair],
    *,
    rhos: Rhos,
) -> tuple[list[Pair], list[Spent]]:
    """Choose the edges of a tree of these blocks, one by one, and say what each cost.

    ``forced`` pairs are taken first if a tree allows it; they cost nothing, because
    they do not depend on the rows. ``rhos`` are for choosing and for measuring them.
    """
    from scipy.cluster.hierarchy import DisjointSet

    forest = DisjointSet(blocks)
    edges = [pair for pair in forced if {*pair} <= {*forest} and forest.merge(*pair)]
    missing = forest.n_subsets - 1
    if missing <= 0 or not rhos[1]:
        return edges, []
    rho = rhos[1] / (missing + len(edges))
    scores = _scores(
        counter,
        expected,
        forest,
        rho=rho,
        share=_ERROR_SHARE,
    )
    spent = []
    measured = "which pair of columns to measure"
    for _ in range(missing):
        waiting = [pair for pair in scores if not forest.connected(*pair)]
        still = [scores[pair] for pair in waiting]
        best, look = counter.choose(still, rhos[0] / missing, measured)
        spent.append(look)
        edges.append(waiting[best])
        forest.merge(*edges[-1])
    return edges, spent


def expected_error(scale: float, cells: float) -> float:
    """What Gaussian noise adds to Σ |differences| over so many cells."""
    return math.sqrt(2 / math.pi) * scale * cells


def _on_grid(values: Any) -> Any:
    """Round down to a multiple of 2⁻²⁰."""
    return np.floor(np.asarray(values) * _GRID) / _GRID


def parents_of(edges: Sequence[Pair], blocks: Sequence[int]) -> dict[int, int]:
    """Parent of each block, parents first; 0 at the top: the one with most neighbours.

    The closer to the top a block is, the earlier it comes.
    """
    size = max(blocks, default=0) + 1
    gain = np.zeros((size, size))
    for edge in edges:
        gain[edge] = 1.0
        gain[0, list(edge)] += 1 / size  # less than an edge
    parents = spanning_parents(gain, ())

    def depth(block: int) -> int:
        return 1 + depth(parents[block - 1]) if block else 0

    return {block: parents[block - 1] for block in sorted(blocks, key=depth)}
