"""From a Dask frame to partitions: tasks on the workers encode, merge and count the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.table import Table
from fairmaxent.engines.cluster.partitions import Partitions
from fairmaxent.engines.lazy.frame import Lazy
from fairmaxent.engines.lazy.row_counts import CountColumns, keyed, table_of
from fairmaxent.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

# Distinct rows that are worth a task of their own in each iteration, and a number of partitions that is always fine.
_ROWS = 1 << 16
_FEWEST = 8


def count_on_workers(client: Client, lazy: Lazy, domain: Domain, blocks: Blocks, weight: str | None) -> Partitions:
    """Encode the rows, merge equal ones and count them; each distinct row ends up in exactly one partition.

    Equal rows are brought together by a shuffle made of plain tasks, which Dask can repeat if a worker is lost. The
    result has as many partitions as the frame, or fewer if they would be small. The size of the cluster does not
    matter, so a seed gives the same rows everywhere.
    """
    from dask import delayed

    coded, columns = keyed(lazy, domain, blocks, weight)
    frame = coded.to_native().assign(**{columns.rows: 1})
    totals = dict.fromkeys([columns.rows, *columns.added], "sum")
    if columns.peak is not None:
        totals[columns.peak] = "max"
    counted = frame.groupby(columns.keys, sort=False).agg(totals, split_out=frame.npartitions, shuffle_method="tasks")
    parts = [delayed(_table)(part, columns, blocks) for part in counted.reset_index().to_delayed()]
    partitions = Partitions.of(client, blocks, client.compute(parts))
    if not partitions.distinct:
        raise InputError("the table has no rows; pass at least one")
    return partitions.regrouped(max(_FEWEST, -(-partitions.distinct // _ROWS)))


def _table(counts: Any, columns: CountColumns, blocks: Blocks) -> Table:
    return table_of(nw.from_native(counts, eager_only=True), columns, blocks)
