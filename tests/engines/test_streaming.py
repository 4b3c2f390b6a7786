"""Rows drawn in batches, and files that are read and written in pieces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import ROLES, ROWS, biased_table, listing, run
from fairmaxent import debias
from fairmaxent.cli import result as cli_result
from fairmaxent.cli.group import group
from fairmaxent.engines.cluster_tasks import cluster_errors
from fairmaxent.engines.lazy_counts import Foreseen, foresee
from fairmaxent.errors import ClusterError, StorageError
from fairmaxent.files import parquet
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import as_lazy, named_part, scan_table
from fairmaxent.files.write import Staging
from fairmaxent.fit import pipeline

KEYS = ["sex", "income"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().write_csv("data.csv")
    biased_table().write_parquet("data.parquet")
    Path("parts/more").mkdir(parents=True)
    biased_table().head(100).write_parquet("parts/a.parquet")
    biased_table().tail(ROWS - 100).write_parquet("parts/more/b.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def fit():
    return debias(biased_table(), "income", "sex", random_state=0)


def counted(frame):
    return frame.group_by(KEYS).len().sort(KEYS)


@pytest.mark.parametrize(("n", "size"), [(1000, 64), (7, 3), (5, 1)])
def test_batches_together_are_the_sample_by_quota(fit, n, size):
    batches = list(fit.sample_batches(n, size=size))
    assert [len(batch) for batch in batches] == [size] * (n // size) + [n % size] * (
        n % size > 0
    )
    assert counted(pl.concat(batches)).equals(counted(fit.sample(n)))
    assert all(batch.schema == biased_table().schema for batch in batches)


def test_what_is_scanned(folder):
    assert scan_table("data.csv") is None
    assert scan_table("-") is None
    assert scan_table("missing.parquet") is None
    for path in ("data.parquet", "parts", "parts/**/*.parquet"):
        assert (
            scan_table(path)
            .collect()
            .sort(pl.all())
            .equals(biased_table().sort(pl.all()))
        )
    Path("empty").mkdir()
    with pytest.raises(StorageError, match="folder without Parquet"):
        scan_table("empty")
    with pytest.raises(StorageError, match=r"none-.* without Parquet files"):
        scan_table("none-*.parquet")
    Path("broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(StorageError, match=r"broken\.parquet as parquet"):
        scan_table("broken.parquet")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name",
    ["fair.parquet", "fair.csv", "fair.csv.gz", "fair.tsv", "fair.jsonl", "fair.arrow"],
)
def test_batches_in_every_format(fit, folder, name):
    with Staging([name]) as staging:
        staging.write_table(as_lazy(fit.sample_batches(300, size=70)), name)
    written = read_table(name).frame
    assert written.equals(
        pl.concat(fit.sample_batches(300, size=70)).select(written.columns)
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("source", "mode"),
    [("data.parquet", "rows"), ("parts", "weights"), ("parts/**/*.parquet", "top-up")],
)
def test_parquet_is_streamed_to_the_same_rates(folder, source, mode):
    arguments = [*ROLES, "--mode", mode, "--seed", 3, "--json", "--force"]
    streamed = json.loads(
        run(
            "debias", source, *arguments, "-o", "fair.parquet", "--save", "one.fme"
        ).stdout
    )
    whole = json.loads(
        run(
            "debias", "data.csv", *arguments, "-o", "twin.parquet", "--save", "two.fme"
        ).stdout
    )
    assert streamed["rows"] == whole["rows"]
    for when in ("before", "after"):
        for kind, rates in whole[when].items():
            assert streamed[when][kind] == pytest.approx(rates, abs=1e-9)
    ours, twin = pl.read_parquet("fair.parquet"), pl.read_parquet("twin.parquet")
    assert counted(ours).equals(counted(twin))
    assert fairmaxent.load("one.fme").table.places is None
    if mode == "weights":
        assert np.allclose(np.sort(ours["fair_weight"]), np.sort(twin["fair_weight"]))


@pytest.mark.parametrize(
    ("source", "part"), [("data.parquet", "data.parquet"), ("parts", "parts/a.parquet")]
)
def test_a_file_that_is_changed_while_it_is_read_is_refused(
    folder, monkeypatch, source, part
):
    # the same bytes at the same places, in another order
    plain = {"compression": "uncompressed", "statistics": False}
    table = pl.read_parquet(part)
    table.write_parquet(part, **plain)
    before, real = set(listing(folder)), cli_result.make_result

    def meddle(*args):
        table.reverse().write_parquet("new", **plain)
        os.replace("new", part)
        return real(*args)

    monkeypatch.setattr(cli_result, "make_result", meddle)
    outputs = ["--mode", "weights", "-o", "fair.parquet", "--save", "fit.fme"]
    result = run("debias", source, *ROLES, *outputs, code=5)
    assert (
        result.stderr
        == f"Error: {source} was changed while it was read; run the command again\n"
    )
    assert set(listing(folder)) == before


FAULTS = {
    "truncated": "cannot read split/1.parquet (",
    "damaged": "cannot read split/1.parquet (",
    "another type": "column 'age' is String in split/1.parquet, and Int64 in split/0",
    "a column less": "split/1.parquet has no column 'age', which split/0.parquet has",
}


def write_spoilt(folder, fault):
    """Three parts in a folder named split, of which the second has a fault."""
    table = biased_table().drop("weight")
    (folder / "split").mkdir()
    for number in range(3):
        part = table[number * 60 : number * 60 + 60]
        if number == 1 and fault == "another type":
            part = part.with_columns(pl.col("age").cast(pl.String))
        if number == 1 and fault == "a column less":
            part = part.drop("age")
        part.write_parquet(folder / "split" / f"{number}.parquet")
    spoilt = folder / "split" / "1.parquet"
    content = spoilt.read_bytes()
    if fault == "truncated":
        spoilt.write_bytes(content[: len(content) // 2])
    if fault == "damaged":
        spoilt.write_bytes(content[:4] + bytes(200) + content[204:])


@pytest.mark.parametrize("fault", FAULTS)
def test_the_part_that_cannot_be_read_is_named(folder, fault):
    write_spoilt(folder, fault)
    result = CliRunner().invoke(group, ["debias", "split", *ROLES, "-o", "f.parquet"])
    assert result.exit_code == 5, result.output
    assert FAULTS[fault] in result.stderr
    assert "; write that file again, or remove it" in result.stderr
    assert not (folder / "f.parquet").exists()


def test_no_file_is_looked_at_when_a_cluster_is_lost(folder, monkeypatch):
    monkeypatch.setattr(parquet, "_fault_in", stop)
    lost = pytest.raises(ClusterError, match="the Dask cluster failed or stopped")
    with lost, named_part("parts"), cluster_errors():
        raise TimeoutError("timed out")
    with pytest.raises(StoppedError), named_part("parts"):
        raise StorageError("whatever else")


@pytest.mark.parametrize("source", ["split", "split/*.parquet"])
def test_a_folder_is_loaded_for_what_needs_its_rows(folder, source, monkeypatch):
    table = biased_table().drop("weight")
    (folder / "split").mkdir()
    for number in range(2):
        part = table[number * 120 : number * 120 + 120]
        part.write_parquet(folder / "split" / f"{number}.parquet")
    asked = ["debias", source, *ROLES, "--release", "--seed", "1", "--json"]
    result = CliRunner().invoke(group, [*asked, "-o", "fair.parquet"])
    assert result.exit_code == 0, result.output
    assert len(pl.read_parquet("fair.parquet")) == 240
    small = CliRunner().invoke(group, [*asked, "--max-memory", "1kB"])
    assert small.exit_code != 0
    assert f"reading {source}" in small.stderr


class StoppedError(Exception):
    """Something that ends a run from outside."""


def stop(*_, **__):
    raise StoppedError


def test_a_run_that_did_not_end_is_resumed_from_its_counts(folder, monkeypatch):
    asked = ["debias", "parts", *ROLES, "--seed", "1", "--resume"]
    monkeypatch.setattr(pipeline, "fit_rows", stop)
    assert "StoppedError" in run(*asked, "-o", "fair.parquet", code=None).stderr
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert (folder / "fair.parquet.counts").is_dir()
    assert (folder / "fair.parquet.counts").stat().st_mode & 0o077 == 0

    other = run(*asked, "-o", "fair.parquet", "--bins", "3", code=5)
    assert "fair.parquet.counts holds counts of other data, or for other options" in (
        other.stderr
    )
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "read_rows", stop)  # nothing is read again
        run(*asked, "-o", "fair.parquet", "--base-share", "0.2")
    assert not (folder / "fair.parquet.counts").exists()
    run(
        "debias",
        "parts",
        *ROLES,
        "--seed",
        "1",
        "--base-share",
        "0.2",
        "-o",
        "t.parquet",
    )
    assert pl.read_parquet("fair.parquet").equals(pl.read_parquet("t.parquet"))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (
            ["data.csv", "-o", "f.csv"],
            "data.csv is read into memory at once, as",
        ),
        (
            ["parts", "-o", "f.csv", "--release"],
            "read into memory at once, as these options need",
        ),
        (["parts"], "--resume needs -o: counts are kept beside it"),
        (
            ["parts", "-o", "f.csv", "--model", "logistic"],
            "--resume cannot go together",
        ),
    ],
)
def test_what_cannot_be_resumed_is_refused(folder, args, why):
    result = run("debias", *args, *ROLES, "--resume", code=2)
    assert why in result.stderr
    assert not (folder / "f.csv").exists()


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A folder of three parts whose rows are nearly all distinct."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("wide")
    for number in range(3):
        columns = {f"c{place}": rng.integers(9, size=120_000) for place in range(8)}
        named = {name: column.astype(str) for name, column in columns.items()}
        pl.DataFrame(named).write_parquet(folder / f"{number}.parquet")
    return folder


def test_workers_share_the_distinct_rows_and_the_client_has_none():
    few, many = Foreseen(1_000, (9,) * 8), Foreseen(5_000_000, (9,) * 8)
    assert few.client == many.client < 300e6
    for workers in (2, 10):
        more = many.worker(workers, 250_000) - few.worker(workers, 250_000)
        assert more == pytest.approx(90 * (many.distinct - few.distinct) / workers)


@pytest.mark.more
def test_the_distinct_rows_of_a_fit_are_foreseen(wide):
    found = foresee(nw.from_native(pl.scan_parquet(wide)))
    distinct = pl.read_parquet(wide).n_unique()
    assert found.distinct == pytest.approx(distinct, rel=0.1)
    assert found.sizes == (9,) * 8


@pytest.mark.slow
# Dask's own call of pandas, when it reads Parquet
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_the_bytes_that_a_fit_reads_are_foreseen(wide):
    """Dask says of no query how much it read; the system does."""
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    counter = Path("/proc/self/io")
    if not counter.exists():
        pytest.skip("this system does not say what a process reads")

    def read_so_far():
        return int(counter.read_text().split()[1])

    frame = pytest.importorskip("dask.dataframe").read_parquet(wide)
    with dask.config.set(scheduler="synchronous"):
        debias(frame.partitions[0], "c0", "c1", detail="bins")  # reads modules, too
        before = read_so_far()
        debias(frame, "c0", "c1", detail="bins")
    size = sum(part.stat().st_size for part in wide.iterdir())
    assert read_so_far() - before == pytest.approx(Foreseen.passes * size, rel=0.3)


PEAK = """
import re, sys
from pathlib import Path
import polars
from fairmaxent import debias
debias(polars.scan_parquet(sys.argv[1]), "c0", "c1", detail="bins")
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.process
def test_the_memory_of_a_fit_is_foreseen(wide):
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say what a process takes")
    limits = {"POLARS_ROW_GROUP_PREFETCH_SIZE": "4", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(wide)],
        env=os.environ | limits,
        capture_output=True,
        check=True,
        text=True,
    )
    found = foresee(nw.from_native(pl.scan_parquet(wide)))
    assert found.memory == pytest.approx(1024 * int(done.stdout), rel=0.3)


def test_inspect_says_of_a_folder_what_a_fit_takes(folder):
    size = sum(part.stat().st_size for part in Path("parts").rglob("*.parquet"))
    told = run("inspect", "parts", *ROLES).stdout
    assert f"reads it twice ({2 * size / 1000:.1f} kB in all)" in told
    assert "polars on this machine is the cheapest way" in told
    assert "The client of a cluster would take about 200.0 MB, and each of 10" in told
    alone = run("inspect", "data.parquet", *ROLES).stdout
    assert "reads it" not in alone
    small = run("inspect", "parts", *ROLES, "--max-memory", "1kB", code=3).stderr
    assert "reading parts would take about" in small
    assert "let a Dask cluster do it (--scheduler)" in small
    asked = ("debias", "parts", *ROLES, "-o", "fair.csv", "--release")
    refused = run(*asked, "--max-memory", "1kB", code=3).stderr
    assert "reading parts whole (for rows to share, declare the domain" in refused
