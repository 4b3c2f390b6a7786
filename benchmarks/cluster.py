"""Two worker processes: what an iteration costs beyond its work, and what a killed
worker costs.
"""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import JobFailedError, fresh
from benchmarks.tables import OUTCOME, PROTECTED, fair_frame

DIFFERENCE = 1e-10  # between multipliers
# "solve" is told once before the solver begins, and then before each iteration
_THIRD = 4


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    shapes: tuple[tuple[int, int, int], ...]  # rows, columns, partitions
    levels: int
    seconds: float  # that one shape may take


FULL = Sizes(
    shapes=((10_000, 8, 4), (10_000, 8, 32), (1_000_000, 12, 8)), levels=6, seconds=900
)
QUICK = Sizes(shapes=((5_000, 6, 4),), levels=4, seconds=300)


def measure(sizes: Sizes) -> Outcome:
    """Measure every shape in a process of its own, with two workers beside it."""
    rows: list[tuple[Any, ...]] = []
    bars = []
    for shape in sizes.shapes:
        why, found = "", {}
        try:
            found = fresh(compare, *shape, sizes.levels, seconds=sizes.seconds)
        except JobFailedError as problem:
            why = str(problem)
        names = (
            "distinct",
            "features",
            "iterations",
            "memory",
            "cluster",
            "overhead",
            "killed",
            "whole",
            "write",
        )
        rows.append((*shape, *(found.get(name) for name in names), why))
        label = "{0:,} rows in {2} partitions".format(*shape)
        for name, said in (
            ("difference", "largest difference"),
            ("killed_difference", "the same, a worker killed"),
        ):
            bars.append(
                Bar(
                    f"{label}: multipliers, {said}",
                    found.get(name),
                    DIFFERENCE,
                    why=why,
                )
            )
    columns = (
        "rows",
        "columns",
        "partitions",
        "distinct rows",
        "features",
        "iterations",
        "iteration in memory s",
        "iteration on workers s",
        "overhead s",
        "iteration with a killed worker s",
        "whole fit s",
        "sample written s",
        "",
    )
    return Outcome(
        "Cluster",
        "Seconds on the clock, of which two workers and the scheduler share the cores."
        " The overhead of an iteration is what it takes on the workers less half of"
        " what it takes in memory. A worker is killed by signal as the third iteration"
        " begins.",
        (Table("", columns, tuple(rows)),),
        tuple(bars),
    )


def compare(rows: int, columns: int, parts: int, levels: int) -> dict[str, Any]:
    """Fit in memory, on two workers, and on two workers of which one is killed."""
    from dask.dataframe import read_parquet
    from distributed import Client, LocalCluster

    table = fair_frame(rows, columns, levels).to_pandas()
    here, memory, _ = _fitted(table, levels)
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(np.arange(rows), parts)):
            table.iloc[part].to_parquet(Path(folder) / f"{number:03}.parquet")
        place = {
            "host": "127.0.0.1",
            "dashboard_address": "127.0.0.1:0",
            "local_directory": folder,
        }
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, **place) as cluster,
            Client(cluster) as client,
        ):
            frame = read_parquet(f"{folder}/*.parquet")
            _fitted(frame, levels)  # imports and connections are made
            there, on_workers, whole = _fitted(frame, levels)
            begin = time.perf_counter()
            there.write_sample(rows, Path(folder) / "sample", random_state=0)
            write = time.perf_counter() - begin
            victim = next(iter(client.run(os.getpid).values()))
            after, with_killed, _ = _fitted(
                frame, levels, lambda: os.kill(victim, signal.SIGKILL)
            )
            return {
                "distinct": there.table.distinct,
                "features": there.optimum.dual.size,
                "iterations": there.certificate.iterations,
                "memory": statistics.median(memory),
                "cluster": statistics.median(on_workers),
                "overhead": (
                    statistics.median(on_workers) - statistics.median(memory) / 2
                ),
                "killed": with_killed[2],
                "whole": whole,
                "write": write,
                "difference": _difference(here, there),
                "killed_difference": _difference(here, after),
            }


def _fitted(
    frame: Any, levels: int, in_third: Callable[[], None] | None = None
) -> tuple[Any, list[float], float]:
    """Return a fit with a target that the rows do not have, the seconds of each
    iteration, and of all.
    """
    from fairmaxent import debias

    shares = np.arange(1, levels + 1) / np.arange(1, levels + 1).sum()
    told: list[float] = []

    def progress(stage: str, share: float) -> None:
        if stage == "solve":
            told.append(time.perf_counter())
            if len(told) == _THIRD and in_third is not None:
                in_third()

    begin = time.perf_counter()
    fit = debias(
        frame,
        OUTCOME,
        PROTECTED,
        target={"x1": dict(enumerate(shares.tolist()))},
        progress=progress,
    )
    whole = time.perf_counter() - begin
    return fit, [after - before for before, after in pairwise(told[1:-1])], whole


def _difference(first: Any, second: Any) -> float:
    return float(
        np.abs(
            first.optimum.solution.multipliers - second.optimum.solution.multipliers
        ).max()
    )
