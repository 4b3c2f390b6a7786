"""The verdict: is it fair, how sure is that, and of whom can nobody say?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.levels import value_text
from fairmaxent.errors import cut, shown
from fairmaxent.fairness.rates import smallest_over_largest
from fairmaxent.inspection.hints import listed
from fairmaxent.metrics.group_rates import GroupedTable, GroupRate, Pair, Rate
from fairmaxent.metrics.intervals import ratio_ends, widened
from fairmaxent.plain_text import visible

_CLEAR = 0.8  # an interval that reaches lower leaves room for a gap that matters


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
    reference: tuple[object, ...] | None = None
    # The columns within whose strata groups were compared, and how many strata have
    # people of several groups, and of one: the gap is that over all strata together.
    within: tuple[str, ...] = ()
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
        least = _named(pair.columns, pair.lowest)
        most = _named(pair.columns, pair.highest)
        outcome = _named([self.outcome], [pair.outcome])
        ratio, low, high = map(_digits, (self.gap.value, *self.gap.interval))
        if self.most < 1:
            chance = "is unlikely to be chance"
        elif self.gap.interval[0] < _CLEAR:
            chance = "may well be chance: the table is too small to tell"
        else:
            chance = "may well be chance: the table shows no clear gap"
        people = "People"
        if self.within:
            people = f"Compared within {' × '.join(map(cut, self.within))}, people"
        return (
            f"{people} with {least} have {outcome} {ratio} times as often as people"
            f" with {most} (between {low} and {high}). That {chance}."
        )

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
                f"{one} was compared with each other one, and the clearest gap is told."
            )
        if self.set_apart:
            few = [
                f"{group.count:,} {'person' if group.count == 1 else 'people'} with"
                f" {_named(group.columns, group.group)}"
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
) -> Verdict:
    """Compare the largest group with each other one that is large enough.

    For each outcome of the table. A reference takes the place of the largest.
    """
    labels = table.rows.labels
    reference = table.rows.reference
    sized = (*representation.groups, *representation.set_apart)
    shares = {labels.index(group.group): group for group in sized}
    is_large = table.is_large
    order = sorted(
        shares,
        key=lambda group: (labels[group] != reference, -shares[group].rate),
    )
    apart = tuple(shares[group] for group in order if not is_large[:, group].any())
    ranked = [[group for group in order if large[group]] for large in is_large]
    gaps = np.array(
        [
            (row, groups[0], other)
            for row, groups in enumerate(ranked)
            for other in groups[1:]
            if reference in (None, labels[groups[0]])
        ]
    )
    if not len(gaps):
        return Verdict(outcome, None, apart, reference=reference)
    cells = gaps[:, :1], gaps[:, 1:]
    ratios = smallest_over_largest(table.rates[cells])
    compared = float(len(gaps))
    if table.is_two_sided and len(table.outcomes) == 2:
        compared /= 2  # the rates of the second outcome follow from those of the first
    sure = 1 - (1 - confidence) / compared
    low, high = ratio_ends([table.compare(*cells)], sure)
    best = min(
        range(len(gaps)),
        key=lambda gap: (high[gap], ratios[gap], -shares[gaps[gap, 2]].rate),
    )
    row, largest, other = gaps[best].tolist()
    both = sorted([other, largest], key=lambda group: table.rates[row, group])
    lowest, highest = (shares[group] for group in both)
    value = float(ratios[best])
    gap = Rate(
        value=value,
        interval=widened((low[best], high[best]), value),
        worst=Pair(
            table.rows.columns, table.outcomes[row], lowest.group, highest.group
        ),
        groups=(lowest, highest),
    )
    others = max(map(len, ranked)) - 1
    return Verdict(outcome, gap, apart, others, reference)


def _named(columns: Sequence[str], levels: Sequence[object]) -> str:
    """Levels with the columns that they are of: sex 'Female' and age '[17, 31)'."""
    return " and ".join(
        f"{cut(name)} {shown(value_text(level))}"
        for name, level in zip(columns, levels, strict=True)
    )


def _digits(ratio: float) -> str:
    """Two digits, or more in order not to look like 0 or 1."""
    if ratio in (0, 1) or 0.005 <= ratio < 0.995 or ratio >= 1.005:
        return f"{ratio:.2f}"
    return f"{ratio:.4f}"
