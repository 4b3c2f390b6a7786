"""A declaration: which levels each column can have, said beforehand and not learned from the rows.

What a table's own values say about people would be revealed by a domain that was learned from it: a rare level shows
that somebody has it, the outermost edge is somebody's income. A declared domain says only what everybody may know.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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

    @classmethod
    def of(
        cls, levels: Mapping[str, Sequence[Any]], edges: Mapping[str, Sequence[Any]], missing: Sequence[str]
    ) -> Declaration:
        """Check what is declared, without a table."""
        for name, option in (("levels", levels), ("edges", edges)):
            if not isinstance(option, Mapping) or any(isinstance(value, str) for value in option.values()):
                raise InputError(f"{name} is {shown(option)}; give a list for each column, as {{column: […]}}")
        for name in levels:
            _check_levels(name, list(levels[name]))
            if name in edges:
                raise ColumnError(f"column {name!r} is declared with levels and with edges; keep one of the two")
        for name in edges:
            _check_edges(name, list(edges[name]))
        names = [missing] if isinstance(missing, str) else list(missing)
        for name in names:
            if name not in levels and name not in edges:
                raise ColumnError(f"missing names {name!r}, which is not declared; add its levels or its edges")
        return cls(
            {name: list(levels[name]) for name in levels}, {name: list(edges[name]) for name in edges}, (*names,)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are declared."""
        return (*self.levels, *self.edges)

    def attributes(self, frame: nw.DataFrame[Any]) -> tuple[Attribute, ...]:
        """The columns of a table as they were declared; of the table, only names and types are looked at."""
        undeclared = [name for name in frame.columns if name not in self.names]
        if undeclared:
            raise ColumnError(
                f"column {undeclared[0]!r} is not declared; add its levels or edges to the declaration, or take the "
                "column out of the table"
            )
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise ColumnError(f"column {absent[0]!r} is declared, but the table has no such column")
        return tuple(self._attribute(frame.get_column(name)) for name in frame.columns)

    def _attribute(self, like: frames.Column) -> Attribute:
        name, can_be_missing = like.name, like.name in self.missing
        if name in self.levels:
            values, starts, edges = list(self.levels[name]), np.arange(len(self.levels[name]) + 1), None
            kind, labels = _kind_of_levels(values), [value_text(value) for value in values]
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
            values=_column(name, values, like),
            level_starts=starts,
            counts=np.ones(len(values)),
            edges=edges,
            missing=size if can_be_missing else None,
        )


def _check_levels(name: str, values: list[Any]) -> None:
    if not values:
        raise LevelError(f"column {name!r} is declared without a level; list the values that it can have")
    if any(frames.is_missing(value) for value in values):
        raise LevelError(f"the levels of column {name!r} include a missing value; name the column in missing instead")
    if len({value_key(value) for value in values}) < len(values):
        raise LevelError(f"the levels of column {name!r} include a value twice; list each once")


def _check_edges(name: str, edges: list[Any]) -> None:
    numbers = [frames.number_of(edge) for edge in edges]
    ascending = len(numbers) > 1 and all(
        first is not None and second is not None and math.isfinite(first) and math.isfinite(second) and first < second
        for first, second in pairwise(numbers)
    )
    if not ascending:
        raise InputError(
            f"the edges of column {name!r} are {shown(edges)}; list at least two numbers or dates in ascending order: "
            "the smallest, the limits of the bins, the largest"
        )


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
    if isinstance(left, datetime.datetime):
        step = (right - left) / VALUES_PER_BIN
        return [(left + step * place).replace(microsecond=0) for place in range(VALUES_PER_BIN)]
    return [datetime.date.fromordinal(day) for day in _whole(left.toordinal(), right.toordinal() + last)]


def _is_time(value: object) -> bool:
    return isinstance(value, datetime.date)


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "numeric"
    return "date" if all(_is_time(value) for value in values) else "categorical"


def _column(name: str, values: list[Any], like: frames.Column) -> frames.Column:
    """Declared values as a column of the library and type that the table's column has.

    In pandas, whole numbers with gaps are floats, so whether a gap is there would show in the type of a column that can
    be missing; it is a float then in any case.
    """
    dtype, backend = like.dtype, like.implementation
    gaps = any(value is None for value in values)
    texts = all(isinstance(value, str) for value in values if value is not None)
    try:
        if texts:
            column = nw.new_series(name, values, nw.String, backend=backend)
            if dtype == nw.Enum:
                return column.cast(nw.Enum([value for value in values if value is not None]))
            return column.cast(nw.Categorical) if dtype == nw.Categorical else column
        if dtype.is_numeric() or dtype == nw.Boolean or dtype.is_temporal():
            numpy_numbers = backend.is_pandas() and gaps and str(like.to_native().dtype).islower()
            wanted = nw.Float64 if numpy_numbers and (dtype.is_numeric() or dtype == nw.Boolean) else dtype
            return nw.new_series(name, values, wanted, backend=backend)
        return nw.new_series(name, values, backend=backend)
    except Exception as problem:
        raise LevelError(
            f"column {name!r} has the type {dtype}, which cannot hold the declared value {shown(values[0])}; declare "
            "values of the column's type, or convert the column"
        ) from problem
