"""Frames of pandas, polars and pyarrow, through narwhals: columns, values, weights.

Only this file and columns know the libraries. Where narwhals has no fast way, the
native library is used.
"""

import contextlib
import datetime
import importlib
import importlib.util
import math
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from decimal import Decimal
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent import errors
from fairmaxent.data.table import Codes, Mask, NameList, Reals
from fairmaxent.errors import (
    ColumnError,
    FairMaxEntError,
    InputError,
    WeightError,
    did_you_mean,
)
from fairmaxent.progress import Progress, silent

Column = nw.Series[Any]
Frame = nw.DataFrame[Any]

_EPOCH = datetime.datetime(
    1970,
    1,
    1,
    tzinfo=datetime.UTC,
)
_MICROSECONDS = 1e6  # per second
# types of single values of which one is "not a number", and differs from itself
_WITH_NAN = float | np.floating | Decimal | np.datetime64 | np.timedelta64
TIMES = (datetime.date, datetime.time, datetime.timedelta)
# The packages whose exceptions are turned: those that hold tables or compute them. pyo3
# is how polars panics, which is a bug in polars that damaged data can reach; it is no
# Exception, so it would pass every handler.
_LIBRARIES = {
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "pyo3_runtime",
    "duckdb",
    "_duckdb",
    "dask",
    "distributed",
    "tornado",
    "pyspark",
    "py4j",
}
# Other weights than zero are within these, so that sums of them and of their squares
# are within float64.
WEIGHT_RANGE = 1e-100, 1e100
WEIGHT_RULE = (
    f"weights must be zero, or from {WEIGHT_RANGE[0]:g} to {WEIGHT_RANGE[1]:g}. Repair"
    " or drop those rows."
)


def open_frame(frame: Any, *, may_be_empty: bool = False) -> Frame:
    """Wrap a table of pandas, polars or pyarrow, or explain why it cannot be used."""
    kinds = nw.dependencies
    native = nw.to_native(frame, pass_through=True)
    if kinds.is_polars_lazyframe(native):
        raise InputError("a polars LazyFrame has no rows yet; call .collect() first")
    if kinds.is_pandas_dataframe(native) or kinds.is_polars_dataframe(native):
        names = list(native.columns)
    elif kinds.is_pyarrow_table(native):
        names = native.column_names
    else:
        raise InputError(
            f"{type(native).__name__} is not a table; pass a pandas DataFrame, a polars"
            " DataFrame or a pyarrow Table"
        )
    if not names:
        raise InputError("the table has no columns; pass at least one")
    strange = [repr(name) for name in names if not isinstance(name, str)]
    if strange:
        raise ColumnError(
            f"column names must be text, but these are not: {', '.join(strange[:5])};"
            " rename them, e.g. with str(name)"
        )
    repeated = [repr(name) for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ColumnError(
            f"column names appear more than once: {', '.join(repeated)}; rename them"
        )
    if not len(native) and not may_be_empty:
        raise InputError("the table has no rows; pass at least one")
    if isinstance(frame, nw.DataFrame):
        return frame
    return nw.from_native(native, eager_only=True)


def column(frame: Frame, name: str) -> Column:
    """Return the column called ``name``."""
    if name not in frame.columns:
        raise ColumnError(f"no column {name!r}; {did_you_mean(name, frame.columns)}")
    return frame.get_column(name)


def is_table(data: Any) -> bool:
    """Whether this is a table of a library that we read."""
    kinds = nw.dependencies
    return kinds.is_into_dataframe(data) or kinds.is_polars_lazyframe(data)


def columns_of(data: Any, backend: Any) -> list[Column]:
    """The columns of a table, a series or an array.

    Those of an array have no name, and become the backend's.
    """
    if is_table(data):
        return list(nw.from_native(data, eager_only=True).iter_columns())
    if nw.dependencies.is_into_series(data):
        return [nw.from_native(data, series_only=True)]
    array = np.asarray(data)
    parts: Any = array.reshape(len(array), -1).T
    # Text as a list: not every library takes numpy's own kind of text.
    if array.dtype.kind not in "biuf":
        parts = parts.tolist()
    return [nw.new_series("", part, backend=backend) for part in parts]


def take(column: Column, rows: Codes) -> Column:
    """Return the values at these positions, missing ones too, of the same dtype."""
    return column[rows.astype(int, copy=False)]


def gather(columns: Mapping[str, tuple[Column, Codes]]) -> Any:
    """Build a native table whose columns are values at the given positions."""
    return build({name: take(column, rows) for name, (column, rows) in columns.items()})


def build(columns: Mapping[str, Column]) -> Any:
    """Put columns of one library into a native table, in the given order."""
    natives = {name: column.to_native() for name, column in columns.items()}
    library = library_of(next(iter(columns.values())))
    namespace = load_library(library)
    if library == "pyarrow":
        return namespace.table(natives)
    if library == "pandas":
        for name, native in natives.items():
            natives[name] = native.reset_index(drop=True)
    return namespace.DataFrame(natives)


def arrange(frame: Any, order: NameList, ones: Column | None) -> Any:
    """Put the columns of a decoded table in order, with ``ones`` for every row."""
    columns = {column.name: column for column in columns_of(frame, None)}
    if ones is not None:
        columns[ones.name] = take(ones, np.zeros(len(frame), dtype=int))
    return build({name: columns[name] for name in order})


def number_column(name: str, numbers: Reals, like: Column) -> Column:
    """Return a float64 column in the library of ``like``."""
    return nw.new_series(
        name,
        numbers,
        nw.Float64,
        backend=like.implementation,
    )


def one_like(column: Column) -> Column:
    """Return a single 1, of the name and dtype of this column of numbers."""
    number = column.head(1).cast(nw.Float64) * 0 + 1
    if column.dtype == nw.Object:
        return number
    return number.cast(column.dtype)


def library_of(data: Column | Frame) -> str:
    """Name the library that a column or frame belongs to."""
    return str(data.implementation.value)


def new_frame(columns: Mapping[str, Sequence[Any]], library: str) -> Any:
    """Make a table of a library from lists of values."""
    return nw.from_dict({**columns}, backend=load_library(library)).to_native()


def load_library(library: str) -> Any:
    """Import a library, or a module of one, or say in an error what to install."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        name = library.split(".")[0].replace("sklearn", "scikit-learn")
        raise errors.DependencyError(
            f"this needs {name}, which is not installed; pip install {name}"
        ) from error


def has_library(library: str) -> bool:
    """Tell whether a library is installed, without importing it."""
    return importlib.util.find_spec(library) is not None


def is_missing(value: object) -> bool:
    """Tell whether a value stands for "no value": None, NaN, NaT or pandas' NA."""
    # pandas' own, without importing it
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, _WITH_NAN) and value != value


def plain_option(name: str, value: Any) -> Any:
    """An option that can be compared: lists for arrays, None for missing values."""
    if is_missing(value) and not isinstance(value, float | None):
        raise InputError(
            errors.Option(name), f" is {value!r}, a missing value; leave it out"
        )
    return _plain(value)


def _plain(value: Any) -> Any:
    # at once, because narwhals takes long to say what is no series
    if isinstance(value, str | int | float | None):
        return value
    if nw.dependencies.is_into_series(value) or (
        isinstance(value, np.ndarray) and value.ndim
    ):
        value = list(value)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if is_missing(value) and not isinstance(value, float):
        return None
    return value


def checked_progress(progress: Progress | None) -> Progress:
    """The callback that was given, or one that ignores everything."""
    if progress is None:
        return silent
    if not callable(progress):
        raise errors.unfit(
            "progress", progress, "pass a function of a stage and a share"
        )
    return progress


def number_of(value: object) -> float | None:
    """Return the number behind a number, date, time or duration, else None.

    Times are in seconds, since 1970 in UTC.

    >>> number_of(3), number_of(True), number_of("3")
    (3.0, None, None)
    >>> number_of(datetime.date(1970, 1, 2))
    86400.0
    """
    value = plain_value(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal | np.floating):  # of 16 bytes
        return float(value)
    if isinstance(value, datetime.datetime):
        if not value.tzinfo:
            value = value.replace(tzinfo=datetime.UTC)
        value = value - _EPOCH
    elif isinstance(value, datetime.date):
        value = value - _EPOCH.date()
    elif isinstance(value, datetime.time):
        moment = datetime.datetime.combine(_EPOCH, value.replace(tzinfo=None))
        value = moment - _EPOCH.replace(tzinfo=None)
    if isinstance(value, datetime.timedelta):
        # whole microseconds first: dividing integers below 2^53 once is exact to the
        # last bit in every library
        seconds = value.days * 86_400 + value.seconds
        return (seconds * 1_000_000 + value.microseconds) / _MICROSECONDS
    return None


def plain_value(value: Any) -> Any:
    """A value as Python has it, not numpy, whose nanoseconds would become numbers."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit, _ = np.datetime_data(value.dtype)
        if unit in ("ns", "ps"):
            value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, np.generic):
        return value.item()
    return value


def numbers_of(values: Iterable[object]) -> Reals:
    """Return the numbers behind values; NaN: it has none."""
    return np.array([number_of(value) for value in values], dtype=float)


def to_numbers(column: Column) -> Reals:
    """Return numbers, truth values or times as float64, as `number_of` does.

    Truth values are 0 and 1; missing is NaN.
    """
    dtype = column.dtype
    if dtype == nw.Object:
        present = column.drop_nulls().head(1).to_list()
        if present and isinstance(present[0], TIMES):
            return numbers_of(column.to_list())
    if dtype.is_numeric() or dtype in (nw.Boolean, nw.Object):
        return _floats(column)
    if dtype in (nw.Date, nw.Datetime):
        return _floats(column.dt.timestamp("us")) / _MICROSECONDS
    if dtype == nw.Duration:
        if library_of(column) != "pandas":
            return _floats(column.dt.total_microseconds()) / _MICROSECONDS
        # narwhals takes pandas' by way of seconds, and loses a microsecond at times
        durations = column.to_native().astype("timedelta64[us]").to_numpy()
        whole = durations.astype(int)
        return np.where(np.isnat(durations), np.nan, whole) / _MICROSECONDS
    return numbers_of(column.to_list())


def _floats(column: Column) -> Reals:
    dtype = column.dtype
    # NumPy has no numbers of 128 bits.
    if dtype in (nw.Int128, nw.UInt128):
        column = column.cast(nw.Float64)
    numbers = column.to_numpy()
    # pyarrow's cast of Decimal errs in the last digit.
    exact = dtype == nw.Decimal and column.implementation.is_pyarrow()
    # objects: Decimal, or pandas' own missing value
    if numbers.dtype.kind not in "biuf" and not exact:
        numbers = column.cast(nw.Float64).to_numpy()
    return np.asarray(numbers, dtype=float)


def within_years(column: Column) -> tuple[Column, Mask]:
    """Dates within the years 1 to 9999, others than which Python lacks, and which were
    not.
    """
    dtype = column.dtype
    if isinstance(dtype, nw.Date):
        within = column.clip(datetime.date.min, datetime.date.max)
    elif (
        isinstance(dtype, nw.Datetime)
        and dtype.time_zone is None
        and dtype.time_unit != "ns"  # which end in 2262
    ):
        within = column.clip(datetime.datetime.min, datetime.datetime.max)
    else:
        return column, np.zeros(len(column), dtype=bool)
    are_others = (within != column) & ~column.is_null()
    return within, are_others.to_numpy().astype(bool)


def without_dictionary(column: Column) -> Column:
    """A dictionary of Arrow as its values, whose type is known then."""
    if column.dtype != nw.Categorical or library_of(column) != "pyarrow":
        return column
    native = column.to_native()
    values = native.cast(native.type.value_type)
    return nw.from_native(values, series_only=True).alias(column.name)


def is_foreign(problem: BaseException, libraries: Collection[str] = _LIBRARIES) -> bool:
    """Whether an exception belongs to one of these libraries, which hold tables."""
    return type(problem).__module__.split(".")[0] in libraries


@contextlib.contextmanager
def library_errors(
    what: str,
    remedy: str,
    *also: type[BaseException],
    error: Callable[[str], FairMaxEntError] = errors.StorageError,
    libraries: Collection[str] = _LIBRARIES,
) -> Iterator[None]:
    """Turn the exceptions of those libraries into an error that quotes the first line.

    ``also`` are further exceptions that are turned.
    """
    try:
        yield
    except FairMaxEntError:
        raise
    except BaseException as problem:
        if isinstance(problem, also) or is_foreign(problem, libraries):
            raise error(f"{what} ({errors.first_line(problem)}); {remedy}") from problem
        raise


@contextlib.contextmanager
def column_errors(column: Any) -> Iterator[None]:
    """Name the column that its library cannot handle.

    Some can be made, but not sorted, taken from or shown.
    """
    with library_errors(
        f"column {column.name!r} ({column.dtype}) holds values that cannot be read",
        "convert it, e.g. to text, or make such values missing",
        ValueError,
        OverflowError,
        NotImplementedError,
        error=partial(InputError, column=str(column.name)),
    ):
        yield


def in_range(weights: Reals) -> Reals:
    """Multiply weights by a power of two, so that the largest is from 1 to 2.

    For what depends on their ratios alone.
    """
    return np.ldexp(weights, 1 - math.frexp(weights.max())[1])


def check_weights(weights: Any, rows: int, *, what: str = "weight") -> Reals:
    """Refuse weights that make no sense."""
    try:
        numbers = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as problem:
        raise WeightError(
            f"{what} must be a column, or numbers, one per row"
        ) from problem
    if numbers.shape != (rows,):
        raise WeightError(
            f"{what} has shape {numbers.shape}; give one number for each of the {rows}"
            " rows"
        )
    low, high = WEIGHT_RANGE
    bad = ~((numbers == 0) | ((numbers >= low) & (numbers <= high)))
    if bad.any():
        row = int(np.argmax(bad))
        raise WeightError(
            f"{what} holds {numbers[row]} in row {row} (such rows in all:"
            f" {int(bad.sum())}); {WEIGHT_RULE}"
        )
    if not numbers.any():
        raise WeightError(f"{what} is zero everywhere; at least one row must count")
    return numbers


def read_weights(frame: Frame, weight: str | None) -> Reals | None:
    """Read a column of design weights, as it is."""
    if weight is None:
        return None
    weights = column(frame, weight)
    kind = weights.dtype
    try:
        if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object)):
            raise TypeError(kind)
        numbers = to_numbers(weights)
    except (TypeError, ValueError) as problem:  # objects may be anything
        raise WeightError(
            f"weight column {weight!r} holds {kind}, not numbers; convert it, or name"
            " another column"
        ) from problem
    return check_weights(numbers, len(frame), what=f"weight column {weight!r}")
