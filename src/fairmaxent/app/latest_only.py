"""Live work: a slider asks for the next fit before the last one is done, and only the newest matters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from fairmaxent.app.refusals import SupersededError
from fairmaxent.progress import Progress

Result = TypeVar("Result")


class LatestOnly:
    """One thread that does the newest work; what is older stops when it next reports its progress."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._newest = 0

    def submit(self, work: Callable[[Progress], Result]) -> Future[Result]:
        """Do this instead of whatever was asked for before."""
        number = self._next()

        def progress(stage: str, share: float) -> None:
            if number != self._newest:
                raise SupersededError

        def run() -> Result:
            progress("waiting", 0.0)
            return work(progress)

        return self._pool.submit(run)

    def stop(self) -> None:
        """Stop the work, and take no more."""
        self._next()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> int:
        with self._lock:
            self._newest += 1
            return self._newest
