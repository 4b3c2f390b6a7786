"""New rows and weights made on the workers of Dask, and in the tasks of Spark.

p* is the sum of the partitions' parts: the rows of the partition, and an equal share of
the base. So the wanted rows of each cell are first divided among the partitions at
random, and each partition then draws its part. Weights follow from the levels of a row
alone: no join, and no row moves.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import shuffled_cells
from fairmaxent.data.quotas import divided
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Indices,
    Names,
    Reals,
)
from fairmaxent.engines.cluster_partitions import Partitions, attached, detached
from fairmaxent.engines.cluster_tasks import (
    gathered,
    spread,
    watched,
    with_columns_by_part,
)
from fairmaxent.engines.lazy_counts import Coding
from fairmaxent.engines.lazy_frame import Lazy
from fairmaxent.errors import InputError
from fairmaxent.files.write import remove_unfinished, write_whole
from fairmaxent.maxent.forbidden import Rule, break_any
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import Density, Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.progress import Progress


@dataclass(frozen=True, eq=False)
class Delivery:
    """How block codes become rows like those of the input, and the rows files."""

    domain: Domain
    blocks: Blocks
    columns: Names
    weight_column: frames.Column | None  # a 1 of the same kind as the weight column
    folder: Path
    size: int  # rows of a file at most
    # each row of the data is drawn as often as its weight says, give or take one; not
    # independently
    evenly: bool
    readable: bool  # by other users


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
    progress: Progress,
) -> None:
    """Draw ``cells[i]`` rows of each cell i into files of a folder.

    The rows depend only on ``rng``.
    """
    client = table.client
    travelling, rows = detached(source.prior, table.parts)
    shared = {
        "prior": travelling,
        "potentials": source.potentials,
        "log_share": -float(np.log(len(table.parts))),
    }
    tilted = spread(
        client,
        _tilted,
        table.parts,
        beside=[rows],
        **shared,
    )
    masses = np.array(
        gathered(
            client,
            _masses,
            tilted,
            blocks=delivery.blocks,
        )
    )
    # each file is a partition, and its rows of each cell
    tasks = [
        (part, share)
        for part, own in enumerate(_divided(cells, masses, rng))
        for share in divided(own, delivery.size, rng)
        if share.any()
    ]
    seeds = [int(seed) for seed in rng.integers(2**63, size=len(tasks))]
    paths = [str(delivery.folder / part_name(number)) for number in range(len(tasks))]
    written = spread(
        client,
        _write,
        [tilted[part] for part, _ in tasks],
        beside=([cells for _, cells in tasks], seeds, paths),
        delivery=delivery,
    )
    watched(client, written, partial(progress, "rows"))
    remove_unfinished(delivery.folder)


def _divided(cells: Indices, masses: Reals, rng: Generator) -> Indices:
    """Divide the rows of each cell among the partitions at random: (parts, cells)."""
    top = masses.max(axis=0)
    shares = np.exp(masses - np.where(np.isfinite(top), top, 0.0)).T
    shares[cells == 0] = 1.0  # such a cell may have no mass in any partition
    return rng.multinomial(cells, shares / shares.sum(axis=1, keepdims=True)).T


# ---------------------------------------------------------------- on the workers


def _tilted(
    _: Any,
    rows: Rows,
    prior: Prior,
    potentials: Reals,
    log_share: float,
) -> TiltedMixture:
    return attached(prior, rows, log_share).tilt(potentials)


def _masses(tilted: TiltedMixture, blocks: Blocks) -> Reals:
    """Logarithm of the partition's mass in each level of the root."""
    with np.errstate(divide="ignore"):
        logs = np.log(tilted.levels[blocks.slices[0]])
    return tilted.log_partition + logs


def _write(
    tilted: TiltedMixture,
    cells: Indices,
    seed: int,
    path: str,
    delivery: Delivery,
) -> None:
    """Draw rows, a value for each level, with columns like the input's and weight 1."""
    rng = np.random.default_rng(seed)
    drawn = tilted.draw(shuffled_cells(cells, rng), rng, spread=delivery.evenly)
    frame = delivery.domain.decode(delivery.blocks.unpool(drawn.codes), rng=rng)
    rows = frames.arrange(frame, delivery.columns, delivery.weight_column)
    write_part(rows, Path(path), readable=delivery.readable)


def level_weights(
    codes: Codes, blocks: Blocks, log_levels: Reals, rules: Sequence[Rule]
) -> Reals:
    """The product of the weights of each row's levels; 0 if it breaks a rule."""
    scores = np.zeros(len(codes))
    for column, part in zip(codes.T, blocks.split(log_levels), strict=True):
        scores += part[column]
    return np.where(break_any(rules, codes), 0.0, np.exp(scores))


def draw_by_tasks(frame: Any, draw: Callable[..., Any], shares: Indices) -> Any:
    """Let the tasks of Spark draw: ``draw(cells, number)`` for each of the ``shares``.

    They are rows of a table (batches, cells). Returns a Spark frame with the columns of
    ``frame``.
    """
    numbers = frame.sparkSession.range(len(shares))

    def drawn(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from draw(shares[number], number).to_batches()

    return numbers.mapInArrow(drawn, frame.schema)


def weigh_rows(
    lazy: Lazy,
    roles: Roles,
    log_levels: Reals,
    *,
    rules: Sequence[Rule],
    weight: str | None,
    scale: float,
    name: str,
) -> Any:
    """Return the Dask or Spark frame with a column ``name``, the weight of each row.

    It is the product of the weights of its levels and its scaled design weight. Rows
    that break a rule get the weight 0. No row moves.
    """
    if not (lazy.implementation.is_dask() or lazy.implementation.is_spark_like()):
        raise InputError(
            "the rows of this fit stay on a Dask cluster; pass the Dask frame that was"
            " fitted, or for another kind of frame use fit.collect().weigh(frame)"
        )
    coding = Coding.of(roles.domain, roles.blocks, weight, taken=())

    def weighed(frame: Any) -> dict[str, Reals]:  # of one part, in memory
        codes = coding.codes(frame)
        weights = level_weights(codes, roles.blocks, log_levels, rules)
        if weight is not None:
            opened = nw.from_native(frame, eager_only=True)
            weights *= frames.to_numbers(opened.get_column(weight)) / scale
        return {name: weights}

    return with_columns_by_part(lazy, weighed, {name: float}).to_native()
