"""Ours beside what people use today, on the same tables in the same run."""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from benchmarks.mbi_model import model_cpu
from benchmarks.meter import repeated
from benchmarks.methods import METHODS, OUTCOME, PROTECTED
from benchmarks.outcome import Cell, Curve, Outcome, Table, ratio
from benchmarks.process import JobFailedError, fresh

OURS, FLOOR, MAPPING, MBI = (
    "fairmaxent, rows",
    "NumPy pass",
    "AIF360 OptimPreproc, fit",
    "mbi MirrorDescent",
)
# An interpreter that has mbi, where this one has not.
MBI_PYTHON = "FAIRMAXENT_MBI_PYTHON"

_SMALL = (OUTCOME, PROTECTED, "race", "age", "education_num")
# Columns beside outcome and group, for a method whose cost grows with the cells of the
# domain.
_GROWING = (
    ("race",),
    ("race", "education_num"),
    ("age", "education_num"),
    ("race", "age", "education_num"),
    ("race", "age", "education_num", "marital_status"),
)

# cells from which on the exponent is fitted; below, what every call costs is all there
# is
_FITTED = 50.0
_LONGEST_REASON = 120


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int | None  # of Adult; None: all
    full_width: bool  # also on all columns
    methods: tuple[str, ...]
    growing: tuple[tuple[str, ...], ...]
    seconds: float  # that one method may take


FULL = Sizes(
    rows=None, full_width=True, methods=(*METHODS, MBI), growing=_GROWING, seconds=600
)
QUICK = Sizes(
    rows=5_000,
    full_width=False,
    methods=(*METHODS, MBI),
    growing=_GROWING[:3],
    seconds=60,
)


def measure(sizes: Sizes) -> Outcome:
    """Measure every method in a process of its own."""
    tables = [_compare("Adult in the paper's five columns", list(_SMALL), sizes)]
    if sizes.full_width:
        # On many columns this method needs more than any machine has; its growth says
        # so.
        wide = tuple(name for name in sizes.methods if name != MAPPING)
        tables.append(_compare("Adult in full width", None, sizes, wide))
    growth, curves = _grow(sizes)
    return Outcome(
        "Alternatives",
        "From a table in memory to weights, or to as many rows. AIF360 starts from its"
        " own data set, mbi and the NumPy pass from codes, all made outside the clock."
        " imbalanced-learn makes classes of outcome × group equally large. mbi fits the"
        " marginals outcome × group × column of the fair weights by mirror descent.",
        (*tables, growth),
        curves=curves,
    )


def _compare(
    title: str, columns: list[str] | None, sizes: Sizes, methods: Sequence[str] = ()
) -> Table:
    found = {name: _method(name, columns, sizes) for name in methods or sizes.methods}
    ours, floor = (found.get(name, {}).get("cpu") for name in (OURS, FLOOR))
    rows: list[tuple[Cell, ...]] = []
    for name, cost in found.items():
        gives = (
            METHODS[name][1]
            if name in METHODS
            else f"{cost.get('version', '')} a model, new rows".strip()
        )
        cpu = cost.get("cpu")
        rows.append(
            (
                name,
                gives,
                cpu,
                ratio(cpu, ours),
                ratio(cpu, floor),
                cost.get("peak"),
                cost.get("failed", ""),
            )
        )
    return Table(
        title,
        ("method", "gives", "CPU s", "× ours", "× NumPy pass", "peak MB", ""),
        tuple(rows),
    )


def _method(name: str, columns: list[str] | None, sizes: Sizes) -> dict[str, Any]:
    try:
        if name != MBI:
            return dict(
                fresh(method_cpu, name, columns, sizes.rows, seconds=sizes.seconds)
            )
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "codes.npz")
            fresh(write_codes, columns, sizes.rows, path)
            python = os.environ.get(MBI_PYTHON, sys.executable)
            return dict(fresh(model_cpu, path, seconds=sizes.seconds, python=python))
    except JobFailedError as problem:
        missing = str(problem).startswith("ModuleNotFoundError")
        reason = f"not installed: {problem}" if missing else str(problem)
        return {"failed": shorten(reason, _LONGEST_REASON, placeholder=" …")}


def _grow(sizes: Sizes) -> tuple[Table, tuple[Curve, ...]]:
    """OptimPreproc against the size of the domain, and ours on the same columns."""
    rows, points = [], []
    for others in sizes.growing:
        columns = [OUTCOME, PROTECTED, *others]
        theirs, ours = (_method(name, columns, sizes) for name in (MAPPING, OURS))
        cells = fresh(domain_cells, columns, sizes.rows)
        times = ratio(theirs.get("cpu"), ours["cpu"])
        rows.append(
            (
                ", ".join(others),
                cells,
                theirs.get("cpu"),
                ours["cpu"],
                times,
                theirs.get("failed", ""),
            )
        )
        points.append((float(cells), theirs.get("cpu"), ours["cpu"]))
    table = Table(
        "AIF360 OptimPreproc by the size of the domain",
        (
            "columns beside income and sex",
            "cells",
            "OptimPreproc CPU s",
            "fairmaxent CPU s",
            "× ours",
            "",
        ),
        tuple(rows),
    )
    begin, end = _FITTED, max((cells for cells, _, _ in points), default=_FITTED)
    theirs_drawn = tuple((cells, cpu) for cells, cpu, _ in points if cpu is not None)
    ours_drawn = tuple((cells, cpu) for cells, _, cpu in points)
    curves = (
        Curve(
            "cells of the domain", "AIF360 OptimPreproc, fit", theirs_drawn, begin, end
        ),
        Curve(
            "cells of the domain", "fairmaxent, fit and sample", ours_drawn, begin, end
        ),
    )
    return table, curves


def adult(columns: list[str] | None, rows: int | None) -> Any:
    """Adult as a pandas frame: all columns as they are, or the given ones with the
    paper's age and education.
    """
    import fairmaxent
    from reproduction import datasets

    frame = fairmaxent.datasets.load("adult").frame
    if columns is not None:
        small = datasets.load("adult-small").frame
        frame = frame.assign(**{name: small[name] for name in small})[columns]
    return frame if rows is None else frame.head(rows)


def method_cpu(
    name: str, columns: list[str] | None, rows: int | None
) -> dict[str, float]:
    """CPU seconds and peak memory of one method."""
    cost, _ = repeated(METHODS[name][0](adult(columns, rows)))
    return {"cpu": cost.cpu, "peak": cost.peak}


def domain_cells(columns: list[str], rows: int | None) -> int:
    """Points of the domain of these columns."""
    import fairmaxent

    return int(fairmaxent.Domain.infer(adult(columns, rows)).size)


def write_codes(columns: list[str] | None, rows: int | None, path: str) -> None:
    """Write what mbi starts from: codes, outcome and group first, and the fair
    weights.
    """
    import fairmaxent

    fit = fairmaxent.debias(adult(columns, rows), OUTCOME, PROTECTED)
    order = [
        *fit.roles.root,
        *(
            place
            for place in range(len(fit.domain.sizes))
            if place not in fit.roles.root
        ),
    ]
    codes = fit.domain.encode(adult(columns, rows))[:, order]
    np.savez(
        path,
        codes=codes,
        sizes=np.array(fit.domain.sizes)[order],
        weights=fit.weights(),
    )
