"""Distinct rows in partitions on the workers, and these rows as a prior.

Each partition is an ordinary `Table`, and each distinct row is in exactly one of them,
so every sum that a fit needs is the sum over the partitions, and the rows as a prior
are their mixture, each tilted where it is. Partitions are results of tasks, never data
sent to the workers, so Dask recomputes them if a worker is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data.draws import shuffled_cells
from fairmaxent.data.table import (
    Axes,
    Blocks,
    Broken,
    Codes,
    Counted,
    Indices,
    Reals,
    Sizes,
    Summed,
    Table,
)
from fairmaxent.engines.cluster_tasks import (
    Client,
    Future,
    by_part,
    gathered,
    merged,
    results,
    spread_out,
    watched,
)
from fairmaxent.engines.lazy_counts import Coding, counted_parts
from fairmaxent.engines.lazy_frame import Lazy
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import (
    Density,
    Drawn,
    Prior,
    Tilted,
)
from fairmaxent.maxent.priors.rows import Rows, TiltedRows
from fairmaxent.progress import Progress

_ROWS = 1 << 16  # distinct rows that are worth a task of their own in each iteration
_CELLS = 1 << 20  # of the tables that are added up together
# log Σ of a partition, and probabilities given this partition
Weighed = tuple[float, Reals]


@dataclass(frozen=True, eq=False)
class Partitions(Counted):
    """Tables on the workers that together hold each distinct row once."""

    client: Client
    blocks: Blocks
    parts: tuple[Future, ...]  # each a Table
    sizes: Reals  # (parts, 4): the sums of each partition
    # tables that were asked for, as those of the first column are a dozen times
    known: dict[Any, list[Any]] = field(default_factory=dict)
    keeps_rows = False  # which distinct row each input row is

    @classmethod
    def of(
        cls,
        client: Client,
        blocks: Blocks,
        parts: Sequence[Future],
    ) -> Partitions:
        """Keep the partitions that have rows."""
        sizes = np.array(gathered(client, _sums, parts))
        kept = sizes[:, 0] > 0
        return cls(client, blocks, tuple(compress(parts, kept)), sizes[kept])

    def regrouped(self) -> Partitions:
        """Merge neighbouring partitions that are too small."""
        most = -(-self.distinct // _ROWS)
        if len(self.parts) <= most:
            return self
        groups = np.array_split(np.array(self.parts, dtype=object), most)
        parts = [list(group) for group in groups]
        return self._made(Table.joined, parts, sizes=self.blocks.levels)

    @property
    def sums(self) -> Reals:
        """Those of all partitions."""
        return np.sum(self.sizes, axis=0)

    def tables(
        self,
        wanted: Sequence[Axes],
        sizes: Sizes,
        of: Summed = "counts",
        then: Callable[[Reals], Any] = np.asarray,
    ) -> list[Any]:
        """Sum the rows by the levels of a few columns at a time, on the workers.

        Only what is made of the tables ``then`` comes back.
        """
        asked = (*wanted, of, then)
        if asked in self.known:
            return self.known[asked]
        found = []
        for group in _in_groups(wanted, sizes):
            found += merged(
                self.client,
                Table.tables,
                _added,
                self.parts,
                then=then,
                wanted=group,
                sizes=list(sizes),
                of=of,
            )
        self.known[asked] = found
        return found

    def without(self, broken: Broken) -> Partitions:
        """Set the count of the broken rows to zero."""
        return self._made(Table.without, self.parts, broken=broken)

    def reweighed(self, factor: Reals) -> Partitions:
        """Multiply each row's count by the factor of its level in the first column."""
        return self._made(Table.reweighed, self.parts, factor=factor)

    def thinned(self, rows: int) -> Partitions:
        """Take all rows, or ``rows`` of equal weight; they stay on the workers.

        Each partition has some in proportion to its weight.
        """
        if self.distinct <= rows:
            return self
        shares = (1 + self.sizes[:, 2] * rows // self.total).astype(int).tolist()
        return self._made(Table.thinned, self.parts, beside=[shares]).regrouped()

    def _made(
        self, function: Callable[..., Table], parts: Sequence[Future], **how: Any
    ) -> Partitions:
        """What a function makes of partitions, which stays on the workers."""
        return Partitions.of(
            self.client, self.blocks, spread_out(self.client, function, parts, **how)
        )

    def collect(self) -> Table:
        """Bring all rows into memory, in the order of a table in memory."""
        return Table.joined(results(self.client, self.parts), self.blocks.levels)

    def each_piece(
        self, do: Callable[[Table, str], None], name: Callable[[int], str]
    ) -> int:
        """Do something with each partition, on the workers."""
        parts = len(self.parts)
        gathered(self.client, do, self.parts, beside=[[*map(name, range(parts))]])
        return parts

    def over(
        self, function: Callable[[Table, Density], Any], merge: Any, density: Density
    ) -> Any:
        """Merge what a function says of each partition, whose rows are put into p."""
        prior, rows = detached(density.prior, self.parts)
        return merged(
            self.client,
            _with_own_rows,
            merge,
            self.parts,
            beside=[rows],
            say=function,
            density=replace(density, prior=prior),
        )


def _sums(table: Table) -> Reals:
    return table.sums


def _added(lists: list[list[Reals]]) -> list[Reals]:
    """Add lists of tables, table by table."""
    return [np.asarray(sum(tables)) for tables in zip(*lists, strict=True)]


def _in_groups(wanted: Sequence[Axes], sizes: Sizes) -> Iterator[list[Axes]]:
    """Tables in groups that are small enough to be added up together."""
    cells = [math.prod(sizes[axis] for axis in axes) for axes in wanted]
    groups = np.cumsum(cells) // _CELLS
    for number in np.unique(groups):
        yield [wanted[int(place)] for place in np.flatnonzero(groups == number)]


def count_on_workers(
    client: Client,
    lazy: Lazy,
    coding: Coding,
    progress: Progress,
) -> Partitions:
    """Encode the rows, merge equal ones and count them on the workers.

    Each distinct row ends up in exactly one partition.
    """
    # Each partition counts its own rows first. Equal ones are then brought together by
    # a shuffle made of plain tasks, which Dask can repeat if a worker is lost. The
    # result has as many partitions as the frame, or fewer if they would be small. The
    # size of the cluster does not matter, so a seed gives the same rows everywhere.
    from dask.dataframe import from_delayed

    counted = client.compute(counted_parts(lazy, coding))
    done = watched(client, counted, partial(progress, "count"))
    empty = coding.counted(lazy.to_native()._meta)
    rows = from_delayed(done, meta=empty).shuffle(coding.keys, shuffle_method="tasks")
    parts = by_part(rows, coding.distinct)
    return Partitions.of(client, coding.blocks, client.compute(parts)).regrouped()


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """w(α) on the distinct rows of all partitions.

    Each is `Rows` whose weights sum to its share.
    """

    blocks: Blocks
    weighted: Partitions
    # each the Rows of one partition, in the order of `weighted.parts`; may be empty
    parts: tuple[Future, ...]
    # by potentials that were asked for, as the same are more than once
    known: dict[bytes, Weighed] = field(default_factory=dict)
    full_support = False  # rows rarely cover the domain, and no bound relies on it

    @classmethod
    def of(cls, blocks: Blocks, weighted: Partitions) -> PartitionedRows:
        """Keep the rows of positive weight and normalise over all partitions."""
        parts = spread_out(
            weighted.client,
            _rows,
            weighted.parts,
            blocks=blocks,
            total=weighted.total,
        )
        return cls(blocks, weighted, tuple(parts))

    @property
    def rows(self) -> int:
        """How many rows it has at most."""
        return self.weighted.distinct

    def tilt(self, potentials: Reals) -> TiltedPartitions:
        """Tilt by one potential per level."""
        asked = potentials.tobytes()
        if asked not in self.known:
            self.known[asked] = self.tilted(potentials, attrgetter("levels"))
        return TiltedPartitions(self, potentials, *self.known[asked])

    def tilted(self, potentials: Reals, take: Callable[[TiltedRows], Reals]) -> Weighed:
        """Apply ``take`` to each tilted partition, and mix the results by shares."""
        parts = len(self.parts)
        return merged(
            self.weighted.client,
            _tilted,
            _mixed,
            self.parts,
            beside=[[potentials] * parts, [take] * parts],
        )

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows; no row is in two partitions."""
        return merged(
            self.weighted.client,
            Rows.log_probability,
            partial(np.max, axis=0),
            self.parts,
            codes=codes,
        )

    def thinned(self, rows: int) -> Prior:
        """Take rows at equal steps of the running weight; they stay on the workers."""
        if self.rows <= rows:
            return self
        return PartitionedRows.of(self.blocks, self.weighted.thinned(rows))

    def log_floor(self) -> float:
        """Return the smallest log w(α)."""
        return min(gathered(self.weighted.client, Rows.log_floor, self.parts))


@dataclass(frozen=True, eq=False)
class TiltedPartitions:
    """Rows with new weights, on the workers."""

    rows: PartitionedRows
    potentials: Reals
    log_partition: float
    levels: Reals

    def pairs(self) -> Reals:
        """Probability of each pair of levels, by counting."""
        return self.rows.tilted(self.potentials, methodcaller("pairs"))[1]

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks, by counting."""
        return self.rows.tilted(self.potentials, methodcaller("joint", list(wanted)))[1]

    def draw(
        self,
        roots: Indices,
        rng: Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Divide the rows of each root level among the partitions, and draw there."""
        client = self.rows.weighted.client
        parts = spread_out(
            client, Rows.tilt, self.rows.parts, potentials=self.potentials
        )
        sizes = np.bincount(roots, minlength=self.rows.blocks.levels[0])
        cells = among_partitions(client, parts, sizes, self.rows.blocks, rng)
        seeds = rng.integers(2**63, size=len(parts)).tolist()
        drawn = gathered(
            client, draw_cells, parts, beside=[cells, seeds], spread=spread
        )
        mixed = rng.permutation(np.concatenate(drawn))
        codes = np.empty_like(mixed, order="F")
        codes[np.argsort(roots, kind="stable")] = mixed[
            np.argsort(mixed[:, 0], kind="stable")
        ]
        # raw values are not kept on a cluster
        return Drawn(codes, np.full(len(roots), -1))


def among_partitions(
    client: Client,
    tilted: Sequence[Future],
    cells: Indices,
    blocks: Blocks,
    rng: Generator,
) -> list[Indices]:
    """Divide the wanted rows of each cell among partitions, at random by their mass."""
    masses = np.array(gathered(client, _masses, tilted, blocks=blocks))
    top = masses.max(axis=0)
    shares = np.exp(masses - np.where(np.isfinite(top), top, 0.0)).T
    shares[cells == 0] = 1.0  # such a cell may have no mass in any partition
    chances = shares / shares.sum(axis=1, keepdims=True)
    return list(rng.multinomial(cells, chances).T)


def detached(prior: Prior, parts: Sequence[Future]) -> tuple[Prior, Sequence[Any]]:
    """Split a prior into one that can be sent, and the rows that partitions put back.

    It has empty rows in it. For a prior without rows these are empty everywhere.
    """
    codes = np.empty((0, len(prior.blocks.levels)), dtype=np.uint8)
    empty = Rows(prior.blocks, codes, np.empty(0))
    for part in (*getattr(prior, "parts", ()), prior):
        if isinstance(part, PartitionedRows):
            return attached(prior, empty), part.parts
    return prior, [empty] * len(parts)


def attached(prior: Prior, rows: Rows, log_share: float = 0.0) -> Mixture:
    """Put other rows into a prior.

    The shares of its other parts are scaled by exp(``log_share``).
    """
    if not isinstance(prior, Mixture):
        prior = Mixture((prior,), np.zeros(1))
    is_rows = [isinstance(part, Rows | PartitionedRows) for part in prior.parts]
    parts: list[Prior] = list(prior.parts)
    if any(is_rows):
        parts[is_rows.index(True)] = rows
    return Mixture(tuple(parts), prior.log_shares + np.where(is_rows, 0.0, log_share))


def collected(prior: Prior, weighted: Table) -> Prior:
    """Return the prior with these rows in memory instead of those on the workers."""
    whole = attached(prior, Rows.of(prior.blocks, weighted))
    if len(whole.parts) == 1:
        return whole.parts[0]
    return whole


# ---------------------------------------------------------------- on the workers


def _with_own_rows(
    table: Table, rows: Rows, say: Callable[[Table, Density], Any], density: Density
) -> Any:
    return say(table, replace(density, prior=attached(density.prior, rows)))


def _rows(table: Table, blocks: Blocks, total: float) -> Rows:
    kept = table.counts > 0
    shares = np.log(table.counts[kept] / total)
    return Rows(blocks, np.asfortranarray(table.codes[kept]), shares)


def _tilted(
    rows: Rows, potentials: Reals, take: Callable[[TiltedRows], Reals]
) -> Weighed:
    """Return log Σ and what ``take`` returns for one tilted partition."""
    tilted = rows.tilt(potentials)
    return tilted.log_partition, take(tilted)


def _mixed(weighed: list[Weighed]) -> Weighed:
    """Mix partitions: the tilted share of each is ∝ its partition function."""
    log_partition, shares = softmax(np.array([log_sum for log_sum, _ in weighed]))
    values = np.array([own for _, own in weighed])
    return log_partition, np.tensordot(shares, values, axes=1)


def _masses(tilted: Tilted, blocks: Blocks) -> Reals:
    """Logarithm of the partition's mass in each level of the root."""
    with np.errstate(divide="ignore"):
        logs = np.log(tilted.levels[blocks.slices[0]])
    return tilted.log_partition + logs


def draw_cells(
    tilted: Tilted, cells: Indices, seed: int | Sequence[int], *, spread: bool
) -> Codes:
    """Draw so many rows of each cell, in random order."""
    rng = np.random.default_rng(seed)
    return tilted.draw(shuffled_cells(cells, rng), rng, spread=spread).codes
