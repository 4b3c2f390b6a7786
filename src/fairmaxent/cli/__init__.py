"""The command line: ``fairmaxent --help``.

`group` finds the commands by name: ``debias`` is ``debias_command`` in the module
`debias`.
"""

import os
import signal
import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    # Ctrl-C ends it quietly until there are streams to say so: what is being imported
    # would show a traceback. in the background it cannot
    can_be_interrupted = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if can_be_interrupted:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # The matrices of a fit are small: threads of the linear algebra would only wait for
    # each other, at full speed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What goes wrong is said in one line, not as the way that led there in polars.
    os.environ["RUST_BACKTRACE"] = "0"
    try:
        import click  # noqa: F401
    except ImportError:
        sys.stderr.write(
            "Error: the command line needs click, which is not installed; pip install"
            " click polars rich\n"
        )
        sys.exit(2)  # which no command takes for an answer
    from fairmaxent.cli.group import UNREADABLE, group
    from fairmaxent.cli.terminal import (
        clean_up_on_signals,
        end_at_once,
        prepare_streams,
    )

    prepare_streams(UNREADABLE)
    clean_up_on_signals()
    if can_be_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        group.main(prog_name="fairmaxent")
    except SystemExit as ending:
        if isinstance(ending.code, int) and ending.code:
            end_at_once(ending.code)
        raise
