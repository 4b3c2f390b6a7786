"""Clusters: people of one household, class or branch are alike, and tell less.

To first order (Taylor), a row with the weight w and the outcome y moves the log of the
rate p of its group by w (y − p) / (W p), where W is the weight of the group. Summed
over each cluster, the squares and products of these moves add up to variances and
covariances that hold however alike the people of a cluster are, and if clusters hold
people of several groups. Of G clusters they are estimated, so they are multiplied by
G / (G − 1), and Student's t with G − 1 degrees, or fewer if a few clusters make up most
of a variance, takes the place of the normal deviate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, tally
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.groups import GroupedRows

_ONE_CLUSTER = 1e-9  # degrees of freedom, in place of none
_LARGEST_REDUCTION = 1e6


@dataclass(frozen=True, eq=False)
class Dependence:
    """How much less groups (last axes) tell because their people share clusters.

    An effect is a variance over what it would be among independent people, and never
    less than 1: of the log ratio of two groups' rates, and on the diagonal of the rate
    of a group.
    """

    effects: Reals  # outcomes × groups × groups
    freedom: Reals  # outcomes × groups: the clusters that the group is in, less one

    def at(self, outcomes: Any, groups: Codes) -> "Dependence":
        """That of some outcomes and groups."""
        outcome = np.asarray(outcomes)[..., None]
        first = groups[..., :, None]
        second = groups[..., None, :]
        return Dependence(
            effects=self.effects[outcome, first, second],
            freedom=self.freedom[outcomes, groups],
        )

    def score(self, score: Reals, first: Codes, second: Codes) -> Reals:
        """The normal deviate that says as much as the score of pairs of groups."""
        effect = self.effects[..., first, second]
        freedom = np.minimum(self.freedom[..., first], self.freedom[..., second])
        return normal_deviate(score / np.sqrt(effect), freedom)

    def reduced(self, counts: EffectiveCounts, deviate: float) -> EffectiveCounts:
        """The independent people who tell as much (Korn and Graubard 1998).

        As much about each group's rate, if an interval has this normal deviate.
        """
        effect = np.diagonal(self.effects, axis1=-2, axis2=-1)
        student = student_deviate(deviate, self.freedom)
        times = np.minimum(effect * (student / deviate) ** 2, _LARGEST_REDUCTION)
        return EffectiveCounts(
            counts.positives / times, counts.negatives / times, counts.weight_ratio
        )


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves of log rates, summed over each cluster: what groups have in common."""

    products: Reals  # of two groups, over all clusters
    fourth: Reals  # powers of each group
    clusters: Reals  # that each group is in

    @classmethod
    def of(cls, rows: GroupedRows, values: Reals) -> "Moves":
        """Add up values by cluster and group, each row by its share of its group."""
        from scipy.sparse import coo_array  # slow to import

        assert rows.cluster is not None
        groups = len(rows.labels)
        mass = tally(rows.group, rows.weights, groups)
        counts = rows.weights > 0
        group = rows.group[counts]
        cluster = rows.cluster[counts]
        moves = rows.weights[counts] / mass[group] * values[counts]
        shape = (int(cluster.max(initial=0)) + 1, groups)
        sums = coo_array((moves, (cluster, group)), shape).tocsr()
        cells = np.unique(cluster * groups + group)
        return cls(
            products=(sums.T @ sums).toarray(),
            fourth=sums.power(4).sum(axis=0),
            clusters=np.bincount(cells % groups, minlength=groups).astype(float),
        )

    @property
    def variances(self) -> Reals:
        """The variance of each group, but for the few clusters."""
        return self.products.diagonal()

    @property
    def freedom(self) -> Reals:
        """Degrees of freedom of each variance (Satterthwaite).

        G − 1 at most, and fewer if a few clusters make up most of it.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            noise = self.fourth / self.variances**2 - 1 / self.clusters
            degrees = 2 / np.maximum(noise, 0.0)
        return np.fmin(degrees, np.maximum(self.clusters - 1, 0.0))

    def effects(self, alone: Reals, own: Reals | None = None) -> Reals:
        """Compare with variances of log rates ``alone``, of independent people.

        ``own`` are the effects on groups by themselves, if they are known.
        """
        variances = self.variances
        pairs = np.add.outer(variances, variances) - 2 * self.products
        fewer = np.minimum.outer(self.clusters, self.clusters)
        with np.errstate(divide="ignore", invalid="ignore"):
            effects = pairs / np.add.outer(alone, alone)
            np.fill_diagonal(effects, variances / alone if own is None else own)
            effects = effects * fewer / (fewer - 1)
        known = effects.diagonal()[np.isfinite(effects.diagonal())]
        typical = float(known.mean()) if len(known) else 1.0
        # Where everybody or nobody has an outcome, other groups say how alike people
        # are.
        return np.maximum(np.where(np.isfinite(effects), effects, typical), 1.0)


def normal_deviate(student: Reals, freedom: Reals) -> Reals:
    """The normal deviate as likely as one of Student's t (Wallace 1959)."""
    degrees = np.maximum(freedom, _ONE_CLUSTER)
    size = np.sqrt(degrees * np.log1p(student**2 / degrees))
    return np.copysign(size * (8 * degrees + 1) / (8 * degrees + 3), student)


def student_deviate(normal: float, freedom: Reals) -> Reals:
    """The one of Student's t that is as likely as a normal deviate."""
    degrees = np.maximum(freedom, _ONE_CLUSTER)
    size = normal * (8 * degrees + 3) / (8 * degrees + 1)
    with np.errstate(over="ignore"):
        return np.sqrt(degrees * np.expm1(size**2 / degrees))


def dependence_of_rates(
    rows: GroupedRows, values: Iterable[Reals | Mask], rates: Reals, sizes: Reals
) -> Dependence | None:
    """How much less is told about rates; None if rows are in no clusters.

    ``values`` say of each outcome which rows have it, ``sizes`` how many independent
    rows would tell as much about it.
    """
    if rows.cluster is None:
        return None
    effects = []
    freedom = []
    for value, rate, size in zip(values, rates, sizes, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            moves = Moves.of(rows, value / rate[rows.group] - 1)
            effects.append(moves.effects((1 - rate) / (rate * size)))
        freedom.append(moves.freedom)
    return Dependence(np.stack(effects), np.stack(freedom))


def dependence_of_shares(
    rows: GroupedRows, shares: Reals, counts: EffectiveCounts
) -> Dependence | None:
    """How much less is told about the shares of groups."""
    if rows.cluster is None:
        return None
    # Of the log ratio of two shares, which no row of a third group moves.
    moves = Moves.of(rows, np.ones(len(rows.group)))
    share = np.nan_to_num(shares[0])
    with_all = moves.products @ share
    variance = moves.variances - 2 * with_all + share @ with_all
    with np.errstate(divide="ignore", invalid="ignore"):
        own = variance * share * counts.sizes[0] / (1 - share)
        effects = moves.effects(1 / counts.positives[0], own)
    return Dependence(effects[None], moves.freedom[None])
