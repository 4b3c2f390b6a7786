"""The domain Ω = Ω₁ × … × Ω_m of a table: the levels of its columns, and how to encode
and decode them.

A *level* stands for one or more raw values: a category for itself, a bin for the
numbers seen in it, "other" for all rare categories. Decoding a level draws one of its
raw values, each as often as it was seen.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import (
    Attribute,
    Encoded,
    EncodedColumn,
    encode_column,
    learn_column,
)
from fairmaxent.data.columns import DistinctValues, distinct_values
from fairmaxent.data.declaration import DateOrder, DecimalMark, Declaration, drafted
from fairmaxent.data.identifiers import looks_like_identifier
from fairmaxent.data.levels import (
    DEFAULT_BINS,
    MAX_LEVELS,
    Bins,
    ColumnOptions,
    FeatureKind,
    Kind,
)
from fairmaxent.data.limits import check_columns
from fairmaxent.data.table import Codes, Mask, Reals
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    Option,
    did_you_mean,
    shown,
)
from fairmaxent.plain_text import visible

FEWEST_ROWS = 10  # that a value needs, to be one that many people have
OTHER = "other"


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The product of the attributes' levels (Ω): encodes tables, and decodes them
    again.
    """

    attributes: tuple[Attribute, ...]
    # what a user should know about the columns, in complete sentences
    notes: tuple[str, ...]
    identifiers: tuple[str, ...] = ()
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
        order: Mapping[str, Sequence[Any]] | None = None,
        features: Mapping[str, FeatureKind] | FeatureKind = "indicator",
        max_levels: int = MAX_LEVELS,
        weight: Any = None,
    ) -> "Domain":
        """Learn the domain of a table.

        Parameters
        ----------
        frame : a pandas DataFrame, polars DataFrame or pyarrow Table. kinds : kinds of
        columns, where the one implied by the dtype is wrong. bins : roughly how many
        bins to make from a column of numbers or dates that has more distinct values
        than that,
            or the edges of its bins. Bins have about equal weight; a value that has the
            weight of a bin gets its own.
        order : the levels of categorical columns, in order. features : "moment" (the
        value alone) or "indicator" (one per level), by column or for all numbers and
        dates. max_levels : a categorical column with more values keeps the most
        frequent; the rest become "other". weight : design weights, one per row, used
        for bins, for rare values and in decoding.
        """
        table = frames.open_frame(frame)
        options = ColumnOptions(
            table.columns, kinds or {}, bins, order or {}, features, max_levels
        )
        weights = None
        if weight is not None:
            weights = frames.in_range(frames.check_weights(weight, len(table)))
        return cls.learn_rows(table, options, weights=weights)[0]

    @staticmethod
    def declare(
        *,
        levels: Mapping[str, Sequence[Any]] | None = None,
        edges: Mapping[str, Sequence[Any]] | None = None,
        missing: Sequence[str] = (),
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
        "Male"]}``. edges : for columns of numbers or dates, the edges of their bins,
        e.g. ``{"age": [0, 18, 30, 65, 120]}``. What
            lies outside counts in the outermost bins. Numbers that are drawn are evenly
            spread over their bin; they are whole if all edges are, so write 0.0 instead
            of 0 to draw fractions.
        missing : the columns that can have missing values. decimal : the decimal mark
        of numbers that are written as text, "." or ",". dates : the order of dates such
        as 1/2/2025 that are written as text, "dmy" or "mdy"; by default they are
            written as 2025-02-01.
        """
        return Declaration.of(levels or {}, edges or {}, missing, decimal, dates)

    @classmethod
    def learn_rows(
        cls, frame: Any, options: ColumnOptions, *, weights: Reals | None = None
    ) -> "tuple[Domain, list[EncodedColumn]]":
        """Learn the domain of a table and encode its columns; ``weights`` were checked,
        and their sum is in range.
        """
        table = frames.open_frame(frame)
        check_columns(len(table.columns))
        columns = [
            learn_column(table.get_column(name), options, weights)
            for name in table.columns
        ]
        attributes = tuple(column.attribute for column in columns)
        notes = tuple(note for column in columns for note in column.notes)
        suspected = [
            column.attribute
            for column in columns
            if looks_like_identifier(column.attribute, column.present)
        ]
        return (
            cls(attributes, notes, tuple(attribute.name for attribute in suspected)),
            columns,
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
        attributes = tuple(
            attribute for attribute in self.attributes if attribute.name not in names
        )
        about = tuple(f"column {name!r}" for name in names)
        notes = tuple(note for note in self.notes if not note.startswith(about))
        return Domain(
            attributes,
            notes,
            tuple(name for name in self.identifiers if name not in names),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def library(self) -> str:
        """The DataFrame library of the table it was learned from, and of those it
        decodes to.
        """
        return frames.library_of(self.attributes[0].values)

    @property
    def sizes(self) -> tuple[int, ...]:
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

    def encode(self, frame: Any) -> Codes:
        """Return the level of each row in each column, shape (rows, columns), in
        Fortran order.
        """
        return self.encode_rows(frame, positions=False).codes

    def encode_rows(self, frame: Any, *, positions: bool = True) -> Encoded:
        """Encode a table, including raw values if ``positions``, in one pass over each
        column.
        """
        # which was opened before
        if isinstance(frame, nw.DataFrame):
            table = frame
        else:
            table = frames.open_frame(frame)
        columns = (
            (attribute, frames.column(table, attribute.name))
            for attribute in self.attributes
        )
        return Encoded.stacked(
            [encode_column(*column, positions=positions) for column in columns]
        )

    def decode(
        self,
        codes: Codes,
        *,
        rng: np.random.Generator,
        known: Mapping[int, Codes] | None = None,
    ) -> Any:
        """Return a table of the learned kind: same columns, order, dtypes and
        categories.

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
        return frames.gather(drawn)


def count_text(count: int) -> str:
    """Write a number that may have thousands of digits: 48,000, or about 10^3612."""
    if count < 10**18:
        return f"{count:,}"
    return f"about 10^{math.log10(count):.0f}"


def bound(domain: Domain | Declaration, frame: frames.Frame) -> Domain:
    """Give a declaration the types of a table; a domain stays as it is."""
    if isinstance(domain, Declaration):
        return Domain(domain.attributes(frame), ())
    return domain


def fitting(
    given: Domain | Declaration, frame: frames.Frame, weight: str | None
) -> Domain:
    """Return the domain; refuse one that has other columns than a frame without its
    weights, or another library.
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
            advice = "infer the Domain from the same columns, or drop it"
            raise ColumnError(f"column {name!r} is not in the given Domain; {advice}")
    old = domain.library
    new = str(frame.implementation.value)
    if old != new:
        clash = (
            f"the Domain was learned from a {old} table, but the frame is a {new} table"
        )
        raise InputError(f"{clash}; infer it from the same kind")
    return domain


def shareable(
    frame: frames.Frame,
    roles: Collection[str],
    keep: Collection[str],
    weight: str | None,
) -> tuple[frames.Frame, tuple[str, ...]]:
    """Return a table without rare values, which may point to a person, and without
    identifiers, whose names come last.

    Rare texts become "other". A column of many numbers is cut into bins, and each
    number becomes the middle of its bin; in a column of few numbers, a rare one becomes
    the nearest that is not rare.
    """
    if weight is None:
        columns = frame
    else:
        columns = frame.drop(frames.column(frame, weight).name)
    identifiers = Domain.infer(columns.to_native()).identifiers
    for name in identifiers:
        if name in (*roles, *keep):
            advice = "take it out, or do without "
            problem = (
                f"column {name!r} looks like an identifier, which cannot be in rows to"
                f" share; {advice}"
            )
            raise ColumnError(problem, Option("release"))
    kept = columns.drop(list(identifiers))
    changed = [
        _common(kept.get_column(name), has_role=name in roles) for name in kept.columns
    ]
    return frame.drop(list(identifiers)).with_columns(*changed), identifiers


def _common(series: frames.Column, *, has_role: bool) -> frames.Column:
    """The column without rare values."""
    distinct = distinct_values(series)
    rare = distinct.counts < FEWEST_ROWS
    if not rare.any():
        return _without_unused(series, distinct)
    if has_role:
        few = (
            f"fewer than {FEWEST_ROWS} rows with"
            f" {shown(distinct.values.to_list()[int(np.argmax(rare))])}"
        )
        advice = (
            "merge it with another level, or take those rows out, before you share rows"
        )
        raise LevelError(f"column {series.name!r} has {few}; {advice}")
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return _replaced(series, distinct, _common_numbers(distinct, rare))
    if series.dtype.is_temporal() or series.dtype == nw.Boolean:
        advice = (
            "round them, e.g. dates to years, or leave the column out, before you share"
            " rows"
        )
        raise LevelError(
            f"column {series.name!r} has values that fewer than {FEWEST_ROWS} rows"
            f" have; {advice}"
        )
    texts = [
        OTHER if few else str(value)
        for value, few in zip(distinct.values.to_list(), rare, strict=True)
    ]
    listed = [None if code < 0 else texts[code] for code in distinct.codes]
    return nw.new_series(series.name, listed, nw.String, backend=series.implementation)


def _without_unused(series: frames.Column, distinct: DistinctValues) -> frames.Column:
    """The column without categories that no row has: its type would list them, in rows
    and in the model.
    """
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series
    native = series.to_native()
    # pandas' own categories
    if hasattr(native, "cat") and hasattr(native.cat, "remove_unused_categories"):
        return nw.from_native(native.cat.remove_unused_categories(), series_only=True)
    if isinstance(series.dtype, nw.Enum):
        used = set(distinct.values.to_list())
        return series.cast(
            nw.Enum([name for name in series.dtype.categories if name in used])
        )
    return series.cast(nw.String).cast(nw.Categorical)


def _common_numbers(distinct: DistinctValues, rare: Mask) -> Reals:
    """For each distinct number, the one that takes its place."""
    # For a bin, it is the mean of the middle half of its rows. No outlier moves it, as
    # none moves a median; and several people make it together, where a median of an odd
    # number of rows is one person's own, even rounded.
    numbers = frames.to_numbers(distinct.values)
    counts = distinct.counts.astype(np.float64)
    if len(numbers) <= DEFAULT_BINS and not rare.all():
        usual = numbers[~rare]
        nearest = np.abs(numbers[:, None] - usual[None, :]).argmin(axis=1)
        return np.asarray(np.where(rare, usual[nearest], numbers))
    bins = max(1, min(DEFAULT_BINS, int(counts.sum()) // (2 * FEWEST_ROWS)))
    middle = np.cumsum(counts) - counts / 2  # the numbers ascend
    bin_of = np.minimum((middle / counts.sum() * bins).astype(np.intp), bins - 1)
    middles = np.zeros(bins)
    for number in np.unique(bin_of):
        people = np.repeat(numbers[bin_of == number], distinct.counts[bin_of == number])
        middles[number] = people[
            len(people) // 4 : len(people) - len(people) // 4
        ].mean()
    # an outlier moves no digit, either
    span = float(np.ptp(middles[bin_of]) or np.ptp(numbers))
    return np.asarray(
        np.array([_few_digits(middle, span) for middle in middles.tolist()])[bin_of]
    )


def _few_digits(mean: float, span: float) -> float:
    """Three digits of a mean (51,200), or more if its column's numbers differ only in
    later ones, as years do.
    """
    if not mean or not 0 < span < math.inf:
        return mean
    # leading digits that say nothing
    equal = math.floor(math.log10(abs(mean))) - math.floor(math.log10(span))
    return float(f"{mean:.{min(3 + max(equal, 0), 17)}g}")


def _replaced(
    series: frames.Column, distinct: DistinctValues, numbers: Reals
) -> frames.Column:
    """The column with other numbers, of the type that it has; whole numbers stay whole,
    and in its range.
    """
    values: list[float | None] = [*numbers.tolist(), None]
    if series.dtype.is_integer():
        name = str(series.dtype)  # e.g. Int8 or UInt64
        size = 2 ** int(name.lstrip("UInt"))
        if name.startswith("U"):
            least = 0
            most = size - 1
        else:
            least = -size // 2
            most = size // 2 - 1
        values = [*(min(max(round(number), least), most) for number in numbers), None]
    listed = [values[code] for code in distinct.codes]  # missing is -1, the last
    if frames.library_of(series) != "pandas":
        return nw.new_series(
            series.name, listed, series.dtype, backend=series.implementation
        )
    native = frames.load_library("pandas").Series(
        listed, dtype=series.to_native().dtype, name=series.name
    )
    return nw.from_native(native, series_only=True)
