"""Profiles: everything that is known about a person except the outcome.

A profile is a distinct combination (x, z) of all columns except the outcome. Relabelling keeps how common each profile
is, p(x, z), and changes how often it has each outcome.
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
    """Distinct profiles in lexicographic order, and how much each counts with each outcome in a table."""

    blocks: Blocks
    codes: Codes  # (profiles, blocks): block codes, with the group z instead of the root
    counts: Reals  # (profiles, outcomes): n(x, z, y)
    profile_of_row: NDArray[np.intp]  # (distinct rows,): the profile of each row of the table
    outcomes: NDArray[np.intp]  # (distinct rows,): its outcome

    @classmethod
    def of(cls, table: Table, blocks: Blocks, counts: Reals) -> Profiles:
        """Take the outcome out of the rows of a table; ``counts`` is how much each row counts."""
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
            profile_of_row=merged.inverse,
            outcomes=outcome.astype(np.intp),
        )

    @classmethod
    def per_row(cls, table: Table, blocks: Blocks, counts: Reals) -> Profiles:
        """Like `of`, for models to learn from: counts are scaled to 1 per row on average, with any design weights."""
        return cls.of(table, blocks, counts * (table.size / counts.sum()))

    @property
    def groups(self) -> NDArray[np.intp]:
        """The group z of each profile, as one code for all protected attributes."""
        return self.codes[:, 0].astype(np.intp)

    @property
    def mass(self) -> Reals:
        """n(x, z): how much each profile counts over all outcomes."""
        return np.asarray(self.counts.sum(axis=1))

    def find(self, codes: Codes) -> NDArray[np.intp]:
        """Return the profile of each row of block codes, or -1 if there is none."""
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
    """Number of outcomes and number of groups; the root numbers its cells outcome by outcome."""
    outcomes, *protected = blocks.shape(0)
    return outcomes, math.prod(protected)
