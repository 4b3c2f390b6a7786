"""Footers of Parquet and Arrow files that would end the process if polars read them."""

import contextlib
import io
import struct
from itertools import product

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from clifiles import biased_table
from fairmaxent import InputError, LimitError, StorageError, debias, max_memory
from fairmaxent.files.arrow_footer import check_arrow_footer
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.parquet_footer import DEEPEST, check_footer
from fairmaxent.files.thrift import ThriftReader


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


KINDS = ({"data_page_version": "2.0"}, {"use_dictionary": False, "data_page_size": 100}, {"write_page_index": True})


@pytest.mark.parametrize("options", KINDS)
def test_pages_that_pyarrow_writes_are_accepted(options):
    texts, lists = ["a", None, "b", "b"] * 500, [[1, 2], [], None, [3]] * 500
    parquet = io.BytesIO()
    table = pa.table({"t": texts, "l": lists, "x": [0.5, 1.5, None, 2.5] * 500})
    pa.parquet.write_table(table, parquet, row_group_size=700, **options)
    check_footer(parquet, "table")


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}])
def test_pages_that_claim_values_below_zero_are_refused(options):
    """Polars would make room for them, and end the process. Another reader says which flipped bits do that."""
    parquet = io.BytesIO()
    pa.parquet.write_table(pa.table({"t": ["a", "b"] * 4}), parquet, compression="none", **options)
    content, seen = parquet.getvalue(), 0
    for at, bit in product(range(4, content.index(b"schema")), range(8)):
        changed = bytearray(content)
        changed[at] ^= 1 << bit
        try:
            pa.parquet.read_table(io.BytesIO(changed))
        except (OSError, ValueError) as problem:
            if "negative number of values" in str(problem):
                seen += 1
                with pytest.raises(StorageError, match="a page is damaged"):
                    check_footer(io.BytesIO(changed), "table")
    assert seen


def test_a_page_with_more_values_than_its_column_is_refused():
    """As many as a page of this table may not claim, in place of 8: one byte of its header."""
    parquet = io.BytesIO()
    pa.parquet.write_table(pa.table({"t": ["a", "b"] * 4}), parquet, compression="none", use_dictionary=False)
    content, refused = parquet.getvalue(), 0
    for at in range(4, 40):
        if content[at] == 16:  # 8, as Thrift writes it
            changed = content[:at] + bytes([126]) + content[at + 1 :]
            try:
                check_footer(io.BytesIO(changed), "table")
            except StorageError as problem:
                refused += "a page is damaged" in str(problem)
    assert refused == 1


def test_a_list_of_truth_values_without_end_ends():
    many = bytes([0xF1]) + b"\xff" * 8 + b"\x01"
    with pytest.raises(IndexError):
        ThriftReader(bytes([0x19]) + many).numbers(5)


def test_a_long_name_of_a_kind_is_cut():
    kind = pl.Int32
    for _ in range(40):
        kind = pl.List(kind)
    frame = biased_table().with_columns(pl.lit(None, dtype=kind).alias("deep"))
    with pytest.raises(InputError) as refused:
        debias(frame, "income", "sex")
    assert len(str(refused.value)) < 220


# ---------------------------------------------------------------- Arrow streams


def arrow_stream(table, *, rows=150, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def mixed_table():
    texts = pa.array(["x", "y", None, "z"] * 100)
    return pa.table({"n": range(400), "t": texts, "c": texts.dictionary_encode(), "b": [True, None] * 200})


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"compression": "lz4"}])
def test_an_arrow_stream_is_read_as_a_file_is(options, tmp_path):
    table = mixed_table()
    for name in ("table.arrow", "table"):  # its first bytes say what it is
        (tmp_path / name).write_bytes(arrow_stream(table, **options))
        read = read_table(tmp_path / name)
        assert read.frame.to_arrow().to_pylist() == table.to_pylist()
        assert read.form.format == "arrow"


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_a_small_arrow_stream_that_inflates_is_refused(name, tmp_path):
    content = arrow_stream(mixed_table(), compression=name)
    sizes = [at for at in range(0, len(content), 8) if content[at : at + 8] == struct.pack("<q", 8 * 150)]
    assert sizes  # what the numbers say they have, decompressed
    for claimed in (1 << 30, 1 << 62):
        changed = bytearray(content)
        changed[sizes[0] : sizes[0] + 8] = struct.pack("<q", claimed)
        (tmp_path / "bomb.arrow").write_bytes(changed)
        with pytest.raises(LimitError, match=r"once decompressed, which is beyond the limit"):
            read_table(tmp_path / "bomb.arrow")


def test_an_arrow_stream_of_too_many_rows_or_columns_is_refused(tmp_path, monkeypatch):
    (tmp_path / "nothing.arrow").write_bytes(arrow_stream(pa.table({"x": pa.nulls(10_000_000)}), rows=10_000_000))
    with max_memory("5MB"), pytest.raises(LimitError, match=r"80\.\d MB of memory"):
        read_table(tmp_path / "nothing.arrow")
    (tmp_path / "wide.arrow").write_bytes(arrow_stream(pa.table({f"c{n}": [1] for n in range(16_385)})))
    with pytest.raises(LimitError, match="16,385 columns"):
        read_table(tmp_path / "wide.arrow")
    monkeypatch.setattr("fairmaxent.files.arrow_footer.DEEPEST", 10)  # pyarrow writes no more than 64
    deep = pa.int32()
    for _ in range(10):
        deep = pa.struct([("a", deep)])
    (tmp_path / "deep.arrow").write_bytes(arrow_stream(pa.table({"x": pa.nulls(3, deep)})))
    with pytest.raises(StorageError, match="inside each other"):
        read_table(tmp_path / "deep.arrow")


def test_a_damaged_arrow_stream_is_refused_or_read(tmp_path):
    """Every end, two streams in one file, and a flipped bit in places all over it."""
    content = arrow_stream(mixed_table())
    (tmp_path / "two.arrow").write_bytes(content * 2)
    with pytest.raises(StorageError, match="something follows the end"):
        read_table(tmp_path / "two.arrow")
    flipped = (content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(8, 3_000, 7))
    for changed in (*(content[:size] for size in range(8, len(content) - 8, 61)), *flipped):
        (tmp_path / "damaged.arrow").write_bytes(changed)
        with contextlib.suppress(StorageError, InputError, LimitError):
            assert len(read_table(tmp_path / "damaged.arrow").frame) <= 8 * len(content)
