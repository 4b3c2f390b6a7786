"""Labels in a model file say what their levels hold: otherwise a report would take one group for another."""

import datetime as dt
import hashlib
import io
import json
import zipfile

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from fairmaxent import Domain, debias, load
from fairmaxent.errors import StorageError
from fairmaxent.fit.records import check_domain

ROWS = 300
DAY = dt.datetime(2020, 1, 1)


def saved(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "hired": rng.choice(["no", "yes"], ROWS),
            "sex": rng.choice(["F", "M"], ROWS),
            "age": rng.integers(18, 80, ROWS),
        }
    )
    domain = Domain.infer(frame, bins={"age": [18, 45, 80]})
    debias(frame, "hired", ["sex", "age"], favourable="yes", domain=domain, estimate=None).save(tmp_path / "model.fme")
    with zipfile.ZipFile(tmp_path / "model.fme") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_texts(members, texts):
    """The model with other texts everywhere in its header, and digests that match."""
    header = members["header.json"].decode()
    for number, text in enumerate(texts):
        header = header.replace(json.dumps(text)[1:-1], f"@{number}@")
    for number, text in enumerate(texts.values()):
        header = header.replace(f"@{number}@", json.dumps(text)[1:-1])
    members = {name: content for name, content in members.items() if name != "SHA256SUMS"}
    members["header.json"] = header.encode()
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {**members, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


FORGED = {
    "bins swapped": {"[18, 45)": "[45, 80]", "[45, 80]": "[18, 45)"},
    "a bin moved": {"[18, 45)": "[18, 30)", "[45, 80]": "[30, 80]"},
    "bins in words": {"[18, 45)": "old", "[45, 80]": "young"},
    "values that begin alike": {'"M"': '"Mother"', "sex = M": "sex = Mother"},
}


@pytest.mark.parametrize("texts", FORGED.values(), ids=FORGED)
def test_labels_that_say_something_else_are_refused(texts, tmp_path):
    members = saved(tmp_path)
    load(tmp_path / "model.fme")
    if '"M"' in texts:  # quotes are no part of the texts
        header = members["header.json"].decode()
        for old, new in texts.items():
            header = header.replace(old, new, 1 if old == '"M"' else -1)  # the label comes before the value
        forged = with_texts(members | {"header.json": header.encode()}, {})
    else:
        forged = with_texts(members, texts)
    (tmp_path / "forged.fme").write_bytes(forged)
    with pytest.raises(StorageError, match="a label names another value"):
        load(tmp_path / "forged.fme")


def columns():
    rng = np.random.default_rng(2)
    moments = [DAY + dt.timedelta(microseconds=int(passed)) for passed in rng.integers(0, 10**14, ROWS)]
    return {
        "whole": rng.integers(-50, 10**6, ROWS),
        "large": rng.integers(1, 2**62, ROWS),
        "equal as floats": 2**54 + np.where(rng.random(ROWS) < 0.5, np.arange(ROWS) % 2, rng.integers(8, 999, ROWS)),
        "tiny": rng.random(ROWS) * 1e-300,
        "close": 1 + rng.random(ROWS) * 1e-12,
        "thousands": 12345.67 + rng.random(ROWS) * 10000,
        "half zero": np.where(rng.random(ROWS) < 0.5, 0, rng.random(ROWS) * 1000),
        "moments": moments,
        "zoned": pl.Series(moments).dt.replace_time_zone("UTC"),
        "days": [moment.date() for moment in moments],
        "far days": [dt.date(5343 if row % 3 else 5344 + row, 7, 4) for row in range(ROWS)],
        "times": [moment.time() for moment in moments],
        "durations": [DAY - moment for moment in moments],
        "nanoseconds": pl.Series(rng.integers(-(10**16), 10**16, ROWS)).cast(pl.Duration("ns")),
        "texts": [["a", "a (2)", "missing", "other", "[1, 2)", "x" * 70][row % 6] for row in range(ROWS)],
        "many": [str(row % 90) for row in range(ROWS)],
        "gaps": [None if row % 3 else row for row in range(ROWS)],
    }


@pytest.mark.parametrize("name", columns())
@pytest.mark.parametrize("bins", [3, 16])
def test_labels_of_learned_columns_fit(name, bins):
    domain = Domain.infer(pl.DataFrame({name: columns()[name]}), bins=bins)
    check_domain(domain)


@pytest.mark.parametrize(
    "edges", [[0, 18, 65, 120], [0.1, 0.123456, 0.9], [DAY, DAY.replace(year=2021), DAY.max], [1, 2]]
)
def test_labels_of_declared_columns_fit(edges):
    frame = nw.from_native(pl.DataFrame({"x": [1]}), eager_only=True)
    declared = Domain.declare(edges={"x": edges}, missing=["x"])
    check_domain(Domain(declared.attributes(frame), ()))
