"""Groups within strata: the ratio over all strata together, and those of each.

The ratio of two groups' rates is that of Mantel and Haenszel, Σ p₁ h / Σ p₀ h over
strata, where h = n₁ n₀ / (n₁ + n₀), with the variance of its logarithm by Greenland and
Robins (1985), which holds for few large strata and for many small ones. Rows with
weights count as the unweighted rows that tell as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.inspection.verdict import Verdict
from fairmaxent.metrics.clusters import Moves, student_deviate
from fairmaxent.metrics.group_rates import GroupedTable, Pair, Rate, worst_ratio
from fairmaxent.metrics.groups import Label, code_of
from fairmaxent.metrics.intervals import Interval, normal_quantile


def stratum_rates(
    tables: Sequence[GroupedTable], confidence: float
) -> tuple[Rate, ...]:
    """The rates of each stratum that has two groups, the clearest gap first."""
    several = [table for table in tables if table.compared > 1]
    rates = [worst_ratio([table], confidence) for table in several]
    return tuple(sorted(rates, key=_clarity))


def _clarity(rate: Rate) -> tuple[float, float]:
    """The clearest gap is first, and of those that may be chance the widest."""
    _, most = rate.interval or (0.0, 1.0)
    return min(most, 1.0), rate.value


def judge_within(
    tables: Sequence[GroupedTable],
    overall: Verdict,
    representation: Rate,
    confidence: float,
) -> Verdict:
    """Compare the largest group, or the reference, with each other one, within strata.

    Who is set apart ``overall`` is set apart here.
    """
    apart = [group.group for group in overall.set_apart]
    kept = [group for group in representation.groups if group.group not in apart]
    reference = overall.reference
    kept.sort(key=lambda group: (group.group != reference, -group.rate))
    if kept and reference not in (None, kept[0].group):
        return overall
    outcomes = list(
        dict.fromkeys(outcome for table in tables for outcome in table.outcomes)
    )
    pairs = [(outcome, other) for outcome in outcomes for other in kept[1:]]
    compared = float(len(pairs))
    if len(outcomes) == 2 and tables[0].is_two_sided:
        compared /= 2  # the rates of the second outcome follow from those of the first
    gaps = []
    for outcome, other in pairs:
        largest = kept[0]
        pooled = _Pooled.of(tables, outcome, other.group, largest.group)
        if pooled is None:
            continue
        sure = 1 - (1 - confidence) / compared
        value, interval = pooled.ratio(sure)
        both = [other, largest]
        if value > 1:
            both.reverse()
            value = 1 / value
            interval = (1 / interval[1], 1 / interval[0])
        lowest, highest = both
        worst = Pair(lowest.columns, outcome, lowest.group, highest.group)
        gaps.append(Rate(value, interval, worst, (lowest, highest)))
    gap = min(gaps, key=_clarity, default=None)
    several = sum(table.compared > 1 for table in tables)
    return replace(
        overall,
        gap=gap,
        others=len(kept) - 1,
        within=tuple(name for name, _ in tables[0].rows.stratum),
        strata=(several, len(tables) - several),
    )


@dataclass(frozen=True, eq=False)
class _Pooled:
    """Two groups in the strata that have both."""

    rates: Reals  # two groups × strata
    sizes: Reals
    moves: Moves | None  # of the difference of both sums, by cluster

    @classmethod
    def of(
        cls,
        tables: Sequence[GroupedTable],
        outcome: object,
        first: Label,
        second: Label,
    ) -> "_Pooled | None":
        """Collect the strata; None if no one with the outcome is in any of them."""
        rates = []
        sizes = []
        found = []
        for table in tables:
            labels = table.rows.labels
            if outcome not in table.outcomes:
                continue  # nobody has it there
            if first not in labels or second not in labels:
                continue
            row = table.outcomes.index(outcome)
            both = [labels.index(first), labels.index(second)]
            if np.isnan(table.rates[row, both]).any():
                continue
            rates.append(table.rates[row, both])
            sizes.append(table.effective.sizes[row, both])
            found.append((table, both))
        if not np.any(rates):
            return None
        pooled = cls(np.array(rates).T, np.array(sizes).T, None)
        if found[0][0].rows.cluster is None:
            return pooled
        return replace(pooled, moves=pooled._moves(found, outcome))

    @property
    def shares(self) -> Reals:
        """The weight h of each stratum."""
        size: Reals = self.sizes.prod(axis=0) / self.sizes.sum(axis=0)
        return size

    @property
    def sums(self) -> tuple[float, float]:
        """Σ p h of both groups."""
        first, second = self.rates @ self.shares
        return float(first), float(second)

    def ratio(self, confidence: float) -> tuple[float, Interval]:
        """The ratio and its interval."""
        first, second = self.sums
        deviate = normal_quantile((1 + confidence) / 2)
        having = self.rates * self.sizes
        total = self.sizes.sum(axis=0)
        products = self.sizes.prod(axis=0) * having.sum(axis=0)
        variance = float(((products - having.prod(axis=0) * total) / total**2).sum())
        if self.moves is not None:
            deviate = float(student_deviate(deviate, self.moves.freedom)[0])
            variance *= self._effect(self.moves)
        if first == 0 or second == 0:
            # (Σ p₁ h − ρ Σ p₀ h)² = z² ρ V, where one of the sums is 0
            end = deviate**2 * variance / max(first, second) ** 2
            if first == 0:
                return 0.0, (0.0, end)
            return np.inf, (1 / end, np.inf)
        value = first / second
        reach = float(np.exp(deviate * np.sqrt(variance / (first * second))))
        return value, (value / reach, value * reach)

    def _moves(
        self, found: Sequence[tuple[GroupedTable, list[int]]], outcome: object
    ) -> Moves:
        """How each row moves Σ p₁ h − ρ Σ p₀ h, by cluster."""
        first, second = self.sums
        factors = np.array([second, -first])  # times Σ p₀ h, which may be 0
        clusters = []
        moves = []
        for (table, both), rates, share in zip(
            found, self.rates.T, self.shares, strict=True
        ):
            rows = table.rows
            having = rows.levels[0] == code_of(rows.levels[1], outcome)
            for group, rate, factor in zip(both, rates, factors, strict=True):
                own = rows.group == group
                weight = rows.weights[own] / rows.weights[own].sum()
                moves.append(factor * share * weight * (having[own] - rate))
                clusters.append(rows.cluster[own])
        return Moves.of(np.concatenate(clusters), np.concatenate(moves))

    def _effect(self, moves: Moves) -> float:
        """The variance over that of independent people; never below 1."""
        first, second = self.sums
        factors = np.array([[second], [-first]])
        spread = self.rates * (1 - self.rates) / self.sizes
        alone = float((factors**2 * self.shares**2 * spread).sum())
        clusters = float(moves.clusters[0])
        variance = float(moves.variances[0]) * clusters / (clusters - 1)
        return max(variance / alone, 1.0)
