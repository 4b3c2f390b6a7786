"""Raking: known margins of Adult, beside the libraries that survey people use, and of a
Parquet table out of core.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.meter import reading, repeated
from benchmarks.outcome import Bar, Cell, Outcome, Table
from benchmarks.outofcore import FILES, write_census
from benchmarks.process import JobFailedError, fresh

# CPU seconds, largest error of a share, and group-bys of polars that raking out of core
# may take.
SECONDS, ERROR, GROUP_BYS = 0.05, 1e-12, 2.5

COLUMNS = ("sex", "race", "education", "marital_status", "relationship")
# An interpreter that has svy, weightipy and ipfn, where this one has not.
PEERS_PYTHON = "FAIRMAXENT_RAKING_PYTHON"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int  # out of core
    part: int  # rows of one file
    seconds: float  # that one library may take


FULL = Sizes(rows=10_000_000, part=1_000_000, seconds=300)
QUICK = Sizes(rows=200_000, part=100_000, seconds=60)


def measure(sizes: Sizes) -> Outcome:
    """Measure each library and each job in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        table, margins = (
            f"{folder}/adult.parquet",
            fresh(write_adult, f"{folder}/adult.parquet"),
        )
        libraries = {
            name: _library(name, table, margins, sizes.seconds) for name in LIBRARIES
        }
        fresh(write_census, f"{folder}/census", sizes.rows, sizes.part, 0.5)
        by_polars, by_us = (
            fresh(group_by, f"{folder}/census"),
            fresh(rake_lazily, f"{folder}/census", margins),
        )
    cpu, error, _ = libraries[OURS]
    times = by_us / by_polars
    return Outcome(
        "Raking",
        "Adult, 48,842 rows, weighed to five margins with"
        f" {sum(map(len, margins.values()))} levels; the largest error is that of a"
        f" share. Out of core: {sizes.rows:,} rows of Parquet raked to the same"
        " margins, beside a group-by of the five columns.",
        (
            Table(
                "Adult",
                ("library", "CPU s", "largest error", ""),
                tuple((name, *cells) for name, cells in libraries.items()),
            ),
            Table(
                "Out of core",
                ("what", "CPU s"),
                (("group-by of polars", by_polars), ("raking", by_us)),
            ),
        ),
        (
            Bar("Adult: CPU", _number(cpu), SECONDS, "s"),
            Bar("Adult: largest error", _number(error), ERROR),
            Bar("Raking out of core, in group-bys of polars", times, GROUP_BYS, "×"),
        ),
    )


def _number(cell: Cell) -> float | None:
    return cell if isinstance(cell, float) else None


def _library(
    name: str, table: str, margins: dict[str, Any], seconds: float
) -> tuple[Cell, Cell, Cell]:
    """CPU seconds and largest error of a library, or why there are none."""
    python = (
        sys.executable if name == OURS else os.environ.get(PEERS_PYTHON, sys.executable)
    )
    try:
        cpu, error = fresh(
            library_cost, name, table, margins, seconds=seconds, python=python
        )
    except JobFailedError as problem:
        return None, None, str(problem)[:120]
    return cpu, error, ""


# ---------------------------------------------------------------- jobs


def write_adult(path: str) -> dict[str, dict[str, float]]:
    """Write Adult, and return margins of it: those of other weights, so that they do
    not contradict each other.
    """
    import fairmaxent

    frame = fairmaxent.datasets.load("adult", library="polars").frame.select(COLUMNS)
    rng = np.random.default_rng(0)
    weights = np.ones(len(frame))
    for name in COLUMNS:
        levels = frame[name].unique().sort().to_list()
        factors = dict(zip(levels, rng.uniform(0.4, 2.0, len(levels)), strict=True))
        weights *= [factors[level] for level in frame[name].to_list()]
    weights = weights / weights.sum() + 1 / len(frame)
    frame.write_parquet(path)
    return {name: _shares(frame[name].to_list(), weights) for name in COLUMNS}


def library_cost(
    name: str, path: str, margins: dict[str, dict[str, float]]
) -> tuple[float, float]:
    """Rake Adult from a frame in memory; CPU seconds, and the largest error of a
    share.
    """
    import polars

    frame = polars.read_parquet(path)
    job, levels = (
        LIBRARIES[name](frame, margins),
        {column: frame[column].to_list() for column in margins},
    )
    cost, weights = repeated(job)
    weights = np.asarray(weights, dtype=float)
    reached = {column: _shares(levels[column], weights) for column in margins}
    errors = [
        abs(reached[column][level] - margins[column][level])
        for column in margins
        for level in margins[column]
    ]
    return cost.cpu, max(errors)


def _shares(levels: list[str], weights: Any) -> dict[str, float]:
    names, codes = np.unique(np.asarray(levels, dtype=str), return_inverse=True)
    sums = np.bincount(codes, np.asarray(weights))
    return dict(zip(names.tolist(), (sums / sums.sum()).tolist(), strict=True))


def group_by(folder: str) -> float:
    """CPU seconds in which polars counts the combinations of the columns, streaming."""
    import polars

    lazy = polars.scan_parquet(Path(folder) / FILES)
    with reading() as cost:
        lazy.group_by(COLUMNS).len().collect(engine="streaming")
    return cost.cpu


def rake_lazily(folder: str, margins: dict[str, dict[str, float]]) -> float:
    """CPU seconds of raking the table where it lies."""
    import polars

    import fairmaxent

    lazy = polars.scan_parquet(Path(folder) / FILES)
    with reading() as cost:
        raking = fairmaxent.rake(lazy, margins)
    assert raking.certificate.largest_error <= ERROR
    return cost.cpu


# ---------------------------------------------------------------- libraries

Job = Callable[[], Any]


def _ours(frame: Any, margins: dict[str, dict[str, float]]) -> Job:
    import fairmaxent

    return lambda: fairmaxent.rake(frame, margins).weights()


def _svy(frame: Any, margins: dict[str, dict[str, float]]) -> Job:
    import polars
    import svy

    sample = svy.Sample(
        frame.with_columns(base=polars.lit(1.0)), svy.Design(wgt="base")
    )
    return lambda: (
        sample.weighting.rake(shares=margins, tol=1e-10, max_iter=1000)
        .data["rk_wgt"]
        .to_numpy()
    )


def _weightipy(frame: Any, margins: dict[str, dict[str, float]]) -> Job:
    import weightipy

    percent = {
        name: {level: 100 * share for level, share in shares.items()}
        for name, shares in margins.items()
    }
    pandas = frame.to_pandas()

    def job() -> Any:
        scheme = weightipy.scheme_from_dict(
            percent, rim_params={"convcrit": 1e-12, "max_iterations": 1000}
        )
        return weightipy.weight_dataframe(pandas, scheme)["weights"].to_numpy()

    return job


def _ipfn(frame: Any, margins: dict[str, dict[str, float]]) -> Job:
    import pandas
    from ipfn import ipfn

    table = frame.to_pandas().assign(total=1.0)
    aggregates = []
    for name, shares in margins.items():
        series = pandas.Series(shares) * len(table)
        series.index.name = name
        aggregates.append(series)
    dimensions = [[name] for name in margins]

    def job() -> Any:
        fitted = ipfn.ipfn(
            table.copy(),
            aggregates,
            dimensions,
            convergence_rate=1e-7,
            max_iteration=1000,
        )
        return fitted.iteration()["total"].to_numpy()

    return job


OURS = "fairmaxent"
LIBRARIES: dict[str, Callable[[Any, dict[str, dict[str, float]]], Job]] = {
    OURS: _ours,
    "weightipy": _weightipy,
    "svy": _svy,
    "ipfn": _ipfn,
}
