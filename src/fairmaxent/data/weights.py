"""Design weights: reading, checking, and how much information they leave."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.errors import WeightError


def check_weights(weights: Any, rows: int, *, what: str = "weight") -> Reals:
    """Refuse weights that make no sense."""
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise WeightError(f"{what} must be a column, or numbers, one per row") from problem
    if numbers.shape != (rows,):
        raise WeightError(f"{what} has shape {numbers.shape}; give one number for each of the {rows} rows")
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise WeightError(
            f"{what} holds {numbers[row]} in row {row}, and {int(bad.sum())} such values in all; "
            "weights must be finite and not negative. Repair or drop those rows."
        )
    if not numbers.any():
        raise WeightError(f"{what} is zero everywhere; at least one row must count")
    return numbers


def read_weights(frame: nw.DataFrame[Any], weight: str | None) -> Reals | None:
    """Read a column of design weights."""
    if weight is None:
        return None
    return check_weights(_weight_numbers(frames.column(frame, weight)), len(frame), what=f"weight column {weight!r}")


def _weight_numbers(column: frames.Column) -> Reals:
    kind = column.dtype
    refusal = WeightError(
        f"weight column {column.name!r} holds {kind}, not numbers; convert it, or name another column"
    )
    if not (kind.is_numeric() or kind == nw.Boolean or kind == nw.Object):
        raise refusal
    try:
        return frames.to_numbers(column)
    except (TypeError, ValueError) as problem:  # objects may be anything
        raise refusal from problem


def effective_rows(total: ArrayLike, squares: ArrayLike) -> Reals:
    """(Σw)²/Σw²: how many equally weighted rows carry as much information (Kish); NaN if there is no weight."""
    squares = np.asarray(squares, dtype=np.float64)
    return np.asarray(np.divide(np.square(total), squares, out=np.full(squares.shape, np.nan), where=squares > 0))
