"""frames.py: columns of three libraries in, the same codes out, and every dtype back
from storage.
"""

import datetime as dt
import json
import sys
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent.data import columns as frame_storage
from fairmaxent.data import frames
from fairmaxent.data.columns import distinct_values, factorize
from fairmaxent.errors import ColumnError, DependencyError, InputError, StorageError

NOON = dt.datetime(2021, 3, 4, 12, 0, 0, 123456)
NIGHT = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
DAY = dt.date(2021, 3, 4)
BERLIN, HALF = pd.Timestamp(NOON, tz="Europe/Berlin"), Decimal("1.50")


def column_of(native, name="x"):
    """Wrap a native column of any library under a name."""
    if isinstance(native, pd.Series):
        native = native.to_frame(name)
    elif isinstance(native, pl.Series):
        native = native.alias(name).to_frame()
    else:
        native = pa.table({name: native})
    return nw.from_native(native, eager_only=True).get_column(name)


def native_dtype(series):
    native = series.to_native()
    return native.type if isinstance(native, pa.ChunkedArray) else native.dtype


def plain(series):
    return [None if frames.is_missing(value) else value for value in series.to_list()]


# name -> (column, its distinct values in canonical order)
COLUMNS = {
    "pandas int": (pd.Series([3, 1, 2, 3]), [1, 2, 3]),
    "pandas wide int": (pd.Series([2**62, -(2**62), 0]), [-(2**62), 0, 2**62]),
    "pandas uint64": (
        pd.Series([2**64 - 1, 2**64 - 2], dtype="uint64"),
        [2**64 - 2, 2**64 - 1],
    ),
    "pandas float32": (pd.Series([0.5, np.nan, -1.5], dtype="float32"), [-1.5, 0.5]),
    "pandas bool": (pd.Series([True, False]), [False, True]),
    "pandas Int64": (pd.Series([3, None, 1], dtype="Int64"), [1, 3]),
    "pandas Float64": (pd.Series([3.5, None, 1], dtype="Float64"), [1, 3.5]),
    "pandas boolean": (pd.Series([True, None, False], dtype="boolean"), [False, True]),
    "pandas str": (pd.Series(["b", None, "a"], dtype="str"), ["a", "b"]),
    "pandas string[python]": (
        pd.Series(["b", None, "é"], dtype="string[python]"),
        ["b", "é"],
    ),
    "pandas string[pyarrow]": (
        pd.Series(["b", None, "a"], dtype="string[pyarrow]"),
        ["a", "b"],
    ),
    "pandas text objects": (pd.Series(["b", None, "a"], dtype=object), ["a", "b"]),
    "pandas mixed objects": (
        pd.Series([1, "1", True, 0, None], dtype=object),
        [True, 0, 1, "1"],
    ),
    "pandas dates as objects": (pd.Series([DAY, None], dtype=object), [DAY]),
    "pandas category": (
        pd.Series(pd.Categorical(["b", None, "a"], ["z", "b", "a"])),
        ["a", "b"],
    ),
    "pandas ordered": (
        pd.Series(pd.Categorical(["b", None, "a"], ["z", "b", "a"], ordered=True)),
        ["b", "a"],
    ),
    "pandas category of ints": (pd.Series(pd.Categorical([10, 9, 10])), [9, 10]),
    "pandas intervals": (
        pd.Series(pd.cut([1, 5, 9], [0, 3, 10])),
        [pd.Interval(0, 3), pd.Interval(3, 10)],
    ),
    "pandas datetime": (pd.Series([NOON, None, NIGHT]), [NIGHT, NOON]),
    "pandas datetime zone": (pd.Series([BERLIN, None]).dt.as_unit("ns"), [BERLIN]),
    "pandas timedelta": (
        pd.Series([dt.timedelta(2), None, dt.timedelta(1)]),
        [dt.timedelta(1), dt.timedelta(2)],
    ),
    "pandas arrow int": (pd.Series([2, None, 1], dtype="int64[pyarrow]"), [1, 2]),
    "pandas arrow decimal": (
        pd.Series([HALF, None], dtype=pd.ArrowDtype(pa.decimal128(6, 2))),
        [HALF],
    ),
    "polars int": (pl.Series([3, None, 1]), [1, 3]),
    "polars int128": (pl.Series([2**100, None, 1], dtype=pl.Int128), [1, 2**100]),
    "polars float": (pl.Series([0.5, None, float("nan"), -1.0]), [-1.0, 0.5]),
    "polars bool": (pl.Series([True, None, False]), [False, True]),
    "polars text": (pl.Series(["b", None, "a", "é"]), ["a", "b", "é"]),
    "polars categorical": (
        pl.Series(["b", None, "a"], dtype=pl.Categorical),
        ["a", "b"],
    ),
    "polars enum": (
        pl.Series(["b", None, "a"], dtype=pl.Enum(["z", "b", "a"])),
        ["b", "a"],
    ),
    "polars date": (pl.Series([DAY, None]), [DAY]),
    "polars datetime": (pl.Series([NOON, None, NIGHT], dtype=pl.Datetime("ms")), None),
    "polars datetime zone": (
        pl.Series([NOON, None]).dt.replace_time_zone("Europe/Berlin"),
        None,
    ),
    "polars duration": (pl.Series([dt.timedelta(2), None]), [dt.timedelta(2)]),
    "polars time": (
        pl.Series([dt.time(3), None, dt.time(1)]),
        [dt.time(1), dt.time(3)],
    ),
    "polars decimal": (
        pl.Series([2 * HALF, None, HALF], dtype=pl.Decimal(8, 1)),
        [HALF, 2 * HALF],
    ),
    "polars null": (pl.Series([None, None]), []),
    "pyarrow int": (pa.array([3, None, 1], pa.int16()), [1, 3]),
    "pyarrow float": (pa.array([0.5, None, float("nan")]), [0.5]),
    "pyarrow bool": (pa.array([True, None, False]), [False, True]),
    "pyarrow text": (pa.chunked_array([["b", None], ["a", "b"]]), ["a", "b"]),
    "pyarrow large text": (pa.array(["b", None, "a"], pa.large_string()), ["a", "b"]),
    "pyarrow dictionary": (
        pa.chunked_array(
            [
                pa.array(["b", None]).dictionary_encode(),
                pa.array(["a", "b"]).dictionary_encode(),
            ]
        ),
        ["a", "b"],
    ),
    "pyarrow repeated dictionary": (
        pa.DictionaryArray.from_arrays([0, 1, 2, 3], ["b", None, "b", "a"]),
        ["a", "b"],
    ),
    "pyarrow unsigned": (
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), ["b", "a"]),
        ["a", "b"],
    ),
    "pyarrow ordered unsigned": (
        pl.Series(["b", None, "a"], dtype=pl.Enum(["z", "b", "a"])).to_arrow(),
        ["b", "a"],
    ),
    "pyarrow ordered": (
        pa.DictionaryArray.from_arrays([0, None, 1], ["b", "a", "z"], ordered=True),
        ["b", "a"],
    ),
    "pyarrow timestamp": (
        pa.array([NOON, None, NIGHT], pa.timestamp("us", "UTC")),
        None,
    ),
    "pyarrow date": (pa.array([DAY, None], pa.date32()), [DAY]),
    "pyarrow time": (pa.array([dt.time(3), None], pa.time32("s")), [dt.time(3)]),
    "pyarrow duration": (
        pa.array([dt.timedelta(2), None], pa.duration("ms")),
        [dt.timedelta(2)],
    ),
    "pyarrow decimal": (pa.array([HALF, None]), [HALF]),
    "pyarrow null": (pa.array([None, None]), []),
}


@pytest.fixture(params=COLUMNS)
def case(request):
    native, values = COLUMNS[request.param]
    return column_of(native), values


def test_factorize_finds_the_values_in_canonical_order_and_keeps_the_dtype(case):
    series, expected = case
    codes, values = factorize(series)
    assert native_dtype(values) == native_dtype(series)
    if expected is not None:
        assert plain(values) == expected
        assert [type(value) is bool for value in values.to_list()] == [
            type(value) is bool for value in expected
        ]
    cells, distinct = plain(series), values.to_list()
    assert [None if code < 0 else distinct[code] for code in codes] == cells
    assert sorted(set(codes[codes >= 0].tolist())) == list(range(len(values)))


def test_storage_keeps_values_and_dtype(case):
    series, _ = case
    record, arrays = frame_storage.to_storage(series)
    restored = frame_storage.from_storage("x", json.loads(json.dumps(record)), arrays)
    assert native_dtype(restored) == native_dtype(series)
    assert plain(restored) == plain(series)
    assert restored.name == "x"
    again = frame_storage.to_storage(restored)
    assert again[0] == record
    assert {key: array.tobytes() for key, array in again[1].items()} == {
        key: arrays[key].tobytes() for key in arrays
    }


def test_take_and_build_keep_order_dtype_and_missing_values(case):
    series, _ = case
    rows = np.array([1, 0, 1], dtype=np.uint8)
    taken = frames.take(series, rows)
    assert plain(taken) == [plain(series)[row] for row in rows]
    table = frames.open_frame(frames.build({"b": taken, "a": taken}))
    assert table.columns == ["b", "a"]
    assert native_dtype(frames.column(table, "a")) == native_dtype(series)


@pytest.mark.parametrize(
    "name", ["pandas int", "pandas Int64", "polars decimal", "pyarrow float"]
)
def test_one_like_is_a_single_one_of_the_same_dtype(name):
    series = column_of(COLUMNS[name][0], "weight")
    single = frames.one_like(series)
    assert native_dtype(single) == native_dtype(series)
    assert (single.to_list(), single.name) == ([1], "weight")


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"]
)
@pytest.mark.parametrize("library", [pd.Series, pl.Series, pa.array])
def test_the_smallest_and_the_largest_number_of_a_type_are_not_taken_for_missing(
    dtype, library
):
    """Differences of numbers of few bits may need more bits."""
    ends = np.iinfo(dtype)
    numbers = np.array([ends.max, ends.min, 3, ends.max], dtype=dtype)
    codes, values = factorize(column_of(library(numbers)))
    assert values.to_list() == sorted({*numbers.tolist()})
    assert np.array_equal(values.to_numpy()[codes], numbers)


DURATIONS = [
    dt.timedelta(microseconds=number)
    for number in (*range(-9, 10), -987_654_321, 123_456_789, 999_999_999)
]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_durations_are_exact_to_the_microsecond_in_every_library(unit):
    """So that one at the edge of a bin falls into it."""
    pandas, polars = (
        pd.Series(np.array(DURATIONS, f"m8[{unit}]")),
        pl.Series(DURATIONS, dtype=pl.Duration(unit)),
    )
    for native in (
        pandas,
        polars,
        pa.array(DURATIONS, pa.duration(unit)),
        pandas.astype(f"duration[{unit}][pyarrow]"),
    ):
        assert frames.to_numbers(column_of(native)).tolist() == [
            frames.number_of(one) for one in DURATIONS
        ]


def test_distinct_values_counts_rows_and_finds_the_first_of_each(case):
    distinct = distinct_values(case[0])
    codes = distinct.codes.tolist()
    assert distinct.counts.tolist() == [
        codes.count(code) for code in range(len(distinct.values))
    ]
    assert distinct.rows.tolist() == [
        codes.index(code) for code in range(len(distinct.values))
    ]
    assert distinct.missing == codes.count(-1)


def test_text_is_ordered_by_code_point_in_every_library():
    words = ["b", "B", "é", "a", "\U0001f600", "", "\uffff"]
    expected = sorted(words)
    for native in (
        pd.Series(words),
        pl.Series(words),
        pa.array(words),
        pl.Series(words, dtype=pl.Categorical),
    ):
        assert factorize(column_of(native))[1].to_list() == expected


@pytest.mark.parametrize(
    "moment",
    [NOON, NIGHT, NOON.replace(tzinfo=dt.UTC), DAY, dt.timedelta(-1, 5), dt.time(3, 4)],
)
def test_a_time_is_the_same_number_alone_and_in_a_column_of_any_library(moment):
    number = frames.number_of(moment)
    columns = [pl.Series([moment]), pa.array([moment])]
    if isinstance(moment, dt.datetime | dt.timedelta):
        columns += [pd.Series([moment]), pd.Series([moment]).dt.as_unit("ns")]
    for native in columns:
        assert frames.to_numbers(column_of(native)).tolist() == [number]


@pytest.mark.parametrize(
    "value", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_every_kind_of_nothing_is_missing(value):
    assert frames.is_missing(value)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        ({"a": [1]}, InputError, "dict is not a table; pass a pandas DataFrame"),
        (pd.Series([1]), InputError, "Series is not a table"),
        (pl.LazyFrame({"a": [1]}), InputError, "collect"),
        (pd.DataFrame({"a": []}), InputError, "no rows"),
        (pd.DataFrame(index=[0, 1]), InputError, "no columns"),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            ColumnError,
            "more than once: 'a'",
        ),
        (pa.table([[1], [2]], names=["b", "b"]), ColumnError, "more than once: 'b'"),
        (
            pd.DataFrame([[1]], columns=[7]),
            ColumnError,
            "must be text, but these are not: 7",
        ),
    ],
)
def test_what_is_no_usable_table_is_refused_with_the_reason(frame, error, words):
    with pytest.raises(error, match=words):
        frames.open_frame(frame)


@pytest.mark.parametrize("cell", [[1], {"a": 1}])
@pytest.mark.parametrize("native", [pd.Series, pl.Series, pa.array])
def test_cells_that_hold_several_values_are_refused_by_column_name(native, cell):
    with pytest.raises(InputError, match="column 'nested'"):
        factorize(column_of(native([cell]), "nested"))


@pytest.mark.parametrize(
    ("native", "words"),
    [
        (pd.Series([(1, 2)]), "column 'odd' holds a tuple"),
        (
            pd.Series(pd.period_range("2020", periods=2, freq="M")),
            "column 'odd' of dtype period",
        ),
    ],
)
def test_what_cannot_be_stored_names_column_and_type(native, words):
    with pytest.raises(StorageError, match=words):
        frame_storage.to_storage(column_of(native, "odd"))


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    record, arrays = frame_storage.to_storage(column_of(pl.Series([1])))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(DependencyError, match="pip install polars"):
        frame_storage.from_storage("x", record, arrays)


@pytest.mark.parametrize("seed", range(5))
def test_factorize_agrees_with_its_brute_force_twin_on_narrow_and_wide_integers(seed):
    rng = np.random.default_rng(seed)
    for low, high in ((0, 5), (-300, 300), (-(2**60), 2**60)):
        numbers = rng.integers(low, high, 10_000)
        codes, values = factorize(column_of(pd.Series(numbers)))
        assert values.to_list() == sorted(set(numbers.tolist()))
        assert np.array_equal(values.to_numpy()[codes], numbers)
