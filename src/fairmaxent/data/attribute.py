"""One column of the domain: its levels, the raw values that each of them stands for,
and rows in their terms.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.columns import distinct_values
from fairmaxent.data.draws import Choice
from fairmaxent.data.levels import (
    ColumnOptions,
    FeatureKind,
    Kind,
    group_values,
    unique_labels,
    value_key,
)
from fairmaxent.data.table import Codes, Indices, Mask, Positions, Reals
from fairmaxent.errors import (
    InputError,
    LevelError,
    Option,
    cut,
    did_you_mean_level,
    shown,
)
from fairmaxent.plain_text import visible


@dataclass(frozen=True, eq=False, repr=False)
class Attribute:
    """One column of the domain (Ω_a): its levels, and the raw values each of them
    stands for.
    """

    name: str
    kind: Kind
    # one text per level, for people; unique within the attribute
    labels: tuple[str, ...]
    features: FeatureKind
    # raw values in the column's own dtype, sorted by level; the missing one last, if
    # any
    values: frames.Column
    # level k stands for values[level_starts[k]:level_starts[k + 1]]
    level_starts: Indices
    counts: Reals  # total weight of the rows with each raw value
    # cut points between bins [a, b), the outermost of which reach to ±∞; None: no bins
    edges: Reals | None
    # the level of missing values, always the last one; None: no value was missing
    missing: int | None

    def __repr__(self) -> str:
        shown = ", ".join(self.labels[:8]) + (", …" if self.size > 8 else "")
        return visible(f"{self.name}: {self.kind}, {self.size} levels ({shown})")

    def __getstate__(self) -> dict[str, object]:
        """The fields alone: what was looked up since shows which values there are, also
        in a pickled private fit.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def size(self) -> int:
        """Number of levels, k_a."""
        return len(self.labels)

    @property
    def is_value_coded(self) -> bool:
        """Whether each level stands for exactly one raw value."""
        return len(self.counts) == self.size

    def level(self, value: object) -> int:
        """Return the level of a raw value, of a number or date inside a bin, of
        None/NaN, or of a label's text.
        """
        if self.edges is None or frames.is_missing(value):
            if (position := self._find(value)) is not None:
                return self._level_at(position)
        elif (number := frames.number_of(value)) is not None:
            return int(np.searchsorted(self.edges, number, side="right"))
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        raise LevelError(
            f"column {self.name!r} has no level {shown(value)};"
            f" {did_you_mean_level(value, self.labels)}"
        )

    def exact_level(self, value: object) -> int:
        """Return the level of a raw value that does not share its level, or of a
        label's text.
        """
        if (position := self._find(value)) is None:
            return self._label_level(value)
        level = self._level_at(position)
        if (
            level != self.missing
            and self.level_starts[level + 1] - self.level_starts[level] > 1
        ):
            advice = (
                f"name the complete level, {self.labels[level]!r}, or make bins"
                " narrower with "
            )
            shares = (
                f"column {self.name!r}: {shown(value)} shares its level with other"
                " values"
            )
            raise LevelError(f"{shares}; {advice}", Option("bins"))
        return level

    def narrowed(self, values: Sequence[object]) -> "Attribute":
        """Return the attribute with these raw values, or levels by their label, as the
        only ones that can be drawn.

        A slice of numbers or dates stands for all values from its start up to, but not
        including, its stop.
        """
        kept = np.zeros(len(self.counts), dtype=bool)
        for value in values:
            if isinstance(value, slice):
                kept |= self._in_range(value)
            elif (position := self._find(value)) is not None:
                kept[position] = True
            else:
                level = self._label_level(value)
                kept[self.level_starts[level] : self.level_starts[level + 1]] = True
        return replace(self, counts=np.where(kept, self.counts, 0.0))

    def _in_range(self, span: slice) -> Mask:
        """Say which raw values lie in a range; refuse one that makes no sense, or that
        no value lies in.
        """
        text = f"slice({span.start!r}, {span.stop!r})"
        if self.kind not in ("numeric", "date"):
            advice = "name levels, or a column of numbers or dates"
            raise InputError(
                f"column {self.name!r} is {self.kind}, so {text} says nothing of it;"
                f" {advice}"
            )
        if span.start is None:
            low = -np.inf
        else:
            low = frames.number_of(span.start)
        if span.stop is None:
            high = np.inf
        else:
            high = frames.number_of(span.stop)
        if span.step is not None or low is None or high is None:
            raise InputError(
                f"column {self.name!r}: {text} is not a range; use e.g. slice(18, 65),"
                " without a step"
            )
        numbers = frames.to_numbers(self.values)
        inside = (numbers >= low) & (numbers < high)  # NaN is neither
        if not (inside & (self.counts > 0)).any():
            raise LevelError(
                f"column {self.name!r} has no value in {text}; name a range that has"
                " some"
            )
        return np.asarray(inside)

    def level_counts(self) -> Reals:
        """Return the total weight of the rows with each level."""
        return np.asarray(np.add.reduceat(self.counts, self.level_starts[:-1]))

    def can_draw(self, values: frames.Column) -> Mask:
        """Say which of a column's distinct values can be drawn; the last entry says
        whether missing can.
        """
        positions = self._look_up(values)
        missing = self.missing is not None and self.counts[-1] > 0
        return np.append((positions >= 0) & (self.counts[positions] > 0), missing)

    def positions_of(self, values: frames.Column) -> NDArray[np.unsignedinteger]:
        """Return the position of each of a column's distinct values in `values`; the
        last entry is that of missing.
        """
        present = len(self.counts) - (self.missing is not None)
        if self.edges is not None:
            numbers = frames.to_numbers(self.values)[:present]
        else:
            numbers = np.empty(0)
        # false if large numbers or times are equal as floats
        if len(numbers) and np.all(np.diff(numbers) > 0):
            wanted = self._numbers(values)
            positions = np.minimum(np.searchsorted(numbers, wanted), present - 1)
            positions[numbers[positions] != wanted] = -1
        else:
            positions = self._look_up(values)
        if (positions < 0).any():
            raise LevelError(
                self._is_unknown(values.to_list()[int(np.argmax(positions < 0))])
            )
        return np.append(positions, len(self.counts) - 1).astype(
            np.min_scalar_type(len(self.counts))
        )

    def scores(self) -> Reals:
        """Return the mean raw value of each level (dates in seconds since 1970); NaN
        for the missing level.
        """
        if self.kind not in ("numeric", "boolean", "date"):
            levels = "its levels have no numeric value; name a column of numbers"
            raise InputError(f"column {self.name!r} is {self.kind}, so {levels}")
        sums = np.add.reduceat(
            self.counts * frames.to_numbers(self.values), self.level_starts[:-1]
        )
        totals = self.level_counts()
        return np.asarray(
            np.divide(sums, totals, out=np.full(self.size, np.nan), where=totals > 0)
        )

    def levels_of(self, values: frames.Column) -> Indices:
        """Return the level of each of a column's distinct, non-missing values."""
        if self.edges is not None:
            return np.searchsorted(self.edges, self._numbers(values), side="right")
        positions = self._look_up(values)
        if (positions < 0).any():
            value = values.to_list()[int(np.argmax(positions < 0))]
            advice = (
                f"{did_you_mean_level(value, self.labels)}; replace it, or add it to"
                " the domain"
            )
            raise LevelError(
                f"{self._is_unknown(value)}, nor declared; {advice}", column=self.name
            )
        return np.searchsorted(self.level_starts, positions, side="right") - 1

    def _look_up(self, values: frames.Column) -> Indices:
        """The position of each value in `values`, -1 if it is not there."""
        by_key = self._positions_by_key
        return np.array(
            [by_key.get(value_key(value), -1) for value in values.to_list()],
            dtype=np.intp,
        )

    def _is_unknown(self, value: object) -> str:
        return (
            f"column {self.name!r} holds {shown(value)}, which was not in the data that"
            " the domain was learned from"
        )

    def _numbers(self, values: frames.Column) -> Reals:
        """Return the numbers or times of a column; its type is not always theirs, e.g.
        if it holds none.
        """
        if values.dtype.is_numeric() or values.dtype.is_temporal():
            return frames.to_numbers(values)
        numbers = [frames.number_of(value) for value in values.to_list()]
        if None in numbers:
            changed = (
                f"was learned as {self.kind} but is now {values.dtype}; convert it back"
            )
            raise LevelError(f"column {self.name!r} {changed}", column=self.name)
        return np.array(numbers, dtype=np.float64)

    def column_of(self, codes: Codes) -> frames.Column:
        """Return codes as raw values if each level is one value, otherwise as
        labels.
        """
        if self.is_value_coded:
            return frames.take(self.values, codes)
        labels = [self.labels[code] for code in codes]
        return nw.new_series(
            self.name, labels, nw.String, backend=self.values.implementation
        )

    def draw(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Draw the position of one raw value per code; uses ``rng.random(len(codes))``
        unless each level is one.
        """
        if self.is_value_coded:
            return codes
        return np.asarray(
            self.level_starts[:-1].take(codes) + self._choice.draw(codes, rng)
        )

    def _find(self, value: object) -> int | None:
        """Return the position of a raw value in `values`; None if it is not there."""
        if not frames.is_missing(value):
            if isinstance(value, Hashable):
                return self._positions_by_key.get(value_key(value))
            return None
        if self.missing is None:
            none = (
                "had no missing values when the domain was learned, or none were"
                " declared"
            )
            advice = "fill them in, or learn or declare the domain with them"
            raise LevelError(f"column {self.name!r} {none}; {advice}", column=self.name)
        return int(self.level_starts[self.missing])

    def _level_at(self, position: int) -> int:
        return int(np.searchsorted(self.level_starts, position, side="right")) - 1

    def _label_level(self, value: object) -> int:
        """Return the level with this label, or explain what is wrong with a value that
        was never seen.
        """
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        advice = (
            "name a value that was seen, or its level,"
            f" {self.labels[self.level(value)]!r}"
        )
        raise LevelError(f"column {self.name!r} never holds {shown(value)}; {advice}")

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.counts, self.level_starts[:-1])

    @cached_property
    def _positions_by_key(self) -> dict[Hashable, int]:
        if self.missing is None:
            stop = len(self.counts)
        else:
            stop = int(self.level_starts[self.missing])
        return {
            value_key(value): position
            for position, value in enumerate(self.values.to_list()[:stop])
        }


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """One column of a table in terms of its attribute."""

    attribute: Attribute
    levels: Codes  # the level of each row
    positions: NDArray[np.unsignedinteger] | None = None
    """Where the raw value of each row stands in `Attribute.values`; None: each level is
    one value, or nobody asked.
    """
    # why there are no positions although they were wanted: which value the attribute
    # does not know
    unknown: str = ""
    notes: tuple[str, ...] = ()  # of a column that was learned
    present: int = 0  # its rows that have a value


@dataclass(frozen=True, eq=False)
class Encoded:
    """All columns of a table."""

    # the level of each row in each column, shape (rows, columns), in Fortran order
    codes: Codes
    # of the columns whose levels stand for several values; None: some value is unknown
    positions: Positions | None
    unknown: str = ""  # which value that is

    @classmethod
    def stacked(cls, columns: Sequence[EncodedColumn]) -> "Encoded":
        """Put columns side by side."""
        largest = max(column.attribute.size for column in columns) - 1
        codes = np.empty(
            (len(columns[0].levels), len(columns)),
            np.min_scalar_type(largest),
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
        return cls(codes, None if unknown else positions, unknown)


def encode_column(
    attribute: Attribute, series: frames.Column, *, positions: bool
) -> EncodedColumn:
    """Encode a column by an attribute that was learned before; ``positions``: look up
    raw values, too.
    """
    with frames.column_errors(series):
        distinct = distinct_values(series)
        if distinct.missing:
            missing = attribute.level(None)
        else:
            missing = 0
        levels = np.append(attribute.levels_of(distinct.values), missing).take(
            distinct.codes
        )
        if attribute.is_value_coded or not positions:
            return EncodedColumn(attribute, levels)
        try:
            return EncodedColumn(
                attribute,
                levels,
                attribute.positions_of(distinct.values).take(distinct.codes),
            )
        except LevelError as problem:  # a number in a bin that was not seen there
            return EncodedColumn(attribute, levels, unknown=str(problem))


def learn_column(
    series: frames.Column, options: ColumnOptions, weights: Reals | None
) -> EncodedColumn:
    """Learn a column from its distinct values; ``weights`` are design weights, one per
    row.
    """
    with frames.column_errors(series):
        distinct = distinct_values(series)
        values = distinct.values
        rows = distinct.rows
        if series.dtype == nw.Object and len(
            {value_key(value) for value in values.to_list()}
        ) < len(values):
            mixed = (
                "holds the same moment as a date and as a time; write all of them alike"
            )
            raise LevelError(f"column {series.name!r} {mixed}", column=series.name)
        kind = options.kind_of(series, values)
        if weights is None:
            # last: rows without a value
            counts = np.append(distinct.counts, distinct.missing).astype(np.float64)
        else:
            counts = np.roll(
                np.bincount(
                    distinct.codes + 1, weights, minlength=len(distinct.counts) + 1
                ),
                -1,
            )
        grouping = group_values(values, counts[: len(values)], kind, options)
        levels = grouping.levels
        labels = [*map(cut, grouping.labels)]
        missing = None
        if distinct.missing:
            missing = len(labels)
            labels.append("missing")
            levels = np.append(levels, missing)
            rows = np.append(rows, distinct.codes.argmin())
        by_level = np.argsort(levels, kind="stable")
        if distinct.missing or np.any(np.diff(by_level) < 0):
            values = frames.take(series, rows[by_level])
        starts = np.searchsorted(levels[by_level], np.arange(len(labels) + 1))
        counts = counts[by_level]
        empty = np.repeat(np.add.reduceat(counts, starts[:-1]) == 0, np.diff(starts))
        # so that a level without weight can be decoded
        counts = np.where(empty, 1.0, counts)
        texts = unique_labels(labels)
        features = options.features_of(series.name, kind)
        attribute = Attribute(
            series.name,
            kind,
            texts,
            features,
            values,
            starts,
            counts,
            grouping.edges,
            missing,
        )
        positions = None
        if not attribute.is_value_coded:
            positions = np.empty(len(by_level), np.min_scalar_type(len(by_level)))
            positions[by_level] = np.arange(len(by_level))
            positions = positions.take(distinct.codes)
        if grouping.note:
            notes = [grouping.note]
        else:
            notes = []
        if attribute.size == 1:
            notes.append(
                f"column {series.name!r} is constant ({attribute.labels[0]!r}) and"
                " carries no information"
            )
        present = int(distinct.counts.sum())
        return EncodedColumn(
            attribute,
            levels.take(distinct.codes),
            positions,
            notes=tuple(notes),
            present=present,
        )
