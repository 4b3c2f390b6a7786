"""The paper's tables and figures, made by one call."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fairmaxent
from fairmaxent.datasets import downloads
from fairmaxent.experiments import cells as kept
from fairmaxent.experiments import data, tables
from fairmaxent.experiments.figures import write_figures
from fairmaxent.experiments.page import write_page
from fairmaxent.experiments.plan import CURVE_BLOCKS, FULL, QUICK, ROWS, TABLE_2_BLOCKS, Block, Cell, Plan
from fairmaxent.experiments.run import run
from fairmaxent.files.write import write_whole

Progress = Callable[[float], None]  # share of the work that is done


@dataclass(frozen=True)
class Reproduction:
    """The path of the page, and why some data sets were left out."""

    page: Path
    left_out: tuple[str, ...]


def reproduce(
    folder: Path,
    *,
    quick: bool = False,
    workers: int | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Run the experiments of Table 2 and the figures, and write tables, figures and one page.

    Finished cells stay in the folder, so a run that was stopped can be continued. A data set that is not available is
    left out, and the page says so; ``download`` fetches COMPAS large, which is not shipped.
    """
    _check_libraries()
    plan = QUICK if quick else FULL
    _check_folder(folder)
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    left_out = _unavailable(download=download)
    table_2 = plan.table_2(_available(TABLE_2_BLOCKS, left_out))
    curves = plan.curves(_available(CURVE_BLOCKS, left_out))
    _run_all([*table_2, *curves], folder / "cells", workers, progress or (lambda share: None))
    return _write(folder, plan, table_2, curves, left_out)


def _check_libraries() -> None:
    """Report missing libraries now, not after hours of work."""
    needed = {"jinja2": "jinja2", "matplotlib": "matplotlib", "pandas": "pandas", "sklearn": "scikit-learn"}
    missing = [package for name, package in needed.items() if not importlib.util.find_spec(name)]
    if missing:
        raise fairmaxent.DependencyError(
            f"the reproduction needs {', '.join(missing)}; pip install {' '.join(missing)}"
        )


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier reproduction, whose files may be replaced."""
    if folder.is_dir() and not (folder / "cells").is_dir() and any(folder.iterdir()):
        raise fairmaxent.StorageError(f"{folder} is not empty and holds no earlier reproduction; name another folder")


def _unavailable(*, download: bool) -> dict[str, str]:
    """The data sets that cannot be loaded, and why."""
    reasons: dict[str, str] = {}
    for name in dict(TABLE_2_BLOCKS):
        if name == "compas-large" and not download and not os.environ.get(downloads.FOLDER_VARIABLE):
            reasons[name] = (
                f"{name} is not shipped, and nothing is downloaded unless you ask for it; add --download, or save its "
                f"files in a folder and set the environment variable {downloads.FOLDER_VARIABLE} to it"
            )
            continue
        try:
            data.load(name)
        except fairmaxent.StorageError as problem:
            reasons[name] = str(problem)
    return reasons


def _available(blocks: Sequence[Block], left_out: dict[str, str]) -> list[Block]:
    return [block for block in blocks if block[0] not in left_out]


def _run_all(cells: list[Cell], folder: Path, workers: int | None, progress: Progress) -> None:
    total = sum(cell.cost for cell in cells)
    done = 0.0
    for cell in run(cells, folder, workers=workers):
        done += cell.cost
        progress(done / total)


def _write(
    folder: Path, plan: Plan, table_2_cells: list[Cell], curve_cells: list[Cell], left_out: dict[str, str]
) -> Reproduction:
    cells = folder / "cells"
    table_2, runtimes = tables.table_2(table_2_cells, cells), tables.runtimes(table_2_cells, cells)
    curves = tables.curves(curve_cells, cells)
    for name, table in (("table2", table_2), ("runtimes", runtimes), ("curves", curves)):
        shown = table.drop(columns="error", errors="ignore")
        text = shown.to_csv(index=False, float_format="%.6f", lineterminator="\n")
        write_whole(folder / f"{name}.csv", text.encode(), readable=True)
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    write_figures(table_2, curves, figures)
    write_page(folder / "index.html", table_2, curves, runtimes, settings=_settings(plan, left_out))
    return Reproduction(folder / "index.html", tuple(left_out.values()))


def _settings(plan: Plan, left_out: dict[str, str]) -> dict[str, Any]:
    return {
        "Table 2": f"{len(plan.table_2_folds)} folds × {plan.table_2_repetitions} repetitions × {ROWS:,} rows",
        "Figures": f"{len(plan.curve_folds)} folds × {plan.curve_repetitions} repetitions × {ROWS:,} rows",
        **{f"Left out: {name}": reason for name, reason in left_out.items()},
        **kept.made_with(),
    }
