"""Work on the workers: one task for each partition, and merging before anything travels."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fairmaxent.errors import InputError

if TYPE_CHECKING:
    from distributed import Client, Future

# Results that one task merges.
_MERGED = 8
# Bytes of a value that every task brings along.
_SMALL = 1 << 12


def active_client() -> Client | None:
    """Return the Dask client that the user has started, if any; none is made."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def spread(
    client: Client,
    function: Callable[..., Any],
    parts: Sequence[Future],
    *,
    beside: Sequence[Sequence[Any]] = (),
    **shared: Any,
) -> list[Future]:
    """``function(part, *beside, **shared)`` of each partition, left on the workers.

    ``beside`` are sequences that have something of its own for each partition.
    """
    check_running(client)
    small = {name: value for name, value in shared.items() if _is_small(value)}
    large = [name for name in shared if name not in small]
    held = ([_send(client, shared[name])] * len(parts) for name in large)
    task = partial(_with_shared, function, small, large)
    return list(client.map(task, parts, *beside, *held, pure=False, key=_key(function)))


def merged(
    client: Client,
    function: Callable[..., Any],
    merge: Callable[[list[Any]], Any],
    parts: Sequence[Future],
    *,
    beside: Sequence[Sequence[Any]] = (),
    **shared: Any,
) -> Any:
    """``merge`` of what `spread` gives, on the workers: only the last result travels."""
    found = spread(client, function, parts, beside=beside, **shared)
    while len(found) > 1:
        groups = [found[first : first + _MERGED] for first in range(0, len(found), _MERGED)]
        found = [client.submit(merge, group, pure=False) for group in groups]
    return results(client, found)[0]


def gathered(
    client: Client,
    function: Callable[..., Any],
    parts: Sequence[Future],
    *,
    beside: Sequence[Sequence[Any]] = (),
    **shared: Any,
) -> list[Any]:
    """What `spread` gives, in this process."""
    return results(client, spread(client, function, parts, beside=beside, **shared))


def results(client: Client, found: Sequence[Future]) -> list[Any]:
    """Wait for results and take them into this process."""
    from distributed import KilledWorker

    check_running(client)
    try:
        return list(client.gather(list(found)))
    except KilledWorker as problem:
        raise InputError(
            "one piece of the table brought down several workers of the cluster in turn, most likely for lack of "
            "memory; cut the frame into more partitions (frame.repartition), or give the workers more memory"
        ) from problem


def check_running(client: Client) -> None:
    """Refuse to work for a client that is closed."""
    if client.status != "running":
        raise InputError(
            "the rows of this fit were on a Dask cluster and its client is closed; fit again, and before closing it "
            "call fit.collect() or fit.save(path)"
        )


def _key(function: Callable[..., Any]) -> str:
    """The name that its tasks show under."""
    return f"fairmaxent-{function.__name__.strip('_')}"


def _is_small(value: Any) -> bool:
    """Whether a value goes along with each task; a larger one goes to the cluster once."""
    return len(pickle.dumps(value)) <= _SMALL


def _send(client: Client, value: Any) -> Future:
    """Bring a value to the cluster as the result of a task: that can be done again, what was sent would be lost."""
    return client.submit(_itself, value, pure=False)


def _itself(value: Any) -> Any:
    return value


def _with_shared(function: Callable[..., Any], small: dict[str, Any], large: list[str], *values: Any) -> Any:
    """Call with what each task brings along, and with the large values, which come last."""
    own = len(values) - len(large)
    return function(*values[:own], **small, **dict(zip(large, values[own:], strict=True)))
