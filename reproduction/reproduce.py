"""The paper's tables and figures, made by one call.

All cells run in parallel, except those that are already done.
"""

import importlib.util
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from fairmaxent.errors import DependencyError, InputError, StorageError, did_you_mean
from fairmaxent.files.write import write_whole
from reproduction import cells as stored
from reproduction import datasets
from reproduction.cells import (
    CURVE_BLOCKS,
    FULL,
    QUICK,
    ROWS,
    TABLE_2_BLOCKS,
    TABLE_2_METHODS,
    Cell,
    Method,
)
from reproduction.figures import write_figures
from reproduction.page import load_published, render_page

_TABLE_2_NAMES = {method: name for name, method in TABLE_2_METHODS.items()}


def run(
    cells: Iterable[Cell], folder: Path, *, workers: int | None = None
) -> Iterator[Cell]:
    """Run the cells that are not in the folder yet, and yield each once it is.

    Stopping early keeps those that are done.
    """
    todo = []
    for cell in sorted(cells, key=lambda cell: -cell.cost):
        if stored.find(cell, folder) is None:
            todo.append(cell)
        else:
            yield cell
    if not todo:
        return
    count = workers or os.cpu_count() or 1
    # Spawned rather than forked, because threads of the libraries loaded here do not
    # survive a fork.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        min(count, len(todo)), mp_context=context, initializer=_prepare_worker
    )
    futures = {pool.submit(stored.save, cell, folder): cell for cell in todo}
    try:
        for future in as_completed(futures):
            future.result()
            yield futures[future]
    finally:  # end the workers; only the cells that are still running are lost
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _prepare_worker() -> None:
    """Use one linear algebra thread, and end the worker when its parent ends."""
    import signal

    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    # the parent decides what an interrupt means
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def table_2(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, method, metric, mean, sd, error.

    The mean is over folds and repetitions, and the standard deviation is that of the
    folds' means. The standard error of the mean covers only the drawing of rows,
    because the folds are the same in every run.
    """
    return _summary(cells, folder, lambda method: {"method": _TABLE_2_NAMES[method]})


def curves(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, prior, theta, C, metric, mean, sd, error."""
    return _summary(cells, folder, vars)


def runtimes(cells: Iterable[Cell], folder: Path) -> Any:
    """Return dataset, protected, method, seconds.

    Seconds are CPU time to learn and to draw rows once, the mean over folds.
    """
    import pandas as pd

    labels = ["dataset", "protected", "method"]
    times = [(cell, _record(cell, folder)["seconds"]) for cell in cells]
    found = [
        (cell.dataset, cell.protected, _TABLE_2_NAMES[cell.method], seconds)
        for cell, seconds in times
    ]
    rows = pd.DataFrame(found, columns=[*labels, "seconds"])
    return rows.groupby(labels, sort=False)["seconds"].mean().reset_index()


def _record(cell: Cell, folder: Path) -> stored.Record:
    record = stored.find(cell, folder)
    assert record is not None  # it was run before
    return record


def _summary(
    cells: Iterable[Cell], folder: Path, labels_of: Callable[[Method], dict[str, Any]]
) -> Any:
    import pandas as pd

    rows = []
    for cell in cells:
        record = _record(cell, folder)
        # Repetitions without a value (the outcome was predicted for nobody) do not
        # count.
        drawn = pd.DataFrame(record["repetitions"])
        variances = (drawn.var() / drawn.count()).to_dict()
        for metric, value in (drawn.mean().to_dict() | record["exact"]).items():
            block = {"dataset": cell.dataset, "protected": cell.protected}
            measured = {
                "metric": metric,
                "value": value,
                "variance": variances.get(metric, 0.0),
            }
            rows.append(block | labels_of(cell.method) | measured)
    labels = list(rows[0])[:-2]
    grouped = pd.DataFrame(rows).groupby(labels, sort=False)
    summary = grouped["value"].agg(mean="mean", sd="std")
    summary["error"] = grouped["variance"].mean() ** 0.5 / grouped.size() ** 0.5
    return summary.reset_index()


def table_2_rows(
    folder: Path,
    data: str,
    methods: Sequence[str] = (),
    *,
    quick: bool = False,
    workers: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Any:
    """Some rows of Table 2, beside the numbers in print and of the authors' code.

    Finished cells are kept in the folder, and are those of the whole reproduction.
    """
    _check_known("data", [data], dict(TABLE_2_BLOCKS))
    _check_known("methods", methods, TABLE_2_METHODS)
    plan = QUICK if quick else FULL
    blocks = [block for block in TABLE_2_BLOCKS if block[0] == data]
    chosen = methods or tuple(TABLE_2_METHODS)
    cells = [
        cell for cell in plan.table_2(blocks) if _TABLE_2_NAMES[cell.method] in chosen
    ]
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for done, _ in enumerate(run(cells, folder / "cells", workers=workers), start=1):
        progress(done / len(cells))
    measured = table_2(cells, folder / "cells").drop(columns="error")
    keys = ["dataset", "protected", "method", "metric"]
    return measured.merge(load_published(), on=keys, how="left")


def _check_known(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    listed = list(known)
    for name in names:
        if name not in listed:
            raise InputError(f"--{option} {name}: {did_you_mean(name, listed)}")


def reproduce(
    folder: Path,
    *,
    quick: bool = False,
    workers: int | None = None,
    download: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[Path, list[str]]:
    """Run the experiments; return the path of the page, and why data were left out.

    Finished cells stay in the folder, so a run that was stopped can be continued. A
    data set that is not available is left out, and the page says so; ``download``
    fetches COMPAS large, which is not shipped.
    """
    # Missing libraries are reported now, not after hours of work.
    needed = {
        "jinja2": "jinja2",
        "matplotlib": "matplotlib",
        "pandas": "pandas",
        "sklearn": "scikit-learn",
    }
    missing = [
        package
        for name, package in needed.items()
        if not importlib.util.find_spec(name)
    ]
    if missing:
        raise DependencyError(
            f"the reproduction needs {', '.join(missing)}; pip install"
            f" {' '.join(missing)}"
        )
    if folder.is_dir() and not (folder / "cells").is_dir() and any(folder.iterdir()):
        raise StorageError(
            f"{folder} is not empty and holds no earlier reproduction; name another"
            " folder"
        )
    plan = QUICK if quick else FULL
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    left_out = _unavailable(download=download)
    table_2_cells = plan.table_2(
        [block for block in TABLE_2_BLOCKS if block[0] not in left_out]
    )
    curve_cells = plan.curves(
        [block for block in CURVE_BLOCKS if block[0] not in left_out]
    )
    planned = [*table_2_cells, *curve_cells]
    total = sum(cell.cost for cell in planned)
    done = 0.0
    for cell in run(planned, folder / "cells", workers=workers):
        done += cell.cost
        progress(done / total)
    cells = folder / "cells"
    figures = folder / "figures"
    page = folder / "index.html"
    numbers = table_2(table_2_cells, cells)
    times = runtimes(table_2_cells, cells)
    over_shares = curves(curve_cells, cells)
    for name, table in (
        ("table2", numbers),
        ("runtimes", times),
        ("curves", over_shares),
    ):
        shown = table.drop(columns="error", errors="ignore")
        text = shown.to_csv(index=False, float_format="%.6f", lineterminator="\n")
        write_whole(folder / f"{name}.csv", text.encode(), readable=True)
    figures.mkdir(exist_ok=True)
    write_figures(numbers, over_shares, figures)
    settings = {
        "Table 2": (
            f"{len(plan.table_2_folds)} folds × {plan.table_2_repetitions} repetitions"
            f" × {ROWS:,} rows"
        ),
        "Figures": (
            f"{len(plan.curve_folds)} folds × {plan.curve_repetitions} repetitions ×"
            f" {ROWS:,} rows"
        ),
        **{f"Left out: {name}": reason for name, reason in left_out.items()},
        **stored.made_with(),
    }
    written = render_page(numbers, over_shares, times, settings=settings)
    write_whole(page, written.encode(), readable=True)
    return page, list(left_out.values())


def _unavailable(*, download: bool) -> dict[str, str]:
    """The data sets that cannot be loaded, and why."""
    reasons: dict[str, str] = {}
    for name in dict(TABLE_2_BLOCKS):
        if (
            name == "compas-large"
            and not download
            and not os.environ.get(datasets.FOLDER_VARIABLE)
        ):
            reasons[name] = (
                f"{name} is not shipped, and nothing is downloaded unless you ask for"
                " it; add --download, or save its files in a folder and set the"
                f" environment variable {datasets.FOLDER_VARIABLE} to it"
            )
            continue
        try:
            stored.load(name)
        except StorageError as problem:
            reasons[name] = str(problem)
    return reasons
