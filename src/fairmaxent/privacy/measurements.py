"""Measurements: the only ways in which anything about the rows gets out, each with its cost.

The noise comes from OpenDP, whose samplers are exact and use the operating system's randomness, so that neither a seed
nor floating point gives it away. Each person is in exactly one cell of each table that is counted: adding or removing
one row changes one cell by one, so every table has the L2 sensitivity 1.

Which pairs of columns are measured is chosen privately. The score of a pair is how far the rows are from what the model
without it says: Σ |n(a, b) − m(a, b)| over the levels of both columns, where m is made of noisy tables only. Adding or
removing one row changes one n(a, b) by one, and with it the score by one at most; m stays. Then a third of the error
that the noise of measuring the pair is expected to have is subtracted (as in AIM: McKenna, Mullins, Sheldon and Miklau
2022); that is a public number.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from fairmaxent.data.table import Counted, Reals
from fairmaxent.errors import DependencyError, InputError
from fairmaxent.privacy.budget import Spent


class Noise(Protocol):
    """What protects the rows; tests put others in its place."""

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with noise of this standard deviation."""

    def choice(self, scores: Reals, scale: float) -> int:
        """The position of a score, each with probability ∝ e^{score/scale}."""


class OpenDP:
    """Noise from the library OpenDP."""

    def __init__(self) -> None:
        try:  # module by module: its prelude also imports everything that it can work with
            import opendp.domains
            import opendp.measurements
            import opendp.measures
            import opendp.metrics
            import opendp.mod
        except ImportError as error:
            raise DependencyError(
                "a private fit needs opendp, which is not installed; pip install 'fairmaxent[private]'"
            ) from error
        opendp.mod.enable_features("contrib")
        self._dp: Any = opendp

    def counts(self, table: Reals, scale: float) -> Reals:
        """Whole counts with discrete Gaussian noise."""
        dp, whole = self._dp, np.round(table).astype(np.int64)
        space = dp.domains.vector_domain(dp.domains.atom_domain(T="i64")), dp.metrics.l2_distance(T="f64")
        measure = dp.measurements.make_gaussian(*space, scale=scale)
        _check_cost(measure.map(1.0), scale)
        return np.array(measure(whole.ravel().tolist()), dtype=np.float64).reshape(table.shape)

    def choice(self, scores: Reals, scale: float) -> int:
        """The noisy maximum."""
        dp = self._dp
        scored = dp.domains.vector_domain(dp.domains.atom_domain(T="f64", nan=False))
        cost = dp.measures.zero_concentrated_divergence()
        measure = dp.measurements.make_noisy_max(scored, dp.metrics.linf_distance(T="f64"), cost, scale=scale)
        _check_cost(measure.map(1.0), scale)
        return int(measure(scores.tolist()))


def scale_of(rho: float) -> float:
    """The scale at which one look at what a person changes by one costs ρ = 1/(2·scale²); never less noise."""
    return math.nextafter(math.sqrt(1 / (2 * rho)), math.inf)


def _check_cost(stated: float, scale: float) -> None:
    """Refuse a library that accounts for its noise in another way than the ledger does."""
    if not math.isclose(stated, 1 / (2 * scale**2), rel_tol=1e-9):
        raise InputError(f"OpenDP charges {stated:.6g} for noise of scale {scale:.6g}, and the ledger another amount")


# Shares of the budget, chosen on public tables (Adult, German credit, COMPAS; see benchmarks/privacy.py): the table of
# outcome and groups, each column alone, each column with outcome and groups, the choice of pairs, the pairs.
SHARES = (0.02, 0.28, 0.38, 0.05, 0.27)
# Among tables of one kind, the sum of their expected errors is least if the budget grows like cells^(2/3).
_POWER = 2 / 3


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
    levels: tuple[int, ...]  # of each block
    names: tuple[str, ...]  # of each block
    noise: Noise

    def measure(self, wanted: Sequence[tuple[int, ...]], rho: float) -> list[NoisyTable]:
        """Count the levels of a few blocks at a time, for ρ in all."""
        if not wanted:
            return []
        shares = np.array([float(math.prod(self.levels[block] for block in blocks)) ** _POWER for blocks in wanted])
        scales = [scale_of(rho * share) for share in shares / shares.sum()]
        tables = self.table.tables(wanted, self.levels)
        names = (" × ".join(self.names[block] for block in blocks) for blocks in wanted)
        return [
            NoisyTable(self.noise.counts(table, scale), Spent("discrete Gaussian", name, table.size, 1.0, scale))
            for table, name, scale in zip(tables, names, scales, strict=True)
        ]


Pair = tuple[int, int]
Expected = Callable[[Pair], Reals]

_ERROR_SHARE = 1 / 3
_AT_ONCE = 64  # pairs counted in one pass over the rows


def choose_edges(
    counter: NoisyCounter, expected: Expected, *, forced: Sequence[Pair], choice_rho: float, pairs_rho: float
) -> tuple[list[Pair], tuple[Spent, ...]]:
    """Choose the edges of a tree of all blocks but the root, one by one, and say what each choice cost.

    ``forced`` pairs are taken first if a tree allows it; they cost nothing, because they do not depend on the rows.
    """
    blocks = range(1, len(counter.levels))
    forest = {block: block for block in blocks}
    edges = [pair for pair in forced if _join(forest, pair)]
    missing = len(blocks) - 1 - len(edges)
    if missing <= 0:
        return edges, ()
    each = scale_of(pairs_rho / (missing + len(edges)))
    scores = dict(_scores(counter, expected, list(combinations(blocks, 2)), each))
    scale, spent = scale_of(choice_rho / missing), []
    for _ in range(missing):
        open_pairs = [pair for pair in scores if _top(forest, pair[0]) != _top(forest, pair[1])]
        chosen = open_pairs[counter.noise.choice(np.array([scores[pair] for pair in open_pairs]), scale)]
        _join(forest, chosen)
        edges.append(chosen)
        spent.append(Spent("noisy maximum", "which pair of columns to measure", len(open_pairs), 1.0, scale))
    return edges, tuple(spent)


def _scores(counter: NoisyCounter, expected: Expected, pairs: list[Pair], scale: float) -> Iterator[tuple[Pair, float]]:
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        for pair, table in zip(some, counter.table.tables(some, counter.levels), strict=True):
            noise = math.sqrt(2 / math.pi) * scale * table.size
            yield pair, float(np.abs(table - expected(pair)).sum()) - _ERROR_SHARE * noise


def parents_of(edges: Sequence[Pair], blocks: int) -> list[int]:
    """Parent of blocks 1, 2, … if the tree is hung up at the block with the most neighbours; 0 if it has none."""
    near: dict[int, list[int]] = {block: [] for block in range(1, blocks)}
    for first, second in edges:
        near[first].append(second)
        near[second].append(first)
    parents = dict.fromkeys(near, -1)
    for top in sorted(near, key=lambda block: (-len(near[block]), block)):
        if parents[top] >= 0:
            continue
        parents[top] = 0
        waiting = [top]
        while waiting:
            block = waiting.pop()
            for other in near[block]:
                if parents[other] < 0:
                    parents[other] = block
                    waiting.append(other)
    return [parents[block] for block in range(1, blocks)]


def _top(forest: dict[int, int], block: int) -> int:
    while forest[block] != block:
        block = forest[block]
    return block


def _join(forest: dict[int, int], pair: Pair) -> bool:
    """Put two blocks into one tree; False if they are already."""
    first, second = (_top(forest, block) for block in pair)
    forest[first] = second
    return first != second
