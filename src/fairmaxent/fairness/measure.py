"""Measure: for which groupings and outcomes the rates of a table are taken."""

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
    """The groupings that are compared, their names, and the favourable outcomes."""

    groupings: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    favourable: tuple[int, ...]

    @classmethod
    def of(cls, roles: Roles, *, groups: GroupsOption = "each", favourable: object = None) -> Measure:
        """Compare the protected columns one by one or jointly, for the favourable outcomes (None: all)."""
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
