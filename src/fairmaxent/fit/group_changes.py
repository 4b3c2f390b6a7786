"""Group changes: each group's share and its rate of each compared outcome, in the data and in the fair distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.table import Reals, Summed
from fairmaxent.fairness.rates import Grouping, group_shares, group_table, outcome_axis, outcome_rates
from fairmaxent.fit.learned import Learned
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.intervals import check_confidence, share_interval

_KINDS: dict[str, Any] = {"str": nw.String, "int": nw.Int64, "float": nw.Float64}


@dataclass(frozen=True)
class GroupChange:
    """One group and one outcome; a number that does not exist is NaN, e.g. the rate of a group without rows."""

    column: str  # the grouping: a protected column, or several if their intersections are compared
    group: str
    outcome: str
    rows: int  # of the group, in the data
    share_before: float
    share_after: float
    weight_factor: float  # share after over share before: how much the average row of the group counts
    rate_before: float
    rate_before_low: float  # the interval of the rate in the data; NaN if the group is not compared
    rate_before_high: float
    rate_after: float


def group_changes(fit: Learned, *, confidence: float = 0.95) -> tuple[GroupChange, ...]:
    """Compare every group that the data or the fair distribution has, for each outcome that is compared."""
    check_confidence(confidence)
    sums: tuple[Summed, ...] = ("counts", "squares", "rows")
    blocks = fit.roles.blocks
    tables = [fit.table.tables([(0,)], blocks.levels, of=of)[0].reshape(blocks.shape(0)) for of in sums]
    groupings = zip(fit.certificate.measure.groupings, fit.certificate.measure.names, strict=True)
    return tuple(
        change for axes, name in groupings for change in _GroupingChanges(fit, tables, axes, name, confidence).each()
    )


def summary_frame(fit: Learned, changes: tuple[GroupChange, ...]) -> Any:
    """The changes as a frame of the library that the data came in, one row each."""
    like = fit.domain.attributes[0].values
    columns = {}
    for name, kind in GroupChange.__annotations__.items():
        values = [getattr(change, name) for change in changes]
        columns[name] = nw.new_series(name, values, _KINDS[kind], backend=like.implementation)
        if kind == "float":
            columns[name] = columns[name].fill_nan(None)
    return frames.build(columns)


@dataclass(frozen=True, eq=False)
class _GroupingChanges:
    """The groups of one grouping; each table has an axis for the outcome and one for each protected column."""

    fit: Learned
    tables: list[Reals]  # weights, squared weights and numbers of rows in the data
    axes: Grouping
    name: str
    confidence: float

    def each(self) -> Iterator[GroupChange]:
        fit, axes = self.fit, self.axes
        fair = fit.certificate.table
        before, after = group_shares(self.tables[0], axes), group_shares(fair, axes)
        measure = fit.certificate.measure
        rates, fair_rates = (outcome_rates(measure.with_outcome(table, axes), axes) for table in (self.tables[0], fair))
        people = group_table(self.tables[2], axes).sum(axis=0)
        outcome, (low, high) = fit.roles.attributes[outcome_axis(axes)], self._intervals()
        for group in map(tuple, np.argwhere((people > 0) | (after > 0))):
            for level in measure.favourable_of(axes):
                yield GroupChange(
                    column=self.name,
                    group=group_label(fit, axes, group),
                    outcome=outcome.labels[level],
                    rows=int(people[group]),
                    share_before=float(before[group]),
                    share_after=float(after[group]),
                    weight_factor=float(after[group] / before[group]) if before[group] > 0 else np.nan,
                    rate_before=float(rates[level][group]),
                    rate_before_low=float(low[level][group]),
                    rate_before_high=float(high[level][group]),
                    rate_after=float(fair_rates[level][group]),
                )

    def _intervals(self) -> tuple[Reals, Reals]:
        """Ends of the interval of each rate in the data, by outcome and group; NaN for groups that are not compared.

        A private fit has none: the noise in its counts is not part of such intervals.
        """
        measure = self.fit.certificate.measure
        compared = [group_table(measure.outcomes_compared(table, self.axes), self.axes) for table in self.tables]
        shape = compared[0].shape
        weight, squares, rows = (table.reshape(len(table), -1) for table in compared)
        counts = WeightSums(weight, squares, np.where(weight > 0, rows, 0.0)).outcomes_against_others()
        known = weight.sum(axis=0) > 0
        ends = np.full((2, *weight.shape), np.nan)
        if self.fit.certificate.privacy is None:  # otherwise noise would make it far too short
            ends[:, :, known] = share_interval(counts[:, known], self.confidence)
        low, high = ends.reshape(2, *shape)
        return low, high


def group_label(fit: Learned, axes: Grouping, group: tuple[int, ...]) -> str:
    """Name a group of a grouping by its levels."""
    attributes = [fit.roles.attributes[axis] for axis in axes]
    return " × ".join(attribute.labels[level] for attribute, level in zip(attributes, group, strict=True))
