"""A table without rare values, which may point to a person: they are replaced before anything is learned.

This is not a guarantee, as a private fit gives one; it takes out what people would recognise at first sight.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.distinct_values import DistinctValues, distinct_values
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import DEFAULT_BINS
from fairmaxent.errors import ColumnError, LevelError, Option, shown

FEWEST_ROWS = 10  # that a value needs, to be one that many people have
OTHER = "other"


def shareable(
    frame: nw.DataFrame[Any], roles: Collection[str], keep: Collection[str], weight: str | None
) -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """Return a table without rare values and without identifiers, and the names of these.

    Rare texts become "other". A column of many numbers is cut into bins, and each number becomes the mean of its bin;
    in a column of few numbers, a rare one becomes the nearest that is not rare.
    """
    columns = frame if weight is None else frame.drop(frames.column(frame, weight).name)
    identifiers = Domain.infer(columns.to_native()).identifiers
    for name in identifiers:
        if name in (*roles, *keep):
            raise ColumnError(
                f"column {name!r} looks like an identifier, which cannot be in rows to share; take it out, or do "
                "without ",
                Option("release"),
            )
    kept = columns.drop(list(identifiers))
    changed = [_common(kept.get_column(name), has_role=name in roles) for name in kept.columns]
    return frame.drop(list(identifiers)).with_columns(*changed), identifiers


def _common(series: frames.Column, *, has_role: bool) -> frames.Column:
    """The column without rare values."""
    distinct = distinct_values(series)
    rare = distinct.counts < FEWEST_ROWS
    if not rare.any():
        return _without_unused(series, distinct)
    if has_role:
        value = distinct.values.to_list()[int(np.argmax(rare))]
        raise LevelError(
            f"column {series.name!r} has fewer than {FEWEST_ROWS} rows with {shown(value)}; merge it with another "
            "level, or take those rows out, before you share rows"
        )
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return _replaced(series, distinct, _common_numbers(distinct, rare))
    if series.dtype.is_temporal() or series.dtype == nw.Boolean:
        raise LevelError(
            f"column {series.name!r} has values that fewer than {FEWEST_ROWS} rows have; round them, e.g. dates to "
            "years, or leave the column out, before you share rows"
        )
    texts = [OTHER if few else str(value) for value, few in zip(distinct.values.to_list(), rare, strict=True)]
    listed = [None if code < 0 else texts[code] for code in distinct.codes]
    return nw.new_series(series.name, listed, nw.String, backend=series.implementation)


def _without_unused(series: frames.Column, distinct: DistinctValues) -> frames.Column:
    """The column without categories that no row has: its type would list them, in rows and in the model."""
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "remove_unused_categories"):  # pandas' own categories
        return nw.from_native(native.cat.remove_unused_categories(), series_only=True)
    if isinstance(series.dtype, nw.Enum):
        used = set(distinct.values.to_list())
        return series.cast(nw.Enum([name for name in series.dtype.categories if name in used]))
    return series.cast(nw.String).cast(nw.Categorical)


def _common_numbers(distinct: DistinctValues, rare: np.ndarray[Any, np.dtype[np.bool_]]) -> Reals:
    """For each distinct number, the one that takes its place."""
    numbers, counts = frames.to_numbers(distinct.values), distinct.counts.astype(np.float64)
    if len(numbers) <= DEFAULT_BINS and not rare.all():
        usual = numbers[~rare]
        nearest = np.abs(numbers[:, None] - usual[None, :]).argmin(axis=1)
        return np.asarray(np.where(rare, usual[nearest], numbers))
    order = np.argsort(numbers, kind="stable")
    bins = max(1, min(DEFAULT_BINS, int(counts.sum()) // (2 * FEWEST_ROWS)))
    middle = np.cumsum(counts[order]) - counts[order] / 2
    bin_of = np.empty(len(numbers), dtype=np.intp)
    bin_of[order] = np.minimum((middle / counts.sum() * bins).astype(np.intp), bins - 1)
    rows = np.bincount(bin_of, counts, minlength=bins)
    means = np.bincount(bin_of, counts * numbers, minlength=bins) / np.maximum(rows, 1)
    return np.array([_rounded(float(mean), float(np.ptp(numbers))) for mean in means])[bin_of]


def _rounded(mean: float, span: float) -> float:
    """Three digits of a mean, or more if the numbers of its column differ only in later ones, as years do.

    >>> _rounded(1987.3, span=60.0), _rounded(51234.5, span=90000.0)
    (1987.3, 51200.0)
    """
    if not mean or not 0 < span < math.inf:
        return mean
    equal = math.floor(math.log10(abs(mean))) - math.floor(math.log10(span))  # leading digits that say nothing
    return float(f"{mean:.{min(3 + max(equal, 0), 17)}g}")


def _replaced(series: frames.Column, distinct: DistinctValues, numbers: Reals) -> frames.Column:
    """The column with other numbers, of the type that it has; whole numbers stay whole."""
    values: list[float | None] = [*numbers.tolist(), None]
    if series.dtype.is_integer():
        least, most = _range(series)
        values = [*(min(max(round(number), least), most) for number in numbers), None]
    listed = [values[code] for code in distinct.codes]  # missing is -1, the last
    return frames.column_like(series, listed)


def _range(series: frames.Column) -> tuple[int, int]:
    """The smallest and the largest whole number of a column's type, which rounding may leave."""
    name = str(series.dtype)  # e.g. Int8 or UInt64
    bits = int(name.lstrip("UInt"))
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
