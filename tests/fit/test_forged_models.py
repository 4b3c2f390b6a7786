"""Model files made to deceive: whatever their digests say, their parts must follow from
each other, labels too.
"""

import io
import os
import tracemalloc
import zipfile

import numpy as np
import polars as pl
import pytest

from fairmaxent import Domain, debias, load, verify
from fairmaxent.errors import StorageError
from fairmaxent.fit.records import read_archive
from fairmaxent.fit.storage import FORMAT, VERSION
from modelfiles import (
    array_bytes,
    digest,
    members_of,
    pandas_frame,
    refused,
    saved,
    sealed,
    small_file,
    with_array,
    with_header,
    zipped,
)
from tables import EQUAL_PROBABILITIES

ROWS = 300


def test_another_version_is_refused_with_the_way_out(tmp_path):
    assert not refused(with_header(small_file(), lambda header: None), tmp_path / "fit")
    (tmp_path / "fit").write_bytes(
        with_header(small_file(), lambda header: header.update(version=VERSION + 1))
    )
    with pytest.raises(
        StorageError, match=rf"version {VERSION + 1}.*upgrade fairmaxent"
    ):
        load(tmp_path / "fit")


def test_a_file_that_lacks_a_member_is_refused(tmp_path):
    members = members_of(small_file())
    for name in members:
        rest = {other: content for other, content in members.items() if other != name}
        assert refused(sealed(rest), tmp_path / "fit"), name


ARRAYS = [
    name.removesuffix(".npy")
    for name in members_of(small_file())
    if name.endswith(".npy")
]
# The numbers behind a column (``values``, ``weight_column``) may turn into other sound
# values; the model's own may not.
OWN_ARRAYS = [
    name
    for name in ARRAYS
    if ".values." not in name and not name.startswith("weight_column.")
]
OUTSIDE = {"f": np.nan, "i": -1, "u": 255, "b": False}
WRONG = {
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.append(array, array[-1:], axis=0),
    "more axes": lambda array: array[None],
    "no axes": lambda array: array.ravel()[0],
    "complex": lambda array: array.astype(complex),
    "other kind": lambda array: array.astype(
        bool if array.dtype.kind == "f" else float
    ),
    "out of range": lambda array: np.full_like(array, OUTSIDE[array.dtype.kind]),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_of_wrong_shape_kind_or_range_is_refused(wrong, every, tmp_path):
    for name in OWN_ARRAYS[list(WRONG).index(wrong) % every :: every]:
        assert refused(
            with_array(small_file(), name, WRONG[wrong]), tmp_path / "fit"
        ), name


ARRAYS_OF_ANOTHER_MODEL = {
    "rows out of order": ("table.codes", lambda codes: codes[::-1]),
    "a row twice": (
        "table.codes",
        lambda codes: np.concatenate([codes[:1], codes[:-1]]),
    ),
    "a tree that is a cycle": (
        "base.parents",
        lambda parents: np.array([2, 1, 0, 0][: len(parents)]),
    ),
    "a parent that is no block": ("base.parents", lambda parents: parents + 9),
    "levels with nothing to draw": ("domain.attributes.3.counts", np.zeros_like),
    "levels that overlap": (
        "domain.attributes.3.level_starts",
        lambda starts: starts[::-1],
    ),
    "infinite multipliers": (
        "solution.multipliers",
        lambda multipliers: np.full_like(multipliers, np.inf),
    ),
    "several weights": ("weight_column.numbers", lambda ones: np.append(ones, ones)),
    "no weight": ("weight_column.numbers", lambda ones: ones[:0]),
}


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("name", "change"), ARRAYS_OF_ANOTHER_MODEL.values(), ids=ARRAYS_OF_ANOTHER_MODEL
)
def test_arrays_that_do_not_belong_together_are_refused(name, change, tmp_path):
    assert refused(with_array(small_file(), name, change), tmp_path / "fit")


@pytest.mark.more
def test_counts_within_bins_are_not_verified_and_names_are_shown_plainly(tmp_path):
    frame = pandas_frame().rename(columns={"sex": "s\x1b[31mx"})
    content = saved(debias(frame, "hired", "s\x1b[31mx", estimate=None))
    (tmp_path / "fit").write_bytes(
        with_array(
            content, "domain.attributes.3.counts", lambda counts: counts[::-1] + 1
        )
    )
    verified = verify(tmp_path / "fit")
    assert "how often each value of a bin is to be drawn" in " ".join(
        verified.unverified
    )
    fit = load(tmp_path / "fit")
    for text in map(
        str,
        (
            verified,
            verified.certificate,
            fit,
            fit.domain,
            fit.uncertainty(replicates=40),
        ),
    ):
        assert "\x1b" not in text
        assert "s\\x1b[31mx" in text


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
    "rows": restate("rows", value=10**9),
    "small groups": restate("small_groups", value=[]),
    "costs": restate("costs", value=None),
    "costs of a group": restate("costs", "effective_rows", value=10.0**9),
    "columns left out": restate("left_out_columns", value=["sex"]),
    "another kind of number": restate("bound", value=1),
    "what nothing reads": restate("people", value=["Ann", "Ben"]),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_certificate_is_refused_though_its_digests_match(change, tmp_path):
    (tmp_path / "fit").write_bytes(with_header(small_file(), change))
    with pytest.raises(StorageError, match=r"certificate s(tates|ays)"):
        load(tmp_path / "fit")


IMPOSSIBLE_LABELS = {
    "twice as much": (lambda labels: labels * 2, "do not sum to one"),
    "outcomes swapped": (
        lambda labels: labels[:, ::-1],
        "certificate states|solver did not converge|impossible",
    ),
    "fewer people": (lambda labels: labels[1:], "expected f of shape"),
}


def test_the_labels_of_relabelled_people_cannot_be_forged(tmp_path):
    frame = pandas_frame()[["hired", "sex", "age"]]
    content = saved(
        debias(frame, "hired", "sex", model=EQUAL_PROBABILITIES, estimate=None)
    )
    for change, problem in IMPOSSIBLE_LABELS.values():
        (tmp_path / "fit").write_bytes(with_array(content, "labels", change))
        with pytest.raises(StorageError, match=problem):
            load(tmp_path / "fit")


def test_digests_name_every_member_and_must_match(tmp_path):
    members = members_of(small_file())
    lines = [line.split("  ") for line in members["SHA256SUMS"].decode().splitlines()]
    assert lines == [
        [digest(content), name]
        for name, content in members.items()
        if name != "SHA256SUMS"
    ]
    (tmp_path / "fit").write_bytes(
        zipped(members | {"SHA256SUMS": members["SHA256SUMS"].replace(b"0", b"1", 1)})
    )
    with pytest.raises(StorageError, match="SHA-256"):
        load(tmp_path / "fit")


def test_sizes_are_added_up_before_anything_is_inflated(tmp_path):
    with zipfile.ZipFile(tmp_path / "fit", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            archive.writestr(f"{number}.npy", bytes(1 << 20))
    assert (tmp_path / "fit").stat().st_size < 1 << 14
    with pytest.raises(
        StorageError,
        match=r"5,242,880 bytes of memory.*limit of 5,000,000; .*max_bytes",
    ):
        load(tmp_path / "fit", max_bytes=5_000_000)


@pytest.mark.more
def test_a_file_takes_no_more_memory_than_it_declares(tmp_path):
    members = members_of(small_file()) | {"zeros.npy": array_bytes(np.zeros(4_000_000))}
    (tmp_path / "fit").write_bytes(sealed(members))
    tracemalloc.start()
    assert len(read_archive(tmp_path / "fit", FORMAT)[1]["zeros"]) == 4_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 45_000_000  # of 32,000,128 bytes


def test_an_array_may_not_declare_more_than_it_holds(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    assert refused(
        sealed(members_of(small_file()) | {"target.npy": header.getvalue()}),
        tmp_path / "fit",
    )


HEADERS = {
    "outcome protected": (
        lambda header: header["request"].update(protected=header["request"]["outcome"])
    ),
    "columns repeated": lambda header: header["columns"].append(header["columns"][0]),
    "columns lost": lambda header: header["columns"].pop(),
    "attribute lost": lambda header: header["domain"]["attributes"].pop(),
    "label lost": lambda header: header["domain"]["attributes"][0]["labels"].pop(),
    "missing level elsewhere": (
        lambda header: header["domain"]["attributes"][2].update(missing=0)
    ),
    "unknown layout": (
        lambda header: header["domain"]["attributes"][0]["values"].update(
            layout="Ann, Ben"
        )
    ),
    "columns kept that are not there": (
        lambda header: header["request"].update(keep_columns="nowhere")
    ),
    "unknown library": (
        lambda header: header["domain"]["attributes"][0]["values"].update(
            library="excel"
        )
    ),
    "unknown base": lambda header: header["request"].update(base="oracle"),
    "another base": lambda header: header["request"].update(base_share=0.5),
    "unknown status": lambda header: header["solution"].update(status="fine"),
    "certificate as a list": lambda header: header.update(certificate=[]),
    "request lost": lambda header: header.pop("request"),
    "an option lost": lambda header: header["request"].pop("groups"),
    "an option that nobody has": lambda header: header["request"].update(luck=1),
    "an option that makes no sense": (
        lambda header: header["request"].update(model="luck")
    ),
    "a rule on a column that is not there": (
        lambda header: header["request"].update(forbid=[{"nowhere": "x"}])
    ),
    "a callback": lambda header: header["request"].update(progress="x"),
    "people": lambda header: header.update(people=["Ann", "Ben"]),
    "people in a column": (
        lambda header: header["domain"]["attributes"][0].update(people=["Ann"])
    ),
    "people in the values": (
        lambda header: header["domain"]["attributes"][0]["values"].update(
            people=["Ann"]
        )
    ),
}


@pytest.mark.some(8)
@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_header_that_does_not_fit_or_that_nothing_reads_is_refused(change, tmp_path):
    assert refused(with_header(small_file(), change), tmp_path / "fit")


def test_an_array_that_nothing_reads_is_refused(tmp_path):
    members = members_of(small_file())
    hidden = members.get("positions.3.npy", array_bytes(np.arange(5)))
    for name in (
        "people",
        "base.people",
        "domain.attributes.0.people",
        "positions.03",
        "weight_column.people",
    ):
        (tmp_path / "fit").write_bytes(sealed(members | {f"{name}.npy": hidden}))
        with pytest.raises(StorageError, match="no part of a model"):
            load(tmp_path / "fit")
    # its name would become that of an array
    (tmp_path / "fit").write_bytes(sealed({"target": hidden} | members))
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

    name = next(
        name for name in members_of(small_file(library)) if name.endswith("stream.npy")
    ).removesuffix(".npy")
    for change, problem in (
        (with_people, "together with others"),
        (with_more, "no Arrow stream"),
    ):
        (tmp_path / "fit").write_bytes(with_array(small_file(library), name, change))
        with pytest.raises(StorageError, match=problem):
            load(tmp_path / "fit")


class Intruder:
    """A pickle that makes a folder when it is read."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickle_inside_is_never_run(tmp_path):
    trap = tmp_path / "trap"
    content = array_bytes(
        np.array([Intruder(str(trap))], dtype=object), allow_pickle=True
    )
    for name in ("target.npy", "unknown.npy"):
        assert refused(
            sealed(members_of(small_file()) | {name: content}), tmp_path / "fit"
        )
    assert not trap.exists()


@pytest.mark.more
def test_a_weight_other_than_one_and_other_redrawn_columns_are_refused(tmp_path):
    """Each drawn row has the weight that the file holds, and the certificate says whose
    values are drawn again.
    """
    frame = pandas_frame().assign(w=np.linspace(0.5, 2, len(pandas_frame())))
    content = saved(
        debias(frame, "hired", "sex", weight="w", detail="bins", estimate=None)
    )
    forged = restate("redrawn", "columns", value=["sex"])
    assert refused(
        with_array(content, "weight_column.numbers", lambda ones: ones * 2),
        tmp_path / "forged",
    )
    assert refused(with_header(content, forged), tmp_path / "forged")
    (tmp_path / "sound").write_bytes(with_header(content, lambda header: None))
    load(tmp_path / "sound")


FORGED_LABELS = {
    "bins swapped": {"[18, 45)": "[45, 80]", "[45, 80]": "[18, 45)"},
    "a bin moved": {"[18, 45)": "[18, 30)", "[45, 80]": "[30, 80]"},
    "bins in words": {"[18, 45)": "old", "[45, 80]": "young"},
    "values that begin alike": {"M": "Mother"},
    "several values under one name": {"other": "Essen"},
}


def test_labels_that_say_something_else_are_refused(tmp_path):
    rng = np.random.default_rng(1)
    words = {
        "hired": rng.choice(["no", "yes"], ROWS),
        "sex": rng.choice(["F", "M"], ROWS),
    }
    frame = pl.DataFrame(
        words
        | {
            "age": rng.integers(18, 80, ROWS),
            "town": rng.choice(["Ulm", "Kiel", "Bonn"], ROWS),
        }
    )
    domain = Domain.infer(frame, bins={"age": [18, 45, 80]}, max_levels=2)
    debias(
        frame, "hired", ["sex", "age"], favourable="yes", domain=domain, estimate=None
    ).save(tmp_path / "fit.fme")
    load(tmp_path / "fit.fme")
    for texts in FORGED_LABELS.values():

        def forge(header, texts=texts):
            for attribute in header["domain"]["attributes"]:
                attribute["labels"] = [
                    texts.get(label, label) for label in attribute["labels"]
                ]

        (tmp_path / "forged.fme").write_bytes(
            with_header((tmp_path / "fit.fme").read_bytes(), forge)
        )
        with pytest.raises(StorageError, match="a label names another value"):
            load(tmp_path / "forged.fme")
