"""The command in a process of its own, for tests of what happens to it from outside."""

import subprocess
import sys

COMMAND = [sys.executable, "-m", "fairmaxent"]

# The command itself, saying on stderr where it is: a bar is shown on terminals only.
WATCHED = """
import contextlib, sys
from fairmaxent.cli import main
from fairmaxent.cli import terminal as progress

@contextlib.contextmanager
def bar(text):
    yield lambda stage, share: print(stage, share, file=sys.stderr, flush=True)

progress.bar = bar
main()
"""


def start(*args, folder, **options):
    """Start the command in a folder, with its streams piped unless options say otherwise."""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *args], cwd=folder, **(piped | options))
