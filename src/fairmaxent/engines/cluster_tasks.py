"""Work on the workers: one task for each partition, and results merged there."""

import asyncio
import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from fairmaxent.data.frames import library_errors
from fairmaxent.errors import ClusterError, InputError
from fairmaxent.progress import unwatched

Client = Any  # of Dask, which is slow to import
Future = Any
Function = Callable[..., Any]
Watch = Callable[[float], None]  # is told which share is done

_MERGED = 8  # results, by one task


def active_client() -> Client | None:
    """Return the Dask client that the user has started, if any; none is created."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def by_part(native: Any, function: Function) -> list[Any]:
    """A task for each partition of a Dask frame: ``function``, which is sent once."""
    from dask import delayed

    shared = delayed(function, pure=False)
    return [shared(part) for part in native.to_delayed()]


def with_numbers_by_part(lazy: Any, function: Function, name: str) -> Any:
    """Add to each part of a Dask or Spark frame a column that a function makes of it.

    Spark passes batches of Arrow.
    """
    native = lazy.to_native()
    if lazy.implementation.is_spark_like():
        schema = copy.deepcopy(native.schema).add(name, "double")
        return native.mapInArrow(partial(_appended, function, name), schema)

    from dask import delayed

    meta = native._meta.assign(**{name: np.empty(0)})
    shared = delayed(function, pure=False)
    return native.map_partitions(_assigned, shared, name, meta=meta)


def _assigned(frame: Any, function: Function, name: str) -> Any:
    return frame.assign(**{name: function(frame)})


def _appended(function: Function, name: str, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        table = pyarrow.Table.from_batches([batch])
        numbers = pyarrow.array(function(table))
        yield from table.append_column(name, numbers).to_batches()


def reduced(tasks: Sequence[Any], merge: Function, watch: Watch = unwatched) -> Any:
    """Compute tasks of Dask, and merge their results where they are."""
    client = active_client()
    if client is None:
        import dask

        return merge(dask.compute(*tasks))
    futures = watched(client, client.compute(list(tasks)), watch)
    return _merged(client, merge, futures)


def watched(client: Client, futures: list[Future], watch: Watch) -> list[Future]:
    """Wait for results, which stay on the workers; tell which share of them is done."""
    from distributed import as_completed

    with cluster_errors():
        for done, future in enumerate(as_completed(futures), start=1):
            if future.status != "finished":
                results(client, [future])  # which raises what went wrong
            watch(done / len(futures))
    return futures


def spread_out(
    client: Client,
    function: Function,
    parts: Sequence[Future],
    *,
    beside: Sequence[Sequence[Any]] = (),
    **shared: Any,
) -> list[Future]:
    """Compute ``function(part, *beside, **shared)`` for each partition on the workers.

    The results stay there. Each sequence in ``beside`` has one value for each
    partition. What all share is sent once, as the result of a task, which Dask can
    repeat; scattered data would be lost with its worker. Such a task costs more than to
    send a few numbers with each.
    """
    check_running(client)
    name = f"fairmaxent-{function.__name__.strip('_')}"  # that Dask shows for the tasks
    if shared:
        sent = client.submit(dict, shared, pure=False)
        beside = (*beside, [sent] * len(parts))
        function = partial(_call, function)
    return client.map(function, parts, *beside, pure=False, key=name)


def _call(function: Function, *values: Any) -> Any:
    *positional, shared = values
    return function(*positional, **shared)


def merged(
    client: Client,
    function: Function,
    merge: Function,
    parts: Sequence[Future],
    *,
    then: Function | None = None,
    **how: Any,
) -> Any:
    """Merge the results of `spread_out` on the workers, and bring the final one here.

    Or what is made of each of its items ``then``.
    """
    return _merged(client, merge, spread_out(client, function, parts, **how), then)


def _merged(
    client: Client,
    merge: Function,
    futures: list[Future],
    then: Function | None = None,
) -> Any:
    while len(futures) > 1:
        groups = [
            futures[first : first + _MERGED]
            for first in range(0, len(futures), _MERGED)
        ]
        futures = [client.submit(merge, group, pure=False) for group in groups]
    if then is not None:
        futures = [client.submit(_each, then, futures[0], pure=False)]
    return results(client, futures)[0]


def _each(then: Function, items: list[Any]) -> list[Any]:
    return [then(item) for item in items]


def gathered(
    client: Client, function: Function, parts: Sequence[Future], **how: Any
) -> list[Any]:
    """Bring the results of `spread_out` into this process."""
    return results(client, spread_out(client, function, parts, **how))


def results(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for results and bring them into this process."""
    from distributed import KilledWorker

    check_running(client)
    with cluster_errors():
        try:
            return client.gather(list(futures))
        except KilledWorker as problem:
            raise InputError(
                "several workers of the cluster died one after the other on the same"
                " part of the table, most likely for lack of memory; split the frame"
                " into more partitions (frame.repartition), or give the workers more"
                " memory"
            ) from problem


def cluster_errors() -> AbstractContextManager[None]:
    """Turn the errors of a cluster that is lost while it works into one of our own.

    What a task says of its part of a table is raised as it is.
    """
    return library_errors(
        "the Dask cluster failed or stopped answering",
        "look at its logs, and run it again",
        TimeoutError,
        asyncio.CancelledError,
        CancelledError,
        error=ClusterError,
        libraries={"distributed", "tornado"},
    )


def check_running(client: Client) -> None:
    """Refuse a client that is closed, or has lost its scheduler."""
    if client.status != "running":
        raise InputError(
            "the rows of this fit were on a Dask cluster that has ended, or its client"
            " is closed; fit again, and call fit.collect() or fit.save(path) before"
            " that"
        )
