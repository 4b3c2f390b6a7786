"""Tables in files: read the way people mean them, and written completely or not at
all.
"""

import csv
import datetime as dt
import io
import random
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import pages
from fairmaxent import Domain, InputError
from fairmaxent.data.limits import max_memory
from fairmaxent.errors import ColumnError, LimitError, StorageError
from fairmaxent.files.formats import (
    COMPRESSED,
    FORMATS,
    output_format,
    read_table,
)
from fairmaxent.files.reading import FileReading
from fairmaxent.files.write import write_table

SUFFIXES = ["csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl", "jsonl.gz"]


def mixed_table():
    return pl.DataFrame(
        {
            "text": ["a", "b, c", 'say "hi"', "two\nlines", None],
            "number": [1, 2, None, 4, 5],
            "share": [0.1, 1e-9, 3.0, None, -2.5],
            "truth": [True, False, None, True, False],
            "day": [dt.date(2020, 2, day) for day in range(1, 5)] + [None],
            "time": (
                [dt.datetime(2020, 2, 1, 10, 0, 5, 250000 * part) for part in range(4)]
                + [None]
            ),
        }
    )


def test_the_documentation_lists_every_format_and_its_suffixes():
    page = (pages.DOCS / "questions/files.md").read_text(encoding="utf-8")
    by_title = {}
    for format in FORMATS.values():
        suffixes = by_title.setdefault(format.title, [])
        suffixes += [f"`{suffix}`" for suffix in format.suffixes + format.only_read]
    rows = [
        f"| {title} | {', '.join(suffixes)} |" for title, suffixes in by_title.items()
    ]
    assert "\n".join(["| Format | Suffixes |", "|---|---|", *rows, ""]) in page
    assert all(f"`{suffix}`" in page for suffix in COMPRESSED)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back_and_its_first_bytes_say_the_format(
    suffix, put, tmp_path
):
    table, path = mixed_table(), tmp_path / f"table.{suffix}"
    write_table(table, path)
    for name in (path, *([put(path.read_bytes(), "table")] if suffix != "tsv" else ())):
        back = read_table(name).frame
        if "json" in suffix:  # JSON has no dates
            back = back.with_columns(
                pl.col("day").str.to_date(),
                pl.col("time").str.to_datetime(time_unit="us"),
            )
        assert back.schema == table.schema
        assert back.equals(table)


@pytest.mark.some(7)
@pytest.mark.parametrize("seed", range(20))
def test_cells_of_any_text_come_back_as_pythons_csv_module_reads_them(seed, put):
    rng = random.Random(seed)
    pieces = ["x", "y z", ",", ";", '"', "\n", "ü", "|", "", "\t", " "]
    rows = [
        [f"{i}{''.join(rng.choices(pieces, k=4))}." for i in range(3)]
        for _ in range(12)
    ]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=rng.choice(["\n", "\r\n"])).writerows(
        [["a", "b", "c"], *rows]
    )
    assert read_table(
        put(buffer.getvalue()), FileReading(delimiter=",")
    ).frame.rows() == [tuple(row) for row in rows]


def test_the_original_census_file_reads_well(put):
    content = "39, State-gov, 77516, Male, <=50K\n50, ?, 83311, Female, >50K\n\n"
    table = read_table(
        put(content, "adult.data"),
        FileReading(columns=["age", "work", "weight", "sex", "income"]),
    )
    assert table.frame.rows() == [
        (39, "State-gov", 77516, "Male", "<=50K"),
        (50, None, 83311, "Female", ">50K"),
    ]
    assert table.notes == ("'?' was read as missing (work 1)",)


@pytest.mark.parametrize(
    ("encoding", "noted"),
    [(name, name) for name in ("utf-16", "utf-16-le", "utf-16-be", "cp1252")]
    + [("latin-1", "cp1252"), ("utf-8", None), ("utf-8-sig", None)],
)
def test_the_encoding_is_found(encoding, noted, put):
    content = "name,city\nMüller,Köln\nSørensen,Århus\nGarção,São Paulo\n"
    table = read_table(put(content.encode(encoding)))
    assert table.frame.rows()[0] == ("Müller", "Köln")
    assert table.frame.columns == ["name", "city"]
    read_as = [note.split(" read as ")[1].split(";")[0] for note in table.notes]
    assert read_as == ([noted] if noted else [])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\r1,x\r2,y\r", [(1, "x"), (2, "y")]),
        ("a,b\r\n1,x\r\n2,y\r\n", [(1, "x"), (2, "y")]),
        ("a,b\n1,x\n2,y", [(1, "x"), (2, "y")]),
        # a space before a quote is no part of the cell
        ('a, b\n1, "x, y"\n2, "z"\n', [(1, "x, y"), (2, "z")]),
        ("\n\na,b\n\n1,2\n\n\n3,4\n\n", [(1, 2), (3, 4)]),  # empty lines are no rows
        ("a\n1\n\n2\n", [(1,), (2,)]),
        ('size,n\n5" pipe,1\n6" pipe,2\n', [('5" pipe', 1), ('6" pipe', 2)]),
        # byte 81 is no cp1252, so it is latin-1
        (b"a,b\nx\x81,\xe9\n", [("x\x81", "é")]),
    ],
)
def test_line_ends_spaces_quotes_and_empty_lines(text, rows, put):
    assert read_table(put(text)).frame.rows() == rows


def test_the_decimal_mark_can_be_said(put):
    path = put('a,b\n"1,5",1.5\n"2,5",2.5\n')
    assert read_table(path).frame["a"].to_list() == ["1,5", "2,5"]
    assert read_table(path, FileReading(decimal=",")).frame.rows() == [
        (1.5, "1.5"),
        (2.5, "2.5"),
    ]
    assert read_table(put("a;b\n1,5;x\n2,5;y\n"), FileReading(decimal=".")).frame[
        "a"
    ].to_list() == ["1,5", "2,5"]
    with pytest.raises(InputError, match="decimal is ';'"):
        read_table(path, FileReading(decimal=";"))


def test_a_declaration_says_how_a_text_writes_numbers_and_gaps(put, tmp_path):
    """In a typed file, a text may be a number that a library wrote, with a point."""
    cells = ["1.234", "37,5", "NA", "", "7"]
    declared = Domain.declare(
        levels={"a": ["x"]}, edges={"b": [0, 5000]}, missing=["b"], decimal=","
    )
    declared = replace(declared, undeclared="drop")
    text = "".join(f"x;{cell}\n" for cell in cells)
    read = read_table(put(f"a;b\n{text}"), declaration=declared).frame
    assert read["b"].to_list() == [37.5, None, None, 7]
    pl.DataFrame({"a": ["x"] * 5, "b": cells}).write_parquet(tmp_path / "b.parquet")
    read = read_table(tmp_path / "b.parquet", declaration=declared).frame
    assert read["b"].to_list() == [1.234, 37.5, 7]


def test_markers_of_missing_values_can_be_chosen(put):
    path = put("a,b\n?,NA\n-9,x\n")
    assert read_table(path).frame.rows() == [(None, None), (-9, "x")]
    chosen = read_table(path, FileReading(missing_text=["-9"]))
    assert chosen.frame.rows() == [("?", "NA"), (None, "x")]
    assert chosen.notes == ("'-9' was read as missing (a 1)",)
    counted = read_table(put("a,b,c\n?,NA,1\n?,x,2\n,NA,3\n")).notes
    assert counted == (
        "'?' was read as missing (a 2)",
        "'NA' was read as missing (b 2)",
    )


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        ("a,b\n1,2\n3\n", StorageError, "line 3: 1 cell,"),
        ("a,b\n1,2\n\n3\n", StorageError, "line 4: 1 cell,"),
        ('a,b\n"x\ny",2\n3,4,5\n', StorageError, "line 4: 3 cells"),
        ('a,b\n1,"x\n', StorageError, "quotes"),
        ("a,b,a\n1,2,3\n", ColumnError, "columns 1 and 3 are both called 'a'"),
        ("a,b\n", InputError, "no rows"),
        (b"a,b\n1,\x002\n", StorageError, "not text"),
    ],
)
def test_refusals_name_the_place(content, error, says, put):
    with pytest.raises(error, match=says):
        read_table(put(content))


def test_the_suffix_says_format_and_compression():
    assert output_format("a.csv.gz") == ("csv", "gzip")
    assert output_format("a.b.tsv") == ("tsv", "uncompressed")
    assert output_format("-") == ("csv", "uncompressed")
    assert output_format("fair", "parquet") == ("parquet", "uncompressed")
    assert output_format("fair.2020.csv.gz", "jsonl") == ("jsonl", "gzip")


@pytest.mark.parametrize(
    "text", ["a,b\n1,\n-,x\n", "a,b\n1,\n\n-,x\n", 'a,b\n1,\n-, "x"\n']
)
def test_an_empty_cell_is_missing_whatever_the_markers_and_the_reader(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    frame = read_table(tmp_path / "t.csv", FileReading(missing_text=["-"])).frame
    assert frame.to_dict(as_series=False) == {"a": [1, None], "b": [None, "x"]}


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ";"},
        {"columns": ["a"]},
        {"missing_text": ["?"]},
        {"skip_lines": 0},
    ],
)
def test_options_of_a_csv_are_refused_for_files_that_know_their_columns(
    options, tmp_path
):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    with pytest.raises(
        InputError,
        match=(
            rf"{next(iter(options))} is for other files, and .* is parquet; leave"
            r" it out"
        ),
    ):
        read_table(path, FileReading(**options))


def test_in_lines_of_json_whole_characters_and_a_byte_order_mark_are_read_and_a_key_twice_is_refused(
    put, tmp_path
):
    for name in ("whole.jsonl", "whole"):
        (tmp_path / name).write_text(
            r'{"a":"\ud83d\ude00 \\ud83d \uD83D\uDE00"}' + "\n", encoding="utf-8-sig"
        )
        assert read_table(tmp_path / name).frame.to_dicts() == [{"a": "😀 \\ud83d 😀"}]
    nested = '{"a": {"x": 1}, "b": {"x": 2}, "c": "\\"a\\": 3, \\"a\\": 4"}\n'
    assert read_table(put(nested * 3, "nested.jsonl")).frame.shape == (3, 3)
    with pytest.raises(
        ColumnError, match=r"twice\.jsonl, line 3: the key 'a' stands there twice"
    ):
        read_table(put('{"a": 1}\n\n{"a": 1, "b": 2, "a": 3}\n', "twice.jsonl"))


BYTES, SPAN = b"\xff", dt.timedelta(1)


@pytest.mark.parametrize(
    ("value", "suffix"),
    [
        (BYTES, "csv"),
        (BYTES, "tsv"),
        (BYTES, "jsonl"),
        (SPAN, "csv"),
        (SPAN, "tsv"),
        (SPAN, "xlsx"),
    ],
)
def test_a_column_that_a_file_cannot_hold_is_named(value, suffix, tmp_path, capfd):
    said = (
        rf"odd\.{suffix}: {suffix} files cannot hold column 'x' \((Binary|Duration).*;"
        r" write a \.parquet"
    )
    with pytest.raises(StorageError, match=said):
        write_table(pl.DataFrame({"x": [value]}), tmp_path / f"odd.{suffix}")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_an_arrow_stream_is_read_as_a_file_is(compression, tmp_path):
    texts = pa.array(["x", "y", None, "z"] * 100)
    table = pa.table(
        {
            "n": range(400),
            "t": texts,
            "c": texts.dictionary_encode(),
            "b": [True, None] * 200,
        }
    )
    for name in ("table.arrow", "table"):  # its first bytes say what it is
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_stream(
            tmp_path / name, table.schema, options=options
        ) as writer:
            writer.write_table(table, max_chunksize=150)
        read = read_table(tmp_path / name)
        assert read.frame.to_arrow().to_pylist() == table.to_pylist()
        assert read.form.format == "arrow"


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_an_arrow_stream_that_inflates_is_limited(compression, tmp_path):
    path = tmp_path / "small.arrow"
    table = pa.table({"n": pa.array(np.zeros(4_000_000)), "m": pa.nulls(4_000_000)})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(path, table.schema, options=options) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 500_000
    with max_memory("40MB"), pytest.raises(LimitError, match=r"about 64\.\d MB"):
        read_table(path)
    with max_memory("100MB"):
        assert len(read_table(path).frame) == 4_000_000


def test_an_arrow_stream_that_is_called_parquet_is_read(tmp_path):
    table = pa.table({"n": [1, 2]})
    path = tmp_path / "table.parquet"
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    read = read_table(path, FileReading(input_format="parquet"))
    assert read.frame.to_dict(as_series=False) == {"n": [1, 2]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter, put):
    other = ";" if delimiter == "," else ","
    rows = [
        ["sex", "job", "note"],
        ["F", "cook", f"a{other}b{other}c"],
        ["M", "nurse", "d"],
    ]
    frame = read_table(put("\n".join(map(delimiter.join, rows)))).frame
    assert [frame.columns, *map(list, frame.rows())] == rows
