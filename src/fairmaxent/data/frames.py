"""DataFrame libraries (pandas, polars, pyarrow), through narwhals: nothing but this and frame_storage knows them.

A column is *factorized*: each row gets the position of its value in the list of distinct values. That list has one
canonical order (numbers and dates ascending, text by code point, ``False`` before ``True``, ordered categories as
declared), so the same data gives the same codes in every library. Where narwhals has no fast way, the native library
is used; it is loaded already, because the user's frame came from it. Only reading a stored column may import one.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.errors import ColumnError, DependencyError, InputError, did_you_mean

Column = nw.Series[Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECONDS = 1e6  # per second

# ---------------------------------------------------------------- frames in and out


def open_frame(frame: Any) -> nw.DataFrame[Any]:
    """Wrap an eager pandas, polars or pyarrow table, or say why it cannot be used."""
    native = nw.to_native(frame, pass_through=True)
    if nw.dependencies.is_polars_lazyframe(native):
        raise InputError("a polars LazyFrame has no rows yet; call .collect() first")
    if nw.dependencies.is_pandas_dataframe(native) or nw.dependencies.is_polars_dataframe(native):
        names = list(native.columns)
    elif nw.dependencies.is_pyarrow_table(native):
        names = list(native.column_names)
    else:
        raise InputError(
            f"{type(native).__name__} is not a table; pass a pandas DataFrame, a polars DataFrame or a pyarrow Table"
        )
    _check_names(names)
    if not len(native):
        raise InputError("the table has no rows; pass at least one")
    return frame if isinstance(frame, nw.DataFrame) else nw.from_native(native, eager_only=True)


def _check_names(names: list[Any]) -> None:
    if not names:
        raise InputError("the table has no columns; pass at least one")
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        shown = ", ".join(repr(name) for name in strange[:5])
        raise ColumnError(f"column names must be text, found {shown}; rename them, e.g. with str(name)")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ColumnError(f"column names appear more than once: {', '.join(map(repr, repeated))}; rename them")


def column(frame: nw.DataFrame[Any], name: str) -> Column:
    """Return the column called ``name``."""
    names = frame.columns
    if name not in names:
        raise ColumnError(f"no column {name!r}; {did_you_mean(name, names)}")
    return frame.get_column(name)


def take(series: Column, rows: NDArray[np.integer]) -> Column:
    """Return the values at these positions, missing ones too, as a series of the same dtype."""
    return series[rows.astype(np.int64, copy=False)]


def gather(columns: Mapping[str, tuple[Column, NDArray[np.integer]]]) -> Any:
    """Build a native table whose columns are values at the given positions; `take` and `build` in one native step."""
    library = library_of(next(iter(columns.values()))[0])
    natives = {name: (series.to_native(), rows) for name, (series, rows) in columns.items()}
    namespace = load_library(library)
    if library == "pandas":
        arrays = {name: native.array.take(rows) for name, (native, rows) in natives.items()}
        # Objects with an explicit dtype, or pandas would read some of them as text.
        objects = [name for name, (native, _) in natives.items() if native.dtype == object]
        return namespace.DataFrame(arrays | {name: namespace.Series(arrays[name], dtype=object) for name in objects})
    if library == "polars":
        return namespace.DataFrame([native[rows].alias(name) for name, (native, rows) in natives.items()])
    return namespace.table({name: native.take(rows) for name, (native, rows) in natives.items()})


def build(columns: Mapping[str, Column]) -> Any:
    """Put columns of one library into a native table of that library, in the given order."""
    natives = {name: series.to_native() for name, series in columns.items()}
    library = library_of(next(iter(columns.values())))
    namespace = load_library(library)
    if library == "pandas":
        return namespace.DataFrame({name: native.reset_index(drop=True) for name, native in natives.items()})
    return namespace.table(natives) if library == "pyarrow" else namespace.DataFrame(natives)


def arrange(frame: Any, order: Sequence[str], ones: Column | None) -> Any:
    """Put the columns of a table of ours in this order; the name of ``ones`` stands for that value in every row."""
    opened: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    columns = {name: opened.get_column(name) for name in opened.columns}
    if ones is not None:
        columns[ones.name] = take(ones, np.zeros(len(opened), dtype=np.intp))
    return build({name: columns[name] for name in order})


def text_column(name: str, texts: Sequence[str], like: Column) -> Column:
    """Return a text column in the library of ``like``."""
    return nw.new_series(name, list(texts), nw.String, backend=like.implementation)


def number_column(name: str, numbers: NDArray[np.float64], like: Column) -> Column:
    """Return a float64 column in the library of ``like``."""
    return nw.new_series(name, numbers, nw.Float64, backend=like.implementation)


def one_like(series: Column) -> Column:
    """Return a single 1 as a column of the same name and dtype as this column of numbers."""
    one = series.head(1).cast(nw.Float64) * 0 + 1
    return one if series.dtype == nw.Object else one.cast(series.dtype)


def library_of(series: Column) -> str:
    """Name the library a column belongs to."""
    return str(series.implementation.value)


def load_library(library: str) -> Any:
    """Import a library by name, or say what to install."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise DependencyError(f"this needs {library}, which is not installed; pip install {library}") from error


def has_library(library: str) -> bool:
    """Tell whether a library is installed, without importing it."""
    return importlib.util.find_spec(library) is not None


# ---------------------------------------------------------------- single values


def is_missing(value: object) -> bool:
    """Tell whether a single value stands for "no value": None, NaN, NaT or pandas' NA.

    >>> is_missing(float("nan")), is_missing(None), is_missing(0), is_missing("")
    (True, True, False, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, without importing it
        return True
    return isinstance(value, float | np.floating | Decimal | np.datetime64 | np.timedelta64) and value != value


def number_of(value: object) -> float | None:
    """Return the number behind a number, date, time or duration (times in seconds, since 1970 in UTC), else None.

    >>> number_of(3), number_of(datetime.date(1970, 1, 2)), number_of(True), number_of("3")
    (3.0, 86400.0, None, None)
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, datetime.datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - _EPOCH
    elif isinstance(value, datetime.date):
        value = value - _EPOCH.date()
    elif isinstance(value, datetime.time):
        value = datetime.datetime.combine(_EPOCH.date(), value.replace(tzinfo=None)) - _EPOCH.replace(tzinfo=None)
    if isinstance(value, datetime.timedelta):
        # whole microseconds first: dividing integers below 2^53 once is exact to the last bit in every library
        return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) / _MICROSECONDS
    return None


def to_numbers(series: Column) -> NDArray[np.float64]:
    """Return numbers, truth values (0, 1) or times (seconds, see `number_of`) as float64, missing as NaN."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean or dtype == nw.Object:
        return _floats(series)
    if dtype == nw.Date or dtype == nw.Datetime:
        return _floats(series.dt.timestamp("us")) / _MICROSECONDS
    if dtype == nw.Duration:
        return _floats(series.dt.total_microseconds()) / _MICROSECONDS
    numbers = [number_of(value) for value in series.to_list()]
    return np.array([np.nan if number is None else number for number in numbers])


def _floats(series: Column) -> NDArray[np.float64]:
    numbers = series.to_numpy()
    if numbers.dtype.kind not in "biuf":  # objects: Decimal, or pandas' own missing value
        numbers = series.cast(nw.Float64).to_numpy()
    return np.asarray(numbers, dtype=np.float64)


# ---------------------------------------------------------------- factorize


def factorize(series: Column) -> tuple[NDArray[np.intp], Column]:
    """Return each row's position among the distinct values (-1: missing) and those values, in canonical order."""
    ranks = LIBRARIES[library_of(series)](series.to_native(), series.name)
    codes, count = _close_gaps(ranks)
    return codes, take(series, first_rows(codes, count))


def first_rows(codes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return for each of ``count`` codes the first row that has it."""
    rows = np.full(count + 1, -1, dtype=np.intp)  # one more, at -1, for missing
    for size in (4096, len(codes)):  # the first few thousand rows nearly always show every value
        head = codes[:size]
        rows[head[::-1]] = np.arange(len(head) - 1, -1, -1)  # the last write, i.e. the first row, stays
        if rows[:count].min(initial=0) >= 0:
            break
    return rows[:count]


def _close_gaps(ranks: NDArray[np.integer]) -> tuple[NDArray[np.intp], int]:
    """Renumber non-negative ranks 0, 1, … without gaps; -1 stays."""
    shifted = ranks + np.ones((), dtype=np.intp)
    seen = np.bincount(shifted) > 0
    seen[0] = False
    positions = np.cumsum(seen) - 1
    positions[0] = -1
    return positions[shifted], int(seen.sum())


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
        ranks = (present - present.min()).astype(np.intp)
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
    """Sort by value; unlike types by type, then value; what cannot be compared by type, then order of appearance."""
    types = [type(value).__name__ for value in values]
    for keys in (values, list(zip(types, values, strict=True))):
        try:
            return sorted(range(len(values)), key=keys.__getitem__)
        except TypeError:
            continue
    return sorted(range(len(values)), key=types.__getitem__)


def _cannot_factorize(name: str, kind: object) -> InputError:
    return InputError(f"column {name!r} holds {kind}; a cell must be one number, text, truth value or date: unpack it")


def _pandas_ranks(native: Any, name: str) -> NDArray[np.integer]:
    pandas = load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = native.cat.codes.to_numpy()
        return codes if dtype.ordered else _rank_values(codes, dtype.categories.tolist())
    if isinstance(dtype, pandas.ArrowDtype):
        return _pyarrow_ranks(load_library("pyarrow").chunked_array(native.array.__arrow_array__()), name)
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
    found: dict[Any, int] = {}
    values: list[Any] = []
    indices = np.full(len(cells), -1, dtype=np.intp)
    for row, cell in enumerate(cells):
        if not is_missing(cell):
            key = isinstance(cell, bool | np.bool_), cell
            if key not in found:
                found[key] = len(values)
                values.append(cell)
            indices[row] = found[key]
    return indices, values


def _polars_ranks(native: Any, name: str) -> NDArray[np.integer]:
    polars = load_library("polars")
    dtype = native.dtype
    if dtype.is_nested() or dtype == polars.Object:
        raise _cannot_factorize(name, dtype)
    missing = native.is_null().to_numpy()
    if missing.all():
        return np.full(len(native), -1)
    if dtype == polars.Categorical:
        present = native.drop_nulls().unique()
        places = present.to_physical().to_numpy()
        ranks = np.full(int(places.max()) + 2, -1, dtype=np.intp)
        ranks[places] = _rank_values(np.arange(len(places)), present.cast(polars.String).to_list())
        return np.asarray(ranks[native.to_physical().fill_null(len(ranks) - 1).to_numpy()])
    if dtype == polars.String:  # polars sorts text by bytes of UTF-8, which is the order of code points
        native = native.cast(polars.Enum(native.unique().drop_nulls().sort()))
    numbers = native.to_physical()
    if numbers.dtype == polars.Boolean:
        numbers = numbers.cast(polars.UInt8)
    if not numbers.dtype.is_numeric() or numbers.dtype.is_decimal() or numbers.dtype == polars.Int128:
        return np.asarray(native.rank("dense").fill_null(0).to_numpy().astype(np.intp) - 1)
    numbers = numbers.fill_null(0).to_numpy()
    return _rank_numbers(numbers, missing | np.isnan(numbers) if numbers.dtype.kind == "f" else missing)


def _pyarrow_ranks(native: Any, name: str) -> NDArray[np.integer]:
    pyarrow = load_library("pyarrow")
    kind = native.type
    types = pyarrow.types
    if types.is_nested(kind):
        raise _cannot_factorize(name, kind)
    if native.null_count == len(native):
        return np.full(len(native), -1)
    if types.is_dictionary(kind):
        array = _one_array(native.unify_dictionaries())
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if kind.ordered:
            return np.asarray(codes)
        ranks = _pyarrow_ranks(array.dictionary, name)  # by value: a dictionary may repeat one, or hold a null
        return np.asarray(np.append(ranks, -1)[codes])
    if types.is_temporal(kind):
        native = _one_array(native).view(pyarrow.int64() if kind.bit_width == 64 else pyarrow.int32())
    if types.is_boolean(kind) or types.is_integer(native.type) or types.is_floating(kind):
        missing = _one_array(native.is_null(nan_is_null=True)).to_numpy(zero_copy_only=False)
        filled = native.fill_null(False if types.is_boolean(kind) else 0)
        return _rank_numbers(_one_array(filled).to_numpy(zero_copy_only=False), missing)
    array = _one_array(native.dictionary_encode())
    indices = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _rank_values(indices, array.dictionary.to_pylist())


def _one_array(native: Any) -> Any:
    """Join the chunks of a pyarrow column; an array is one already."""
    return native.combine_chunks() if hasattr(native, "combine_chunks") else native


LIBRARIES: dict[str, Callable[[Any, str], NDArray[np.integer]]] = {
    "pandas": _pandas_ranks,
    "polars": _polars_ranks,
    "pyarrow": _pyarrow_ranks,
}
