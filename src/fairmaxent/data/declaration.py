"""A declaration: which levels each column can have, said beforehand and not learned from the rows.

What a table's own values say about people would be revealed by a domain that was learned from it: a rare level shows
that somebody has it, the outermost edge is somebody's income. A declared domain says only what everybody may know.
"""

import datetime
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.levels import Kind, edge_labels, unique_labels, value_key, value_text
from fairmaxent.errors import ColumnError, InputError, LevelError, cut, shown

# A number drawn from a bin is one of this many, evenly spread over it; a bin of fewer whole numbers has all of them.
VALUES_PER_BIN = 64


@dataclass(frozen=True)
class Declaration:
    """Levels and edges by column, as :meth:`Domain.declare` takes them."""

    levels: Mapping[str, Sequence[Any]]
    edges: Mapping[str, Sequence[Any]]
    missing: tuple[str, ...]
    draft: bool = False  # drafted from a table, and nobody has said since that all of it is public

    @classmethod
    def of(
        cls, levels: Mapping[str, Sequence[Any]], edges: Mapping[str, Sequence[Any]], missing: Sequence[str]
    ) -> "Declaration":
        """Check what is declared, without a table."""
        for name, option in (("levels", levels), ("edges", edges)):
            if not isinstance(option, Mapping) or not all(map(_is_listed, option.values())):
                raise InputError(f"{name} is {shown(option)}; give a list for each column, as {{column: […]}}")
        levels = {name: [*map(_plain, levels[name])] for name in levels}
        edges = {name: [*map(_plain, edges[name])] for name in edges}
        for name in levels:
            _check_levels(name, levels[name])
            if name in edges:
                raise ColumnError(f"column {name!r} is declared with levels and with edges; keep one of the two")
        for name, listed in edges.items():
            kinds = {_edge_kind(edge) for edge in listed}
            numbers = np.array([frames.number_of(edge) for edge in listed], dtype=np.float64)
            ascending = len(listed) > 1 and np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
            if not ascending or len(kinds) > 1 or None in kinds:
                wanted = "at least two numbers or dates in ascending order: the smallest, the limits of the bins, the"
                raise InputError(f"the edges of column {name!r} are {shown(listed)}; list {wanted} largest")
        names = [missing] if isinstance(missing, str) else missing
        if not _is_listed(names):
            raise InputError(f"missing is {shown(missing)}; list the columns that can have missing values")
        for name in names:
            if name not in levels and name not in edges:
                raise ColumnError(f"missing names {name!r}, which is not declared; add its levels or its edges")
        return cls(levels, edges, (*names,))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are declared."""
        return (*self.levels, *self.edges)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns whose levels are all text."""
        return tuple(name for name, values in self.levels.items() if all(isinstance(value, str) for value in values))

    def attributes(self, frame: nw.DataFrame[Any]) -> tuple[Attribute, ...]:
        """The columns of a table as they were declared; of the table, only names and the library are looked at."""
        for name in frame.columns:
            if name not in self.names:
                advice = "add its levels or edges to the declaration, or take the column out of the table"
                raise ColumnError(f"column {name!r} is not declared; {advice}")
        for name in self.names:
            if name not in frame.columns:
                raise ColumnError(f"column {name!r} is declared, but the table has no such column")
        library = str(frame.implementation.value)
        return tuple(self._attribute(name, library) for name in frame.columns)

    def _attribute(self, name: str, library: str) -> Attribute:
        if name in self.levels:
            kind = _kind_of_levels(self.levels[name])
            # Numbers and dates ascend in every domain: engines count how many of them a value reaches.
            values = sorted(self.levels[name]) if kind in ("numeric", "date") else list(self.levels[name])
            starts, edges, labels = np.arange(len(values) + 1), None, [value_text(value) for value in values]
        else:
            given = self.edges[name]
            bins = [_bin_values(left, right, last=right is given[-1]) for left, right in pairwise(given)]
            values = [value for inside in bins for value in inside]
            starts = np.cumsum([0, *map(len, bins)])
            edges = np.array([frames.number_of(edge) for edge in given[1:-1]], dtype=np.float64)
            kind = "date" if isinstance(values[0], datetime.date) else "numeric"
            # The outermost bins also hold what lies beyond.
            labels = edge_labels([value_text(edge) for edge in given], below=len(bins) > 1, above=len(bins) > 1)
        missing = None
        if name in self.missing:
            missing = len(labels)
            values, starts, labels = [*values, None], np.append(starts, starts[-1] + 1), [*labels, "missing"]
        texts, column = unique_labels([cut(label) for label in labels]), _column(name, values, library)
        return Attribute(name, kind, texts, "indicator", column, starts, np.ones(len(values)), edges, missing)


def _is_listed(option: object) -> bool:
    return isinstance(option, Iterable) and not isinstance(option, str | bytes | Mapping)


def _check_levels(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise LevelError(f"column {name!r} is declared without a level; list the values that it can have")
    for value in values:
        if not isinstance(value, Hashable):
            advice = "declare single values: text, numbers, truth values or dates"
            raise LevelError(f"the levels of column {name!r} include {shown(value)}; {advice}")
    if any(frames.is_missing(value) for value in values):
        raise LevelError(f"the levels of column {name!r} include a missing value; name the column in missing instead")
    if len({value_key(value) for value in values}) < len(values):
        raise LevelError(f"the levels of column {name!r} include a value twice; list each once")


def _edge_kind(edge: object) -> str | None:
    """What all edges of a column must be; None for durations and times of day, which have no bins here."""
    if isinstance(edge, datetime.datetime):
        return "moment" if edge.tzinfo is None else "moment with a time zone"
    if isinstance(edge, datetime.date):
        return "day"
    return "number" if isinstance(edge, Number) and not isinstance(edge, bool) else None


def _bin_values(left: Any, right: Any, *, last: bool) -> list[Any]:
    """Values evenly spread over a bin: whole numbers or days if both ends are, moments in whole seconds."""
    if isinstance(left, int) and isinstance(right, int):
        return _whole(left, right + last)
    if isinstance(left, datetime.datetime):
        spread = [left + (right - left) * place // VALUES_PER_BIN for place in range(VALUES_PER_BIN)]
        # A bin that begins within a second keeps its beginning.
        return list(dict.fromkeys(max(moment.replace(microsecond=0), left) for moment in spread))
    if isinstance(left, datetime.date):
        return [datetime.date.fromordinal(day) for day in _whole(left.toordinal(), right.toordinal() + last)]
    low, high = float(left), float(right)
    step = (high - low) / VALUES_PER_BIN
    digits = max(0, 1 - math.floor(math.log10(step)))
    middles = np.round(low + (np.arange(VALUES_PER_BIN) + 0.5) * step, digits)
    return np.unique(middles[(middles >= low) & (middles < high)]).tolist() or [low]


def _whole(start: int, stop: int) -> list[int]:
    count = stop - start
    if count <= VALUES_PER_BIN:
        return list(range(start, stop))
    return [start + (2 * step + 1) * count // (2 * VALUES_PER_BIN) for step in range(VALUES_PER_BIN)]


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "numeric"
    return "date" if all(isinstance(value, datetime.date) for value in values) else "categorical"


def _column(name: str, values: list[Any], library: str) -> frames.Column:
    """Declared values as a column of a library, of the type that they have themselves.

    The type of the table's column is no guide, because rows decide it: a single 33.5 in a CSV file makes all of its
    whole numbers floats, and everybody could see that in the rows drawn.
    """
    kinds = {type(value) for value in values if value is not None}
    dtypes = {bool: nw.Boolean, str: nw.String, datetime.date: nw.Date, int: nw.Int64, float: nw.Float64}
    dtype: Any = dtypes.get(*kinds) if len(kinds) == 1 else nw.Float64 if kinds == {int, float} else None
    backend = frames.load_library(library)
    try:
        if library == "pandas":  # which has no whole numbers or truth values with gaps, and no days
            if dtype == nw.Boolean and None in values:
                return nw.from_native(backend.Series(values, dtype="boolean", name=name), series_only=True)
            dtype = nw.Float64 if dtype == nw.Int64 and None in values else nw.Datetime if dtype == nw.Date else dtype
        return nw.new_series(name, values, dtype, backend=backend)
    except Exception as problem:
        advice = "declare values of one type: numbers, text, truth values or dates"
        raise LevelError(
            f"the values declared for column {name!r} do not fit into one column of {library}; {advice}"
        ) from problem


def _plain(value: Any) -> Any:
    """A value as Python has it, not numpy, whose nanoseconds would become numbers."""
    if isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(value.dtype)[0] in ("ns", "ps"):
        value = value.astype(f"{value.dtype.kind}8[us]")
    return value.item() if isinstance(value, np.generic) else value


_DIGITS = 2  # to which the outermost edges are rounded, away from the values
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
_MANY_YEARS = 20  # from which on the edges of dates are rounded to years, and otherwise to months


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: the values of columns with few of them, the edges of the bins of the others."""
    levels = {attribute.name: _values(attribute) for attribute in attributes if attribute.edges is None}
    edges = {attribute.name: _edges(attribute) for attribute in attributes if attribute.edges is not None}
    missing = [attribute.name for attribute in attributes if attribute.missing is not None]
    return replace(Declaration.of(levels, edges, missing), draft=True)


def _values(attribute: Attribute) -> list[Any]:
    values = attribute.values.to_list()
    return [_plain(value) for value in (values if attribute.missing is None else values[:-1])]


def _edges(attribute: Attribute) -> list[Any]:
    """The limits of the bins; whole numbers if all values are, and the outermost rounded away from the values."""
    values = _values(attribute)
    numbers = np.array([frames.number_of(value) for value in values], dtype=np.float64)
    limits = np.asarray(attribute.edges)
    if attribute.kind == "date":
        return _date_edges(values, numbers, limits)
    whole = bool((numbers == np.round(numbers)).all())
    inner = [math.ceil(limit) if whole else limit for limit in limits.tolist()]
    low, high = _rounded(numbers.min(), math.floor), _rounded(numbers.max(), math.ceil)
    inside = sorted({edge for edge in inner if low < edge < high})
    edges = [low, *inside, high] if low < high else [low, low + 1]
    return edges if whole else [float(edge) for edge in edges]  # of whole edges, only whole numbers are drawn


def _date_edges(values: list[Any], numbers: NDArray[np.float64], limits: NDArray[np.float64]) -> list[Any]:
    """The first date, the one that begins each bin, and the last, rounded to months, or to years if there are many."""
    begins = np.unique(np.searchsorted(limits, numbers, side="right"), return_index=True)[1]  # values ascend
    last = values[-1]
    step = 12 if last.year - values[0].year >= _MANY_YEARS else 1
    moments = [*(values[begin] for begin in begins), last]
    months = {(moment.year * 12 + moment.month - 1) // step * step for moment in moments}
    days = [
        datetime.date(min(month // 12, datetime.MAXYEAR), month % 12 + 1, 1)
        for month in sorted({*months, max(months) + step})
    ]
    if not (isinstance(last, datetime.datetime) and (numbers % _DAY).any()):
        return days
    return [datetime.datetime(day.year, day.month, 1, tzinfo=last.tzinfo) for day in days]


def _rounded(number: float, towards: Any) -> float:
    """Round to a few digits, away from the values."""
    if number == 0:
        return 0
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - _DIGITS + 1)
    result = towards(number / unit) * unit
    return int(result) if result == int(result) else float(f"{result:.12g}")
