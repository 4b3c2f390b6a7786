"""storage.py: a fit comes back as it was, from equal bytes, and no damaged or foreign
file is taken for a fit.
"""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.naive_bayes import GaussianNB

from fairmaxent import Domain, Estimate, InfeasibleError, debias, load, paper
from fairmaxent.errors import RefusedError, StorageError
from fairmaxent.fit.storage import FORMAT, VERSION
from modelfiles import (
    FRAMES,
    digest,
    pandas_frame,
    refused,
    saved,
    sealed,
    small_file,
    zipped,
)
from tables import EQUAL_PROBABILITIES

RULES = "rules, targets, rates"
FITS = {
    "tree": lambda frame: debias(frame, "hired", "sex", random_state=3),
    "product": lambda frame: debias(frame, "hired", "sex", base="product"),
    "uniform": lambda frame: debias(frame, "hired", "sex", base="uniform"),
    "rows only": lambda frame: debias(frame, "hired", "sex", base_share=0),
    "base only": lambda frame: debias(frame, "hired", "sex", base_share=1),
    "weighted": lambda frame: debias(frame, "hired", "sex", weight="design"),
    RULES: lambda frame: debias(
        frame,
        "hired",
        ["sex", "race"],
        representation_rate={"sex": None, "race": 0.2},
        favourable={"yes", "wäre"},
        target={
            "sex": {"F": 0.4, "M": 0.6},
            "member": {True: 0.5, False: 0.3, None: 0.2},
            "rank": None,
        },
        forbid=[{"rank": "low", "member": True}],
    ),
}


def test_rows_that_no_weighting_can_use_stay_out_of_use(tmp_path):
    frame = pd.DataFrame(
        {"hired": [0, 1] * 6, "sex": list("FFFFFFMMMMMM"), "x": list("ppqqppqqqqqq")}
    )
    fit = debias(
        frame,
        "hired",
        "sex",
        representation_rate=1,
        base_share=0,
        target={"x": {"p": 0.5, "q": 0.5}},
    )
    fit.save(tmp_path / "fit")
    weights = load(tmp_path / "fit").weights()
    assert weights.tolist() == fit.weights().tolist()
    assert weights[2:4].tolist() == [0, 0]


def test_declared_decimals_come_back_from_a_column_that_pads_them(tmp_path):
    money = [Decimal("0.1"), Decimal("2.50")]
    frame = pl.DataFrame({"pay": money * 2, "sex": ["F", "F", "M", "M"]})
    debias(
        frame,
        "pay",
        "sex",
        domain=Domain.declare(levels={"pay": money, "sex": ["F", "M"]}),
    ).save(tmp_path / "fit")
    assert load(tmp_path / "fit").domain.attribute("pay").labels == ("0.1", "2.5")


def test_the_papers_own_configurations_are_not_saved(tmp_path):
    with pytest.raises(StorageError, match="cannot be saved"):
        paper.fit(pandas_frame(), outcome="hired", protected="sex").save(
            tmp_path / "fit"
        )
    assert not list(tmp_path.iterdir())


def picture(frame):
    """Everything a user can see of a table; text, so that NaN equals NaN."""
    opened = nw.from_native(frame, eager_only=True)
    native = opened.to_native()
    types = native.schema if isinstance(native, pa.Table) else native.dtypes
    return repr((type(native), str(types), opened.to_dict(as_series=False)))


def added_to(fit):
    """Rows to add, or why there are none."""
    try:
        return picture(fit.top_up(random_state=5))
    except RefusedError as error:
        return str(error)


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
        "given": picture(
            fit.sample(50, given={"sex": "F", "rank": ["low", "mid"]}, random_state=4)
        ),
        "top-up": added_to(fit),
        "weights": weights_of(fit),
        "marginal": picture(distribution.marginal(["sex", "age", "hired"])),
        "expectation": distribution.expectation("score"),
        "probability": distribution.probability(frame).tobytes(),
        "certificate": (str(certificate), repr(certificate.to_dict())),
        "table": (certificate.table.tobytes(), certificate.measure),
        "interval": certificate.interval(100),
        "domain": (fit.domain.names, fit.domain.sizes, fit.domain.notes),
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("library", "kind"),
    [
        *(("pandas", kind) for kind in FITS if kind not in ("tree", "weighted")),
        ("polars", "weighted"),
        ("pyarrow", "tree"),
    ],
)
def test_a_fit_comes_back_as_it_was_and_saves_to_the_same_bytes(
    library, kind, tmp_path
):
    frame = FRAMES[library]()
    fit = FITS[kind](frame)
    fit.save(tmp_path / "first")
    loaded = load(tmp_path / "first")
    assert seen_of(loaded, frame) == seen_of(fit, frame)
    favourable = fit.request.favourable
    asked = (
        replace(fit.request, favourable=sorted(favourable))
        if isinstance(favourable, set)
        else fit.request
    )
    assert loaded.request == asked  # JSON has no sets
    if fit.request.random_state is not None:
        assert picture(loaded.sample(20)) == picture(fit.sample(20))
    loaded.save(str(tmp_path / "second"))
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


@pytest.mark.more
def test_plans_come_back_without_their_models(tmp_path):
    estimate = Estimate(output="weights", model=GaussianNB())
    fit = debias(
        pandas_frame()[["hired", "sex", "age"]].assign(hired=lambda frame: frame["hired"] == "yes"),
        "hired", "sex", favourable=True, model=EQUAL_PROBABILITIES, estimate=estimate,
    )  # fmt: skip
    fit.save(tmp_path / "fit")
    back = load(tmp_path / "fit")
    assert back.request.model == EQUAL_PROBABILITIES
    assert back.request.estimate == replace(estimate, model=None)
    assert back.certificate.estimate == fit.certificate.estimate
    named = replace(fit.request, estimate=Estimate(output="rows", model="tree"))
    replace(fit, request=named).save(tmp_path / "named")
    assert load(tmp_path / "named").request == named


def fingerprints():
    """Digests of drawn rows and of the saved file, for each library; run in processes
    of their own.
    """
    digests = {}
    for library, frame in FRAMES.items():
        fit = FITS[RULES](frame())
        digests[f"{library} rows"] = digest(
            picture(fit.sample(200, random_state=7)).encode()
        )
        digests[f"{library} file"] = digest(saved(fit))
    frame = pandas_frame()[["hired", "sex", "age"]]
    digests["relabelled"] = digest(
        saved(debias(frame, "hired", "sex", model=EQUAL_PROBABILITIES))
    )
    return digests


@pytest.mark.process
def test_equal_seeds_give_equal_bytes_in_every_process():
    command = [
        sys.executable,
        "-c",
        "import json, test_storage; print(json.dumps(test_storage.fingerprints()))",
    ]
    runs = [
        subprocess.Popen(
            command,
            cwd=Path(__file__).parent,
            env=os.environ
            | {
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1")
    ]
    found = [json.loads(run.communicate(timeout=600)[0]) for run in runs]
    assert found[0] == found[1] == fingerprints()


def test_a_truncated_file_is_refused(tmp_path):
    content = small_file()
    lengths = [*range(0, len(content), 397), *range(len(content) - 10, len(content))]
    assert all(refused(content[:length], tmp_path / "fit") for length in lengths)


@pytest.mark.more
@pytest.mark.parametrize(
    ("library", "every"),
    [
        ("pandas", 600),
        ("polars", 2000),
        ("pyarrow", 2000),
        pytest.param("pandas", 37, marks=pytest.mark.slow),
    ],
)
def test_a_flipped_bit_is_refused_or_harmless(library, every, tmp_path):
    content = small_file(library)
    rng = np.random.default_rng(0)
    places = [*range(0, len(content), every), *range(len(content) - 30, len(content))]
    damaged = 0
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged += refused(bytes(flipped), tmp_path / "fit", library=library)
    assert damaged > 0.4 * len(places)


FOREIGN = {
    "empty": b"",
    "text": b"sex,hired\nF,yes\n" * 50,
    "zip": zipped({"readme.txt": "hello"}),
    "pickle": pickle.dumps({"format": FORMAT}),
    "JSON list": zipped({"header.json": json.dumps([FORMAT, VERSION])}),
    "no JSON": zipped({"header.json": "{"}),
    "no UTF-8": zipped({"header.json": b'{"a": "\xff"}'}),
    "deep JSON": zipped({"header.json": "[" * 100_000}),
    "header only": zipped(
        {"header.json": json.dumps({"format": FORMAT, "version": VERSION})}
    ),
    "other format": sealed(
        {"header.json": b'{"format": "another model", "version": 1}', "SHA256SUMS": b""}
    ),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused(content, tmp_path):
    (tmp_path / "fit").write_bytes(content)
    with pytest.raises(StorageError, match=r"fit\.save\(\)|fit and save again"):
        load(tmp_path / "fit")


def test_what_cannot_be_opened_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, problem in {
        tmp_path / "nothing": r"cannot read.*No such file.*fit\.save\(\)",
        tmp_path: r"cannot read.*directory",
        # opening it would wait for somebody to write
        tmp_path / "pipe": "not an ordinary file",
        5: "not a path",
    }.items():
        with pytest.raises(StorageError, match=problem):
            load(path)


@pytest.fixture(scope="module")
def small_fit():
    return debias(pandas_frame()[["hired", "sex", "age"]], "hired", "sex")


def test_a_place_that_cannot_be_written_is_refused_and_left_clean(small_fit, tmp_path):
    (tmp_path / "file").write_text("here")
    (tmp_path / "folder").mkdir()
    for place in (
        "no/such/folder/fit",
        "file/fit",
        "folder",
        "x" * 300,
        "null\0character",
    ):
        with pytest.raises(
            StorageError,
            match=r"cannot write.*; (choose|create)|is a folder; name a file",
        ):
            small_fit.save(tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "here"
    with pytest.raises(StorageError, match="not a path"):
        small_fit.save(None)


def test_a_column_that_cannot_be_stored_is_named_before_anything_is_written(tmp_path):
    frame = pandas_frame()[["hired", "sex"]].assign(
        month=pd.period_range("2020-01", periods=3, freq="M").repeat(50)
    )
    with pytest.raises(StorageError, match=r"'month'.*convert it"):
        debias(frame, "hired", "sex").save(tmp_path / "fit")
    assert not list(tmp_path.iterdir())
