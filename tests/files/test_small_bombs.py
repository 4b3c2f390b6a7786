"""Small files that stand for far more than they hold are refused before anybody takes the memory."""

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from fairmaxent import max_memory
from fairmaxent.errors import LimitError
from fairmaxent.files.excel import open_workbook
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table


def test_a_long_text_that_many_cells_share(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="it writes the workbook")
    book = openpyxl.Workbook()
    for row in [("sex", "note"), ("F", "x" * 30_000), *[("FM"[number % 2], None) for number in range(5_000)]]:
        book.active.append(row)
    book.active.merge_cells("B2:B5002")
    book.save(tmp_path / "shared.xlsx")
    assert (tmp_path / "shared.xlsx").stat().st_size < 100_000
    with pytest.raises(LimitError, match=r"more than 134.2 MB once decompressed"):
        read_table(tmp_path / "shared.xlsx")


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_a_long_text_in_a_dictionary(tmp_path, suffix):
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * 300_000])
    table, path = pa.table({"sex": ["F", "M"] * 10_000, "note": long}), tmp_path / f"long.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)
    with pytest.raises(LimitError, match=r"would have 6\.0 GB"):
        read_table(path)


@pytest.mark.parametrize("as_categories", [True, False])
def test_a_long_text_in_a_dictionary_of_a_file_that_stays_on_disk(as_categories, tmp_path):
    long = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10_000, pa.int32()), ["x" * 300_000, "y"])
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"sex": ["F", "M"] * 10_000, "note": long}), path, store_schema=as_categories)
    with max_memory("1GB"), pytest.raises(LimitError, match=r"would have 3\.0 GB .*beyond the limit of 1\.0 GB"):
        scan_table(path)
    with max_memory("4GB"):
        assert scan_table(path) is not None
    ordinary = pa.array([f"one of {number % 5_000} ordinary texts" for number in range(100_000)])
    pq.write_table(pa.table({"note": ordinary}), path)
    with max_memory("1GB"):  # its dictionary has 150 kB, so these could be 15 GB, but are not
        assert scan_table(path) is not None


def test_a_header_of_very_many_columns(tmp_path):
    (tmp_path / "wide.csv").write_text("".join(f"c{number}," for number in range(100_000)) + "end\n" + "," * 100_000)
    with pytest.raises(LimitError, match=r"100,001 columns, and the limit is 16,384"):
        read_table(tmp_path / "wide.csv")


def test_lines_that_each_have_another_key(tmp_path, monkeypatch):
    monkeypatch.setattr("fairmaxent.data.limits.MOST_FILE_COLUMNS", 1_000)
    (tmp_path / "keys.jsonl").write_text("".join(f'{{"sex": "F", "k{number}": 1}}\n' for number in range(1_100)))
    with pytest.raises(LimitError, match=r"1,101 columns, and the limit is 1,000"):
        read_table(tmp_path / "keys.jsonl")


def test_many_keys_and_many_lines_are_refused_by_their_cells(tmp_path):
    lines = "".join(f'{{"k{number}": 1}}\n' for number in range(1_500))
    (tmp_path / "keys.jsonl").write_text(lines)
    with max_memory("5MB"), pytest.raises(LimitError, match=r"18\.0 MB of memory"):
        read_table(tmp_path / "keys.jsonl")


def test_no_format_of_numbers_is_longer_than_excel_allows(tmp_path):
    """Finding out what a format shows takes time by the square of its length."""
    openpyxl = pytest.importorskip("openpyxl", reason="it writes the workbook")
    book = openpyxl.Workbook()
    book.active.append(["sex", "pay"])
    book.active.append(["F", 1])
    book.active["B2"].number_format = "[" * 100_000
    book.save(tmp_path / "format.xlsx")
    _, codes = open_workbook((tmp_path / "format.xlsx").read_bytes(), "format.xlsx").number_formats
    assert max(map(len, codes.values())) == 255
