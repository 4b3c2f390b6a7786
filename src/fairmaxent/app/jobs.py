"""Work of the app: live fits, of which only the newest matters, and slow work with progress and a way to stop it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from fairmaxent.app.refusals import StaleError, StoppedError, SupersededError, problem_text
from fairmaxent.progress import Progress

_REMEMBERED = 20  # jobs that can still be asked about
Result = TypeVar("Result")


class LatestOnly:
    """One thread that does the newest work; what is older stops when it next reports its progress."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._numbers = itertools.count(1)
        self._newest = 0

    def submit(self, work: Callable[[Progress], Result]) -> Future[Result]:
        """Do this instead of whatever was asked for before: a slider asks again before the last fit is done."""
        self._newest = number = next(self._numbers)

        def progress(stage: str, share: float) -> None:
            if number != self._newest:
                raise SupersededError

        def run() -> Result:
            progress("waiting", 0.0)
            return work(progress)

        return self._pool.submit(run)

    def stop(self) -> None:
        """Stop the work, and take no more."""
        self._newest = 0
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(eq=False)
class Job:
    """One piece of slow work, and how far it is."""

    number: int
    kind: str
    stage: str = ""
    share: float = 0.0
    state: Literal["running", "done", "failed", "stopped"] = "running"
    result: Any = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values, for the page."""
        return dict(vars(self))

    def stop(self, why: str | None = None) -> None:
        """Stop it, if it runs; its thread ends when it next reports its progress."""
        if self.state == "running":
            self.error, self.state = why, "stopped" if why is None else "failed"


class Jobs:
    """The slow work of a session; of each kind, the newest job stops the one before."""

    def __init__(self, hide: str) -> None:
        self._hide = hide
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[object, Job] = {}

    def start(self, kind: str, work: Callable[[Progress], Any]) -> Job:
        """Begin work in a thread of its own."""
        with self._lock:
            self.stop_all([kind])
            job = Job(next(self._numbers), kind)
            self._jobs[job.number] = job
            for number in list(self._jobs)[:-_REMEMBERED]:
                del self._jobs[number]
        threading.Thread(target=self._run, args=(job, work), name=f"job-{kind}", daemon=True).start()
        return job

    def get(self, number: object) -> Job | None:
        """A job by its number, if it is known."""
        return self._jobs.get(number) if isinstance(number, int) else None

    def running(self) -> list[Job]:
        """What is under way."""
        return [job for job in list(self._jobs.values()) if job.state == "running"]

    def stop_all(self, kinds: Collection[str] | None = None, why: str | None = None) -> None:
        """Stop what is running, of some kinds or of all; ``why``: what the page says about it."""
        for job in self.running():
            if kinds is None or job.kind in kinds:
                job.stop(why)

    def _run(self, job: Job, work: Callable[[Progress], Any]) -> None:
        def progress(stage: str, share: float) -> None:
            if job.state != "running":
                raise StoppedError
            job.stage, job.share = stage, share

        try:
            result, error = work(progress), None
        except StaleError:
            result, error = None, "Another table was opened meanwhile. Reload this page."
        except Exception as problem:
            result, error = None, problem_text(problem, hide=self._hide)
        if job.state != "running":  # it was stopped
            return
        if error is None:
            job.result, job.share, job.state = result, 1.0, "done"
        else:
            job.error, job.state = error, "failed"
