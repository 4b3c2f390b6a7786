"""DataFrame libraries (pandas, polars, pyarrow), through narwhals: frames in and out,
single values, design weights.

Only this file and columns know the libraries. Where narwhals has no fast way, the
native library is used.
"""

import contextlib
import datetime
import importlib
import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent import errors
from fairmaxent.data.table import Codes, Reals
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

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECONDS = 1e6  # per second
# The packages whose exceptions are turned: those that hold tables or compute them. pyo3
# is how polars panics, which is a bug in polars that damaged data can reach; it is no
# Exception, so it would pass every handler.
_LIBRARIES = {
    *("pandas", "polars", "pyarrow", "narwhals", "pyo3_runtime"),
    *("duckdb", "_duckdb", "dask", "distributed", "tornado", "pyspark", "py4j"),
}
# Other weights than zero are within these, so that sums of them and of their squares
# are within float64.
WEIGHT_RANGE = 1e-100, 1e100
WEIGHT_RULE = (
    "weights must be zero, or from {:g} to {:g}. Repair or drop those rows.".format(
        *WEIGHT_RANGE
    )
)


def open_frame(frame: Any, *, may_be_empty: bool = False) -> Frame:
    """Wrap an eager pandas, polars or pyarrow table, or explain why it cannot be
    used.
    """
    native = nw.to_native(frame, pass_through=True)
    if nw.dependencies.is_polars_lazyframe(native):
        raise InputError("a polars LazyFrame has no rows yet; call .collect() first")
    if nw.dependencies.is_pandas_dataframe(
        native
    ) or nw.dependencies.is_polars_dataframe(native):
        names = list(native.columns)
    elif nw.dependencies.is_pyarrow_table(native):
        names = list(native.column_names)
    else:
        tables = "a pandas DataFrame, a polars DataFrame or a pyarrow Table"
        raise InputError(f"{type(native).__name__} is not a table; pass {tables}")
    if not names:
        raise InputError("the table has no columns; pass at least one")
    if strange := [repr(name) for name in names if not isinstance(name, str)]:
        listed = ", ".join(strange[:5])
        raise ColumnError(
            f"column names must be text, but these are not: {listed}; rename them, e.g."
            " with str(name)"
        )
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise ColumnError(
            f"column names appear more than once: {', '.join(map(repr, repeated))};"
            " rename them"
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
    return nw.dependencies.is_into_dataframe(
        data
    ) or nw.dependencies.is_polars_lazyframe(data)


def columns_of(data: Any, backend: Any) -> list[Column]:
    """The columns of a table, a series or an array; those of an array have no name, and
    become the backend's.
    """
    if is_table(data):
        return list(nw.from_native(data, eager_only=True).iter_columns())
    if nw.dependencies.is_into_series(data):
        return [nw.from_native(data, series_only=True)]
    array = np.asarray(data)
    # Text as a list: not every library takes numpy's own kind of text.
    parts = [
        part if array.dtype.kind in "biuf" else part.tolist()
        for part in array.reshape(len(array), -1).T
    ]
    return [nw.new_series("", part, backend=backend) for part in parts]


def take(column: Column, rows: Codes) -> Column:
    """Return the values at these positions, missing ones too, as a column of the same
    dtype.
    """
    return column[rows.astype(np.int64, copy=False)]


def gather(columns: Mapping[str, tuple[Column, Codes]]) -> Any:
    """Build a native table whose columns are values at the given positions; `take` and
    `build` in one native step.
    """
    library = library_of(next(iter(columns.values()))[0])
    natives = {
        name: (column.to_native(), rows) for name, (column, rows) in columns.items()
    }
    namespace = load_library(library)
    if library == "pandas":
        arrays = {
            name: native.array.take(rows) for name, (native, rows) in natives.items()
        }
        # Objects with an explicit dtype, or pandas would read some of them as text.
        objects = [
            name for name, (native, _) in natives.items() if native.dtype == object
        ]
        return namespace.DataFrame(
            arrays
            | {name: namespace.Series(arrays[name], dtype=object) for name in objects}
        )
    if library == "polars":
        return namespace.DataFrame(
            [native[rows].alias(name) for name, (native, rows) in natives.items()]
        )
    return namespace.table(
        {name: native.take(rows) for name, (native, rows) in natives.items()}
    )


def build(columns: Mapping[str, Column]) -> Any:
    """Put columns of one library into a native table of that library, in the given
    order.
    """
    natives = {name: column.to_native() for name, column in columns.items()}
    library = library_of(next(iter(columns.values())))
    namespace = load_library(library)
    if library == "pandas":
        return namespace.DataFrame(
            {name: native.reset_index(drop=True) for name, native in natives.items()}
        )
    if library == "pyarrow":
        return namespace.table(natives)
    return namespace.DataFrame(natives)


def arrange(frame: Any, order: Sequence[str], ones: Column | None) -> Any:
    """Put the columns of a decoded table in this order, with ``ones`` repeated for
    every row under its name.
    """
    columns = {column.name: column for column in columns_of(frame, None)}
    if ones is not None:
        columns[ones.name] = take(ones, np.zeros(len(frame), dtype=np.intp))
    return build({name: columns[name] for name in order})


def number_column(name: str, numbers: Reals, like: Column) -> Column:
    """Return a float64 column in the library of ``like``."""
    return nw.new_series(name, numbers, nw.Float64, backend=like.implementation)


def one_like(column: Column) -> Column:
    """Return a single 1 as a column of the same name and dtype as this column of
    numbers.
    """
    number = column.head(1).cast(nw.Float64) * 0 + 1
    if column.dtype == nw.Object:
        return number
    return number.cast(column.dtype)


def library_of(column: Column) -> str:
    """Name the library a column belongs to."""
    return str(column.implementation.value)


def new_frame(columns: Mapping[str, Sequence[Any]], library: str) -> Any:
    """Make a table of a library from lists of values."""
    return nw.from_dict({**columns}, backend=load_library(library)).to_native()


def load_library(library: str) -> Any:
    """Import a library by name, or raise an error that says what to install."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise errors.DependencyError(
            f"this needs {library}, which is not installed; pip install {library}"
        ) from error


def has_library(library: str) -> bool:
    """Tell whether a library is installed, without importing it."""
    return importlib.util.find_spec(library) is not None


def is_missing(value: object) -> bool:
    """Tell whether a single value stands for "no value": None, NaN, NaT or pandas'
    NA.
    """
    # pandas' own, without importing it
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return (
        isinstance(
            value, float | np.floating | Decimal | np.datetime64 | np.timedelta64
        )
        and value != value
    )


def plain_option(name: str, value: Any) -> Any:
    """An option with lists for arrays, and None for pandas' missing values inside it:
    neither can be compared.
    """
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
    return None if is_missing(value) and not isinstance(value, float) else value


def checked_progress(progress: Progress | None) -> Progress:
    """The callback that was given, if it can be called, or one that ignores
    everything.
    """
    if not callable(silent if progress is None else progress):
        how = "pass a function of a stage and a share"
        raise InputError(
            errors.Option("progress"), f" is {errors.shown(progress)}; {how}"
        )
    return progress or silent


def number_of(value: object) -> float | None:
    """Return the number behind a number, date, time or duration (times in seconds,
    since 1970 in UTC), else None.

    >>> number_of(3), number_of(datetime.date(1970, 1, 2)), number_of(True), number_of("3")
    (3.0, 86400.0, None, None)
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if isinstance(
        value, int | float | Decimal | np.integer | np.floating
    ) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, datetime.datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - _EPOCH
    elif isinstance(value, datetime.date):
        value = value - _EPOCH.date()
    elif isinstance(value, datetime.time):
        value = datetime.datetime.combine(
            _EPOCH.date(), value.replace(tzinfo=None)
        ) - _EPOCH.replace(tzinfo=None)
    if isinstance(value, datetime.timedelta):
        # whole microseconds first: dividing integers below 2^53 once is exact to the
        # last bit in every library
        return (
            (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        ) / _MICROSECONDS
    return None


def to_numbers(column: Column) -> Reals:
    """Return numbers, truth values (0, 1) or times (seconds, see `number_of`) as
    float64, missing as NaN.
    """
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean or dtype == nw.Object:
        return _floats(column)
    if dtype == nw.Date or dtype == nw.Datetime:
        return _floats(column.dt.timestamp("us")) / _MICROSECONDS
    if dtype == nw.Duration:
        if library_of(column) != "pandas":
            return _floats(column.dt.total_microseconds()) / _MICROSECONDS
        # narwhals takes pandas' by way of seconds, and loses a microsecond at times
        durations = column.to_native().astype("timedelta64[us]").to_numpy()
        return (
            np.where(np.isnat(durations), np.nan, durations.astype(np.int64))
            / _MICROSECONDS
        )
    numbers = [number_of(value) for value in column.to_list()]
    return np.array([np.nan if number is None else number for number in numbers])


def _floats(column: Column) -> Reals:
    # which numpy does not have
    wide = column.dtype == nw.Int128 or column.dtype == nw.UInt128
    numbers = (column.cast(nw.Float64) if wide else column).to_numpy()
    # whose cast errs in the last digit
    exact = column.dtype == nw.Decimal and column.implementation.is_pyarrow()
    # objects: Decimal, or pandas' own missing value
    if numbers.dtype.kind not in "biuf" and not exact:
        numbers = column.cast(nw.Float64).to_numpy()
    return np.asarray(numbers, dtype=np.float64)


def is_foreign(problem: BaseException) -> bool:
    """Whether an exception belongs to one of the libraries that hold tables."""
    return type(problem).__module__.split(".")[0] in _LIBRARIES


@contextlib.contextmanager
def library_errors(
    what: str,
    remedy: str,
    *also: type[BaseException],
    error: Callable[[str], FairMaxEntError] = errors.StorageError,
) -> Iterator[None]:
    """Turn the exceptions of those libraries, and ``also`` these, into an error that
    quotes their first line.
    """
    try:
        yield
    except FairMaxEntError:
        raise
    except BaseException as problem:
        if isinstance(problem, also) or is_foreign(problem):
            raise error(f"{what} ({errors.first_line(problem)}); {remedy}") from problem
        raise


@contextlib.contextmanager
def column_errors(column: Any) -> Iterator[None]:
    """Name the column that its library cannot handle: some can be made, but not sorted,
    taken from or shown.
    """
    what = f"column {column.name!r} ({column.dtype}) holds values that cannot be read"
    remedy = "convert it, e.g. to text, or make such values missing"
    error = partial(InputError, column=str(column.name))
    with library_errors(
        what, remedy, ValueError, OverflowError, NotImplementedError, error=error
    ):
        yield


def in_range(weights: Reals) -> Reals:
    """Multiply weights by a power of two, so that the largest is from 1 to 2, for what
    depends on ratios alone.
    """
    return np.ldexp(weights, 1 - math.frexp(weights.max())[1])


def check_weights(weights: Any, rows: int, *, what: str = "weight") -> Reals:
    """Refuse weights that make no sense."""
    try:
        numbers = np.asarray(weights, dtype=np.float64)
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
        found = f"{numbers[row]} in row {row} (such rows in all: {int(bad.sum())})"
        raise WeightError(f"{what} holds {found}; {WEIGHT_RULE}")
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
        if not (kind.is_numeric() or kind == nw.Boolean or kind == nw.Object):
            raise TypeError(kind)
        numbers = to_numbers(weights)
    except (TypeError, ValueError) as problem:  # objects may be anything
        advice = "convert it, or name another column"
        raise WeightError(
            f"weight column {weight!r} holds {kind}, not numbers; {advice}"
        ) from problem
    return check_weights(numbers, len(frame), what=f"weight column {weight!r}")
