"""The data in codes, as every baseline uses them: with the Domain, roles and cells of the rest of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import check_seed
from fairmaxent.data.roles import Roles, check_roles, read_columns
from fairmaxent.data.table import Table, tally
from fairmaxent.engines.reading import read_domain
from fairmaxent.errors import InfeasibleError
from fairmaxent.fit.problem import compress


@dataclass(frozen=True, eq=False)
class CodedData:
    """A frame, the roles of its columns, and its distinct rows as block codes."""

    frame: nw.DataFrame[Any]
    roles: Roles
    table: Table
    random_state: int | None

    @classmethod
    def read(
        cls,
        frame: Any,
        outcome: str,
        protected: str | Sequence[str],
        *,
        domain: Domain | None,
        random_state: int | None,
    ) -> CodedData:
        """Encode the frame by the given domain, or by one learned from it."""
        check_seed(random_state)
        names = read_columns("protected", protected)
        check_roles(outcome, names, None)
        opened = frames.open_frame(frame)
        domain, codes = read_domain(opened, domain, weight=None, weights=None)
        roles = Roles.of(domain, outcome, names)
        return cls(opened, roles, compress(roles, codes), random_state)

    @property
    def blocks(self) -> Blocks:
        """The blocks: outcome and protected attributes pooled as the root, each other attribute by itself."""
        return self.roles.blocks

    @cached_property
    def cells(self) -> NDArray[np.integer]:
        """The cell (y, z) of each row."""
        return np.asarray(self.table.codes[:, 0][self.table.inverse])

    @cached_property
    def empirical(self) -> Reals:
        """P(y, z), outcome × joint groups of all protected columns."""
        cells = tally(self.table.codes[:, 0], self.table.counts, self.blocks.levels[0])
        return np.asarray(cells / cells.sum()).reshape(self.blocks.shape(0)[0], -1)

    @property
    def outcome_shares(self) -> Reals:
        """P(y)."""
        return np.asarray(self.empirical.sum(axis=1))

    @property
    def group_shares(self) -> Reals:
        """P(z) of each joint group."""
        return np.asarray(self.empirical.sum(axis=0))

    def refuse_empty_cells(self, wanted: Reals) -> None:
        """Refuse a wanted table with mass in a cell that has no rows, and name the cell."""
        empty = np.flatnonzero((wanted > 0) & (self.empirical <= 0))
        if len(empty):
            levels = np.unravel_index(int(empty[0]), self.blocks.shape(0))
            raise InfeasibleError(
                f"weights cannot reach the wanted table: {self.roles.describe_cell([int(level) for level in levels])} "
                "must have mass but has no rows. Merge levels, protect fewer columns, or use fairmaxent.debias."
            )
