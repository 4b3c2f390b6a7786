"""Growth: how CPU seconds grow with rows, attributes and levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.meter import repeated
from benchmarks.outcome import Bar, Curve, Outcome, Table
from benchmarks.process import JobFailedError, fresh
from benchmarks.tables import OUTCOME, PROTECTED, fair_frame

# A column of more numbers than this is cut into bins unless told otherwise.
KEPT_LEVELS = 16


@dataclass(frozen=True)
class Sweep:
    """One size that grows while the others stay; the exponent is fitted from ``begin``
    to ``end``.
    """

    panel: str
    shapes: tuple[tuple[int, int, int], ...]  # rows, attributes, levels
    begin: float
    end: float
    most: float | None = None  # the exponent allowed


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sweeps: tuple[Sweep, ...]
    seconds: float  # that one point may take


def _sweeps(
    rows: Sequence[int], attributes: Sequence[int], levels: Sequence[int]
) -> tuple[Sweep, ...]:
    return (
        Sweep("rows", tuple((size, 10, 8) for size in rows), 1e4, 1e7, most=1.1),
        Sweep(
            "attributes",
            tuple((10_000, size, 5) for size in attributes),
            10,
            300,
            most=2.1,
        ),
        Sweep("levels", tuple((10_000, 10, size) for size in levels), 10, 1000),
    )


FULL = Sizes(
    _sweeps(
        rows=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        attributes=(5, 10, 20, 50, 100, 200, 300, 500),
        levels=(2, 5, 10, 20, 50, 100, 200, 500, 1000),
    ),
    seconds=900,
)
QUICK = Sizes(
    _sweeps(
        rows=(1_000, 10_000, 100_000, 1_000_000),
        attributes=(5, 10, 20, 50, 100),
        levels=(2, 10, 50, 200),
    ),
    seconds=120,
)


def measure(sizes: Sizes) -> Outcome:
    """Measure every point in a process of its own."""
    tables, curves, bars = [], [], []
    for sweep in sizes.sweeps:
        measured = [_point(shape, sizes.seconds) for shape in sweep.shapes]
        tables.append(_table(sweep, measured))
        drawn = _curves(sweep, measured)
        curves += drawn
        if sweep.most is not None:
            failed = next(
                (found["failed"] for found in measured if "failed" in found), None
            )
            exponent = None if failed else drawn[0].exponent
            why = "" if exponent is not None else failed or "too few points"
            name = (
                f"Exponent of CPU seconds in {sweep.panel}, {sweep.begin:,.0f} to"
                f" {sweep.end:,.0f}"
            )
            bars.append(Bar(name, exponent, sweep.most, why=why))
    return Outcome(
        "Growth",
        "Fit and as many decoded rows as there are, from a polars frame in memory; one"
        " size grows, the others stay.",
        tuple(tables),
        tuple(bars),
        tuple(curves),
    )


def _point(shape: tuple[int, int, int], seconds: float) -> dict[str, Any]:
    try:
        return dict(fresh(fit_and_sample, *shape, seconds=seconds))
    except JobFailedError as problem:
        return {"failed": str(problem)}


def _grown(sweep: Sweep, shape: tuple[int, int, int]) -> int:
    return shape[("rows", "attributes", "levels").index(sweep.panel)]


def _table(sweep: Sweep, measured: Sequence[dict[str, Any]]) -> Table:
    names = ("fit", "sample", "whole", "peak", "method", "failed")
    rows = [
        (*shape, *(found.get(name, "") for name in names))
        for shape, found in zip(sweep.shapes, measured, strict=True)
    ]
    columns = (
        "rows",
        "attributes",
        "levels",
        "fit CPU s",
        "sample CPU s",
        "both CPU s",
        "peak MB",
        "solver",
        "",
    )
    return Table(f"By {sweep.panel}", columns, tuple(rows))


def _curves(sweep: Sweep, measured: Sequence[dict[str, Any]]) -> list[Curve]:
    """Curves of the whole and of its two parts."""
    ended = [
        (_grown(sweep, shape), found)
        for shape, found in zip(sweep.shapes, measured, strict=True)
        if "failed" not in found
    ]
    named = {"whole": "fit and sample", "fit": "fit", "sample": "sample"}
    return [
        Curve(
            sweep.panel,
            shown,
            tuple((float(size), found[name]) for size, found in ended),
            sweep.begin,
            sweep.end,
        )
        for name, shown in named.items()
    ]


def fit_and_sample(rows: int, attributes: int, levels: int) -> dict[str, Any]:
    """CPU seconds and peak memory of a fit, and of drawing as many rows."""
    frame = fair_frame(rows, attributes, levels)
    fitting, fit = repeated(lambda: fit_frame(frame, levels))
    sampling, _ = repeated(lambda: fit.sample(rows))
    return {
        "fit": fitting.cpu,
        "sample": sampling.cpu,
        "whole": fitting.cpu + sampling.cpu,
        "peak": max(fitting.peak, sampling.peak),
        "method": fit.certificate.method,
    }


def fit_frame(frame: Any, levels: int) -> Any:
    """Fit with every number a level of its own."""
    import fairmaxent

    domain = (
        None if levels <= KEPT_LEVELS else fairmaxent.Domain.infer(frame, bins=levels)
    )
    return fairmaxent.debias(frame, OUTCOME, PROTECTED, domain=domain, random_state=0)
