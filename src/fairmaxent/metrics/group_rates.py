"""Rates of groups: the table that every metric fills, outcome × groups.

The worst ratio between two groups of it is the value of a metric.
Definitions 2.1 and 2.2 are in `fairness.rates`, intervals in `intervals`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairmaxent.data.likely import TOLD_BY
from fairmaxent.data.table import Codes, Mask, Reals, effective_rows, tally
from fairmaxent.errors import LevelError, Option
from fairmaxent.fairness.likely import ends_of, ratio_bounds
from fairmaxent.fairness.rates import (
    first_largest,
    first_smallest,
    outcome_rates,
    smallest_over_largest,
)
from fairmaxent.metrics import intervals
from fairmaxent.metrics.effective_counts import Dependence, EffectiveCounts, WeightSums
from fairmaxent.metrics.rates import GroupRate, LikelyEvidence, Pair, Rate
from fairmaxent.metrics.rows import (
    GroupedRows,
    KnownRates,
    favourable_codes,
)

_TINY = 1e-150  # in place of no weight at all, so that its square is not zero


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Rates of each outcome (axis 0) in each group of one stratum, and their rows."""

    rows: GroupedRows
    outcomes: Sequence[object]  # that are compared
    rates: Reals  # P(y | g), or P(g); NaN in groups without mass
    effective: EffectiveCounts
    are_shares: bool = False  # P(g) is compared
    # the rates of the second of two outcomes follow from those of the first
    is_two_sided: bool = False
    dependence: Dependence | None = None  # between rows; None: they are independent
    surpluses: intervals.Surpluses | None = None  # None: ratios are compared
    likely: KnownRates | None = None  # None: groups are known

    @classmethod
    def of_shares(cls, rows: GroupedRows) -> "GroupedTable":
        """Add up the weights of each group."""
        if rows.likely is not None:
            everybody = np.zeros_like(rows.group)
            shared = rows.likely.shared(everybody, 1, rows.weights)
            table = cls.of_shares(rows.cells(shared.sums))
            return table._known_as(shared.known([0], axis=-1))
        groups = len(rows.labels)
        everybody = np.zeros_like(rows.group)
        sums = WeightSums.of(
            everybody, rows.group, rows.weights, (1, groups), rows.counted
        )
        shares = sums.weight / np.maximum(sums.weight.sum(), _TINY)
        effective = sums.against_others(axis=-1)
        # A share is the rate of being in the group, among everybody.
        alone = replace(rows, group=everybody, labels=rows.labels[:1])
        dependence = alone.dependence(
            (rows.group == group for group in range(groups)),
            shares.T,
            effective.sizes.T,
        )
        if dependence is not None:
            dependence = Dependence(dependence.effects.T, dependence.freedom.T)
        return cls(
            rows=rows,
            outcomes=[None],
            rates=np.where(shares > 0, shares, np.nan),
            effective=effective,
            are_shares=True,
            dependence=dependence,
        )

    @classmethod
    def of_outcomes(cls, rows: GroupedRows, favourable: object) -> "GroupedTable":
        """Add up the weights of each outcome in each group."""
        codes, outcomes = rows.levels
        chosen = favourable_codes(outcomes, favourable)
        # an outcome that nobody compared has is left out, such as missing
        if favourable is None:
            weight = tally(codes, rows.weights, len(outcomes))
            chosen = [code for code in chosen if weight[code]] or chosen
        return cls._of_levels(rows, chosen)

    @classmethod
    def of_positives(
        cls,
        rows: GroupedRows,
        positive: Mask,
        outcome: object,
    ) -> "GroupedTable":
        """Add up the weights of rows with an outcome, and of the others, by group."""
        levels = (1 - positive, [outcome, None])
        return cls._of_levels(replace(rows, levels=levels), [0])

    @classmethod
    def _of_levels(cls, rows: GroupedRows, chosen: Sequence[int]) -> "GroupedTable":
        """Add up the weights of all outcomes; some are compared."""
        codes, outcomes = rows.levels
        if rows.likely is not None:
            shared = rows.likely.shared(codes, len(outcomes), rows.weights)
            table = cls._of_levels(rows.cells(shared.sums), chosen)
            return table._known_as(shared.known(chosen, axis=-2))
        shape = (len(outcomes), len(rows.labels))
        sums = WeightSums.of(codes, rows.group, rows.weights, shape, rows.counted)
        rates = outcome_rates(sums.weight, (1,))[chosen]
        effective = sums.against_others()[chosen, :]
        having = (codes == code for code in chosen)
        return cls(
            rows=rows,
            outcomes=[outcomes[code] for code in chosen],
            rates=rates,
            effective=effective,
            is_two_sided=len(outcomes) == 2,
            dependence=rows.dependence(having, rates, effective.sizes),
        )

    @classmethod
    def of_means(
        cls,
        rows: GroupedRows,
        chance: Reals,
        outcome: object,
    ) -> "GroupedTable":
        """Average the probabilities of an outcome in each group.

        They vary less than labels, so are worth more rows.
        """
        # The variance of the mean is linearised (Taylor), and widened like Student's t
        # because it is estimated.
        if ((chance == 0) | (chance == 1)).all():
            return cls.of_positives(rows, chance == 1, outcome)
        rows.refuse_likely("rate of probabilities")
        group = rows.group
        weight = rows.weights
        size = len(rows.labels)
        mass = tally(group, weight, size)
        positive = tally(group, weight * chance, size)
        mean = positive / np.maximum(mass, np.finfo(float).tiny)
        squares = tally(group, weight**2, size)
        deviations = tally(group, weight**2 * (chance - mean[group]) ** 2, size)
        count = effective_rows(mass, squares)
        variance = deviations / np.maximum(mass, _TINY) ** 2
        freedom = count - 1
        unbiased = variance * (count / np.maximum(freedom, 1e-9))
        widened = unbiased * freedom / np.maximum(freedom - 2, 1e-9)
        sizes = np.maximum(count, mean * (1 - mean) / np.maximum(widened, 1e-300))
        rates = outcome_rates(np.stack([positive, mass - positive]), (1,))[:1]
        return cls(
            rows=rows,
            outcomes=[outcome],
            rates=rates,
            effective=EffectiveCounts.of_rates(mean[None], sizes[None]),
            dependence=rows.dependence([chance], rates, sizes[None]),
        )

    def _known_as(self, known: KnownRates) -> "GroupedTable":
        """The same of groups that are only likely."""
        return replace(self, effective=known.counts(self.rates), likely=known)

    def by_difference(self) -> "GroupedTable":
        """The same rates, to be compared by their differences."""
        nothing = np.zeros(self.rates.shape)
        return replace(
            self, surpluses=intervals.Surpluses(nothing, nothing + 1, nothing)
        )

    def worst(self, number: int, groups: Codes) -> tuple[float, Reals]:
        """The worst ratio, or minus the largest difference, and what it is between."""
        rates = self.rates[number, groups]
        above = rates
        if self.surpluses is not None:
            above = rates - self.surpluses.expected[number, groups]
        return float(self.worst_of(self.rates, number, groups)), above

    def worst_of(self, rates: Reals, number: int, groups: Codes) -> Reals:
        """The worst ratio, or minus the largest difference, of any such rates."""
        compared = rates[..., number, groups]
        if self.surpluses is None:
            return smallest_over_largest(compared)
        return -np.ptp(compared - self.surpluses.expected[number, groups], axis=-1)

    def if_told_by(self, told_by: str) -> "GroupedTable":
        """The same rates, if names or columns say which group people belong to."""
        if self.likely is None:
            return self
        return replace(self, rates=self.likely.assumed[told_by])

    def bounds(self, number: int, groups: Codes) -> tuple[float, float]:
        """The worst ratio, or the largest difference, whatever is true."""
        least = most = self.rates
        if self.likely is not None:
            least = self.likely.least
            most = self.likely.most
        low = least[number, groups]
        high = most[number, groups]
        if self.surpluses is None:
            lowest, highest = ratio_bounds(low, high)
            return float(lowest), float(highest)
        nearest = float(low.max() - high.min())
        farthest = float(high.max() - low.min())
        return max(0.0, nearest), farthest

    @property
    def compared(self) -> int:
        """How many groups have a rate."""
        return int(np.count_nonzero(~np.isnan(self.rates[0])))

    @cached_property
    def has_rate(self) -> Mask:
        """Whether a group has a rate of each outcome."""
        return ~np.isnan(self.rates)

    @cached_property
    def set_apart(self) -> Mask:
        """Whether a group has a rate, but is too small to decide anything."""
        rows = self.rows
        small = rows.small
        if rows.exact or (self.are_shares and not small.are_chosen):
            small = replace(small, expected=0.0)  # then they are known, however small
        weight = tally(rows.group, rows.weights, len(rows.labels))
        return self.has_rate & small.among(
            self.effective.sizes, self.rates, self.people, weight
        )

    @property
    def is_large(self) -> Mask:
        """Whether a group is compared: it has a rate, and is not small."""
        return self.has_rate & ~self.set_apart

    @property
    def people(self) -> Reals:
        """How many people with weight each group has."""
        return tally(self.rows.group, self._people, len(self.rows.labels))

    @property
    def _people(self) -> Reals:
        """How many people with weight each row stands for."""
        has_weight = self.rows.weights > 0
        if self.rows.counted is None:
            return has_weight.astype(float)
        return np.where(has_weight, self.rows.counted.rows, 0.0)

    @cached_property
    def peers(self) -> list[tuple[int, Codes]]:
        """By outcome, groups that are compared with each other.

        If there is a reference, each other group is compared with it alone.
        """
        known = self.is_large
        reference = self.rows.reference
        if reference is None:
            return [
                (number, np.flatnonzero(row))
                for number, row in enumerate(known)
                if row.sum() > 1 or not self.set_apart[number].any()
            ]
        if reference not in self.rows.labels:
            return []
        at = self.rows.labels.index(reference)
        return [
            (number, np.array([at, other]))
            for number, row in enumerate(known)
            for other in np.flatnonzero(row)
            if row[at] and other != at
        ]

    @property
    def is_alone(self) -> bool:
        """Whether nobody can be compared with anybody.

        A single group of all rows equals itself, unless others are set apart.
        """
        is_part = self.rows.stratum or self.rows.reference or self.set_apart.any()
        return bool(is_part) and all(len(groups) < 2 for _, groups in self.peers)

    def known(self, confidence: float) -> EffectiveCounts:
        """What rows tell in intervals of a confidence, as independent people."""
        if self.dependence is None:
            return self.effective
        deviate = intervals.deviate_of(confidence)
        return self.dependence.reduced(self.effective, deviate)

    def comparisons(self, confidence: float) -> Iterator[intervals.Compared]:
        """The groups that are compared, for each outcome."""
        for number, groups in self.peers:
            one = self.compare(number, groups, confidence)
            yield replace(one, repeats=number == 1 and self.is_two_sided)

    def compare(
        self, outcomes: Any, groups: Codes, confidence: float
    ) -> intervals.Compared:
        """Some groups (last axis) and outcomes, to be compared."""
        count = groups.shape[-1]
        pairs = max(count * (count - 1) // 2, 1)
        counts = self.known(1 - (1 - confidence) / pairs)[..., outcomes, groups]
        if self.dependence is not None:
            counts = self.dependence.compared(counts, outcomes, groups)
        if self.surpluses is not None:
            return self.surpluses.compared(counts, (outcomes, groups))
        return intervals.Compared(counts, self.are_shares)

    def scaled(self, times: Reals) -> "GroupedTable":
        """The table with so many times the people of each group, at the same rates."""
        surpluses = self.surpluses
        if surpluses is not None:
            surpluses = replace(surpluses, added=surpluses.added / times)
        return replace(self, effective=self.effective.times(times), surpluses=surpluses)

    def listed(self, which: Mask, confidence: float) -> Iterator[GroupRate]:
        """Some groups, each with its interval, unless its rate is exact or none."""
        rows = self.rows
        counted = rows.counted.rows if rows.counted is not None else None
        people = np.bincount(rows.group, counted, minlength=len(rows.labels))
        ends = None
        if not rows.exact and (which & self.has_rate).any():
            if self.likely is not None:
                drawn = ends_of(self.likely.drawn, confidence)
                ends = np.moveaxis(drawn, 0, -1)
            else:
                known = self.known(confidence)
                ends = np.stack(intervals.share_interval(known, confidence), -1)
        for outcome, group in np.argwhere(which).tolist():
            interval = None
            if ends is not None and self.has_rate[outcome, group]:
                low, high = ends[outcome, group].tolist()
                interval = (low, high)
            yield GroupRate(
                columns=rows.columns,
                group=rows.labels[group],
                outcome=self.outcomes[outcome],
                rate=float(self.rates[outcome, group]),
                count=None if rows.exact else int(people[group]),
                interval=interval,
                stratum=rows.stratum,
            )


def worst_rate(
    tables: Iterable[GroupedTable], confidence: float, *, may_be_none: bool = False
) -> Rate:
    """Take the worst pair over all groupings, strata and outcomes.

    ``may_be_none``: without anybody to compare, there is a rate without a value.
    """
    intervals.check_confidence(confidence)
    tables = [table for table in tables if table.compared or not table.rows.stratum]
    for table in tables:
        if not table.compared:
            names = " × ".join(map(repr, table.rows.columns))
            what = "a group" if table.are_shares else "both an outcome and a group"
            raise LevelError(
                f"no row has {what} of {names}, so there is nothing to compare; name"
                " other columns, or fill their gaps"
            )
    several = [table for table in tables if not table.is_alone]
    left_out: list[GroupRate] = []
    set_apart: list[GroupRate] = []
    for table in several:
        left_out += table.listed(~table.has_rate, confidence)
    for table in tables:
        set_apart += table.listed(table.set_apart, confidence)
        if table.is_alone:
            left_out += table.listed(table.is_large, confidence)
    if not several:
        if not may_be_none:
            _refuse_no_pair(tables, set_apart)
        nobody = Pair(tables[0].rows.columns, None, (), ())
        return Rate(np.nan, None, nobody, (), tuple(left_out), tuple(set_apart))
    value, worst = _worst_pair(several)
    interval = None
    if not several[0].rows.exact:
        interval = intervals.widened(_worst_ends(several, confidence), value)
    groups = [
        group for table in several for group in table.listed(table.is_large, confidence)
    ]
    return Rate(
        value=value,
        interval=interval,
        worst=worst,
        groups=tuple(groups),
        left_out=tuple(left_out),
        set_apart=tuple(set_apart),
        likely=_evidence(several),
    )


def _worst_ends(tables: Sequence[GroupedTable], confidence: float) -> intervals.Ends:
    """Ends of the worst rate; where groups are only likely, those of draws.

    In each draw the worst pair of groups counts, whichever it is then. If some columns
    are known and others likely, the worst of all has the worse of both ends.
    """
    ends = []
    known = [
        compared
        for table in tables
        if table.likely is None
        for compared in table.comparisons(confidence)
    ]
    if known:
        ends.append(intervals.worst_ends(known, confidence))
    drawn = []
    for table in tables:
        if table.likely is not None:
            drawn += [
                table.worst_of(table.likely.drawn, number, groups)
                for number, groups in table.peers
            ]
    if drawn:
        values = np.abs(np.nanmin(drawn, axis=0))
        lowest, highest = ends_of(values[~np.isnan(values)], confidence)
        ends.append((lowest, highest))
    lows, highs = np.transpose(ends)
    if tables[0].surpluses is not None:
        return lows.max(), highs.max()
    return lows.min(), highs.min()


def _evidence(tables: Sequence[GroupedTable]) -> LikelyEvidence | None:
    """What the worst rate rests on, if groups are only likely.

    The same comparisons by what names tell, by what columns do, and by the bounds that
    hold whatever is true. Several tables are tested for contradictions, so that the
    smallest p-value is multiplied by their number (Bonferroni).
    """
    known = [table.likely for table in tables if table.likely is not None]
    if not known:
        return None
    assumed = {}
    for told_by in TOLD_BY:
        others = [table.if_told_by(told_by) for table in tables]
        assumed[told_by], _ = _worst_pair(others)
    limits = [
        table.bounds(number, groups)
        for table in tables
        for number, groups in table.peers
    ]
    p_values = [one.contradiction for one in known if one.contradiction is not None]
    least, most = map(float, np.min(limits, axis=0))
    if tables[0].surpluses is not None:
        least, most = map(float, np.max(limits, axis=0))
    return LikelyEvidence(
        told_by=known[0].told_by,
        contradiction=min(1.0, min(p_values) * len(p_values)) if p_values else None,
        **assumed,
        bounds=(least, most),
    )


def _worst_pair(tables: Sequence[GroupedTable]) -> tuple[float, Pair]:
    """The worst ratio or difference of two groups, and which they are."""
    peers = [
        (table, number, groups) for table in tables for number, groups in table.peers
    ]
    found = [table.worst(number, groups) for table, number, groups in peers]
    at = first_smallest([worst for worst, _ in found])
    table, outcome, groups = peers[at]
    _, rates = found[at]
    pair = Pair(
        columns=table.rows.columns,
        outcome=table.outcomes[outcome],
        lowest=table.rows.labels[groups[first_smallest(rates)]],
        highest=table.rows.labels[groups[first_largest(rates)]],
        stratum=table.rows.stratum,
    )
    return abs(float(np.nanmin([worst for worst, _ in found]))), pair


def _refuse_no_pair(
    tables: Sequence[GroupedTable], set_apart: Sequence[GroupRate]
) -> None:
    """Refuse strata that have one group each, unless others are too small."""
    if not set_apart and not any(table.rows.reference for table in tables):
        raise LevelError(
            "no stratum has rows of more than one group, so there is nothing to"
            " compare; compare within other columns, or leave ",
            Option("within"),
            " out",
        )
