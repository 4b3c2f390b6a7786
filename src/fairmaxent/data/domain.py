"""The domain Ω = Ω₁ × … × Ω_m of a table: its columns' levels, as codes and as values.

A *level* stands for one or more raw values: a category for itself, a bin for the
numbers seen in it, "other" for all rare categories. Decoding a level draws one of its
raw values, each as often as it was seen.
"""

import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.attribute import (
    Attribute,
    EncodedColumn,
    encode_column,
    learn_column,
)
from fairmaxent.data.declaration import (
    DateOrder,
    DecimalMark,
    Declaration,
    Lists,
)
from fairmaxent.data.frames import (
    Frame,
    check_weights,
    gather,
    in_range,
    library_of,
    numbers_of,
    open_frame,
    plain_value,
)
from fairmaxent.data.identifiers import looks_like_identifier
from fairmaxent.data.levels import (
    DEFAULT_BINS,
    MAX_LEVELS,
    Bins,
    ColumnOptions,
    FeatureKind,
    Kind,
    Notes,
)
from fairmaxent.data.limits import check_columns
from fairmaxent.data.table import (
    Axes,
    Codes,
    NameList,
    Names,
    Positions,
    Reals,
)
from fairmaxent.errors import ColumnError, InputError, LevelError, did_you_mean
from fairmaxent.plain_text import visible

_HANDFUL = 8  # bins of a column
_STEPS = (5, 2.5, 2, 1)  # times a power of ten, between edges
_DAY = 86_400  # seconds; pandas has no dates, only times that are all midnight
# from which on the edges of dates are rounded to years, and otherwise to months
_MANY_YEARS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The product of the attributes' levels (Ω): encodes tables, and decodes them."""

    attributes: tuple[Attribute, ...]
    # what a user should know about the columns, in complete sentences
    notes: Notes
    identifiers: Names = ()
    """Columns that look as if they named people or rows; `debias` leaves them out
    unless they are to be kept.
    """

    def __repr__(self) -> str:
        lines = [
            f"<Domain of {count_text(self.size)} points>",
            *map(repr, self.attributes),
            *self.notes,
        ]
        lines += [
            f"column {name!r} looks like an identifier" for name in self.identifiers
        ]
        return visible("\n".join(lines))

    @classmethod
    def infer(
        cls,
        frame: Any,
        *,
        kinds: Mapping[str, Kind] | None = None,
        bins: int | Mapping[str, Bins] = DEFAULT_BINS,
        order: Lists | None = None,
        features: Mapping[str, FeatureKind] | FeatureKind = "indicator",
        max_levels: int = MAX_LEVELS,
        weight: Any = None,
    ) -> "Domain":
        """Learn the domain of a table.

        Parameters
        ----------
        frame : a pandas DataFrame, polars DataFrame or pyarrow Table.
        kinds : kinds of columns, where the one implied by the dtype is wrong.
        bins : roughly how many bins to make from a column of numbers or dates that has
            more distinct values than that, or the edges of its bins. Bins have about
            equal weight; a value that has the weight of a bin gets its own.
        order : the levels of categorical columns, in order.
        features : "moment" (the value alone) or "indicator" (one per level), by column
            or for all numbers and dates.
        max_levels : a categorical column with more values keeps the most frequent; the
            rest become "other".
        weight : design weights, one per row, used for bins, for rare values and in
            decoding.
        """
        frame = open_frame(frame)
        options = ColumnOptions(
            names=frame.columns,
            kinds=kinds or {},
            bins=bins,
            order=order or {},
            features=features,
            max_levels=max_levels,
        )
        weights = None
        if weight is not None:
            weights = in_range(check_weights(weight, len(frame)))
        return cls.of(learn_columns(frame, options, weights))

    @staticmethod
    def declare(
        *,
        levels: Lists | None = None,
        edges: Lists | None = None,
        missing: NameList = (),
        decimal: DecimalMark = ".",
        dates: DateOrder | None = None,
    ) -> Declaration:
        """Say which values each column can have, without looking at any row.

        Nothing is learned from the table, so the declaration reveals nothing about the
        people in it; a private fit needs one. Pass it to :func:`fairmaxent.debias` as
        ``domain``.

        Parameters
        ----------
        levels : the values that a column can have, e.g. ``{"sex": ["Female",
            "Male"]}``.
        edges : for columns of numbers or dates, the edges of their bins, e.g.
            ``{"age": [0, 18, 30, 65, 120]}``. What lies outside counts in the outermost
            bins. Numbers that are drawn are evenly spread over their bin; they are
            whole if all edges are, so write 0.0 instead of 0 to draw fractions.
        missing : the columns that can have missing values.
        decimal : the decimal mark of numbers that are written as text, "." or ",".
        dates : the order of dates such as 1/2/2025 that are written as text, "dmy" or
            "mdy"; by default they are written as 2025-02-01.
        """
        return Declaration.of(levels or {}, edges or {}, missing, decimal, dates)

    @classmethod
    def of(cls, columns: Sequence[EncodedColumn]) -> "Domain":
        """Put the attributes of columns that were learned together."""
        return cls(
            attributes=tuple(column.attribute for column in columns),
            notes=tuple(note for column in columns for note in column.notes),
            identifiers=tuple(
                column.attribute.name
                for column in columns
                if looks_like_identifier(column.attribute, column.present)
            ),
        )

    def draft(self) -> Declaration:
        """Draft a declaration from what was learned, without identifiers.

        The draft holds values of the table, so a private fit refuses it. Read its
        ``levels``, ``edges`` and ``missing``, change what is not public knowledge, and
        pass the result to :meth:`declare`.
        """
        return drafted(self.without(self.identifiers).attributes)

    def with_attributes(self, changed: Mapping[int, Attribute]) -> "Domain":
        """Return the domain with some attributes, by position, replaced."""
        attributes = tuple(
            changed.get(index, attribute)
            for index, attribute in enumerate(self.attributes)
        )
        return replace(self, attributes=attributes)

    def without(self, names: Collection[str]) -> "Domain":
        """Return the domain without some columns, and without the notes on them."""
        about = tuple(f"column {name!r}" for name in names)
        return Domain(
            attributes=tuple(
                attribute
                for attribute in self.attributes
                if attribute.name not in names
            ),
            notes=tuple(note for note in self.notes if not note.startswith(about)),
            identifiers=tuple(name for name in self.identifiers if name not in names),
        )

    def without_identifiers(
        self, keep: Collection[str] | None
    ) -> "tuple[Domain, Names]":
        """Leave out the columns that look like identifiers, whose names come last.

        Those to ``keep`` (None: all) stay, with a note.
        """
        if keep is None or not self.identifiers:
            return self, ()
        left_out = tuple(name for name in self.identifiers if name not in keep)
        narrowed = self.without(left_out)
        kept = [
            f"column {name!r} looks like an identifier and was kept, so rows, models"
            " and reports may hold its values"
            for name in narrowed.identifiers
        ]
        return replace(narrowed, notes=(*narrowed.notes, *kept)), left_out

    @property
    def names(self) -> Names:
        """Column names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def library(self) -> str:
        """The DataFrame library of tables that it encodes, and that it decodes to."""
        return library_of(self.attributes[0].values)

    @property
    def sizes(self) -> Axes:
        """Number of levels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Number of points |Ω|, exactly."""
        return math.prod(self.sizes)

    def index(self, name: str) -> int:
        """Return the position of a column."""
        if not isinstance(name, str) or name not in self.names:
            raise ColumnError(f"no column {name!r}; {did_you_mean(name, self.names)}")
        return self.names.index(name)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a column."""
        return self.attributes[self.index(name)]

    def encode(self, frame: Any, *, rest: bool = False) -> Codes:
        """Return the level of each row and column: (rows, columns), Fortran order."""
        return self.encode_rows(frame, positions=False, rest=rest).codes

    def encode_rows(
        self, frame: Any, *, positions: bool = True, rest: bool = False
    ) -> "EncodedTable":
        """Encode a table, including raw values if ``positions``; one pass a column.

        Values not listed are refused, or belong to the ``rest``: the last level.
        """
        if not isinstance(frame, nw.DataFrame):  # which was opened before
            frame = open_frame(frame)
        columns = [
            encode_column(
                attribute,
                frames.column(frame, attribute.name),
                positions=positions,
                rest=rest,
            )
            for attribute in self.attributes
        ]
        return EncodedTable.of(self, columns)

    def decode(
        self,
        codes: Codes,
        *,
        rng: Generator,
        known: Mapping[int, Codes] | None = None,
    ) -> Any:
        """Return a table of the learned kind: same columns, dtypes and categories.

        Columns are drawn from left to right; each one with a level of several raw
        values takes ``rng.random(rows)``. ``known`` holds, for some columns, positions
        of raw values to use instead of drawn ones; -1: draw this one.
        """
        if (
            codes.ndim != 2
            or codes.shape[1] != len(self.attributes)
            or codes.dtype.kind not in "iu"
        ):
            raise InputError(
                f"codes must be integers of shape (rows, {len(self.attributes)})"
            )
        drawn = {}
        for index, (attribute, column) in enumerate(
            zip(self.attributes, codes.T, strict=True)
        ):
            if len(column) and not 0 <= column.min() <= column.max() < attribute.size:
                raise LevelError(
                    f"codes of column {attribute.name!r} must lie in 0 …"
                    f" {attribute.size - 1}"
                )
            positions = attribute.draw(column, rng)
            if known and index in known:
                positions = np.where(known[index] >= 0, known[index], positions)
            drawn[attribute.name] = (attribute.values, positions)
        return gather(drawn)


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a table in memory, in terms of a domain."""

    domain: Domain
    # the level of each row in each column, shape (rows, columns), in Fortran order
    codes: Codes
    # of the columns whose levels stand for several values; None: some value is unknown
    positions: Positions | None
    unknown: str  # which value that is
    left_out: Names = ()  # columns that look like identifiers

    @classmethod
    def of(cls, domain: Domain, columns: Sequence[EncodedColumn]) -> "EncodedTable":
        """Put the columns of a domain side by side."""
        codes = np.empty(
            (len(columns[0].levels), len(columns)),
            np.min_scalar_type(max(domain.sizes) - 1),
            order="F",
        )
        for index, column in enumerate(columns):
            codes[:, index] = column.levels
        positions = {
            index: column.positions
            for index, column in enumerate(columns)
            if column.positions is not None
        }
        unknown = next((column.unknown for column in columns if column.unknown), "")
        return cls(domain, codes, None if unknown else positions, unknown)


def learn_columns(
    frame: Any, options: ColumnOptions, weights: Reals | None
) -> list[EncodedColumn]:
    """Learn the levels of each column; ``weights`` were checked, and are in range."""
    frame = open_frame(frame)
    check_columns(len(frame.columns))
    return [
        learn_column(frame.get_column(name), options, weights) for name in frame.columns
    ]


def count_text(count: int) -> str:
    """Write a number that may have thousands of digits: 48,000, or about 10^3612."""
    if count < 10**18:
        return f"{count:,}"
    return f"about 10^{math.log10(count):.0f}"


def bound(domain: Domain | Declaration, frame: Frame) -> Domain:
    """Give a declaration the types of a table; a domain stays as it is."""
    if isinstance(domain, Declaration):
        return Domain(domain.attributes(frame), ())
    return domain


def fitting(given: Domain | Declaration, frame: Frame, weight: str | None) -> Domain:
    """Return the domain; refuse one of other columns than a frame, or another library.

    The frame comes without its ``weight`` column.
    """
    domain = bound(given, frame)
    if not isinstance(domain, Domain):
        raise InputError(
            f"domain is {domain!r}; pass a Domain, e.g. Domain.infer(frame), or None"
        )
    if weight in domain.names:
        raise ColumnError(
            f"the given Domain includes the weight column {weight!r}; infer it without"
            " that column"
        )
    for name in frame.columns:
        if name not in domain.names:
            raise ColumnError(
                f"column {name!r} is not in the given Domain; infer the Domain from the"
                " same columns, or drop it"
            )
    library = library_of(frame)
    if domain.library != library:
        raise InputError(
            f"the Domain was learned from a {domain.library} table, but the frame is a"
            f" {library} table; infer it from the same kind"
        )
    return domain


# ---------------------------------------------------------------- drafts


def drafted(attributes: Sequence[Attribute]) -> Declaration:
    """Declare what was learned: few values as they are, many by round edges."""
    levels = {}
    edges = {}
    missing = []
    for attribute in attributes:
        if attribute.edges is None:
            levels[attribute.name] = _values(attribute)
        else:
            edges[attribute.name] = _edges(attribute)
        if attribute.missing is not None:
            missing.append(attribute.name)
    return replace(Declaration.of(levels, edges, missing), draft=True)


def _values(attribute: Attribute) -> list[Any]:
    return [*map(plain_value, attribute.values.to_list()[: attribute.present])]


def _edges(attribute: Attribute) -> list[Any]:
    """A few round edges near the limits of the bins, which are people's own values.

    The outermost are beyond all values.
    """
    values = _values(attribute)
    numbers = numbers_of(values)
    limits = np.asarray(attribute.edges)
    # zero is a bin of its own, which many have, so that it is nobody's
    zero_is_alone = numbers.min() == 0 < limits[0] <= 1
    places = np.linspace(-1, len(limits), _HANDFUL + 1)[1:-1].round()
    places = places.clip(0, len(limits) - 1)
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
    edges = {
        float(f"{edge:.12g}") for edge in (low, *near, high) if low <= edge <= high
    }
    if whole and zero_is_alone:
        edges.add(1.0)
    if len(edges) == 1:
        edges = {low, low + steps[0]}
    ascending = sorted(edges)
    # Between whole edges, only whole numbers are drawn.
    if whole:
        return [int(edge) for edge in ascending]
    return ascending


def _round_step(gap: float, *, whole: bool) -> float:
    """The largest round number that is no larger than a gap.

    That is 1, 2, 2.5 or 5 times a power of ten; a ``whole`` number if asked.
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
    """The first date, the one that begins each bin, and the last, rounded.

    They are rounded to months, or to years if there are many.
    """
    bin_of = np.searchsorted(limits, numbers, side="right")
    begins = np.unique(bin_of, return_index=True)[1]  # values ascend
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
        datetime.datetime(
            day.year,
            day.month,
            1,
            tzinfo=last.tzinfo,
        )
        for day in days
    ]
