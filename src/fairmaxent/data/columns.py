"""The distinct values of a column, and how they are stored without pickle.

They come in one canonical order (numbers and dates ascending, text by code point,
ordered categories as declared), so that the same data gives the same codes in every
library. polars and pyarrow store them as an Arrow stream. pandas may be installed
without pyarrow, so its columns are stored by layout: what is behind the dtype, and the
dtype's own name.
"""

import contextlib
import datetime
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.frames import (
    Column,
    column_errors,
    is_missing,
    library_of,
    load_library,
    take,
)
from fairmaxent.data.limits import check_stream
from fairmaxent.data.table import Codes, Indices, Mask
from fairmaxent.errors import InputError, StorageError, cut

# a stored column: what fits into JSON, and arrays
Record = dict[str, Any]
Array = NDArray[Any]
Arrays = dict[str, Array]

# Integers in a range that is not much longer than their column are their own ranks.
_LITTLE_ROOM = 4  # times as long
_FREE_ROOM = 65_536  # and this much longer
_PER_DAY = {
    "ms": 86_400_000,
    "us": 86_400_000_000,
    "ns": 86_400_000_000_000,
}
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST_DAY = datetime.date.min.toordinal() - _EPOCH
_LAST_DAY = datetime.date.max.toordinal() - _EPOCH
# how the text of an object is read, by its type
_READERS: dict[str, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "bool": "True".__eq__,
    "NoneType": lambda _: None,
    "time": datetime.time.fromisoformat,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
}


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The distinct values of a column, and which of them each row has."""

    values: Column  # in canonical order
    codes: Indices  # position of each row's value among them; -1: missing
    counts: Indices  # how many rows have each of them
    rows: Indices  # the first row that has each of them

    @property
    def missing(self) -> int:
        """How many rows have none."""
        return len(self.codes) - int(self.counts.sum())


def distinct_values(column: Column) -> DistinctValues:
    """Find the distinct values of a column in one pass."""
    with column_errors(column):
        ranks_of = LIBRARIES[library_of(column)]
        codes, counts = _close_gaps(ranks_of(column.to_native(), column.name))
        # one more, at -1, for missing
        rows = np.full(len(counts) + 1, -1)
        # the first few thousand rows nearly always show every value
        for size in (4096, len(codes)):
            head = codes[:size]
            # the last write, i.e. the first row, stays
            rows[head[::-1]] = np.arange(len(head) - 1, -1, -1)
            if rows[:-1].min(initial=0) >= 0:
                break
        return DistinctValues(
            values=take(column, rows[:-1]),
            codes=codes,
            counts=counts,
            rows=rows[:-1],
        )


def factorize(column: Column) -> tuple[Indices, Column]:
    """Return each row's position among the distinct values, and those values.

    A missing value is at -1; the values are in canonical order.
    """
    distinct = distinct_values(column)
    return distinct.codes, distinct.values


def _close_gaps(ranks: Codes) -> tuple[Indices, Indices]:
    """Renumber non-negative ranks 0, 1, … without gaps, and count the rows of each.

    -1, which is missing, stays.
    """
    shifted = ranks + np.ones((), dtype=int)
    counts = np.bincount(shifted)[1:]  # [0]: missing
    seen = counts > 0
    if seen.all():
        return ranks.astype(int, copy=False), counts
    return np.append(-1, np.cumsum(seen) - 1)[shifted], counts[seen]


def _rank_numbers(numbers: Array, missing: Mask) -> Codes:
    """Rank by size; NaN is missing, too."""
    if numbers.dtype.kind == "f":
        missing = missing | np.isnan(numbers)
    if missing.all():
        return np.full(len(numbers), -1)
    if not missing.any():
        return _rank_present(numbers)
    ranks = np.full(len(numbers), -1)
    ranks[~missing] = _rank_present(numbers[~missing])
    return ranks


def _rank_present(numbers: Array) -> Codes:
    """Rank by size; integers in a narrow range are their own ranks, up to a shift."""
    kind = numbers.dtype.kind
    if kind == "b":
        return numbers.astype(np.int8)
    if kind in "iu":
        span = int(numbers.max()) - int(numbers.min())
        if span < _LITTLE_ROOM * len(numbers) + _FREE_ROOM:
            # In eight bits, 127 - -128 is -1, which is missing.
            wide = np.dtype(f"{kind}8")
            shifted = np.subtract(numbers, numbers.min(), dtype=wide)
            return np.asarray(shifted, dtype=int)
    return np.unique(numbers, return_inverse=True)[1]


def _rank_values(indices: Codes, values: Sequence[Any]) -> Indices:
    """Rank rows given as positions in a short list of distinct values.

    They are ranked by value; mixed types by type, then value; values that cannot be
    compared by type, then first appearance.
    """
    types = [type(value).__name__ for value in values]
    ranks = np.full(len(values) + 1, -1)  # the last serves index -1
    for keys in (values, list(zip(types, values, strict=True)), types):
        with contextlib.suppress(TypeError):
            order = sorted(range(len(values)), key=keys.__getitem__)
            ranks[order] = np.arange(len(values))
            break
    return ranks[indices]


def _cannot_factorize(name: str, kind: object) -> InputError:
    return InputError(
        f"column {name!r} holds {cut(str(kind))}; each cell must be a single number,"
        " text, truth value or date: unpack the column",
        column=name,
    )


def _pandas_ranks(native: Any, name: str) -> Codes:
    pandas = load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.SparseDtype):
        raise InputError(
            f"column {name!r} is sparse; make it dense:"
            f" frame[{name!r}].sparse.to_dense()",
            column=name,
        )
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = native.cat.codes.to_numpy()
        if dtype.ordered:
            return codes
        return _rank_values(codes, dtype.categories.tolist())
    if isinstance(dtype, pandas.ArrowDtype):
        return _pyarrow_ranks(_arrow_column(native), name)
    if dtype.kind in "mM":
        return _rank_numbers(native.array.asi8, native.isna().to_numpy())
    if dtype.kind in "biuf":
        return _rank_numbers(_pandas_numbers(native), native.isna().to_numpy())
    try:
        indices, values = native.array.factorize()
        if isinstance(dtype, np.dtypes.ObjectDType) and not all(
            type(value) is str for value in values
        ):
            indices, values = _factorized_objects(native.array)
    except TypeError as error:
        raise _cannot_factorize(
            name, f"cells that cannot be compared ({error})"
        ) from error
    return _rank_values(indices, list(values))


def _factorized_objects(cells: Any) -> tuple[Indices, list[Any]]:
    """Number objects as they appear, with True and 1 apart, and list them."""
    places: dict[tuple[bool, Any], int] = {}
    indices = []
    for cell in cells:
        place = -1
        if not is_missing(cell):
            key = (isinstance(cell, bool | np.bool_), cell)
            place = places.setdefault(key, len(places))
        indices.append(place)
    return np.array(indices, dtype=int), [cell for _, cell in places]


def _pandas_numbers(native: Any) -> Array:
    """The numbers of a column of pandas; 0 in the gaps of a type that has gaps."""
    kind = getattr(native.dtype, "numpy_dtype", None)
    if kind is None:
        return np.asarray(native.to_numpy())
    return np.asarray(native.to_numpy(dtype=kind, na_value=0))


def _arrow_column(native: Any) -> Any:
    """A column of pandas that pyarrow holds."""
    return load_library("pyarrow").chunked_array(native.array.__arrow_array__())


def _polars_ranks(native: Any, name: str) -> Codes:
    polars = load_library("polars")
    dtype = native.dtype
    if dtype.is_nested() or dtype == polars.Object:
        raise _cannot_factorize(name, dtype)
    missing = native.is_null().to_numpy()
    if missing.all():
        return np.full(len(native), -1)
    # polars would panic when it shows what Python cannot hold
    if dtype in (polars.Date, polars.Datetime):
        days = native.to_physical()
        if dtype != polars.Date:
            days = days // _PER_DAY[dtype.time_unit]
        if days.min() < _FIRST_DAY or days.max() > _LAST_DAY:
            raise OverflowError("a date or time outside the years 1 to 9999")
    if dtype == polars.Categorical:
        native = native.cast(polars.String)
    # polars sorts text by bytes of UTF-8, which is the order of code points
    if native.dtype == polars.String:
        native = native.cast(polars.Enum(native.unique().drop_nulls().sort()))
    numbers = native.to_physical()
    kind = numbers.dtype
    if kind == polars.Boolean:
        numbers = numbers.cast(polars.UInt8)
    # NumPy has no numbers of these.
    elif (
        not kind.is_numeric()
        or kind.is_decimal()
        or kind in (polars.Int128, getattr(polars, "UInt128", polars.Int128))
    ):
        dense = native.rank("dense").fill_null(0)
        return dense.to_numpy().astype(int) - 1
    return _rank_numbers(numbers.fill_null(0).to_numpy(), missing)


def _pyarrow_ranks(native: Any, name: str) -> Codes:
    pyarrow = load_library("pyarrow")
    kind = native.type
    types = pyarrow.types
    if types.is_nested(kind):
        raise _cannot_factorize(name, kind)
    if native.null_count == len(native):
        return np.full(len(native), -1)
    if types.is_dictionary(kind):
        array = _one_array(native.unify_dictionaries())
        ranks: Codes
        if kind.ordered:
            # By where each value stands first: a dictionary may repeat one, or hold a
            # null.
            first = {None: -1}
            listed = enumerate(array.dictionary.to_pylist())
            ranks = np.array([first.setdefault(value, at) for at, value in listed])
        else:
            ranks = _pyarrow_ranks(array.dictionary, name)
        return np.append(ranks, -1)[_indices(array)]
    if types.is_temporal(kind):
        integer = pyarrow.int64() if kind.bit_width == 64 else pyarrow.int32()
        native = _one_array(native).view(integer)
    is_boolean = types.is_boolean(kind)
    if is_boolean or types.is_integer(native.type) or types.is_floating(kind):
        filled = native.fill_null(False if is_boolean else 0)
        return _rank_numbers(_numpy(filled), _numpy(native.is_null()))
    array = _one_array(native.dictionary_encode())
    return _rank_values(_indices(array), array.dictionary.to_pylist())


def _indices(array: Any) -> Codes:
    """Return the positions of a dictionary array in its dictionary, -1 for null."""
    # unsigned ones cannot hold -1
    indices = array.indices.cast(load_library("pyarrow").int64())
    return _numpy(indices.fill_null(-1))


def _numpy(native: Any) -> Array:
    return np.asarray(_one_array(native).to_numpy(zero_copy_only=False))


def _one_array(native: Any) -> Any:
    """Join the chunks of a pyarrow column; an array is one already."""
    if hasattr(native, "combine_chunks"):
        return native.combine_chunks()
    return native


LIBRARIES = {
    "pandas": _pandas_ranks,
    "polars": _polars_ranks,
    "pyarrow": _pyarrow_ranks,
}


def to_storage(column: Column) -> tuple[Record, Arrays]:
    """Return the column as a JSON-able record and arrays; see `from_storage`."""
    library = library_of(column)
    native = column.to_native()
    if library != "pandas":
        return {"library": library}, _stream(native, library)
    record, arrays = _pandas_record(native, column.name)
    return {"library": library, **record}, arrays


def from_storage(name: str, record: Record, arrays: Arrays) -> Column:
    """Restore what `to_storage` wrote, with its dtype, under this column name."""
    library = record["library"]
    if library not in LIBRARIES:
        raise StorageError(
            f"column {name!r} was stored by {library!r}; known: pandas, polars, pyarrow"
        )
    if library == "pandas":
        native = _pandas_restore(record, arrays).rename(name)
        return nw.from_native(native, series_only=True)
    return _from_stream(arrays, library).alias(name)


def _stream(native: Any, library: str) -> Arrays:
    """Write a column of polars or pyarrow as an Arrow stream."""
    sink = io.BytesIO()
    if library == "polars":
        native.alias("values").to_frame().write_ipc_stream(sink)
    else:
        pyarrow = load_library(library)
        table = pyarrow.table({"values": native}).unify_dictionaries().combine_chunks()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return {"stream": np.frombuffer(sink.getvalue(), dtype=np.uint8)}


def _from_stream(arrays: Arrays, library: str) -> Column:
    """Read what `_stream` wrote, after a look at what it declares."""
    content = arrays["stream"].tobytes()
    namespace = load_library(library)
    check_stream(content)
    if library == "polars":
        native = namespace.read_ipc_stream(io.BytesIO(content))
    else:
        native = namespace.ipc.open_stream(content).read_all()
        native.validate(full=True)
    frame = nw.from_native(native, eager_only=True)
    # Nothing would read the others.
    if frame.columns != ["values"]:
        raise ValueError("a column is stored together with others")
    return frame.get_column("values")


def _pandas_record(native: Any, name: str) -> tuple[Record, Arrays]:
    pandas = load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        categories, arrays = _pandas_record(dtype.categories.to_series(), name)
        record = {
            "layout": "category",
            "ordered": dtype.ordered,
            "categories": categories,
        }
        codes = native.cat.codes.to_numpy()
        return record, {"codes": codes, **nest("categories", arrays)}
    if isinstance(dtype, pandas.IntervalDtype):  # of pandas.cut
        intervals = pandas.Index(native)
        left, left_arrays = _pandas_record(intervals.left.to_series(), name)
        right, right_arrays = _pandas_record(intervals.right.to_series(), name)
        record = {
            "layout": "interval",
            "closed": dtype.closed,
            "left": left,
            "right": right,
        }
        return record, nest("left", left_arrays) | nest("right", right_arrays)
    if isinstance(dtype, pandas.ArrowDtype):
        return {"layout": "stream"}, _stream(_arrow_column(native), "pyarrow")
    if isinstance(dtype, pandas.StringDtype):
        kind = "str" if str(dtype) == "str" else f"string[{dtype.storage}]"
        texts = [value if isinstance(value, str) else None for value in native]
        return {
            "layout": "text",
            "dtype": kind,
            "values": texts,
        }, {}
    if isinstance(dtype, np.dtypes.ObjectDType):
        tagged = [_tagged(value, name) for value in native]
        return {"layout": "objects", "values": tagged}, {}
    return {"layout": "numbers", "dtype": str(dtype)}, _number_arrays(native, name)


def _number_arrays(native: Any, name: str) -> Arrays:
    dtype = native.dtype
    known = load_library("pandas").api.types.pandas_dtype
    if dtype.kind not in "biufmM" or known(str(dtype)) != dtype:
        raise StorageError(
            f"column {name!r} of dtype {dtype} cannot be stored; convert it, e.g. to"
            " text"
        )
    if dtype.kind in "mM":
        return {"numbers": native.array.asi8}
    arrays = {"numbers": _pandas_numbers(native)}
    if hasattr(dtype, "numpy_dtype"):
        arrays["missing"] = native.isna().to_numpy()
    return arrays


def _pandas_restore(record: Record, arrays: Arrays) -> Any:
    pandas = load_library("pandas")
    match record["layout"]:
        case "category":
            categories = _pandas_restore(
                record["categories"], unnest("categories", arrays)
            )
            dtype = pandas.CategoricalDtype(
                pandas.Index(categories), ordered=record["ordered"]
            )
            values = pandas.Categorical.from_codes(arrays["codes"], dtype=dtype)
            return pandas.Series(values)
        case "interval":
            left = _pandas_restore(record["left"], unnest("left", arrays))
            right = _pandas_restore(record["right"], unnest("right", arrays))
            make = pandas.arrays.IntervalArray.from_arrays
            return pandas.Series(make(left, right, closed=record["closed"]))
        case "stream":
            native = _from_stream(arrays, "pyarrow").to_native()
            return pandas.Series(pandas.arrays.ArrowExtensionArray(native))
        case "text":
            return pandas.Series(record["values"], dtype=record["dtype"])
        case "objects":
            objects = [_READERS[tag](text) for tag, text in record["values"]]
            return pandas.Series(objects, dtype=object)
        case "numbers":
            numbers = pandas.Series(arrays["numbers"]).astype(record["dtype"])
            if "missing" in arrays:
                return numbers.mask(arrays["missing"])
            return numbers
        case _:
            raise ValueError("a column has an unknown layout")


def _tagged(value: object, name: str) -> list[str]:
    """Write one Python value of an object column as its type and its text."""
    # In nanoseconds, a time would become a number.
    is_time = isinstance(value, np.datetime64 | np.timedelta64)
    if isinstance(value, np.generic) and not is_time:
        value = value.item()
    tag = type(value).__name__
    if tag in ("NAType", "NaTType"):
        return ["NoneType", "None"]
    if tag not in _READERS:
        raise StorageError(
            f"column {name!r} holds a {tag}, which cannot be stored; convert it, e.g."
            " to text"
        )
    if isinstance(value, datetime.date | datetime.time):
        return [tag, value.isoformat()]
    return [tag, str(value)]


def nest(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before the names of arrays, so that sets can share a store."""
    return {f"{prefix}.{key}": array for key, array in arrays.items()}


def unnest(prefix: str, arrays: Mapping[str, Array]) -> Arrays:
    """Return the arrays that `nest` put under this prefix."""
    start = f"{prefix}."
    return {
        key.removeprefix(start): array
        for key, array in arrays.items()
        if key.startswith(start)
    }
