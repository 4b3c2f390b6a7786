"""The stages of one run, from a file to a file: where the time goes.

The real pipeline runs; a clock is put around each of its steps.
"""

import contextlib
import importlib
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.outcome import Outcome, Table
from benchmarks.process import fresh

# Stage, the module or class that holds the step, and its name there. No step is part of
# another.
STEPS = (
    ("read", "fairmaxent.files.formats", "read_table"),
    ("encode", "fairmaxent.data.reading", "learn_columns"),
    ("compress", "fairmaxent.data.table:Table", "compress"),
    ("fair table", "fairmaxent.fit.problem:Problem", "fair_table"),
    ("weights", "fairmaxent.fit.pipeline", "reweigh"),
    ("tree", "fairmaxent.fit.pipeline", "build_base"),
    ("solve", "fairmaxent.fit.pipeline", "maximise_entropy"),
    ("certify", "fairmaxent.fit.pipeline", "certify"),
    ("sample", "fairmaxent.maxent.priors.mixture:TiltedMixture", "draw"),
    ("decode", "fairmaxent.data.domain:Domain", "decode"),
    ("write", "fairmaxent.files.write", "write_table"),
)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int | None  # of Adult, and drawn; None: all
    repeats: int


FULL = Sizes(rows=None, repeats=5)
QUICK = Sizes(rows=5_000, repeats=2)


def measure(sizes: Sizes) -> Outcome:
    """Measure all stages in one process."""
    seconds = fresh(stage_cpu, sizes.rows, sizes.repeats)
    whole = seconds.pop("whole")
    rows = [(stage, cpu, 100 * cpu / whole) for stage, cpu in seconds.items()]
    rows += [
        (
            "between the stages",
            whole - sum(seconds.values()),
            100 * (1 - sum(seconds.values()) / whole),
        )
    ]
    return Outcome(
        "Stages",
        "Adult in full width from CSV to CSV, income by sex: as many rows drawn as"
        " read; medians, after a first run.",
        (
            Table(
                "",
                ("stage", "CPU s", "% of the whole"),
                (*rows, ("whole", whole, 100.0)),
            ),
        ),
    )


def stage_cpu(rows: int | None, repeats: int) -> dict[str, float]:
    """CPU seconds of each stage and of the whole."""
    with tempfile.TemporaryDirectory() as folder:
        source = _census(Path(folder) / "census.csv", rows)
        runs = [
            _timed_run(source, Path(folder) / f"fair{number}.csv")
            for number in range(repeats + 1)
        ]
    return {
        stage: statistics.median(run[stage] for run in runs[1:]) for stage in runs[0]
    }


def _census(path: Path, rows: int | None) -> Path:
    import fairmaxent

    frame = fairmaxent.datasets.load("adult", library="polars").frame
    (frame if rows is None else frame.head(rows)).write_csv(path)
    return path


def _timed_run(source: Path, target: Path) -> dict[str, float]:
    from fairmaxent import debias
    from fairmaxent.files import formats, write

    with clocks() as seconds:
        start = time.process_time()
        frame = formats.read_table(source).frame
        write.write_table(
            debias(frame, "income", "sex", random_state=0).sample(len(frame)), target
        )
        seconds["whole"] = time.process_time() - start
    return dict(seconds)


@contextlib.contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Put a clock around each step; yields the CPU seconds of each stage so far."""
    seconds: dict[str, float] = defaultdict(float)
    with contextlib.ExitStack() as stack:
        for stage, home, name in STEPS:
            module, _, owner = home.partition(":")
            found = importlib.import_module(module)
            place = getattr(found, owner) if owner else found
            seconds[stage] = 0.0
            stack.enter_context(
                patch.object(
                    place, name, _clocked(getattr(place, name), seconds, stage)
                )
            )
        yield seconds


def _clocked(
    step: Callable[..., Any], seconds: dict[str, float], stage: str
) -> Callable[..., Any]:
    @wraps(step)
    def timed(*positional: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return step(*positional, **named)
        finally:
            seconds[stage] += time.process_time() - start

    return timed
