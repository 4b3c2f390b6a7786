"""A table for rows to share: without rare values and without identifiers."""

import math
from collections.abc import Collection

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import DistinctValues, distinct_values
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import Column, Frame, library_of, load_library, to_numbers
from fairmaxent.data.levels import DEFAULT_BINS
from fairmaxent.data.table import (
    Mask,
    Names,
    Reals,
)
from fairmaxent.errors import ColumnError, InputError, LevelError, Option, shown

FEWEST_ROWS = 10  # that a value needs, to be one that many people have
OTHER = "other"


def needs_memory() -> InputError:
    """What is said of a table whose rows are elsewhere."""
    return InputError(
        Option("release"),
        " needs the table in memory; collect it first, or declare its domain",
    )


def shareable(
    frame: Frame,
    roles: Collection[str],
    weight: str | None,
) -> tuple[Frame, Names]:
    """Return a table without rare values, which may point to a person.

    It is without identifiers, too, whose names come last. Rare texts become "other". A
    column of many numbers is cut into bins, and each number becomes the middle of its
    bin; in a column of few numbers, a rare one becomes the nearest that is not rare.
    """
    described = frame
    if weight is not None:
        described = frame.drop(frames.column(frame, weight).name)
    identifiers = Domain.infer(described.to_native()).identifiers
    for name in identifiers:
        if name in roles:
            raise ColumnError(
                f"column {name!r} looks like an identifier, which cannot be in rows to"
                " share; take it out, or do without ",
                Option("release"),
            )
    kept = described.drop(list(identifiers))
    changed = [
        _common(kept.get_column(name), has_role=name in roles) for name in kept.columns
    ]
    return frame.drop(list(identifiers)).with_columns(*changed), identifiers


def _common(column: Column, *, has_role: bool) -> Column:
    """The column without rare values."""
    distinct = distinct_values(column)
    dtype = column.dtype
    rare = distinct.counts < FEWEST_ROWS
    if not rare.any():
        return _without_unused(column, distinct)
    if has_role:
        value = distinct.values.to_list()[int(np.argmax(rare))]
        raise LevelError(
            f"column {column.name!r} has fewer than {FEWEST_ROWS} rows with"
            f" {shown(value)}; merge it with another level, or take those rows out,"
            " before you share rows"
        )
    if dtype.is_numeric() and not dtype.is_decimal():
        return _replaced(column, distinct, _common_numbers(distinct, rare))
    if dtype.is_temporal() or dtype == nw.Boolean:
        raise LevelError(
            f"column {column.name!r} has values that fewer than {FEWEST_ROWS} rows"
            " have; round them, e.g. dates to years, or leave the column out, before"
            " you share rows"
        )
    texts: list[str | None] = [*map(str, distinct.values.to_list())]
    for code in np.flatnonzero(rare):
        texts[code] = OTHER
    texts.append(None)  # missing is at -1
    listed = [texts[code] for code in distinct.codes]
    return nw.new_series(
        column.name,
        listed,
        nw.String,
        backend=column.implementation,
    )


def _without_unused(column: Column, distinct: DistinctValues) -> Column:
    """The column without categories that no row has.

    Its type would list them, in rows and in the model.
    """
    dtype = column.dtype
    if dtype not in (nw.Categorical, nw.Enum):
        return column
    native = column.to_native()
    # pandas' own categories
    if hasattr(native, "cat") and hasattr(native.cat, "remove_unused_categories"):
        return nw.from_native(native.cat.remove_unused_categories(), series_only=True)
    if isinstance(dtype, nw.Enum):
        used = set(distinct.values.to_list())
        return column.cast(nw.Enum([name for name in dtype.categories if name in used]))
    return column.cast(nw.String).cast(nw.Categorical)


def _common_numbers(distinct: DistinctValues, rare: Mask) -> Reals:
    """For each distinct number, the one that takes its place.

    For a bin, it is the mean of the middle half of its rows. No outlier moves it, as
    none moves a median; and several people make it together, where a median of an odd
    number of rows is one person's own, even rounded.
    """
    numbers = to_numbers(distinct.values)
    counts = distinct.counts.astype(float)
    if len(numbers) <= DEFAULT_BINS and not rare.all():
        usual = numbers[~rare]
        nearest = np.abs(numbers[:, None] - usual[None, :]).argmin(axis=1)
        return np.where(rare, usual[nearest], numbers)
    bins = max(1, min(DEFAULT_BINS, int(counts.sum()) // (2 * FEWEST_ROWS)))
    middle = np.cumsum(counts) - counts / 2  # the numbers ascend
    bin_of = np.minimum((middle / counts.sum() * bins).astype(int), bins - 1)
    middles = np.zeros(bins)
    for number in np.unique(bin_of):
        inside = bin_of == number
        people = np.repeat(numbers[inside], distinct.counts[inside])
        quarter = len(people) // 4
        middles[number] = people[quarter : len(people) - quarter].mean()
    # an outlier moves no digit, either
    span = float(np.ptp(middles[bin_of]) or np.ptp(numbers))
    rounded = np.array([_few_digits(mean, span) for mean in middles.tolist()])
    return rounded[bin_of]


def _few_digits(mean: float, span: float) -> float:
    """Three digits of a mean (51,200).

    Or more if its column's numbers differ only in later ones, as years do.
    """
    if not mean or not 0 < span < math.inf:
        return mean
    # leading digits that say nothing
    equal = math.floor(math.log10(abs(mean))) - math.floor(math.log10(span))
    digits = min(3 + max(equal, 0), 17)
    return float(f"{mean:.{digits}g}")


def _replaced(column: Column, distinct: DistinctValues, numbers: Reals) -> Column:
    """The column with other numbers, of its type: whole ones stay so, and in range."""
    dtype = column.dtype
    values = [*numbers.tolist()]
    if dtype.is_integer():
        name = str(dtype)  # e.g. Int8 or UInt64
        size = 2 ** int(name.lstrip("UInt"))
        least = 0 if name.startswith("U") else -size // 2
        most = least + size - 1
        values = [min(max(round(number), least), most) for number in numbers]
    values.append(None)  # missing is at -1
    listed = [values[code] for code in distinct.codes]
    if library_of(column) != "pandas":
        return nw.new_series(
            column.name,
            listed,
            dtype,
            backend=column.implementation,
        )
    native = load_library("pandas").Series(
        listed, dtype=column.to_native().dtype, name=column.name
    )
    return nw.from_native(native, series_only=True)
