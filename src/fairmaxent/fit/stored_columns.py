"""Columns from a file, trusted only after their levels, labels and values were compared with each other.

Labels that say something else than their levels hold would let one group be taken for another, so the texts that edges
and values can have are made again here, and every label must be one of them.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.columns import masses, sound
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import Column
from fairmaxent.data.levels import FeatureKind, Kind, value_key, value_text
from fairmaxent.errors import cut

_NUMBERED = re.compile(r" \(\d+\)$")  # the mark of a label that would otherwise repeat
_DIGITS = range(4, 18)  # that the end of a bin is rounded to
_MICROSECONDS = (-1, 0, 1)  # which libraries round in different directions


def check_domain(domain: Domain) -> None:
    """Refuse columns that are not what `Domain.learn` makes."""
    if not domain.attributes or not all(isinstance(text, str) for text in (*domain.names, *domain.notes)):
        raise ValueError("names of columns or notes are not texts")
    if len(set(domain.names)) < len(domain.names):
        raise ValueError("two columns have the same name")
    if len({frames.library_of(attribute.values) for attribute in domain.attributes}) > 1:
        raise ValueError("columns come from different libraries")
    for attribute in domain.attributes:
        for problem, holds in _demands(attribute).items():
            if not holds:
                raise ValueError(f"column {attribute.name!r}: {problem}")
        _check_values(attribute)


def _demands(attribute: Attribute) -> Mapping[str, bool]:
    """What must hold of levels that cut the values into one piece each, with something to draw in it."""
    values, starts, size = len(attribute.values), attribute.level_starts, attribute.size
    sound(np.diff(sound(starts, "i", (size + 1,))), "i", (size,), low=1)
    counts = masses(attribute.counts, values)
    numeric = attribute.kind in ("numeric", "date", "boolean")
    return {
        "its kind is unknown": attribute.kind in get_args(Kind),
        "its features are unknown": attribute.features in (get_args(FeatureKind) if numeric else ("indicator",)),
        "its labels are not texts": all(isinstance(label, str) for label in attribute.labels),
        "two of its labels are equal": len(set(attribute.labels)) == size > 0,
        "its missing level is no level": type(attribute.missing) is int or attribute.missing is None,
        "its levels and values do not fit together": bool(
            starts[0] == 0 and starts[-1] == values and attribute.missing in (None, size - 1)
        ),
        "a level has no values to draw": bool(np.add.reduceat(counts, np.minimum(starts[:-1], values - 1)).all()),
        "its weights are infinite": bool(np.isfinite(counts.sum())),
        "texts have no bins": numeric or attribute.edges is None,
    }


def _check_values(attribute: Attribute) -> None:
    """Refuse values that repeat, are missing where they should not be, or lie outside their bins."""
    values, missing = attribute.values, attribute.missing is not None
    known, levels = len(values) - missing, np.repeat(np.arange(attribute.size), np.diff(attribute.level_starts))
    absent = np.array([frames.is_missing(value) for value in values.to_list()])
    if absent.sum() != missing or absent[:known].any() or (missing and levels[-2:].tolist() == [levels[-1]] * 2):
        raise ValueError(f"column {attribute.name!r}: missing values are not where they belong")
    if _distinct(values.head(known)) != known:
        raise ValueError(f"column {attribute.name!r}: a value repeats")
    if attribute.kind in ("numeric", "date", "boolean"):
        numbers = frames.to_numbers(values)[:known]
        sound(numbers, "f", (known,))
        if attribute.edges is not None:
            edges = sound(attribute.edges, "f", (attribute.size - 1 - missing,))
            sound(np.diff(edges), "f", (max(len(edges) - 1, 0),), low=np.nextafter(0, 1))
            if not (np.searchsorted(edges, numbers, side="right") == levels[:known]).all():
                raise ValueError(f"column {attribute.name!r}: a number lies outside its bin")
    if not labels_fit(attribute):
        raise ValueError(f"column {attribute.name!r}: a label names another value")


def _distinct(values: Column) -> int:
    if values.dtype == nw.Object:
        return len({value_key(value) for value in values.to_list()})
    return values.n_unique() if len(values) else 0


# ---------------------------------------------------------------- labels


def labels_fit(attribute: Attribute) -> bool:
    """Whether each level's label is the text of its value, "other" for several, "missing", or the ends of its bin."""
    values = attribute.values.to_list()
    return all(_label_fits(attribute, level, label, values) for level, label in enumerate(attribute.labels))


def _label_fits(attribute: Attribute, level: int, label: str, values: list[Any]) -> bool:
    plain = _NUMBERED.sub("", label)
    if level == attribute.missing:
        return plain == "missing"
    inside = values[attribute.level_starts[level] : attribute.level_starts[level + 1]]
    if attribute.edges is not None and _names_bin(attribute, level, plain, values):
        return True
    if attribute.edges is not None and len(set(map(frames.number_of, inside))) > 1:
        return False
    texts = {text for value in inside for text in (value_text(value), cut(value_text(value)))}
    # A text may itself end like a number that was added.
    return not texts.isdisjoint((label, plain)) or (attribute.edges is None and len(inside) > 1 and plain == "other")


def _names_bin(attribute: Attribute, level: int, label: str, values: list[Any]) -> bool:
    """Whether a label names the edges on both sides of a level; the outermost ends are nowhere else in the file."""
    edges, starts = attribute.edges, attribute.level_starts
    if edges is None or not len(edges):  # a single bin holds everything
        return edges is not None
    lefts, rights = (
        set(_edge_texts(float(edges[edge]), values[starts[edge + 1] - 1], values[starts[edge + 1]]))
        if 0 <= edge < len(edges)
        else set()
        for edge in (level - 1, level)
    )
    if label.endswith("…"):  # it was cut, and shows no more than its beginning
        return not lefts or label.startswith(tuple(f"{bracket}{left}, " for bracket in "[(" for left in lefts))
    if not lefts:
        return any(label == f"< {right}" or (label[:1] in "[(" and label.endswith(f", {right})")) for right in rights)
    if not rights:
        return any(label == f"≥ {left}" or label.startswith((f"[{left}, ", f"({left}, ")) for left in lefts)
    return any(label in (f"[{left}, {right})", f"({left}, {right})") for left in lefts for right in rights)


def _edge_texts(edge: float, below: Any, above: Any) -> Iterator[str]:
    """The texts that an edge can have: those of the values beside it, and its own number, moment or duration.

    What follows a value that stands alone begins just above that value.
    """
    alone = float(np.nextafter(edge, -np.inf))
    yield from (value_text(value) for value in (below, above) if frames.number_of(value) in (edge, alone))
    if isinstance(above, datetime.date | datetime.time | datetime.timedelta):
        yield from _moment_texts(edge, getattr(above, "tzinfo", None))
        return
    for number in (edge, alone):
        yield from (value_text(float(f"{number:.{digits}g}")) for digits in _DIGITS)
        if number.is_integer():
            yield str(int(number))


def _moment_texts(edge: float, zone: datetime.tzinfo | None) -> Iterator[str]:
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    for more in _MICROSECONDS:
        with contextlib.suppress(OverflowError):
            passed = datetime.timedelta(seconds=edge, microseconds=more)
            yield value_text(passed)
            moment = start + passed
            zoned = moment.astimezone(zone) if zone else moment.replace(tzinfo=None)
            yield from (value_text(zoned), value_text(moment), value_text(zoned.time()), value_text(zoned.date()))
