"""Rates of groups: the table that every metric fills, outcome × groups, and the worst
ratio between two groups of it.

Definitions 2.1 and 2.2 are in `fairness.rates`, intervals in `intervals`. Calibration
compares *surpluses* instead of rates: P(Y = y | g) minus the mean probability that was
predicted for the group.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from fairmaxent.data.levels import value_text
from fairmaxent.data.table import Codes, Mask, Reals, effective_rows, tally
from fairmaxent.errors import InputError, LevelError, Option
from fairmaxent.fairness.rates import (
    first_largest,
    first_smallest,
    outcome_rates,
    smallest_over_largest,
)
from fairmaxent.metrics import intervals
from fairmaxent.metrics.effective_counts import EffectiveCounts, WeightSums
from fairmaxent.metrics.groups import (
    Comparison,
    GroupedRows,
    Label,
    StratumLevels,
    favourable_codes,
    stratum_text,
)
from fairmaxent.plain_text import visible

_TINY = 1e-150  # in place of no weight at all, so that its square is not zero
# whether rows have the outcome, their probabilities, their weights
ScoredRows = tuple[Mask, Reals, Reals]


@dataclass(frozen=True)
class GroupRate:
    """One group's share P(g) or rate, such as P(y | g), and the number of rows behind
    it.
    """

    columns: tuple[str, ...]
    group: Label
    outcome: object  # None: of a share
    rate: float
    count: int | None
    interval: intervals.Interval | None
    # its columns and values, if groups are compared within strata
    stratum: StratumLevels = ()


class Spoken:
    """A result in words, in which names of the data cannot steer a terminal."""

    _words: Any  # a method

    def __str__(self) -> str:
        return visible(self._words())


@dataclass(frozen=True)
class Pair(Spoken):
    """The groups that determine a rate: the lowest and the highest, for this
    outcome.
    """

    columns: tuple[str, ...]
    outcome: object
    lowest: Label
    highest: Label
    stratum: StratumLevels = ()

    def _words(self) -> str:
        if self.outcome is None:
            about = ""
        else:
            about = f" for outcome {value_text(self.outcome)}"
        lowest = group_text(self.lowest)
        highest = group_text(self.highest)
        if lowest == highest:
            groups = "all groups equal"
        else:
            groups = f"{lowest} against {highest}"
        return (
            f"{' × '.join(self.columns)}, {groups}{about}{stratum_text(self.stratum)}"
        )


class Number(Spoken):
    """A result that can be used like a number: its `value`."""

    value: float

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __format__(self, how: str) -> str:
        if how:
            return format(self.value, how)
        return str(self)

    def __lt__(self, other: float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: float) -> bool:
        return self.value > float(other)

    def __le__(self, other: float) -> bool:
        return self.value <= float(other)

    def __ge__(self, other: float) -> bool:
        return self.value >= float(other)


@dataclass(frozen=True)
class Rate(Number):
    """The worst ratio between two groups, its confidence interval (None: exact), and
    the rate of every group.

    The interval covers at least as often as stated. It is wide if groups are many and
    small: see those of the `groups`. Groups that have no weight in the relevant rows
    have no rate: they are not compared, and listed in `left_out`. Within strata, so are
    groups that are alone in theirs.
    """

    value: float
    interval: intervals.Interval | None
    worst: Pair
    groups: tuple[GroupRate, ...]
    left_out: tuple[GroupRate, ...] = ()

    @property
    def difference(self) -> float:
        """The largest difference between the rates of two groups, for the same
        outcome.
        """
        compared: dict[tuple[object, ...], list[float]] = {}
        for group in self.groups:
            compared.setdefault(
                (group.columns, group.outcome, group.stratum), []
            ).append(group.rate)
        return max(max(rates) - min(rates) for rates in compared.values())

    def _words(self) -> str:
        return (
            f"{self.value:.3f}{intervals.interval_text(self.interval)}:"
            f" {self.worst}{left_out_text(self.left_out)}"
        )


def group_text(group: Label) -> str:
    """Name a group by its levels."""
    return " × ".join(map(value_text, group))


def left_out_text(groups: Sequence[GroupRate]) -> str:
    """The groups that were not compared, in words to be put after a comparison."""
    strata: dict[str, set[str]] = {}
    for group in groups:
        strata.setdefault(group_text(group.group), set()).add(
            stratum_text(group.stratum)
        )
    names = [
        name + (f" in {len(own)} strata" if len(own) > 1 else min(own))
        for name, own in sorted(strata.items())
    ]
    if names:
        return f"; not compared: {', '.join(names)}"
    return ""


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Rates of each outcome (axis 0) in each group of one grouping and stratum, and the
    rows behind them.
    """

    rows: GroupedRows
    outcomes: Sequence[object]  # that are compared
    rates: Reals  # P(y | g), or P(g); NaN in groups without mass
    effective: EffectiveCounts
    are_shares: bool = False  # P(g) is compared
    # the rates of the second of two outcomes follow from those of the first
    is_two_sided: bool = False

    @classmethod
    def of_shares(cls, rows: GroupedRows) -> "GroupedTable":
        """Add up the weights of each group."""
        one = np.zeros_like(rows.group)
        sums = WeightSums.of(
            one, rows.group, rows.weights, (1, len(rows.labels)), rows.counted
        )
        shares = sums.weight / np.maximum(sums.weight.sum(), _TINY)
        rates = np.where(shares > 0, shares, np.nan)
        return cls(rows, [None], rates, sums.against_others(axis=-1), are_shares=True)

    @classmethod
    def of_outcomes(cls, rows: GroupedRows, favourable: object) -> "GroupedTable":
        """Add up the weights of each outcome in each group."""
        codes, outcomes = rows.levels
        sums = WeightSums.of(
            codes,
            rows.group,
            rows.weights,
            (len(outcomes), len(rows.labels)),
            rows.counted,
        )
        chosen = favourable_codes(outcomes, favourable)
        # an outcome that nobody compared has is left out, such as missing
        if favourable is None:
            chosen = [code for code in chosen if sums.weight[code].any()] or chosen
        rates = outcome_rates(sums.weight, (1,))
        effective = sums.against_others()
        names = [outcomes[code] for code in chosen]
        return cls(
            rows,
            names,
            rates[chosen],
            effective[chosen, :],
            is_two_sided=len(outcomes) == 2,
        )

    @classmethod
    def of_positives(
        cls, rows: GroupedRows, positive: Mask, outcome: object
    ) -> "GroupedTable":
        """Add up the weights of the rows that have an outcome, and of those that have
        not, in each group.
        """
        sums = WeightSums.of(
            1 - positive, rows.group, rows.weights, (2, len(rows.labels))
        )
        return cls(
            rows,
            [outcome],
            outcome_rates(sums.weight, (1,))[:1],
            sums.against_others()[[0], :],
        )

    @classmethod
    def of_means(
        cls, rows: GroupedRows, chance: Reals, outcome: object
    ) -> "GroupedTable":
        """Average the probabilities of an outcome in each group: they vary less than
        labels, so are worth more rows.
        """
        # The variance of the mean is linearised (Taylor), and widened like Student's t
        # because it is estimated.
        if ((chance == 0) | (chance == 1)).all():
            return cls.of_positives(rows, chance == 1, outcome)
        group = rows.group
        weight = rows.weights
        size = len(rows.labels)
        mass, positive = (tally(group, weight * value, size) for value in (1.0, chance))
        mean = positive / np.maximum(mass, np.finfo(float).tiny)
        squares, deviations = (
            tally(group, weight**2 * value, size)
            for value in (1.0, (chance - mean[group]) ** 2)
        )
        count = effective_rows(mass, squares)
        variance = deviations / np.maximum(mass, _TINY) ** 2
        freedom = count - 1
        widened = (
            variance
            * (count / np.maximum(freedom, 1e-9))
            * freedom
            / np.maximum(freedom - 2, 1e-9)
        )
        sizes = np.maximum(count, mean * (1 - mean) / np.maximum(widened, 1e-300))
        rates = outcome_rates(np.stack([positive, mass - positive]), (1,))[:1]
        return cls(
            rows,
            [outcome],
            rates,
            EffectiveCounts.of_rates(mean[np.newaxis], sizes[np.newaxis]),
        )

    @property
    def compared(self) -> int:
        """How many groups have a rate."""
        return int(np.count_nonzero(~np.isnan(self.rates[0])))

    def comparisons(self) -> Iterator[intervals.Compared]:
        """The groups that have a rate, for each outcome."""
        for number, row in enumerate(self.rates):
            repeats = number == 1 and self.is_two_sided
            counts = self.effective[number, ~np.isnan(row)]
            yield intervals.Compared(
                counts, are_shares=self.are_shares, repeats=repeats
            )

    def group_rates(self, confidence: float | None) -> Iterator[GroupRate]:
        """The groups with a rate, each with its interval unless the table is exact;
        with no confidence, the others.
        """
        exact = self.rows.exact
        if self.rows.counted is None:
            counted = None
        else:
            counted = self.rows.counted.rows
        counts = np.bincount(self.rows.group, counted, minlength=len(self.rows.labels))
        ends = None
        if not (exact or confidence is None):
            ends = intervals.share_interval(self.effective, confidence)
        for row, column in np.argwhere(
            np.isnan(self.rates) == (confidence is None)
        ).tolist():
            named = self.rows.columns, self.rows.labels[column], self.outcomes[row]
            count = None
            if not exact:
                count = int(counts[column])
            interval = None
            if ends is not None:
                interval = (float(ends[0][row, column]), float(ends[1][row, column]))
            yield GroupRate(
                *named,
                float(self.rates[row, column]),
                count,
                interval,
                self.rows.stratum,
            )


def worst_ratio(tables: Iterable[GroupedTable], confidence: float) -> Rate:
    """Take the worst pair over all groupings, strata and outcomes."""
    intervals.check_confidence(confidence)
    tables = [table for table in tables if table.compared or not table.rows.stratum]
    for table in tables:
        if not table.compared:
            names = " × ".join(map(repr, table.rows.columns))
            if table.are_shares:
                what = f"a group of {names}"
            else:
                what = f"both an outcome and a group of {names}"
            advice = "name other columns, or fill their gaps"
            raise LevelError(
                f"no row has {what}, so there is nothing to compare; {advice}"
            )
    alone = [table for table in tables if table.rows.stratum and table.compared < 2]
    tables = [table for table in tables if table not in alone]
    if not tables:
        what = (
            "no stratum has rows of more than one group, so there is nothing to"
            " compare; compare within other"
        )
        raise LevelError(f"{what} columns, or leave ", Option("within"), " out")
    ratios = [smallest_over_largest(table.rates) for table in tables]
    values = [float(np.nanmin(ratio)) for ratio in ratios]
    at = first_smallest(values)
    value = min(values)
    table = tables[at]
    outcome = first_smallest(ratios[at])
    lowest, highest = (
        table.rows.labels[find(table.rates[outcome])]
        for find in (first_smallest, first_largest)
    )
    interval = None
    if not table.rows.exact:
        comparisons = [compared for table in tables for compared in table.comparisons()]
        interval = intervals.widened(
            intervals.ratio_ends(comparisons, confidence), value
        )
    worst = Pair(
        table.rows.columns, table.outcomes[outcome], lowest, highest, table.rows.stratum
    )
    groups = tuple(group for table in tables for group in table.group_rates(confidence))
    without_rate = (group for table in tables for group in table.group_rates(None))
    without_others = (
        group for table in alone for group in table.group_rates(confidence)
    )
    return Rate(value, interval, worst, groups, (*without_rate, *without_others))


@dataclass(frozen=True)
class GroupCalibration:
    """One group: mean probability, share with the outcome and its interval, expected
    calibration error.
    """

    columns: tuple[str, ...]
    group: Label
    predicted: float
    observed: float
    count: int
    interval: intervals.Interval
    error: float
    by_chance: float

    @property
    def surplus(self) -> float:
        """The observed share minus the mean probability."""
        return self.observed - self.predicted


@dataclass(frozen=True)
class Calibration(Spoken):
    """The largest gap between two groups, with its interval, and the calibration of
    every group.

    `worst.lowest` is the group whose probabilities are too high compared with those of
    `worst.highest`.
    """

    gap: float
    interval: intervals.Interval
    worst: Pair
    groups: tuple[GroupCalibration, ...]

    @property
    def error(self) -> float:
        """The expected calibration error of the worst group."""
        return max(group.error for group in self.groups)

    def _words(self) -> str:
        worst = max(self.groups, key=lambda group: group.error)
        error = (
            f"error {worst.error:.3f} ({worst.by_chance:.3f} by chance alone) in"
            f" {group_text(worst.group)}"
        )
        return (
            f"gap {self.gap:.3f}{intervals.interval_text(self.interval)}: {self.worst};"
            f" {error}"
        )


def quantile_bins(score: Reals, weights: Reals, bins: int) -> Codes:
    """Bin of each row, so that all bins have about the same weight; equal scores share
    a bin, and bins may be empty.
    """
    order = np.argsort(score)
    cumulative = np.cumsum(weights[order])
    # bins must not hang on how weights add up
    wanted = cumulative[-1] * np.arange(1, bins) / bins * (1 - 1e-12)
    return np.searchsorted(score[order][np.searchsorted(cumulative, wanted)], score)


def calibrate(
    compared: Comparison, frame: Any, probabilities: Any, bins: int, confidence: float
) -> Calibration:
    """Compare probabilities with what happened, in each group that has weight."""
    intervals.check_confidence(confidence)
    if not isinstance(bins, int) or bins < 1:
        raise InputError(
            f"bins is {bins!r}; pass the number of bins, at least 1, e.g. 10"
        )
    rows = compared.open(frame)
    codes, outcomes = rows.levels
    code = rows.one_favourable(compared.favourable)
    chance = rows.probabilities(probabilities, what="probabilities")
    scored = codes == code, chance, quantile_bins(chance, rows.weights, bins)
    groupings = [
        _calibrated(*scored, compared.group(rows, columns), confidence)
        for columns in compared.groupings
    ]
    by_surplus = attrgetter("surplus")
    extremes = [
        (min(found, key=by_surplus), max(found, key=by_surplus))
        for found, _ in groupings
    ]
    lowest, highest = max(extremes, key=lambda pair: pair[1].surplus - pair[0].surplus)
    gap = highest.surplus - lowest.surplus
    ends = intervals.difference_ends(
        [surpluses for _, surpluses in groupings], confidence
    )
    worst = Pair(lowest.columns, outcomes[code], lowest.group, highest.group)
    groups = tuple(group for found, _ in groupings for group in found)
    return Calibration(gap, intervals.widened(ends, gap), worst, groups)


def _calibrated(
    positive: Mask, chance: Reals, bin_of: Codes, rows: GroupedRows, confidence: float
) -> tuple[list[GroupCalibration], intervals.Compared]:
    """The calibration of every group that has weight, and their surpluses as they are
    compared.
    """
    sums = WeightSums.of(1 - positive, rows.group, rows.weights, (2, len(rows.labels)))
    counts = sums.against_others()[0, :]
    low, high = intervals.share_interval(counts, confidence)
    groups = []
    scored = {}
    for number in np.flatnonzero(sums.weight.sum(axis=0)):
        own = rows.group == number
        weights = rows.weights[own]
        bins = bin_of[own]
        scored[number] = happened, promised, _ = positive[own], chance[own], weights
        mass = float(weights.sum())
        surpluses = tally(bins, weights * (happened - promised), 0)
        # If the probabilities were exact, a bin's surplus would be nearly normal, and
        # E|x| = σ·√(2/π).
        variance = tally(bins, weights**2 * promised * (1 - promised), 0)
        predicted, observed = (
            float(weights @ part) / mass for part in (promised, happened)
        )
        error, by_chance = (
            float(part.sum()) / mass
            for part in (np.abs(surpluses), np.sqrt(variance * 2 / np.pi))
        )
        found = (
            predicted,
            observed,
            len(weights),
            (float(low[number]), float(high[number])),
            error,
            by_chance,
        )
        groups.append(GroupCalibration(rows.columns, rows.labels[number], *found))
    return groups, compared_surpluses(counts[list(scored)], list(scored.values()))


def compared_surpluses(
    counts: EffectiveCounts, rows: Sequence[ScoredRows]
) -> intervals.Compared:
    """The surpluses of groups as they are compared, given the effective counts of the
    outcome and the rows of each.
    """
    # If the probabilities predict the outcome, the surplus varies less than the
    # observed share: counts become larger. If they vary for no reason, it varies more:
    # this is added. Variances are linearised (Taylor).
    both = [_variances(counts[..., group], *part) for group, part in enumerate(rows)]
    factors, added = (np.stack(part, axis=-1) for part in zip(*both, strict=True))
    expected = np.stack(
        [weighted_mean(chance, weights) for _, chance, weights in rows], axis=-1
    )
    more = EffectiveCounts(
        counts.positives * factors, counts.negatives * factors, counts.weight_ratio
    )
    return intervals.Compared(more, expected=expected, added=added)


def _variances(
    counts: EffectiveCounts, positive: Mask, chance: Reals, weights: Reals
) -> tuple[Reals, Reals]:
    """How many times as many rows the probabilities are worth, and the variance that
    they add.
    """
    # Linearised variance Σw²(x − x̄)² / (Σw)² of a weighted mean x̄.
    deviations = (
        weights * (x - weighted_mean(x, weights)[..., np.newaxis])
        for x in (positive - chance, positive)
    )
    surplus, share = (
        (part**2).sum(axis=-1) / weights.sum(axis=-1) ** 2 for part in deviations
    )
    half_a_row_more = EffectiveCounts(
        counts.positives + 0.5, counts.negatives + 0.5, counts.weight_ratio
    )
    reference = (
        half_a_row_more.rates * (1 - half_a_row_more.rates) / half_a_row_more.sizes
    )
    # At least what exact probabilities would leave, in case few rows happen to agree.
    mean = weighted_mean(chance, weights)
    unexplained = (chance * (1 - chance)).mean(axis=-1) / np.maximum(
        mean * (1 - mean), 1e-300
    )
    left = np.clip(
        (reference + surplus - share) / reference, np.clip(unexplained, 1e-9, 1.0), 1.0
    )
    freedom = effective_rows(weights.sum(axis=-1), (weights**2).sum(axis=-1)) - 1
    # like Student's t, because the variance is estimated
    wider = (freedom + 1) / np.maximum(freedom - 2, 0.5)
    return 1 / left, np.maximum(surplus - share, 0.0) * wider


def weighted_mean(values: Reals | Mask, weights: Reals) -> Reals:
    """Weighted mean of rows along the last axis."""
    return np.asarray((weights * values).sum(axis=-1) / weights.sum(axis=-1))
