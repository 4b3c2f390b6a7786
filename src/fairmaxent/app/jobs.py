"""Slow work beside the live fits, such as an estimate or the files to take: with progress, and a way to stop it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from fairmaxent.app.problem_text import problem_text
from fairmaxent.app.refusals import StaleError, StoppedError
from fairmaxent.progress import Progress

State = Literal["running", "done", "failed", "stopped"]

_REMEMBERED = 20  # jobs that can still be asked about


@dataclass(eq=False)
class Job:
    """One piece of slow work, and how far it is."""

    number: int
    kind: str
    stage: str = ""
    share: float = 0.0
    state: State = "running"
    result: Any = None
    error: str | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values, for the page."""
        names = ("number", "kind", "stage", "share", "state", "result", "error")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """The slow work of a session; of each kind, the newest job stops the one before."""

    def __init__(self, hide: str) -> None:
        self._hide = hide
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Job] = {}

    def start(self, kind: str, work: Callable[[Progress], Any]) -> Job:
        """Begin work in a thread of its own."""
        self.stop_all([kind])
        job = Job(next(self._numbers), kind)
        self._jobs[job.number] = job
        for number in list(self._jobs)[:-_REMEMBERED]:
            del self._jobs[number]
        threading.Thread(target=self._run, args=(job, work), name=f"job-{kind}", daemon=True).start()
        return job

    def get(self, number: int) -> Job | None:
        """A job by its number, if it is known."""
        return self._jobs.get(number)

    def running(self) -> list[Job]:
        """What is under way."""
        return [job for job in list(self._jobs.values()) if job.state == "running"]

    def stop_all(self, kinds: Collection[str] | None = None, why: str | None = None) -> None:
        """Stop what is running, of some kinds or of all; ``why``: what the page says about it."""
        for job in self.running():
            if kinds is None or job.kind in kinds:
                self.stop(job, why)

    def stop(self, job: Job, why: str | None = None) -> None:
        """Stop a job; its thread ends when it next reports its progress."""
        job.stopped.set()
        if job.state == "running":
            job.error, job.state = why, "stopped" if why is None else "failed"

    def _run(self, job: Job, work: Callable[[Progress], Any]) -> None:
        def progress(stage: str, share: float) -> None:
            if job.stopped.is_set():
                raise StoppedError
            job.stage, job.share = stage, share

        try:
            result = work(progress)
        except StoppedError:
            return
        except StaleError:
            job.error, job.state = "Another table was opened meanwhile. Reload this page.", "failed"
            return
        except Exception as problem:
            if not job.stopped.is_set():
                job.error, job.state = problem_text(problem, hide=self._hide), "failed"
            return
        if not job.stopped.is_set():
            job.result, job.share, job.state = result, 1.0, "done"
