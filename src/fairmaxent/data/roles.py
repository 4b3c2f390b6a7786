"""Roles: which columns are the outcome, the protected ones, and those within whose
strata groups are compared.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import Blocks, Codes, Counted, Positions, Reals, Table
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    Option,
    check_choice,
    did_you_mean,
)

GroupsOption = Literal["each", "joint"]
DetailOption = Literal["rows", "bins"]
WithinOption = str | Sequence[str] | Mapping[str, object] | None
Names = Sequence[str]

# The complete table of outcome, protected columns and strata is held in memory; more
# cells than this are refused.
LARGEST_ROOT = 4096


@dataclass(frozen=True, eq=False)
class Roles:
    """Which attributes are the outcome, the protected ones and the strata, by position
    in the domain.
    """

    domain: Domain
    outcome: int
    protected: tuple[int, ...]
    strata: tuple[int, ...] = ()  # columns within whose levels groups are compared
    others: tuple[int, ...] = ()  # further outcomes

    @classmethod
    def of(
        cls,
        domain: Domain,
        outcome: str,
        protected: Names,
        within: Names = (),
        also: Names = (),
    ) -> "Roles":
        """Look the columns up, and refuse roles that make no sense."""
        outcomes = (outcome, *also)
        if not protected:
            raise ColumnError(
                "no protected column was named; pass at least one as ",
                Option("protected"),
            )
        for name in outcomes:
            if name in protected:
                raise ColumnError(
                    f"column {name!r} is both the outcome and protected; it can only be"
                    " one of the two"
                )
        for role, names in (
            ("an outcome", outcomes),
            ("a protected column", protected),
        ):
            if len(set(names)) != len(names):
                raise ColumnError(
                    f"{role} is named twice in {[*names]}; name each once"
                )
        for name in within:
            if name in (*outcomes, *protected):
                role = (
                    f" names {name!r}, which is"
                    f" {'the outcome' if name in outcomes else 'protected'}"
                )
                raise ColumnError(
                    Option("within"),
                    f"{role}; groups can only be compared within other columns",
                )
        others = (
            tuple(domain.index(name) for name in names)
            for names in (protected, within, also)
        )
        roles = cls(domain, domain.index(outcome), *others)
        for role, names in (
            ("outcome", outcomes),
            ("protected", protected),
            ("stratum", within),
        ):
            for attribute in map(domain.attribute, names):
                column = f"{role} column {attribute.name!r} has"
                if attribute.size < 2:
                    advice = (
                        "at least two are needed to compare. Choose another column, or"
                        " add rows with another level"
                    )
                    raise LevelError(
                        f"{column} a single level ({attribute.labels[0]!r}); {advice}."
                    )
                # its rare levels would be lumped together
                if attribute.edges is None and not attribute.is_value_coded:
                    advice = (
                        "too many to compare group by group. Merge levels beforehand,"
                        " or raise "
                    )
                    raise LevelError(
                        f"{column} {len(attribute.values)} levels, {advice}",
                        Option("max_levels"),
                        ".",
                    )
        sizes = {attribute.name: attribute.size for attribute in roles.attributes}
        if (cells := math.prod(sizes.values())) > LARGEST_ROOT:
            shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            what = (
                f"outcome and protected columns{' and strata' if within else ''}"
                f" together have {cells:,}"
            )
            advice = f"more than {LARGEST_ROOT:,}. Merge levels, use fewer bins ("
            last = f"), or {'compare within' if within else 'protect'} fewer columns."
            raise LevelError(
                f"{what} combinations of levels ({shown}), {advice}",
                Option("bins"),
                last,
            )
        return roles

    @cached_property
    def blocks(self) -> Blocks:
        """Outcome, protected attributes and strata pooled as the root, the others on
        their own, by name.
        """
        names = self.domain.names
        return Blocks.rooted(
            self.domain.sizes,
            self.root,
            order=sorted(range(len(names)), key=names.__getitem__),
        )

    def compress(self, codes: Codes, weight: Reals | None = None) -> Table:
        """Distinct rows of attribute codes, as block codes."""
        return Table.compress(self.blocks.pool(codes), self.blocks.levels, weight)

    @property
    def root(self) -> tuple[int, ...]:
        """Outcome first, then protected attributes, other outcomes and strata: the axes
        of every fairness table.
        """
        return (self.outcome, *self.protected, *self.others, *self.strata)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The root's attributes, in that order."""
        return tuple(self.domain.attributes[index] for index in self.root)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the root's columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def protected_names(self) -> tuple[str, ...]:
        """Names of the protected columns."""
        return self.names[1 : 1 + len(self.protected)]

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of all outcomes."""
        return tuple(self.names[axis] for axis in (0, *self.other_axes))

    @property
    def other_axes(self) -> tuple[int, ...]:
        """The axes of the other outcomes in a fairness table."""
        return tuple(
            range(1 + len(self.protected), 1 + len(self.protected) + len(self.others))
        )

    @property
    def strata_axes(self) -> tuple[int, ...]:
        """The axes of the strata in a fairness table: the last ones."""
        return tuple(range(len(self.root) - len(self.strata), len(self.root)))

    def groupings(self, groups: GroupsOption) -> tuple[tuple[int, ...], ...]:
        """Axes whose levels, or combinations of levels, are compared with each
        other.
        """
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
        attributes = [self.attributes[axis] for axis in grouping]
        return ", ".join(
            f"{a.name} = {a.labels[level]}"
            for a, level in zip(attributes, group, strict=True)
        )

    def describe_level(self, level: int) -> str:
        """Name a level by its position among the levels of all blocks."""
        number = next(
            n for n, part in enumerate(self.blocks.slices) if level < part.stop
        )
        within = level - self.blocks.slices[number].start
        if number == 0:
            return self.describe_cell(
                [int(c) for c in np.unravel_index(within, self.blocks.shape(0))]
            )
        attribute = self.domain.attributes[self.blocks.members[number][0]]
        return f"{attribute.name} = {attribute.labels[within]}"

    def favourable_levels(self, favourable: object, axis: int = 0) -> tuple[int, ...]:
        """Levels of an outcome the statistical rate is about; None means every level, a
        mapping has one by outcome.
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
        if isinstance(favourable, list | tuple | set | frozenset):
            values = favourable
        else:
            values = [favourable]
        if not values:
            raise LevelError(
                Option("favourable"),
                " is empty; name an outcome level, or leave it out for every level",
            )
        return tuple(sorted({attribute.exact_level(value) for value in values}))


def read_columns(option: str, names: str | Sequence[str]) -> list[str]:
    """One column or several as a list; a set has no order to rely on."""
    if isinstance(names, str):
        listed = [names]
    else:
        listed = names
    if not isinstance(listed, Sequence) or not all(
        isinstance(name, str) for name in listed
    ):
        plain = isinstance(names, str | int | float | tuple | list | set | None)
        if plain:
            shown = repr(names)
        else:
            shown = f"a {type(names).__name__}"
        raise ColumnError(
            Option(option),
            f" is {shown}; pass the name of a column (text), or a list of names",
        )
    return list(listed)


def read_within(within: WithinOption) -> dict[str, object]:
    """Columns within whose strata groups are compared, each with the level or levels
    meant; None: every level.
    """
    if isinstance(within, Mapping):
        read_columns("within", list(within))
        return dict(within)
    if within is None:
        names = []
    else:
        names = read_columns("within", within)
    if len(set(names)) != len(names):
        raise ColumnError(
            Option("within"), f" names a column twice in {names}; name each once"
        )
    return dict.fromkeys(names)


def check_roles(outcome: str, protected: Sequence[str], weight: str | None) -> None:
    """Refuse what is not the name of a column, and a weight column that has another
    role.
    """
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


@dataclass(frozen=True)
class RedrawnValues:
    """Columns whose raw values are drawn again within their levels, and the reason."""

    columns: tuple[str, ...]
    reason: str | None  # None: that was asked for


@dataclass(frozen=True, eq=False)
class Reading:
    """A table as every fit sees it, wherever its rows are."""

    # all columns of the table, in order, the weight column too
    columns: tuple[str, ...]
    roles: Roles
    table: Counted  # distinct rows as block codes
    # one per input row, 1 on average; None: there are none, or an engine keeps the rows
    design: Reals | None
    # a single 1 of the weight column's name and dtype
    weight_column: frames.Column | None
    # raw values of the input rows; None: they are drawn inside their levels
    positions: Positions | None = None
    redrawn: RedrawnValues | None = None
    # the average of the raw design weights, which they are divided by
    weight_scale: float = 1.0
    # columns that look like identifiers and are not to be kept; not among `columns`
    left_out: tuple[str, ...] = ()


def without_identifiers(
    domain: Domain, keep: Collection[str] | None
) -> tuple[Domain, tuple[str, ...]]:
    """Return the domain without columns that look like identifiers, and their names;
    those to keep (None: all) stay.
    """
    if keep is None or not domain.identifiers:
        return domain, ()
    left_out = tuple(name for name in domain.identifiers if name not in keep)
    narrowed = domain.without(left_out)
    note = "was kept, so rows, models and reports may hold its values"
    kept = [
        f"column {name!r} looks like an identifier and {note}"
        for name in narrowed.identifiers
    ]
    return replace(narrowed, notes=(*narrowed.notes, *kept)), left_out


def per_average(table: Counted, roles: Roles, scale: float) -> Counted:
    """Divide design weights by their average, once whole ones were summed without
    rounding.
    """
    if scale == 1:
        return table
    return table.reweighed(np.full(roles.blocks.levels[0], 1 / scale))


def redrawn_values(
    detail: DetailOption | None, domain: Domain, why: str | None
) -> RedrawnValues | None:
    """Say which exact values no row keeps, because of what was asked for or of ``why``;
    None: rows keep all of them.
    """
    if detail != "bins" and why is None:
        return None
    if detail == "rows":
        advice = (
            ". Use ",
            Option("detail", "bins"),
            ", or fit a table in memory with its own Domain.",
        )
        raise InputError(Option("detail", "rows"), f" is not available: {why}", *advice)
    shared = tuple(
        attribute.name
        for attribute in domain.attributes
        if not attribute.is_value_coded
    )
    if shared:
        return RedrawnValues(shared, None if detail == "bins" else why)
    return None
