"""The problem: a survey, the margins it should have, and which of them may be missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Mask, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import tally
from fairmaxent.raking.bounds import Bounds
from fairmaxent.raking.dual import RakingDual
from fairmaxent.raking.targets import MarginTarget


@dataclass(frozen=True, eq=False)
class RakingProblem:
    """Cells with their masses, margins, bounds, and the margins that may be missed."""

    margins: tuple[MarginTarget, ...]
    masses: Reals  # the share of each cell of the survey in the old weights
    bounds: Bounds
    relaxed: frozenset[int] = frozenset()  # positions of the margins that may be missed

    @cached_property
    def blocks(self) -> Blocks:
        """One block per margin."""
        return Blocks(tuple(len(margin.wanted) for margin in self.margins), _each(len(self.margins)))

    @cached_property
    def codes(self) -> Codes:
        """(cells, margins): the level that each cell has in each margin."""
        return np.asfortranarray(np.column_stack([margin.cells for margin in self.margins]))

    @cached_property
    def wanted(self) -> Reals:
        """The wanted share of each level, one margin after the other."""
        return np.concatenate([margin.wanted for margin in self.margins])

    @cached_property
    def used(self) -> Mask:
        """The cells that may get weight: they have some, and no margin that must be met wants their level at zero."""
        used = self.masses > 0
        if self.bounds.low == 0:
            for number, margin in enumerate(self.margins):
                if number not in self.relaxed:
                    used &= margin.wanted[margin.cells] > 0
        return used

    def dual(self) -> RakingDual:
        """The dual over the cells that may get weight."""
        return RakingDual(self.blocks, self.codes[self.used], self.masses[self.used], self.wanted, self.bounds)

    def restricted(self, margins: Sequence[int]) -> RakingProblem:
        """Ask for some of the margins only; cells that these do not tell apart are merged."""
        chosen = [self.margins[number] for number in margins]
        _, first, cell = np.unique(
            np.column_stack([margin.cells for margin in chosen]), axis=0, return_index=True, return_inverse=True
        )
        merged = tuple(replace(margin, cells=margin.cells[first]) for margin in chosen)
        return RakingProblem(merged, tally(cell.reshape(-1), self.masses, len(first)), self.bounds)

    def level_sums(self, shares: Reals) -> list[Reals]:
        """Sum shares of the cells by the levels of each margin."""
        return [tally(margin.cells, shares, len(margin.wanted)) for margin in self.margins]

    def describe(self, level: int) -> str:
        """Name a level by its position among the levels of all margins."""
        number = next(number for number, part in enumerate(self.blocks.slices) if level < part.stop)
        return self.margins[number].describe(level - self.blocks.slices[number].start)


def _each(count: int) -> tuple[tuple[int], ...]:
    return tuple((number,) for number in range(count))


def expanded(factors: Reals, used: NDArray[np.bool_]) -> Reals:
    """Factors of all cells, zero for those that get no weight."""
    result = np.zeros(len(used))
    result[used] = factors
    return result
