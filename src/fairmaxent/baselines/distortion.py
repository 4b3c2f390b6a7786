"""δ: how far a changed row is from the original one, as a sum over the columns that may change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.roles import Roles

Steps = NDArray[np.intp]

_ORDERED = ("ordered", "numeric", "date")


@dataclass(frozen=True, eq=False)
class Distortion:
    """δ((x, y), (x̂, ŷ)) in whole steps; outcome first, then the columns that are not protected."""

    columns: tuple[int, ...]  # positions in the domain
    steps: tuple[Steps, ...]  # of each column: level × level

    @classmethod
    def of(cls, roles: Roles) -> Distortion:
        """Derive the steps of each column from its kind."""
        others = tuple(index for index in range(len(roles.domain.attributes)) if index not in roles.root)
        attributes = roles.domain.attributes
        outcome = _changes(attributes[roles.outcome].size)
        return cls((roles.outcome, *others), (outcome, *(level_steps(attributes[index]) for index in others)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return tuple(len(steps) for steps in self.steps)

    @property
    def largest(self) -> int:
        """The largest distance between any two rows, in steps."""
        return sum(int(steps.max()) for steps in self.steps)

    def count_within(self, codes: Codes, largest: int) -> int:
        """Count the pairs of a row and a target with δ ≤ ``largest`` exactly, without listing them.

        The number of targets at each distance is the product of the columns' polynomials, cut off at ``largest``.
        """
        bound = len(codes) * math.prod(self.sizes)
        integer = np.int64 if bound < 2**62 else object  # Python's integers if 64 bits could overflow
        targets = np.zeros((len(codes), largest + 1), dtype=integer)  # of each row, at each distance
        targets[:, 0] = 1
        for column, steps in zip(codes.T, self.steps, strict=True):
            at = np.stack([(steps == distance).sum(axis=1) for distance in range(largest + 1)], axis=1)[column]
            targets = np.stack(
                [
                    sum(targets[:, used] * at[:, distance - used] for used in range(distance + 1))
                    for distance in range(largest + 1)
                ],
                axis=1,
            )
        return int(targets.sum())

    def pairs_within(self, codes: Codes, largest: int) -> tuple[NDArray[np.intp], Codes, NDArray[np.intp]]:
        """List each row with each of its targets of δ ≤ ``largest``: position of the row, codes of the target, δ.

        The list grows column by column and never shrinks, because leaving a column unchanged costs nothing.
        """
        source, spent = np.arange(len(codes)), np.zeros(len(codes), dtype=np.intp)
        targets: list[NDArray[np.intp]] = []
        for column, steps in zip(codes.T, self.steps, strict=True):
            total = spent[:, None] + steps[column[source]]
            kept, level = np.nonzero(total <= largest)
            source, spent = source[kept], total[kept, level]
            targets = [*(done[kept] for done in targets), level]
        return source, np.stack(targets, axis=1), spent


def level_steps(attribute: Attribute) -> Steps:
    """δ of one column: distance in levels if they have an order, else 1 for any change; 1 from or to missing."""
    if attribute.kind not in _ORDERED:
        return _changes(attribute.size)
    levels = np.arange(attribute.size)
    steps = np.abs(levels[:, None] - levels)
    if attribute.missing is not None:
        away = _changes(attribute.size)
        steps[attribute.missing], steps[:, attribute.missing] = away[attribute.missing], away[:, attribute.missing]
    return np.asarray(steps)


def _changes(size: int) -> Steps:
    return np.asarray(1 - np.eye(size, dtype=np.intp))
