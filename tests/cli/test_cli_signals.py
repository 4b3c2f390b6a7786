"""Runs that are told to end, killed, or not alone: nothing is lost, overwritten,
half-written or left behind.
"""

import random
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

import fairmaxent
from clifiles import QUIET, ROLES, biased_table, listing
from cliprocesses import COMMAND, WATCHED, start

pytestmark = pytest.mark.process
ENDING = [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU]
OUTPUTS = ["-o", "fair.csv", "--save", "fit.fme", "--report", "report.md"]


@pytest.fixture
def folder(tmp_path):
    biased_table().write_csv(tmp_path / "data.csv")
    return tmp_path


def wait_until_it_stages(folder, count=1):
    """Wait until there are temporary files: a run that reads stdin then waits for
    it.
    """
    ended = time.monotonic() + 60
    while len(list(folder.glob(".fairmaxent-*"))) < count:
        assert time.monotonic() < ended
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM])
def test_told_to_end_it_leaves_nothing(folder, number):
    before = listing(folder)
    process = start("debias", "-", *ROLES, *QUIET, *OUTPUTS, folder=folder)
    wait_until_it_stages(folder)
    process.send_signal(number)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (128 + number, b"")
    assert listing(folder) == before


def test_under_nohup_it_goes_on(folder):
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = start("debias", "-", *ROLES, *QUIET, *OUTPUTS, folder=folder, **ignoring)
    wait_until_it_stages(folder)
    process.send_signal(signal.SIGHUP)
    process.communicate((folder / "data.csv").read_bytes(), timeout=600)
    assert process.returncode == 0
    assert (folder / "fair.csv").exists()


def pair(folder, *options):
    """Start two runs with different seeds, let both work at the same time, and return
    how they ended.
    """
    runs = [
        start(
            "debias",
            "-",
            *ROLES,
            *QUIET,
            *OUTPUTS,
            "--seed",
            seed,
            *options,
            folder=folder,
        )
        for seed in "12"
    ]
    wait_until_it_stages(folder, 6)
    content = (folder / "data.csv").read_bytes()
    for one in runs:
        one.stdin.write(content)
        one.stdin.flush()
    for one in runs:
        one.stdin.close()
        one.stdin = None
    said = [one.communicate(timeout=120)[1].decode() for one in runs]
    return [one.returncode for one in runs], said


def whose(folder):
    """The seed of the table, and of the model; each file is complete."""
    fit = fairmaxent.load(folder / "fit.fme")
    table = pl.read_csv(folder / "fair.csv")
    seeds = [
        seed
        for seed in (1, 2)
        if table.equals(fit.sample(len(table), random_state=seed))
    ]
    return seeds, fit.request.random_state


@pytest.mark.parametrize("force", [False, True])
def test_of_two_runs_at_the_same_time_one_is_done_and_the_other_refused_unless_forced(
    folder, force
):
    codes, said = pair(folder, *(["--force"] if force else []))
    seeds, seed = whose(folder)
    assert set(listing(folder)) == {"data.csv", "fair.csv", "fit.fme", "report.md"}
    if force:  # each file is complete, and of one of the runs
        assert codes == [0, 0], said
        return
    assert seeds == [seed]
    assert f"--seed {seed}" in (folder / "report.md").read_text().replace("\\", "")
    assert sorted(codes) == [0, 5], said
    assert codes[seed - 1] == 0
    assert "was made by another program in the meantime" in said[2 - seed]


def test_told_to_end_while_a_library_works_it_ends_at_once(folder):
    """Handlers in Python run only after the library's call, which would here write for
    minutes.
    """
    biased_table().write_parquet(folder / "data.parquet")
    before = listing(folder)
    args = [
        "debias",
        "data.parquet",
        *ROLES,
        *QUIET,
        "-o",
        "fair.parquet",
        "--rows",
        "300000000",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, *args],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.startswith("rows"):
            break
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert listing(folder) == before


def hidden(folder):
    return {path.name for path in folder.glob(".fairmaxent-*")}


@pytest.mark.slow
def test_two_hundred_signals_at_random_moments(folder):
    """Signals of six kinds, one of which cannot be caught, at any moment of a run of a
    second or two.
    """
    rng = random.Random(13)
    biased_table().write_parquet(folder / "data.parquet")
    precious = {
        "fair.csv": b"old table",
        "fit.fme": b"old model",
        "report.md": b"old report",
    }
    codes, left = [], set()
    for turn in range(200):
        for name, content in precious.items():
            (folder / name).write_bytes(content)
        number = rng.choice([*ENDING, signal.SIGINT, signal.SIGKILL])
        data = rng.choice(["data.csv", "data.parquet"])
        process = start(
            "debias",
            data,
            *ROLES,
            *QUIET,
            *OUTPUTS,
            "--force",
            "--estimate",
            "none",
            folder=folder,
        )
        time.sleep(rng.uniform(0.05, 2.5))
        process.send_signal(number)
        said = process.communicate(timeout=600)[1]
        codes.append(process.returncode)
        if number != signal.SIGKILL:
            # Before the command line has started, Python itself ends in one of two
            # ways.
            early = (
                (-number, 1)
                if number == signal.SIGINT and b"Error: " not in said
                else (-number,)
            )
            assert process.returncode in (0, 128 + number, *early), (turn, said)
            assert hidden(folder) <= left, (turn, number)
        left = hidden(folder)
        now = {
            name: content
            for name, content in listing(folder).items()
            if not name.startswith(".fairmaxent-")
        }
        assert set(now) == {"data.csv", "data.parquet", *precious}, (turn, number)
        changed = [now[name] != precious[name] for name in precious]
        # they get their names in order
        assert changed == sorted(changed, reverse=True), (turn, number, changed)
        if changed[0]:
            assert len(pl.read_csv(folder / "fair.csv")) == len(biased_table())
        if changed[1]:
            fairmaxent.load(folder / "fit.fme")
    assert codes.count(0) < 150
    subprocess.run(
        [*COMMAND, "debias", "data.csv", *ROLES, *QUIET, *OUTPUTS, "--force"],
        cwd=folder,
        check=True,
    )
    # of runs that were killed
    assert set(listing(folder)) == {"data.csv", "data.parquet", *precious, *left}
