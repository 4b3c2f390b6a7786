"""Columns as plain records and arrays, to be stored without pickle.

polars and pyarrow write their columns as an Arrow stream, which keeps every dtype. pandas may be installed without
pyarrow, so its columns are written by layout: the numbers or texts behind the dtype, and the dtype's own name.
"""

from __future__ import annotations

import datetime
import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.distinct_values import LIBRARIES
from fairmaxent.data.frames import Column, library_of, load_library
from fairmaxent.errors import StorageError

Arrays = dict[str, NDArray[Any]]
Record = dict[str, Any]

_READERS: dict[str, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": "True".__eq__,
    "Decimal": Decimal,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "datetime64": lambda text: np.datetime64(*_number_and_unit(text)),
    "timedelta64": lambda text: np.timedelta64(*_number_and_unit(text)),
    "NoneType": lambda _: None,
}


def _number_and_unit(text: str) -> tuple[int, Any]:
    number, unit = text.split()
    return int(number), unit


def to_storage(series: Column) -> tuple[Record, Arrays]:
    """Return the column as a JSON-able record and arrays, from which `from_storage` restores it with its dtype."""
    library, native = library_of(series), series.to_native()
    if library == "pandas":
        record, arrays = _pandas_record(native, series.name)
        return {"library": library, **record}, arrays
    stream = _polars_stream(native) if library == "polars" else _pyarrow_stream(native)
    return {"library": library}, stream


def from_storage(name: str, record: Record, arrays: Mapping[str, NDArray[Any]], rows: int | None = None) -> Column:
    """Restore what `to_storage` wrote, under this column name; ``rows`` is how many values it must have, if known."""
    library = record["library"]
    if library not in LIBRARIES:
        raise StorageError(f"column {name!r} was stored by {library!r}; known: pandas, polars, pyarrow")
    namespace = load_library(library)
    if library == "pandas":
        native = _pandas_restore(record, arrays, rows).to_frame(name)
    elif library == "polars":
        native = _alone(namespace.read_ipc_stream(io.BytesIO(_stream(arrays, rows))), "columns").rename(
            {"values": name}
        )
    else:
        native = namespace.table({name: _pyarrow_restore(arrays, rows)})
    frame: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    return frame.get_column(name)


def _polars_stream(native: Any) -> Arrays:
    sink = io.BytesIO()
    native.alias("values").to_frame().write_ipc_stream(sink)
    return {"stream": np.frombuffer(sink.getvalue(), dtype=np.uint8)}


def _pyarrow_stream(native: Any) -> Arrays:
    pyarrow = load_library("pyarrow")
    sink = io.BytesIO()
    table = pyarrow.table({"values": native}).unify_dictionaries().combine_chunks()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"stream": np.frombuffer(sink.getvalue(), dtype=np.uint8)}


def _stream(arrays: Mapping[str, NDArray[Any]], rows: int | None) -> bytes:
    """The bytes of an Arrow stream, after a look at what it declares."""
    content = arrays["stream"].tobytes()
    check_stream(content, rows)
    return content


def _pyarrow_restore(arrays: Mapping[str, NDArray[Any]], rows: int | None) -> Any:
    table = load_library("pyarrow").ipc.open_stream(_stream(arrays, rows)).read_all()
    table.validate(full=True)
    return _alone(table, "column_names").column("values")


def _alone(table: Any, names: str) -> Any:
    """Refuse a stream with other columns beside the stored one, which nothing would read."""
    if list(getattr(table, names)) != ["values"]:
        raise ValueError("a column is stored together with others")
    return table


def _pandas_record(native: Any, name: str) -> tuple[Record, Arrays]:
    pandas = load_library("pandas")
    dtype = native.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        categories, arrays = _pandas_record(dtype.categories.to_series(), name)
        record = {"layout": "category", "ordered": dtype.ordered, "categories": categories}
        return record, {"codes": native.cat.codes.to_numpy(), **nest("categories", arrays)}
    if isinstance(dtype, pandas.IntervalDtype):
        index = pandas.Index(native)
        left, left_arrays = _pandas_record(index.left.to_series(), name)
        right, right_arrays = _pandas_record(index.right.to_series(), name)
        record = {"layout": "interval", "closed": dtype.closed, "left": left, "right": right}
        return record, {**nest("left", left_arrays), **nest("right", right_arrays)}
    if isinstance(dtype, pandas.ArrowDtype):
        column = load_library("pyarrow").chunked_array(native.array.__arrow_array__())
        return {"layout": "stream"}, _pyarrow_stream(column)
    if isinstance(dtype, pandas.StringDtype):
        texts = [value if isinstance(value, str) else None for value in native]
        dtype_name = "str" if str(dtype) == "str" else f"string[{dtype.storage}]"
        return {"layout": "text", "dtype": dtype_name, "values": texts}, {}
    if isinstance(dtype, np.dtypes.ObjectDType):
        return {"layout": "objects", "values": [_tagged(value, name) for value in native]}, {}
    return _pandas_number_record(native, name)


def _pandas_number_record(native: Any, name: str) -> tuple[Record, Arrays]:
    dtype = native.dtype
    record: Record = {"layout": "numbers", "dtype": str(dtype)}
    if dtype.kind not in "biufmM" or load_library("pandas").api.types.pandas_dtype(str(dtype)) != dtype:
        raise StorageError(f"column {name!r} of dtype {dtype} cannot be stored; convert it, e.g. to text")
    if dtype.kind in "mM":
        return record | {"layout": "times"}, {"numbers": native.array.asi8}
    if hasattr(dtype, "numpy_dtype"):
        numbers = native.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return record, {"numbers": numbers, "missing": native.isna().to_numpy()}
    return record, {"numbers": native.to_numpy()}


def _pandas_restore(record: Record, arrays: Mapping[str, NDArray[Any]], rows: int | None) -> Any:
    pandas = load_library("pandas")
    match record["layout"]:
        case "category":
            categories = _pandas_restore(record["categories"], unnest("categories", arrays), None)
            dtype = pandas.CategoricalDtype(pandas.Index(categories), ordered=record["ordered"])
            return pandas.Series(pandas.Categorical.from_codes(arrays["codes"], dtype=dtype))
        case "interval":
            left, right = (_pandas_restore(record[side], unnest(side, arrays), rows) for side in ("left", "right"))
            return pandas.Series(pandas.arrays.IntervalArray.from_arrays(left, right, closed=record["closed"]))
        case "stream":
            return pandas.Series(pandas.arrays.ArrowExtensionArray(_pyarrow_restore(arrays, rows)))
        case "text":
            return pandas.Series(record["values"], dtype=record["dtype"])
        case "objects":
            return pandas.Series([_READERS[tag](text) for tag, text in record["values"]], dtype=object)
        case "times":
            dtype = pandas.api.types.pandas_dtype(record["dtype"])
            series = pandas.Series(arrays["numbers"].view(f"{dtype.kind}8[{np.datetime_data(dtype.base)[0]}]"))
            zone = getattr(dtype, "tz", None)
            return series.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else series
        case "numbers":
            series = pandas.Series(arrays["numbers"]).astype(record["dtype"])
            return series.mask(arrays["missing"]) if "missing" in arrays else series
        case _:
            raise ValueError("a column has an unknown layout")


def _tagged(value: object, name: str) -> list[str]:
    """Write one Python value of an object column as its type and its text."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return [type(value).__name__, f"{value.astype(np.int64)} {np.datetime_data(value.dtype)[0]}"]
    value = value.item() if isinstance(value, np.generic) else value
    tag = type(value).__name__
    if tag in ("NAType", "NaTType"):
        return ["NoneType", "None"]
    if tag not in _READERS:
        raise StorageError(f"column {name!r} holds a {tag}, which cannot be stored; convert it, e.g. to text")
    return [tag, value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)]


# ---------------------------------------------------------------- arrays of a file, checked before they are trusted

_LARGEST = float(np.finfo(np.float64).max)


def sound(
    array: NDArray[Any], kind: str, shape: Sequence[int], *, low: float = -_LARGEST, high: float = _LARGEST
) -> NDArray[Any]:
    """Return an array that has this kind (numpy's letter), shape and range; NaN is in no range.

    Shorter floats become float64: shares that add up to one in float32 need not do so for NumPy's generators.
    """
    if array.dtype.kind != kind or array.shape != tuple(shape):
        raise ValueError(f"expected {kind} of shape {tuple(shape)}, found {array.dtype} of shape {array.shape}")
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(f"expected numbers from {low} to {high}, found {array.min()} to {array.max()}")
    return array.astype(np.float64, copy=False) if kind == "f" else array


def masses(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return numbers that are not negative."""
    return sound(array, "f", shape, low=0)


def logarithms(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return logarithms of numbers that may be zero."""
    return sound(array, "f", shape, low=-np.inf)


def nest(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before the names of arrays, so that several sets can share one store."""
    return {f"{prefix}.{key}": array for key, array in arrays.items()}


def unnest(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays that `nest` put under this prefix."""
    start = f"{prefix}."
    return {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}


# ---------------------------------------------------------------- Arrow streams

# A stream is a sequence of messages: a mark, the size of the metadata, the metadata (a flatbuffer), and a body whose
# size the metadata give. Libraries allocate what a message declares, and inflate bodies that are compressed, so a
# stream from a file is looked at before a library reads it.
_MARK = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_BODY_SIZE, _KIND, _HEADER = 3, 1, 2  # fields of a message
_LENGTH, _COMPRESSION = 0, 3  # fields of a batch of records
_DATA = 1  # field of a dictionary: its batch of records


def check_stream(content: bytes, rows: int | None) -> None:
    """Refuse a stream that does not have these rows, if known, or whose bodies are compressed or not there."""
    total = 0
    for kind, metadata, header in _messages(content):
        batch = _table(metadata, header, _DATA) if kind == _DICTIONARY else header
        if kind not in (_DICTIONARY, _RECORDS):
            continue
        if _field(metadata, batch, _COMPRESSION) is not None:
            raise ValueError("a column is compressed inside")
        length = _number(metadata, batch, _LENGTH, "<q")
        if not 0 <= length <= 8 * len(content):
            raise ValueError("a column declares more values than it can hold")
        total += length if kind == _RECORDS else 0
    if rows is not None and total != rows:
        raise ValueError(f"a column declares {total} values instead of {rows}")


def _messages(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The kind of each message, its metadata, and where its header is in them."""
    at = 0
    while at + 8 <= len(content):
        mark, size = struct.unpack_from("<II", content, at)
        if mark != _MARK or size > len(content) - at - 8:
            raise ValueError("it is no Arrow stream")
        if size == 0:
            if at + 8 < len(content):
                raise ValueError("something follows the end of an Arrow stream")
            return
        metadata = content[at + 8 : at + 8 + size]
        message = _offset(metadata, 0)
        body = _number(metadata, message, _BODY_SIZE, "<q")
        at += 8 + size + body
        if body < 0 or at > len(content):
            raise ValueError("it declares more bytes than it has")
        yield _number(metadata, message, _KIND, "<B"), metadata, _table(metadata, message, _HEADER)


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it is left out."""
    (back,) = struct.unpack_from("<i", metadata, table)
    directory = table - back
    if directory < 0:
        raise ValueError("it is no Arrow stream")
    (size,) = struct.unpack_from("<H", metadata, directory)
    if 4 + 2 * number + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, directory + 4 + 2 * number)
    return table + offset if offset else None


def _number(metadata: bytes, table: int, number: int, kind: str) -> int:
    at = _field(metadata, table, number)
    return 0 if at is None else int(struct.unpack_from(kind, metadata, at)[0])


def _table(metadata: bytes, table: int, number: int) -> int:
    at = _field(metadata, table, number)
    if at is None:
        raise ValueError("it is no Arrow stream")
    return _offset(metadata, at)


def _offset(metadata: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", metadata, at)[0])
