"""Effective counts: how much weighted rows tell about a rate.

The rate p of an outcome is W₁ / (W₁ + W₀), the weights of the rows with the outcome and
of the others (Hájek). To first order, log(W₁ / W₀) has the variance 1/k + 1/m, with k =
W₁² / Σw² over the rows with the outcome, m over the others. So they tell as much as k
unweighted rows with the outcome and m without it, whose odds are p / (1 − p) = r · k /
m for the weight ratio r = (W₁ / k) / (W₀ / m). What few rows do not show of their
weights is borrowed from other rows.

People of one household, class or branch, a **cluster**, are alike, and tell less.
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

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Reals, ratio, tally

# Chosen by the cells of benchmarks/coverage.py with uneven weights. Few rows seldom
# show that there are large weights: a spread that is smaller than that of other rows is
# mixed with theirs, as if this many rows had shown it. What rows show is partly chance
# even so, and Student's t allows for that in this way.
_BORROWED_ROWS = 20.0
_LIKE_STUDENT = 3.0
_ONE_CLUSTER = 1e-9  # degrees of freedom, in place of none
_LARGEST_REDUCTION = 1e6


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Unweighted rows with and without an outcome that tell as much; groups last."""

    positives: Reals
    negatives: Reals
    weight_ratio: Reals

    @classmethod
    def of_rates(cls, rates: Reals, sizes: Reals) -> "EffectiveCounts":
        """Counts behind rates that were each observed in so many unweighted rows."""
        return cls(rates * sizes, (1 - rates) * sizes, np.ones_like(rates * sizes))

    @property
    def rates(self) -> Reals:
        """The rate p of each group; NaN without rows."""
        return self.rates_at(_quotient(self.positives, self.positives + self.negatives))

    def rates_at(self, shares: Reals) -> Reals:
        """Rates if these were the shares of unweighted rows with the outcome."""
        positive = self.weight_ratio * shares
        return positive / (positive + 1 - shares)

    @property
    def sizes(self) -> Reals:
        """Unweighted rows whose rate p has the same variance: p (1 − p) / Var p."""
        weight = self.weight_ratio * self.positives + self.negatives
        count = self.positives + self.negatives
        return _quotient(weight**2, self.weight_ratio * count)

    @property
    def sparsity(self) -> Reals:
        """The sum of 1 / (count + 1) over rows with and without the outcome.

        Near zero if there are many of both.
        """
        return 1 / (self.positives + 1) + 1 / (self.negatives + 1)

    def times(self, factor: Reals) -> "EffectiveCounts":
        """So many times the rows, with the same rates."""
        return EffectiveCounts(
            self.positives * factor, self.negatives * factor, self.weight_ratio
        )

    def __getitem__(self, index: Any) -> "EffectiveCounts":
        """The counts of some outcomes and groups: an index of each array."""
        return EffectiveCounts(
            self.positives[index], self.negatives[index], self.weight_ratio[index]
        )

    def seen_from(self, rates: Reals) -> tuple[Reals, Reals]:
        """Rates and sizes of unweighted rows that tell the same near some rates.

        They have the same score and information at hypothesised rates near these.
        """
        count = self.positives + self.negatives
        odds = rates + self.weight_ratio * (1 - rates)
        sizes = count * self.weight_ratio / odds**2
        expected = count * self.chances(rates)
        return rates + (self.positives - expected) / sizes, sizes

    def deviance(self, rates: Reals) -> Reals:
        """Twice the log-likelihood that is lost if the rates were these."""
        chances = self.chances(rates)
        total = self.positives + self.negatives
        with_it = _lost(self.positives, total * chances)
        without_it = _lost(self.negatives, total * (1 - chances))
        return 2 * np.maximum(with_it + without_it, 0.0)

    def chances(self, rates: Reals) -> Reals:
        """Chances of a row to have the outcome, weights aside."""
        return rates / (rates + self.weight_ratio * (1 - rates))


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Weight, squared weight and number of rows with weight.

    Of each outcome (axis −2) in each group (axis −1).
    """

    weight: Reals
    squares: Reals
    rows: Reals

    @classmethod
    def of(
        cls,
        outcome: Codes,
        group: Codes,
        weights: Reals,
        shape: tuple[int, int],
        counted: "WeightSums | None" = None,
    ) -> "WeightSums":
        """Add up the rows of each outcome and group.

        If they are ``counted``, each stands for the rows behind it.
        """
        cells = outcome * shape[1] + group
        size = shape[0] * shape[1]
        counts = (weights > 0).astype(float)
        parts = [weights, weights**2, counts]
        if counted is not None:
            parts = [counts * part for part in vars(counted).values()]
        return cls(*(tally(cells, part, size).reshape(shape) for part in parts))

    def only(self, rows: Any) -> "WeightSums":
        """The sums of some of the rows that stand for several."""
        return WeightSums(self.weight[rows], self.squares[rows], self.rows[rows])

    def against_others(self, axis: int = -2) -> EffectiveCounts:
        """Effective counts of each outcome against the others of the same group.

        Axis −1: of each group.
        """
        others = self._others(axis)
        # The squared coefficient of variation of the weights within cells, of all
        # groups together.
        deviations, freedom = self.deviations(together=True)
        if axis == -2:
            more, more_freedom = others.deviations(together=True)
            deviations = deviations + more
            freedom = freedom + more_freedom
        spread = deviations / np.maximum(freedom, 1.0)
        positives = self._effective_rows(spread)
        negatives = others._effective_rows(spread)
        # W₁ / k and W₀ / m; where no row shows its weight, other groups do
        first = _quotient(self.weight, positives)
        second = _quotient(others.weight, negatives)
        here = _quotient(_of_all(self.weight), _of_all(positives))
        there = _quotient(_of_all(others.weight), _of_all(negatives))
        own = np.where(np.isnan(here), there, here)
        other = np.where(np.isnan(there), here, there)
        numerator = np.where(np.isnan(first), second * own / other, first)
        denominator = np.where(np.isnan(second), first * other / own, second)
        with np.errstate(invalid="ignore"):  # 0 / 0 where nothing has weight
            weight_ratio = numerator / denominator
        return EffectiveCounts(positives, negatives, weight_ratio)

    def _others(self, axis: int) -> "WeightSums":
        """The sums of everything else along an axis, without what rounding leaves."""
        rows = self.rows.sum(axis, keepdims=True) - self.rows
        weight = self.weight.sum(axis, keepdims=True) - self.weight
        squares = self.squares.sum(axis, keepdims=True) - self.squares
        return WeightSums(
            weight=np.where(rows > 0, np.maximum(weight, 0.0), 0.0),
            squares=np.where(rows > 0, np.maximum(squares, 0.0), 0.0),
            rows=rows,
        )

    def _effective_rows(self, spread: Reals) -> Reals:
        """Effective number of rows, or a little less.

        n / (1 + squared coefficient of variation of their weights).
        """
        # A cell borrows from the same outcome in all groups, which borrows the spread
        # given. Even weights lose nothing.
        for deviations, freedom in (self.deviations(together=True), self.deviations()):
            own = deviations / np.maximum(freedom, 1.0)
            lacking = np.maximum(spread - own, 0.0)
            spread = own + lacking * _BORROWED_ROWS / (freedom + _BORROWED_ROWS)
        effective = self.rows / (1 + spread)
        by_chance = 1 / (effective + 1) - 1 / (self.rows + 1)
        return effective / (1 + _LIKE_STUDENT * by_chance)

    def deviations(self, *, together: bool = False) -> tuple[Reals, Reals]:
        """Squared relative deviations from the mean weight, and freedom.

        Of each cell, or of all groups together.
        """
        relative = _quotient(self.rows * self.squares, self.weight**2)
        deviations = self.rows * np.fmax(relative - 1, 0.0)
        freedom = np.maximum(self.rows - 1, 0.0)
        if together:
            return _of_all(deviations), _of_all(freedom)
        return deviations, freedom


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


def opposite(moves: Reals, cluster: Codes, group: Codes, groups: int) -> Reals:
    """Variance of the difference of every two groups, over that if they shared nothing.

    1 where people of one cluster are alike, or in one group.
    """
    from scipy.sparse import csr_array  # slow to import

    shape = (cluster.max(initial=0) + 1, groups)
    table = csr_array((moves, (cluster, group)), shape=shape)
    covariance = (table.T @ table).toarray()
    own = np.diag(covariance)
    return 1 + ratio(np.maximum(-2 * covariance, 0.0), own[:, None] + own)


def effects_of(moves: Reals, group: Codes, alone: Reals) -> tuple[Reals, Reals]:
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


def _of_all(groups: Reals) -> Reals:
    return groups.sum(axis=-1, keepdims=True)


def _lost(count: Reals, expected: Reals) -> Reals:
    """n·log(n / E n): the log-likelihood that a count adds; 0 if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, count * np.log(count / expected), 0.0)


def _quotient(above: Reals, below: Reals) -> Reals:
    """One over the other; NaN where there is nothing below."""
    return np.divide(
        above,
        below,
        out=np.full(np.shape(below), np.nan),
        where=below > 0,
    )
