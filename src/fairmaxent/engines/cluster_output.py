"""New rows made on the workers of Dask, and in the tasks of Spark.

p* is the sum of the partitions' parts: the rows of the partition, and an equal share of
the base. So the wanted rows of each cell are first divided among the partitions at
random, and each partition then draws its part.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.quotas import divided
from fairmaxent.data.table import (
    Blocks,
    Indices,
    Names,
    Reals,
)
from fairmaxent.engines.cluster_partitions import (
    Partitions,
    among_partitions,
    attached,
    detached,
    draw_cells,
)
from fairmaxent.engines.cluster_tasks import (
    spread_out,
    watched,
)
from fairmaxent.files.write import remove_unfinished, write_whole
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import Density, Prior, Tilted
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.progress import Progress


@dataclass(frozen=True, eq=False)
class Delivery:
    """How block codes become rows like those of the input."""

    domain: Domain
    blocks: Blocks
    columns: Names
    weight_column: frames.Column | None  # a 1 of the same kind as the weight column
    # each row of the data is drawn as often as its weight says, give or take one; not
    # independently
    evenly: bool

    def draw(self, tilted: Tilted, cells: Indices, seed: int | Sequence[int]) -> Any:
        """Draw so many rows of each cell: a value for each level, and weight 1."""
        codes = draw_cells(tilted, cells, seed, spread=self.evenly)
        rng = np.random.default_rng([1, *np.atleast_1d(seed)])
        frame = self.domain.decode(self.blocks.unpool(codes), rng=rng)
        return frames.arrange(frame, self.columns, self.weight_column)


def part_name(number: int) -> str:
    """Name a file so that the names sort like the numbers."""
    return f"part-{number:05}.parquet"


def write_part(frame: Any, path: Path, *, readable: bool) -> None:
    """Write one table as Parquet, completely or not at all.

    A worker that is killed leaves only a hidden file.
    """
    content = io.BytesIO()
    nw.from_native(frame, eager_only=True).write_parquet(content)
    write_whole(path, content.getvalue(), readable=readable)


def write_on_workers(
    table: Partitions,
    source: Density,
    cells: Indices,
    delivery: Delivery,
    rng: Generator,
    *,
    folder: Path,
    size: int,
    readable: bool,
    progress: Progress,
) -> None:
    """Draw ``cells[i]`` rows of each cell i into files of at most ``size`` rows.

    The rows depend only on ``rng``.
    """
    client = table.client
    travelling, rows = detached(source.prior, table.parts)
    tilted = spread_out(
        client,
        _tilted,
        table.parts,
        beside=[rows],
        prior=travelling,
        potentials=source.potentials,
        log_share=-float(np.log(len(table.parts))),
    )
    by_part = among_partitions(client, tilted, cells, delivery.blocks, rng)
    # each file is a partition, and its rows of each cell
    tasks = [
        (part, share)
        for part, own in zip(tilted, by_part, strict=True)
        for share in divided(own, size, rng)
        if share.any()
    ]
    parts, wanted = zip(*tasks, strict=True)
    seeds = rng.integers(2**63, size=len(tasks)).tolist()
    paths = [str(folder / part_name(number)) for number in range(len(tasks))]
    written = spread_out(
        client,
        _write,
        parts,
        beside=(wanted, seeds, paths),
        delivery=delivery,
        readable=readable,
    )
    watched(client, written, partial(progress, "rows"))
    remove_unfinished(folder)


# ---------------------------------------------------------------- on the workers


def _tilted(
    _: Any,
    rows: Rows,
    prior: Prior,
    potentials: Reals,
    log_share: float,
) -> TiltedMixture:
    return attached(prior, rows, log_share).tilt(potentials)


def _write(
    tilted: Tilted,
    cells: Indices,
    seed: int,
    path: str,
    delivery: Delivery,
    *,
    readable: bool,
) -> None:
    write_part(delivery.draw(tilted, cells, seed), Path(path), readable=readable)


def draw_by_tasks(
    frame: Any, tilted: Tilted, shares: Indices, delivery: Delivery, seed: int
) -> Any:
    """Let the tasks of Spark draw ``shares``, rows of a table (batches, cells).

    Returns a Spark frame with the columns of ``frame``.
    """
    numbers = frame.sparkSession.range(len(shares))

    def drawn(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = delivery.draw(tilted, shares[number], [seed, number])
                yield from rows.to_batches()

    return numbers.mapInArrow(drawn, frame.schema)
