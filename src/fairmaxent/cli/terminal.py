"""The process from outside: its streams, its progress, and the signals that end it.

What is printed passes through `echo`, so that no data can steer the terminal. Being
told to end is no reason to leave files behind: unfinished ones are removed on every
signal that can be caught. Python runs handlers only in the main thread, which may be
busy in a library for minutes, so a second thread waits for the signals. Ctrl-C is
different: it interrupts the main thread, which then says so.
"""

import contextlib
import importlib.util
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import click

from fairmaxent.errors import LimitError, Option, StorageError
from fairmaxent.plain_text import json_text, visible
from fairmaxent.progress import STEPS, Progress, silent

_CLOSED_STDOUT = (
    "Error: stdout is closed, so no result could be shown; redirect it to a file, or to"
    " /dev/null\n"
)
# bytes that the libraries reserve, though they use little of it
_LEAST_ADDRESSES = 1.5e9
_ENDING = (
    "SIGHUP",
    "SIGQUIT",
    "SIGTERM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGVTALRM",
    "SIGPROF",
    "SIGXCPU",
    "SIGBREAK",
)
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it
_interrupted = threading.Event()


def prepare_streams(unwritable: int) -> None:
    """Make the streams safe to use.

    If stdout is closed, end with the code ``unwritable`` before any work is done.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Otherwise the next file that is opened would get the number, and what is
            # printed would go into it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (it stays open)
    if sys.stdout is None:
        sys.stderr.write(_CLOSED_STDOUT)
        sys.exit(unwritable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Windows would write files and pipes in an old code page, which has no ε;
            # tables are UTF-8 there, too.
            is_redirected = os.name == "nt" and not stream.isatty()
            if is_redirected and "PYTHONIOENCODING" not in os.environ:
                stream.reconfigure(encoding="utf-8")
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning


def check_addresses() -> None:
    """Refuse a limit of addresses under which libraries end the process silently."""
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= limit < _LEAST_ADDRESSES:
            raise LimitError(
                f"this process may have {limit / 1e9:.1f} GB of addresses (ulimit -v),"
                f" and the libraries reserve {_LEAST_ADDRESSES / 1e9:.1f} GB; raise"
                " that limit, and limit memory with ",
                Option("max_memory"),
            )


def echo(text: str, *, err: bool = False) -> None:
    """Print, with characters that would steer a terminal as escapes."""
    try:
        click.echo(visible(text), err=err)
    except BrokenPipeError:
        raise
    except OSError as problem:
        name = "stderr" if err else "stdout"
        raise StorageError(
            f"cannot write to {name}: {problem.strerror}; free some space, or"
            " redirect it"
        ) from problem


def forget_stdout() -> None:
    """Discard what is still buffered, or Python would complain when it exits."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a library's warning in one line; it may quote the data."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"Warning: {visible(' '.join(str(message).split()))}\n")


def clean_up_on_signals() -> None:
    """Remove unfinished files and end when a signal says so.

    One that is ignored, as under nohup, stays ignored.
    """
    known = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    ending = {number for number in known if signal.getsignal(number) is signal.SIG_DFL}
    for number in ending:
        signal.signal(number, _end)
    sys.unraisablehook = _end_or_say
    if os.name == "nt":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(
        target=_wait,
        args=(reader, ending),
        daemon=True,
    ).start()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed.

    A library that was being imported may have made an error of its own of it.
    """
    return _interrupted.is_set()


def end_at_once(code: int) -> NoReturn:
    """End without closing Python down.

    Threads of an engine that come back to it then would abort the process.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    _leave(code)


def _wait(reader: int, ending: set[signal.Signals]) -> None:
    while True:
        for number in os.read(reader, 64):
            if number == signal.SIGINT:
                _interrupted.set()
            if number in ending:
                _end(number, None)


def _end(number: int, _: FrameType | None) -> NoReturn:
    _leave(128 + number)


def _end_or_say(unraised: "sys.UnraisableHookArgs") -> None:
    """End if Ctrl-C came where Python cannot raise it, as while it cleans up."""
    if unraised.exc_type is KeyboardInterrupt:
        _leave(128 + signal.SIGINT)
    sys.__unraisablehook__(unraised)


def _leave(code: int) -> NoReturn:
    """End as soon as no file is half made, and remove those that are unfinished."""
    # The module is not there yet if nothing was written.
    writing = sys.modules.get("fairmaxent.files.write")
    with getattr(writing, "MAKING", contextlib.nullcontext()):
        getattr(writing, "remove_all", lambda: None)()
        if sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR)
            sys.stderr.flush()
        os._exit(code)


def json_record(record: Any) -> str:
    """Plain JSON: infinite and NaN are null, what has no JSON form is its text."""
    from fairmaxent.data.levels import value_text

    return json_text(record, indent=2, text=value_text)


@contextlib.contextmanager
def bar(text: str) -> Iterator[Progress]:
    """Show a bar with the stage that is going on, if stderr is a terminal."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield silent
        return
    from rich import progress as rich
    from rich.console import Console

    from fairmaxent.document.text import on_one_line

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        text = on_one_line(text)
        task = shown.add_task(text, total=None)

        def report(stage: str, share: float) -> None:
            # A share of zero may last: the bar then moves without end.
            step = STEPS.get(stage, f"{text}: {stage}")
            shown.update(
                task,
                description=step,
                completed=share,
                total=1.0 if share else None,
            )

        yield report
