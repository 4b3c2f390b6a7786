"""All cells, in parallel; those that are already done are not run again."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from pathlib import Path

from fairmaxent.experiments import cells as kept
from fairmaxent.experiments.plan import Cell


def run(cells: Iterable[Cell], folder: Path, *, workers: int | None = None) -> Iterator[Cell]:
    """Run the cells that are not in the folder yet, and yield each cell once it is; stopping early keeps them."""
    todo = []
    for cell in sorted(cells, key=lambda cell: -cell.cost):
        if kept.find(cell, folder) is None:
            todo.append(cell)
        else:
            yield cell
    if not todo:
        return
    count = workers or os.cpu_count() or 1
    # Spawned rather than forked, because threads of the libraries loaded here do not survive a fork.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(count, len(todo)), mp_context=context, initializer=_prepare_worker)
    futures = {pool.submit(_run_and_save, cell, folder): cell for cell in todo}
    try:
        for future in as_completed(futures):
            future.result()
            yield futures[future]
    finally:
        _stop(pool)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers; only the cells that are still running are lost."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _run_and_save(cell: Cell, folder: Path) -> None:
    kept.save(cell, kept.run_cell(cell), folder)


def _prepare_worker() -> None:
    """Use one linear algebra thread per worker, and end the worker when its parent process ends."""
    import signal

    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
