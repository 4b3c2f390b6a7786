"""The command in a process of its own, for tests of what happens to it from outside."""

import signal
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
    """Start the command in a folder, its streams piped and no signal ignored unless
    options say otherwise.
    """
    usual = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {
        "preexec_fn": heed_signals
    }
    return subprocess.Popen([*COMMAND, *args], cwd=folder, **(usual | options))


def heed_signals():
    """Tests may run under nohup, or in the background of a script, where signals are
    ignored, also by children.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
