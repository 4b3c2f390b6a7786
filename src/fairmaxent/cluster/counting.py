"""From a Dask frame to partitions: rows coded, merged and counted by tasks on the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairmaxent.blocks import Blocks
from fairmaxent.cluster.partitions import Partitions
from fairmaxent.domain import Domain
from fairmaxent.engines.lazy import Lazy
from fairmaxent.engines.rows import Counts, keyed, table_of
from fairmaxent.errors import InputError
from fairmaxent.table import Table

if TYPE_CHECKING:
    from distributed import Client


def count_on_workers(client: Client, lazy: Lazy, domain: Domain, blocks: Blocks, weight: str | None) -> Partitions:
    """Code the rows, merge equal ones and count them; each distinct row comes to lie in one of as many partitions.

    Rows meet by a shuffle made of plain tasks, of which those that a lost worker did can be done again.
    """
    from dask import delayed

    coded, columns = keyed(lazy, domain, blocks, weight)
    frame = coded.to_native().assign(**{columns.rows: 1})
    totals = dict.fromkeys([columns.rows, *columns.weights], "sum")
    counted = frame.groupby(columns.keys, sort=False).agg(totals, split_out=frame.npartitions, shuffle_method="tasks")
    parts = [delayed(_table)(part, columns, blocks) for part in counted.reset_index().to_delayed()]
    found = Partitions.of(client, blocks, client.compute(parts))
    if not found.distinct:
        raise InputError("the table has no rows; pass at least one")
    return found


def _table(found: Any, columns: Counts, blocks: Blocks) -> Table:
    return table_of(nw.from_native(found, eager_only=True), columns, blocks)
