"""The rows on the workers as a prior: the mixture of the partitions, each tilted where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.draws import Choice
from fairmaxent.data.spread import Spread, joined
from fairmaxent.data.table import Table
from fairmaxent.engines.cluster.partitions import Partitions
from fairmaxent.engines.cluster.tasks import gathered, merged, spread
from fairmaxent.engines.cluster.worker_prior import attached
from fairmaxent.maxent.logspace import softmax
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import Density, Drawn, Prior, divergence_in_memory
from fairmaxent.maxent.priors.rows import Rows, TiltedRows

if TYPE_CHECKING:
    from distributed import Client, Future

Weighed = tuple[float, Reals]  # log Σ of a partition, and probabilities given this partition


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """w(α) on the distinct rows of all partitions; each is `Rows` whose weights sum to its share."""

    blocks: Blocks
    weighted: Partitions
    parts: tuple[Future, ...]  # each the Rows of one partition, in the order of `weighted.parts`; may be empty
    rows: int
    floor: float

    @classmethod
    def of(cls, blocks: Blocks, weighted: Partitions) -> PartitionedRows:
        """Keep the rows of positive weight and normalise over all partitions."""
        parts = spread(weighted.client, _rows, weighted.parts, blocks=blocks, total=weighted.total)
        sizes, floors = zip(*gathered(weighted.client, _size_and_floor, parts), strict=True)
        return cls(blocks, weighted, tuple(parts), sum(sizes), min(floors))

    @property
    def client(self) -> Client:
        """The Dask client of the cluster."""
        return self.weighted.client

    def tilt(self, potentials: Reals) -> TiltedPartitions:
        """Tilt by one potential per level."""
        return TiltedPartitions(self, potentials, *self.tilted(potentials, attrgetter("levels")))

    def tilted(self, potentials: Reals, take: Callable[[TiltedRows], Reals]) -> Weighed:
        """Apply ``take`` to each tilted partition, and mix the results by the partitions' shares on the workers."""
        mixed: Weighed = merged(self.client, _tilted, _mixed, self.parts, potentials=potentials, take=take)
        return mixed

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows; no row is in two partitions."""
        log_probability: Reals = merged(self.client, _log_probability, _largest, self.parts, codes=codes)
        return log_probability

    def thinned(self, rows: int) -> Prior:
        """Bring rows at equal steps of the running weight into memory."""
        return self if self.rows <= rows else Rows.of(self.blocks, self.weighted.thinned(rows))

    @property
    def full_support(self) -> bool:
        """No: rows rarely cover the domain, and no bound relies on it."""
        return False

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

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator, *, spread: bool = False) -> Drawn:
        """Draw a partition for each root level, then one of its distinct rows on its worker."""
        client, (parts, masses) = self.rows.client, self._parts
        chosen = Choice.rows_of(masses.T).draw(roots, rng, spread=spread)
        seeds = rng.integers(2**63, size=len(parts))
        asked = np.flatnonzero(np.bincount(chosen, minlength=len(parts)))
        arguments = [roots[chosen == part] for part in asked], [int(seeds[part]) for part in asked]
        drawn = gathered(client, _draw, [parts[part] for part in asked], beside=arguments, spread=spread)
        codes = np.empty((len(roots), len(self.rows.blocks.levels)), dtype=np.intp, order="F")
        for part, rows in zip(asked, drawn, strict=True):
            codes[chosen == part] = rows
        return Drawn(codes, np.full(len(roots), -1))  # raw values are not kept on a cluster

    @cached_property
    def _parts(self) -> tuple[list[Future], Reals]:
        """The tilted partitions, kept on the workers for the next draw, and the mass of each in each root level."""
        client = self.rows.client
        parts = spread(client, _kept_tilt, self.rows.parts, potentials=self.potentials)
        masses = gathered(client, _root_masses, parts, blocks=self.rows.blocks, log_partition=self.log_partition)
        return parts, np.array(masses)


def detached(prior: Prior, parts: Sequence[Future]) -> tuple[Prior, Sequence[Any]]:
    """Split a prior into one that can be sent, with empty rows in it, and the rows that each partition puts back.

    For a prior without rows these are empty everywhere.
    """
    empty = Rows(prior.blocks, np.empty((0, len(prior.blocks.levels)), dtype=np.uint8), np.empty(0))
    partitioned = [part for part in (*getattr(prior, "parts", ()), prior) if isinstance(part, PartitionedRows)]
    return _with_rows(prior, empty), partitioned[0].parts if partitioned else [empty] * len(parts)


def collected(prior: Prior, weighted: Table) -> Prior:
    """Return the prior with these rows in memory instead of those on the workers."""
    return _with_rows(prior, Rows.of(prior.blocks, weighted))


def _with_rows(prior: Prior, rows: Rows) -> Prior:
    if isinstance(prior, Mixture):
        return replace(prior, parts=tuple(_with_rows(part, rows) for part in prior.parts))
    return rows if isinstance(prior, PartitionedRows) else prior


def divergence_on_workers(table: Partitions, density: Density) -> float:
    """KL(rows‖p), partition by partition, each with its rows put back into the prior."""
    prior, rows = detached(density.prior, table.parts)
    sent = replace(density, prior=prior)
    return float(merged(table.client, _divergence, sum, table.parts, beside=[rows], density=sent, total=table.total))


def spread_on_workers(table: Partitions, tilted: TiltedPartitions) -> Spread:
    """Spread the weights of tilted rows over the input rows, partition by partition."""
    shared = {"potentials": tilted.potentials, "log_partition": tilted.log_partition}
    spread: Spread = merged(table.client, _spread, joined, table.parts, beside=[tilted.rows.parts], **shared)
    return spread


# ---------------------------------------------------------------- on the workers


def _spread(table: Table, rows: Rows, potentials: Reals, log_partition: float) -> Spread:
    """Spread the weights of one partition; ``log_partition`` is that of all of them."""
    size = rows.blocks.levels[0]
    if not rows.rows:
        return Spread(np.zeros(size), np.zeros(size), np.zeros(size))
    tilted = rows.tilt(potentials)
    return Spread.of(table, np.exp(tilted.log_partition - log_partition) * tilted.on(table.codes), size)


def _divergence(table: Table, rows: Rows, density: Density, total: float) -> float:
    """Return the contribution of one partition to KL(data‖p); ``total`` is the weight of all partitions."""
    if not table.total:
        return 0.0
    prior, share = attached(density.prior, rows), table.total / total
    if prior is None:
        return np.inf
    return share * (divergence_in_memory(table, replace(density, prior=prior)) + float(np.log(share)))


def _rows(table: Table, blocks: Blocks, total: float) -> Rows:
    kept = table.counts > 0
    return Rows(blocks, np.asfortranarray(table.codes[kept]), np.log(table.counts[kept] / total))


def _size_and_floor(rows: Rows) -> tuple[int, float]:
    return rows.rows, rows.log_floor() if rows.rows else np.inf


def _tilted(rows: Rows, potentials: Reals, take: Callable[[TiltedRows], Reals]) -> Weighed | None:
    """Return log Σ and what ``take`` returns for one tilted partition; None if it has no rows."""
    if not rows.rows:
        return None
    tilted = rows.tilt(potentials)
    return tilted.log_partition, take(tilted)


def _mixed(weighed: list[Weighed | None]) -> Weighed | None:
    """Mix partitions: the tilted share of each is ∝ its partition function."""
    present = [part for part in weighed if part is not None]
    if not present:
        return None
    log_partition, shares = softmax(np.array([log_sum for log_sum, _ in present]))
    mixture = sum(share * values for share, (_, values) in zip(shares, present, strict=True))
    return log_partition, np.asarray(mixture)


def _log_probability(rows: Rows, codes: Codes) -> Reals:
    return rows.log_probability(codes) if rows.rows else np.full(len(codes), -np.inf)


def _largest(log_probabilities: list[Reals]) -> Reals:
    return np.asarray(np.max(log_probabilities, axis=0))


def _kept_tilt(rows: Rows, potentials: Reals) -> TiltedRows | None:
    return rows.tilt(potentials) if rows.rows else None


def _root_masses(tilted: TiltedRows | None, blocks: Blocks, log_partition: float) -> Reals:
    if tilted is None:
        return np.zeros(blocks.levels[0])
    return np.asarray(np.exp(tilted.log_partition - log_partition) * tilted.levels[blocks.slices[0]])


def _draw(tilted: TiltedRows, roots: NDArray[np.intp], seed: int, spread: bool) -> Codes:  # noqa: FBT001
    return tilted.draw(roots, np.random.default_rng(seed), spread=spread).codes
