"""Measure: for which groupings and outcomes the rates of a table are taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.roles import GroupsOption, Roles
from fairmaxent.fairness.rates import Grouping, representation_rate, statistical_rate

ByGrouping = dict[str, float | None]
Rates = dict[str, ByGrouping]
MissingOption = Literal["keep", "compare"]


@dataclass(frozen=True)
class Measure:
    """The groupings that are compared, their names, the favourable outcomes, and levels that are not compared."""

    groupings: tuple[Grouping, ...]
    names: tuple[str, ...]
    favourable: tuple[int, ...]
    left_out: tuple[tuple[int, int], ...] = ()  # axis and level of missing values that are not compared

    @classmethod
    def of(
        cls,
        roles: Roles,
        *,
        groups: GroupsOption = "each",
        favourable: object = None,
        missing: MissingOption = "compare",
    ) -> Measure:
        """Compare the protected columns one by one or jointly, for the favourable outcomes (None: all)."""
        groupings = roles.groupings(groups)
        left_out = {
            axis: attribute.missing
            for axis, attribute in enumerate(roles.attributes)
            if missing == "keep" and attribute.missing is not None
        }
        chosen = roles.favourable_levels(favourable)
        if favourable is None:
            chosen = tuple(level for level in chosen if level != left_out.get(0))
        elif left_out.get(0) in chosen:  # whoever calls it favourable wants to compare it
            del left_out[0]
        names = tuple(map(roles.grouping_name, groupings))
        return cls(groupings, names, chosen, tuple(left_out.items()))

    def groups_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """Return a table, or a stack of them, without the groups of this grouping that are not compared."""
        result = tables.copy()
        for axis, level in self.left_out:
            if axis in grouping:
                self._front(result, axis)[level] = 0.0
        return result

    def outcomes_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """Return the same, also without the rows that have no outcome: they do not count in its rates."""
        return self.with_outcome(self.groups_compared(tables, grouping))

    def with_outcome(self, tables: Reals) -> Reals:
        """Return a table, or a stack of them, without the rows whose outcome is missing and not compared."""
        result = tables.copy()
        for axis, level in self.left_out:
            if axis == 0:
                self._front(result, axis)[level] = 0.0
        return result

    def rates(self, table: Reals) -> Rates:
        """Both rates of a table, by grouping."""
        return {
            "representation_rate": self._each(
                lambda grouping: representation_rate(self.groups_compared(table, grouping), grouping)
            ),
            "statistical_rate": self._each(
                lambda grouping: statistical_rate(self.outcomes_compared(table, grouping), grouping, self.favourable)
            ),
        }

    def _front(self, tables: Reals, axis: int) -> Reals:
        """A view of the tables with one axis first; the axes of a table are the last ones of a stack."""
        axes = 1 + max(max(grouping) for grouping in self.groupings)
        return np.moveaxis(tables, axis - axes, 0)

    def _each(self, rate: Callable[[Grouping], float]) -> dict[str, float | None]:
        return {name: float(rate(grouping)) for name, grouping in zip(self.names, self.groupings, strict=True)}
