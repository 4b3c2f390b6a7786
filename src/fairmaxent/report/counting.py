"""Who counts more and who counts less: cells of outcome and groups, by their share of the data and of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.fairness.rates import outcome_rates
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.group_changes import group_changes, group_label
from fairmaxent.report.delivered import data_table


@dataclass(frozen=True)
class CellCount:
    """A combination of outcome and groups: how many times its share of the data it has of what was delivered."""

    name: str
    times: float


@dataclass(frozen=True)
class GroupOutcome:
    """How often a group has the favourable outcome; None if it has no rows."""

    group: str
    before: float | None
    after: float | None  # of what was delivered
    interval: tuple[float, float] | None  # 95 % interval of the rate where the data come from; None: not compared


@dataclass(frozen=True)
class Counting:
    """The cells that count most and least, and the favourable outcome in each group."""

    most: CellCount | None  # None: there is none with rows
    least: CellCount | None
    outcomes: tuple[GroupOutcome, ...]  # none if several outcomes are compared


def counting(fit: Fit, table: Reals) -> Counting:
    """Compare the data with the table of what was delivered."""
    before = data_table(fit)
    cells = [cell for cell in np.ndindex(before.shape) if before[cell] > 0]
    # Rounded, so that ties stay in the order of the cells whatever the last bit says.
    counted = [CellCount(fit.roles.describe_cell(cell), round(float(table[cell] / before[cell]), 12)) for cell in cells]
    return Counting(
        most=max(counted, key=lambda cell: cell.times, default=None),
        least=min(counted, key=lambda cell: cell.times, default=None),
        outcomes=tuple(_outcomes(fit, before, table)),
    )


def _outcomes(fit: Fit, before: Reals, after: Reals) -> Iterator[GroupOutcome]:
    measure = fit.certificate.measure
    if len(measure.favourable) != 1 or measure.others:
        return
    intervals = {
        (change.column, change.group): (change.rate_before_low, change.rate_before_high)
        for change in group_changes(fit)
        if not np.isnan(change.rate_before_low)
    }
    for axes, name in zip(measure.groupings, measure.names, strict=True):
        old, new = (
            outcome_rates(measure.with_outcome(table, axes), axes)[measure.favourable[0]] for table in (before, after)
        )
        for group in np.ndindex(old.shape):
            yield GroupOutcome(
                fit.roles.describe_group(axes, group),
                _known(old[group]),
                _known(new[group]),
                intervals.get((name, group_label(fit, axes, group))),
            )


def _known(rate: float) -> float | None:
    return None if np.isnan(rate) else float(rate)
