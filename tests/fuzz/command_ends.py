"""How a command must end, whatever it was given."""

from __future__ import annotations

import os
import resource
import time

from click.testing import CliRunner

from clifiles import listing
from fairmaxent.cli.group import group

ENDS = (0, 2, 3, 4, 5)  # 1 would be a bug
SECONDS = 20
BYTES = 2 * 2**30


def run(arguments, folder, outputs=()):
    """Run a command in the current folder, and return its result.

    Its exit code has a meaning, failures are one line, nothing that was there changes, nothing else is left, and
    outputs are there exactly if it says so.
    """
    before = listing(folder)
    began = time.process_time()
    result = CliRunner().invoke(group, arguments, prog_name="fairmaxent")
    seconds = time.process_time() - began
    assert result.exit_code in ENDS, (arguments, result.stderr)
    assert "Traceback" not in result.output
    after = listing(folder)
    done = {name: after.pop(name) for name in outputs if name in after}
    assert after == before, (set(after) ^ set(before), result.stderr)
    assert set(done) == (set(outputs) if result.exit_code == 0 else set())
    if result.exit_code not in (0, 2):
        assert len(result.stderr.splitlines()) == 1, result.stderr
    assert not any(sign in result.output for sign in "\x1b\x07\u202e")
    assert seconds < SECONDS
    assert peak_bytes() < BYTES
    for name in done:
        os.remove(folder / name)
    return result


def peak_bytes():
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
