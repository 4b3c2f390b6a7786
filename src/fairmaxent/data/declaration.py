"""A declaration: which levels each column can have, said beforehand and not learned from the rows.

What a table's own values say about people would be revealed by a domain that was learned from it: a rare level shows
that somebody has it, the outermost edge is somebody's income. A declared domain says only what everybody may know.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.levels import Kind, unique_labels, value_key, value_text
from fairmaxent.errors import ColumnError, InputError, LevelError, cut, shown

# A number drawn from a bin is one of this many, evenly spread over it; a bin of fewer whole numbers has all of them.
VALUES_PER_BIN = 64


@dataclass(frozen=True)
class Declaration:
    """Levels and edges by column, as :meth:`Domain.declare` takes them."""

    levels: Mapping[str, Sequence[Any]]
    edges: Mapping[str, Sequence[Any]]
    missing: tuple[str, ...]
    draft: bool = False
    """Whether it was drafted from a table, and nobody has said since that all of it is public."""

    @classmethod
    def of(
        cls, levels: Mapping[str, Sequence[Any]], edges: Mapping[str, Sequence[Any]], missing: Sequence[str]
    ) -> Declaration:
        """Check what is declared, without a table."""
        for name, option in (("levels", levels), ("edges", edges)):
            if not isinstance(option, Mapping) or not all(map(_is_listed, option.values())):
                raise InputError(f"{name} is {shown(option)}; give a list for each column, as {{column: […]}}")
        for name in levels:
            _check_levels(name, list(levels[name]))
            if name in edges:
                raise ColumnError(f"column {name!r} is declared with levels and with edges; keep one of the two")
        for name in edges:
            _check_edges(name, _plain(edges[name]))
        names = [missing] if isinstance(missing, str) else missing
        if not _is_listed(names):
            raise InputError(f"missing is {shown(missing)}; list the columns that can have missing values")
        for name in names:
            if name not in levels and name not in edges:
                raise ColumnError(f"missing names {name!r}, which is not declared; add its levels or its edges")
        return cls(
            {name: _plain(levels[name]) for name in levels}, {name: _plain(edges[name]) for name in edges}, (*names,)
        )

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
        undeclared = [name for name in frame.columns if name not in self.names]
        if undeclared:
            raise ColumnError(
                f"column {undeclared[0]!r} is not declared; add its levels or edges to the declaration, or take the "
                "column out of the table"
            )
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise ColumnError(f"column {absent[0]!r} is declared, but the table has no such column")
        library = str(frame.implementation.value)
        return tuple(self._attribute(name, library) for name in frame.columns)

    def _attribute(self, name: str, library: str) -> Attribute:
        can_be_missing = name in self.missing
        if name in self.levels:
            kind = _kind_of_levels(self.levels[name])
            # Numbers and dates ascend in every domain: engines count how many of them a value reaches.
            values = sorted(self.levels[name]) if kind in ("numeric", "date") else list(self.levels[name])
            starts, edges, labels = np.arange(len(values) + 1), None, [value_text(value) for value in values]
        else:
            bins = [_bin_values(left, right, last=last) for left, right, last in _bins(self.edges[name])]
            values = [value for inside in bins for value in inside]
            starts = np.cumsum([0, *map(len, bins)])
            edges = np.array([frames.number_of(edge) for edge in self.edges[name][1:-1]], dtype=np.float64)
            kind, labels = "date" if _is_time(values[0]) else "numeric", _bin_labels(self.edges[name])
        size = len(labels)
        if can_be_missing:
            values, starts, labels = [*values, None], np.append(starts, starts[-1] + 1), [*labels, "missing"]
        return Attribute(
            name=name,
            kind=kind,
            labels=unique_labels([cut(label) for label in labels]),
            features="indicator",
            values=_column(name, values, library),
            level_starts=starts,
            counts=np.ones(len(values)),
            edges=edges,
            missing=size if can_be_missing else None,
        )


def _is_listed(option: object) -> bool:
    return isinstance(option, Iterable) and not isinstance(option, str | bytes | Mapping)


def _check_levels(name: str, values: list[Any]) -> None:
    if not values:
        raise LevelError(f"column {name!r} is declared without a level; list the values that it can have")
    for value in values:
        if not isinstance(value, Hashable):
            raise LevelError(
                f"the levels of column {name!r} include {shown(value)}; declare single values: text, numbers, truth "
                "values or dates"
            )
    if any(frames.is_missing(value) for value in values):
        raise LevelError(f"the levels of column {name!r} include a missing value; name the column in missing instead")
    if len({value_key(value) for value in values}) < len(values):
        raise LevelError(f"the levels of column {name!r} include a value twice; list each once")


def _check_edges(name: str, edges: list[Any]) -> None:
    numbers = [frames.number_of(edge) for edge in edges]
    kinds = {_edge_kind(edge) for edge in edges}
    ascending = len(numbers) > 1 and len(kinds) == 1 and None not in kinds
    ascending = ascending and all(
        first is not None and second is not None and math.isfinite(first) and math.isfinite(second) and first < second
        for first, second in pairwise(numbers)
    )
    if not ascending:
        raise InputError(
            f"the edges of column {name!r} are {shown(edges)}; list at least two numbers or dates in ascending order: "
            "the smallest, the limits of the bins, the largest"
        )


def _edge_kind(edge: object) -> str | None:
    """What all edges of a column must be; None for durations and times of day, which have no bins here."""
    if isinstance(edge, datetime.datetime):
        return "moment" if edge.tzinfo is None else "moment with a time zone"
    if isinstance(edge, datetime.date):
        return "day"
    return "number" if isinstance(edge, Number) and not isinstance(edge, bool) else None


def _bins(edges: Sequence[Any]) -> list[tuple[Any, Any, bool]]:
    """The ends of each bin, and whether it is the last, to which its right end belongs."""
    return [(left, right, right is edges[-1]) for left, right in pairwise(edges)]


def _bin_labels(edges: Sequence[Any]) -> list[str]:
    """Write bins as "[0, 18)"; the outermost ones also hold what lies beyond.

    >>> _bin_labels([0, 18, 65, 120])
    ['< 18', '[18, 65)', '≥ 65']
    """
    texts = [value_text(edge) for edge in edges]
    if len(texts) == 2:
        return [f"[{texts[0]}, {texts[1]}]"]
    inner = [f"[{left}, {right})" for left, right in pairwise(texts[1:-1])]
    return [f"< {texts[1]}", *inner, f"≥ {texts[-2]}"]


def _bin_values(left: Any, right: Any, *, last: bool) -> list[Any]:
    """Values evenly spread over a bin: whole numbers or days if both ends are."""
    if isinstance(left, int) and isinstance(right, int):
        return _whole(left, right + last)
    if _is_time(left):
        return _moments(left, right, last=last)
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


def _moments(left: Any, right: Any, *, last: bool) -> list[Any]:
    """Days, or moments in whole seconds; those that begin a bin within a second stay as they are."""
    if isinstance(left, datetime.datetime):
        spread = [left + (right - left) * place // VALUES_PER_BIN for place in range(VALUES_PER_BIN)]
        whole = [max(moment.replace(microsecond=0), left) for moment in spread]
        return list(dict.fromkeys(whole))
    return [datetime.date.fromordinal(day) for day in _whole(left.toordinal(), right.toordinal() + last)]


def _is_time(value: object) -> bool:
    return isinstance(value, datetime.date)


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "numeric"
    return "date" if all(_is_time(value) for value in values) else "categorical"


def _column(name: str, values: list[Any], library: str) -> frames.Column:
    """Declared values as a column of a library, of the type that they have themselves.

    The type of the table's column is no guide, because rows decide it: a single 33.5 in a CSV file makes all of its
    whole numbers floats, and everybody could see that in the rows drawn.
    """
    try:
        return frames.typed_column(name, values, _type_of([value for value in values if value is not None]), library)
    except Exception as problem:
        raise LevelError(
            f"the values declared for column {name!r} do not fit into one column of {library}; declare values of one "
            "type: numbers, text, truth values or dates"
        ) from problem


def _type_of(values: Sequence[Any]) -> Any:
    """The type that holds all values; None: their library knows best."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and kinds:
        return nw.Int64 if kinds == {int} else nw.Float64
    return {bool: nw.Boolean, str: nw.String, datetime.date: nw.Date}.get(*kinds) if len(kinds) == 1 else None


def _plain(values: Sequence[Any]) -> list[Any]:
    """Values as Python has them, not numpy, whose nanoseconds would become numbers."""
    return [_microseconds(value).item() if isinstance(value, np.generic) else value for value in values]


def _microseconds(value: np.generic) -> np.generic:
    fine = isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(value.dtype)[0] in ("ns", "ps")
    return value.astype(f"{value.dtype.kind}8[us]") if fine else value


_DIGITS = 2  # to which the outermost edges are rounded, away from the values
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
_MANY_YEARS = 20  # from which on the edges of dates are rounded to years, and otherwise to months


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: the values of columns with few of them, the edges of the bins of the others."""
    binned = [attribute for attribute in attributes if attribute.edges is not None]
    listed = [attribute for attribute in attributes if attribute.edges is None]
    declaration = Declaration.of(
        {attribute.name: _values(attribute) for attribute in listed},
        {attribute.name: _edges(attribute) for attribute in binned},
        [attribute.name for attribute in attributes if attribute.missing is not None],
    )
    return replace(declaration, draft=True)


def _values(attribute: Attribute) -> list[Any]:
    values = attribute.values.to_list()
    known = values if attribute.missing is None else values[: int(attribute.level_starts[attribute.missing])]
    return [value.item() if isinstance(value, np.generic) else value for value in known]


def _edges(attribute: Attribute) -> list[Any]:
    """The limits of the bins; whole numbers if all values are, and the outermost rounded away from the values."""
    values = _values(attribute)
    numbers = np.array([frames.number_of(value) for value in values], dtype=np.float64)
    if attribute.kind == "date":
        return _date_edges(values, numbers, attribute)
    inner = [] if attribute.edges is None else attribute.edges.tolist()
    whole = bool((numbers == np.round(numbers)).all())
    if whole:
        inner = [math.ceil(edge) for edge in inner]
    low, high = _rounded(numbers.min(), math.floor), _rounded(numbers.max(), math.ceil)
    inside = sorted({edge for edge in inner if low < edge < high})
    edges = [low, *inside, high] if low < high else [low, low + 1]
    return edges if whole else [float(edge) for edge in edges]  # of whole edges, only whole numbers are drawn


def _date_edges(values: list[Any], numbers: np.ndarray[Any, Any], attribute: Attribute) -> list[Any]:
    """The first date, the one that begins each bin, and the last, rounded to months, or to years if there are many."""
    cuts = np.searchsorted(np.asarray(attribute.edges), numbers, side="right")
    begins = [values[int(np.flatnonzero(cuts == cut)[np.argmin(numbers[cuts == cut])])] for cut in np.unique(cuts)]
    last = values[int(np.argmax(numbers))]
    step = 12 if last.year - begins[0].year >= _MANY_YEARS else 1
    months = [(moment.year * 12 + moment.month - 1) // step * step for moment in (*begins, last)]
    like = last.date() if (numbers % _DAY == 0).all() and isinstance(last, datetime.datetime) else last
    return [_month(month, like) for month in sorted({*months, months[-1] + step})]


def _month(number: int, like: datetime.date) -> datetime.date:
    """The beginning of a month, counted from the year 0, as a date or as a time like another."""
    year, month = min(number // 12, datetime.MAXYEAR), number % 12 + 1
    if isinstance(like, datetime.datetime):
        return datetime.datetime(year, month, 1, tzinfo=like.tzinfo)
    return datetime.date(year, month, 1)


def _rounded(number: float, towards: Any) -> float:
    """Round to a few digits, away from the values."""
    if number == 0:
        return 0
    unit = 10.0 ** (math.floor(math.log10(abs(number))) - _DIGITS + 1)
    result = towards(number / unit) * unit
    return int(result) if result == int(result) else float(f"{result:.12g}")
