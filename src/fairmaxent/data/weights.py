"""Design weights: reading, checking, bringing them to an average of 1, and how much information they leave."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.errors import WeightError


@dataclass(frozen=True)
class WeightScale:
    """What brings design weights to an average of 1, which is done before anything is computed from them.

    A power of two comes first, because raw weights may be as large or as small as float64 allows, and their sum is not.
    It rounds nothing, so sums of whole weights are exact, and the same in every engine, until they are divided.
    """

    exponent: int = 0  # the largest weight times 2^-exponent is from 1 to 2
    average: float = 1.0  # of the weights times 2^-exponent

    @classmethod
    def of(cls, weights: Reals) -> WeightScale:
        """Find the scale of weights that are not all zero."""
        scale = cls.of_largest(float(weights.max()))
        return replace(scale, average=float(scale.shifted(weights).mean()))

    @classmethod
    def of_largest(cls, largest: float) -> WeightScale:
        """Find the power of two alone."""
        return cls(math.frexp(largest)[1] - 1)

    @property
    def mean(self) -> float:
        """The average of the raw weights."""
        return math.ldexp(self.average, self.exponent)

    def shifted(self, weights: Any) -> Any:
        """Multiply raw weights, an array or an expression of an engine, by the power of two."""
        half = self.exponent // 2  # in two steps, because 2^1074 is beyond float64
        return weights * 2.0**-half * 2.0 ** (half - self.exponent)

    def scaled(self, weights: Any) -> Any:
        """Bring raw weights, an array or an expression of an engine, to an average of 1."""
        return self.shifted(weights) / self.average


UNSCALED = WeightScale()


def in_range(weights: Reals) -> Reals:
    """Multiply weights by a power of two, so that sums of them and of their squares are within float64.

    This is for what depends on their ratios alone.

    >>> in_range(np.array([5e-324, 1e-323, 1.5e-323]))
    array([0.5, 1. , 1.5])
    """
    return np.asarray(WeightScale.of_largest(float(weights.max())).shifted(weights))


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
    """Read a column of design weights, as it is."""
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
