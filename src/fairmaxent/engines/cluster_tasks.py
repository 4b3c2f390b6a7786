"""Work on the workers: one task for each partition, and results merged there."""

import asyncio
import pickle
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from fairmaxent.data.frames import library_errors
from fairmaxent.errors import InputError

Client = Any  # of Dask, which is slow to import
Future = Any
Function = Callable[..., Any]

_MERGED = 8  # results, by one task
_SMALL = 1 << 12  # bytes that are sent along with each task


def active_client() -> Client | None:
    """Return the Dask client that the user has started, if any; none is created."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def spread(
    client: Client,
    function: Function,
    parts: Sequence[Future],
    *,
    beside: Sequence[Sequence[Any]] = (),
    **shared: Any,
) -> list[Future]:
    """Compute ``function(part, *beside, **shared)`` for each partition on the workers.

    The results stay there. Each sequence in ``beside`` has one value for each
    partition. What all share is sent along with each task if it is small, or else once,
    as the result of a task, which Dask can repeat; scattered data would be lost with
    its worker.
    """
    check_running(client)
    if len(pickle.dumps(shared)) > _SMALL:
        sent = client.submit(dict, shared, pure=False)
    else:
        sent = shared
    name = f"fairmaxent-{function.__name__.strip('_')}"  # that Dask shows for the tasks
    return list(
        client.map(
            partial(_call, function),
            parts,
            *beside,
            [sent] * len(parts),
            pure=False,
            key=name,
        )
    )


def _call(function: Function, *values: Any) -> Any:
    *positional, shared = values
    return function(*positional, **shared)


def merged(
    client: Client,
    function: Function,
    merge: Function,
    parts: Sequence[Future],
    **how: Any,
) -> Any:
    """Merge the results of `spread` on the workers, and bring the final one here."""
    futures = spread(client, function, parts, **how)
    while len(futures) > 1:
        groups = [
            futures[first : first + _MERGED]
            for first in range(0, len(futures), _MERGED)
        ]
        futures = [client.submit(merge, group, pure=False) for group in groups]
    return results(client, futures)[0]


def gathered(
    client: Client, function: Function, parts: Sequence[Future], **how: Any
) -> list[Any]:
    """Bring the results of `spread` into this process."""
    return results(client, spread(client, function, parts, **how))


def results(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for results and bring them into this process."""
    from distributed import KilledWorker

    check_running(client)
    with cluster_errors():
        try:
            return list(client.gather(list(futures)))
        except KilledWorker as problem:
            raise InputError(
                "several workers of the cluster died one after the other on the same"
                " part of the table, most likely for lack of memory; split the frame"
                " into more partitions (frame.repartition), or give the workers more"
                " memory"
            ) from problem


def cluster_errors() -> AbstractContextManager[None]:
    """Turn the errors of a cluster that is lost while it works into one of our own."""
    return library_errors(
        "the Dask cluster failed or stopped answering",
        "look at its logs, and run it again",
        TimeoutError,
        asyncio.CancelledError,
        CancelledError,
    )


def check_running(client: Client) -> None:
    """Refuse a client that is closed."""
    if client.status != "running":
        raise InputError(
            "the rows of this fit were on a Dask cluster, and its client is closed; fit"
            " again, and call fit.collect() or fit.save(path) before you close the"
            " client"
        )
