"""A declaration: which levels each column can have, said before any row is read.

What a table's own values say about people would be revealed by a domain that was
learned from it: a rare level shows that somebody has it, the outermost edge is
somebody's income. A declared domain says only what everybody may know.
"""

import datetime
import math
from collections.abc import (
    Container,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.frames import (
    Column,
    Frame,
    is_missing,
    library_of,
    load_library,
    numbers_of,
    plain_value,
)
from fairmaxent.data.levels import (
    Kind,
    edge_labels,
    unique_labels,
    value_key,
    value_text,
)
from fairmaxent.data.table import (
    NameList,
    Names,
)
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    check_choice,
    cut,
    shown,
)

DecimalMark = Literal[",", "."]
DateOrder = Literal["dmy", "mdy"]
Lists = Mapping[str, Sequence[Any]]  # by column
UndeclaredOption = Literal["refuse", "missing", "drop"]
# A number drawn from a bin is one of this many, evenly spread over it; a bin of fewer
# whole numbers has all of them.
VALUES_PER_BIN = 64
_KINDS: dict[str, Kind] = {"truth": "boolean", "number": "numeric", "time": "date"}
# Types of columns whose values have one type.
_DTYPES: dict[type | None, Any] = {
    bool: nw.Boolean,
    str: nw.String,
    datetime.date: nw.Date,
    int: nw.Int64,
    float: nw.Float64,
}


@dataclass(frozen=True)
class Declaration:
    """Levels and edges by column, as :meth:`Domain.declare` takes them."""

    levels: Lists
    edges: Lists
    missing: Names
    decimal: DecimalMark = "."  # of numbers that are written as text
    # whether 1/2/2025 is in February or in January; None: dates are 2025-02-01
    dates: DateOrder | None = None
    # drafted from a table, and nobody has said since that all of it is public
    draft: bool = False
    # what becomes of other values, if a fit is private
    undeclared: UndeclaredOption | None = None

    @classmethod
    def of(
        cls,
        levels: Lists,
        edges: Lists,
        missing: NameList,
        decimal: DecimalMark = ".",
        dates: DateOrder | None = None,
    ) -> "Declaration":
        """Check what is declared, without a table."""
        check_choice("decimal", decimal, DecimalMark)
        if dates is not None:
            check_choice("dates", dates, DateOrder)
        for name, option in (("levels", levels), ("edges", edges)):
            if not isinstance(option, Mapping) or not all(
                map(_is_listed, option.values())
            ):
                raise InputError(
                    f"{name} is {shown(option)}; give a list for each column, as"
                    " {column: […]}"
                )
        levels = {name: [*map(plain_value, levels[name])] for name in levels}
        edges = {name: [*map(plain_value, edges[name])] for name in edges}
        for name in levels:
            _check_levels(name, levels[name])
            if name in edges:
                raise ColumnError(
                    f"column {name!r} is declared with levels and with edges; keep one"
                    " of the two"
                )
        for name in edges:
            _check_edges(name, edges[name])
        if isinstance(missing, str):
            missing = [missing]
        if not _is_listed(missing):
            raise InputError(
                f"missing is {shown(missing)}; list the columns that can have missing"
                " values"
            )
        for name in missing:
            if name not in levels and name not in edges:
                raise ColumnError(
                    f"missing names {name!r}, which is not declared; add its levels or"
                    " its edges"
                )
        return cls(levels, edges, tuple(missing), decimal, dates)

    @property
    def names(self) -> Names:
        """The columns that are declared."""
        return (*self.levels, *self.edges)

    @property
    def refuses(self) -> bool:
        """Whether other values stop a fit; if not, rows are left out, perhaps all."""
        return self.undeclared in (None, "refuse")

    def has_dates(self, name: str) -> bool:
        """Whether a column has edges that are dates."""
        return name in self.edges and isinstance(self.edges[name][0], datetime.date)

    def without(self, names: Container[str]) -> "Declaration":
        """Return the declaration without some columns."""

        def others(listed: Lists) -> Lists:
            return {name: listed[name] for name in listed if name not in names}

        return replace(
            self,
            levels=others(self.levels),
            edges=others(self.edges),
            missing=tuple(name for name in self.missing if name not in names),
        )

    def attributes(self, frame: Frame) -> tuple[Attribute, ...]:
        """The columns of a table as they were declared.

        Of the table, only names and the library are looked at.
        """
        for name in frame.columns:
            if name not in self.names:
                raise ColumnError(
                    f"column {name!r} is not declared; add its levels or edges to the"
                    " declaration, or take the column out of the table"
                )
        for name in self.names:
            if name not in frame.columns:
                raise ColumnError(
                    f"column {name!r} is declared, but the table has no such column"
                )
        library = library_of(frame)
        return tuple(self._attribute(name, library) for name in frame.columns)

    def _attribute(self, name: str, library: str) -> Attribute:
        if name in self.levels:
            kind = _kind_of_levels(self.levels[name])
            values = list(self.levels[name])
            # Numbers and dates ascend in every domain: engines count how many of them a
            # value reaches.
            if kind in ("numeric", "date"):
                values = sorted(values)
            starts = np.arange(len(values) + 1)
            edges = None
            labels = [value_text(value) for value in values]
        else:
            kind = "date" if self.has_dates(name) else "numeric"
            given = self.edges[name]
            bins = [
                _bin_values(left, right, last=right is given[-1])
                for left, right in pairwise(given)
            ]
            values = [value for inside in bins for value in inside]
            starts = np.cumsum([0, *map(len, bins)])
            edges = np.array([_cut(float(edge)) for edge in numbers_of(given[1:-1])])
            texts = [value_text(edge) for edge in given]
            several = len(bins) > 1  # the outermost of which hold what lies beyond
            labels = edge_labels(texts, below=several, above=several)
        missing = None
        if name in self.missing:
            missing = len(labels)
            values = [*values, None]
            starts = np.append(starts, starts[-1] + 1)
            labels = [*labels, "missing"]
        return Attribute(
            name=name,
            kind=kind,
            labels=unique_labels([cut(label) for label in labels]),
            features="indicator",
            values=column_of(name, values, library),
            level_starts=starts,
            counts=np.ones(len(values)),
            edges=edges,
            missing=missing,
        )


def at_midnight(value: Any) -> Any:
    """A day as a moment; other values stay."""
    if type(value) is datetime.date:
        return datetime.datetime.combine(value, datetime.time())
    return value


def _is_listed(option: object) -> bool:
    return isinstance(option, Iterable) and not isinstance(
        option, str | bytes | Mapping
    )


def _check_levels(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise LevelError(
            f"column {name!r} is declared without a level; list the values that it can"
            " have"
        )
    levels_include = f"the levels of column {name!r} include"
    for value in values:
        if not isinstance(value, Hashable):
            raise LevelError(
                f"{levels_include} {shown(value)}; declare single values: text,"
                " numbers, truth values or dates"
            )
    if any(map(is_missing, values)):
        raise LevelError(
            f"{levels_include} a missing value; name the column in missing instead"
        )
    if len(set(map(value_key, values))) < len(values):
        raise LevelError(f"{levels_include} a value twice; list each once")


def _check_edges(name: str, edges: Sequence[Any]) -> None:
    kinds = {edge_kind(edge) for edge in edges}
    numbers = numbers_of(edges)
    ascending = np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    if len(edges) < 2 or not ascending or len(kinds) > 1 or None in kinds:
        raise InputError(
            f"the edges of column {name!r} are {shown(edges)}; list at least two"
            " numbers or dates in ascending order: the smallest, the limits of the"
            " bins, the largest"
        )


def edge_kind(edge: object) -> str | None:
    """What all edges of a column must be.

    None for durations and times of day, which have no bins here.
    """
    if isinstance(edge, datetime.datetime):
        return "moment" if edge.tzinfo is None else "moment with a time zone"
    if isinstance(edge, datetime.date):
        return "day"
    if isinstance(edge, Number) and not isinstance(edge, bool):
        return "number"
    return None


def _bin_values(left: Any, right: Any, *, last: bool) -> list[Any]:
    """Values evenly spread over a bin.

    They are whole numbers or days if both ends are, and moments in whole seconds.
    """
    if isinstance(left, int) and isinstance(right, int):
        return _whole(left, right + last)
    if isinstance(left, datetime.datetime):
        width = right - left
        spread = (
            left + width * place // VALUES_PER_BIN for place in range(VALUES_PER_BIN)
        )
        # A bin that begins within a second keeps its beginning.
        seconds = (max(moment.replace(microsecond=0), left) for moment in spread)
        return list(dict.fromkeys(seconds))
    if isinstance(left, datetime.date):
        days = _whole(left.toordinal(), right.toordinal() + last)
        return [datetime.date.fromordinal(day) for day in days]
    low = float(left)
    high = float(right)
    step = (high - low) / VALUES_PER_BIN
    digits = max(0, 1 - math.floor(math.log10(step)))
    middles = np.round(low + (np.arange(VALUES_PER_BIN) + 0.5) * step, digits)
    inside = middles[(middles >= low) & (middles < high)]
    return np.unique(inside).tolist() or [low]


def _cut(edge: float) -> float:
    """Where a bin begins: what single precision holds is in the bin of its text.

    There 0.7 is a little less, but its text is 0.7.
    """
    single = np.float32(edge)
    low, high = sorted((float(single), float(str(single))))
    if low < edge <= high:
        return low
    return edge


def _whole(start: int, stop: int) -> list[int]:
    count = stop - start
    if count <= VALUES_PER_BIN:
        return list(range(start, stop))
    return [
        start + (2 * step + 1) * count // (2 * VALUES_PER_BIN)
        for step in range(VALUES_PER_BIN)
    ]


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    kinds = {value_key(value)[0] for value in values}
    if len(kinds) > 1:
        return "categorical"
    return _KINDS.get(kinds.pop(), "categorical")


def column_of(name: str, values: list[Any], library: str) -> Column:
    """Declared values as a column of a library, of the type that they have."""
    # The type of the table's column is no guide, because rows decide it: a single 33.5
    # in a CSV file makes all of its whole numbers floats, and everybody could see that
    # in the rows drawn.
    dtype = _DTYPES.get(one_type(values))
    backend = load_library(library)
    try:
        # Pandas has no whole numbers or truth values with gaps, and no days.
        if library == "pandas":
            if dtype == nw.Boolean and None in values:
                native = backend.Series(values, dtype="boolean", name=name)
                return nw.from_native(native, series_only=True)
            if dtype == nw.Int64 and None in values:
                dtype = nw.Float64
            elif dtype == nw.Date:
                dtype = nw.Datetime
        return nw.new_series(
            name,
            values,
            dtype,
            backend=backend,
        )
    except Exception as problem:
        raise LevelError(
            f"the values declared for column {name!r} do not fit into one column of"
            f" {library}; declare values of one type: numbers, text, truth values or"
            " dates"
        ) from problem


def one_type(values: Iterable[object]) -> type | None:
    """The type of all values but missing ones; None: they have several, or none."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return float
    return kinds.pop() if len(kinds) == 1 else None
