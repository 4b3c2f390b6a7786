"""Measure: for which groupings and outcomes the rates of a table are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fairmaxent.data.roles import GroupsOption, Roles, WithinOption, read_within
from fairmaxent.data.table import Reals
from fairmaxent.errors import LevelError, Option
from fairmaxent.fairness.rates import (
    Grouping,
    OutcomeGrouping,
    outcome_axis,
    representation_rate,
    statistical_rate,
)

ByGrouping = dict[str, float | None]
Rates = dict[str, ByGrouping]
MissingOption = Literal["ignore", "compare"]


@dataclass(frozen=True)
class Measure:
    """The groupings that are compared, their names, the favourable outcomes, and levels that are not compared.

    If groups are compared within strata, the last axes of every grouping are those of the strata.
    """

    groupings: tuple[Grouping, ...]
    names: tuple[str, ...]
    favourable: tuple[int, ...]
    left_out: tuple[tuple[int, int], ...] = ()  # axis and level of missing values that are not compared
    strata: int = 0  # how many axes the strata have
    outside: tuple[tuple[int, int], ...] = ()  # axis and level of strata that nobody asked to compare
    others: tuple[tuple[int, tuple[int, ...]], ...] = ()  # axis and favourable levels of each other outcome
    columns: tuple[str, ...] = field(default=(), compare=False)  # of each grouping

    def __post_init__(self) -> None:
        if self.others:  # the groupings of one outcome come after those of the other
            each = len(self.groupings) // (1 + len(self.others))
            axes = [axis for axis in (0, *(axis for axis, _ in self.others)) for _ in range(each)]
            pairs = zip(self.groupings, axes, strict=True)
            object.__setattr__(self, "groupings", tuple(OutcomeGrouping(*pair) for pair in pairs))

    @classmethod
    def of(
        cls,
        roles: Roles,
        *,
        groups: GroupsOption = "each",
        favourable: object = None,
        missing: MissingOption = "compare",
        within: WithinOption = None,
    ) -> Measure:
        """Compare the protected columns one by one or jointly, for the favourable outcomes (None: all)."""
        groupings = roles.groupings(groups)
        strata = _asked_strata(roles, within)
        left_out = {
            axis: attribute.missing
            for axis, attribute in enumerate(roles.attributes)
            if missing == "ignore" and attribute.missing is not None
        }
        chosen, *others = (_chosen_levels(roles, favourable, axis, left_out) for axis in (0, *roles.other_axes))
        for axis, levels in strata.items():  # anyone who names missing strata wants to compare them
            if levels is not None and left_out.get(axis) in levels:
                del left_out[axis]
        columns = tuple(map(roles.grouping_name, groupings))
        names = tuple(column + _within_name(roles, strata) for column in columns)
        if others:
            names = tuple(f"{outcome} by {name}" for outcome in roles.outcome_names for name in names)
        return cls(
            tuple((*grouping, *strata) for grouping in groupings) * (1 + len(others)),
            names,
            chosen,
            tuple(left_out.items()),
            len(strata),
            tuple(_outside(roles, strata, left_out)),
            tuple(zip(roles.other_axes, others, strict=True)),
            columns * (1 + len(others)),
        )

    def favourable_of(self, grouping: Grouping) -> tuple[int, ...]:
        """The favourable levels of the outcome that a grouping's rates are about."""
        return dict(self.others).get(outcome_axis(grouping), self.favourable)

    @property
    def of_first_outcome(self) -> tuple[tuple[str, Grouping], ...]:
        """Each grouping once, with its name, however many outcomes there are."""
        count = len(self.groupings) // (1 + len(self.others))
        return tuple(zip(self.names, self.groupings, strict=True))[:count]

    def groups_of(self, name: str) -> str:
        """Name a grouping by its groups alone: of several outcomes, without the one that its name begins with."""
        if not self.others or not self.columns:
            return name
        return name[name.rindex(f" by {self.columns_of(name)}") + len(" by ") :]

    def columns_of(self, name: str) -> str:
        """The protected columns of a grouping, without the strata that they are compared in."""
        return self.columns[self.names.index(name)] if self.columns else name

    def about(self, kind: str, name: str) -> str:
        """What a rate of a grouping is about: a representation rate is about groups, whatever the outcome."""
        return self.groups_of(name) if kind == "representation_rate" else name

    def rate_name(self, kind: str, name: str) -> str:
        """Name a rate of a grouping.

        >>> Measure(((1,),), ("sex",), (0,)).rate_name("statistical_rate", "sex")
        'statistical rate of sex'
        """
        return f"{kind.replace('_', ' ')} of {self.about(kind, name)}"

    def groups_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """Return a table, or a stack of them, without the groups of this grouping that are not compared."""
        result = tables.copy()
        for axis, level in (*self.left_out, *self.outside):
            if axis in grouping:
                self._front(result, axis)[level] = 0.0
        return result

    def is_compared(self, grouping: Grouping, group: Sequence[int]) -> bool:
        """Whether no level of a group is left out, and its stratum, if it has one, was asked for."""
        return not set(zip(grouping, group, strict=True)) & {*self.left_out, *self.outside}

    def outcomes_compared(self, tables: Reals, grouping: Grouping) -> Reals:
        """Return the same, also without the rows that have no outcome: they do not count in its rates."""
        return self.with_outcome(self.groups_compared(tables, grouping), grouping)

    def with_outcome(self, tables: Reals, grouping: Grouping) -> Reals:
        """Return a table, or a stack of them, without the rows whose outcome is missing and not compared."""
        result = tables.copy()
        for axis, level in self.left_out:
            if axis == outcome_axis(grouping):
                self._front(result, axis)[level] = 0.0
        return result

    def rates(self, table: Reals) -> Rates:
        """Both rates of a table, by grouping."""
        return {
            "representation_rate": self._each(
                lambda grouping: representation_rate(
                    self.groups_compared(table, grouping), grouping, strata=self.strata
                )
            ),
            "statistical_rate": self._each(
                lambda grouping: statistical_rate(
                    self.outcomes_compared(table, grouping), grouping, self.favourable_of(grouping), strata=self.strata
                )
            ),
        }

    def _front(self, tables: Reals, axis: int) -> Reals:
        """A view of the tables with one axis first; the axes of a table are the last ones of a stack."""
        axes = 1 + max(*(max(grouping) for grouping in self.groupings), *(axis for axis, _ in self.others), 0)
        return np.moveaxis(tables, axis - axes, 0)

    def _each(self, rate: Callable[[Grouping], float]) -> dict[str, float | None]:
        return {name: float(rate(grouping)) for name, grouping in zip(self.names, self.groupings, strict=True)}


def _chosen_levels(roles: Roles, favourable: object, axis: int, left_out: dict[int, int]) -> tuple[int, ...]:
    """The favourable levels of an outcome; missing ones are not left out if they are among them."""
    chosen = roles.favourable_levels(favourable, axis)
    named = favourable.get(roles.names[axis]) if isinstance(favourable, Mapping) else favourable
    if named is None:
        return tuple(level for level in chosen if level != left_out.get(axis))
    if left_out.get(axis) in chosen:  # anyone who calls it favourable wants to compare it
        del left_out[axis]
    return chosen


AskedStrata = Mapping[int, "tuple[int, ...] | None"]  # by axis, the levels that were asked for; None: all


def _asked_strata(roles: Roles, within: WithinOption) -> AskedStrata:
    """Look up the levels of the strata that were asked for."""
    asked = read_within(within)
    return {axis: _asked_levels(roles, axis, asked.get(roles.names[axis])) for axis in roles.strata_axes}


def _asked_levels(roles: Roles, axis: int, named: object) -> tuple[int, ...] | None:
    if named is None:
        return None
    values = list(named) if isinstance(named, list | tuple | set | frozenset) else [named]
    if not values:
        raise LevelError(
            Option("within", column=roles.names[axis]), " is empty; name a level, or use None for every level"
        )
    return tuple(sorted({roles.attributes[axis].exact_level(value) for value in values}))


def _within_name(roles: Roles, strata: AskedStrata) -> str:
    """The strata as the end of a grouping's name: nothing, or e.g. " within department"."""
    if not strata:
        return ""
    return " within " + " × ".join(
        roles.names[axis]
        + ("" if levels is None else f" = {', '.join(roles.attributes[axis].labels[n] for n in levels)}")
        for axis, levels in strata.items()
    )


def _outside(roles: Roles, strata: AskedStrata, left_out: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    for axis, levels in strata.items():
        if levels is not None:
            others = set(range(roles.attributes[axis].size)) - {*levels, left_out.get(axis, -1)}
            yield from ((axis, level) for level in sorted(others))
