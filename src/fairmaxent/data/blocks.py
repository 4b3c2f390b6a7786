"""Blocks: the attributes as the model sees them.

A block is one attribute, or several pooled into one alphabet (their cross product). Block 0, the *root*,
always pools the outcome with the protected attributes, so that every fairness statement is a statement
about one block. The other attributes are blocks of their own.

Vectors over the *levels* of all blocks, one block after the other, are the common currency of priors
and features: a potential per level goes in, a probability per level comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals


@dataclass(frozen=True)
class Blocks:
    """A partition of the attributes into blocks, root first."""

    sizes: tuple[int, ...]  # levels of each attribute
    members: tuple[tuple[int, ...], ...]  # attributes of each block

    @classmethod
    def rooted(cls, sizes: Sequence[int], root: Sequence[int]) -> Blocks:
        """Pool the ``root`` attributes, in that order, and leave every other attribute on its own."""
        others = [(index,) for index in range(len(sizes)) if index not in root]
        return cls(tuple(sizes), (tuple(root), *others))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each block."""
        return tuple(int(np.prod([self.sizes[index] for index in block])) for block in self.members)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each block's levels stand in a vector over all levels."""
        ends = np.cumsum((0, *self.levels))
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @cached_property
    def width(self) -> int:
        """Length of a vector over the levels of all blocks."""
        return sum(self.levels)

    def shape(self, block: int) -> tuple[int, ...]:
        """Levels of each attribute pooled in ``block``."""
        return tuple(self.sizes[index] for index in self.members[block])

    def split(self, vector: Reals) -> list[Reals]:
        """Cut a vector over all levels into one view per block."""
        return [vector[part] for part in self.slices]

    def block_of(self, attribute: int) -> int:
        """Return the block that holds ``attribute``."""
        return next(number for number, block in enumerate(self.members) if attribute in block)

    def pool(self, codes: Codes) -> Codes:
        """Turn attribute codes, one column per attribute, into block codes, one column per block."""
        pooled = np.empty((len(codes), len(self.members)), dtype=np.min_scalar_type(max(self.levels)), order="F")
        for number, block in enumerate(self.members):
            pooled[:, number] = ravel(codes[:, list(block)], self.shape(number))
        return pooled

    def unpool(self, pooled: Codes) -> Codes:
        """Undo :meth:`pool`."""
        codes = np.empty((len(pooled), len(self.sizes)), dtype=np.min_scalar_type(max(self.sizes)), order="F")
        for number, block in enumerate(self.members):
            if len(block) == 1:
                codes[:, block[0]] = pooled[:, number]
                continue
            digits = np.unravel_index(pooled[:, number].astype(np.intp), self.shape(number))
            for attribute, column in zip(block, digits, strict=True):
                codes[:, attribute] = column
        return codes

    def allowed_levels(self, allowed: Mapping[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Say which levels of each block agree with the ``allowed`` levels of some attributes."""
        result = np.ones(self.width, dtype=bool)
        for attribute, levels in allowed.items():
            number = self.block_of(attribute)
            axis = self.members[number].index(attribute)
            result[self.slices[number]] &= _along(levels, self.shape(number), axis)
        return result

    def spread(self, values: Mapping[int, Reals]) -> Reals:
        """Sum values of the levels of some attributes over the levels of the blocks that hold them."""
        result = np.zeros(self.width)
        for attribute, levels in values.items():
            number = self.block_of(attribute)
            axis = self.members[number].index(attribute)
            result[self.slices[number]] += _along(levels, self.shape(number), axis)
        return result


def _along(values: NDArray[Any], shape: Sequence[int], axis: int) -> NDArray[Any]:
    """Repeat values of one axis over a whole table, flattened."""
    column = values.reshape([-1 if position == axis else 1 for position in range(len(shape))])
    return np.broadcast_to(column, shape).ravel()


def ravel(codes: Codes, shape: Sequence[int]) -> NDArray[np.intp]:
    """Number the cells of a table of ``shape`` in C order, for rows of coordinates."""
    flat = codes[:, 0].astype(np.intp) if len(shape) else np.zeros(len(codes), dtype=np.intp)
    for column, size in zip(codes.T[1:], shape[1:], strict=True):
        flat *= size
        flat += column
    return flat


def mask(allowed: NDArray[np.bool_]) -> Reals:
    """Potentials that leave allowed levels alone and give the others probability zero."""
    return np.where(allowed, 0.0, -np.inf)
