"""Uploads are read by a child process: whatever it does, the app answers."""

import os
import random
import time

import polars as pl
import pytest

from clifiles import biased_table
from fairmaxent import Domain
from fairmaxent.app import upload
from fairmaxent.app.upload import read_upload
from fairmaxent.errors import ColumnError, LimitError, StorageError
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import FileReading
from fairmaxent.files.write import write_table

pytestmark = pytest.mark.process


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "arrow", "jsonl", "csv.gz"])
def test_a_child_reads_the_same_table(suffix, tmp_path):
    path = tmp_path / f"table.{suffix}"
    write_table(biased_table(), path)
    own, child = read_table(path), read_upload(path, FileReading())
    assert child.frame.equals(own.frame)
    assert child.frame.schema == own.frame.schema
    assert (child.remarks, child.form) == (own.remarks, own.form)


def test_options_notes_and_errors_go_through(put):
    path = put(b"Staff\n\na;b\n01/02/2020;NA\n03/04/2020;5\nTotal;2\n")
    how = FileReading(delimiter=";", missing_text=["5"], skip_last=1, date_order="dmy")
    assert read_upload(path, how).remarks == read_table(path, how).remarks
    assert read_upload(path, FileReading()).remarks == read_table(path).remarks
    declared = Domain.declare(levels={"a": ["01", "02"], "b": ["NA", "5"]})
    assert read_upload(
        put(b"a;b\n01;NA\n02;5\n"), FileReading(), declared
    ).frame.rows() == [("01", "NA"), ("02", "5")]
    with pytest.raises(ColumnError) as said:
        read_upload(put(b"a,a\n1,2\n"), FileReading())
    with pytest.raises(ColumnError) as own:
        read_table(put(b"a,a\n1,2\n"))
    assert said.value.spelled(repr) == own.value.spelled(repr)


def test_parquet_stays_where_it_is_if_it_can_be_read(tmp_path, put):
    biased_table().write_parquet(tmp_path / "table.parquet")
    assert read_upload(tmp_path / "table.parquet", FileReading()) is None
    content = (tmp_path / "table.parquet").read_bytes()
    with pytest.raises(StorageError, match="cannot read"):
        read_upload(
            put(content[:40] + bytes(400) + content[440:], "damaged.parquet"),
            FileReading(),
        )


def dies(pipe):
    pipe.recv()
    os.abort()


def waits(pipe):
    pipe.recv()
    time.sleep(60)


@pytest.mark.parametrize(
    ("child", "seconds", "problem", "says"),
    [
        (
            dies,
            60,
            StorageError,
            r"^table\.csv could not be read: reading it ended without an answer",
        ),
        (
            waits,
            1,
            LimitError,
            r"^reading table\.csv took longer than 1 seconds, and was stopped",
        ),
    ],
)
def test_a_child_that_dies_or_takes_too_long_is_an_error(
    child, seconds, problem, says, put, monkeypatch
):
    monkeypatch.setattr(upload, "child_main", child)
    monkeypatch.setattr(upload, "SECONDS", seconds)
    with pytest.raises(problem, match=says):
        read_upload(put(b"a,b\n1,2\n"), FileReading())


def test_a_child_that_takes_too_much_memory_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(upload, "memory_limit", lambda: 0)
    monkeypatch.setattr(upload, "LEAST_MEMORY", 2**30)
    pytest.importorskip("resource")
    path = tmp_path / "table.arrow"  # a few kilobytes that stand for gigabytes
    pl.select(a=pl.repeat(random.Random(0).random(), 200_000_000)).write_ipc(
        path, compression="zstd"
    )
    assert path.stat().st_size < 10_000_000
    with pytest.raises((StorageError, LimitError), match="memory"):
        read_upload(path, FileReading())


def test_a_child_that_waits_reads_the_next_file_and_another_takes_its_place(put):
    path = put(b"a,b\n1,2\n")
    try:
        upload.warm_up()
        ((first, _),) = upload._spare
        assert read_upload(path, FileReading()).frame.rows() == [(1, 2)]
        ((second, _),) = upload._spare
        assert second is not first
    finally:
        upload.cool_down()
    assert upload._spare == []
