"""Twenty clusters whose workers or scheduler are killed while the command runs: all of the result, or nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import polars as pl
import pytest

from clifiles import ROLES, biased_table, listing
from cliprocesses import WATCHED

pytest.importorskip("distributed", reason="distributed is not installed")

pytestmark = pytest.mark.process

STAGES = ("count", "base", "solve", "rows")
ROWS = 30_000
VICTIMS = ("worker", "workers", "scheduler", "worker", "scheduler")


@contextmanager
def running(*args, folder):
    """A process of Dask, killed at the end if nobody did it before."""
    process = subprocess.Popen([sys.executable, "-m", *args], cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def address_of(scheduler):
    """Where the scheduler says that it listens; what it logs afterwards is drained when it ends."""
    for line in scheduler.stderr:
        if "Scheduler at:" in line:
            return line.split()[-1]
    raise AssertionError("the scheduler did not start")


def started(folder, address):
    command = [sys.executable, "-c", WATCHED, "debias", "data.parquet", *ROLES, "--scheduler", address]
    command += ["--drop", "weight", "-o", "fair", "--model", "model.fme", "--rows", str(ROWS), "--seed", "1"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def read_until(process, stage):
    """Read what the command says until it is in a stage, or ends."""
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith(stage):
            break
    return said


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_all_or_nothing(number, tmp_path):
    rng = random.Random(number)
    folder, cluster = tmp_path / "data", tmp_path / "cluster"
    folder.mkdir(), cluster.mkdir()
    biased_table().select(pl.all().repeat_by(40).explode()).write_parquet(folder / "data.parquet")
    before = listing(folder)
    with ExitStack() as stack:
        local = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        scheduler = stack.enter_context(running("distributed.cli.dask_scheduler", *local, folder=cluster))
        address = address_of(scheduler)
        options = ["--no-dashboard", "--no-nanny", "--host", "127.0.0.1"]
        options += ["--nthreads", "1", "--local-directory", str(cluster)]
        worker = ["distributed.cli.dask_worker", address, *options]
        workers = [stack.enter_context(running(*worker, folder=cluster)) for _ in range(2)]
        command = started(folder, address)
        stack.callback(command.kill)
        said = read_until(command, STAGES[number % len(STAGES)])
        time.sleep(rng.random() / 4)
        victims = {"worker": workers[:1], "workers": workers, "scheduler": [scheduler]}[VICTIMS[number % len(VICTIMS)]]
        for victim in victims:
            os.kill(victim.pid, signal.SIGKILL)
        rest = command.communicate(timeout=120)[1] if victims != workers else ended_by_hand(command)
    said = "".join(said) + rest
    assert "Traceback" not in said
    if command.returncode == 0:
        written = pl.read_parquet(folder / "fair" / "*.parquet")
        assert len(written) == ROWS
        names = set(listing(folder)) - set(before)
        assert {name for name in names if not name.startswith("fair/")} == {"fair", "model.fme"}
        assert all(name.endswith(".parquet") for name in names if name.startswith("fair/"))
    else:
        assert listing(folder) == before, said
        assert said.splitlines()[-1].startswith("Error: "), said


def ended_by_hand(command):
    """A cluster without workers waits for new ones; whoever does not want to wait presses Ctrl-C."""
    try:
        return command.communicate(timeout=15)[1]
    except subprocess.TimeoutExpired:
        command.send_signal(signal.SIGINT)
        return command.communicate(timeout=600)[1]
