"""Profiles: what is known of a person but the outcome.

A profile is a distinct combination (x, z) of everything but the outcome. Relabelling keeps how common each profile is,
p(x, z), and changes how often each outcome goes with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.table import Table, match_rows, tally


@dataclass(frozen=True, eq=False)
class Profiles:
    """Distinct profiles in lexicographic order, and what a table counts of each with each outcome."""

    blocks: Blocks
    codes: Codes  # (profiles, blocks): block codes, the group z in place of the root
    counts: Reals  # (profiles, outcomes): n(x, z, y)
    places: NDArray[np.intp]  # (distinct rows,): the profile of each row of the table
    outcomes: NDArray[np.intp]  # (distinct rows,): its outcome

    @classmethod
    def of(cls, table: Table, blocks: Blocks, counts: Reals) -> Profiles:
        """Take the outcome out of the rows of a table that count as ``counts`` says."""
        outcomes, groups = root_shape(blocks)
        codes = table.codes.copy(order="F")
        outcome, codes[:, 0] = np.divmod(table.codes[:, 0], groups)
        merged = Table.compress(codes, (groups, *blocks.levels[1:]))
        cells = merged.inverse * outcomes + outcome
        size = len(merged.codes)
        return cls(
            blocks=blocks,
            codes=merged.codes,
            counts=tally(cells, counts, size * outcomes).reshape(size, outcomes),
            places=merged.inverse,
            outcomes=outcome.astype(np.intp),
        )

    @classmethod
    def per_row(cls, table: Table, blocks: Blocks, counts: Reals) -> Profiles:
        """Like `of`, with counts scaled to 1 per row on average, whatever the design weights are: to learn from."""
        return cls.of(table, blocks, counts * (table.size / counts.sum()))

    @property
    def groups(self) -> NDArray[np.intp]:
        """The group z of each profile, all protected attributes together."""
        return self.codes[:, 0].astype(np.intp)

    @property
    def mass(self) -> Reals:
        """n(x, z): what each profile counts in all."""
        return np.asarray(self.counts.sum(axis=1))

    def find(self, codes: Codes) -> NDArray[np.intp]:
        """Return the profile of each row of block codes, -1 where there is none."""
        _, groups = root_shape(self.blocks)
        rows = codes.copy(order="F")
        rows[:, 0] = codes[:, 0] % groups
        return match_rows(self.codes, rows, (groups, *self.blocks.levels[1:]))

    def labelled(self) -> Codes:
        """Every profile once per outcome, as rows of block codes in lexicographic order: outcome by outcome."""
        outcomes, groups = root_shape(self.blocks)
        codes = np.empty((outcomes * len(self.codes), self.codes.shape[1]), dtype=self.codes.dtype, order="F")
        for outcome in range(outcomes):
            part = slice(outcome * len(self.codes), (outcome + 1) * len(self.codes))
            codes[part] = self.codes
            codes[part, 0] += self.codes.dtype.type(outcome * groups)
        return codes


def root_shape(blocks: Blocks) -> tuple[int, int]:
    """Number of outcomes, and of groups: the root numbers its cells outcome by outcome."""
    outcomes, *protected = blocks.shape(0)
    return outcomes, math.prod(protected)
