"""Work of the app: live fits, of which the newest matters, slow work, and failures.

Light to import, so that the page is there at once.
"""

import itertools
import os
import re
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from fairmaxent.errors import FairMaxEntError, InputError, is_out_of_memory
from fairmaxent.plain_text import visible
from fairmaxent.progress import STEPS, Progress

# The example tables of the page, by their names in `fairmaxent.datasets`.
EXAMPLES = {
    "acs": "Young people at work in the United States, 2018",
    "german": "Credit in Germany",
    "compas": "Reoffending in Florida",
}
_REMEMBERED = 20  # jobs that can still be asked about
Result = TypeVar("Result")


class SupersededError(Exception):
    """Newer work has come in, or the user stopped this, so nobody needs it any more."""


class StaleError(InputError):
    """What a page asks for is about a table or a scenario of the past."""


def explained(problem: BaseException, *, hide: str) -> tuple[str, int]:
    """Say what went wrong, and the status of an answer that says it.

    ``hide`` is the folder of the session, whose path means nothing to the reader.
    """
    from click import ClickException

    from fairmaxent.app.page_options import as_labelled, labelled

    status = 409 if isinstance(problem, StaleError) else 422
    if isinstance(problem, FairMaxEntError):
        text = labelled(problem.spelled(as_labelled))
    elif isinstance(problem, ClickException):
        text = labelled(problem.format_message())
    elif is_out_of_memory(problem):
        text = (
            "There is not enough memory for this; leave out columns, or take a part of"
            " the rows."
        )
    elif isinstance(problem, OSError):
        why = problem.strerror or str(problem)
        text = (
            f"The file could not be read or written: {why}. Check the free space on"
            " this computer."
        )
    else:
        status = 500
        text = (
            f"This is a bug in fairmaxent, not in your data ({type(problem).__name__}:"
            f" {problem}). Please report it."
        )
    text = re.sub(rf"{re.escape(hide + os.sep)}(\d+{re.escape(os.sep)})?", "", text)
    if text.partition(" ")[0].isalpha():  # not the name of a file
        text = f"{text[:1].upper()}{text[1:]}"
    return visible(text), status


class LatestOnly:
    """One thread that does the newest work; older work stops when it next reports."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._newest: object = None

    def submit(self, work: Callable[[Progress], Result]) -> Future[Result]:
        """Do this instead of whatever was asked for before.

        A slider asks again before the last fit is done.
        """
        self._newest = mark = object()

        def progress(stage: str, share: float) -> None:
            if mark is not self._newest:
                raise SupersededError

        def run() -> Result:
            progress("waiting", 0.0)
            return work(progress)

        return self._pool.submit(run)

    def stop(self) -> None:
        """Stop the work, and take no more."""
        self._newest = None
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(eq=False)
class Job:
    """One piece of slow work, and how far it is."""

    number: int
    kind: str
    stage: str = ""
    share: float = 0.0
    state: str = "running"  # or done, failed, stopped
    result: Any = None
    error: str | None = None

    def stop(self, why: str | None = None) -> Self:
        """Stop it, if it runs; its thread ends when it next reports its progress."""
        if self.state == "running":
            self.error = why
            self.state = "stopped" if why is None else "failed"
        return self


class Jobs:
    """The slow work of a session; of each kind, the newest job stops the one before."""

    def __init__(self, hide: str) -> None:
        self._hide = hide
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Job] = {}

    def start(self, kind: str, work: Callable[[Progress], Any]) -> Job:
        """Begin work in a thread of its own."""
        with self._lock:
            self.stop_all([kind])
            job = Job(next(self._numbers), kind)
            self._jobs[job.number] = job
            self._jobs.pop(job.number - _REMEMBERED, None)
        threading.Thread(
            target=self._run,
            args=(job, work),
            name=f"job-{kind}",
            daemon=True,
        ).start()
        return job

    def get(self, number: object) -> Job:
        """A job by its number."""
        job = None
        if isinstance(number, int):
            job = self._jobs.get(number)
        if job is None:
            raise InputError("that work is no longer known; start it again")
        return job

    def running(self) -> list[Job]:
        """What is under way."""
        return [job for job in list(self._jobs.values()) if job.state == "running"]

    def stop_all(
        self, kinds: Collection[str] | None = None, why: str | None = None
    ) -> None:
        """Stop what is running, of some kinds or of all; the page says ``why``."""
        for job in self.running():
            if kinds is None or job.kind in kinds:
                job.stop(why)

    def _run(self, job: Job, work: Callable[[Progress], Any]) -> None:
        def progress(stage: str, share: float) -> None:
            if job.state != "running":
                raise SupersededError
            job.stage = STEPS.get(stage, stage)
            job.share = share

        result = None
        error = None
        try:
            result = work(progress)
        except Exception as problem:
            error, _ = explained(problem, hide=self._hide)
        if job.state == "running":  # it was not stopped
            job.result = result
            job.error = error
            job.state = "done" if error is None else "failed"
