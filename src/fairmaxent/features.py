"""Features φ: what of a level the target speaks about.

An attribute enters by one indicator per level (less a reference level, so that the Hessian is regular), or
by its value alone, standardised (a *moment* feature). Features of a block depend on its level only, so
they form one matrix over the levels of all blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from fairmaxent.blocks import Blocks, mask
from fairmaxent.table import Reals


@dataclass(frozen=True)
class Features:
    """φ as a matrix over levels, with the levels that are possible at all."""

    blocks: Blocks
    matrix: csr_array  # (levels, features)
    possible: NDArray[np.bool_]  # levels not removed by a target of zero

    @property
    def count(self) -> int:
        """d: the number of features."""
        return int(self.matrix.shape[1])

    def potentials(self, multipliers: Reals) -> Reals:
        """⟨λ, φ⟩ of each level, −∞ where the level was removed."""
        return np.asarray(self.matrix @ multipliers) + mask(self.possible)

    def mean(self, levels: Reals) -> Reals:
        """E[φ] from the probability of each level."""
        return np.asarray(levels @ self.matrix)

    def variance(self, levels: Reals) -> Reals:
        """Var[φ] of each feature on its own, from the probability of each level."""
        return np.asarray(levels @ self.matrix**2) - self.mean(levels) ** 2

    def covariance(self, levels: Reals, pairs: Reals) -> Reals:
        """Cov[φ] from the probabilities of levels and pairs of levels."""
        centred = pairs - np.outer(levels, levels)
        return np.asarray((centred @ self.matrix).T @ self.matrix)


def cell_features(blocks: Blocks, moments: Sequence[Reals | None], levels: Reals) -> Features:
    """Exact mode: the root enters by one indicator per cell, so its whole table is prescribed.

    ``moments`` holds for each attribute its scores where it enters as a moment, else None; ``levels`` is the
    wanted probability of each level. Levels wanted at probability zero are removed.
    """
    columns = [_indicators(blocks, 0, levels), *_attribute_features(blocks, moments, levels)]
    return _assemble(blocks, columns, levels)


def attribute_features(blocks: Blocks, moments: Sequence[Reals | None], levels: Reals) -> Features:
    """Build the paper's own mode: every attribute enters by itself, also those pooled in the root."""
    columns = [*_root_features(blocks, moments, levels), *_attribute_features(blocks, moments, levels)]
    return _assemble(blocks, columns, levels)


def _assemble(blocks: Blocks, columns: Sequence[csr_array], levels: Reals) -> Features:
    matrix = csr_array(hstack([csr_array((blocks.width, 0)), *columns], format="csr"))
    return Features(blocks, matrix, levels > 0)


def _attribute_features(blocks: Blocks, moments: Sequence[Reals | None], levels: Reals) -> list[csr_array]:
    result = []
    for number, (attribute,) in enumerate(blocks.members[1:], start=1):
        scores = moments[attribute]
        if scores is None:
            result.append(_indicators(blocks, number, levels))
        else:
            result.append(_place(blocks, number, _moment(scores, levels[blocks.slices[number]])))
    return result


def _root_features(blocks: Blocks, moments: Sequence[Reals | None], levels: Reals) -> list[csr_array]:
    """Features of the root's attributes, each a function of the cell through its own level."""
    shape = blocks.shape(0)
    table = levels[blocks.slices[0]].reshape(shape)
    result = []
    for axis, attribute in enumerate(blocks.members[0]):
        own = table.sum(axis=tuple(other for other in range(len(shape)) if other != axis))
        scores = moments[attribute]
        block = np.eye(len(own))[:, _all_but_reference(own)] if scores is None else _moment(scores, own)
        level_of_cell = np.unravel_index(np.arange(table.size), shape)[axis]
        result.append(_place(blocks, 0, block[level_of_cell]))
    return result


def _indicators(blocks: Blocks, number: int, levels: Reals) -> csr_array:
    """One indicator per possible level but the reference, for a whole block."""
    part = blocks.slices[number]
    kept = _all_but_reference(levels[part])
    ones = np.ones(len(kept))
    return csr_array((ones, (part.start + kept, np.arange(len(kept)))), shape=(blocks.width, len(kept)))


def _all_but_reference(levels: Reals) -> NDArray[np.intp]:
    """Possible levels but the likeliest, which is the best conditioned reference."""
    kept = levels > 0
    kept[np.argmax(levels)] = False
    return np.flatnonzero(kept)


def _moment(scores: Reals, levels: Reals) -> Reals:
    """Standardised value of each level; a level without value (missing) gets an indicator of its own."""
    absent = np.isnan(scores)
    values = np.where(absent, 0.0, scores)
    mass = np.where(absent, 0.0, levels)
    mean = (mass @ values) / mass.sum() if mass.sum() > 0 else 0.0
    spread = np.sqrt((mass @ (values - mean) ** 2) / mass.sum()) if mass.sum() > 0 else 0.0
    if spread == 0:
        spread = 1.0
    standard = np.where(absent, 0.0, (values - mean) / spread)
    columns = [standard] if np.ptp(standard) > 0 else []
    if absent.any() and not absent.all() and mass.sum() < levels.sum():
        columns.append(absent.astype(np.float64))
    return np.column_stack(columns) if columns else np.empty((len(scores), 0))


def _place(blocks: Blocks, number: int, block: Reals) -> csr_array:
    """Put a block's feature matrix at its place among the levels of all blocks."""
    part = blocks.slices[number]
    rows, columns = np.nonzero(block)
    return csr_array((block[rows, columns], (part.start + rows, columns)), shape=(blocks.width, block.shape[1]))
