"""Tidy tables from finished cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairmaxent.experiments import cells as kept
from fairmaxent.experiments.plan import TABLE_2_METHODS, Cell, MaxEnt

_TABLE_2_NAMES = {method: name for name, method in TABLE_2_METHODS.items()}


def table_2(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, method, metric, mean, sd, error.

    The mean is over folds and repetitions, and the standard deviation is that of the folds' means. The standard error
    of the mean covers only the drawing of rows, because the folds are the same in every run.
    """
    return _summary(cells, folder, _table_2_labels)


def curves(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, prior, theta, C, metric, mean, sd, error."""
    return _summary(cells, folder, _curve_labels)


def runtimes(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, method, seconds: CPU time to learn and to draw rows once, mean over folds."""
    import pandas as pd

    rows = [_table_2_labels(cell) | {"seconds": _record(cell, folder)["seconds"]} for cell in cells]
    labels = list(rows[0])[:-1]
    return pd.DataFrame(rows).groupby(labels, sort=False)["seconds"].mean().reset_index()


def _table_2_labels(cell: Cell) -> dict[str, Any]:
    return {"dataset": cell.dataset, "protected": cell.protected, "method": _TABLE_2_NAMES[cell.method]}


def _curve_labels(cell: Cell) -> dict[str, Any]:
    assert isinstance(cell.method, MaxEnt)
    curve = {"prior": cell.method.prior, "theta": cell.method.theta, "C": cell.method.C}
    return {"dataset": cell.dataset, "protected": cell.protected} | curve


def _summary(cells: Iterable[Cell], folder: Path, labels_of: Callable[[Cell], dict[str, Any]]) -> Any:
    import pandas as pd

    rows = []
    for cell in cells:
        record = _record(cell, folder)
        # Repetitions without a value (the outcome was predicted for nobody) do not count.
        drawn = pd.DataFrame(record["repetitions"])
        variances = (drawn.var() / drawn.count()).to_dict()
        for metric, value in (drawn.mean().to_dict() | record["exact"]).items():
            measured = {"metric": metric, "value": value, "variance": variances.get(metric, 0.0)}
            rows.append(labels_of(cell) | measured)
    labels = list(rows[0])[:-2]
    grouped = pd.DataFrame(rows).groupby(labels, sort=False)
    summary = grouped["value"].agg(mean="mean", sd="std")
    summary["error"] = grouped["variance"].mean() ** 0.5 / grouped.size() ** 0.5
    return summary.reset_index()


def _record(cell: Cell, folder: Path) -> kept.Record:
    record = kept.find(cell, folder)
    if record is None:
        raise FileNotFoundError(folder / f"{cell.name}.json")
    return record
