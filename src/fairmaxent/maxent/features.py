"""Features φ: the properties of a level that the target is about.

An attribute enters by one indicator per level (less a reference level, so that the
Hessian is regular), or by its value alone, standardised (a *moment* feature). Features
of a block depend on its level only, so they form one sparse matrix over the levels of
all blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from fairmaxent.data.table import Blocks, Indices, Mask, Reals, marginal, tally


@dataclass(frozen=True, eq=False)
class Features:
    """φ as a sparse matrix over levels, feature by feature."""

    blocks: Blocks
    starts: Indices  # first entry of each feature; a feature has at least one entry
    levels: Indices  # level of each entry
    values: Reals  # φ of that level
    possible: Mask  # levels not removed by a target of zero

    @property
    def count(self) -> int:
        """d: the number of features."""
        return len(self.starts)

    @cached_property
    def lengths(self) -> Indices:
        """Number of entries of each feature."""
        return np.diff(np.append(self.starts, len(self.levels)))

    def potentials(self, multipliers: Reals) -> Reals:
        """⟨λ, φ⟩ of each level, −∞ for removed levels."""
        entries = self.values * np.repeat(multipliers, self.lengths)
        spread = tally(self.levels, entries, self.blocks.width)
        return np.where(self.possible, spread, -np.inf)

    def mean(self, levels: Reals) -> Reals:
        """E[φ] from the probability of each level."""
        return self._sum(levels, self.values)

    def variance(self, levels: Reals) -> Reals:
        """Var[φ] of each feature on its own, from the probability of each level."""
        return self._sum(levels, self.values**2) - self.mean(levels) ** 2

    def covariance(self, levels: Reals, pairs: Reals) -> Reals:
        """Cov[φ] from the probabilities of levels and pairs of levels."""
        half = self._sum(pairs - np.outer(levels, levels), self.values[:, None])
        return self._sum(half.T, self.values[:, None])

    def precondition(self, levels: Reals, vector: Reals) -> Reals:
        """Solve with the covariance of each block, as if blocks were independent.

        The indicators of a block have the covariance diag(p) − ppᵀ, whose inverse is
        diag(1/p) + 11ᵀ/p₀, with p₀ what the reference has left (Sherman and Morrison).
        Other features stand alone with their variance.
        """
        variance = self.variance(levels)
        alone = (self.lengths == 1) & (self.values[self.starts] == 1.0)
        share = np.where(alone, self.mean(levels), variance)
        smallest = 1e-12 * max(share.max(initial=0.0), 1e-300)
        result = vector / np.maximum(share, smallest)
        ends = np.array([part.stop for part in self.blocks.slices])
        block = np.searchsorted(ends, self.levels[self.starts], side="right")
        count = len(self.blocks.levels)
        left = 1.0 - tally(block[alone], share[alone], count)  # p₀ of each block
        total = tally(block[alone], vector[alone], count)
        together = total / np.maximum(left, smallest)
        return result + np.where(alone, together[block], 0.0)

    def prescribed(self) -> Mask:
        """Levels whose probability the target fixes.

        They are those of blocks with an indicator for all levels but the reference.
        """
        indicator = np.zeros(self.blocks.width, dtype=bool)
        indicator[self.levels[self.starts[self.lengths == 1]]] = True
        result = np.zeros(self.blocks.width, dtype=bool)
        for part in self.blocks.slices:
            needed = np.count_nonzero(self.possible[part]) - 1
            result[part] = np.count_nonzero(indicator[part]) == needed
        return result

    def over_levels(self) -> Any:
        """φ of each level: (features, levels), sparse."""
        from scipy import sparse

        features = np.repeat(np.arange(self.count), self.lengths)
        return sparse.csr_array(
            (self.values, (features, self.levels)),
            shape=(self.count, self.blocks.width),
        )

    def level_of(self, feature: int) -> int:
        """Return a level that the feature is about, to name it by."""
        return int(self.levels[self.starts[feature]])

    def _sum(self, per_level: Reals, values: Reals) -> Reals:
        """φᵀ·(something per level)."""
        if not self.count:
            return np.zeros((0, *per_level.shape[1:]))
        return np.add.reduceat(values * per_level[self.levels], self.starts)


def cell_features(
    blocks: Blocks, moments: Sequence[Reals | None], levels: Reals
) -> Features:
    """Exact mode: the root enters by one indicator per cell.

    So its complete table is prescribed. ``moments`` are the scores of attributes that
    enter as a moment; levels wanted at probability zero are removed.
    """
    root = _indicators(levels[blocks.slices[0]])
    others = _attribute_features(blocks, moments, levels)
    return _assemble(blocks, [root, *others], levels > 0)


def attribute_features(
    blocks: Blocks, moments: Sequence[Reals | None], levels: Reals
) -> Features:
    """The paper's mode: every attribute enters by itself, also those of the root.

    The target then says nothing about single cells of the root, so none is removed for
    a target of zero.
    """
    marginals = root_marginals(blocks, levels)
    level_of_cell = np.unravel_index(np.arange(blocks.levels[0]), blocks.shape(0))
    root = [
        _features_of(moments[attribute], share).dense()[level]
        for attribute, share, level in zip(
            blocks.members[0],
            marginals,
            level_of_cell,
            strict=True,
        )
    ]
    possible = levels > 0
    possible[blocks.slices[0]] = reduce(np.multiply.outer, marginals).ravel() > 0
    others = _attribute_features(blocks, moments, levels)
    return _assemble(blocks, [_Entries.of(np.hstack(root)), *others], possible)


def root_marginals(blocks: Blocks, levels: Reals) -> list[Reals]:
    """Share of each level of the attributes that are pooled in the root."""
    table = levels[blocks.slices[0]].reshape(blocks.shape(0))
    return [marginal(table, (axis,)) for axis in range(table.ndim)]


@dataclass(frozen=True, eq=False)
class _Entries:
    """The features of one block as a sparse matrix, feature by feature."""

    shape: tuple[int, int]  # levels × features
    features: Indices
    levels: Indices
    values: Reals

    @classmethod
    def of(cls, matrix: Reals) -> "_Entries":
        """Keep what is not zero."""
        features, levels = np.nonzero(matrix.T)
        rows, columns = matrix.shape
        return cls((rows, columns), features, levels, matrix.T[features, levels])

    def dense(self) -> Reals:
        """Write the zeros, too."""
        matrix = np.zeros(self.shape)
        matrix[self.levels, self.features] = self.values
        return matrix


def _assemble(blocks: Blocks, matrices: Sequence[_Entries], possible: Mask) -> Features:
    """Stack the features of all blocks into one sparse matrix, feature by feature."""
    starts = []
    levels = []
    values = []
    entries = 0
    for part, matrix in zip(blocks.slices, matrices, strict=True):
        starts.append(
            entries + np.searchsorted(matrix.features, np.arange(matrix.shape[1]))
        )
        levels.append(part.start + matrix.levels)
        values.append(matrix.values)
        entries += len(matrix.levels)
    return Features(
        blocks=blocks,
        starts=np.concatenate(starts),
        levels=np.concatenate(levels),
        values=np.concatenate(values),
        possible=possible,
    )


def _attribute_features(
    blocks: Blocks, moments: Sequence[Reals | None], levels: Reals
) -> list[_Entries]:
    """Features of the blocks of a single attribute."""
    return [
        _features_of(moments[attribute], levels[part])
        for (attribute,), part in zip(
            blocks.members[1:], blocks.slices[1:], strict=True
        )
    ]


def _features_of(scores: Reals | None, levels: Reals) -> _Entries:
    if scores is None:
        return _indicators(levels)
    return _Entries.of(_moment(scores, levels))


def _indicators(levels: Reals) -> _Entries:
    """One indicator per possible level but the likeliest.

    That one is the best conditioned reference.
    """
    kept = levels > 0
    kept[np.argmax(levels)] = False
    chosen = np.flatnonzero(kept)
    count = len(chosen)
    return _Entries((len(levels), count), np.arange(count), chosen, np.ones(count))


def _moment(scores: Reals, levels: Reals) -> Reals:
    """Standardised value of each level; a missing value has an indicator of its own."""
    absent = np.isnan(scores)
    mass = np.where(absent, 0.0, levels)
    values = np.where(absent, 0.0, scores)
    total = mass.sum() or 1.0
    mean = (mass @ values) / total
    spread = np.sqrt((mass @ (values - mean) ** 2) / total)
    columns = [np.empty((len(scores), 0))]
    if spread > 0:
        columns.append(np.where(absent, 0.0, (values - mean) / spread)[:, None])
    if 0 < total < levels.sum():
        columns.append(absent.astype(np.float64)[:, None])
    return np.hstack(columns)
