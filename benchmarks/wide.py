"""Wide tables: hundreds of attributes, thousands of features."""

from dataclasses import dataclass
from typing import Any

from benchmarks.growth import fit_frame
from benchmarks.meter import reading
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import JobFailedError, fresh
from benchmarks.tables import fair_frame

SECONDS, MEGABYTES = 120.0, 4000.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    shapes: tuple[tuple[int, int, int], ...]  # rows, attributes, levels
    seconds: float  # that one shape may take


# 21 levels make 20 features of a column: 10,000 in all.
FULL = Sizes(shapes=((50_000, 500, 5), (50_000, 500, 21)), seconds=1800)
QUICK = Sizes(shapes=((5_000, 100, 5), (5_000, 200, 21)), seconds=300)


def measure(sizes: Sizes) -> Outcome:
    """Measure every shape in a process of its own."""
    rows: list[tuple[Any, ...]] = []
    bars = []
    for shape in sizes.shapes:
        why, found = "", {}
        try:
            found = fresh(fit_and_sample, *shape, seconds=sizes.seconds)
        except JobFailedError as problem:
            why = str(problem)
        names = (
            "features",
            "fit",
            "sample",
            "whole",
            "wall",
            "peak",
            "method",
            "iterations",
        )
        rows.append((*shape, *(found.get(name) for name in names), why))
        label = "{1:,} attributes × {0:,} rows, {2} levels".format(*shape)
        bars.append(
            Bar(
                f"{label}: fit and as many rows",
                found.get("whole"),
                SECONDS,
                "CPU s",
                why=why,
            )
        )
        bars.append(
            Bar(f"{label}: peak memory", found.get("peak"), MEGABYTES, "MB", why=why)
        )
    columns = (
        "rows",
        "attributes",
        "levels",
        "features",
        "fit CPU s",
        "sample CPU s",
        "both CPU s",
        "on the clock s",
        "peak MB",
        "solver",
        "iterations",
        "",
    )
    return Outcome(
        "Wide",
        "Fit and as many decoded rows as there are, from a polars frame in memory.",
        (Table("", columns, tuple(rows)),),
        tuple(bars),
    )


def fit_and_sample(rows: int, attributes: int, levels: int) -> dict[str, Any]:
    """CPU seconds and peak memory of one fit, and of drawing as many rows."""
    frame = fair_frame(rows, attributes, levels)
    with reading() as fitting:
        fit = fit_frame(frame, levels)
    with reading() as sampling:
        fit.sample(rows)
    return {
        "features": fit.optimum.dual.size,
        "fit": fitting.cpu,
        "sample": sampling.cpu,
        "whole": fitting.cpu + sampling.cpu,
        "wall": fitting.wall + sampling.wall,
        "peak": max(fitting.peak, sampling.peak),
        "method": fit.certificate.method,
        "iterations": fit.certificate.iterations,
    }
