"""Clusters: people of one household, class or branch are alike, and tell less.

To first order (Taylor), a row with the weight w and the outcome y moves the rate p of
its group by w (y − p) / W, where W is the weight of the group. Summed over each
cluster, the squares of these moves add up to a variance that holds however alike the
people of a cluster are. Of G clusters it is estimated, so it is multiplied by
G / (G − 1), and Student's t with G − 1 degrees, or fewer if a few clusters make up most
of it, takes the place of the normal deviate. Groups that share clusters are compared as
if they did not where they are alike there, which makes intervals wider than they need
be. Where they are opposite, as if one of a couple has what the other has not, both tell
less about their ratio.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, ratio, tally
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.rows import GroupedRows

_ONE_CLUSTER = 1e-9  # degrees of freedom, in place of none
_LARGEST_REDUCTION = 1e6


@dataclass(frozen=True, eq=False)
class Dependence:
    """How much less groups (last axis) tell because their people share clusters."""

    # of the variance of each rate: what it would be among independent people, times
    # this, which is never less than 1
    effects: Reals
    freedom: Reals  # degrees of the variance: at most the clusters of a group, less one
    # of the variance of the ratio of every two groups (outcomes × groups × groups), as
    # if they shared no clusters: it is that times this, which is never less than 1
    opposed: Reals | None = None

    def reduced(self, counts: EffectiveCounts, deviate: float) -> EffectiveCounts:
        """The independent people who tell as much (Korn and Graubard 1998).

        As much about each group's rate, if an interval has this normal deviate.
        """
        student = student_deviate(deviate, self.freedom)
        times = np.minimum(self.effects * (student / deviate) ** 2, _LARGEST_REDUCTION)
        return counts.times(1 / times)

    def compared(
        self, counts: EffectiveCounts, outcomes: Codes, groups: Codes
    ) -> EffectiveCounts:
        """What these groups (last axis) tell about the ratios between them."""
        if self.opposed is None:
            return counts
        first = groups[..., :, None]
        second = groups[..., None, :]
        factors = self.opposed[np.asarray(outcomes)[..., None], first, second]
        return counts.times(1 / factors.max(axis=-1))


def student_deviate(normal: float, freedom: Reals) -> Reals:
    """The one of Student's t that is as likely as a normal deviate (Wallace 1959)."""
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
    counts = rows.weights > 0
    group = rows.group[counts]
    weights = rows.weights[counts]
    cells, cell = np.unique(
        rows.cluster[counts] * len(rows.labels) + group, return_inverse=True
    )
    of_cluster, of_group = np.divmod(cells, len(rows.labels))
    mass = np.bincount(group, weights, len(rows.labels))
    effects = []
    freedom = []
    opposed = []
    for value, rate, size in zip(values, rates, sizes, strict=True):
        moves = tally(cell, weights * (value[counts] - rate[group]), len(cells))
        alone = rate * (1 - rate) / size * mass**2
        effect, degrees = _effects(moves, of_group, alone)
        effects.append(effect)
        freedom.append(degrees)
        relative = ratio(moves, (mass * rate)[of_group])  # of log rates
        opposed.append(_opposed(relative, of_cluster, of_group, len(mass)))
    return Dependence(np.stack(effects), np.stack(freedom), np.stack(opposed))


def _opposed(moves: Reals, cluster: Codes, group: Codes, groups: int) -> Reals:
    """Variance of the difference of every two groups, over that if they shared nothing.

    1 where people of one cluster are alike, or in one group.
    """
    from scipy.sparse import csr_array  # slow to import

    shape = (cluster.max(initial=0) + 1, groups)
    table = csr_array((moves, (cluster, group)), shape=shape)
    covariance = (table.T @ table).toarray()
    own = np.diag(covariance)
    return 1 + ratio(np.maximum(-2 * covariance, 0.0), own[:, None] + own)


def _effects(moves: Reals, group: Codes, alone: Reals) -> tuple[Reals, Reals]:
    """Variances over those of independent people, and their degrees of freedom.

    Of moves of rates that are summed by cluster and group. The degrees are those of
    Satterthwaite: fewer than G − 1 if a few clusters make up most of a variance.
    """
    clusters = np.bincount(group, minlength=len(alone))
    variance = np.bincount(group, moves**2, len(alone))
    fourth = np.bincount(group, moves**4, len(alone))
    with np.errstate(divide="ignore", invalid="ignore"):
        effects = variance / alone * clusters / (clusters - 1)
        noise = fourth / variance**2 - 1 / clusters
        degrees = 2 / np.maximum(noise, 0.0)
    known = np.isfinite(effects)
    # Where everybody or nobody has an outcome, other groups say how alike people are.
    typical = np.mean(effects, where=known) if known.any() else 1.0
    return (
        np.maximum(np.where(known, effects, typical), 1.0),
        np.fmin(degrees, np.maximum(clusters - 1, 0)),
    )
