"""Labels from a file, trusted only if they say what their levels hold: otherwise groups are taken for each other."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.levels import value_text
from fairmaxent.errors import cut

Bools = NDArray[np.bool_]

_NUMBERED = re.compile(r" \(\d+\)$")  # the mark of a label that would otherwise repeat
_BIN = re.compile(r"[\[(](?P<ends>.*)(?:[\])]|…)", re.DOTALL)
_DURATION = re.compile(r"(?:(?P<days>-?\d+) days?, )?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?)")
_MICROSECONDS = 1e-5  # a few, which libraries round in different directions
_LONGEST = 200  # characters of a bin, far more than two numbers or times have
_DIGITS = range(4, 18)  # that the end of a bin is rounded to


def labels_fit(attribute: Attribute) -> bool:
    """Whether each level's label is the text of its value, "other" for several, "missing", or the ends of its bin."""
    values = attribute.values.to_list()
    several = _several(attribute)
    return all(_fits(attribute, level, label, values, several) for level, label in enumerate(attribute.labels))


def _fits(attribute: Attribute, level: int, label: str, values: list[Any], several: Bools) -> bool:
    plain = _NUMBERED.sub("", label)
    if level == attribute.missing:
        return plain == "missing"
    start, stop = attribute.level_starts[level : level + 2]
    if attribute.edges is not None and (several[level] or _BIN.match(plain) or plain[:2] in ("< ", "≥ ")):
        return _fits_bin(attribute.edges, level, plain)
    texts = {text for value in values[start:stop] for text in (value_text(value), cut(value_text(value)))}
    # A text may itself end like a number that was added.
    return not texts.isdisjoint((label, plain)) or (attribute.edges is None and stop - start > 1 and plain == "other")


def _several(attribute: Attribute) -> Bools:
    """Which levels hold different numbers; large ones may differ, but not as floats, and share a level."""
    if attribute.edges is None:
        return np.zeros(attribute.size, dtype=bool)
    numbers, starts = frames.to_numbers(attribute.values), attribute.level_starts[:-1]
    return np.minimum.reduceat(numbers, starts) < np.maximum.reduceat(numbers, starts)


def _fits_bin(edges: np.ndarray, level: int, label: str) -> bool:
    """Whether a label names the edges on both sides of a level; the outermost ends are nowhere else in the file."""
    left = edges[level - 1] if level else None
    right = edges[level] if level < len(edges) else None
    if left is None and right is None:  # a single bin holds everything
        return True
    if left is None and label.startswith("< "):
        return _names(label[2:], right)
    if right is None and label.startswith("≥ "):
        return _names(label[2:], left)
    match = _BIN.fullmatch(label) if len(label) <= _LONGEST else None
    return match is not None and any(
        _names(low, left) and (label.endswith("…") or _names(high, right)) for low, high in _pairs(match["ends"])
    )


def _pairs(ends: str) -> Iterator[tuple[str, str]]:
    """The two ends of a bin; a duration such as "1 day, 0:00:00" has a comma of its own."""
    for comma in re.finditer(", ", ends):
        yield ends[: comma.start()], ends[comma.end() :]


def _names(text: str, edge: float | None) -> bool:
    """Whether a text is this edge, rounded; what follows a value that stands alone begins just above that value."""
    if edge is None:
        return True
    alone = float(np.nextafter(edge, -np.inf))
    with contextlib.suppress(ValueError, OverflowError):
        number = float(text)
        return any(number == float(f"{exact:.{digits}g}") for exact in (edge, alone) for digits in _DIGITS)
    moment = _seconds(text)
    return moment is not None and min(abs(moment - edge), abs(moment - alone)) <= _MICROSECONDS


def _seconds(text: str) -> float | None:
    """The time or duration that a text stands for."""
    with contextlib.suppress(ValueError, OverflowError):
        return frames.number_of(datetime.datetime.fromisoformat(text))
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = {name: float(part) for name, part in match.groupdict(default="0").items()}
    with contextlib.suppress(OverflowError):
        return frames.number_of(datetime.timedelta(**parts))
    return None
