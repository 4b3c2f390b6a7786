"""The rows on the workers as a prior: the mixture of what each partition has, tilted where it is."""

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

Weighed = tuple[float, Reals]  # log Σ of a partition, and probabilities given that partition


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """w(α) on the distinct rows of all partitions; each is `Rows` whose weights sum to its share."""

    blocks: Blocks
    weighted: Partitions
    parts: tuple[Future, ...]  # each Rows, possibly none, of the partition in the same place
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
        """Whoever the workers work for."""
        return self.weighted.client

    def tilt(self, potentials: Reals) -> TiltedPartitions:
        """Tilt by one potential per level."""
        return TiltedPartitions(self, potentials, *self.tilted(potentials, attrgetter("levels")))

    def tilted(self, potentials: Reals, take: Callable[[TiltedRows], Reals]) -> Weighed:
        """Take something from every tilted partition, and mix it by the partitions' shares on the workers."""
        found: Weighed = merged(self.client, _tilted, _mixed, self.parts, potentials=potentials, take=take)
        return found

    def log_probability(self, codes: Codes) -> Reals:
        """log w(α), −∞ off the rows; no row is in two partitions."""
        found: Reals = merged(self.client, _log_probability, _largest, self.parts, codes=codes)
        return found

    def thinned(self, rows: int) -> Prior:
        """Take rows at equal steps of the running weight into memory."""
        return self if self.rows <= rows else Rows.of(self.blocks, self.weighted.thinned(rows))

    @property
    def full_support(self) -> bool:
        """Rows rarely are all there could be; no bound relies on it."""
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
        """Draw the partition, given the root, then one of its distinct rows, where they are."""
        client, (parts, masses) = self.rows.client, self._parts
        chosen = Choice.rows_of(masses.T).draw(roots, rng, spread=spread)
        seeds = rng.integers(2**63, size=len(parts))
        asked = np.flatnonzero(np.bincount(chosen, minlength=len(parts)))
        own = [roots[chosen == part] for part in asked], [int(seeds[part]) for part in asked]
        drawn = gathered(client, _draw, [parts[part] for part in asked], beside=own, spread=spread)
        codes = np.empty((len(roots), len(self.rows.blocks.levels)), dtype=np.intp, order="F")
        for part, rows in zip(asked, drawn, strict=True):
            codes[chosen == part] = rows
        return Drawn(codes, np.full(len(roots), -1))  # no raw values are kept here

    @cached_property
    def _parts(self) -> tuple[list[Future], Reals]:
        """Each partition tilted, kept on the workers for the next draw, and the mass that it has in each root level."""
        client = self.rows.client
        parts = spread(client, _kept_tilt, self.rows.parts, potentials=self.potentials)
        masses = gathered(client, _root_masses, parts, blocks=self.rows.blocks, log_partition=self.log_partition)
        return parts, np.array(masses)


def detached(prior: Prior, parts: Sequence[Future]) -> tuple[Prior, Sequence[Any]]:
    """Return a prior that can travel, with no rows in the place of all rows, and for each partition what belongs there.

    A prior that stands on no rows gets none anywhere.
    """
    none = Rows(prior.blocks, np.empty((0, len(prior.blocks.levels)), dtype=np.uint8), np.empty(0))
    found = [part for part in (*getattr(prior, "parts", ()), prior) if isinstance(part, PartitionedRows)]
    return _with_rows(prior, none), found[0].parts if found else [none] * len(parts)


def collected(prior: Prior, weighted: Table) -> Prior:
    """Return the prior with these rows in the place of those on the workers."""
    return _with_rows(prior, Rows.of(prior.blocks, weighted))


def _with_rows(prior: Prior, rows: Rows) -> Prior:
    if isinstance(prior, Mixture):
        return replace(prior, parts=tuple(_with_rows(part, rows) for part in prior.parts))
    return rows if isinstance(prior, PartitionedRows) else prior


def divergence_on_workers(table: Partitions, density: Density) -> float:
    """KL(rows‖p): each partition for itself, with its own rows as the prior's."""
    prior, rows = detached(density.prior, table.parts)
    here = replace(density, prior=prior)
    return float(merged(table.client, _divergence, sum, table.parts, beside=[rows], density=here, total=table.total))


# ---------------------------------------------------------------- on the workers


def _divergence(table: Table, rows: Rows, density: Density, total: float) -> float:
    """Return a partition's part of KL(data‖p), where the rows of all partitions weigh ``total``."""
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
    """What is taken from a partition; None where it has no rows."""
    if not rows.rows:
        return None
    tilted = rows.tilt(potentials)
    return tilted.log_partition, take(tilted)


def _mixed(found: list[Weighed | None]) -> Weighed | None:
    """Mix partitions: the tilted share of each is ∝ its partition function."""
    own = [weighed for weighed in found if weighed is not None]
    if not own:
        return None
    log_partition, shares = softmax(np.array([weighed[0] for weighed in own]))
    return log_partition, np.asarray(sum(share * weighed[1] for share, weighed in zip(shares, own, strict=True)))


def _log_probability(rows: Rows, codes: Codes) -> Reals:
    return rows.log_probability(codes) if rows.rows else np.full(len(codes), -np.inf)


def _largest(found: list[Reals]) -> Reals:
    return np.asarray(np.max(found, axis=0))


def _kept_tilt(rows: Rows, potentials: Reals) -> TiltedRows | None:
    return rows.tilt(potentials) if rows.rows else None


def _root_masses(tilted: TiltedRows | None, blocks: Blocks, log_partition: float) -> Reals:
    if tilted is None:
        return np.zeros(blocks.levels[0])
    return np.asarray(np.exp(tilted.log_partition - log_partition) * tilted.levels[blocks.slices[0]])


def _draw(tilted: TiltedRows, roots: NDArray[np.intp], seed: int, spread: bool) -> Codes:  # noqa: FBT001
    return tilted.draw(roots, np.random.default_rng(seed), spread=spread).codes
