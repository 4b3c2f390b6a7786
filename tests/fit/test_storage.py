"""storage.py: a fit comes back as it was, from equal bytes, and no damaged or foreign file is taken for a fit."""

import datetime as dt
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.naive_bayes import GaussianNB

from fairmaxent import Estimate, InfeasibleError, Relabel, debias, load, paper
from fairmaxent.errors import StorageError
from fairmaxent.fit.records import read_archive
from fairmaxent.fit.storage import FORMAT, VERSION

ROWS = 150
WORDS = ["low", "mid", "high"]
NOON = dt.datetime(2020, 1, 1, 12)


def raw_columns():
    rng = np.random.default_rng(5)

    def gaps(values):
        return [None if hole else value for hole, value in zip(rng.random(ROWS) < 0.1, values, strict=True)]

    return {
        "hired": rng.choice(["no", "yes", "wäre"], ROWS, p=[0.5, 0.4, 0.1]).tolist(),
        "sex": rng.choice(["F", "M"], ROWS).tolist(),
        "race": gaps(rng.choice(["a", "b"], ROWS).tolist()),
        "age": gaps(rng.integers(17, 90, ROWS).tolist()),
        "score": gaps(rng.normal(0, 1, ROWS).tolist()),
        "rank": gaps(rng.choice(WORDS, ROWS).tolist()),
        "member": gaps(rng.choice([True, False], ROWS).tolist()),
        "born": rng.choice([dt.date(2000, 1, day) for day in range(1, 9)], ROWS).tolist(),
        "seen": gaps([NOON + dt.timedelta(hours=int(hours)) for hours in rng.integers(0, 5000, ROWS)]),
        "design": rng.integers(1, 4, ROWS).tolist(),
    }


def pandas_frame():
    frame = pd.DataFrame(raw_columns())
    ranks = pd.CategoricalDtype(["none", *WORDS], ordered=True)
    return frame.astype({"age": "Int64", "rank": ranks, "race": "category", "member": "boolean", "design": "float32"})


def polars_frame():
    return pl.DataFrame(raw_columns()).with_columns(
        pl.col("rank").cast(pl.Enum(["none", *WORDS])), pl.col("race").cast(pl.Categorical), pl.col("age").cast(pl.Int8)
    )


def pyarrow_frame():
    table = pa.table(raw_columns())
    return table.set_column(2, "race", table.column("race").dictionary_encode())


FRAMES = {"pandas": cache(pandas_frame), "polars": cache(polars_frame), "pyarrow": cache(pyarrow_frame)}

FITS = {
    "tree": lambda frame: debias(frame, "hired", "sex", random_state=3),
    "product": lambda frame: debias(frame, "hired", "sex", base="product"),
    "uniform": lambda frame: debias(frame, "hired", "sex", base="uniform"),
    "rows only": lambda frame: debias(frame, "hired", "sex", base_share=0),
    "base only": lambda frame: debias(frame, "hired", "sex", base_share=1),
    "weighted": lambda frame: debias(frame, "hired", "sex", weight="design"),
    "joint groups": lambda frame: debias(frame, "hired", ["sex", "race"], groups="joint", statistical_rate=0.8),
    "rules, targets, rates": lambda frame: debias(
        frame,
        "hired",
        ["sex", "race"],
        representation_rate={"sex": 0.9, "race": None},
        favourable={"yes", "wäre"},
        target={"sex": {"F": 0.4, "M": 0.6}, "member": {True: 0.5, False: 0.3, None: 0.2}, "rank": None},
        forbid=[{"rank": "low", "member": True}],
    ),
    "paper": lambda frame: paper.fit(frame, outcome="hired", protected="sex", C=0.3, theta="b", tau=0.9),
}


def picture(frame):
    """Everything a user can see of a table; text, so that NaN equals NaN."""
    opened = nw.from_native(frame, eager_only=True)
    native = opened.to_native()
    types = native.schema if isinstance(native, pa.Table) else native.dtypes
    return repr((type(native), str(types), opened.to_dict(as_series=False)))


def weights_of(fit):
    """Weights, or why there are none."""
    try:
        return fit.weights().tobytes()
    except InfeasibleError as error:
        return str(error)


def seen_of(fit, frame):
    """Everything that a user can get from a fit."""
    certificate, distribution = fit.certificate, fit.distribution
    return {
        "columns": fit.columns,
        "sample": picture(fit.sample(300, random_state=1)),
        "independent": picture(fit.sample(100, random_state=2, iid=True)),
        "given": picture(fit.sample(50, given={"sex": "F", "rank": ["low", "mid"]}, random_state=4)),
        "top-up": picture(fit.top_up(random_state=5)),
        "weights": weights_of(fit),
        "marginal": picture(distribution.marginal(["sex", "age", "hired"])),
        "expectation": distribution.expectation("score"),
        "probability": distribution.probability(frame).tobytes(),
        "certificate": (
            str(certificate),
            repr(certificate.to_dict()),
            certificate.table.tobytes(),
            certificate.measure,
        ),
        "interval": certificate.interval(100),
        "domain": (fit.domain.names, fit.domain.sizes, fit.domain.notes),
    }


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("library", FRAMES)
def test_a_fit_comes_back_as_it_was_and_saves_to_the_same_bytes(library, kind, tmp_path):
    frame = FRAMES[library]()
    fit = FITS[kind](frame)
    fit.save(tmp_path / "first")
    loaded = load(tmp_path / "first")
    assert seen_of(loaded, frame) == seen_of(fit, frame)
    loaded.save(str(tmp_path / "second"))
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


@pytest.mark.parametrize("kind", FITS)
def test_what_was_asked_for_comes_back(kind, tmp_path):
    fit = FITS[kind](pandas_frame())
    fit.save(tmp_path / "fit")
    asked = load(tmp_path / "fit").request
    if isinstance(fit.request.favourable, set):  # JSON has no sets
        assert asked == replace(fit.request, favourable=sorted(fit.request.favourable))
    else:
        assert asked == fit.request


def test_plans_come_back_without_their_models(tmp_path):
    relabel = Relabel(parity="predictions", threshold=0.4, labeller=GaussianNB())
    estimate = Estimate(output="weights", student=GaussianNB())
    fit = debias(
        pandas_frame().assign(hired=lambda frame: frame["hired"] == "yes"),
        "hired", "sex", favourable=True, relabel=relabel, estimate=estimate,
    )  # fmt: skip
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit")
    assert back.request.relabel == replace(relabel, labeller=None)
    assert back.request.estimate == replace(estimate, student=None)
    assert back.certificate.estimate == fit.certificate.estimate
    named = replace(fit.request, relabel="predictions", estimate=Estimate(output="rows", student="tree"))
    replace(fit, request=named).save(tmp_path / "named")
    assert load(tmp_path / "named").request == named


def test_the_facts_of_a_certificate_come_back_as_records(tmp_path):
    frame = pandas_frame()
    frame.loc[:3, "sex"] = "X"
    fit = debias(
        frame, "hired", ["sex", "race", "age"], statistical_rate=None, forbid=[{"rank": "low", "member": True}]
    )
    fit.save(tmp_path / "fit")
    certificate = load(tmp_path / "fit").certificate
    for name in ("small_groups", "binned_columns", "forbidden_rows", "outcome_shares", "kept_missing"):
        assert getattr(fit.certificate, name)
        assert getattr(certificate, name) == getattr(fit.certificate, name)
    assert certificate.warnings == fit.certificate.warnings


def test_the_seed_comes_back(tmp_path):
    fit = FITS["tree"](pandas_frame())
    fit.save(tmp_path / "fit")
    loaded = load(tmp_path / "fit")
    assert picture(loaded.sample(20)) == picture(fit.sample(20)) == picture(fit.sample(20, random_state=3))


def fingerprints():
    """Digests of drawn rows and of the saved file, for each library; run in processes of their own."""
    digests = {}
    for library, frame in FRAMES.items():
        fit = FITS["rules, targets, rates"](frame())
        digests[f"{library} rows"] = digest(picture(fit.sample(200, random_state=7)).encode())
        digests[f"{library} file"] = digest(saved(fit))
    return digests


def digest(content):
    return hashlib.sha256(content).hexdigest()


def saved(fit):
    with tempfile.TemporaryDirectory() as folder:
        fit.save(Path(folder, "fit"))
        return Path(folder, "fit").read_bytes()


@pytest.mark.process
def test_equal_seeds_give_equal_bytes_in_every_process():
    command = [sys.executable, "-c", "import json, test_storage; print(json.dumps(test_storage.fingerprints()))"]
    runs = [
        subprocess.Popen(
            command,
            cwd=Path(__file__).parent,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1")
    ]
    found = [json.loads(run.communicate(timeout=600)[0]) for run in runs]
    assert found[0] == found[1] == fingerprints()


# ---------------------------------------------------------------- damage


@cache
def small_file(library="pandas"):
    """A saved fit of every part (tree, rows, weights, bins, gaps), small enough to be damaged byte by byte."""
    frame = nw.from_native(FRAMES[library](), eager_only=True).select("hired", "sex", "race", "age", "born", "design")
    return saved(debias(frame.head(60).to_native(), "hired", "sex", weight="design"))


def refused(content, path):
    """Say whether a file is refused, in the one way that is allowed; otherwise it must hold the very same fit."""
    path.write_bytes(content)
    try:
        fit = load(path)
    except StorageError as error:
        return str(path) in str(error)
    assert saved(fit) == small_file()
    return False


def test_a_truncated_file_is_refused(tmp_path):
    content = small_file()
    lengths = [*range(40), *range(40, len(content), 97), *range(len(content) - 40, len(content))]
    assert all(refused(content[:length], tmp_path / "fit") for length in lengths)


@pytest.mark.parametrize("every", [149, pytest.param(37, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_refused_or_harmless(every, tmp_path):
    content = small_file()
    rng = np.random.default_rng(0)
    places = [*range(64), *range(64, len(content), every), *range(len(content) - 256, len(content))]
    damaged = 0
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged += refused(bytes(flipped), tmp_path / "fit")
    assert damaged > 0.5 * len(places)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_flipped_bit_is_refused_in_every_library(library, tmp_path):
    content = small_file(library)
    for place in range(100, len(content), len(content) // 60):
        flipped = bytearray(content)
        flipped[place] ^= 0x10
        (tmp_path / "fit").write_bytes(flipped)
        try:
            fit = load(tmp_path / "fit")
        except StorageError:
            continue
        assert saved(fit) == content


def zipped(members):
    """Members as a zip file; a model gets the digests that belong to them."""
    if "SHA256SUMS" in members:
        rest = {name: content for name, content in members.items() if name != "SHA256SUMS"}
        lines = [f"{digest(text.encode() if isinstance(text, str) else text)}  {name}\n" for name, text in rest.items()]
        members = rest | {"SHA256SUMS": "".join(lines)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def array_bytes(array, *, allow_pickle=False):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=allow_pickle)
    return buffer.getvalue()


def npz_bytes():
    buffer = io.BytesIO()
    np.savez(buffer, codes=np.arange(3))
    return buffer.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"sex,hired\nF,yes\n" * 50,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "zip": zipped({"readme.txt": "hello"}),
    "npz": npz_bytes(),
    "pickle": pickle.dumps({"format": FORMAT}),
    "JSON list": zipped({"header.json": json.dumps([FORMAT, VERSION])}),
    "JSON text": zipped({"header.json": json.dumps(FORMAT)}),
    "no JSON": zipped({"header.json": "{"}),
    "no UTF-8": zipped({"header.json": b'{"a": "\xff"}'}),
    "deep JSON": zipped({"header.json": "[" * 100_000}),
    "header only": zipped({"header.json": json.dumps({"format": FORMAT, "version": VERSION})}),
    "other format": zipped({"header.json": json.dumps({"format": "another model", "version": VERSION})}),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused(content, tmp_path):
    (tmp_path / "fit").write_bytes(content)
    with pytest.raises(StorageError, match=r"fit\.save\(\)|fit and save again"):
        load(tmp_path / "fit")


def test_what_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(StorageError, match=r"cannot read.*No such file.*fit\.save\(\)"):
        load(tmp_path / "nothing")
    with pytest.raises(StorageError, match=r"cannot read.*directory"):
        load(tmp_path)


# ---------------------------------------------------------------- files made to deceive


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_header(change):
    """Return the small file with a changed header and sound checksums."""
    members = members_of(small_file())
    header = json.loads(members["header.json"])
    change(header)
    return zipped(members | {"header.json": json.dumps(header)})


def with_array(name, change):
    """Return the small file with one array changed and sound checksums."""
    members = members_of(small_file())
    array = np.lib.format.read_array(io.BytesIO(members[f"{name}.npy"]))
    return zipped(members | {f"{name}.npy": array_bytes(change(array))})


def test_a_rewritten_file_with_nothing_changed_is_read(tmp_path):
    assert not refused(with_header(lambda header: None), tmp_path / "fit")


def test_another_version_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "fit").write_bytes(with_header(lambda header: header.update(version=VERSION + 1)))
    with pytest.raises(StorageError, match=rf"version {VERSION + 1}.*upgrade fairmaxent"):
        load(tmp_path / "fit")


@pytest.mark.parametrize("name", members_of(small_file()))
def test_a_file_that_lacks_a_member_is_refused(name, tmp_path):
    members = members_of(small_file())
    del members[name]
    assert refused(zipped(members), tmp_path / "fit")


ARRAYS = [name.removesuffix(".npy") for name in members_of(small_file()) if name.endswith(".npy")]
# The numbers behind a column (``values``, ``weight``) may turn into other sound values; the model's own may not.
OWN_ARRAYS = [name for name in ARRAYS if ".values." not in name and not name.startswith("weight_column.")]
OUTSIDE = {"f": np.nan, "i": -1, "u": 255, "b": False}
WRONG = {
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.append(array, array[-1:], axis=0),
    "more axes": lambda array: array[None],
    "no axes": lambda array: array.ravel()[0],
    "complex": lambda array: array.astype(complex),
    "text": lambda array: array.astype(str),
    "other kind": lambda array: array.astype(bool if array.dtype.kind == "f" else float),
    "out of range": lambda array: np.full_like(array, OUTSIDE[array.dtype.kind]),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", OWN_ARRAYS)
def test_an_array_of_wrong_shape_kind_or_range_is_refused(name, wrong, tmp_path):
    assert refused(with_array(name, WRONG[wrong]), tmp_path / "fit")


ARRAYS_OF_ANOTHER_MODEL = {
    "rows out of order": ("table.codes", lambda codes: codes[::-1]),
    "a row twice": ("table.codes", lambda codes: np.concatenate([codes[:1], codes[:-1]])),
    "a tree that is a cycle": ("base.parents", lambda parents: np.array([2, 1, 0, 0][: len(parents)])),
    "a parent that is no block": ("base.parents", lambda parents: parents + 9),
    "levels with nothing to draw": ("domain.attributes.3.counts", np.zeros_like),
    "levels that overlap": ("domain.attributes.3.level_starts", lambda starts: starts[::-1]),
    "infinite multipliers": ("solution.multipliers", lambda multipliers: np.full_like(multipliers, np.inf)),
    "several weights": ("weight_column.numbers", lambda ones: np.append(ones, ones)),
    "no weight": ("weight_column.numbers", lambda ones: ones[:0]),
}


@pytest.mark.parametrize(("name", "change"), ARRAYS_OF_ANOTHER_MODEL.values(), ids=ARRAYS_OF_ANOTHER_MODEL)
def test_arrays_that_do_not_belong_together_are_refused(name, change, tmp_path):
    assert refused(with_array(name, change), tmp_path / "fit")


def restate(*path, value):
    """Replace a number that the certificate states."""

    def change(header):
        record = header["certificate"]
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


FORGED = {
    "achieved rate": restate("achieved", "statistical_rate", "sex", value=0.123),
    "rate before": restate("before", "statistical_rate", "sex", value=0.999),
    "wanted rate": restate("wanted", "statistical_rate", "sex", value=0.5),
    "bound": restate("bound", value=0.99),
    "residual": restate("residual", value=0.5),
    "rows": restate("rows", value=10**9),
    "effective rows": restate("effective_rows", value=10.0**9),
    "distance": restate("distance", "from_data", value=0.5),
    "small groups": restate("small_groups", value=[]),
    "costs": restate("costs", value=None),
    "costs of a group": restate("costs", "effective_rows", value=10.0**9),
    "outcome shares": restate("outcome_shares", value=[]),
    "copies": restate("copied_share", value=None),
    "columns left out": restate("left_out_columns", value=["sex"]),
    "method": restate("method", value="magic"),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_certificate_is_refused_though_its_digests_match(change, tmp_path):
    (tmp_path / "fit").write_bytes(with_header(change))
    with pytest.raises(StorageError, match=r"certificate s(tates|ays)|solution states"):
        load(tmp_path / "fit")


IMPOSSIBLE_LABELS = {
    "twice as much": (lambda labels: labels * 2, "do not sum to one"),
    "outcomes swapped": (lambda labels: labels[:, ::-1], "certificate states|solver did not converge|impossible"),
    "fewer people": (lambda labels: labels[1:], "expected f of shape"),
}


@pytest.mark.parametrize(("change", "said"), IMPOSSIBLE_LABELS.values(), ids=IMPOSSIBLE_LABELS)
def test_the_labels_of_relabelled_people_cannot_be_forged(change, said, tmp_path):
    frame = pandas_frame()[["hired", "sex", "age"]]
    debias(frame, "hired", "sex", relabel=Relabel(labeller="tree"), estimate=None).save(tmp_path / "fit")
    members = members_of((tmp_path / "fit").read_bytes())
    labels = np.lib.format.read_array(io.BytesIO(members["labels.npy"]))
    (tmp_path / "fit").write_bytes(zipped(members | {"labels.npy": array_bytes(change(labels))}))
    with pytest.raises(StorageError, match=said):
        load(tmp_path / "fit")


def test_digests_name_every_member_and_must_match(tmp_path):
    members = members_of(small_file())
    lines = [line.split("  ") for line in members.pop("SHA256SUMS").decode().splitlines()]
    assert lines == [[digest(content), name] for name, content in members.items()]
    content = small_file()
    assert not refused(content, tmp_path / "fit")
    broken = members_of(content) | {"SHA256SUMS": members_of(content)["SHA256SUMS"].replace(b"0", b"1", 1)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in broken.items():
            archive.writestr(name, text)
    (tmp_path / "fit").write_bytes(buffer.getvalue())
    with pytest.raises(StorageError, match="SHA-256"):
        load(tmp_path / "fit")


def test_sizes_are_added_up_before_anything_is_inflated(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            with archive.open(f"{number}.npy", "w") as member:
                for _ in range(256):
                    member.write(bytes(1 << 20))
    (tmp_path / "fit").write_bytes(buffer.getvalue())
    assert (tmp_path / "fit").stat().st_size < 1 << 21
    with pytest.raises(StorageError, match=r"1,342,177,280 bytes of memory.*max_bytes"):
        load(tmp_path / "fit")
    (tmp_path / "small").write_bytes(small_file())
    with pytest.raises(StorageError, match=r"limit of 10;"):
        load(tmp_path / "small", max_bytes=10)


def test_a_file_takes_no_more_memory_than_it_declares(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array(content, np.zeros(4_000_000))
    (tmp_path / "fit").write_bytes(zipped(members_of(small_file()) | {"zeros.npy": content.getvalue()}))
    tracemalloc.start()
    assert len(read_archive(tmp_path / "fit")[1]["zeros"]) == 4_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 45_000_000  # of 32,000,128 bytes


def test_an_array_may_not_declare_more_than_it_holds(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    assert refused(zipped(members_of(small_file()) | {"solution.multipliers.npy": header.getvalue()}), tmp_path / "fit")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="not an ordinary file"):
        load(tmp_path / "pipe")


class PanicException(BaseException):
    """What polars raises when it gives up."""

    __module__ = "pyo3_runtime"


def test_a_panic_of_polars_is_a_storage_error(tmp_path, monkeypatch):
    def give_up(*_):
        raise PanicException("out of range")

    (tmp_path / "fit").write_bytes(small_file("polars"))
    monkeypatch.setattr(pl, "read_ipc_stream", give_up)
    with pytest.raises(StorageError, match="out of range"):
        load(tmp_path / "fit")


HEADERS = {
    "outcome protected": lambda header: header["request"].update(protected=header["request"]["outcome"]),
    "protected twice": lambda header: header["request"].update(protected=["sex", "sex"]),
    "columns repeated": lambda header: header["columns"].append(header["columns"][0]),
    "columns lost": lambda header: header["columns"].pop(),
    "attribute lost": lambda header: header["domain"]["attributes"].pop(),
    "label lost": lambda header: header["domain"]["attributes"][0]["labels"].pop(),
    "missing level elsewhere": lambda header: header["domain"]["attributes"][2].update(missing=0),
    "unknown layout": lambda header: header["domain"]["attributes"][0]["values"].update(layout="Ann, Ben"),
    "columns kept that are not there": lambda header: header["request"].update(keep_columns="nowhere"),
    "unknown library": lambda header: header["domain"]["attributes"][0]["values"].update(library="excel"),
    "unknown base": lambda header: header["request"].update(base="oracle"),
    "another base": lambda header: header["request"].update(base_share=0.5),
    "unknown status": lambda header: header["solution"].update(status="fine"),
    "certificate as a list": lambda header: header.update(certificate=[]),
    "facts as numbers": lambda header: header["certificate"]["small_groups"].append(3),
    "request lost": lambda header: header.pop("request"),
    "request as a number": lambda header: header.update(request=3),
    "an option lost": lambda header: header["request"].pop("groups"),
    "an option that nobody has": lambda header: header["request"].update(luck=1),
    "an option that makes no sense": lambda header: header["request"].update(relabel="luck"),
    "rows as a text": restate("rows", value="x"),
    "wanted rates as a number": restate("wanted", value=3),
    "a reason for no estimate": restate("estimated", value={"why": ["none was needed"]}),
    "other columns asked for": lambda header: header["request"].update(outcome="work"),
    "a rate as a text": lambda header: header["request"].update(statistical_rate="x"),
    "a rule on a column that is not there": lambda header: header["request"].update(forbid=[{"nowhere": "x"}]),
    "a callback": lambda header: header["request"].update(progress="x"),
    "a plan that makes no sense": lambda header: header["request"].update(estimate={"output": "luck"}),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_header_that_does_not_fit_the_arrays_is_refused(change, tmp_path):
    assert refused(with_header(change), tmp_path / "fit")


UNREAD = {
    "in the header": lambda header: header.update(people=["Ann", "Ben"]),
    "in the description of a column": lambda header: header["domain"]["attributes"][0].update(people=["Ann"]),
    "in the values of a column": lambda header: header["domain"]["attributes"][0]["values"].update(people=["Ann"]),
    "as another kind of number": lambda header: header["certificate"].update(bound=int(header["certificate"]["bound"])),
}


@pytest.mark.parametrize("change", UNREAD.values(), ids=UNREAD)
def test_what_nothing_reads_is_refused_in_a_header(change, tmp_path):
    (tmp_path / "fit").write_bytes(with_header(change))
    with pytest.raises(StorageError, match=r"no part of a model|certificate states|fields of"):
        load(tmp_path / "fit")


@pytest.mark.parametrize(
    "name", ["people", "base.people", "domain.attributes.0.people", "positions.03", "weight_column.people"]
)
def test_an_array_that_nothing_reads_is_refused(name, tmp_path):
    members = members_of(small_file())
    hidden = members.get("positions.3.npy", array_bytes(np.arange(5)))
    (tmp_path / "fit").write_bytes(zipped(members | {f"{name}.npy": hidden}))
    with pytest.raises(StorageError, match="no part of a model"):
        load(tmp_path / "fit")


def test_a_member_whose_name_would_become_that_of_an_array_is_refused(tmp_path):
    members = members_of(small_file())
    (tmp_path / "fit").write_bytes(zipped({"target": array_bytes(np.arange(5))} | members))
    with pytest.raises(StorageError, match="members that are no arrays"):
        load(tmp_path / "fit")


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_stored_column_stands_alone(library, tmp_path):
    def with_people(stream):
        sink = io.BytesIO()
        frame = pl.read_ipc_stream(stream.tobytes())
        frame.with_columns(people=pl.lit("Ann")).write_ipc_stream(sink)
        return np.frombuffer(sink.getvalue(), dtype=np.uint8)

    def with_more(stream):
        return np.append(stream, np.frombuffer(b"Ann, 1 Main Street", dtype=np.uint8))

    members = members_of(small_file(library))
    name = next(name for name in members if name.endswith("stream.npy"))
    for change, said in ((with_people, "together with others"), (with_more, "no Arrow stream")):
        stream = np.lib.format.read_array(io.BytesIO(members[name]))
        (tmp_path / "fit").write_bytes(zipped(members | {name: array_bytes(change(stream))}))
        with pytest.raises(StorageError, match=said):
            load(tmp_path / "fit")


class Intruder:
    """A pickle that makes a folder when it is read."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickle_inside_is_never_run(tmp_path):
    trap = tmp_path / "trap"
    content = array_bytes(np.array([Intruder(str(trap))], dtype=object), allow_pickle=True)
    for name in ("solution.multipliers.npy", "unknown.npy"):
        assert refused(zipped(members_of(small_file()) | {name: content}), tmp_path / "fit")
    np.savez(tmp_path / "fit.npz", np.array([Intruder(str(trap))], dtype=object))
    (tmp_path / "fit.pickle").write_bytes(pickle.dumps(Intruder(str(trap))))
    for path in (tmp_path / "fit.npz", tmp_path / "fit.pickle"):
        with pytest.raises(StorageError):
            load(path)
    assert not trap.exists()


# ---------------------------------------------------------------- writing


def small_fit():
    return debias(pandas_frame()[["hired", "sex", "age"]], "hired", "sex")


@pytest.mark.parametrize("place", ["no/such/folder/fit", "file/fit", "folder", "x" * 300, "null\0character"])
def test_a_place_that_cannot_be_written_is_refused_and_left_clean(place, tmp_path):
    (tmp_path / "file").write_text("here")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"cannot write.*choose another location"):
        small_fit().save(tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "here"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "fit").write_bytes(small_file())
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StorageError, match="No space left on device"):
        small_fit().save(tmp_path / "fit")
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]
    assert (tmp_path / "fit").read_bytes() == small_file()


def test_a_column_that_cannot_be_stored_is_named_before_anything_is_written(tmp_path):
    frame = pandas_frame()[["hired", "sex"]].assign(month=pd.period_range("2020-01", periods=3, freq="M").repeat(50))
    (tmp_path / "fit").write_bytes(b"old")
    with pytest.raises(StorageError, match=r"'month'.*convert it"):
        debias(frame, "hired", "sex").save(tmp_path / "fit")
    assert (tmp_path / "fit").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_saving_replaces_an_older_file_and_others_may_read_it(tmp_path):
    (tmp_path / "fit").write_bytes(b"old")
    small_fit().save(tmp_path / "fit")
    load(tmp_path / "fit")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "fit").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_not_a_path_is_refused():
    with pytest.raises(StorageError, match="not a path"):
        load(5)
    with pytest.raises(StorageError, match="not a path"):
        small_fit().save(None)


def test_a_weight_other_than_one_and_other_redrawn_columns_are_refused(tmp_path):
    """Each drawn row has the weight that the file holds, and the certificate says whose values are drawn again."""
    frame = pandas_frame().assign(w=np.linspace(0.5, 2, len(pandas_frame())))
    debias(frame, "hired", "sex", weight="w", detail="bins", estimate=None).save(tmp_path / "fit")
    members = members_of((tmp_path / "fit").read_bytes())
    assert refused(zipped(members | {"weight_column.numbers.npy": array_bytes(np.array([2.0]))}), tmp_path / "forged")
    header = json.loads(members["header.json"])
    header["certificate"]["redrawn"]["columns"] = ["sex"]
    assert refused(zipped(members | {"header.json": json.dumps(header)}), tmp_path / "forged")
    (tmp_path / "sound").write_bytes(zipped(members))
    load(tmp_path / "sound")
