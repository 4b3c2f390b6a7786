"""A declaration: which levels each column can have, said before any row is read.

What a table's own values say about people would be revealed by a domain that was
learned from it: a rare level shows that somebody has it, the outermost edge is
somebody's income. A declared domain says only what everybody may know.
"""

import datetime
import math
import re
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import chain, pairwise
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import distinct_values
from fairmaxent.data.frames import (
    Column,
    Frame,
    build,
    is_missing,
    library_of,
    load_library,
    number_column,
    number_of,
    numbers_of,
    take,
    to_numbers,
)
from fairmaxent.data.levels import (
    Kind,
    edge_labels,
    unique_labels,
    value_key,
    value_text,
)
from fairmaxent.data.table import (
    Mask,
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
UNDECLARED = object()  # what a cell is read as that no declaration knows
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WRITTEN = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?: (\d{1,2}:\d\d(?::\d\d)?))?", re.ASCII
)
_COMMA = str.maketrans(",.", ". ")  # a point is no part of a number then
_WHOLE = 2**53  # below which a float is exact
_DAY_LENGTH = 10  # of 2025-02-01
# the times that Python has, in seconds since 1970
_FIRST_TIME = number_of(datetime.date.min) or 0.0
_LAST_TIME = number_of(datetime.date.max) or 0.0
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

    def reader(
        self, name: str, markers: Collection[str] = ()
    ) -> Callable[[object], Any]:
        """How a cell of a column is read, whatever the other cells are.

        It is a level, or a number or date within edges. ``markers`` are texts that mean
        missing, which is None; what was not declared is `UNDECLARED`.
        """
        levels = {value_key(level): level for level in self.levels.get(name, ())}
        of_dates = self.has_dates(name)

        def meant(cell: object) -> Any:
            missing = is_missing(cell)
            for value in () if missing else chain([cell], self._spelled(cell)):
                if name in self.levels:
                    key = value_key(value)
                    if key in levels:
                        return levels[key]
                elif _edge_kind(value) and isinstance(value, datetime.date) == of_dates:
                    return _within_edges(value)
            missing |= isinstance(cell, str) and cell.strip() in markers
            return None if missing and name in self.missing else UNDECLARED

        def read(cell: object) -> Any:
            try:
                return meant(plain_value(cell))
            # whatever a cell of a strange type raises: 31 February, an overflow, an
            # unhashable list
            except Exception:
                return UNDECLARED

        return read

    def _spelled(self, cell: object) -> Iterator[Any]:
        """What else a cell can mean: what a text spells, or the text of a value."""
        if not isinstance(cell, str):
            yield value_text(cell)
            return
        text = cell.strip()
        if text.lower() in ("true", "false"):
            yield text.lower() == "true"
        plain = text
        if self.decimal == ",":
            plain = text.translate(_COMMA)
        if _NUMBER.fullmatch(plain):
            yield _spelled_number(plain)
        if self.dates is not None:
            text = _iso_date(text, self.dates)
        if _MOMENT.fullmatch(text):
            if len(text) == _DAY_LENGTH:
                yield datetime.date.fromisoformat(text)
            else:
                yield datetime.datetime.fromisoformat(text)

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
            edges = numbers_of(given[1:-1])
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
            values=_column(name, values, library),
            level_starts=starts,
            counts=np.ones(len(values)),
            edges=edges,
            missing=missing,
        )


def _within_edges(value: Any) -> Any:
    """A number or date of Python's own type; a moment is in UTC without saying so."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        seconds = datetime.datetime(*value.timetuple()[:6])
        return seconds.replace(microsecond=value.microsecond)
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, int) and abs(value) < _WHOLE:
        return value
    return float(value)


def _spelled_number(text: str) -> float:
    number = float(text)
    if text.lstrip("+-").isdecimal() and abs(number) < _WHOLE:
        return int(number)
    return number


def _iso_date(text: str, order: DateOrder) -> str:
    """Write 1/2/2025 9:30 as 2025-02-01 09:30, or as 2025-01-02; others stay."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return text
    day, _, month, year, time = written.groups()
    if order == "mdy":
        day, month = month, day
    date = f"{year}-{month:0>2}-{day:0>2}"
    if time is None:
        return date
    if len(time.split(":")[0]) == 1:
        time = f"0{time}"
    return f"{date} {time}"


def declared_rows(
    frame: Frame, declaration: Declaration, markers: Collection[str] = ()
) -> Frame:
    """Read a table by a declaration alone, each cell by itself.

    No cell changes how those of other people are read. A value that was not declared is
    refused. Or its row is left out ("drop"), or it is "missing" where that can be, and
    its row is left out otherwise. Columns that were not declared stay as they are.
    """
    kept = np.ones(len(frame), dtype=bool)
    columns = {name: frame.get_column(name) for name in frame.columns}
    for name in declaration.names:
        if name not in columns:
            continue
        columns[name], unknown = _declared_column(columns[name], declaration, markers)
        if unknown.any() and declaration.refuses:
            cell = frame.get_column(name).to_list()[int(np.argmax(unknown))]
            raise LevelError(
                f"column {name!r} holds {shown(cell)}, which was not declared; declare"
                " all that the column can hold, which numbers have a decimal comma, and"
                " the order of dates",
                column=name,
            )
        if declaration.undeclared != "missing" or name not in declaration.missing:
            kept &= ~unknown
    declared = nw.from_native(build(columns), eager_only=True)
    if kept.all():
        return declared
    return declared.filter(kept.tolist())


def _declared_column(
    column: Column, declaration: Declaration, markers: Collection[str]
) -> tuple[Column, Mask]:
    """A column as it was declared, and which of its rows hold what was not.

    Each distinct cell is read once.
    """
    name = column.name
    dtype = column.dtype
    has_dates = declaration.has_dates(name)
    is_as_edges = dtype.is_numeric()
    if has_dates:
        is_as_edges = dtype in (nw.Date, nw.Datetime)
    if name in declaration.edges and is_as_edges:
        numbers = to_numbers(column)
        # Python has no dates beyond these.
        strange = (numbers < _FIRST_TIME) | (numbers > _LAST_TIME)
        if has_dates and strange.any():
            column = number_column(name, numbers, column)
        return column, np.isnan(numbers) & (name not in declaration.missing)

    # objects may be anything, also what cannot be compared
    if dtype == nw.Object:
        cells = column.to_list()
        codes = np.arange(len(column))
    else:
        distinct = distinct_values(column)
        cells = distinct.values.to_list()
        codes = distinct.codes
    read = declaration.reader(name, markers)
    values = [*map(read, cells), read(None)]  # the last is at -1
    unknown = np.array([value is UNDECLARED for value in values])
    # What is declared comes first, so that the type does not depend on what is there.
    known = [*(declaration.levels.get(name) or declaration.edges[name])]
    start = len(known)
    known += [None if value is UNDECLARED else value for value in values]
    if any(isinstance(value, datetime.datetime) for value in known):
        known = [at_midnight(value) for value in known]
    listed = _column(name, known, library_of(column))
    places = np.where(codes < 0, len(known) - 1, codes + start)
    return take(listed, places), unknown[codes]


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
    kinds = {_edge_kind(edge) for edge in edges}
    numbers = numbers_of(edges)
    ascending = np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    if len(edges) < 2 or not ascending or len(kinds) > 1 or None in kinds:
        raise InputError(
            f"the edges of column {name!r} are {shown(edges)}; list at least two"
            " numbers or dates in ascending order: the smallest, the limits of the"
            " bins, the largest"
        )


def _edge_kind(edge: object) -> str | None:
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


def _whole(start: int, stop: int) -> list[int]:
    count = stop - start
    if count <= VALUES_PER_BIN:
        return list(range(start, stop))
    return [
        start + (2 * step + 1) * count // (2 * VALUES_PER_BIN)
        for step in range(VALUES_PER_BIN)
    ]


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    are_truths = [isinstance(value, bool) for value in values]
    if all(are_truths):
        return "boolean"
    if not any(are_truths) and all(isinstance(value, int | float) for value in values):
        return "numeric"
    if all(isinstance(value, datetime.date) for value in values):
        return "date"
    return "categorical"


def _column(name: str, values: list[Any], library: str) -> Column:
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


def plain_value(value: Any) -> Any:
    """A value as Python has it, not numpy, whose nanoseconds would become numbers."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit, _ = np.datetime_data(value.dtype)
        if unit in ("ns", "ps"):
            value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, np.generic):
        return value.item()
    return value
