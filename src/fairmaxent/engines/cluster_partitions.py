"""Distinct rows in partitions on the workers, and these rows as a prior.

Each partition is an ordinary `Table`, and each distinct row is in exactly one of them,
so every sum that a fit needs is the sum over the partitions, and the rows as a prior
are their mixture, each tilted where it is. Partitions are results of tasks, never data
sent to the workers, so Dask recomputes them if a worker is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter, methodcaller
from typing import Any

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import Choice, largest_remainders
from fairmaxent.data.table import (
    Axes,
    Blocks,
    Broken,
    Codes,
    Counted,
    Indices,
    Mask,
    Reals,
    Sizes,
    Spread,
    Summed,
    Table,
    equal_steps,
    match_rows,
)
from fairmaxent.engines.cluster_tasks import (
    Client,
    Future,
    by_part,
    gathered,
    merged,
    results,
    spread,
    watched,
)
from fairmaxent.engines.lazy_counts import Coding, counted_parts
from fairmaxent.engines.lazy_frame import Lazy, names_of
from fairmaxent.errors import InputError
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import (
    Density,
    Drawn,
    Prior,
    divergence_in_memory,
)
from fairmaxent.maxent.priors.rows import Rows, TiltedRows
from fairmaxent.progress import Progress

_ROWS = 1 << 16  # distinct rows that are worth a task of their own in each iteration
_CELLS = 1 << 20  # of the tables that are added up together
_FEWEST = 8  # partitions, a number that is always fine
# log Σ of a partition, and probabilities given this partition
Weighed = tuple[float, Reals]


@dataclass(frozen=True, eq=False)
class Partitions(Counted):
    """Tables on the workers that together hold each distinct row once."""

    client: Client
    blocks: Blocks
    parts: tuple[Future, ...]  # each a Table
    sizes: Reals  # (parts, 4): the sums of each partition
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
        kept = np.flatnonzero(sizes[:, 0])
        return cls(
            client, blocks, tuple(parts[int(part)] for part in kept), sizes[kept]
        )

    def regrouped(self, most: int) -> Partitions:
        """Merge neighbouring partitions until there are at most ``most``."""
        if len(self.parts) <= most:
            return self
        groups = np.array_split(np.array(self.parts, dtype=object), most)
        joined = [
            self.client.submit(
                Table.joined,
                list(group),
                self.blocks.levels,
                pure=False,
            )
            for group in groups
        ]
        return Partitions.of(self.client, self.blocks, joined)

    @property
    def sums(self) -> Reals:
        """Those of all partitions."""
        return np.array([column.sum() for column in self.sizes.T])

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
        found = []
        for group in _in_groups(wanted, sizes):
            found += merged(
                self.client,
                Table.tables,
                _added,
                self.parts,
                then=partial(_each, then),
                wanted=group,
                sizes=list(sizes),
                of=of,
            )
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
        shares = largest_remainders(self.sizes[:, 2], rows)
        asked = np.flatnonzero(shares)
        return self._made(
            _steps,
            [self.parts[part] for part in asked],
            beside=[[int(shares[part]) for part in asked]],
            weight=self.total / rows,
        )

    def _made(
        self, function: Callable[..., Table], parts: Sequence[Future], **how: Any
    ) -> Partitions:
        """What a function makes of partitions, which stays on the workers."""
        made = spread(self.client, function, parts, **how)
        return Partitions.of(self.client, self.blocks, made)

    def collect(self) -> Table:
        """Bring all rows into memory, in the order of a table in memory."""
        tables = results(self.client, self.parts)
        return Table.joined(tables, self.blocks.levels)

    def each_piece(
        self, do: Callable[[Table, str], None], name: Callable[[int], str]
    ) -> int:
        """Do something with each partition, on the workers."""
        parts = len(self.parts)
        gathered(self.client, do, self.parts, beside=[[*map(name, range(parts))]])
        return parts

    def prior(self, blocks: Blocks) -> PartitionedRows:
        """Return w as a prior, computed on the workers."""
        return PartitionedRows.of(blocks, self)

    def divergence(self, density: Density) -> float:
        """KL(rows‖p)."""
        return self._summed(_divergence, density, total=self.total)

    def mass(self, density: Density) -> float:
        """p(S)."""
        return self._summed(_mass, density)

    def among(self, codes: Codes, sizes: Sizes) -> Mask:
        """Whether each of ``codes`` is one of the distinct rows."""
        found: Mask = merged(
            self.client,
            _among,
            partial(np.any, axis=0),
            self.parts,
            codes=codes,
            sizes=sizes,
        )
        return found

    def _summed(
        self, function: Callable[..., float], density: Density, **shared: Any
    ) -> float:
        """Add what a function says of each partition, with its rows put back into p."""
        prior, rows = detached(density.prior, self.parts)
        return float(
            merged(
                self.client,
                function,
                sum,
                self.parts,
                beside=[rows],
                density=replace(density, prior=prior),
                **shared,
            )
        )

    def spread(self, tilted: TiltedPartitions) -> Spread:
        """Spread the weights of tilted rows over the input rows, by partition."""
        return merged(
            self.client,
            _spread,
            _united,
            self.parts,
            beside=[tilted.rows.parts],
            potentials=tilted.potentials,
            log_partition=tilted.log_partition,
        )


def _sums(table: Table) -> Reals:
    return table.sums


def _added(lists: list[list[Reals]]) -> list[Reals]:
    """Add lists of tables, table by table."""
    return [np.asarray(sum(tables)) for tables in zip(*lists, strict=True)]


def _steps(table: Table, rows: int, weight: float) -> Table:
    """Take ``rows`` rows at equal steps of the running weight, repeated if need be."""
    equal = np.full(rows, weight)
    codes = table.codes[equal_steps(table.counts, rows)]
    return Table(np.asfortranarray(codes), equal, np.ones(rows), equal**2)


def _in_groups(wanted: Sequence[Axes], sizes: Sizes) -> list[list[Axes]]:
    """Tables in groups that are small enough to be added up together."""
    groups: list[list[Axes]] = []
    left = 0
    for axes in wanted:
        cells = math.prod(sizes[axis] for axis in axes)
        if cells > left or not groups:
            groups.append([])
            left = _CELLS
        groups[-1].append(axes)
        left -= cells
    return groups


def _each(then: Callable[[Reals], Any], tables: list[Reals]) -> list[Any]:
    return [then(table) for table in tables]


def count_on_workers(
    client: Client,
    lazy: Lazy,
    domain: Domain,
    blocks: Blocks,
    weight: str | None,
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

    coding = Coding.of(domain, blocks, weight, taken=names_of(lazy))
    counted = client.compute(counted_parts(lazy, coding))
    done = watched(client, counted, partial(progress, "count"))
    empty = coding.counted(lazy.to_native()._meta)
    rows = from_delayed(done, meta=empty).shuffle(coding.keys, shuffle_method="tasks")
    parts = by_part(rows, partial(_as_table, coding=coding))
    partitions = Partitions.of(client, blocks, client.compute(parts))
    if not partitions.distinct:
        raise InputError("the table has no rows; pass at least one")
    return partitions.regrouped(max(_FEWEST, -(-partitions.distinct // _ROWS)))


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """w(α) on the distinct rows of all partitions.

    Each is `Rows` whose weights sum to its share.
    """

    blocks: Blocks
    weighted: Partitions
    # each the Rows of one partition, in the order of `weighted.parts`; may be empty
    parts: tuple[Future, ...]
    rows: int
    floor: float
    full_support = False  # rows rarely cover the domain, and no bound relies on it

    @classmethod
    def of(cls, blocks: Blocks, weighted: Partitions) -> PartitionedRows:
        """Keep the rows of positive weight and normalise over all partitions."""
        parts = spread(
            weighted.client,
            _rows,
            weighted.parts,
            blocks=blocks,
            total=weighted.total,
        )
        sizes, floors = zip(
            *gathered(weighted.client, _size_and_floor, parts), strict=True
        )
        return cls(blocks, weighted, tuple(parts), sum(sizes), min(floors))

    def tilt(self, potentials: Reals) -> TiltedPartitions:
        """Tilt by one potential per level."""
        return TiltedPartitions(
            self, potentials, *self.tilted(potentials, attrgetter("levels"))
        )

    def tilted(self, potentials: Reals, take: Callable[[TiltedRows], Reals]) -> Weighed:
        """Apply ``take`` to each tilted partition, and mix the results by shares."""
        return merged(
            self.weighted.client,
            _tilted,
            _mixed,
            self.parts,
            potentials=potentials,
            take=take,
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
        return self.weighted.thinned(rows).prior(self.blocks)

    def log_floor(self) -> float:
        """Return the smallest log w(α)."""
        return self.floor


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
        """Draw a partition for each root level, then one of its rows on its worker."""
        parts, masses = self._parts
        chosen = Choice.rows_of(masses.T).draw(roots, rng, spread=spread)
        seeds = rng.integers(2**63, size=len(parts))
        asked = np.flatnonzero(np.bincount(chosen, minlength=len(parts)))
        drawn = gathered(
            self.rows.weighted.client,
            _draw,
            [parts[part] for part in asked],
            beside=(
                [roots[chosen == part] for part in asked],
                [int(seeds[part]) for part in asked],
            ),
            spread=spread,
        )
        codes = np.empty(
            (len(roots), len(self.rows.blocks.levels)), dtype=int, order="F"
        )
        for part, rows in zip(asked, drawn, strict=True):
            codes[chosen == part] = rows
        # raw values are not kept on a cluster
        return Drawn(codes, np.full(len(roots), -1))

    @cached_property
    def _parts(self) -> tuple[list[Future], Reals]:
        """The tilted partitions, and the mass of each in each root level.

        They are kept on the workers for the next draw.
        """
        client = self.rows.weighted.client
        parts = spread(
            client,
            Rows.tilt,
            self.rows.parts,
            potentials=self.potentials,
        )
        masses = gathered(
            client,
            _root_masses,
            parts,
            blocks=self.rows.blocks,
            log_partition=self.log_partition,
        )
        return parts, np.array(masses)


def detached(prior: Prior, parts: Sequence[Future]) -> tuple[Prior, Sequence[Any]]:
    """Split a prior into one that can be sent, and the rows that partitions put back.

    It has empty rows in it. For a prior without rows these are empty everywhere.
    """
    codes = np.empty((0, len(prior.blocks.levels)), dtype=np.uint8)
    empty = Rows(prior.blocks, codes, np.empty(0))
    sent = _with_rows(prior, empty)
    for part in (*getattr(prior, "parts", ()), prior):
        if isinstance(part, PartitionedRows):
            return sent, part.parts
    return sent, [empty] * len(parts)


def collected(prior: Prior, weighted: Table) -> Prior:
    """Return the prior with these rows in memory instead of those on the workers."""
    return _with_rows(prior, Rows.of(prior.blocks, weighted))


def _with_rows(prior: Prior, rows: Rows) -> Prior:
    if isinstance(prior, Mixture):
        parts = tuple(_with_rows(part, rows) for part in prior.parts)
        return replace(prior, parts=parts)
    return rows if isinstance(prior, PartitionedRows) else prior


# ---------------------------------------------------------------- on the workers


def _as_table(frame: Any, coding: Coding) -> Table:
    return coding.table(nw.from_native(coding.joined([frame]), eager_only=True))


def _spread(
    table: Table,
    rows: Rows,
    potentials: Reals,
    log_partition: float,
) -> Spread:
    """Spread the weights of one partition; ``log_partition`` is that of all of them."""
    tilted = rows.tilt(potentials)
    mass = np.exp(tilted.log_partition - log_partition) * tilted.on(table.codes)
    return Spread.of(table, mass, rows.blocks.levels[0])


def _united(spreads: list[Spread]) -> Spread:
    return Spread.stacked(spreads).over((0,))


def _divergence(
    table: Table,
    rows: Rows,
    density: Density,
    total: float,
) -> float:
    """Return the contribution of one partition to KL(data‖p).

    ``total`` is the weight of all partitions.
    """
    if not table.total:
        return 0.0
    share = table.total / total
    whole = replace(density, prior=attached(density.prior, rows))
    return share * (divergence_in_memory(table, whole) + float(np.log(share)))


def _among(table: Table, codes: Codes, sizes: Sizes) -> Mask:
    return match_rows(table.codes, codes.astype(table.codes.dtype), sizes) >= 0


def _mass(table: Table, rows: Rows, density: Density) -> float:
    whole = replace(density, prior=attached(density.prior, rows))
    return float(np.exp(whole.log_probability(table.codes)).sum())


def _rows(table: Table, blocks: Blocks, total: float) -> Rows:
    kept = table.counts > 0
    shares = np.log(table.counts[kept] / total)
    return Rows(blocks, np.asfortranarray(table.codes[kept]), shares)


def _size_and_floor(rows: Rows) -> tuple[int, float]:
    return rows.rows, rows.log_floor()


def _tilted(
    rows: Rows, potentials: Reals, take: Callable[[TiltedRows], Reals]
) -> Weighed:
    """Return log Σ and what ``take`` returns for one tilted partition."""
    tilted = rows.tilt(potentials)
    return tilted.log_partition, take(tilted)


def _mixed(weighed: list[Weighed]) -> Weighed:
    """Mix partitions: the tilted share of each is ∝ its partition function."""
    log_partition, shares = softmax(np.array([log_sum for log_sum, _ in weighed]))
    parts = (share * values for share, (_, values) in zip(shares, weighed, strict=True))
    return log_partition, np.asarray(sum(parts))


def _root_masses(tilted: TiltedRows, blocks: Blocks, log_partition: float) -> Reals:
    share = np.exp(tilted.log_partition - log_partition)
    return share * tilted.levels[blocks.slices[0]]


def _draw(
    tilted: TiltedRows,
    roots: Indices,
    seed: int,
    *,
    spread: bool,
) -> Codes:
    return tilted.draw(roots, np.random.default_rng(seed), spread=spread).codes


def attached(prior: Prior, rows: Rows, log_share: float = 0.0) -> Mixture:
    """Put the rows of a partition into a prior.

    The shares of its other parts are scaled by exp(``log_share``).
    """
    if not isinstance(prior, Mixture):
        prior = Mixture((prior,), np.zeros(1))
    parts: list[Prior] = []
    log_shares = prior.log_shares + log_share
    for number, part in enumerate(prior.parts):
        if isinstance(part, Rows):
            log_shares[number] = prior.log_shares[number]
            part = rows
        parts.append(part)
    return Mixture(tuple(parts), log_shares)
