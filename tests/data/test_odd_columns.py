"""Columns of kinds that few people have: read rightly, or refused with an error that
names the column.
"""

import datetime
import decimal
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent import Domain, FairMaxEntError, InfeasibleError, debias
from fairmaxent.errors import ColumnError, LevelError

ROWS = 60
Y, Z, TEXTS = ["a", "b"] * 30, ["p", "q", "q"] * 20, ["u", "v", "w"] * 20
FAR = [2**62 + number for number in range(ROWS)]


def arrow(column):
    return pa.table({"y": Y, "z": Z, "x": column})


def polars(column):
    return pl.DataFrame({"y": Y, "z": Z, "x": column})


def pandas(column):
    return pd.DataFrame({"y": Y, "z": Z, "x": column})


def pandas_of_arrow(array):
    return pandas(pd.Series(array, dtype=pd.ArrowDtype(array.type)))


def in_arrow(values, kind):
    return pd.Series(pa.array(values, kind), dtype=pd.ArrowDtype(kind))


def duck(column):
    kinds = (
        "case when i % 2 = 0 then 'a' else 'b' end as y, case when i % 3 = 0 then 'p'"
        " else 'q' end as z"
    )
    return duckdb.sql(f"select {kinds}, {column} from range(60) t(i)")


def uuid_type():
    return (
        pa.uuid()
        if hasattr(pa, "uuid")
        else pytest.skip("pyarrow has UUIDs from version 18 on")
    )


UUIDS = pa.array(
    [uuid.UUID(int=number % 3).bytes for number in range(ROWS)], pa.binary(16)
)
COLUMNS = {
    "string_view": lambda: arrow(pa.array(TEXTS, pa.string_view())),
    "binary": lambda: arrow(pa.array([b"u", b"v", None] * 20)),
    "uuid": lambda: arrow(pa.ExtensionArray.from_storage(uuid_type(), UUIDS)),
    "month_day_nano": lambda: arrow(
        pa.array([pa.MonthDayNano([1, number % 3, 0]) for number in range(ROWS)])
    ),
    "decimal256": lambda: arrow(
        pa.array([decimal.Decimal(1), None, None] * 20, pa.decimal256(40, 2))
    ),
    "far moments": lambda: arrow(pa.array(FAR).cast(pa.timestamp("us", "UTC"))),
    "far days": lambda: arrow(
        pa.array([2**30, 5, 6] * 20, pa.int32()).cast(pa.date32())
    ),
    "Int128": lambda: polars(
        pl.Series([2**100 + number for number in range(ROWS)], dtype=pl.Int128)
    ),
    "lazy Int128": (
        lambda: polars(
            pl.Series([2**100 + number for number in range(ROWS)], dtype=pl.Int128)
        ).lazy()
    ),
    "far dates": lambda: polars(
        pl.Series([3_000_000, 1, 2] * 20, dtype=pl.Int32).cast(pl.Date)
    ),
    "far milliseconds": lambda: polars(pl.Series(FAR).cast(pl.Datetime("ms"))),
    "far durations": lambda: polars(pl.Series(FAR).cast(pl.Duration("ms"))),
    "lazy far dates": lambda: polars(pl.Series(FAR).cast(pl.Datetime("ms"))).lazy(),
    "arrow dictionary": lambda: pandas(
        in_arrow(TEXTS, pa.dictionary(pa.int32(), pa.string()))
    ),
    "arrow far dates": lambda: pandas(
        in_arrow(FAR, pa.int64()).astype(pd.ArrowDtype(pa.timestamp("s")))
    ),
    "far timedeltas": lambda: pandas(pd.Series(np.array(FAR).view("m8[s]"))),
    "long integers": lambda: pandas(
        pd.Series([10**400 + number for number in range(ROWS)], dtype=object)
    ),
    "longdouble": lambda: pandas(pd.Series(np.arange(ROWS).astype(np.longdouble))),
    "sparse": lambda: pandas(pd.arrays.SparseArray(np.array(FAR).view("M8[s]"))),
    "DuckDB time": lambda: duck("make_time((i % 20)::int, 0, 0) as x"),
    "DuckDB uuid": lambda: duck("md5((i % 3)::varchar)::uuid as x"),
    "DuckDB interval": lambda: duck("to_days((i % 3)::int) as x"),
    "DuckDB hugeint": lambda: duck("(i % 3)::hugeint * 1000000000000000000000 as x"),
    "DuckDB blob": lambda: duck("(i % 3)::varchar::blob as x"),
    "DuckDB far date": lambda: duck("date '20000-01-01' + i::int as x"),
    "DuckDB infinity": lambda: duck("'infinity'::timestamp as x"),
}


@pytest.mark.some(10)
@pytest.mark.parametrize("kind", COLUMNS)
def test_each_kind_is_read_or_refused_by_name(kind):
    frame = COLUMNS[kind]()
    try:
        fit = debias(frame, "y", "z", estimate=None, random_state=0)
    except FairMaxEntError as problem:
        refusal = str(problem)
    else:
        assert len(fit.sample(20)) == 20
        return
    assert "column 'x'" in refusal or "duckdb could not" in refusal


@pytest.mark.parametrize("wrap", [arrow, pandas_of_arrow])
def test_an_ordered_dictionary_that_repeats_a_value_has_it_once(wrap):
    codes = pa.array([0, 1, 2] * 20, pa.int32())
    frame = wrap(
        pa.DictionaryArray.from_arrays(codes, pa.array(["z", "m", "z"]), ordered=True)
    )
    attribute = Domain.infer(frame).attribute("x")
    assert attribute.labels == ("z", "m")
    assert attribute.kind == "ordered"
    assert attribute.counts.tolist() == [40, 20]
    holding = pa.DictionaryArray.from_arrays(
        codes, pa.array(["z", None, "k"]), ordered=True
    )
    assert Domain.infer(wrap(holding)).attribute("x").labels == ("z", "k", "missing")


def test_a_date_and_its_midnight_are_not_two_levels():
    midnight = datetime.datetime(2020, 1, 1)
    with pytest.raises(
        LevelError, match="column 'x' holds the same moment as a date and as a time"
    ):
        Domain.infer(pandas(pd.Series([midnight.date(), midnight] * 30, dtype=object)))


def test_a_dot_in_a_name_is_syntax_for_duckdb():
    with pytest.raises(ColumnError, match=r"duckdb takes a dot.*'a\.b'"):
        debias(duck('i % 4 as "a.b"'), "y", "z")


@pytest.mark.parametrize("lazily", [False, True])
def test_weights_that_leave_nothing_of_a_group(lazily):
    frame = pl.DataFrame(
        {"y": Y, "z": Z, "w": [1e99] + [1.0] * 59, "v": ["k", "l"] * 30}
    )
    for protected in ("z", ["z", "v"]):
        with pytest.raises(InfeasibleError, match="check the weights"):
            debias(frame.lazy() if lazily else frame, "y", protected, weight="w")
