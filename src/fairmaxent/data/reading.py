"""A table as read: which column has which role, its rows as codes, its design weights.

Here a table in memory is read, from one record to the next: its weights, because bins
have about equal weight; the levels of each column; which columns look like identifiers;
and the codes of the others. A lazy frame is read in `engines`, where its rows are.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.declaration import Declaration, declared_rows
from fairmaxent.data.domain import Domain, EncodedTable, fitting, learn_columns
from fairmaxent.data.frames import Column, Frame, one_like, open_frame, read_weights
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.data.likely import Chances, Likely
from fairmaxent.data.roles import DetailOption, Roles
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
    progress: Progress = silent

    @property
    def is_lenient(self) -> bool:
        """Whether rows are left out instead of refused, which may leave none."""
        return isinstance(self.domain, Declaration) and not self.domain.refuses

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
        if self.likely is None or not isinstance(self.domain, Domain):
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


def read_table(frame: Any, request: ReadingRequest) -> Reading:
    """Read a table that is in memory: encode its rows, and merge equal ones."""
    frame = _opened(frame, request)
    request.progress("read", 0.0)
    weights = read_weights(frame, request.weight)
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
    roles = request.roles(encoded.domain)
    redrawn = redrawn_values(request.detail, encoded.domain, encoded.unknown or None)

    request.progress("count", 0.0)
    scale = 1.0
    design = None
    weight_column = None
    if weights is not None:
        scale = float(weights.mean())
        design = weights / scale
        weight_column = one_like(frame.get_column(request.weight))
    rows = roles.compress(encoded.codes, weights)
    chances = None
    if shares is not None:
        chances = Chances.of_rows(shares, rows.inverse, design)
    return Reading(
        columns=without(encoded.left_out, frame.columns),
        roles=roles,
        table=per_average(rows, roles, scale),
        design=design,
        weight_column=weight_column,
        positions=None if request.detail == "bins" else encoded.positions,
        redrawn=redrawn,
        weight_scale=scale,
        left_out=encoded.left_out,
        chances=chances,
    )


def _opened(frame: Any, request: ReadingRequest) -> Frame:
    """The table; a private fit sees of it what was declared, and nothing else."""
    opened = open_frame(frame, may_be_empty=request.is_lenient)
    declaration = request.domain
    if isinstance(declaration, Declaration) and declaration.undeclared is not None:
        return declared_rows(opened, declaration)
    return opened


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


def without(left_out: Collection[str], names: NameList) -> Names:
    """The names of the other columns, in order."""
    return tuple(name for name in names if name not in left_out)


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
