"""A Parquet table as a real process streams it: interrupted at every stage, and under a
limit of its memory.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from clifiles import QUIET, ROLES, ROWS, biased_table, listing
from cliprocesses import WATCHED, heed_signals

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.outofcore import ADDRESS_SPACE, THREADS

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path):
    """Rows enough for a query to take a moment, and distinct ones enough for the
    solve.
    """
    many = biased_table().select(pl.all().repeat_by(600).explode())
    ages = pl.Series("age", pl.int_range(len(many), eager=True) * 7919 % 73 + 17)
    weights = pl.Series("weight", pl.int_range(len(many), eager=True) * 104_729 % 97)
    many.with_columns(ages, weights).write_parquet(tmp_path / "data.parquet")
    return tmp_path


def start(*args, folder, **options):
    environment = os.environ | {
        "POLARS_MAX_THREADS": str(THREADS),
        "OPENBLAS_NUM_THREADS": "1",
    }
    piped = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": environment,
    }
    command = [
        sys.executable,
        "-c",
        WATCHED,
        "debias",
        "data.parquet",
        *ROLES,
        *QUIET,
        *args,
    ]
    return subprocess.Popen(
        command, cwd=folder, **piped, **({"preexec_fn": heed_signals} | options)
    )


@pytest.mark.parametrize(
    ("stage", "after"),
    [("read", 0), ("count", 0.02), ("base", 0), ("solve", 0), ("rows", 0.1)],
)
def test_ctrl_c_at_every_stage_leaves_nothing(folder, stage, after):
    before = listing(folder)
    # More rows than are drawn before the signal comes.
    process = start(
        "-o",
        "fair.parquet",
        "--save",
        "fit.fme",
        "--rows",
        "100000000",
        folder=folder,
    )
    for line in process.stderr:
        if line.startswith(stage):
            break
    time.sleep(after)  # into the query
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    # Not always the last line: polars' thread that compresses may still be telling of
    # its panic.
    assert "Error: interrupted; no incomplete file was left behind" in said.splitlines()
    assert listing(folder) == before


def _limited(megabytes):
    most = int(megabytes * 1e6)
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux limits addresses as a shell's ulimit -v says",
)
def test_the_documented_address_space_is_enough(folder):
    arguments = ["-o", "fair.parquet", "--report", "report.json"]
    process = start(*arguments, folder=folder, preexec_fn=_limited(ADDRESS_SPACE))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert (
        pl.scan_parquet(folder / "fair.parquet").select(pl.len()).collect().item()
        == 600 * ROWS
    )
    assert (folder / "report.json").exists()


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux limits addresses as a shell's ulimit -v says",
)
def test_too_little_memory_leaves_no_table(folder):
    process = start("-o", "fair.parquet", folder=folder, preexec_fn=_limited(400))
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said.count("\n")) == (3, 1)
    assert "0.4 GB of addresses (ulimit -v)" in said
    assert not (folder / "fair.parquet").exists()
