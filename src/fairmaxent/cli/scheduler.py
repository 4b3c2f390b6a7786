"""``fairmaxent debias --scheduler``: the work is done by the workers of a Dask cluster, files included."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairmaxent.data.frames import load_library
from fairmaxent.data.table import Reals
from fairmaxent.engines.cluster_tasks import cluster_errors
from fairmaxent.errors import InputError, StorageError, first_line
from fairmaxent.files.reading import TableFile
from fairmaxent.report.delivered import DrawnBatches

if TYPE_CHECKING:
    from fairmaxent.cli.output_options import OutputOptions
    from fairmaxent.fit.fit import Fit
    from fairmaxent.progress import Progress

_PATIENCE = 10  # seconds to wait for a scheduler, and for its first worker


@contextlib.contextmanager
def connected(address: str) -> Iterator[None]:
    """Work on the cluster at an address, whose client is the active one inside."""
    distributed = load_library("distributed")
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except Exception as problem:  # its transports raise whatever they like, e.g. TypeError without certificates
        raise InputError(
            f"no Dask scheduler answers at {address} ({first_line(problem)}); check the address, or start one there: "
            "dask scheduler"
        ) from problem
    with cluster_errors(), _without_logs(), client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as problem:
            raise InputError(
                f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
            ) from problem
        yield


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Keep the tracebacks that Dask logs off the terminal; what goes wrong is said in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def open_parquet(path: str) -> TableFile:
    """Open Parquet files, which the workers then read."""
    dask = load_library("dask.dataframe")
    try:
        frame = dask.read_parquet(path)
    except Exception as problem:  # whatever its readers raise
        raise StorageError(
            f"cannot read {path} as parquet ({_reason(problem)}); with --scheduler a table is a Parquet file or a "
            "folder of them, at a path that the workers see too"
        ) from problem
    return TableFile(nw.from_native(frame), ())


def _reason(problem: Exception) -> str:
    """What lies behind Dask's word that its reader failed."""
    cause = problem.__cause__
    return first_line(cause if isinstance(cause, Exception) else problem)


def write_parts(fit: Fit, rows: int, folder: Path, wanted: OutputOptions, *, progress: Progress) -> Reals:
    """Let the workers draw and write, and take the table of outcome and groups from what is in the files."""
    readable = wanted.readable_by_others
    fit.write_sample(rows, folder, iid=wanted.iid, readable_by_others=readable, progress=progress)
    drawn = DrawnBatches(fit)
    for part in sorted(folder.glob("*.parquet")):
        drawn.add(_read_columns(part, fit.roles.names))
    return drawn.table


def _read_columns(part: Path, names: tuple[str, ...]) -> Any:
    return load_library("pandas").read_parquet(part, columns=list(names))
