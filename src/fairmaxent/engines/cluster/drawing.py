"""New rows drawn on the workers and written as Parquet files, partition by partition.

p* is the sum of what each partition has of it: its own rows, and an equal share of the base. So the wanted rows of each
cell are shared out among the partitions first, by chance, and each then draws its own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import quota
from fairmaxent.engines.cluster.partitioned_rows import detached
from fairmaxent.engines.cluster.partitions import Partitions
from fairmaxent.engines.cluster.tasks import gathered, results, spread
from fairmaxent.engines.cluster.worker_prior import attached
from fairmaxent.files.atomic import remove_unfinished, write_whole
from fairmaxent.maxent.priors.mixture import TiltedMixture
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.progress import Progress

if TYPE_CHECKING:
    from distributed import Future


@dataclass(frozen=True, eq=False)
class Form:
    """How block codes become rows like those of the input."""

    domain: Domain
    blocks: Blocks
    columns: tuple[str, ...]
    weight_column: frames.Column | None  # a one of the weight column's kind

    def rows(self, pooled: Codes, rng: np.random.Generator) -> Any:
        """Draw what codes leave open, and put the columns in the order of the input, the weight column as ones."""
        frame = self.domain.decode(self.blocks.unpool(pooled), rng=rng)
        return frames.arrange(frame, self.columns, self.weight_column)


def part_name(number: int) -> str:
    """Name a file so that names sort as numbers do.

    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05}.parquet"


def write_part(frame: Any, path: Path) -> None:
    """Write one table as Parquet, whole or not at all."""
    content = io.BytesIO()
    nw.from_native(frame, eager_only=True).write_parquet(content)
    write_whole(path, content.getvalue())


def write_on_workers(
    table: Partitions,
    prior: Prior,
    potentials: Reals,
    cells: NDArray[np.intp],
    folder: Path,
    form: Form,
    *,
    size: int,
    evenly: bool,
    rng: np.random.Generator,
    progress: Progress,
) -> None:
    """Draw so many rows of each cell, in files of at most ``size`` rows; what is written depends on ``rng`` alone.

    ``evenly``: rows of the data come as often as they weigh, up to one, rather than independently of each other.
    """
    client = table.client
    travelling, rows = detached(prior, table.parts)
    shared = {"prior": travelling, "potentials": potentials, "log_share": -float(np.log(len(table.parts)))}
    tilted = spread(client, _tilted, table.parts, beside=[rows], **shared)
    masses = np.array(gathered(client, _masses, tilted, blocks=form.blocks))
    tasks = _files(_shared_out(cells, masses, rng), size)
    own = (
        [cells for _, cells in tasks],
        [int(seed) for seed in rng.integers(2**63, size=len(tasks))],
        [str(folder / part_name(number)) for number in range(len(tasks))],
    )
    written = spread(client, _write, [tilted[part] for part, _ in tasks], beside=own, form=form, evenly=evenly)
    _wait(written, progress)
    results(client, written)
    remove_unfinished(folder)


def _shared_out(cells: NDArray[np.intp], masses: Reals, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of each cell that each partition is to draw: (parts, cells)."""
    top = masses.max(axis=0)
    shares = np.exp(masses - np.where(np.isfinite(top), top, 0.0)).T
    shares[cells == 0] = 1.0  # which may have no mass anywhere
    return rng.multinomial(cells, shares / shares.sum(axis=1, keepdims=True)).T


def _files(wanted: NDArray[np.intp], size: int) -> list[tuple[int, NDArray[np.intp]]]:
    """Cut what each partition is to draw into files."""
    files = []
    for part, own in enumerate(wanted):
        left = own
        while left.any():
            now = quota(left.astype(np.float64), min(size, int(left.sum())))
            files.append((part, now))
            left = left - now
    return files


def _wait(written: Sequence[Future], progress: Progress) -> None:
    from distributed import as_completed

    for done, _ in enumerate(as_completed(written), start=1):
        progress("rows", done / len(written))


# ---------------------------------------------------------------- on the workers


def _tilted(_: Any, rows: Rows, prior: Prior, potentials: Reals, log_share: float) -> TiltedMixture | None:
    own = attached(prior, rows, log_share)
    return None if own is None else own.tilt(potentials)


def _masses(tilted: TiltedMixture | None, blocks: Blocks) -> Reals:
    """Logarithm of the mass that a partition has in each level of the root."""
    if tilted is None:
        return np.full(blocks.levels[0], -np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(tilted.log_partition + np.log(tilted.levels[blocks.slices[0]]))


def _write(tilted: TiltedMixture, cells: NDArray[np.intp], seed: int, path: str, form: Form, *, evenly: bool) -> None:
    rng = np.random.default_rng(seed)
    roots = rng.permutation(np.repeat(np.arange(len(cells)), cells))
    write_part(form.rows(tilted.draw(roots, rng, spread=evenly).codes, rng), Path(path))
