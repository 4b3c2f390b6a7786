"""How a generated call or command must end, and soon, so that a loop without end is
found instead of waited for.
"""

import os
import resource
import signal
import warnings
from contextlib import contextmanager

from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, settings

from clifiles import biased_table, listing
from fairmaxent import FairMaxEntError
from fairmaxent.cli.group import group
from fairmaxent.fit import pipeline
from quiet import Seeded

CALLS = int(os.environ.get("FUZZ_CALLS", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
SECONDS = 20  # that this process may compute
BYTES = 2 * 2**30
ENDS = (0, 2, 3, 4, 5)  # of a command; 1 would be a bug
PIECES = (
    *(b'"', b"\x00", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b",", b"\t", b"=1+1"),
    *(b"\x1b]52;c;AA\a", b"\xe2\x80\xae"),
)
DOMAIN = """
[levels]
sex = ["Female", "Male"]
race = ["Black", "Other", "White"]
job = ["clerk", "cook", "nurse"]
income = ["<=50K", ">50K"]
[edges]
age = [17, 30, 50, 90]
weight = [0.5, 1.0, 1.5]
"""
MARGINS = "columns,level,value\nsex,Female,0.5\nsex,Male,0.5\njob,clerk,0.2\njob,cook,0.3\njob,nurse,0.5\n"


def generated(share):
    """Settings of a test that makes this share of the calls."""
    return settings(
        max_examples=round(CALLS * share),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        # shrinking takes minutes where a call takes a second
        phases=[Phase.explicit, Phase.generate],
    )


def mutated(content, rng):
    """Bits flipped, pieces lost, repeated or put in, the end cut off."""
    raw = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at, end = int(rng.integers(len(raw) + 1)), int(rng.integers(1, 100))
        piece, how = bytes(raw[at : at + end]), int(rng.integers(6))
        flipped = (
            bytes([piece[0] ^ (1 << int(rng.integers(8)))]) + piece[1:]
            if piece
            else b""
        )
        added = PIECES[int(rng.integers(len(PIECES)))] + piece
        raw[at : at + end] = (flipped, flipped, added, b"", piece + piece, b"")[how]
        del raw[at if how == 5 else len(raw) :]
    return bytes(raw)


@contextmanager
def soon():
    """Raise an error in whatever takes longer."""

    def stop(*_):
        raise AssertionError(f"it took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def ends_well():
    """Let the library refuse a call, in a message that can be read, and soon."""
    problem = ""
    with soon(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except FairMaxEntError as own_error:
            problem = str(own_error)
    assert len(problem) < 5000


def prepared(folder, monkeypatch):
    """Go to a folder with a table, and with the files that commands name beside it."""
    monkeypatch.chdir(folder)
    # opendp is optional, and has no seed
    monkeypatch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
    biased_table().write_csv(folder / "clean.csv")
    (folder / "domain.toml").write_text(DOMAIN)
    (folder / "margins.csv").write_text(MARGINS)
    return folder


def run(arguments, folder, outputs=()):
    """Run a command in the current folder, and return its exit code."""
    return ran(arguments, folder, outputs)[0].exit_code


def ran(arguments, folder, outputs=()):
    """Run a command in the current folder; return how it ended, and what it wrote.

    It has a meaning, failures are one line, nothing that was there changes, nothing
    else is left, and outputs are there exactly if it says so.
    """
    before = listing(folder)
    with soon():
        result = CliRunner().invoke(group, arguments, prog_name="fairmaxent")
    assert result.exit_code in ENDS, (arguments, result.stderr, result.exception)
    assert "Traceback" not in result.output
    after = listing(folder)
    done = {name: after.pop(name) for name in outputs if name in after}
    assert after == before, (set(after) ^ set(before), result.stderr)
    assert set(done) == (set(outputs) if result.exit_code == 0 else set())
    if result.exit_code not in (0, 2):
        assert len(result.stderr.splitlines()) == 1, result.stderr
    assert not any(sign in result.output for sign in "\x1b\x07\u202e")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < BYTES
    for name in done:
        os.remove(folder / name)
    return result, done
