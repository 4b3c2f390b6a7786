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
    worker = threading.Thread(target=run)
    late: list[BaseException] = []
    while worker.ident is None or worker.is_alive():
        try:
            if worker.ident is None:
                worker.start()
            worker.join()
        except RuntimeError:  # there is no memory for another thread
            run()
            break
        except BaseException as problem:
            late.append(problem)
    return late
