"""The real table, the new rows and the control rows side by side.

Their values are numbered in the same way. Equal values have equal numbers in all
tables, missing values have 0, and numbers of numbers and dates are in their order. The
distance of two rows is Gower's: the sum over the columns of |a − b| / range for numbers
and dates, and of 0 or 1 for everything else. A missing value is at distance 0 from
another one and 1 from any value.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.domain import Domain, EncodedTable, learn_columns
from fairmaxent.data.levels import ColumnOptions, unique_labels, value_key, value_text
from fairmaxent.data.limits import check_columns
from fairmaxent.data.table import Axes, Codes, Indices, NameList, Names, Reals, row_keys
from fairmaxent.errors import ColumnError, InputError, Option, cut, did_you_mean

TableName = Literal["real", "new", "control"]

NAMES: dict[TableName, str] = {
    "real": "the real table",
    "new": "the new rows",
    "control": "the control rows",
}

_KINDS = {
    "numeric": "numbers",
    "date": "dates",
    "boolean": "truth values",
    "categorical": "text",
    "ordered": "text",
}
_COUNTABLE = 1 << 20  # combinations of values that are counted one by one
_EXACT = 2.0**53  # whole numbers beyond are not told apart as floats
# the largest distance of two rows: whole numbers add up exactly, in any order
_WHOLE = 1 << 30
# bytes of distances that are kept for the next person with the same value
_KEPT = 1 << 27

Distances = Codes
Rows = Indices


@dataclass(frozen=True, eq=False)
class PooledColumn:
    """One column in all tables, one table after the other."""

    name: str
    codes: Indices  # the number of each row's value; 0: missing
    # the text of each value that is not missing; empty for numbers and dates
    labels: Names
    # numbers, and dates in seconds; NaN if missing. None: values are equal or not
    numbers: Reals | None

    @property
    def size(self) -> int:
        """How many numbers values may have, including 0."""
        return int(self.codes.max()) + 1


@dataclass(frozen=True, eq=False)
class Pooled:
    """All tables, and where the rows of each are."""

    columns: tuple[PooledColumn, ...]
    parts: Mapping[TableName, slice]
    library: str  # the DataFrame library of the real table

    @property
    def names(self) -> Names:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def rows(self, table: TableName) -> int:
        """How many rows a table has; 0 if there is no such table."""
        part = self.parts.get(table, slice(0, 0))
        return int(part.stop - part.start)

    def positions(self, names: NameList) -> Axes:
        """Look columns up."""
        for name in names:
            if not isinstance(name, str) or name not in self.names:
                raise ColumnError(
                    f"the tables have no common column {name!r};"
                    f" {did_you_mean(name, self.names)}"
                )
        return tuple(map(self.names.index, names))

    def shuffled(
        self,
        table: TableName,
        rng: Generator,
        most: int | None = None,
    ) -> Rows:
        """Rows of a table in random order, at most so many."""
        order = rng.permutation(self.rows(table))[:most]
        return self.parts[table].start + order

    @cached_property
    def codes(self) -> Codes:
        """The numbers of all values: (rows of all tables, columns)."""
        codes = np.column_stack([column.codes for column in self.columns])
        return np.asfortranarray(codes)

    @cached_property
    def row_numbers(self) -> Indices:
        """One number per row of all tables, equal for equal rows."""
        keys, _ = row_keys(self.codes, [column.size for column in self.columns])
        return np.unique(keys, return_inverse=True)[1]

    def distinct(self, table: TableName) -> Codes:
        """The distinct rows of a table."""
        part = self.parts[table]
        _, first = np.unique(self.row_numbers[part], return_index=True)
        return np.asfortranarray(self.codes[part][np.sort(first)])

    @cached_property
    def learned(self) -> tuple[Domain, EncodedTable]:
        """Levels as `debias` makes them from the real table, and all rows in them."""
        weights = np.zeros(len(self.codes))
        weights[self.parts["real"]] = 1.0
        backend = frames.load_library(self.library)
        frame = {}
        for column in self.columns:
            dtype: Any = nw.Float64
            values: Any = column.numbers
            if values is None:
                labels = np.array([None, *column.labels], dtype=object)
                values = labels[column.codes].tolist()
                dtype = nw.String
            name = column.name
            frame[name] = nw.new_series(
                name,
                values,
                dtype,
                backend=backend,
            )
        options = ColumnOptions(self.names)
        columns = learn_columns(frames.build(frame), options, weights)
        domain = Domain.of(columns)
        return domain, EncodedTable.of(domain, columns)


def pool(tables: Mapping[TableName, Any]) -> tuple[Pooled, Names]:
    """Put the tables side by side; that of control people may be None.

    Also returns the columns of the real table that the new rows do not have.
    """
    opened: dict[TableName, frames.Frame] = {}
    for table, frame in tables.items():
        if frame is None:
            continue
        try:
            opened[table] = frames.open_frame(frame)
        except InputError as problem:
            raise type(problem)(f"{NAMES[table]}: ", problem) from problem
    columns, left_out = _common_columns(
        {name: frame.columns for name, frame in opened.items()}
    )
    check_columns(len(columns))
    ends = np.cumsum([0, *(len(frame) for frame in opened.values())]).tolist()
    parts = {name: slice(*ends[at : at + 2]) for at, name in enumerate(opened)}
    library = str(opened["real"].implementation.value)
    pooled = [
        _pooled({table: frame.get_column(name) for table, frame in opened.items()})
        for name in columns
    ]
    return Pooled(tuple(pooled), parts, library), tuple(left_out)


def _common_columns(
    names: Mapping[TableName, NameList],
) -> tuple[list[str], list[str]]:
    """The columns to compare, and those of the real table only, such as identifiers."""
    extra = [name for name in names["new"] if name not in names["real"]]
    common = [name for name in names["new"] if name in names["real"]]
    if not common:
        listed = ", ".join(map(repr, names["new"][:5]))
        raise ColumnError(
            f"the new rows have no column of the real table ({cut(listed, 200)});"
            " pass rows with the same columns"
        )
    if extra:
        hint = did_you_mean(extra[0], names["real"])
        raise ColumnError(
            f"the new rows have a column {extra[0]!r}, which the real table does not"
            f" have; {hint}; leave it out with ",
            Option("drop"),
        )
    lacking = [name for name in common if name not in names.get("control", common)]
    if lacking:
        raise ColumnError(
            f"the control rows have no column {lacking[0]!r}; they must have those of"
            " the real table"
        )
    return common, [name for name in names["real"] if name not in common]


def _pooled(columns: Mapping[TableName, frames.Column]) -> PooledColumn:
    name = columns["real"].name
    kinds: dict[str, TableName] = {}  # with the first table that has it
    for table, series in columns.items():
        _, values = factorize(series)
        if len(values):
            kind = _KINDS[ColumnOptions([name]).kind_of(series, values)]
            kinds.setdefault(kind, table)
    if len(kinds) > 1:
        (kind, first), (another, second), *_ = kinds.items()
        raise InputError(
            f"column {name!r} holds {kind} in {NAMES[first]}, but {another} in"
            f" {NAMES[second]}; read all tables in the same way, or leave the column"
            " out with ",
            Option("drop"),
        )
    if kinds and kinds.keys() <= {"numbers", "dates"}:
        numbers = np.concatenate([_numbers(series) for series in columns.values()])
        present = ~np.isnan(numbers)
        if np.abs(numbers[present]).max(initial=0.0) < _EXACT:
            codes = np.zeros(len(numbers), dtype=int)
            codes[present] = np.unique(numbers[present], return_inverse=True)[1] + 1
            return PooledColumn(name, codes, (), numbers)
    return _categories(name, list(columns.values()))


def _numbers(series: frames.Column) -> Reals:
    codes, values = factorize(series)
    numbers = np.empty(0)  # a column without a value has no type to rely on
    if len(values):
        numbers = frames.to_numbers(values)
    if np.isinf(numbers).any():
        raise InputError(
            f"column {series.name!r} holds an infinite number; replace it or make it"
            " missing"
        )
    return np.append(numbers, np.nan)[codes]


def _categories(name: str, columns: Sequence[frames.Column]) -> PooledColumn:
    """Number values as they come, from 1; 0 for missing."""
    texts: dict[Hashable, str] = {}
    codes = []
    for series in columns:
        positions, values = factorize(series)
        keys = [value_key(value) for value in values.to_list()]
        for key, value in zip(keys, values.to_list(), strict=True):
            texts.setdefault(key, value_text(value))
        numbers = {key: number for number, key in enumerate(texts, start=1)}
        numbered = np.array([*(numbers[key] for key in keys), 0], dtype=int)
        codes.append(numbered[positions])
    return PooledColumn(
        name=name,
        codes=np.concatenate(codes),
        labels=unique_labels(list(texts.values())),
        numbers=None,
    )


def column_sets(
    width: int,
    size: int,
    most: float,
    rng: Generator,
) -> list[list[int]]:
    """All sets of so many columns or, if they are too many, some of them at random."""
    size = min(size, width)
    if math.comb(width, size) <= most:
        return [list(columns) for columns in combinations(range(width), size)]
    drawn = {
        tuple(sorted(rng.choice(width, size, replace=False).tolist())): None
        for _ in range(int(most))
    }
    return [list(columns) for columns in drawn]


def cell_numbers(codes: Codes, sizes: Sequence[int]) -> tuple[Indices, int]:
    """A number for each row, equal for equal rows, and how many there may be."""
    cells, span = row_keys(codes, sizes)
    if span > _COUNTABLE:
        cells = np.unique(cells, return_inverse=True)[1]
        span = int(cells.max()) + 1
    return cells, span


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each of some people, the nearest candidates, and how far the nearest is."""

    people: Rows
    distance: Reals  # (people,): by all columns, each of which counts at most 1
    # (people,): how likely both parts of the columns lead to the same candidate
    linked: Reals
    by_others: Rows  # (people, columns): the nearest by all columns but this one


def nearest(
    pooled: Pooled,
    people: Rows,
    candidates: Rows,
    *,
    parts: Sequence[Sequence[int]] = (),
    others: Sequence[int] = (),
    done: Callable[[float], None] = lambda share: None,
) -> Nearest:
    """Find the nearest candidates of each person.

    By all columns but one, it is the first of several that are equally near. ``people``
    and ``candidates`` are rows of all tables; ``parts`` are two sets of columns,
    ``others`` the columns that are left out one at a time: the distance by all columns
    but one is the whole distance less that column's.

    Of the candidates A and B that are nearest by either part, each part leads to one of
    its own at random, as by anonymeter's unstable sort: to the same with probability |A
    ∩ B| / (|A|·|B|). The first of both is it more often.
    """
    unit = _WHOLE // len(pooled.columns)
    kept = _KEPT // (4 * len(candidates) * len(pooled.columns))
    columns = [
        _distances_by(column, candidates, unit, kept) for column in pooled.columns
    ]
    distance = np.empty(len(people), np.int32)
    linked = np.zeros(len(people))
    by_others = np.empty((len(people), len(others)), int)
    without = np.empty(len(candidates), np.int32)
    for at, person in enumerate(people.tolist()):
        apart = [column(person) for column in columns]
        whole = _added(apart)
        distance[at] = whole.min()
        by_parts = [_added([apart[index] for index in part]) for part in parts]
        if by_parts:
            one, other = (part == part.min() for part in by_parts)
            pairs = np.count_nonzero(one) * np.count_nonzero(other)
            linked[at] = np.count_nonzero(one & other) / pairs
        for number, index in enumerate(others):
            np.subtract(whole, apart[index], out=without)
            by_others[at, number] = without.argmin()
        if at % 50 == 0:
            done(at / len(people))
    return Nearest(people, distance / unit, linked, candidates[by_others])


def _distances_by(
    column: PooledColumn,
    candidates: Rows,
    unit: int,
    kept: int,
) -> Callable[[int], Distances]:
    """Distances of all candidates from a person by one column.

    Those of the ``kept`` last values are kept.
    """
    whole = np.int32(unit)
    missing = column.codes[candidates] == 0
    values = column.codes
    if column.numbers is not None:
        present = column.codes > 0
        shares = np.zeros(len(present))  # of the range
        if present.any():
            numbers = column.numbers[present]
            shares[present] = (numbers - numbers.min()) / (np.ptp(numbers) or 1.0)
        values = np.round(shares * unit).astype(np.int32)
    others = values[candidates]

    @lru_cache(kept)
    def distances(code: int, value: int) -> Distances:
        if column.numbers is None:
            return np.where(others != code, whole, np.int32(0))
        if code == 0:
            return np.where(missing, np.int32(0), whole)
        apart: Distances = np.abs(others - np.int32(value))
        apart[missing] = whole
        return apart

    return lambda person: distances(int(column.codes[person]), int(values[person]))


def _added(distances: Sequence[Distances]) -> Distances:
    total = distances[0].copy()
    for apart in distances[1:]:
        total += apart
    return total
