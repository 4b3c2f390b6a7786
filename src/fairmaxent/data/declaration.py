"""A declaration: which levels each column can have, said beforehand and not learned
from the rows.

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
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import distinct_values
from fairmaxent.data.levels import (
    Kind,
    edge_labels,
    unique_labels,
    value_key,
    value_text,
)
from fairmaxent.data.table import Mask, Reals
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
_WHOLE = 2**53
_DAY_LENGTH = 10
_TIMES = (
    frames.number_of(datetime.date.min) or 0.0,
    frames.number_of(datetime.date.max) or 0.0,
)
_HANDFUL = 8  # bins of a drafted column
_STEPS = (5, 2.5, 2, 1)  # times a power of ten, between edges
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
# from which on the edges of dates are rounded to years, and otherwise to months
_MANY_YEARS = 20


@dataclass(frozen=True)
class Declaration:
    """Levels and edges by column, as :meth:`Domain.declare` takes them."""

    levels: Lists
    edges: Lists
    missing: tuple[str, ...]
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
        missing: Sequence[str],
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
        levels = {name: [*map(_plain, levels[name])] for name in levels}
        edges = {name: [*map(_plain, edges[name])] for name in edges}
        for name in levels:
            _check_levels(name, levels[name])
            if name in edges:
                raise ColumnError(
                    f"column {name!r} is declared with levels and with edges; keep one"
                    " of the two"
                )
        for name, listed in edges.items():
            kinds = {_edge_kind(edge) for edge in listed}
            numbers = np.array(
                [frames.number_of(edge) for edge in listed], dtype=np.float64
            )
            ascending = (
                len(listed) > 1
                and np.isfinite(numbers).all()
                and (np.diff(numbers) > 0).all()
            )
            if not ascending or len(kinds) > 1 or None in kinds:
                wanted = (
                    "at least two numbers or dates in ascending order: the smallest,"
                    " the limits of the bins, the"
                )
                raise InputError(
                    f"the edges of column {name!r} are {shown(listed)}; list {wanted}"
                    " largest"
                )
        if isinstance(missing, str):
            names = [missing]
        else:
            names = missing
        if not _is_listed(names):
            raise InputError(
                f"missing is {shown(missing)}; list the columns that can have missing"
                " values"
            )
        for name in names:
            if name not in levels and name not in edges:
                raise ColumnError(
                    f"missing names {name!r}, which is not declared; add its levels or"
                    " its edges"
                )
        return cls(levels, edges, (*names,), decimal, dates)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are declared."""
        return (*self.levels, *self.edges)

    @property
    def refuses(self) -> bool:
        """Whether other values stop a fit; if not, rows are left out, perhaps all of
        them.
        """
        return self.undeclared in (None, "refuse")

    def reader(
        self, name: str, markers: Collection[str] = ()
    ) -> Callable[[object], Any]:
        """How a cell of a column is read, whatever the other cells are: as a level, or
        a number or date within edges.

        ``markers`` are texts that mean missing, which is None; what was not declared is
        `UNDECLARED`.
        """
        levels = {value_key(level): level for level in self.levels.get(name, ())}
        of_dates = isinstance(self.edges.get(name, [0])[0], datetime.date)

        def meant(cell: object) -> Any:
            is_missing = frames.is_missing(cell)
            for value in () if is_missing else chain([cell], self._spelled(cell)):
                if name in self.levels:
                    if (key := value_key(value)) in levels:
                        return levels[key]
                elif _edge_kind(value) and isinstance(value, datetime.date) == of_dates:
                    is_whole = isinstance(value, int) and abs(value) < _WHOLE
                    if of_dates:
                        return _utc(value)
                    if is_whole:
                        return value
                    return float(value)
            is_missing |= isinstance(cell, str) and cell.strip() in markers
            return None if is_missing and name in self.missing else UNDECLARED

        def read(cell: object) -> Any:
            try:
                return meant(_plain(cell))
            # whatever a cell of a strange type raises: 31 February, an overflow, an
            # unhashable list
            except Exception:
                return UNDECLARED

        return read

    def _spelled(self, cell: object) -> Iterator[Any]:
        """What else a cell can mean: the truth value, number or date that a text
        spells, or the text of a value.
        """
        if not isinstance(cell, str):
            yield value_text(cell)
            return
        text = cell.strip()
        if text.lower() in ("true", "false"):
            yield text.lower() == "true"
        if self.decimal == ".":
            plain = text
        else:
            plain = text.translate(_COMMA)
        if _NUMBER.fullmatch(plain):
            number = float(plain)
            yield (
                int(number)
                if plain.lstrip("+-").isdecimal() and abs(number) < _WHOLE
                else number
            )
        if self.dates is not None and (written := _WRITTEN.fullmatch(text)):
            first, _, second, year, time = written.groups()
            if self.dates == "dmy":
                day = first
                month = second
            else:
                day = second
                month = first
            text = (
                f"{year}-{month:0>2}-{day:0>2}"
                f" {time or '':0>{3 * (time or '').count(':') + 2}}".removesuffix(" 00")
            )
        if _MOMENT.fullmatch(text):
            yield (
                datetime.date if len(text) == _DAY_LENGTH else datetime.datetime
            ).fromisoformat(text)

    def attributes(self, frame: frames.Frame) -> tuple[Attribute, ...]:
        """The columns of a table as they were declared; of the table, only names and
        the library are looked at.
        """
        for name in frame.columns:
            if name not in self.names:
                advice = (
                    "add its levels or edges to the declaration, or take the column out"
                    " of the table"
                )
                raise ColumnError(f"column {name!r} is not declared; {advice}")
        for name in self.names:
            if name not in frame.columns:
                raise ColumnError(
                    f"column {name!r} is declared, but the table has no such column"
                )
        library = str(frame.implementation.value)
        return tuple(self._attribute(name, library) for name in frame.columns)

    def _attribute(self, name: str, library: str) -> Attribute:
        if name in self.levels:
            kind = _kind_of_levels(self.levels[name])
            # Numbers and dates ascend in every domain: engines count how many of them a
            # value reaches.
            if kind in ("numeric", "date"):
                values = sorted(self.levels[name])
            else:
                values = list(self.levels[name])
            starts = np.arange(len(values) + 1)
            edges = None
            labels = [value_text(value) for value in values]
        else:
            given = self.edges[name]
            bins = [
                _bin_values(left, right, last=right is given[-1])
                for left, right in pairwise(given)
            ]
            values = [value for inside in bins for value in inside]
            starts = np.cumsum([0, *map(len, bins)])
            edges = np.array(
                [frames.number_of(edge) for edge in given[1:-1]], dtype=np.float64
            )
            kind = "date" if isinstance(values[0], datetime.date) else "numeric"
            # The outermost bins also hold what lies beyond.
            labels = edge_labels(
                [value_text(edge) for edge in given],
                below=len(bins) > 1,
                above=len(bins) > 1,
            )
        missing = None
        if name in self.missing:
            missing = len(labels)
            values = [*values, None]
            starts = np.append(starts, starts[-1] + 1)
            labels = [*labels, "missing"]
        texts = unique_labels([cut(label) for label in labels])
        column = _column(name, values, library)
        return Attribute(
            name,
            kind,
            texts,
            "indicator",
            column,
            starts,
            np.ones(len(values)),
            edges,
            missing,
        )


def _utc(moment: datetime.date) -> datetime.date:
    """A date, or a moment in UTC without saying so, of Python's own type."""
    if not isinstance(moment, datetime.datetime):
        return moment
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC)
    return datetime.datetime(*moment.timetuple()[:6], moment.microsecond)


def declared_rows(
    frame: frames.Frame, declaration: Declaration, markers: Collection[str] = ()
) -> frames.Frame:
    """Read a table by a declaration alone, each cell by itself: no cell changes how
    those of other people are read.

    A value that was not declared is refused. Or its row is left out ("drop"), or it is
    "missing" where that can be, and its row is left out otherwise. Columns that were
    not declared stay as they are.
    """
    kept = np.ones(len(frame), dtype=bool)
    columns = {name: frame.get_column(name) for name in frame.columns}
    for name in declaration.names:
        if name not in columns:
            continue
        columns[name], unknown = _declared_column(columns[name], declaration, markers)
        if unknown.any() and declaration.refuses:
            cell = frame.get_column(name).to_list()[int(np.argmax(unknown))]
            advice = (
                "declare all that the column can hold, which numbers have a decimal"
                " comma, and the order of dates"
            )
            raise LevelError(
                f"column {name!r} holds {shown(cell)}, which was not declared;"
                f" {advice}",
                column=name,
            )
        if declaration.undeclared != "missing" or name not in declaration.missing:
            kept &= ~unknown
    table: frames.Frame = nw.from_native(frames.build(columns), eager_only=True)
    if kept.all():
        return table
    return table.filter(kept.tolist())


def _declared_column(
    series: frames.Column, declaration: Declaration, markers: Collection[str]
) -> tuple[frames.Column, Mask]:
    """A column as it was declared, and which of its rows hold what was not; each
    distinct cell is read once.
    """
    name = series.name
    dtype = series.dtype
    read = declaration.reader(name, markers)
    of_dates = isinstance(declaration.edges.get(name, [0])[0], datetime.date)
    if name in declaration.edges and (
        (dtype == nw.Date or dtype == nw.Datetime) if of_dates else dtype.is_numeric()
    ):
        numbers = frames.to_numbers(series)
        # which Python does not have
        if of_dates and ((numbers < _TIMES[0]) | (numbers > _TIMES[1])).any():
            series = frames.number_column(name, numbers, series)
        return series, np.isnan(numbers) & (name not in declaration.missing)
    if dtype == nw.Object:  # whose cells may be anything, also what cannot be compared
        cells = series.to_list()
        codes = np.arange(len(series))
    else:
        distinct = distinct_values(series)
        cells = distinct.values.to_list()
        codes = distinct.codes
    values = [*map(read, cells), read(None)]  # the last is at -1
    unknown = np.array([value is UNDECLARED for value in values])
    # What is declared comes first, so that the type does not depend on what is there.
    known = [*(declaration.levels.get(name) or declaration.edges[name])]
    start = len(known)
    known += [None if value is UNDECLARED else value for value in values]
    if any(isinstance(value, datetime.datetime) for value in known):
        midnight = datetime.time()
        known = [
            datetime.datetime.combine(v, midnight) if type(v) is datetime.date else v
            for v in known
        ]
    column = _column(name, known, frames.library_of(series))
    return (
        frames.take(column, np.where(codes < 0, len(known) - 1, codes + start)),
        unknown[codes],
    )


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
    for value in values:
        if not isinstance(value, Hashable):
            advice = "declare single values: text, numbers, truth values or dates"
            raise LevelError(
                f"the levels of column {name!r} include {shown(value)}; {advice}"
            )
    if any(frames.is_missing(value) for value in values):
        raise LevelError(
            f"the levels of column {name!r} include a missing value; name the column in"
            " missing instead"
        )
    if len({value_key(value) for value in values}) < len(values):
        raise LevelError(
            f"the levels of column {name!r} include a value twice; list each once"
        )


def _edge_kind(edge: object) -> str | None:
    """What all edges of a column must be; None for durations and times of day, which
    have no bins here.
    """
    if isinstance(edge, datetime.datetime):
        return "moment" if edge.tzinfo is None else "moment with a time zone"
    if isinstance(edge, datetime.date):
        return "day"
    return "number" if isinstance(edge, Number) and not isinstance(edge, bool) else None


def _bin_values(left: Any, right: Any, *, last: bool) -> list[Any]:
    """Values evenly spread over a bin: whole numbers or days if both ends are, moments
    in whole seconds.
    """
    if isinstance(left, int) and isinstance(right, int):
        return _whole(left, right + last)
    if isinstance(left, datetime.datetime):
        spread = [
            left + (right - left) * place // VALUES_PER_BIN
            for place in range(VALUES_PER_BIN)
        ]
        # A bin that begins within a second keeps its beginning.
        return list(
            dict.fromkeys(max(moment.replace(microsecond=0), left) for moment in spread)
        )
    if isinstance(left, datetime.date):
        return [
            datetime.date.fromordinal(day)
            for day in _whole(left.toordinal(), right.toordinal() + last)
        ]
    low = float(left)
    high = float(right)
    step = (high - low) / VALUES_PER_BIN
    digits = max(0, 1 - math.floor(math.log10(step)))
    middles = np.round(low + (np.arange(VALUES_PER_BIN) + 0.5) * step, digits)
    return np.unique(middles[(middles >= low) & (middles < high)]).tolist() or [low]


def _whole(start: int, stop: int) -> list[int]:
    count = stop - start
    if count <= VALUES_PER_BIN:
        return list(range(start, stop))
    return [
        start + (2 * step + 1) * count // (2 * VALUES_PER_BIN)
        for step in range(VALUES_PER_BIN)
    ]


def _kind_of_levels(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
    ):
        return "numeric"
    return (
        "date"
        if all(isinstance(value, datetime.date) for value in values)
        else "categorical"
    )


def _column(name: str, values: list[Any], library: str) -> frames.Column:
    """Declared values as a column of a library, of the type that they have
    themselves.
    """
    # The type of the table's column is no guide, because rows decide it: a single 33.5
    # in a CSV file makes all of its whole numbers floats, and everybody could see that
    # in the rows drawn.
    kinds = {type(value) for value in values if value is not None}
    dtypes = {
        bool: nw.Boolean,
        str: nw.String,
        datetime.date: nw.Date,
        int: nw.Int64,
        float: nw.Float64,
    }
    if len(kinds) == 1:
        dtype: Any = dtypes.get(*kinds)
    else:
        dtype = None
        if kinds == {int, float}:
            dtype = nw.Float64
    backend = frames.load_library(library)
    try:
        # which has no whole numbers or truth values with gaps, and no days
        if library == "pandas":
            if dtype == nw.Boolean and None in values:
                return nw.from_native(
                    backend.Series(values, dtype="boolean", name=name), series_only=True
                )
            if dtype == nw.Int64 and None in values:
                dtype = nw.Float64
            elif dtype == nw.Date:
                dtype = nw.Datetime
        return nw.new_series(name, values, dtype, backend=backend)
    except Exception as problem:
        advice = "declare values of one type: numbers, text, truth values or dates"
        what = (
            f"the values declared for column {name!r} do not fit into one column of"
            f" {library}"
        )
        raise LevelError(f"{what}; {advice}") from problem


def _plain(value: Any) -> Any:
    """A value as Python has it, not numpy, whose nanoseconds would become numbers."""
    if isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(
        value.dtype
    )[0] in ("ns", "ps"):
        value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, np.generic):
        return value.item()
    return value


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: the values of columns with few of them, and round edges
    for the others.
    """
    levels = {
        attribute.name: _values(attribute)
        for attribute in attributes
        if attribute.edges is None
    }
    edges = {
        attribute.name: _edges(attribute)
        for attribute in attributes
        if attribute.edges is not None
    }
    missing = [
        attribute.name for attribute in attributes if attribute.missing is not None
    ]
    return replace(Declaration.of(levels, edges, missing), draft=True)


def _values(attribute: Attribute) -> list[Any]:
    values = attribute.values.to_list()
    return [
        _plain(value)
        for value in (values if attribute.missing is None else values[:-1])
    ]


def _edges(attribute: Attribute) -> list[Any]:
    """A few round edges near the limits of the bins, which are people's own values; the
    outermost are beyond all.
    """
    values = _values(attribute)
    numbers = np.array([frames.number_of(value) for value in values], dtype=np.float64)
    limits = np.asarray(attribute.edges)
    # which many have, so that it is nobody's
    if numbers.min() == 0 < limits[0] <= 1:
        after_zero = {1.0}
    else:
        after_zero = set()
    places = (
        np.linspace(-1, len(limits), _HANDFUL + 1)[1:-1]
        .round()
        .clip(0, len(limits) - 1)
    )
    limits = limits[np.unique(places.astype(int))]
    if attribute.kind == "date":
        return _date_edges(values, numbers, limits)
    whole = bool((numbers == np.round(numbers)).all())
    points = [float(numbers.min()), *limits.tolist(), float(numbers.max())]
    steps = [_round_step(right - left, whole=whole) for left, right in pairwise(points)]
    low = math.floor(points[0] / steps[0]) * steps[0]
    high = math.ceil(points[-1] / steps[-1]) * steps[-1]
    near = (
        round(limit / step) * step
        for limit, step in zip(limits, map(min, pairwise(steps)), strict=True)
    )
    edges = sorted(
        {float(f"{edge:.12g}") for edge in (low, *near, high) if low <= edge <= high}
    )
    if whole:
        edges = sorted({*edges, *after_zero})
    if not (len(edges) > 1):
        edges = [low, low + steps[0]]
    # of whole edges, only whole numbers are drawn
    if whole:
        return [int(edge) for edge in edges]
    return edges


def _round_step(gap: float, *, whole: bool) -> float:
    """The largest of 1, 2, 2.5 and 5 times a power of ten that is no larger than a gap;
    a whole number if asked.
    """
    gap = max(gap, 1.0 if whole else math.ulp(1.0))
    power = 10.0 ** math.floor(math.log10(gap))
    most = gap / power * (1 + 1e-9)  # a gap of 1.1 − 1.0 is a little less than 0.1
    return next(
        step * power
        for step in _STEPS
        if step <= most and (not whole or step * power % 1 == 0)
    )


def _date_edges(values: list[Any], numbers: Reals, limits: Reals) -> list[Any]:
    """The first date, the one that begins each bin, and the last, rounded to months, or
    to years if there are many.
    """
    # values ascend
    begins = np.unique(
        np.searchsorted(limits, numbers, side="right"), return_index=True
    )[1]
    last = values[-1]
    step = 12 if last.year - values[0].year >= _MANY_YEARS else 1
    moments = [*(values[begin] for begin in begins), last]
    months = {
        (moment.year * 12 + moment.month - 1) // step * step for moment in moments
    }
    ascending = sorted({*months, max(months) + step})
    days = [
        datetime.date(min(month // 12, datetime.MAXYEAR), month % 12 + 1, 1)
        for month in ascending
    ]
    if not (isinstance(last, datetime.datetime) and (numbers % _DAY).any()):
        return days
    return [
        datetime.datetime(day.year, day.month, 1, tzinfo=last.tzinfo) for day in days
    ]
