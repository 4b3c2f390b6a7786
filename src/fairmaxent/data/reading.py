"""A table as read: which column has which role, its rows as codes, its design weights.

A `Source` finds the values of the columns where the rows are; `read` makes the rest of
it. A table in memory is read here: its weights, because bins have about equal weight;
the levels of each column; which columns look like identifiers; and the codes of the
others. A lazy frame is read in `engines`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data.declaration import (
    Declaration,
)
from fairmaxent.data.declared import declared_rows
from fairmaxent.data.domain import Domain, EncodedTable, fitting, learn_columns
from fairmaxent.data.frames import (
    Column,
    Frame,
    one_like,
    open_frame,
    read_weights,
)
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.likely import Chances, Likely
from fairmaxent.data.roles import DetailOption, Roles
from fairmaxent.data.shareable import shareable
from fairmaxent.data.table import (
    Counted,
    NameList,
    Names,
    Positions,
    Reals,
)
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.progress import Progress, silent


@dataclass(frozen=True)
class RedrawnValues:
    """Columns whose raw values are drawn again within their levels, and the reason."""

    columns: Names
    reason: str | None  # None: that was asked for


@dataclass(frozen=True, eq=False)
class Reading:
    """A table as every fit sees it, wherever its rows are."""

    # all columns of the table, in order, the weight column too
    columns: Names
    roles: Roles
    table: Counted  # distinct rows as block codes
    # one per input row, 1 on average; None: there are none, or an engine keeps the rows
    design: Reals | None
    # a single 1 of the weight column's name and dtype
    weight_column: Column | None
    # raw values of the input rows; None: they are drawn inside their levels
    positions: Positions | None = None
    redrawn: RedrawnValues | None = None
    # the average of the raw design weights, which they are divided by
    weight_scale: float = 1.0
    # columns that look like identifiers and are not to be kept; not among `columns`
    left_out: Names = ()
    chances: Chances | None = None  # of groups that are probabilities


@dataclass(frozen=True, eq=False)
class ReadingRequest:
    """How a table is to be read."""

    outcome: str
    protected: NameList
    within: NameList = ()
    also: NameList = ()  # further outcomes
    likely: Likely | None = None  # groups that are probabilities
    weight: str | None = None
    domain: Domain | Declaration | None = None  # None: it is learned from the table
    detail: DetailOption | None = None
    # columns that stay although they look like identifiers; None: all do
    keep: Collection[str] | None = None
    shared: bool = False  # rows of it are: without values that few people have
    progress: Progress = silent

    @property
    def by_value(self) -> Declaration | None:
        """The declaration by which each cell is read, whatever its type, if one is."""
        if isinstance(self.domain, Declaration) and self.domain.undeclared is not None:
            return self.domain
        return None

    @property
    def named(self) -> list[str]:
        """The columns that have a role."""
        return [self.outcome, *self.also, *self.protected, *self.within]

    def roles(self, domain: Domain) -> Roles:
        """Look the columns up."""
        return Roles.of(
            domain,
            self.outcome,
            self.protected,
            self.within,
            self.also,
            likely=self.likely is not None,
        )

    @property
    def own_domain(self) -> Domain | Declaration | None:
        """The domain that is given, of the columns that are read."""
        if self.likely is None or self.domain is None:
            return self.domain
        read = self.without_chances(self.domain.names)
        return self.domain.without(set(self.domain.names) - set(read))

    def without_chances(self, names: NameList) -> list[str]:
        """The columns that are read, without those that hold probabilities."""
        if self.likely is None:
            return list(names)
        kept = [name for name in names if name in (self.keep or ())]
        read = [name for name in names if name in kept or name not in self.likely.used]
        if self.likely.name in read:
            raise ColumnError(
                f"the table has a column {self.likely.name!r}; give the groups of ",
                Option("likely"),
                " another name",
            )
        return read

    def with_known(self, frame: Any, likely: Likely) -> "tuple[Any, ReadingRequest]":
        """A table whose groups are certain, with them as a column; how that is read."""
        opened = nw.from_native(frame)
        others = self.without_chances(opened.collect_schema().names())
        known = opened.with_columns(likely.known).select(*others, likely.name)
        asked = replace(
            self,
            protected=(*self.protected, likely.name),
            likely=None,
            domain=likely.described(self.own_domain, known),
        )
        return known, asked


@dataclass(frozen=True, eq=False)
class Found:
    """The columns of a table, once their values were found; its rows can be counted."""

    columns: NameList  # without those that hold probabilities
    domain: Domain
    left_out: Names  # columns that look like identifiers
    # distinct rows, whose design weights are as they were, and likely groups if any
    count: Callable[[Roles], tuple[Counted, Chances | None]]
    weight: Column | None = None  # of the first row at least
    weight_scale: float = 1.0
    design: Reals | None = None
    positions: Positions | None = None
    # why rows do not keep their raw values; None: they do
    forgets: str | None = None


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """A table where its rows are: in memory, or with an engine."""

    frame: Any

    @abstractmethod
    def find(self, request: ReadingRequest) -> Found:
        """Find the values of each column; learn its levels, or check given ones."""


def read(source: Source, request: ReadingRequest) -> Reading:
    """Read a table: its values, who has which role, then its distinct rows."""
    found = source.find(request)
    roles = request.roles(found.domain)
    redrawn = redrawn_values(request.detail, found.domain, found.forgets)
    request.progress("count", 0.0)
    rows, chances = found.count(roles)
    likely = request.likely
    if likely is not None and chances is not None and likely.are_known(chances.shares):
        known, asked = request.with_known(source.frame, likely)
        return read(replace(source, frame=known), asked)
    return Reading(
        columns=tuple(name for name in found.columns if name not in found.left_out),
        roles=roles,
        table=per_average(rows, roles, found.weight_scale),
        design=found.design,
        weight_column=None if found.weight is None else one_like(found.weight),
        positions=None if request.detail == "bins" else found.positions,
        redrawn=redrawn,
        weight_scale=found.weight_scale,
        left_out=found.left_out,
        chances=chances,
    )


class InMemory(Source):
    """A table in memory: finding the values of a column encodes its rows."""

    def find(self, request: ReadingRequest) -> Found:
        """Look at every row: design weights, probabilities, then the columns."""
        frame = self._opened(request.by_value)
        request.progress("read", 0.0)
        weights = read_weights(frame, request.weight)
        weight = None
        scale = 1.0
        design = None
        if weights is not None:
            weight = frame.get_column(str(request.weight))
            scale = float(weights.mean())
            design = weights / scale
        shares = None
        if request.likely is not None:
            shares = request.likely.read(frame)
            frame = frame.select(request.without_chances(frame.columns))
        encoded = encode_table(
            frame,
            request.own_domain,
            weight=request.weight,
            weights=weights,
            keep=request.keep,
        )

        def count(roles: Roles) -> tuple[Counted, Chances | None]:
            rows = roles.compress(encoded.codes, weights)
            if shares is None:
                return rows, None
            return rows, Chances.of_rows(shares, rows.inverse, design)

        return Found(
            columns=frame.columns,
            domain=encoded.domain,
            left_out=encoded.left_out,
            count=count,
            weight=weight,
            weight_scale=scale,
            design=design,
            positions=encoded.positions,
            forgets=encoded.unknown or None,
        )

    def _opened(self, declaration: Declaration | None) -> Frame:
        """All of it; a private fit sees of it what was declared, and nothing else."""
        if declaration is None:
            return open_frame(self.frame)
        frame = open_frame(self.frame, may_be_empty=not declaration.refuses)
        return declared_rows(frame, declaration)


class Shareable(InMemory):
    """A table of which rows are shared: it is read without rare values."""

    def find(self, request: ReadingRequest) -> Found:
        """Take identifiers and rare values out, then find the values of the rest."""
        opened = open_frame(self.frame)
        frame, identifiers = shareable(opened, request.named, request.weight)
        found = InMemory(frame).find(request)
        return replace(found, left_out=(*identifiers, *found.left_out))


def encode_table(
    frame: Frame,
    domain: Domain | Declaration | None,
    *,
    weight: str | None = None,
    weights: Reals | None = None,
    keep: Collection[str] | None = None,
) -> EncodedTable:
    """Encode a table by a domain, or by one that is learned from it.

    Columns that look like identifiers are left out, unless they are to ``keep``. The
    ``weight`` column is no attribute; its ``weights`` say how much a row counts in
    learning.
    """
    if weight is not None:
        frame = frame.drop(weight)
    if domain is not None:
        given = fitting(domain, frame, weight)
        narrowed, left_out = given.without_identifiers(keep)
        return replace(narrowed.encode_rows(frame), left_out=left_out)

    learned = learn_columns(frame, ColumnOptions(frame.columns), weights)
    narrowed, left_out = Domain.of(learned).without_identifiers(keep)
    kept = [column for column in learned if column.attribute.name not in left_out]
    return replace(EncodedTable.of(narrowed, kept), left_out=left_out)


def per_average(table: Counted, roles: Roles, scale: float) -> Counted:
    """Divide design weights by their average, once whole ones were summed exactly."""
    if scale == 1:
        return table
    return table.reweighed(np.full(roles.blocks.levels[0], 1 / scale))


def redrawn_values(
    detail: DetailOption | None, domain: Domain, why: str | None
) -> RedrawnValues | None:
    """Say which exact values no row keeps, because of ``why`` or of what was asked for.

    None: rows keep all of them.
    """
    if detail != "bins" and why is None:
        return None
    if detail == "rows":
        raise InputError(
            Option("detail", "rows"),
            f" is not available: {why}. Use ",
            Option("detail", "bins"),
            ", or fit a table in memory with its own Domain.",
        )
    shared = tuple(
        attribute.name
        for attribute in domain.attributes
        if not attribute.is_value_coded
    )
    if not shared:
        return None
    return RedrawnValues(shared, None if detail == "bins" else why)
