"""Effective counts: how much weighted rows tell about a rate.

The rate p of an outcome is W₁ / (W₁ + W₀), the weights of the rows with the outcome and of the others (Hájek). To first
order, log(W₁ / W₀) has the variance 1/k + 1/m, with k = W₁² / Σw² over the rows with the outcome, m over the others. So
the rows tell as much as k unweighted rows with the outcome and m without it, and

    p / (1 − p) = r · k / m,    r = (W₁ / k) / (W₀ / m):

intervals of unweighted counts hold for k and m, and r takes their ends to the rate; exactly, if weights depend on the
outcome alone. How much weights vary where few rows have an outcome, and how large they are where none has it, is
borrowed from other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, tally

# The spread of weights that a few rows show is mixed with that of all rows, as if this many rows had shown it.
_BORROWED_ROWS = 2.0


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Unweighted rows with an outcome and without it that tell as much as the weighted rows of a group do.

    The odds of a rate are `weight_ratio` times `positives` / `negatives`. Each is an array with the groups last.
    """

    positives: Reals
    negatives: Reals
    weight_ratio: Reals

    @classmethod
    def of_rates(cls, rates: Reals, sizes: Reals) -> EffectiveCounts:
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
        """Number of unweighted rows whose rate p would have the same variance: p (1 − p) / Var p."""
        weight = self.weight_ratio * self.positives + self.negatives
        return _quotient(weight**2, self.weight_ratio * (self.positives + self.negatives))

    @property
    def sparsity(self) -> Reals:
        """The sum of 1 / (count + 1) over rows with and without the outcome: near zero if there are many of both."""
        return np.asarray(1 / (self.positives + 1) + 1 / (self.negatives + 1))

    def __getitem__(self, index: Any) -> EffectiveCounts:
        """The counts of some outcomes and groups: an index of each array."""
        return EffectiveCounts(self.positives[index], self.negatives[index], self.weight_ratio[index])

    def scaled(self, factor: Reals) -> EffectiveCounts:
        """As many times the rows, at the same rates."""
        return EffectiveCounts(self.positives * factor, self.negatives * factor, self.weight_ratio)

    def seen_from(self, rates: Reals) -> tuple[Reals, Reals]:
        """Rates and sizes of unweighted rows that would tell the same about hypothesised rates near these.

        They have the same score and the same information there; without weights they are the rates and sizes observed.
        """
        sizes = (self.positives + self.negatives) * self.weight_ratio / (rates + self.weight_ratio * (1 - rates)) ** 2
        expected = (self.positives + self.negatives) * self._chances(rates)
        return rates + (self.positives - expected) / sizes, sizes

    def deviance(self, rates: Reals) -> Reals:
        """Twice the log-likelihood that is lost if the rates were these."""
        chances, total = self._chances(rates), self.positives + self.negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (
                np.where(count > 0, count * np.log(count / (total * chance)), 0.0)
                for count, chance in ((self.positives, chances), (self.negatives, 1 - chances))
            )
        return np.asarray(2 * np.maximum(first + second, 0.0))

    def _chances(self, rates: Reals) -> Reals:
        """Chances of a row to have the outcome, weights aside."""
        return np.asarray(rates / (rates + self.weight_ratio * (1 - rates)))


@dataclass(frozen=True, eq=False)
class WeightSums:
    """Weight, squared weight and number of rows with weight, of each outcome (axis −2) in each group (axis −1)."""

    weight: Reals
    squares: Reals
    rows: Reals

    @classmethod
    def of(cls, outcome: Codes, group: Codes, weights: Reals, shape: tuple[int, int]) -> WeightSums:
        """Add up the rows of each outcome and group."""
        cells, size = outcome * shape[1] + group, shape[0] * shape[1]
        rows = tally(cells, (weights > 0).astype(float), size).reshape(shape)
        if (weights == 1).all():
            return cls(rows, rows, rows)
        return cls(tally(cells, weights, size).reshape(shape), tally(cells, weights**2, size).reshape(shape), rows)

    @classmethod
    def of_positives(cls, positive: Mask, group: Codes, weights: Reals, count: int) -> WeightSums:
        """Add up the rows that have an outcome, and those that have not, in each of so many groups."""
        return cls.of((~positive).astype(np.intp), group, weights, (2, count))

    def outcomes_against_others(self) -> EffectiveCounts:
        """Effective counts of each outcome against the other outcomes of the same group."""
        others = self._others(axis=-2)
        return self._against(others, _common_spread(self, others))

    def groups_against_others(self) -> EffectiveCounts:
        """Effective counts of each group against the other groups."""
        return self._against(self._others(axis=-1), _common_spread(self))

    def _others(self, axis: int) -> WeightSums:
        """For each cell, the sums of the other cells along an axis."""
        rows = self.rows.sum(axis, keepdims=True) - self.rows
        weight, squares = (
            np.where(rows > 0, np.maximum(part.sum(axis, keepdims=True) - part, 0.0), 0.0)
            for part in (self.weight, self.squares)
        )
        return WeightSums(weight, squares, rows)

    def _against(self, others: WeightSums, spread: Reals) -> EffectiveCounts:
        """Effective counts of the rows of each cell against other rows.

        Weights of one effective row on each side make the ratio; without a row there, what the other groups suggest.
        """
        sides = (self.weight, self._effective_rows(spread)), (others.weight, others._effective_rows(spread))
        first, second = (_quotient(weight, rows) for weight, rows in sides)
        here, there = (
            _quotient(weight.sum(axis=-1, keepdims=True), rows.sum(axis=-1, keepdims=True)) for weight, rows in sides
        )
        here, there = np.where(np.isnan(here), there, here), np.where(np.isnan(there), here, there)
        numerator = np.where(np.isnan(first), second * here / there, first)
        denominator = np.where(np.isnan(second), first * there / here, second)
        return EffectiveCounts(sides[0][1], sides[1][1], numerator / denominator)

    def _effective_rows(self, spread: Reals) -> Reals:
        """Effective number of rows, n / (1 + the squared coefficient of variation of their weights).

        A cell borrows from the same outcome in all groups, which borrows the spread given.
        """
        deviations, freedom = self.deviations(), np.maximum(self.rows - 1, 0.0)
        shared = _mixed(deviations.sum(axis=-1, keepdims=True), freedom.sum(axis=-1, keepdims=True), spread)
        return np.asarray(self.rows / (1 + _mixed(deviations, freedom, shared)))

    def deviations(self) -> Reals:
        """Sum over a cell's rows of the squared relative deviation from their mean weight."""
        relative = np.divide(
            self.rows * self.squares, self.weight**2, out=np.ones_like(self.rows), where=self.weight > 0
        )
        return np.asarray(self.rows * np.maximum(relative - 1, 0.0))


def _mixed(deviations: Reals, freedom: Reals, spread: Reals) -> Reals:
    return np.asarray((deviations + _BORROWED_ROWS * spread) / (freedom + _BORROWED_ROWS))


def _common_spread(*sides: WeightSums) -> Reals:
    """Squared coefficient of variation of the weights within cells, of all groups together."""
    deviations = sum(side.deviations().sum(axis=-1, keepdims=True) for side in sides)
    freedom = sum(np.maximum(side.rows - 1, 0.0).sum(axis=-1, keepdims=True) for side in sides)
    return np.asarray(deviations / np.maximum(freedom, 1.0))


def _quotient(above: Reals, below: Reals) -> Reals:
    """One over the other; NaN where there is nothing below."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0))
