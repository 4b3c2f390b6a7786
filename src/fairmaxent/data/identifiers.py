"""Identifiers: columns that name a row instead of describing it."""

from __future__ import annotations

from fairmaxent.data.attribute import Attribute

FEW_VALUES = 64
"""A column with no more values than this is never taken for an identifier."""
_NEARLY_EVERY = 0.9


def looks_like_identifier(attribute: Attribute, rows: int, *, few: int = FEW_VALUES) -> bool:
    """Say whether a column has a different value in nearly every one of the ``rows`` that have a value.

    Measured numbers and dates often do and name nobody, so only categories and whole numbers are suspected.
    """
    values = len(attribute.counts) - (attribute.missing is not None)
    is_discrete = attribute.kind == "categorical" or attribute.values.dtype.is_integer()
    return bool(is_discrete and values > max(few, _NEARLY_EVERY * rows))
