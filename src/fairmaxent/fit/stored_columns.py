"""Columns from a file, trusted only after their levels, labels and values were compared with each other."""

from __future__ import annotations

from typing import get_args

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import FeatureKind, Kind, value_key
from fairmaxent.fit.record_types import fits
from fairmaxent.fit.stored_arrays import masses, sound
from fairmaxent.fit.stored_labels import labels_fit


def check_domain(domain: Domain) -> None:
    """Refuse columns that are not what `Domain.learn` makes."""
    if not domain.attributes or not all(fits(text, str) for text in (*domain.names, *domain.notes)):
        raise ValueError("names of columns or notes are not texts")
    if len(set(domain.names)) < len(domain.names):
        raise ValueError("two columns have the same name")
    if len({frames.library_of(attribute.values) for attribute in domain.attributes}) > 1:
        raise ValueError("columns come from different libraries")
    for attribute in domain.attributes:
        _check_attribute(attribute)


def _check_attribute(attribute: Attribute) -> None:
    """Refuse levels that do not cut the values into one piece each, with something to draw in it."""
    values, starts = len(attribute.values), attribute.level_starts
    _require(attribute, "its kind is unknown", attribute.kind in get_args(Kind))
    numeric = attribute.kind in ("numeric", "date", "boolean")
    known_features = attribute.features in get_args(FeatureKind) and (numeric or attribute.features == "indicator")
    _require(attribute, "its features are unknown", known_features)
    _require(attribute, "its labels are not texts", all(fits(label, str) for label in attribute.labels))
    _require(attribute, "two of its labels are equal", len(set(attribute.labels)) == attribute.size > 0)
    _require(attribute, "its missing level is no level", fits(attribute.missing, int | None))
    sound(np.diff(sound(starts, "i", (attribute.size + 1,))), "i", (attribute.size,), low=1)
    fit_together = starts[0] == 0 and starts[-1] == values and attribute.missing in (None, attribute.size - 1)
    _require(attribute, "its levels and values do not fit together", fit_together)
    counts = masses(attribute.counts, values)
    _require(attribute, "a level has no values to draw", bool(np.add.reduceat(counts, starts[:-1]).all()))
    _require(attribute, "its weights are infinite", bool(np.isfinite(counts.sum())))
    levels = np.repeat(np.arange(attribute.size), np.diff(starts))
    _check_values(attribute, levels)
    _require(attribute, "a label names another value", labels_fit(attribute))


def _check_values(attribute: Attribute, levels: NDArray[np.intp]) -> None:
    """Refuse values that repeat, are missing where they should not be, or lie outside their bins."""
    values, missing = attribute.values, attribute.missing is not None
    known = len(values) - missing
    absent = np.array([frames.is_missing(value) for value in values.to_list()])
    _require(
        attribute, "missing values are not where they belong", absent.sum() == missing and not absent[:known].any()
    )
    _require(attribute, "missing values share a level", not missing or levels[-2:].tolist() != [levels[-1]] * 2)
    _require(attribute, "a value repeats", _distinct(attribute, known) == known)
    if attribute.kind in ("numeric", "date", "boolean"):
        numbers = frames.to_numbers(values)[:known]
        _require(attribute, "a number is infinite", bool(np.isfinite(numbers).all()))
        if attribute.edges is not None:
            edges = sound(attribute.edges, "f", (attribute.size - 1 - missing,))
            _require(attribute, "its bins are out of order", bool((np.diff(edges) > 0).all()))
            inside = np.searchsorted(edges, numbers, side="right") == levels[:known]
            _require(attribute, "a number lies outside its bin", bool(inside.all()))
    else:
        _require(attribute, "texts have no bins", attribute.edges is None)


def _distinct(attribute: Attribute, known: int) -> int:
    values = attribute.values.head(known)
    if values.dtype == nw.Object:
        return len({value_key(value) for value in values.to_list()})
    return values.n_unique() if known else 0


def _require(attribute: Attribute, problem: str, holds: bool) -> None:  # noqa: FBT001
    if not holds:
        raise ValueError(f"column {attribute.name!r}: {problem}")
