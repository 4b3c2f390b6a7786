"""Measure: how the rates of a table are taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairmaxent.data.arrays import Reals
from fairmaxent.data.roles import GroupsOption, Roles
from fairmaxent.fairness.rates import representation_rate, statistical_rate

ByGrouping = dict[str, float | None]
Rates = dict[str, ByGrouping]


@dataclass(frozen=True)
class Measure:
    """How the rates of a table are taken: which groupings, which outcomes."""

    groupings: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    favourable: tuple[int, ...]

    @classmethod
    def of(cls, roles: Roles, *, groups: GroupsOption = "each", favourable: object = None) -> Measure:
        """Take the rates of the given columns as the user asked."""
        groupings = roles.groupings(groups)
        return cls(groupings, tuple(map(roles.grouping_name, groupings)), roles.favourable_levels(favourable))

    def rates(self, table: Reals) -> Rates:
        """Both rates of a table, by grouping."""
        return {
            "representation_rate": self._each(lambda grouping: representation_rate(table, grouping)),
            "statistical_rate": self._each(lambda grouping: statistical_rate(table, grouping, self.favourable)),
        }

    def _each(self, rate: Callable[[tuple[int, ...]], float]) -> dict[str, float | None]:
        return {name: float(rate(grouping)) for name, grouping in zip(self.names, self.groupings, strict=True)}
