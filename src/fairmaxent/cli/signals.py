"""Being told to end is no reason to leave files behind: unfinished ones are removed on every signal that can be caught.

Python runs handlers only in the main thread, which may be busy in a library for minutes. So a second thread waits for
the signals. Ctrl-C is different: it interrupts the main thread, which then says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

from fairmaxent.files.write import MAKING, remove_all

_ENDING = ("SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU")
_interrupted = threading.Event()
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it


def clean_up_on_signals() -> None:
    """Remove unfinished files and end when a signal says so; one that is ignored, as under nohup, stays ignored."""
    known = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    ending = {number for number in known if signal.getsignal(number) is signal.SIG_DFL}
    for number in ending:
        signal.signal(number, _end)
    if os.name == "nt":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(reader, ending), daemon=True).start()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed; a library that was being imported may have turned that into an error of its own."""
    return _interrupted.is_set()


def end_at_once(code: int) -> NoReturn:
    """End the process without closing Python down.

    After a failure or Ctrl-C, threads of an engine may still be at work on rows that nobody wants any more. If they
    come back to Python while it closes down, they abort the process, and its exit code says nothing.
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


def _leave(code: int) -> NoReturn:
    """End as soon as files that belong together are all there, or none of them."""
    with MAKING:
        remove_all()
        if sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR)
            sys.stderr.flush()
        os._exit(code)
