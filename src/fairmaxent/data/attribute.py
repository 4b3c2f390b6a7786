"""One column of the domain: its levels, their raw values, and rows in their terms."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import narwhals as nw
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fairmaxent.data.columns import DistinctValues, distinct_values
from fairmaxent.data.draws import Choice
from fairmaxent.data.frames import (
    Column,
    column_errors,
    is_missing,
    number_of,
    take,
    to_numbers,
)
from fairmaxent.data.levels import (
    ColumnOptions,
    FeatureKind,
    Kind,
    Notes,
    group_values,
    unique_labels,
    value_key,
)
from fairmaxent.data.table import (
    Codes,
    Indices,
    Mask,
    Names,
    Reals,
    ratio,
)
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
    """One column of the domain (Ω_a): its levels, and the raw values of each."""

    name: str
    kind: Kind
    # one text per level, for people; unique within the attribute
    labels: Names
    features: FeatureKind
    # raw values in the column's own dtype, sorted by level; the missing one last, if
    # any
    values: Column
    # level k stands for values[level_starts[k]:level_starts[k + 1]]
    level_starts: Indices
    counts: Reals  # total weight of the rows with each raw value
    # cut points between bins [a, b), the outermost of which reach to ±∞; None: no bins
    edges: Reals | None
    # the level of missing values, always the last one; None: no value was missing
    missing: int | None

    def __repr__(self) -> str:
        labels = self.labels[:8]
        if self.size > 8:
            labels = (*labels, "…")
        shown = ", ".join(labels)
        return visible(f"{self.name}: {self.kind}, {self.size} levels ({shown})")

    def __getstate__(self) -> dict[str, object]:
        """The fields alone.

        What was looked up since shows which values there are, also in a pickled private
        fit.
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

    @property
    def present(self) -> int:
        """Number of raw values that are not missing."""
        return len(self.counts) - (self.missing is not None)

    def describe(self, level: int) -> str:
        """Name a level with its column."""
        return f"{self.name} = {self.labels[level]}"

    def level(self, value: object) -> int:
        """Return the level of a raw value, of None/NaN, or of a label's text.

        In a column of bins, a number or date need not have been seen.
        """
        if self.edges is None or is_missing(value):
            position = self._find(value)
            if position is not None:
                return self._level_at(position)
        elif (number := number_of(value)) is not None:
            return int(np.searchsorted(self.edges, number, side="right"))
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        raise LevelError(
            f"column {self.name!r} has no level {shown(value)};"
            f" {did_you_mean_level(value, self.labels)}"
        )

    def exact_level(self, value: object) -> int:
        """Return the level of a raw value that is alone in it, or of a label's text."""
        if self.kind == "boolean" and isinstance(value, str):
            value = value.capitalize()
        position = self._find(value)
        if position is None:
            return self._label_level(value)
        level = self._level_at(position)
        values = self.level_starts[level + 1] - self.level_starts[level]
        if level != self.missing and values > 1:
            raise LevelError(
                f"column {self.name!r}: {shown(value)} shares its level with other"
                f" values; name the complete level, {self.labels[level]!r}, or make"
                " bins narrower with ",
                Option("bins"),
            )
        return level

    def narrowed(self, values: Sequence[object]) -> "Attribute":
        """Return the attribute with these as the only raw values that can be drawn.

        A label stands for all values of its level. A slice of numbers or dates stands
        for all values from its start up to, but not including, its stop.
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
        """Say which raw values lie in a range; refuse one that has none."""
        text = f"slice({span.start!r}, {span.stop!r})"
        if self.kind not in ("numeric", "date"):
            raise InputError(
                f"column {self.name!r} is {self.kind}, so {text} says nothing of it;"
                " name levels, or a column of numbers or dates"
            )
        low = _end(span.start, -np.inf)
        high = _end(span.stop, np.inf)
        if span.step is not None or low is None or high is None:
            raise InputError(
                f"column {self.name!r}: {text} is not a range; use e.g. slice(18, 65),"
                " without a step"
            )
        numbers = to_numbers(self.values)
        inside = (numbers >= low) & (numbers < high)  # NaN is neither
        if not (inside & (self.counts > 0)).any():
            raise LevelError(
                f"column {self.name!r} has no value in {text}; name a range that has"
                " some"
            )
        return inside

    def level_counts(self) -> Reals:
        """Return the total weight of the rows with each level."""
        return np.add.reduceat(self.counts, self.level_starts[:-1])

    def can_draw(self, values: Column) -> Mask:
        """Say which distinct values of a column can be drawn; last: if missing can."""
        positions = self._look_up(values)
        missing = self.missing is not None and self.counts[-1] > 0
        return np.append((positions >= 0) & (self.counts[positions] > 0), missing)

    def positions_of(self, values: Column) -> NDArray[np.unsignedinteger]:
        """Where each distinct value of a column stands in `values`, missing last."""
        numbers = np.empty(0)
        if self.edges is not None:
            numbers = to_numbers(self.values)[: self.present]
        # false if large numbers or times are equal as floats
        if len(numbers) and np.all(np.diff(numbers) > 0):
            wanted = self._numbers(values)
            positions = np.minimum(np.searchsorted(numbers, wanted), self.present - 1)
            positions[numbers[positions] != wanted] = -1
        else:
            positions = self._look_up(values)
        if (positions < 0).any():
            raise LevelError(self._is_unknown(_first(values, positions < 0)))
        smallest = np.min_scalar_type(len(self.counts))
        return np.append(positions, len(self.counts) - 1).astype(smallest)

    def scores(self) -> Reals:
        """Mean raw value of each level (dates: seconds since 1970); NaN if missing."""
        if self.kind not in ("numeric", "boolean", "date"):
            raise InputError(
                f"column {self.name!r} is {self.kind}, so its levels have no numeric"
                " value; name a column of numbers"
            )
        weighted = self.counts * to_numbers(self.values)
        sums = np.add.reduceat(weighted, self.level_starts[:-1])
        return ratio(sums, self.level_counts(), np.nan)

    def levels_of(self, values: Column, *, rest: bool = False) -> Indices:
        """Return the level of each of a column's distinct, non-missing values.

        Those not listed are refused, or belong to the ``rest``, the last level.
        """
        if self.edges is not None:
            return np.searchsorted(self.edges, self._numbers(values), side="right")
        positions = self._look_up(values)
        if rest and not self.is_value_coded:
            positions[positions < 0] = self.present - 1
        if (positions < 0).any():
            value = _first(values, positions < 0)
            raise LevelError(
                f"{self._is_unknown(value)}, nor declared;"
                f" {did_you_mean_level(value, self.labels)}; replace it, or add it to"
                " the domain",
                column=self.name,
            )
        return np.searchsorted(self.level_starts, positions, side="right") - 1

    def _look_up(self, values: Column) -> Indices:
        """The position of each value in `values`, -1 if it is not there."""
        keys = map(value_key, values.to_list())
        found = [self._positions_by_key.get(key, -1) for key in keys]
        return np.array(found, dtype=int)

    def _is_unknown(self, value: object) -> str:
        return (
            f"column {self.name!r} holds {shown(value)}, which was not in the data that"
            " the domain was learned from"
        )

    def _numbers(self, values: Column) -> Reals:
        """Return the numbers or times of a column, whose type may be another's."""
        if values.dtype.is_numeric() or values.dtype.is_temporal():
            return to_numbers(values)
        numbers = [number_of(value) for value in values.to_list()]
        if None in numbers:
            raise LevelError(
                f"column {self.name!r} was learned as {self.kind} but is now"
                f" {values.dtype}; convert it back",
                column=self.name,
            )
        return np.array(numbers, dtype=float)

    def column_of(self, codes: Codes) -> Column:
        """Return codes as raw values if each level is one, otherwise as labels."""
        if self.is_value_coded:
            return take(self.values, codes)
        labels = [self.labels[code] for code in codes]
        return nw.new_series(
            self.name,
            labels,
            nw.String,
            backend=self.values.implementation,
        )

    def draw(self, codes: Codes, rng: Generator) -> Codes:
        """Draw the position of one raw value per code.

        Takes ``rng.random(len(codes))`` unless each level is one value.
        """
        if self.is_value_coded:
            return codes
        starts = self.level_starts[:-1].take(codes)
        return starts + self._choice.draw(codes, rng)

    def _find(self, value: object) -> int | None:
        """Return the position of a raw value in `values`; None if it is not there."""
        if not is_missing(value):
            if isinstance(value, Hashable):
                return self._positions_by_key.get(value_key(value))
            return None
        if self.missing is None:
            raise LevelError(
                f"column {self.name!r} had no missing values when the domain was"
                " learned, or none were declared; fill them in, or learn or declare the"
                " domain with them",
                column=self.name,
            )
        return int(self.level_starts[self.missing])

    def _level_at(self, position: int) -> int:
        return int(np.searchsorted(self.level_starts, position, side="right")) - 1

    def _label_level(self, value: object) -> int:
        """Return the level with this label; refuse a value that was never seen."""
        level = self.level(value)
        if self.labels[level] == value:
            return level
        raise LevelError(
            f"column {self.name!r} never holds {shown(value)}; name a value that was"
            f" seen, or its level, {self.labels[level]!r}"
        )

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.counts, self.level_starts[:-1])

    @cached_property
    def _positions_by_key(self) -> dict[Hashable, int]:
        keys = map(value_key, self.values.to_list()[: self.present])
        return {key: position for position, key in enumerate(keys)}


def _end(end: object, infinite: float) -> float | None:
    """The number of an end of a range; None: it is not one."""
    if end is None:
        return infinite
    return number_of(end)


def _first(values: Column, chosen: Mask) -> object:
    return values.to_list()[int(np.argmax(chosen))]


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
    notes: Notes = ()  # of a column that was learned
    present: int = 0  # its rows that have a value


def encode_column(
    attribute: Attribute, column: Column, *, positions: bool, rest: bool = False
) -> EncodedColumn:
    """Encode a column by an attribute; ``positions``: look up its raw values, too.

    ``rest`` as in `Attribute.levels_of`.
    """
    with column_errors(column):
        distinct = distinct_values(column)
        missing = 0
        if distinct.missing:
            missing = attribute.level(None)
        known = attribute.levels_of(distinct.values, rest=rest)
        level_of = np.append(known, missing)
        levels = level_of.take(distinct.codes)
        if attribute.is_value_coded or not positions:
            return EncodedColumn(attribute, levels)
        try:
            position_of = attribute.positions_of(distinct.values)
        except LevelError as problem:  # a number in a bin that was not seen there
            return EncodedColumn(attribute, levels, unknown=str(problem))
        return EncodedColumn(attribute, levels, position_of.take(distinct.codes))


def learn_column(
    column: Column, options: ColumnOptions, weights: Reals | None
) -> EncodedColumn:
    """Learn a column from its values; ``weights`` are design weights, one per row."""
    with column_errors(column):
        distinct = distinct_values(column)
        values = distinct.values
        _check_times(column, values)
        kind = options.kind_of(column, values)
        counts = value_weights(distinct, weights)
        grouping = group_values(values, counts[:-1], kind, options)
        labels = [*map(cut, grouping.labels)]
        levels = grouping.levels
        rows = distinct.rows  # the first that has each value
        missing = None
        if distinct.missing:
            missing = len(labels)
            labels.append("missing")
            levels = np.append(levels, missing)
            rows = np.append(rows, distinct.codes.argmin())
        by_level = np.argsort(levels, kind="stable")
        if distinct.missing or np.any(np.diff(by_level) < 0):
            values = take(column, rows[by_level])
        starts = np.searchsorted(levels[by_level], np.arange(len(labels) + 1))
        counts = counts[by_level]
        empty = np.repeat(np.add.reduceat(counts, starts[:-1]) == 0, np.diff(starts))
        attribute = Attribute(
            name=column.name,
            kind=kind,
            labels=unique_labels(labels),
            features=options.features_of(column.name, kind),
            values=values,
            level_starts=starts,
            # A level without weight can be decoded, too.
            counts=np.where(empty, 1.0, counts),
            edges=grouping.edges,
            missing=missing,
        )
        positions = None
        if not attribute.is_value_coded:
            position_of = np.empty(len(by_level), np.min_scalar_type(len(by_level)))
            position_of[by_level] = np.arange(len(by_level))
            positions = position_of.take(distinct.codes)
        return EncodedColumn(
            attribute=attribute,
            levels=levels.take(distinct.codes),
            positions=positions,
            notes=_notes(attribute, grouping.note),
            present=int(distinct.counts.sum()),
        )


def _check_times(column: Column, values: Column) -> None:
    """Refuse a column of objects that holds a moment twice."""
    if column.dtype != nw.Object:
        return
    if len({value_key(value) for value in values.to_list()}) < len(values):
        raise LevelError(
            f"column {column.name!r} holds the same moment as a date and as a time;"
            " write all of them alike",
            column=column.name,
        )


def value_weights(distinct: DistinctValues, weights: Reals | None) -> Reals:
    """The total weight of each distinct value and, last, of the rows without one."""
    if weights is None:
        return np.append(distinct.counts, distinct.missing).astype(float)
    size = len(distinct.counts) + 1
    return np.roll(np.bincount(distinct.codes + 1, weights, minlength=size), -1)


def _notes(attribute: Attribute, note: str | None) -> Notes:
    notes = []
    if note:
        notes.append(note)
    if attribute.size == 1:
        notes.append(
            f"column {attribute.name!r} is constant ({attribute.labels[0]!r}) and"
            " carries no information"
        )
    return tuple(notes)
