"""Steps that belong together: Ctrl-C between them takes effect after the last one.

Python raises KeyboardInterrupt in the main thread, at any point. So the steps are done by another thread, for which the
main one waits, however often it is interrupted. Exchanging the handler instead would undo what polars has done to it,
and a query could no longer be interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

# Held while such steps are going on; whoever ends the process waits for it.
BUSY = threading.RLock()


def undisturbed(steps: Callable[[], Result]) -> Result:
    """Do the steps, and only then let an interrupt take effect."""
    if threading.current_thread() is not threading.main_thread():
        with BUSY:
            return steps()
    results: list[Result] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            with BUSY:
                results.append(steps())
        except BaseException as problem:
            problems.append(problem)

    late = _run_to_the_end(run)
    for problem in (*late, *problems):
        raise problem
    return results[0]


def _run_to_the_end(run: Callable[[], None]) -> list[BaseException]:
    """Run in another thread, and return what interrupted the waiting for it."""
    begun, finished = threading.Lock(), threading.Event()
    late: list[BaseException] = []

    def once() -> None:
        if begun.acquire(blocking=False):
            try:
                run()
            finally:
                finished.set()

    def wait() -> None:
        try:
            if not begun.locked():  # a second thread does no harm, if the first one was about to begin
                threading.Thread(target=once).start()
            finished.wait()  # not join(), which takes a thread for ended once it was interrupted (Python 3.11)
        except RuntimeError:  # there is no memory for another thread
            once()
        except BaseException as problem:
            late.append(problem)
            wait()

    wait()
    return late
