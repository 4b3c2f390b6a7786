"""Tables with every kind of column, model files of them, and files put together anew
with digests that match.
"""

import datetime as dt
import hashlib
import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from fairmaxent import debias, load
from fairmaxent.errors import StorageError

SUMS = "SHA256SUMS"
ROWS = 150
WORDS = ["low", "mid", "high"]
NOON = dt.datetime(2020, 1, 1, 12)


def raw_columns():
    rng = np.random.default_rng(5)

    def gaps(values):
        return [
            None if hole else value
            for hole, value in zip(rng.random(ROWS) < 0.1, values, strict=True)
        ]

    return {
        "hired": rng.choice(["no", "yes", "wäre"], ROWS, p=[0.5, 0.4, 0.1]).tolist(),
        "sex": rng.choice(["F", "M"], ROWS).tolist(),
        "race": gaps(rng.choice(["a", "b"], ROWS).tolist()),
        "age": gaps(rng.integers(17, 90, ROWS).tolist()),
        "score": gaps(rng.normal(0, 1, ROWS).tolist()),
        "rank": gaps(rng.choice(WORDS, ROWS).tolist()),
        "member": gaps(rng.choice([True, False], ROWS).tolist()),
        "born": (
            rng.choice([dt.date(2000, 1, day) for day in range(1, 9)], ROWS).tolist()
        ),
        "seen": gaps(
            [
                NOON + dt.timedelta(hours=int(hours))
                for hours in rng.integers(0, 5000, ROWS)
            ]
        ),
        "design": rng.integers(1, 4, ROWS).tolist(),
    }


def pandas_frame():
    frame = pd.DataFrame(raw_columns())
    ranks = pd.CategoricalDtype(["none", *WORDS], ordered=True)
    return frame.astype(
        {
            "age": "Int64",
            "rank": ranks,
            "race": "category",
            "member": "boolean",
            "design": "float32",
        }
    )


def polars_frame():
    return pl.DataFrame(raw_columns()).with_columns(
        pl.col("rank").cast(pl.Enum(["none", *WORDS])),
        pl.col("race").cast(pl.Categorical),
        pl.col("age").cast(pl.Int8),
    )


def pyarrow_frame():
    table = pa.table(raw_columns())
    return table.set_column(2, "race", table.column("race").dictionary_encode())


FRAMES = {
    "pandas": cache(pandas_frame),
    "polars": cache(polars_frame),
    "pyarrow": cache(pyarrow_frame),
}


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def sealed(members):
    """A file of these members, with digests that match if it has any."""
    lines = [
        f"{digest(content)}  {name}\n"
        for name, content in members.items()
        if name != SUMS
    ]
    return zipped(
        members | ({SUMS: "".join(lines).encode()} if SUMS in members else {})
    )


def with_header(content, change):
    """The file with a header that ``change`` was called with."""
    members = members_of(content)
    header = json.loads(members["header.json"])
    change(header)
    return sealed(members | {"header.json": json.dumps(header).encode()})


def with_array(content, name, change):
    """The file with one array replaced by what ``change`` makes of it."""
    members = members_of(content)
    array = np.lib.format.read_array(io.BytesIO(members[f"{name}.npy"]))
    return sealed(members | {f"{name}.npy": array_bytes(change(array))})


def array_bytes(array, *, allow_pickle=False):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=allow_pickle)
    return buffer.getvalue()


def saved(fit):
    with tempfile.TemporaryDirectory() as folder:
        fit.save(Path(folder, "fit"))
        return Path(folder, "fit").read_bytes()


@cache
def small_file(library="pandas"):
    """A saved fit of every part (tree, rows, weights, bins, gaps), small enough to be
    damaged byte by byte.
    """
    frame = nw.from_native(FRAMES[library](), eager_only=True).select(
        "hired", "sex", "race", "age", "born", "design"
    )
    return saved(debias(frame.head(60).to_native(), "hired", "sex", weight="design"))


def refused(content, path, *, library="pandas"):
    """Say whether a file is refused, in the one way that is allowed; otherwise it must
    hold the very same fit.
    """
    path.write_bytes(content)
    try:
        fit = load(path)
    except StorageError as error:
        return str(path) in str(error)
    assert saved(fit) == small_file(library)
    return False
