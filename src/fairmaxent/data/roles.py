"""Roles: which columns are the outcome, the protected ones and the strata.

Groups, which are levels of the protected columns, are compared within strata.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.likely import Likely
from fairmaxent.data.table import (
    Axes,
    Blocks,
    Codes,
    NameList,
    Names,
    Reals,
    Table,
)
from fairmaxent.errors import (
    ColumnError,
    LevelError,
    Option,
    check_choice,
    did_you_mean,
    unfit,
)

GroupsOption = Literal["each", "joint"]
DetailOption = Literal["rows", "bins"]
WithinOption = str | NameList | Mapping[str, object] | None
ColumnNames = str | NameList  # of one column, or of several
Protected = str | Likely | Sequence[str | Likely]  # or groups that are only likely

# The complete table of outcome, protected columns and strata is held in memory; more
# cells than this are refused.
LARGEST_ROOT = 4096


@dataclass(frozen=True, eq=False)
class Roles:
    """The outcome, the protected attributes and the strata, by position in a domain."""

    domain: Domain
    outcome: int
    protected: Axes
    strata: Axes = ()  # columns within whose levels groups are compared
    others: Axes = ()  # further outcomes

    @classmethod
    def of(
        cls,
        domain: Domain,
        outcome: str,
        protected: NameList,
        within: NameList = (),
        also: NameList = (),
        *,
        likely: bool = False,
    ) -> "Roles":
        """Look the columns up, and refuse roles that make no sense.

        ``likely``: there are groups besides, which no column has.
        """
        outcomes = (outcome, *also)
        if not (protected or likely):
            raise ColumnError(
                "no protected column was named; pass at least one as ",
                Option("protected"),
            )
        _check_names(outcomes, protected, within)
        roles = cls(
            domain=domain,
            outcome=domain.index(outcome),
            protected=tuple(map(domain.index, protected)),
            strata=tuple(map(domain.index, within)),
            others=tuple(map(domain.index, also)),
        )
        for role, names in (
            ("outcome", outcomes),
            ("protected", protected),
            ("stratum", within),
        ):
            for name in names:
                _check_levels(role, domain.attribute(name))
        roles._check_size()
        return roles

    def with_groups(self, groups: Attribute) -> "Roles":
        """The same with one more protected column, which the table does not have."""
        attributes = (*self.domain.attributes, groups)
        roles = replace(
            self,
            domain=replace(self.domain, attributes=attributes),
            protected=(*self.protected, len(attributes) - 1),
        )
        roles._check_size()
        return roles

    def _check_size(self) -> None:
        """Refuse more combinations of levels than can be held in memory."""
        sizes = {attribute.name: attribute.size for attribute in self.attributes}
        cells = math.prod(sizes.values())
        if cells <= LARGEST_ROOT:
            return
        columns = "outcome and protected columns"
        fewer = "protect"
        if self.strata:
            columns = f"{columns} and strata"
            fewer = "compare within"
        shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise LevelError(
            f"{columns} together have {cells:,} combinations of levels ({shown}), more"
            f" than {LARGEST_ROOT:,}. Merge levels, use fewer bins (",
            Option("bins"),
            f"), or {fewer} fewer columns.",
        )

    @cached_property
    def blocks(self) -> Blocks:
        """The root's attributes pooled, the others on their own, by name."""
        names = self.domain.names
        by_name = sorted(range(len(names)), key=names.__getitem__)
        return Blocks.rooted(self.domain.sizes, self.root, order=by_name)

    def compress(self, codes: Codes, weight: Reals | None = None) -> Table:
        """Distinct rows of attribute codes, as block codes."""
        return Table.compress(self.blocks.pool(codes), self.blocks.levels, weight)

    @property
    def root(self) -> Axes:
        """Axes of every fairness table: outcome, protected, other outcomes, strata."""
        return (self.outcome, *self.protected, *self.others, *self.strata)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The root's attributes, in that order."""
        return tuple(self.domain.attributes[index] for index in self.root)

    @property
    def names(self) -> Names:
        """NameList of the root's columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def protected_names(self) -> Names:
        """NameList of the protected columns."""
        return self.names[1 : 1 + len(self.protected)]

    @property
    def outcome_names(self) -> Names:
        """NameList of all outcomes."""
        return tuple(self.names[axis] for axis in (0, *self.other_axes))

    @property
    def other_axes(self) -> Axes:
        """The axes of the other outcomes in a fairness table."""
        first = 1 + len(self.protected)
        return tuple(range(first, first + len(self.others)))

    @property
    def strata_axes(self) -> Axes:
        """The axes of the strata in a fairness table: the last ones."""
        return tuple(range(len(self.root) - len(self.strata), len(self.root)))

    def groupings(self, groups: GroupsOption) -> tuple[Axes, ...]:
        """Axes whose levels, or combinations of levels, are compared."""
        check_choice("groups", groups, GroupsOption)
        axes = range(1, 1 + len(self.protected))
        if groups == "each":
            return tuple((axis,) for axis in axes)
        return (tuple(axes),)

    def grouping_name(self, grouping: Sequence[int]) -> str:
        """Name a grouping by its columns."""
        return " × ".join(self.names[axis] for axis in grouping)

    def describe_cell(self, cell: Sequence[int]) -> str:
        """Name a cell of the table of outcome, protected columns and strata."""
        return self.describe_group(range(len(self.root)), cell)

    def describe_group(self, grouping: Sequence[int], group: Sequence[int]) -> str:
        """Name a group by its columns and levels."""
        attributes = self.attributes
        return ", ".join(
            attributes[axis].describe(level)
            for axis, level in zip(grouping, group, strict=True)
        )

    def describe_level(self, level: int) -> str:
        """Name a level by its position among the levels of all blocks."""
        blocks = self.blocks
        number = next(
            number for number, part in enumerate(blocks.slices) if level < part.stop
        )
        within = level - blocks.slices[number].start
        if number == 0:
            cell = np.unravel_index(within, blocks.shape(0))
            return self.describe_cell([int(code) for code in cell])
        return self.domain.attributes[blocks.members[number][0]].describe(within)

    def favourable_levels(self, favourable: object, axis: int = 0) -> Axes:
        """Levels of an outcome that the statistical rate is about.

        None means every level; a mapping has one by outcome.
        """
        attribute = self.attributes[axis]
        if isinstance(favourable, Mapping):
            for name in favourable:
                if name not in self.outcome_names:
                    hint = did_you_mean(name, self.outcome_names)
                    raise ColumnError(
                        Option("favourable"),
                        f" names {name!r}, which is no outcome; {hint}",
                    )
            favourable = favourable.get(attribute.name)
        if favourable is None:
            return tuple(range(attribute.size))
        wanted = listed(favourable)
        if not wanted:
            raise LevelError(
                Option("favourable"),
                " is empty; name an outcome level, or leave it out for every level",
            )
        return tuple(sorted({attribute.exact_level(value) for value in wanted}))


def _check_names(outcomes: NameList, protected: NameList, within: NameList) -> None:
    """Refuse a column in two roles, and one that is named twice."""
    for name in outcomes:
        if name in protected:
            raise ColumnError(
                f"column {name!r} is both the outcome and protected; it can only be"
                " one of the two"
            )
    for role, names in (("an outcome", outcomes), ("a protected column", protected)):
        if len(set(names)) != len(names):
            raise ColumnError(f"{role} is named twice in {[*names]}; name each once")
    for name in within:
        if name in (*outcomes, *protected):
            role = "the outcome" if name in outcomes else "protected"
            raise ColumnError(
                Option("within"),
                f" names {name!r}, which is {role}; groups can only be compared within"
                " other columns",
            )


def _check_levels(role: str, attribute: Attribute) -> None:
    """Refuse a column with a role if its levels are too few or too many."""
    column = f"{role} column {attribute.name!r}"
    if attribute.size < 2:
        raise LevelError(
            f"{column} has a single level ({attribute.labels[0]!r}); at least two are"
            " needed to compare. Choose another column, or add rows with another"
            " level."
        )
    # its rare levels would be lumped together
    if attribute.edges is None and not attribute.is_value_coded:
        raise LevelError(
            f"{column} has {len(attribute.values)} levels, too many to compare group by"
            " group. Merge levels beforehand, or raise ",
            Option("max_levels"),
            ".",
        )


def read_columns(option: str, names: str | NameList) -> list[str]:
    """One column or several as a list; a set has no order to rely on."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, Sequence) and all(isinstance(name, str) for name in names):
        return list(names)
    if any(isinstance(name, Likely) for name in listed(names)):
        raise ColumnError(
            Option(option),
            " is groups that are probabilities, which cannot be compared here; pass a"
            " column that holds groups",
        )
    shown = f"a {type(names).__name__}"
    if isinstance(names, int | float | tuple | list | set | None):
        shown = repr(names)
    raise ColumnError(
        Option(option),
        f" is {shown}; pass the name of a column (text), or a list of names",
    )


def check_weight_name(name: str, columns: list[str]) -> None:
    """Refuse what is no name, and that of a column that the table has."""
    read_columns("weight_name", [name])
    if name in columns:
        raise ColumnError(
            f"the table already has a column {name!r}; choose another name with ",
            Option("weight_name"),
        )


def read_protected(
    protected: Protected, likely: Likely | None = None
) -> tuple[list[str], Likely | None]:
    """Columns of groups; and groups that are probabilities, if there are any."""
    known: Any = protected
    found = [] if likely is None else [likely]
    named = [one for one in listed(protected) if isinstance(one, Likely)]
    if named:
        known = [one for one in listed(protected) if not isinstance(one, Likely)]
    found += named
    if len(found) > 1:
        raise unfit("likely", found, "only one can be probabilities")
    return read_columns("protected", known), next(iter(found), None)


def read_within(within: WithinOption) -> dict[str, object]:
    """Columns whose strata groups are compared within, each with the levels meant.

    None: every level.
    """
    if isinstance(within, Mapping):
        read_columns("within", list(within))
        return dict(within)
    if within is None:
        return {}
    names = read_columns("within", within)
    if len(set(names)) != len(names):
        raise ColumnError(
            Option("within"), f" names a column twice in {names}; name each once"
        )
    return dict.fromkeys(names)


def listed(values: object) -> list[object]:
    """Values as a list; a single one may come alone."""
    if isinstance(values, list | tuple | set | frozenset):
        return list(values)
    return [values]


def check_roles(outcome: str, protected: NameList, weight: str | None) -> None:
    """Refuse what names no column, and a weight column that has another role."""
    for option, name in (("outcome", outcome), ("weight", weight)):
        if not isinstance(name, str | None) or (option == "outcome" and name is None):
            raise ColumnError(
                Option(option),
                f" is a {type(name).__name__}; pass the name of a column of the table",
            )
    if weight is not None and weight in (outcome, *protected):
        raise ColumnError(
            f"column {weight!r} is the weight, so it cannot be outcome or protected;"
            " name another one"
        )
