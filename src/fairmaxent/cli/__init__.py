"""The command line: ``fairmaxent --help``.

Each command is a module in `commands` with a click command called ``command``; `group` finds them by name.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    # The matrices of a fit are small: threads of the linear algebra would only wait for each other, at full speed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import click  # noqa: F401
    except ImportError:
        sys.stderr.write("Error: the command line needs click; pip install 'fairmaxent[cli]'\n")
        sys.exit(3)
    from fairmaxent.cli.group import group

    # Being told to end is no reason to leave half a file behind: let everything that is open be closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    group.main(prog_name="fairmaxent")
