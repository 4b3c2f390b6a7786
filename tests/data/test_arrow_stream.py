"""arrow_stream.py: what a stream declares is known before a library believes it."""

import io
import struct

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from fairmaxent.data.limits import check_stream

COLUMNS = {
    "numbers": pa.array(range(50)),
    "texts": pa.array([f"t{n}" for n in range(50)]),
    "dictionary": pa.array(["a", "b"] * 25).dictionary_encode(),
    "truth": pa.array([True, False] * 25),
    "nothing": pa.nulls(50),
}


def stream(column, **options):
    sink, table = io.BytesIO(), pa.table({"values": column})
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_streams_of_both_libraries_are_understood(column):
    sink = io.BytesIO()
    pl.DataFrame({"values": pl.from_arrow(column)}).write_ipc_stream(sink)
    for content in (stream(column), sink.getvalue()):
        check_stream(content)


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_a_small_file_that_inflates_is_refused(name):
    content = stream(pa.array(np.zeros(1 << 20, dtype=np.int64)), compression=name)
    assert len(content) < 1 << 17
    with pytest.raises(ValueError, match="compressed"):
        check_stream(content)


def test_more_values_than_bytes_are_refused():
    # at once, or in many batches
    for column in (pa.nulls(100_000), pa.chunked_array([pa.nulls(2_000)] * 20)):
        with pytest.raises(ValueError, match="more values than it can hold"):
            check_stream(stream(column))


def test_nothing_but_a_refusal_comes_of_damage():
    rng = np.random.default_rng(0)
    for column in COLUMNS.values():
        whole = stream(column)
        for _ in range(300):
            raw = bytearray(whole)
            for at in rng.integers(0, len(raw), 3):
                raw[at] = rng.choice([0, 1, 127, 128, 255])
            cut = bytes(raw[: int(rng.integers(len(raw) + 1))])
            for content in (bytes(raw), cut):
                try:
                    check_stream(content)
                except (ValueError, OverflowError, struct.error):
                    continue
