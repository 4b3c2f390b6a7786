"""Footers of Parquet and Arrow files that would end the process if polars read them."""

import io
import struct

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from clifiles import biased_table
from fairmaxent import InputError, StorageError, debias
from fairmaxent.files.arrow_footer import check_arrow_footer
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.parquet_footer import DEEPEST, check_footer
from fairmaxent.files.tables import read_table


def varint(number):
    low = bytes([number & 127 | (128 if number > 127 else 0)])
    return low + varint(number >> 7) if number > 127 else low


def element(name, *, children=None, kind=None):
    """One element of a Parquet schema, in Thrift's compact protocol."""
    first = b"" if kind is None else b"\x15" + varint(2 * kind)
    repetition = (b"\x25" if kind is not None else b"\x35") + varint(2)
    group = b"" if children is None else b"\x15" + varint(2 * children)
    return first + repetition + b"\x18" + varint(len(name)) + name + group + b"\0"


def nested_parquet(depth):
    elements = [element(b"root", children=1), *[element(b"a", children=1)] * depth, element(b"x", kind=1)]
    schema = b"\xfc" + varint(len(elements)) + b"".join(elements)
    footer = b"\x15\x02" + b"\x19" + schema + b"\x16\0" + b"\x19\x0c" + b"\0"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def nested_arrow(depth):
    """A footer whose schema has one field, with one child, and so on; each table is followed by what it points to."""

    def table(field):
        """Where the fields of a table are, and the table, which has nothing but a pointer in this field."""
        offsets = [0] * field + [4]
        listed = struct.pack(f"<{3 + field}H", 6 + 2 * field, 8, *offsets)
        listed += bytes(-len(listed) % 4)
        return struct.pack("<I", 4 + len(listed)) + listed + struct.pack("<i", len(listed))

    one_follows = struct.pack("<II", 4, 1)
    footer = b"".join([table(1), table(1), *[one_follows + table(5)] * depth, struct.pack("<II", 4, 0)])
    return b"ARROW1\0\0" + footer + struct.pack("<i", len(footer)) + b"ARROW1"


@pytest.mark.parametrize("depth", [DEEPEST + 1, 3_000, 100_000])
def test_groups_inside_groups_without_end_are_refused(depth, tmp_path):
    (tmp_path / "deep.parquet").write_bytes(nested_parquet(depth))
    (tmp_path / "deep.arrow").write_bytes(nested_arrow(depth))
    for read in (scan_table, read_table):
        with pytest.raises(StorageError, match="groups inside groups"):
            read(tmp_path / "deep.parquet")
    with pytest.raises(StorageError, match="groups inside groups"):
        scan_table(tmp_path)
    with pytest.raises(StorageError, match="inside each other"):
        read_table(tmp_path / "deep.arrow")


@pytest.mark.parametrize("depth", [0, 1, 5, 40])
def test_the_depth_of_real_files(depth, monkeypatch):
    kind = pa.int32()
    for number in range(depth):
        kind = pa.struct([("a", kind), ("b", pa.string())]) if number % 2 else pa.list_(kind)
    table = pa.table({"x": pa.nulls(3, kind), "day": pa.array([1, 2, None], pa.timestamp("us", "UTC")), "t": ["u"] * 3})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pa.parquet.write_table(table, parquet)
    pa.feather.write_feather(table, arrow, compression="uncompressed")
    check_footer(parquet, "table")
    check_arrow_footer(arrow.getvalue(), "table")
    monkeypatch.setattr("fairmaxent.files.arrow_footer.DEEPEST", depth)
    if depth:
        with pytest.raises(StorageError, match="inside each other"):
            check_arrow_footer(arrow.getvalue(), "table")


def test_footers_that_polars_writes_are_accepted():
    table = biased_table().with_columns(pl.col("job").cast(pl.Categorical), pl.col("age").cast(pl.Decimal(10, 2)))
    for compression in ("zstd", "snappy", "uncompressed"):
        parquet, arrow = io.BytesIO(), io.BytesIO()
        table.write_parquet(parquet, compression=compression)
        table.write_ipc(arrow, compression="uncompressed" if compression == "snappy" else compression)
        check_footer(parquet, "table")
        check_arrow_footer(arrow.getvalue(), "table")


def test_a_long_name_of_a_kind_is_cut():
    kind = pl.Int32
    for _ in range(40):
        kind = pl.List(kind)
    frame = biased_table().with_columns(pl.lit(None, dtype=kind).alias("deep"))
    with pytest.raises(InputError) as refused:
        debias(frame, "income", "sex")
    assert len(str(refused.value)) < 220
