"""Edges: which pairs of columns are measured, chosen privately.

The score of a pair is how far the rows are from what the model without it says: Σ |n(a, b) − m(a, b)| over the levels
of both columns, where m is made of noisy tables only. Adding or removing one row changes one n(a, b) by one, and with
it the score by one at most; m stays. Then a third of the error that the noise of measuring the pair is expected to have
is subtracted (as in AIM: McKenna, Mullins, Sheldon and Miklau 2022); that is a public number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.privacy.ledger import Spent
from fairmaxent.privacy.measurements import NoisyCounter
from fairmaxent.privacy.mechanisms import scale_of

Pair = tuple[int, int]
Expected = Callable[[Pair], Reals]

_ERROR_SHARE = 1 / 3
_AT_ONCE = 64  # pairs counted in one pass over the rows


def choose_edges(
    counter: NoisyCounter,
    expected: Expected,
    *,
    forced: Sequence[Pair],
    choice_rho: float,
    pairs_rho: float,
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
