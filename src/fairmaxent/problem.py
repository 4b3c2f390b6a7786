"""The problem: the data in codes, and the rates asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.blocks import Blocks
from fairmaxent.certificate import Measure
from fairmaxent.errors import ForbiddenError
from fairmaxent.fairness import FairTable, fair_table
from fairmaxent.features import root_marginals
from fairmaxent.roles import Roles
from fairmaxent.rules import Rule, allowed_roots
from fairmaxent.table import Codes, Reals, Table, tally

# A cell without rows that must have mass counts as half a row.
HALF_A_ROW = 0.5


@dataclass(frozen=True)
class Problem:
    """Everything that the fair table, the prior, the target and the certificate are made from."""

    roles: Roles
    table: Table  # distinct rows as block codes
    measure: Measure
    representation: tuple[float | None, ...]  # ρ of each grouping
    statistical: tuple[float | None, ...]  # σ of each grouping
    rules: tuple[Rule, ...] = ()

    @cached_property
    def blocks(self) -> Blocks:
        """Outcome and protected attributes pooled as the root, the others on their own."""
        return self.roles.blocks

    @cached_property
    def counts(self) -> Reals:
        """n_α of the distinct rows; rows that a rule forbids count zero."""
        broken = np.zeros(len(self.table.codes), dtype=bool)
        for rule in self.rules:
            broken |= rule.breaks(self.table.codes)
        counts = np.where(broken, 0.0, self.table.counts)
        self._refuse_lost_levels(counts)
        return counts

    @cached_property
    def empirical(self) -> Reals:
        """e(y, z): the data's table of outcome and protected attributes, one axis each."""
        cells = tally(self.table.codes[:, 0], self.counts, self.blocks.levels[0])
        return np.asarray(cells / cells.sum()).reshape(self.blocks.shape(0))

    def _refuse_lost_levels(self, counts: Reals) -> None:
        """Refuse rules that leave no row of a group or an outcome: there would be nothing to be fair to."""
        cells = self.table.codes[:, 0]
        before, after = (
            root_marginals(self.blocks, tally(cells, weights, self.blocks.levels[0]))
            for weights in (self.table.counts, counts)
        )
        for attribute, old, new in zip(self.roles.root, before, after, strict=True):
            lost = np.flatnonzero((old > 0) & (new == 0))
            if len(lost):
                own = self.roles.domain.attributes[attribute]
                raise ForbiddenError(
                    f"forbid leaves no row with {own.name} = {own.labels[lost[0]]}, a level of the outcome or a "
                    "protected column; take those rows out of the table, or drop the rule"
                )

    def fair_table(self, chosen: Mapping[int, Reals | None], *, may_fill: bool) -> FairTable:
        """t(y, z): the closest table with the wanted rates; ``chosen`` are the user's own marginals by attribute."""
        own = {axis: chosen.get(attribute) for axis, attribute in enumerate(self.roles.root)}
        return fair_table(
            self.empirical,
            groupings=self.measure.groupings,
            representation=self.representation,
            statistical=self.statistical,
            favourable=self.measure.favourable,
            shares={axis: share for axis, share in own.items() if axis and share is not None},
            outcome_shares=own[0],
            allowed=allowed_roots(self.rules, self.blocks.levels[0]).reshape(self.blocks.shape(0)),
            fill=HALF_A_ROW / len(self.table.inverse) if may_fill else 0.0,
            describe=self.roles.describe_cell,
        )


def compress(roles: Roles, codes: Codes, weight: Reals | None = None) -> Table:
    """Distinct rows of attribute codes, as block codes."""
    return Table.compress(roles.blocks.pool(codes), roles.blocks.levels, weight)
