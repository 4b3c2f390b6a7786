"""The real table, the new rows and the control rows side by side, with their values numbered in the same way.

Every attack and every comparison reads these numbers. Equal values have equal numbers in all tables, missing values
have 0, and the numbers of a column of numbers or dates are in the order of its values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Encoded
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import ColumnOptions, Kind, unique_labels, value_key, value_text
from fairmaxent.data.limits import check_columns
from fairmaxent.data.table import Codes, Reals, row_keys
from fairmaxent.errors import ColumnError, InputError, Option, cut, did_you_mean

TableName = Literal["real", "new", "control"]

NAMES: dict[TableName, str] = {"real": "the real table", "new": "the new rows", "control": "the control rows"}

_KINDS: dict[Kind, str] = {
    "numeric": "numbers",
    "date": "dates",
    "boolean": "truth values",
    "categorical": "text",
    "ordered": "text",
}
_COUNTABLE = 1 << 20  # combinations of values that are counted one by one
_EXACT = 2.0**53  # whole numbers beyond are not told apart as floats


@dataclass(frozen=True, eq=False)
class PooledColumn:
    """One column in all tables, one table after the other."""

    name: str
    codes: NDArray[np.intp]
    """The number of each row's value; 0: missing."""
    labels: tuple[str, ...]
    """The text of each value that is not missing; empty for numbers and dates."""
    numbers: Reals | None
    """Numbers, and dates in seconds; NaN if missing. None: values are the same, or they are not."""

    @property
    def size(self) -> int:
        """How many numbers values may have, including 0."""
        return int(self.codes.max()) + 1


@dataclass(frozen=True, eq=False)
class Pooled:
    """All tables, and where the rows of each are."""

    columns: tuple[PooledColumn, ...]
    parts: Mapping[TableName, slice]
    library: str
    """The DataFrame library of the real table."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def rows(self, table: TableName) -> int:
        """How many rows a table has; 0 if there is no such table."""
        part = self.parts.get(table, slice(0, 0))
        return int(part.stop - part.start)

    def column(self, name: str) -> PooledColumn:
        """Look a column up."""
        if name not in self.names:
            raise ColumnError(f"the tables have no common column {name!r}; {did_you_mean(name, self.names)}")
        return self.columns[self.names.index(name)]

    @cached_property
    def codes(self) -> Codes:
        """The numbers of all values, shape (rows of all tables, columns), in Fortran order."""
        return np.asfortranarray(np.column_stack([column.codes for column in self.columns]))

    @cached_property
    def row_numbers(self) -> NDArray[np.intp]:
        """One number per row of all tables, equal for equal rows."""
        keys, _ = row_keys(self.codes, [column.size for column in self.columns])
        return np.unique(keys, return_inverse=True)[1]

    def distinct(self, table: TableName) -> Codes:
        """The distinct rows of a table."""
        part = self.parts[table]
        _, first = np.unique(self.row_numbers[part], return_index=True)
        return np.asfortranarray(self.codes[part][np.sort(first)])

    @cached_property
    def learned(self) -> tuple[Domain, Encoded]:
        """Levels as `debias` would make them from the real table, and all tables in terms of them."""
        weights = np.zeros(len(self.codes))
        weights[self.parts["real"]] = 1.0
        return Domain.learn_rows(self.frame, ColumnOptions(self.names), weights=weights)

    @cached_property
    def frame(self) -> Any:
        """All rows as one table of the real table's library, with numbers as floats and everything else as text."""
        backend = frames.load_library(self.library)
        columns = {}
        for column in self.columns:
            if column.numbers is None:
                texts = np.array([None, *column.labels], dtype=object)[column.codes]
                columns[column.name] = nw.new_series(column.name, texts.tolist(), nw.String, backend=backend)
            else:
                columns[column.name] = nw.new_series(column.name, column.numbers, nw.Float64, backend=backend)
        return frames.build(columns)


def pool(tables: Mapping[TableName, Any]) -> tuple[Pooled, tuple[str, ...]]:
    """Put the tables side by side; also returns the columns of the real table that the new rows do not have."""
    opened = {name: _opened(name, frame) for name, frame in tables.items()}
    columns, left_out = _common_columns({name: frame.columns for name, frame in opened.items()})
    check_columns(len(columns))
    ends = np.cumsum([0, *(len(frame) for frame in opened.values())]).tolist()
    parts = {name: slice(*ends[at : at + 2]) for at, name in enumerate(opened)}
    library = str(opened["real"].implementation.value)
    pooled = [_pooled({table: frame.get_column(name) for table, frame in opened.items()}) for name in columns]
    return Pooled(tuple(pooled), parts, library), tuple(left_out)


def _opened(name: TableName, frame: Any) -> nw.DataFrame[Any]:
    try:
        return frames.open_frame(frame)
    except InputError as problem:
        raise type(problem)(f"{NAMES[name]}: ", problem) from problem


def _common_columns(names: Mapping[TableName, Sequence[str]]) -> tuple[list[str], list[str]]:
    """The columns to compare, and those that only the real table has: `debias` leaves identifiers out, say."""
    extra = [name for name in names["new"] if name not in names["real"]]
    common = [name for name in names["new"] if name in names["real"]]
    if not common:
        listed = ", ".join(map(repr, names["new"][:5]))
        raise ColumnError(
            f"the new rows have no column of the real table ({cut(listed, 200)}); pass rows with the same columns"
        )
    if extra:
        raise ColumnError(
            f"the new rows have a column {extra[0]!r}, which the real table does not have; "
            f"{did_you_mean(extra[0], names['real'])}; leave it out with ",
            Option("drop"),
        )
    for name in common if "control" in names else ():
        if name not in names["control"]:
            raise ColumnError(f"the control rows have no column {name!r}; they must have the columns of the real table")
    return common, [name for name in names["real"] if name not in common]


def _pooled(columns: Mapping[TableName, frames.Column]) -> PooledColumn:
    name = columns["real"].name
    kinds = dict(_kinds(columns))
    if len(set(kinds.values())) > 1:
        (one, kind), *others = kinds.items()
        other, another = next(pair for pair in others if pair[1] != kind)
        raise InputError(
            f"column {name!r} holds {kind} in {NAMES[one]}, but {another} in {NAMES[other]}; read all tables in the "
            "same way, or leave the column out with ",
            Option("drop"),
        )
    if set(kinds.values()) <= {"numbers", "dates"} and kinds:
        numbers = np.concatenate([_numbers(series) for series in columns.values()])
        if np.abs(numbers[~np.isnan(numbers)]).max(initial=0.0) < _EXACT:
            return PooledColumn(name, _ranks(numbers), (), numbers)
    return _categories(name, list(columns.values()))


def _kinds(columns: Mapping[TableName, frames.Column]) -> Iterator[tuple[TableName, str]]:
    """What the column holds in each table that has a value in it."""
    for table, series in columns.items():
        _, values = factorize(series)
        if len(values):
            yield table, _KINDS[ColumnOptions([series.name]).kind_of(series, values)]


def _numbers(series: frames.Column) -> Reals:
    codes, values = factorize(series)  # a column without a value has no type to rely on
    numbers = frames.to_numbers(values) if len(values) else np.empty(0)
    if np.isinf(numbers).any():
        raise InputError(f"column {series.name!r} holds an infinite number; replace it or make it missing")
    return np.append(numbers, np.nan)[codes]


def _ranks(numbers: Reals) -> NDArray[np.intp]:
    """Number values in their order, from 1; 0 for missing."""
    present = ~np.isnan(numbers)
    codes = np.zeros(len(numbers), dtype=np.intp)
    codes[present] = np.unique(numbers[present], return_inverse=True)[1] + 1
    return codes


def _categories(name: str, columns: Sequence[frames.Column]) -> PooledColumn:
    """Number values as they come, from 1; 0 for missing."""
    known: dict[Hashable, int] = {}
    texts: list[str] = []
    codes = []
    for series in columns:
        positions, values = factorize(series)
        numbers = []
        for value in values.to_list():
            key = value_key(value)
            if key not in known:
                known[key] = len(known) + 1
                texts.append(value_text(value))
            numbers.append(known[key])
        codes.append(np.array([*numbers, 0], dtype=np.intp)[positions])
    return PooledColumn(name, np.concatenate(codes), unique_labels(texts), None)


# ---------------------------------------------------------------- sets of columns


def column_sets(width: int, size: int, most: float, rng: np.random.Generator) -> list[list[int]]:
    """All sets of so many columns or, if they are too many, some of them at random."""
    size = min(size, width)
    if math.comb(width, size) <= most:
        return [list(columns) for columns in combinations(range(width), size)]
    drawn = {tuple(sorted(rng.choice(width, size, replace=False).tolist())): None for _ in range(int(most))}
    return [list(columns) for columns in drawn]


def cell_numbers(codes: Codes, sizes: Sequence[int]) -> tuple[NDArray[np.intp], int]:
    """A number for the values of each row, equal for equal rows, and how many such numbers there may be."""
    cells, span = row_keys(codes, sizes)
    if span > _COUNTABLE:
        cells = np.unique(cells, return_inverse=True)[1]
        span = int(cells.max()) + 1
    return cells, span
