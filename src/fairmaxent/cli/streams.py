"""The three standard streams: what is printed passes through `echo`, so that no data can steer the terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Any

import click

from fairmaxent.errors import StorageError
from fairmaxent.plain_text import visible

_CLOSED_STDOUT = "Error: stdout is closed, so no result could be shown; redirect it to a file, or to /dev/null\n"


def prepare_streams(unwritable: int) -> None:
    """Make the streams safe to use; if stdout is closed, end with the code ``unwritable`` before any work is done."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Otherwise the next file that is opened would get the number, and what is printed would go into it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (it stays open)
    if sys.stdout is None:
        sys.stderr.write(_CLOSED_STDOUT)
        sys.exit(unwritable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning


def echo(text: str, *, err: bool = False) -> None:
    """Print, with characters that would steer a terminal as escapes."""
    try:
        click.echo(visible(text), err=err)
    except BrokenPipeError:
        raise
    except OSError as problem:
        name = "stderr" if err else "stdout"
        raise StorageError(f"cannot write to {name}: {problem.strerror}; free some space, or redirect it") from problem


def check_stdin() -> None:
    """Refuse to read from a stdin that is closed."""
    if sys.stdin is None:
        raise StorageError("stdin is closed, so there is no table to read; name a file, or redirect one to stdin")


def forget_stdout() -> None:
    """Nobody reads stdout any more: discard what is still buffered, or Python would complain when it exits."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a library's warning in one line; it may quote the data."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"Warning: {visible(' '.join(str(message).split()))}\n")
