"""The meter: CPU seconds of all threads and peak memory of this process."""

import contextlib
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATS = 5
# A job of more CPU seconds than SHORT is not repeated; one of very few is, until half a
# second is spent on it.
SHORT, VERY_SHORT = 3.0, 0.5

_MEGABYTE = 1e6


@dataclass
class Reading:
    """What a block of code cost: filled in at its end."""

    cpu: float = 0.0  # CPU seconds, all threads
    wall: float = 0.0  # seconds on the clock
    # megabytes the process held at most, with all that stood there before
    peak: float = 0.0


@contextlib.contextmanager
def reading() -> Iterator[Reading]:
    """Measure a block of code."""
    result = Reading()
    _forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    yield result
    result.cpu, result.wall = time.process_time() - cpu, time.perf_counter() - wall
    result.peak = _peak()


def repeated(job: Callable[[], Any], repeats: int = REPEATS) -> tuple[Reading, Any]:
    """Run a job once, and if it is short several times more: medians of those, the
    highest peak, the last result.
    """
    with reading() as first:
        result = job()
    if first.cpu > SHORT:
        return first, result
    runs = []
    for _ in range(
        min(4 * repeats, max(repeats, int(VERY_SHORT / max(first.cpu, 1e-9))))
    ):
        result = None  # or the next run would hold two
        with reading() as run:
            result = job()
        runs.append(run)
    cpu, wall = (
        statistics.median(getattr(run, name) for run in runs)
        for name in ("cpu", "wall")
    )
    return Reading(cpu, wall, max(run.peak for run in (first, *runs))), result


def _forget_peak() -> None:
    """Let the peak begin anew at what is held now; where the system cannot, it is that
    of the whole process.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) * 1024 / _MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MEGABYTE
