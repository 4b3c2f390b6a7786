"""What was learned about the columns of a table: their levels, and how to encode and decode them.

A *level* of an attribute stands for one or more raw values: a category for itself, a bin for the numbers seen in it,
"other" for all rare categories. Decoding a level draws one of its raw values, each as often as it was seen.
The domain Ω = Ω₁ × … × Ω_m is the product of the attributes' levels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.declaration import Declaration, drafted
from fairmaxent.data.encoding import Encoded, encode_column, learn_column
from fairmaxent.data.levels import DEFAULT_BINS, MAX_LEVELS, Bins, ColumnOptions, FeatureKind, Kind
from fairmaxent.data.limits import check_columns
from fairmaxent.data.weights import check_weights, in_range
from fairmaxent.errors import ColumnError, InputError, LevelError, did_you_mean


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The product of the attributes' levels (Ω): encodes tables, and decodes them again."""

    attributes: tuple[Attribute, ...]
    notes: tuple[str, ...]
    """What a user should know about the columns, in complete sentences."""
    identifiers: tuple[str, ...] = ()
    """Columns that look as if they named people or rows; `debias` leaves them out unless they are to be kept."""

    def __repr__(self) -> str:
        lines = [f"<Domain of {count_text(self.size)} points>", *map(repr, self.attributes), *self.notes]
        lines += [f"column {name!r} looks like an identifier" for name in self.identifiers]
        return "\n".join(lines)

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
        weight: NDArray[np.floating] | None = None,
    ) -> Domain:
        """Learn the domain of a table.

        Parameters
        ----------
        frame : a pandas DataFrame, polars DataFrame or pyarrow Table.
        kinds : kinds of columns, where the one implied by the dtype is wrong.
        bins : roughly how many bins to make from a column of numbers or dates that has more distinct values than that,
            or the edges of its bins. Bins have about equal weight; a value that has the weight of a bin gets its own.
        order : the levels of categorical columns, in order.
        features : "moment" (the value alone) or "indicator" (one per level), by column or for all numbers and dates.
        max_levels : a categorical column with more values keeps the most frequent; the rest become "other".
        weight : design weights, one per row, used for bins, for rare values and in decoding.
        """
        table = frames.open_frame(frame)
        options = ColumnOptions(table.columns, kinds or {}, bins, order or {}, features, max_levels)
        weights = None if weight is None else in_range(check_weights(weight, len(table)))
        return cls.learn_rows(table, options, weights=weights)[0]

    @staticmethod
    def declare(
        *,
        levels: Mapping[str, Sequence[Any]] | None = None,
        edges: Mapping[str, Sequence[Any]] | None = None,
        missing: Sequence[str] = (),
    ) -> Declaration:
        """Say which values each column can have, without looking at any row.

        Nothing is learned from the table, so the declaration reveals nothing about the people in it; a private fit
        needs one. Pass it to :func:`fairmaxent.debias` as ``domain``.

        Parameters
        ----------
        levels : the values that a column can have, e.g. ``{"sex": ["Female", "Male"]}``.
        edges : for columns of numbers or dates, the edges of their bins, e.g. ``{"age": [0, 18, 30, 65, 120]}``. What
            lies outside counts in the outermost bins. Numbers that are drawn are evenly spread over their bin; they are
            whole if all edges are, so write 0.0 instead of 0 to draw fractions.
        missing : the columns that can have missing values.
        """
        return Declaration.of(levels or {}, edges or {}, missing)

    @classmethod
    def learn_rows(cls, frame: Any, options: ColumnOptions, *, weights: Reals | None = None) -> tuple[Domain, Encoded]:
        """Learn the domain of a table and encode the table, including raw values, in one pass over each column.

        ``weights`` are design weights that were checked, and whose sum is within the range of float64.
        """
        table = frames.open_frame(frame)
        check_columns(len(table.columns))
        columns = [learn_column(table.get_column(name), options, weights) for name in table.columns]
        notes = tuple(note for column in columns for note in column.notes)
        identifiers = tuple(column.attribute.name for column in columns if column.identifier)
        domain = cls(tuple(column.attribute for column in columns), notes, identifiers)
        return domain, Encoded.stacked([column.encoded for column in columns], domain.sizes)

    def draft(self) -> Declaration:
        """Draft a declaration from what was learned, without identifiers.

        The draft holds values of the table, so a private fit refuses it. Read its ``levels``, ``edges`` and
        ``missing``, change what is not public knowledge, and pass the result to :meth:`declare`.
        """
        return drafted(self.without(self.identifiers).attributes)

    def with_attributes(self, changed: Mapping[int, Attribute]) -> Domain:
        """Return the domain with some attributes, by position, replaced."""
        attributes = [changed.get(index, attribute) for index, attribute in enumerate(self.attributes)]
        return replace(self, attributes=tuple(attributes))

    def without(self, names: Collection[str]) -> Domain:
        """Return the domain without some columns, and without the notes on them."""
        return Domain(
            tuple(attribute for attribute in self.attributes if attribute.name not in names),
            tuple(note for note in self.notes if not any(note.startswith(f"column {name!r}") for name in names)),
            tuple(name for name in self.identifiers if name not in names),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def library(self) -> str:
        """The DataFrame library of the table it was learned from, and of those it decodes to."""
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
        if name not in self.names:
            raise ColumnError(f"no column {name!r}; {did_you_mean(name, self.names)}")
        return self.names.index(name)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a column."""
        return self.attributes[self.index(name)]

    def column_of(self, name: str, codes: NDArray[np.integer]) -> frames.Column:
        """Return the codes of one column as raw values if each level is one value, otherwise as labels."""
        return self.attribute(name).column_of(codes)

    def encode(self, frame: Any) -> Codes:
        """Return the level of each row in each column, shape (rows, columns), in Fortran order."""
        return self._encode(frame, positions=False).codes

    def encode_rows(self, frame: Any) -> Encoded:
        """Encode a table, including raw values, in one pass over each column."""
        return self._encode(frame, positions=True)

    def _encode(self, frame: Any, *, positions: bool) -> Encoded:
        table = frames.open_frame(frame)
        columns = [
            encode_column(attribute, frames.column(table, attribute.name), positions=positions)
            for attribute in self.attributes
        ]
        return Encoded.stacked(columns, self.sizes)

    def decode(
        self,
        codes: NDArray[np.integer],
        *,
        rng: np.random.Generator,
        known: Mapping[int, NDArray[np.integer]] | None = None,
    ) -> Any:
        """Return a table of the learned kind: same columns, order, dtypes and categories.

        Columns are drawn from left to right; each one with a level of several raw values takes ``rng.random(rows)``.
        ``known`` holds, for some columns, positions of raw values to use instead of drawn ones; -1: draw this one.
        """
        self._check_codes(codes)
        drawn = {}
        for index, (attribute, column) in enumerate(zip(self.attributes, codes.T, strict=True)):
            positions = attribute.draw(column, rng)
            if known and index in known:
                positions = np.where(known[index] >= 0, known[index], positions)
            drawn[attribute.name] = (attribute.values, positions)
        return frames.gather(drawn)

    def _check_codes(self, codes: NDArray[np.integer]) -> None:
        if codes.ndim != 2 or codes.shape[1] != len(self.attributes) or codes.dtype.kind not in "iu":
            raise InputError(f"codes must be integers of shape (rows, {len(self.attributes)})")
        for attribute, column in zip(self.attributes, codes.T, strict=True):
            if len(column) and not 0 <= column.min() <= column.max() < attribute.size:
                raise LevelError(f"codes of column {attribute.name!r} must lie in 0 … {attribute.size - 1}")


def count_text(count: int) -> str:
    """Write a number that may have thousands of digits.

    >>> count_text(48_000), count_text(64**2000)
    ('48,000', 'about 10^3612')
    """
    return f"{count:,}" if count < 10**18 else f"about 10^{math.log10(count):.0f}"


def bound(domain: Domain | Declaration, frame: nw.DataFrame[Any]) -> Domain:
    """Give a declaration the types of a table; a domain stays as it is."""
    return Domain(domain.attributes(frame), ()) if isinstance(domain, Declaration) else domain


def check_domain(domain: Domain, frame: nw.DataFrame[Any], weight: str | None) -> None:
    """Refuse a domain that has other columns, or comes from another library, than a frame without its weights."""
    if not isinstance(domain, Domain):
        raise InputError(f"domain is {domain!r}; pass a Domain, e.g. Domain.infer(frame), or None")
    if weight in domain.names:
        raise ColumnError(f"the given Domain includes the weight column {weight!r}; infer it without that column")
    unknown = [name for name in frame.columns if name not in domain.names]
    if unknown:
        raise ColumnError(
            f"column {unknown[0]!r} is not in the given Domain; infer the Domain from the same columns, or drop it"
        )
    learned_from, now = domain.library, frames.library_of(frame.get_column(frame.columns[0]))
    if learned_from != now:
        raise InputError(
            f"the Domain was learned from a {learned_from} table, but the frame is a {now} table; infer it from the "
            "same kind"
        )
