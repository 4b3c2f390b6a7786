"""How a command must end, whatever it was given."""

from __future__ import annotations

import os
import resource

from call_ends import soon
from click.testing import CliRunner

from clifiles import biased_table, listing
from fairmaxent.cli.group import group
from fairmaxent.fit import pipeline
from quiet import Seeded

ENDS = (0, 2, 3, 4, 5)  # 1 would be a bug
BYTES = 2 * 2**30


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


def prepared(folder, monkeypatch):
    """Go to a folder with a table, and with the files that commands name beside it."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(pipeline, "OpenDP", lambda: Seeded(0))  # opendp is optional, and has no seed
    biased_table().write_csv(folder / "clean.csv")
    (folder / "domain.toml").write_text(DOMAIN)
    (folder / "margins.csv").write_text(MARGINS)
    return folder


def run(arguments, folder, outputs=()):
    """Run a command in the current folder, and return its result.

    Its exit code has a meaning, failures are one line, nothing that was there changes, nothing else is left, and
    outputs are there exactly if it says so.
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
    assert peak_bytes() < BYTES
    for name in done:
        os.remove(folder / name)
    return result


def peak_bytes():
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
