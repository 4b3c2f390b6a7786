"""One column of the domain: its levels, and the raw values that each of them stands for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.draws import Choice
from fairmaxent.data.levels import FeatureKind, Kind, is_hashable, value_key
from fairmaxent.errors import InputError, LevelError, Option, did_you_mean_level, shown


@dataclass(frozen=True, eq=False, repr=False)
class Attribute:
    """One column of the domain (Ω_a): its levels, and the raw values each of them stands for."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    """One text per level, for people; unique within the attribute."""
    features: FeatureKind
    values: frames.Column
    """Raw values in the column's own dtype, sorted by level; the missing value last, if there was one."""
    level_starts: NDArray[np.int64]
    """Level k stands for ``values[level_starts[k]:level_starts[k + 1]]``."""
    counts: NDArray[np.float64]
    """Total weight of the rows with each raw value."""
    edges: NDArray[np.float64] | None
    """Cut points between bins, which are half-open to the right; the outermost bins reach to ±∞. None: no bins."""
    missing: int | None
    """The level of missing values, always the last one. None: no value was missing."""

    def __repr__(self) -> str:
        shown = ", ".join(self.labels[:8]) + (", …" if self.size > 8 else "")
        return f"{self.name}: {self.kind}, {self.size} levels ({shown})"

    @property
    def size(self) -> int:
        """Number of levels, k_a."""
        return len(self.labels)

    @property
    def is_value_coded(self) -> bool:
        """Whether each level stands for exactly one raw value."""
        return len(self.counts) == self.size

    def level(self, value: object) -> int:
        """Return the level of a raw value, of a number or date inside a bin, of None/NaN, or of a label's text."""
        if frames.is_missing(value):
            return self._missing_level()
        level = self._known_level(value)
        if level is None and isinstance(value, str) and value in self.labels:
            level = self.labels.index(value)
        if level is None:
            raise LevelError(
                f"column {self.name!r} has no level {shown(value)}; {did_you_mean_level(value, self.labels)}"
            )
        return level

    def exact_level(self, value: object) -> int:
        """Return the level of a raw value that does not share its level, or of a label's text."""
        position = self._find(value)
        if position is None:
            return self._label_level(value)
        level = int(np.searchsorted(self.level_starts, position, side="right")) - 1
        if level != self.missing and self.level_starts[level + 1] - self.level_starts[level] > 1:
            raise LevelError(
                f"column {self.name!r}: {shown(value)} shares its level with other values; "
                f"name the complete level, {self.labels[level]!r}, or make bins narrower with ",
                Option("bins"),
            )
        return level

    def narrowed(self, values: Sequence[object]) -> Attribute:
        """Return the attribute with these raw values, or levels by their label, as the only ones that can be drawn.

        A slice of numbers or dates stands for all values from its start up to, but not including, its stop.
        """
        kept = np.zeros(len(self.counts), dtype=bool)
        for value in values:
            if isinstance(value, slice):
                kept |= self._in_range(value)
                continue
            position = self._find(value)
            if position is None:
                level = self._label_level(value)
                kept[self.level_starts[level] : self.level_starts[level + 1]] = True
            else:
                kept[position] = True
        return replace(self, counts=np.where(kept, self.counts, 0.0))

    def _in_range(self, span: slice) -> NDArray[np.bool_]:
        """Say which raw values lie in a range; refuse one that makes no sense, or that no value lies in."""
        given = [end for end in (span.start, span.stop) if end is not None]
        low, high = (None if end is None else frames.number_of(end) for end in (span.start, span.stop))
        text = f"slice({span.start!r}, {span.stop!r})"
        if self.kind not in ("numeric", "date"):
            raise InputError(
                f"column {self.name!r} is {self.kind}, so {text} says nothing of it; name levels, or a column of "
                "numbers or dates"
            )
        if span.step is not None or any(frames.number_of(end) is None for end in given):
            raise InputError(f"column {self.name!r}: {text} is not a range; use e.g. slice(18, 65), without a step")
        numbers = frames.to_numbers(self.values)
        inside = ~np.isnan(numbers)
        inside &= (numbers >= (-np.inf if low is None else low)) & (numbers < (np.inf if high is None else high))
        if not (inside & (self.counts > 0)).any():
            raise LevelError(f"column {self.name!r} has no value in {text}; name a range that has some")
        return np.asarray(inside)

    def level_counts(self) -> NDArray[np.float64]:
        """Return the total weight of the rows with each level."""
        return np.asarray(np.add.reduceat(self.counts, self.level_starts[:-1]))

    def can_draw(self, values: frames.Column) -> NDArray[np.bool_]:
        """Say which of a column's distinct values can be drawn; the last entry says whether missing can."""
        positions = [self._find(value) for value in values.to_list()]
        missing = self.missing is not None and self.counts[-1] > 0
        return np.array([*(at is not None and self.counts[at] > 0 for at in positions), missing], dtype=bool)

    def positions_of(self, values: frames.Column) -> NDArray[np.unsignedinteger]:
        """Return the position of each of a column's distinct values in `values`; the last entry is that of missing."""
        known = len(self.counts) - (self.missing is not None)
        numbers = frames.to_numbers(self.values)[:known] if self.edges is not None else np.empty(0)
        if len(numbers) and np.all(np.diff(numbers) > 0):  # false if large numbers or times are equal as floats
            wanted = self._numbers(values)
            positions = np.minimum(np.searchsorted(numbers, wanted), known - 1)
            positions[numbers[positions] != wanted] = -1
        else:
            by_key = self._positions_by_key
            positions = np.array([by_key.get(value_key(value), -1) for value in values.to_list()], dtype=np.intp)
        if (positions < 0).any():
            value = values.to_list()[int(np.argmax(positions < 0))]
            raise LevelError(
                f"column {self.name!r} holds {shown(value)}, which was not in the data that the domain was learned from"
            )
        return np.append(positions, len(self.counts) - 1).astype(np.min_scalar_type(len(self.counts)))

    def scores(self) -> NDArray[np.float64]:
        """Return the mean raw value of each level (dates in seconds since 1970); NaN for the missing level."""
        if self.kind not in ("numeric", "boolean", "date"):
            raise InputError(
                f"column {self.name!r} is {self.kind}, so its levels have no numeric value; name a column of numbers"
            )
        starts = self.level_starts[:-1]
        sums = np.add.reduceat(self.counts * frames.to_numbers(self.values), starts)
        totals = np.add.reduceat(self.counts, starts)
        return np.asarray(np.divide(sums, totals, out=np.full(self.size, np.nan), where=totals > 0))

    def levels_of(self, values: frames.Column) -> NDArray[np.intp]:
        """Return the level of each of a column's distinct, non-missing values."""
        if self.edges is not None:
            return np.searchsorted(self.edges, self._numbers(values), side="right")
        levels = [self._levels_by_key.get(value_key(value)) for value in values.to_list()]
        if None in levels:
            value = values.to_list()[levels.index(None)]
            raise LevelError(
                f"column {self.name!r} holds {shown(value)}, which was not in the data that the domain was learned "
                f"from, nor declared; {did_you_mean_level(value, self.labels)}; replace it, or add it to the domain",
                column=self.name,
            )
        return np.array(levels, dtype=np.intp)

    def _numbers(self, values: frames.Column) -> NDArray[np.float64]:
        """Return the numbers or times of a column; its type is not always theirs, e.g. if it holds none."""
        if values.dtype.is_numeric() or values.dtype.is_temporal():
            return frames.to_numbers(values)
        numbers = [frames.number_of(value) for value in values.to_list()]
        if None in numbers:
            raise LevelError(
                f"column {self.name!r} was learned as {self.kind} but is now {values.dtype}; convert it back",
                column=self.name,
            )
        return np.array(numbers, dtype=np.float64)

    def column_of(self, codes: NDArray[np.integer]) -> frames.Column:
        """Return codes as raw values if each level is one value, otherwise as labels."""
        if self.is_value_coded:
            return frames.take(self.values, codes)
        return frames.text_column(self.name, [self.labels[code] for code in codes], self.values)

    def draw(self, codes: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
        """Draw the position of one raw value per code; uses ``rng.random(len(codes))`` unless each level is one."""
        if self.is_value_coded:
            return codes
        return np.asarray(self.level_starts[:-1].take(codes) + self._choice.draw(codes, rng))

    def _missing_level(self) -> int:
        if self.missing is None:
            raise LevelError(
                f"column {self.name!r} had no missing values when the domain was learned, or none were declared; "
                "fill them in, or learn or declare the domain with them",
                column=self.name,
            )
        return self.missing

    def _known_level(self, value: object) -> int | None:
        if self.edges is None:
            return self._levels_by_key.get(value_key(value)) if is_hashable(value) else None
        number = frames.number_of(value)
        return None if number is None else int(np.searchsorted(self.edges, number, side="right"))

    def _find(self, value: object) -> int | None:
        """Return the position of a raw value in `values`; None if it is not there."""
        if frames.is_missing(value):
            return int(self.level_starts[self._missing_level()])
        return self._positions_by_key.get(value_key(value)) if is_hashable(value) else None

    def _label_level(self, value: object) -> int:
        """Return the level with this label, or explain what is wrong with a value that was never seen."""
        if isinstance(value, str) and value in self.labels:
            return self.labels.index(value)
        level = self.level(value)
        raise LevelError(
            f"column {self.name!r} never holds {shown(value)}; name a value that was seen, or its level, "
            f"{self.labels[level]!r}"
        )

    @cached_property
    def _choice(self) -> Choice:
        return Choice.grouped(self.counts, self.level_starts[:-1])

    @cached_property
    def _positions_by_key(self) -> dict[Hashable, int]:
        stop = len(self.counts) if self.missing is None else int(self.level_starts[self.missing])
        return {value_key(value): position for position, value in enumerate(self.values.to_list()[:stop])}

    @cached_property
    def _levels_by_key(self) -> dict[Hashable, int]:
        levels = np.repeat(np.arange(self.size), np.diff(self.level_starts)).tolist()
        return {
            value_key(value): level
            for value, level in zip(self.values.to_list(), levels, strict=True)
            if level != self.missing
        }
