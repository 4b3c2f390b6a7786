"""Effective counts: how much weighted rows tell about a rate.

The rate p of an outcome is W₁ / (W₁ + W₀), the weights of the rows with the outcome and
of the others (Hájek). To first order, log(W₁ / W₀) has the variance 1/k + 1/m, with k =
W₁² / Σw² over the rows with the outcome, m over the others. So they tell as much as k
unweighted rows with the outcome and m without it, whose odds are p / (1 − p) = r · k /
m for the weight ratio r = (W₁ / k) / (W₀ / m). What few rows do not show of their
weights is borrowed from other rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Reals, tally

# Chosen by the cells of benchmarks/coverage.py with uneven weights. Few rows seldom
# show that there are large weights: a spread that is smaller than that of other rows is
# mixed with theirs, as if this many rows had shown it. What rows show is partly chance
# even so, and Student's t allows for that in this way.
_BORROWED_ROWS = 20.0
_LIKE_STUDENT = 3.0


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Unweighted rows with an outcome and without it that tell as much as weighted
    ones; groups come last.
    """

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
        return np.asarray(positive / (positive + 1 - shares))

    @property
    def sizes(self) -> Reals:
        """Number of unweighted rows whose rate p would have the same variance: p (1 −
        p) / Var p.
        """
        weight = self.weight_ratio * self.positives + self.negatives
        return _quotient(
            weight**2, self.weight_ratio * (self.positives + self.negatives)
        )

    @property
    def sparsity(self) -> Reals:
        """The sum of 1 / (count + 1) over rows with and without the outcome: near zero
        if there are many of both.
        """
        return np.asarray(1 / (self.positives + 1) + 1 / (self.negatives + 1))

    def __getitem__(self, index: Any) -> "EffectiveCounts":
        """The counts of some outcomes and groups: an index of each array."""
        return EffectiveCounts(
            self.positives[index], self.negatives[index], self.weight_ratio[index]
        )

    def seen_from(self, rates: Reals) -> tuple[Reals, Reals]:
        """Rates and sizes of unweighted rows with the same score and information at
        hypothesised rates near these.
        """
        sizes = (
            (self.positives + self.negatives)
            * self.weight_ratio
            / (rates + self.weight_ratio * (1 - rates)) ** 2
        )
        expected = (self.positives + self.negatives) * self._chances(rates)
        return rates + (self.positives - expected) / sizes, sizes

    def deviance(self, rates: Reals) -> Reals:
        """Twice the log-likelihood that is lost if the rates were these."""
        chances = self._chances(rates)
        total = self.positives + self.negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = ((self.positives, chances), (self.negatives, 1 - chances))
            first, second = (
                np.where(n > 0, n * np.log(n / (total * chance)), 0.0)
                for n, chance in sides
            )
        return np.asarray(2 * np.maximum(first + second, 0.0))

    def _chances(self, rates: Reals) -> Reals:
        """Chances of a row to have the outcome, weights aside."""
        return np.asarray(rates / (rates + self.weight_ratio * (1 - rates)))


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Weight, squared weight and number of rows with weight, of each outcome (axis −2)
    in each group (axis −1).
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
        """Add up the rows of each outcome and group; if they are ``counted``, each
        stands for the rows behind it.
        """
        cells = outcome * shape[1] + group
        size = shape[0] * shape[1]
        if counted is not None:
            sums = (
                tally(cells, np.where(weights > 0, part, 0.0), size)
                for part in vars(counted).values()
            )
            return cls(*(part.reshape(shape) for part in sums))
        rows = tally(cells, (weights > 0).astype(float), size).reshape(shape)
        if (weights == 1).all():
            return cls(rows, rows, rows)
        return cls(
            tally(cells, weights, size).reshape(shape),
            tally(cells, weights**2, size).reshape(shape),
            rows,
        )

    def against_others(self, axis: int = -2) -> EffectiveCounts:
        """Effective counts of each outcome against the others of the same group; axis
        −1: of each group.
        """
        # Where no row shows its weight, other groups do.
        weight, squares, rows = (
            part.sum(axis, keepdims=True) - part for part in vars(self).values()
        )
        weight, squares = (
            np.where(rows > 0, np.maximum(part, 0.0), 0.0) for part in (weight, squares)
        )
        others = WeightSums(weight, squares, rows)
        # The squared coefficient of variation of the weights within cells, of all
        # groups together.
        shown = [
            side.deviations(together=True)
            for side in ((self, others) if axis == -2 else (self,))
        ]
        deviations, freedom = (sum(part) for part in zip(*shown, strict=True))
        spread = np.asarray(deviations / np.maximum(freedom, 1.0))
        sides = (
            (self.weight, self._effective_rows(spread)),
            (
                others.weight,
                others._effective_rows(spread),
            ),
        )
        first, second = (_quotient(weight, rows) for weight, rows in sides)
        here, there = (
            _quotient(
                weight.sum(axis=-1, keepdims=True), rows.sum(axis=-1, keepdims=True)
            )
            for weight, rows in sides
        )
        here, there = (
            np.where(np.isnan(here), there, here),
            np.where(np.isnan(there), here, there),
        )
        numerator = np.where(np.isnan(first), second * here / there, first)
        denominator = np.where(np.isnan(second), first * there / here, second)
        return EffectiveCounts(sides[0][1], sides[1][1], numerator / denominator)

    def _effective_rows(self, spread: Reals) -> Reals:
        """Effective number of rows, n / (1 + squared coefficient of variation of their
        weights), or a little less.
        """
        # A cell borrows from the same outcome in all groups, which borrows the spread
        # given. Even weights lose nothing.
        for deviations, freedom in (self.deviations(together=True), self.deviations()):
            own = deviations / np.maximum(freedom, 1.0)
            spread = own + np.maximum(spread - own, 0.0) * _BORROWED_ROWS / (
                freedom + _BORROWED_ROWS
            )
        effective = self.rows / (1 + spread)
        return np.asarray(
            effective
            / (1 + _LIKE_STUDENT * (1 / (effective + 1) - 1 / (self.rows + 1)))
        )

    def deviations(self, *, together: bool = False) -> tuple[Reals, Reals]:
        """Of each cell, or of all groups together: squared relative deviations from the
        mean weight, and freedom.
        """
        relative = _quotient(self.rows * self.squares, self.weight**2)
        deviations = self.rows * np.fmax(relative - 1, 0.0)
        freedom = np.maximum(self.rows - 1, 0.0)
        if together:
            return deviations.sum(axis=-1, keepdims=True), freedom.sum(
                axis=-1, keepdims=True
            )
        return deviations, freedom


def _quotient(above: Reals, below: Reals) -> Reals:
    """One over the other; NaN where there is nothing below."""
    return np.asarray(
        np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    )
