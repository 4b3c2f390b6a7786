"""The distinct values of a column, and which of them each row has.

The values come in one canonical order (numbers and dates ascending, text by code point, ``False`` before ``True``,
ordered categories as declared), so that the same data gives the same codes in every library.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.frames import column_errors
from fairmaxent.errors import InputError

_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The distinct values of a column, and which of them each row has."""

    values: frames.Column
    """In canonical order."""
    codes: NDArray[np.intp]
    """Position of each row's value among them; -1: missing."""
    counts: NDArray[np.intp]
    """How many rows have each of them."""
    rows: NDArray[np.intp]
    """The first row that has each of them."""

    @property
    def missing(self) -> int:
        """How many rows have none."""
        return len(self.codes) - int(self.counts.sum())


def distinct_values(series: frames.Column) -> DistinctValues:
    """Find the distinct values of a column in one pass."""
    with column_errors(series):
        codes, counts = _close_gaps(LIBRARIES[frames.library_of(series)](series.to_native(), series.name))
        rows = first_rows(codes, len(counts))
        return DistinctValues(frames.take(series, rows), codes, counts, rows)


def factorize(series: frames.Column) -> tuple[NDArray[np.intp], frames.Column]:
    """Return each row's position among the distinct values (-1: missing) and those values, in canonical order."""
    distinct = distinct_values(series)
    return distinct.codes, distinct.values


def first_rows(codes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return for each of ``count`` codes the first row that has it."""
    rows = np.full(count + 1, -1, dtype=np.intp)  # one more, at -1, for missing
    for size in (4096, len(codes)):  # the first few thousand rows nearly always show every value
        head = codes[:size]
        rows[head[::-1]] = np.arange(len(head) - 1, -1, -1)  # the last write, i.e. the first row, stays
        if rows[:count].min(initial=0) >= 0:
            break
    return rows[:count]


def _close_gaps(ranks: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Renumber non-negative ranks 0, 1, … without gaps, -1 stays; and count how many rows have each new number."""
    shifted = ranks + np.ones((), dtype=np.intp)
    counts = np.bincount(shifted)[1:]  # [0]: missing
    seen = counts > 0
    if seen.all():
        return ranks.astype(np.intp, copy=False), counts
    positions = np.append(-1, np.cumsum(seen) - 1)
    return positions[shifted], counts[seen]


def _rank_numbers(numbers: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.integer]:
    """Rank by size. Integers in a narrow range are their own ranks, up to a shift; no sort is needed."""
    if missing.all():
        return np.full(len(numbers), -1)
    some_missing = bool(missing.any())
    present = numbers[~missing] if some_missing else numbers
    ranks: NDArray[np.integer]
    if present.dtype.kind == "b":
        ranks = present.view(np.int8)
    elif present.dtype.kind in "iu" and int(present.max()) - int(present.min()) < 4 * len(numbers) + 65_536:
        wide = np.uint64 if present.dtype.kind == "u" else np.int64  # in eight bits, 127 - -128 is -1, which is missing
        ranks = np.subtract(present, present.min(), dtype=wide).astype(np.intp)
    else:
        ranks = np.unique(present, return_inverse=True)[1]
    if not some_missing:
        return ranks
    spread = np.full(len(numbers), -1, dtype=np.intp)
    spread[~missing] = ranks
    return spread


def _rank_values(indices: NDArray[np.integer], values: Sequence[Any]) -> NDArray[np.intp]:
    """Rank rows given as positions in a short list of distinct values."""
    ranks = np.full(len(values) + 1, -1, dtype=np.intp)  # the last entry serves index -1
    ranks[_sorted_positions(values)] = np.arange(len(values))
    return np.asarray(ranks[indices])


def _sorted_positions(values: Sequence[Any]) -> list[int]:
    """Sort by value; mixed types by type, then value; values that cannot be compared by type, then first appearance."""
    types = [type(value).__name__ for value in values]
    for keys in (values, list(zip(types, values, strict=True))):
        try:
            return sorted(range(len(values)), key=keys.__getitem__)
        except TypeError:
            continue
    return sorted(range(len(values)), key=types.__getitem__)


def _cannot_factorize(name: str, kind: object) -> InputError:
    shown = str(kind) if len(str(kind)) <= 60 else f"{str(kind)[:60]}…"
    return InputError(
        f"column {name!r} holds {shown}; each cell must be a single number, text, truth value or date: "
        "unpack the column",
        column=name,
    )


def _pandas_ranks(native: Any, name: str) -> NDArray[np.integer]:
    pandas = frames.load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = native.cat.codes.to_numpy()
        return codes if dtype.ordered else _rank_values(codes, dtype.categories.tolist())
    if isinstance(dtype, pandas.ArrowDtype):
        return _pyarrow_ranks(frames.load_library("pyarrow").chunked_array(native.array.__arrow_array__()), name)
    if dtype.kind in "mM":
        return _rank_numbers(native.array.asi8, native.isna().to_numpy())
    if dtype.kind in "biuf":
        masked = hasattr(dtype, "numpy_dtype")
        numbers = native.to_numpy(dtype=dtype.numpy_dtype, na_value=0) if masked else native.to_numpy()
        missing = native.isna().to_numpy()
        return _rank_numbers(numbers, missing | np.isnan(numbers) if dtype.kind == "f" else missing)
    try:
        indices, values = native.array.factorize()
        if isinstance(dtype, np.dtypes.ObjectDType) and not all(type(value) is str for value in values):
            indices, values = _factorize_objects(native.array)
    except TypeError as error:
        raise _cannot_factorize(name, f"cells that cannot be compared ({error})") from error
    return _rank_values(indices, list(values))


def _factorize_objects(cells: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """Do what pandas.factorize does, but keep True and 1 apart."""
    positions: dict[Any, int] = {}
    values: list[Any] = []
    indices = np.full(len(cells), -1, dtype=np.intp)
    for row, cell in enumerate(cells):
        if not frames.is_missing(cell):
            key = isinstance(cell, bool | np.bool_), cell
            if key not in positions:
                positions[key] = len(values)
                values.append(cell)
            indices[row] = positions[key]
    return indices, values


def _polars_ranks(native: Any, name: str) -> NDArray[np.integer]:
    polars = frames.load_library("polars")
    dtype = native.dtype
    if dtype.is_nested() or dtype == polars.Object:
        raise _cannot_factorize(name, dtype)
    missing = native.is_null().to_numpy()
    if missing.all():
        return np.full(len(native), -1)
    if dtype in (polars.Date, polars.Datetime, polars.Duration):
        _refuse_far_times(native, polars)
    if dtype == polars.Categorical:
        present = native.drop_nulls().unique()
        physical = present.to_physical().to_numpy()
        ranks = np.full(int(physical.max()) + 2, -1, dtype=np.intp)
        ranks[physical] = _rank_values(np.arange(len(physical)), present.cast(polars.String).to_list())
        return np.asarray(ranks[native.to_physical().fill_null(len(ranks) - 1).to_numpy()])
    if dtype == polars.String:  # polars sorts text by bytes of UTF-8, which is the order of code points
        native = native.cast(polars.Enum(native.unique().drop_nulls().sort()))
    numbers = native.to_physical()
    if numbers.dtype == polars.Boolean:
        numbers = numbers.cast(polars.UInt8)
    wide = (polars.Int128, getattr(polars, "UInt128", polars.Int128))  # which numpy does not have
    if not numbers.dtype.is_numeric() or numbers.dtype.is_decimal() or numbers.dtype in wide:
        return np.asarray(native.rank("dense").fill_null(0).to_numpy().astype(np.intp) - 1)
    numbers = numbers.fill_null(0).to_numpy()
    return _rank_numbers(numbers, missing | np.isnan(numbers) if numbers.dtype.kind == "f" else missing)


def _refuse_far_times(native: Any, polars: Any) -> None:
    """Refuse times that Python cannot hold; polars would panic when it shows them, and write that to stderr."""
    if native.dtype == polars.Date:
        unit, least, most = 86_400.0, datetime.date.min - _EPOCH.date(), datetime.date.max - _EPOCH.date()
    else:
        unit = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}[native.dtype.time_unit]
        is_moment = native.dtype == polars.Datetime
        least = datetime.datetime.min - _EPOCH if is_moment else datetime.timedelta.min
        most = datetime.datetime.max - _EPOCH if is_moment else datetime.timedelta.max
    numbers = native.to_physical()
    if numbers.min() * unit < least.total_seconds() or numbers.max() * unit > most.total_seconds():
        raise OverflowError("a date or time outside the years 1 to 9999")


def _pyarrow_ranks(native: Any, name: str) -> NDArray[np.integer]:
    pyarrow = frames.load_library("pyarrow")
    kind = native.type
    types = pyarrow.types
    if types.is_nested(kind):
        raise _cannot_factorize(name, kind)
    if native.null_count == len(native):
        return np.full(len(native), -1)
    if types.is_dictionary(kind):
        array = _one_array(native.unify_dictionaries())
        codes = _indices(array)
        # By value: a dictionary may repeat one, or hold a null.
        ranks = _first_positions(array.dictionary) if kind.ordered else _pyarrow_ranks(array.dictionary, name)
        return np.asarray(np.append(ranks, -1)[codes])
    if types.is_temporal(kind):
        native = _one_array(native).view(pyarrow.int64() if kind.bit_width == 64 else pyarrow.int32())
    if types.is_boolean(kind) or types.is_integer(native.type) or types.is_floating(kind):
        missing = _one_array(native.is_null(nan_is_null=True)).to_numpy(zero_copy_only=False)
        filled = native.fill_null(False if types.is_boolean(kind) else 0)
        return _rank_numbers(_one_array(filled).to_numpy(zero_copy_only=False), missing)
    array = _one_array(native.dictionary_encode())
    return _rank_values(_indices(array), array.dictionary.to_pylist())


def _first_positions(dictionary: Any) -> NDArray[np.integer]:
    """Return where each value of an ordered dictionary stands first, -1 for null."""
    first: dict[Any, int] = {}
    values = enumerate(dictionary.to_pylist())
    return np.array([-1 if value is None else first.setdefault(value, at) for at, value in values], dtype=np.intp)


def _indices(array: Any) -> NDArray[np.integer]:
    """Return the positions of a dictionary array in its dictionary, -1 for null; unsigned ones cannot hold -1."""
    indices = array.indices.cast(frames.load_library("pyarrow").int64())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _one_array(native: Any) -> Any:
    """Join the chunks of a pyarrow column; an array is one already."""
    return native.combine_chunks() if hasattr(native, "combine_chunks") else native


LIBRARIES: dict[str, Callable[[Any, str], NDArray[np.integer]]] = {
    "pandas": _pandas_ranks,
    "polars": _polars_ranks,
    "pyarrow": _pyarrow_ranks,
}
