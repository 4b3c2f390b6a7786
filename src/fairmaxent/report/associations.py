"""Pairwise structure: how strongly two columns go together, in the data and in the fitted distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.table import tally
from fairmaxent.fit.fit import Fit

# More columns than this do not fit into a heat map that anyone reads.
LARGEST_MAP = 25
MOST_LEVELS = 1000  # of a column that is compared with others: a table of each pair is made
_SHIFTS = 10

Matrix = tuple[tuple[float, ...], ...]
_Joint = Callable[[int, int], Reals]


@dataclass(frozen=True)
class AssociationShift:
    """Cramér's V of two columns, before and after, and what chance alone makes of unrelated columns like these.

    Where many levels share few rows, or few rows count often, two columns look related though they are not: without a
    relation, χ² is (r − 1)(c − 1) on average, so V is about √((max(r, c) − 1) / n) for n effective rows.
    """

    first: str
    second: str
    before: float
    after: float
    chance: float  # before or after, whichever is more


@dataclass(frozen=True)
class Associations:
    """Cramér's V of each pair of columns in the data and in p*, one on the diagonal."""

    names: tuple[str, ...]
    left_out: int  # columns that the map has no room for
    before: Matrix
    after: Matrix
    shifts: tuple[AssociationShift, ...]  # that are more than chance


def associations(fit: Fit) -> Associations:
    """Compare the pairwise structure; of many columns, take those most related to outcome and groups."""
    rows = fit.distinct_rows
    codes = fit.roles.blocks.unpool(rows.codes).astype(np.intp)
    sizes, share = fit.domain.sizes, rows.counts / rows.total

    def in_data(first: int, second: int) -> Reals:
        cells = codes[:, first] * sizes[second] + codes[:, second]
        return tally(cells, share, sizes[first] * sizes[second]).reshape(sizes[first], sizes[second])

    chosen = _chosen(fit, in_data)
    names = [fit.domain.names[index] for index in chosen]
    before = _matrix(chosen, in_data)
    after = _matrix(chosen, lambda first, second: fit.distribution.joint([first, second]))
    return Associations(
        names=tuple(names),
        left_out=len(sizes) - len(chosen),
        before=tuple(map(tuple, before.tolist())),
        after=tuple(map(tuple, after.tolist())),
        shifts=_largest(names, before, after, _chance(fit, chosen, in_data)),
    )


def cramers_v(table: Reals) -> float:
    """√(χ² / (N·(min(rows, columns) − 1))) of a table, over the rows and columns that have mass (Cramér, 1946).

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 3), 1 / 6))
    (1.0, 0.0)
    """
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(kept.shape) < 2:
        return 0.0
    share = kept / kept.sum()
    expected = np.outer(share.sum(axis=1), share.sum(axis=0))
    chi_square = float(((share - expected) ** 2 / expected).sum())
    # Below what float64 can tell from zero, a root would make noise look like an association.
    chi_square = 0.0 if chi_square < 1e-15 else chi_square
    return float(min(1.0, np.sqrt(chi_square / (min(kept.shape) - 1))))


def _chosen(fit: Fit, in_data: _Joint) -> list[int]:
    """Outcome and protected columns first, then the others by their strongest association with one of those."""
    root = list(fit.roles.root)[:LARGEST_MAP]
    small = [index for index, size in enumerate(fit.domain.sizes) if size <= MOST_LEVELS]
    others = [index for index in small if index not in fit.roles.root]
    room = LARGEST_MAP - len(root)
    if len(others) > room:
        strength = [max(cramers_v(in_data(index, column)) for column in root) for index in others]
        strongest = np.argsort(-np.round(strength, 12), kind="stable")[:room]
        others = sorted(others[index] for index in strongest)
    return [*root, *others]


def _matrix(chosen: Sequence[int], joint: _Joint) -> Reals:
    result = np.eye(len(chosen))
    for row, first in enumerate(chosen):
        for column, second in enumerate(chosen[:row]):
            result[row, column] = result[column, row] = cramers_v(joint(first, second))
    return result


def _chance(fit: Fit, chosen: Sequence[int], in_data: _Joint) -> Reals:
    """What chance makes of V for each pair, in the data or in p*, of which only the rows are subject to chance."""
    levels = np.array([np.count_nonzero(in_data(index, chosen[0]).sum(axis=1)) for index in chosen])
    degrees = np.maximum(np.maximum.outer(levels, levels) - 1, 0)
    copied = fit.certificate.copied_share
    share = 1.0 if copied is None or fit.certificate.privacy is not None else copied
    before, after = (np.sqrt(degrees / rows) for rows in (fit.table.worth, fit.certificate.effective_rows))
    return np.asarray(np.minimum(np.maximum(before, share * after), 1.0))


def _largest(names: Sequence[str], before: Reals, after: Reals, chance: Reals) -> tuple[AssociationShift, ...]:
    """The pairs that changed most, of those that changed by more than chance explains."""
    rows, columns = np.nonzero(np.triu(np.abs(after - before) > chance, 1))
    order = np.argsort(-np.round(np.abs(after - before)[rows, columns], 12), kind="stable")[:_SHIFTS]
    return tuple(
        AssociationShift(names[i], names[j], float(before[i, j]), float(after[i, j]), float(chance[i, j]))
        for i, j in zip(rows[order], columns[order], strict=True)
    )
