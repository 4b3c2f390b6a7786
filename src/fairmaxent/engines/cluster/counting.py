"""From a Dask frame to partitions: rows coded, merged and counted by tasks on the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import Table
from fairmaxent.engines.cluster.partitions import Partitions
from fairmaxent.engines.lazy.frame import Lazy
from fairmaxent.engines.lazy.row_counts import Counts, keyed, table_of
from fairmaxent.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

# Distinct rows that are worth a task in every iteration, and partitions that are left as they are in any case.
_ROWS = 1 << 16
_FEWEST = 8


def count_on_workers(client: Client, lazy: Lazy, domain: Domain, blocks: Blocks, weight: str | None) -> Partitions:
    """Code the rows, merge equal ones and count them; each distinct row comes to lie in one partition.

    Rows meet by a shuffle made of plain tasks, of which those that a lost worker did can be done again. There are as
    many partitions as the frame has, or fewer where these would be small; the size of the cluster plays no part, so
    that a seed means the same rows everywhere.
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
    return found.regrouped(max(_FEWEST, -(-found.distinct // _ROWS)))


def _table(found: Any, columns: Counts, blocks: Blocks) -> Table:
    return table_of(nw.from_native(found, eager_only=True), columns, blocks)
