"""The verdict: is it fair, how sure is that, and of whom can nobody say?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairmaxent.data.levels import value_text
from fairmaxent.data.table import Codes, Names, Reals
from fairmaxent.errors import cut
from fairmaxent.facts.groups import Gap
from fairmaxent.fairness.rates import smallest_over_largest
from fairmaxent.inspection.hints import listed
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.intervals import Interval, deviate_of, ratio_ends, widened
from fairmaxent.metrics.rates import GroupRate, Pair, Rate
from fairmaxent.metrics.rows import Label
from fairmaxent.plain_text import visible
from fairmaxent.telling.rates import gap_sentence, named

# Rates of two groups, or None; the ends of their ratio.
Measured = tuple[Reals | None, Any]


@dataclass(frozen=True)
class Verdict:
    """The clearest gap between the largest group and another; who is set apart.

    A group that is too small is *set apart*, and never compared (see
    `fairness.small_groups`).

    Of the others, the largest, or the reference, is compared with each, and the gap
    that is most surely one is told; if none is, the widest. Their intervals hold
    together: if there are m of them, each has the confidence 1 − α / m.
    """

    outcome: str
    # between two groups, with their shares; None: no two groups are large enough
    gap: Rate | None
    set_apart: tuple[GroupRate, ...]  # with their shares, the largest first
    others: int = 1  # that the largest, or the reference, was compared with
    # that was named, to be compared with the others
    reference: Label | None = None
    # The columns within whose strata groups were compared, and how many strata have
    # people of several groups, and of one: the gap is that over all strata together.
    within: Names = ()
    strata: tuple[int, int] = (0, 0)

    @property
    def most(self) -> float:
        """The largest ratio that the rows do not contradict.

        1 (equal rates): the gap may well be chance.
        """
        if self.gap is None or self.gap.interval is None:
            return 1.0
        return min(self.gap.interval[1], 1.0)

    @property
    def headline(self) -> str:
        """The gap, and whether it may be chance; nothing if there is none."""
        if self.gap is None or self.gap.interval is None:
            return ""
        pair = self.gap.worst
        gap = Gap(
            columns=pair.columns,
            lowest=tuple(map(value_text, pair.lowest)),
            highest=tuple(map(value_text, pair.highest)),
            outcome=(self.outcome, value_text(pair.outcome)),
            ratio=self.gap.value,
            interval=self.gap.interval,
        )
        people = "People"
        if self.within:
            people = f"Compared within {' × '.join(map(cut, self.within))}, people"
        return gap_sentence(gap, people)

    @property
    def details(self) -> str:
        """Who was compared, if that is not obvious, and who is set apart.

        Nothing if nobody is.
        """
        told = []
        if self.within and self.gap is not None:
            several, single = self.strata
            alone = ""
            if single:
                alone = f", and {single:,} of one only, who cannot be compared"
            told.append(
                f"The ratio is that over all strata together: {several:,} have people"
                f" of several groups{alone}."
            )
        if self.others > 1:
            one = "The largest group"
            if self.reference is not None:
                one = f"The group {' × '.join(map(value_text, self.reference))}"
            told.append(
                f"{one} was compared with each other one; only the clearest gap is"
                " shown."
            )
        if self.set_apart:
            few = [
                f"{group.count:,} {'person' if group.count == 1 else 'people'} with"
                f" {named(group.columns, tuple(map(value_text, group.group)))}"
                for group in self.set_apart
            ]
            told.append(
                f"Too little is known to say anything about {listed(few, 'group')}."
            )
        return " ".join(told)

    def __str__(self) -> str:
        return visible(f"{self.headline} {self.details}".strip())


def judge(
    table: GroupedTable,
    representation: Rate,
    outcome: str,
    confidence: float,
    strata: Sequence[GroupedTable] = (),
) -> Verdict:
    """Compare the largest group with each other one that is large enough.

    For each outcome of the table. A reference takes the place of the largest. If there
    are strata, they are compared within these.
    """
    labels = table.rows.labels
    reference = table.rows.reference
    sized = (*representation.groups, *representation.set_apart)
    shares = {labels.index(group.group): group for group in sized}
    order = sorted(shares, key=lambda group: -shares[group].rate)
    order.sort(key=lambda group: labels[group] != reference)  # that comes first
    is_large = table.is_large
    ranked = [[group for group in order if large[group]] for large in is_large]
    gaps = np.array(
        [
            (row, other, groups[0])
            for row, groups in enumerate(ranked)
            for other in groups[1:]
            if reference in (None, labels[groups[0]])
        ]
    )
    apart = tuple(shares[group] for group in order if not is_large[:, group].any())
    several = sum(stratum.compared > 1 for stratum in strata)
    verdict = Verdict(
        outcome=outcome,
        gap=None,
        set_apart=apart,
        reference=reference,
        within=tuple(name for part in strata[:1] for name, _ in part.rows.stratum),
        strata=(several, len(strata) - several),
    )
    if not len(gaps):
        return verdict
    compared = float(len(gaps))
    if table.is_two_sided and len(table.outcomes) == 2:
        compared /= 2  # the rates of the second outcome follow from those of the first
    sure = 1 - (1 - confidence) / compared
    found = []
    for (row, *both), (rates, ends) in zip(
        gaps.tolist(), _ratios(table, gaps, sure, strata), strict=True
    ):
        if rates is None:
            continue
        lowest, highest = (shares[both[number]] for number in np.argsort(rates))
        worst = Pair(
            table.rows.columns, table.outcomes[row], lowest.group, highest.group
        )
        value = float(smallest_over_largest(rates))
        found.append(Rate(value, widened(ends, value), worst, (lowest, highest)))
    return replace(
        verdict,
        gap=min(found, key=clarity, default=None),
        others=max(map(len, ranked)) - 1,
    )


def clarity(rate: Rate) -> Interval:
    """The clearest gap is smallest, and of those that may be chance the widest."""
    _, most = rate.interval or (0.0, 1.0)
    return min(most, 1.0), rate.value


def _ratios(
    table: GroupedTable,
    gaps: Codes,
    confidence: float,
    strata: Sequence[GroupedTable],
) -> Iterable[Measured]:
    """The ratio of each gap: its outcome, and two groups."""
    if not strata:
        cells = gaps[:, :1], gaps[:, 1:]
        ends = ratio_ends([table.compare(*cells, confidence)], confidence)
        return zip(table.rates[cells], zip(*ends, strict=True), strict=True)
    labels = table.rows.labels
    return [
        pooled_ratio(
            strata, table.outcomes[row], (labels[one], labels[other]), confidence
        )
        for row, one, other in gaps.tolist()
    ]


def pooled_ratio(
    strata: Sequence[GroupedTable],
    outcome: object,
    groups: tuple[Label, Label],
    confidence: float,
) -> Measured:
    """The ratio of two groups' rates over all strata (Mantel and Haenszel).

    Σ p₁ h / Σ p₀ h, where h = n₁ n₀ / (n₁ + n₀), with the variance of its logarithm by
    Greenland and Robins (1985), which holds for few large strata and for many small
    ones. Rows with weights count as the unweighted rows that tell as much. No rates if
    no stratum has both groups, and people with the outcome.
    """
    known = []
    for table in strata:
        labels = table.rows.labels
        if outcome in table.outcomes and {*groups} <= {*labels}:
            row = table.outcomes.index(outcome)
            both = [labels.index(group) for group in groups]
            known.append((table.rates[row, both], table.effective.sizes[row, both]))
    cells = np.array(known).reshape(-1, 2, 2)
    cells = cells[~np.isnan(cells).any(axis=(1, 2))]
    rates = cells[:, 0]
    sizes = cells[:, 1]
    total = sizes.sum(axis=1)
    share = sizes.prod(axis=1) / total  # h
    having = rates * sizes
    sums = share @ rates
    lowest, highest = np.sort(sums)
    if not highest:
        return None, (0.0, 1.0)
    spread = (share * having.sum(axis=1) - having.prod(axis=1)) / total
    deviate = deviate_of(confidence)
    variance = deviate**2 * spread.sum()
    if not lowest:
        # (Σ p₁ h − ρ Σ p₀ h)² = z² ρ V, where the first sum is 0
        return sums, (0.0, variance / highest**2)
    reach = np.exp(np.sqrt(variance / (lowest * highest)))
    return sums, (lowest / highest / reach, lowest / highest * reach)
