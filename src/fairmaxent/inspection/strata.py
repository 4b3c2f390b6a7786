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

_TINY = 1e-150  # in place of 0, so that its square is not


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
        pooled = _Pooled.of(tables, outcome, [other.group, largest.group])
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
    """Two groups in the strata that have both, and people with the outcome."""

    cells: Sequence[tuple[GroupedTable, int, list[int]]]  # row and columns of each
    rates: Reals  # strata × two groups
    sizes: Reals

    @classmethod
    def of(
        cls, tables: Sequence[GroupedTable], outcome: object, groups: Sequence[Label]
    ) -> "_Pooled | None":
        """Collect the strata; None if there are none."""
        cells = []
        for table in tables:
            labels = table.rows.labels
            if outcome not in table.outcomes or not {*groups} <= {*labels}:
                continue
            row = table.outcomes.index(outcome)
            both = [labels.index(group) for group in groups]
            if np.nansum(table.rates[row, both]) and table.compared > 1:
                cells.append((table, row, both))
        if not cells:
            return None
        return cls(
            cells=cells,
            rates=np.array([table.rates[row, both] for table, row, both in cells]),
            sizes=np.array(
                [table.effective.sizes[row, both] for table, row, both in cells]
            ),
        )

    def ratio(self, confidence: float) -> tuple[float, Interval]:
        """The ratio and its interval."""
        total = self.sizes.sum(axis=1)
        share = self.sizes.prod(axis=1) / total  # h
        having = self.rates * self.sizes
        first, second = share @ self.rates
        spread = (share * having.sum(axis=1) - having.prod(axis=1)) / total
        variance = float(spread.sum())
        deviate = normal_quantile((1 + confidence) / 2)
        if self.cells[0][0].rows.cluster is not None:
            moves = self._moves(share)
            alone = share**2 @ (self.rates * (1 - self.rates) / self.sizes)
            sums = np.maximum(share @ self.rates, _TINY)
            variance *= float(moves.effects(alone / sums**2)[0, 1])
            deviate = float(student_deviate(deviate, moves.freedom).max())
        if first == 0 or second == 0:
            # (Σ p₁ h − ρ Σ p₀ h)² = z² ρ V, where one of the sums is 0
            end = float(deviate**2 * variance / max(first, second) ** 2)
            if first == 0:
                return 0.0, (0.0, end)
            return np.inf, (1 / end, np.inf)
        value = float(first / second)
        reach = float(np.exp(deviate * np.sqrt(variance / (first * second))))
        return value, (value / reach, value * reach)

    def _moves(self, share: Reals) -> Moves:
        """How each row moves the logarithms of both sums, by cluster."""
        sums = np.maximum(share @ self.rates, _TINY)
        clusters = []
        moves = []
        groups = []
        for (table, row, both), rates, factor in zip(
            self.cells, self.rates, share[:, None] / sums, strict=True
        ):
            rows = table.rows
            having = rows.levels[0] == code_of(rows.levels[1], table.outcomes[row])
            for number, group in enumerate(both):
                own = rows.group == group
                weight = rows.weights[own] / rows.weights[own].sum()
                moves.append(factor[number] * weight * (having[own] - rates[number]))
                clusters.append(np.asarray(rows.cluster)[own])
                groups.append(np.full(len(weight), number))
        return Moves.of(
            np.concatenate(clusters), np.concatenate(moves), np.concatenate(groups), 2
        )
