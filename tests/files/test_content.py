"""The content of files that may be anything: pipes, damaged and inflated ones, lines
without end, stray quotes.
"""

import gzip
import os
import random
import threading

import polars as pl
import pytest
from click.testing import CliRunner

from clifiles import ROLES, biased_table
from fairmaxent.cli.group import group
from fairmaxent.data.limits import FREELY_INFLATED, max_memory
from fairmaxent.errors import LimitError, StorageError
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading
from fairmaxent.files.write import write_table
from tables import times

CSV = biased_table().write_csv().encode()
BODY = CSV.split(b"\n", 1)[1]
HEADER = "sex,race,job,age,weight,income"


def poured(content, open_end):
    """Write content into a pipe from another thread, and close it."""

    def pour():
        with open(open_end, "wb") as file:
            file.write(content)

    thread = threading.Thread(target=pour, daemon=True)
    thread.start()
    return thread


@pytest.mark.some(2)
@pytest.mark.parametrize("times", [0.02, 1, 5, 50, 400])
def test_a_pipe_loses_nothing(times):
    """About 200 bytes, 8 KiB, 40 KiB, 400 KiB and 3 MiB: below and above every buffer
    on the way.
    """
    lines = BODY.splitlines(keepends=True)
    content = (
        b"".join(lines[: int(times * len(lines))]) if times < 1 else BODY * int(times)
    )
    readable, writable = os.pipe()
    try:
        thread = poured(content, writable)
        args = ["inspect", f"/dev/fd/{readable}", *ROLES, "--columns", HEADER, "--json"]
        result = CliRunner().invoke(group, args)
        thread.join(20)
    finally:
        os.close(readable)
    assert result.exit_code == 0, result.stderr
    rows = len(content.splitlines())
    assert f'"rows": {rows}' in result.stdout


def test_stdin_that_does_not_end_a_device_and_a_closed_stdin(monkeypatch):
    class Endless:
        served = 0

        def read(self, size):
            self.served += size
            return b"y\n" * (size // 2)

    words = Endless()
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": words}))
    with (
        max_memory("60MB"),
        pytest.raises(LimitError, match=r"reading stdin would take about 6\d\.\d MB"),
    ):
        read_table("-")
    assert words.served < 30 << 20
    monkeypatch.setattr("sys.stdin", None)
    for path, says in (("-", "stdin is closed"), ("/dev/zero", "is a device")):
        with pytest.raises(StorageError, match=says):
            read_table(path)


def test_a_small_file_cannot_become_a_large_one(put):
    zeros = gzip.compress(b"a,b\n" + b"0,0\n" * (FREELY_INFLATED // 4 + 1))
    with pytest.raises(LimitError, match="decompress it first"):
        read_table(put(zeros, "table.csv.gz"))
    with (
        max_memory("30MB"),
        pytest.raises(
            LimitError, match=r"more than 10.0 MB once decompressed.*raise the limit"
        ),
    ):
        read_table(put(zeros, "table.csv.gz"))


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_memory_is_estimated_before_it_is_taken(suffix, tmp_path):
    path = tmp_path / f"table.{suffix}"
    write_table(pl.select(a=pl.int_range(200_000) // 7, b=pl.lit("x")), path)
    assert len(read_table(path).frame) == 200_000
    with (
        max_memory("1MB"),
        pytest.raises(LimitError, match=r"would take about .* and the limit is 1.0 MB"),
    ):
        read_table(path)


@pytest.mark.more
def test_long_headers_and_cells_are_read(put):
    """Python's csv module would refuse these by default, because another delimiter
    makes one cell of the header.
    """
    long = ["x" * 1000 + str(number) for number in range(200)]  # more than 128 KiB
    assert (
        read_table(put("\n".join([",".join(long), ",".join("1" * 200)]))).frame.columns
        == long
    )
    cell = "y" * 200_000
    assert read_table(put(f'a,b\n1,{cell}\n2, "z"\n')).frame["b"].to_list() == [
        cell,
        "z",
    ]


def test_lines_that_each_have_another_key(tmp_path, monkeypatch):
    monkeypatch.setattr("fairmaxent.data.limits.MOST_FILE_COLUMNS", 1_000)
    (tmp_path / "keys.jsonl").write_text(
        "".join(f'{{"sex": "F", "k{number}": 1}}\n' for number in range(1_100))
    )
    with pytest.raises(LimitError, match=r"1,101 columns, and the limit is 1,000"):
        read_table(tmp_path / "keys.jsonl")


def test_a_cell_without_end_is_named(put, monkeypatch):
    monkeypatch.setattr("fairmaxent.files.csv.LONGEST_CELL", 1000)
    with pytest.raises(
        LimitError,
        match=(
            r"line 169: the quotes do not match, or a cell has more than the limit of"
            r" 1,000"
        ),
    ):
        read_table(put('a,b,c\n1,"2,3\n' + "4,5,6\n" * 400))


def test_stray_quotes_do_not_join_rows(put):
    with pytest.raises(StorageError, match="line 3: a quote opens a cell"):
        read_table(put('part,size,unit\npipe,5,cm\n"wide,6,cm\npipe,7,cm\n",8,cm\n'))
    assert read_table(put('part,size\npipe,5"\npipe,6"\n')).frame.rows() == [
        ("pipe", '5"'),
        ("pipe", '6"'),
    ]
    address = read_table(put('name,address\nBob,"1 Main St\nBoston, MA"\n'))
    assert address.frame.rows() == [("Bob", "1 Main St\nBoston, MA")]
    assert "line 2: a quote opens a cell" in address.notes[0]
    assert read_table(put('note\n"two\nlines"\n')).notes == ()


@pytest.mark.parametrize("width", [2, 3, 4])
def test_rows_with_inch_marks_are_counted_by_line_or_refused_or_noted(width, put):
    pieces = [
        "a",
        '5"',
        '5" pipe',
        'pipe 6"',
        "x y",
        '"wide',
        "7",
        '"',
        "b",
        "c",
        "a",
        "b",
    ]
    for seed in range(times(150)):
        rng = random.Random(seed)
        rows = [rng.choices(pieces, k=width) for _ in range(rng.randrange(2, 12))]
        path = put(
            "\n".join(
                [
                    ",".join(f"c{number}" for number in range(width)),
                    *map(",".join, rows),
                ]
            )
        )
        try:
            table = read_table(path, FileReading(delimiter=","))
        except StorageError:
            continue
        assert len(table.frame) == len(rows) or "a quote opens a cell" in table.notes[0]
