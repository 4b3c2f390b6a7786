"""The distinct values of a column, which of them each row has, and how they are stored
without pickle.

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

from fairmaxent.data import frames
from fairmaxent.data.limits import check_stream
from fairmaxent.errors import InputError, StorageError, cut

_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# from 1970
_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - 719_163 for day in (datetime.date.min, datetime.date.max)
)
# ---------------------------------------------------------------- stored columns
Arrays = dict[str, NDArray[Any]]
Record = dict[str, Any]
_READERS: dict[str, Callable[[str], object]] = {
    kind.__name__: kind for kind in (str, int, float, Decimal)
}
_ENDS = ("left", "right")  # of an interval


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The distinct values of a column, and which of them each row has."""

    values: frames.Column  # in canonical order
    codes: NDArray[np.intp]  # position of each row's value among them; -1: missing
    counts: NDArray[np.intp]  # how many rows have each of them
    rows: NDArray[np.intp]  # the first row that has each of them

    @property
    def missing(self) -> int:
        """How many rows have none."""
        return len(self.codes) - int(self.counts.sum())


def distinct_values(column: frames.Column) -> DistinctValues:
    """Find the distinct values of a column in one pass."""
    with frames.column_errors(column):
        codes, counts = _close_gaps(
            LIBRARIES[frames.library_of(column)](column.to_native(), column.name)
        )
        # one more, at -1, for missing
        rows = np.full(len(counts) + 1, -1, dtype=np.intp)
        # the first few thousand rows nearly always show every value
        for size in (4096, len(codes)):
            head = codes[:size]
            # the last write, i.e. the first row, stays
            rows[head[::-1]] = np.arange(len(head) - 1, -1, -1)
            if rows[:-1].min(initial=0) >= 0:
                break
        return DistinctValues(frames.take(column, rows[:-1]), codes, counts, rows[:-1])


def factorize(column: frames.Column) -> tuple[NDArray[np.intp], frames.Column]:
    """Return each row's position among the distinct values (-1: missing) and those
    values, in canonical order.
    """
    distinct = distinct_values(column)
    return distinct.codes, distinct.values


def _close_gaps(
    ranks: NDArray[np.integer],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Renumber non-negative ranks 0, 1, … without gaps, -1 stays; and count how many
    rows have each new number.
    """
    shifted = ranks + np.ones((), dtype=np.intp)
    counts = np.bincount(shifted)[1:]  # [0]: missing
    seen = counts > 0
    if seen.all():
        return ranks.astype(np.intp, copy=False), counts
    return np.append(-1, np.cumsum(seen) - 1)[shifted], counts[seen]


def _rank_numbers(
    numbers: NDArray[Any], missing: NDArray[np.bool_]
) -> NDArray[np.integer]:
    """Rank by size. Integers in a narrow range are their own ranks, up to a shift; no
    sort is needed.
    """
    if missing.all():
        return np.full(len(numbers), -1)
    some_missing = bool(missing.any())
    if some_missing:
        present = numbers[~missing]
    else:
        present = numbers
    ranks: NDArray[np.integer]
    if present.dtype.kind == "b":
        ranks = present.view(np.int8)
    elif (
        present.dtype.kind in "iu"
        and int(present.max()) - int(present.min()) < 4 * len(numbers) + 65_536
    ):
        # in eight bits, 127 - -128 is -1, which is missing
        if present.dtype.kind == "u":
            wide = np.uint64
        else:
            wide = np.int64
        ranks = np.subtract(present, present.min(), dtype=wide).astype(np.intp)
    else:
        ranks = np.unique(present, return_inverse=True)[1]
    if not some_missing:
        return ranks
    spread = np.full(len(numbers), -1, dtype=np.intp)
    spread[~missing] = ranks
    return spread


def _rank_values(
    indices: NDArray[np.integer], values: Sequence[Any]
) -> NDArray[np.intp]:
    """Rank rows given as positions in a short list of distinct values."""
    # By value; mixed types by type, then value; values that cannot be compared by type,
    # then first appearance. the last entry serves index -1
    ranks = np.full(len(values) + 1, -1, dtype=np.intp)
    types = [type(value).__name__ for value in values]
    for keys in (values, list(zip(types, values, strict=True)), types):
        with contextlib.suppress(TypeError):
            ranks[sorted(range(len(values)), key=keys.__getitem__)] = np.arange(
                len(values)
            )
            break
    return np.asarray(ranks[indices])


def _cannot_factorize(name: str, kind: object) -> InputError:
    rule = (
        "each cell must be a single number, text, truth value or date: unpack the"
        " column"
    )
    return InputError(f"column {name!r} holds {cut(str(kind))}; {rule}", column=name)


def _pandas_ranks(native: Any, name: str) -> NDArray[np.integer]:
    pandas = frames.load_library("pandas")
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
        return _pyarrow_ranks(
            frames.load_library("pyarrow").chunked_array(
                native.array.__arrow_array__()
            ),
            name,
        )
    if dtype.kind in "mM":
        return _rank_numbers(native.array.asi8, native.isna().to_numpy())
    if dtype.kind in "biuf":
        numbers = _pandas_numbers(native)
        missing = native.isna().to_numpy()
        return _rank_numbers(
            numbers, missing | np.isnan(numbers) if dtype.kind == "f" else missing
        )
    try:
        indices, values = native.array.factorize()
        if isinstance(dtype, np.dtypes.ObjectDType) and not all(
            type(value) is str for value in values
        ):
            keys: dict[tuple[bool, Any], int] = {}  # True and 1 stay apart
            marked = (
                (isinstance(cell, bool | np.bool_), cell) for cell in native.array
            )
            places = (
                -1 if frames.is_missing(key[1]) else keys.setdefault(key, len(keys))
                for key in marked
            )
            indices = np.fromiter(places, np.intp, len(native))
            values = [cell for _, cell in keys]
    except TypeError as error:
        raise _cannot_factorize(
            name, f"cells that cannot be compared ({error})"
        ) from error
    return _rank_values(indices, list(values))


def _pandas_numbers(native: Any) -> NDArray[Any]:
    """The numbers of a column of pandas, 0 where one that has gaps of its own has
    one.
    """
    kind = getattr(native.dtype, "numpy_dtype", None)
    return np.asarray(
        native.to_numpy() if kind is None else native.to_numpy(dtype=kind, na_value=0)
    )


def _polars_ranks(native: Any, name: str) -> NDArray[np.integer]:
    polars = frames.load_library("polars")
    dtype = native.dtype
    if dtype.is_nested() or dtype == polars.Object:
        raise _cannot_factorize(name, dtype)
    missing = native.is_null().to_numpy()
    if missing.all():
        return np.full(len(native), -1)
    # polars would panic when it shows what Python cannot hold
    if dtype in (polars.Date, polars.Datetime):
        days = native.to_physical() // (
            1 if dtype == polars.Date else _PER_DAY[dtype.time_unit]
        )
        if days.min() < _FIRST_DAY or days.max() > _LAST_DAY:
            raise OverflowError("a date or time outside the years 1 to 9999")
    if dtype == polars.Categorical:
        present = native.drop_nulls().unique()
        physical = present.to_physical().to_numpy()
        ranks = np.full(int(physical.max()) + 2, -1, dtype=np.intp)
        ranks[physical] = _rank_values(
            np.arange(len(physical)), present.cast(polars.String).to_list()
        )
        return np.asarray(
            ranks[native.to_physical().fill_null(len(ranks) - 1).to_numpy()]
        )
    # polars sorts text by bytes of UTF-8, which is the order of code points
    if dtype == polars.String:
        native = native.cast(polars.Enum(native.unique().drop_nulls().sort()))
    numbers = native.to_physical()
    if numbers.dtype == polars.Boolean:
        numbers = numbers.cast(polars.UInt8)
    # which numpy does not have
    wide = (polars.Int128, getattr(polars, "UInt128", polars.Int128))
    if (
        not numbers.dtype.is_numeric()
        or numbers.dtype.is_decimal()
        or numbers.dtype in wide
    ):
        return np.asarray(
            native.rank("dense").fill_null(0).to_numpy().astype(np.intp) - 1
        )
    numbers = numbers.fill_null(0).to_numpy()
    return _rank_numbers(
        numbers, missing | np.isnan(numbers) if numbers.dtype.kind == "f" else missing
    )


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
        # by where each value stands first: a dictionary may repeat one, or hold a null
        if kind.ordered:
            first: dict[Any, int] = {None: -1}
            ranks = np.array(
                [
                    first.setdefault(value, at)
                    for at, value in enumerate(array.dictionary.to_pylist())
                ]
            )
        else:
            ranks = _pyarrow_ranks(array.dictionary, name)
        return np.asarray(np.append(ranks, -1)[codes])
    if types.is_temporal(kind):
        native = _one_array(native).view(
            pyarrow.int64() if kind.bit_width == 64 else pyarrow.int32()
        )
    if (
        types.is_boolean(kind)
        or types.is_integer(native.type)
        or types.is_floating(kind)
    ):
        missing = _one_array(native.is_null(nan_is_null=True)).to_numpy(
            zero_copy_only=False
        )
        filled = native.fill_null(False if types.is_boolean(kind) else 0)
        return _rank_numbers(_one_array(filled).to_numpy(zero_copy_only=False), missing)
    array = _one_array(native.dictionary_encode())
    return _rank_values(_indices(array), array.dictionary.to_pylist())


def _indices(array: Any) -> NDArray[np.integer]:
    """Return the positions of a dictionary array in its dictionary, -1 for null;
    unsigned ones cannot hold -1.
    """
    indices = array.indices.cast(frames.load_library("pyarrow").int64())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False))


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
_READERS |= {
    "bool": "True".__eq__,
    "NoneType": lambda _: None,
    "time": datetime.time.fromisoformat,
}
_READERS |= {
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
}


def to_storage(column: frames.Column) -> tuple[Record, Arrays]:
    """Return the column as a JSON-able record and arrays, from which `from_storage`
    restores it with its dtype.
    """
    library = frames.library_of(column)
    native = column.to_native()
    if library == "pandas":
        record, arrays = _pandas_record(native, column.name)
    else:
        record = {}
        arrays = _stream(native, library)
    return {"library": library, **record}, arrays


def from_storage(
    name: str, record: Record, arrays: Mapping[str, NDArray[Any]]
) -> frames.Column:
    """Restore what `to_storage` wrote, under this column name."""
    library = record["library"]
    if library not in LIBRARIES:
        raise StorageError(
            f"column {name!r} was stored by {library!r}; known: pandas, polars, pyarrow"
        )
    if library == "pandas":
        return nw.from_native(
            _pandas_restore(record, arrays).rename(name), series_only=True
        )
    return _from_stream(arrays, library).alias(name)


def _stream(native: Any, library: str) -> Arrays:
    """Write a column of polars or pyarrow as an Arrow stream."""
    sink = io.BytesIO()
    if library == "polars":
        native.alias("values").to_frame().write_ipc_stream(sink)
    else:
        pyarrow = frames.load_library(library)
        table = pyarrow.table({"values": native}).unify_dictionaries().combine_chunks()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return {"stream": np.frombuffer(sink.getvalue(), dtype=np.uint8)}


def _from_stream(arrays: Mapping[str, NDArray[Any]], library: str) -> frames.Column:
    """Read what `_stream` wrote, after a look at what it declares; other columns beside
    it would be read by nothing.
    """
    content = arrays["stream"].tobytes()
    namespace = frames.load_library(library)
    check_stream(content)
    if library == "polars":
        table = namespace.read_ipc_stream(io.BytesIO(content))
    else:
        table = namespace.ipc.open_stream(content).read_all()
        table.validate(full=True)
    frame: frames.Frame = nw.from_native(table, eager_only=True)
    if frame.columns != ["values"]:
        raise ValueError("a column is stored together with others")
    return frame.get_column("values")


def _pandas_record(native: Any, name: str) -> tuple[Record, Arrays]:
    pandas = frames.load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        categories, arrays = _pandas_record(dtype.categories.to_series(), name)
        record = {
            "layout": "category",
            "ordered": dtype.ordered,
            "categories": categories,
        }
        return record, {
            "codes": native.cat.codes.to_numpy(),
            **nest("categories", arrays),
        }
    if isinstance(dtype, pandas.IntervalDtype):  # of pandas.cut
        left, right = (
            _pandas_record(getattr(pandas.Index(native), end).to_series(), name)
            for end in _ENDS
        )
        record = {
            "layout": "interval",
            "closed": dtype.closed,
            "left": left[0],
            "right": right[0],
        }
        return record, nest("left", left[1]) | nest("right", right[1])
    if isinstance(dtype, pandas.ArrowDtype):
        column = frames.load_library("pyarrow").chunked_array(
            native.array.__arrow_array__()
        )
        return {"layout": "stream"}, _stream(column, "pyarrow")
    if isinstance(dtype, pandas.StringDtype):
        texts = [value if isinstance(value, str) else None for value in native]
        if str(dtype) == "str":
            dtype_name = "str"
        else:
            dtype_name = f"string[{dtype.storage}]"
        return {"layout": "text", "dtype": dtype_name, "values": texts}, {}
    if isinstance(dtype, np.dtypes.ObjectDType):
        return {
            "layout": "objects",
            "values": [_tagged(value, name) for value in native],
        }, {}
    record = {"layout": "numbers", "dtype": str(dtype)}
    if dtype.kind not in "biufmM" or pandas.api.types.pandas_dtype(str(dtype)) != dtype:
        raise StorageError(
            f"column {name!r} of dtype {dtype} cannot be stored; convert it, e.g. to"
            " text"
        )
    if dtype.kind in "mM":
        return record, {"numbers": native.array.asi8}
    if hasattr(dtype, "numpy_dtype"):
        missing = {"missing": native.isna().to_numpy()}
    else:
        missing = {}
    return record, {"numbers": _pandas_numbers(native), **missing}


def _pandas_restore(record: Record, arrays: Mapping[str, NDArray[Any]]) -> Any:
    pandas = frames.load_library("pandas")
    match record["layout"]:
        case "category":
            categories = _pandas_restore(
                record["categories"], unnest("categories", arrays)
            )
            dtype = pandas.CategoricalDtype(
                pandas.Index(categories), ordered=record["ordered"]
            )
            return pandas.Series(
                pandas.Categorical.from_codes(arrays["codes"], dtype=dtype)
            )
        case "interval":
            left, right = (
                _pandas_restore(record[end], unnest(end, arrays)) for end in _ENDS
            )
            return pandas.Series(
                pandas.arrays.IntervalArray.from_arrays(
                    left, right, closed=record["closed"]
                )
            )
        case "stream":
            return pandas.Series(
                pandas.arrays.ArrowExtensionArray(
                    _from_stream(arrays, "pyarrow").to_native()
                )
            )
        case "text":
            return pandas.Series(record["values"], dtype=record["dtype"])
        case "objects":
            return pandas.Series(
                [_READERS[tag](text) for tag, text in record["values"]], dtype=object
            )
        case "numbers":
            series = pandas.Series(arrays["numbers"]).astype(record["dtype"])
            if "missing" in arrays:
                return series.mask(arrays["missing"])
            return series
        case _:
            raise ValueError("a column has an unknown layout")


def _tagged(value: object, name: str) -> list[str]:
    """Write one Python value of an object column as its type and its text."""
    # in nanoseconds, it would become a number
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
    return [
        tag,
        (
            value.isoformat()
            if isinstance(value, datetime.date | datetime.time)
            else str(value)
        ),
    ]


def nest(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before the names of arrays, so that several sets can share one
    store.
    """
    return {f"{prefix}.{key}": array for key, array in arrays.items()}


def unnest(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays that `nest` put under this prefix."""
    start = f"{prefix}."
    return {
        key.removeprefix(start): array
        for key, array in arrays.items()
        if key.startswith(start)
    }
