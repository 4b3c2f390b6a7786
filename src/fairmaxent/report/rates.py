"""What was reached: each rate as wanted, in the data, fitted and delivered; who counts more, and who less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.fairness.rates import (
    WorstPair,
    group_shares,
    outcome_axis,
    outcome_rates,
    representation_pair,
    statistical_pair,
)
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.group_changes import group_changes, group_label
from fairmaxent.fit.option_values import read_target
from fairmaxent.report.delivered import Delivered, data_table, delivered_rates

EACH = ("each level of ", "each of ")  # how the words for several outcomes begin
_OUTCOMES = 3  # outcome levels named before the rest is counted


def outcomes_compared(fit: Fit) -> str:
    """Name the outcomes that the statistical rates compare: one, several, or each level; of each outcome column."""
    measure = fit.certificate.measure
    count = len(measure.of_first_outcome)
    return " and ".join(levels_compared(fit, axes) for axes in measure.groupings[::count])


def levels_compared(fit: Fit, axes: tuple[int, ...]) -> str:
    """Name the levels of the outcome that the rate of a grouping compares."""
    outcome, levels = fit.roles.attributes[outcome_axis(axes)], fit.certificate.measure.favourable_of(axes)
    if len(levels) == outcome.size - (outcome.missing is not None and outcome.missing not in levels) > 1:
        return f"{EACH[0]}{outcome.name}"
    shown = ", ".join(f"{outcome.name} = {outcome.labels[level]}" for level in levels[:_OUTCOMES])
    if len(levels) == 1:
        return shown
    return f"{EACH[1]}{shown}{'' if len(levels) <= _OUTCOMES else f' and {len(levels) - _OUTCOMES} more levels'}"


# Solvers stop a little short of an exact rate.
_SLACK = 1e-6
_SMALL_GAP = 0.005  # at which two digits of a rate are still as wanted


@dataclass(frozen=True)
class Reached:
    """One rate of one grouping. `achieved` is exact, `delivered` is measured on what was delivered.

    `met` takes both into account; the same number of independent draws falls into `interval` 95 % of the time.
    """

    kind: str
    grouping: str
    outcome: str | None  # the outcomes that a statistical rate compares, in words
    wanted: float | None
    from_target: bool  # what is wanted follows from shares that the user named
    before: float
    achieved: float
    delivered: float | None  # None: there is nothing to compare
    interval: tuple[float, float] | None  # None: no rows were drawn
    worst_before: str
    met_exactly: bool | None  # by the fitted distribution; None: nothing was asked for
    met: bool | None  # by it, and by what was delivered
    gap: float | None  # how far what was delivered falls short, of named shares the largest error; None: not known
    rounded: bool  # whole rows are as close to the fitted distribution as these, so a gap is one of rounding
    costly: bool  # a group of this grouping rests on too few people, or one of them counts too often

    @property
    def nearly_met(self) -> bool:
        """Whether only rounding to whole rows keeps what was delivered from the wanted rate, and by very little."""
        small = self.gap is not None and self.gap < _SMALL_GAP
        return bool(self.met_exactly) and self.met is False and self.rounded and small


def reached(fit: Fit, delivered: Delivered) -> tuple[Reached, ...]:
    """Compare the rates."""
    certificate, measure = fit.certificate, fit.certificate.measure
    rates = delivered_rates(fit, delivered.table)
    intervals = certificate.interval(delivered.rows, iid=True) if delivered.mode == "rows" else None
    before = data_table(fit)
    groups = () if certificate.costs is None else certificate.costs.groups
    costly = {group.grouping for group in groups if group.beyond_line}
    rounded = _is_rounded(fit, delivered)
    rates_reached = []
    for kind, names in certificate.wanted.items():
        for (name, wanted), axes in zip(names.items(), measure.groupings, strict=True):
            if kind == "representation_rate" and outcome_axis(axes):  # the groups are those of the first outcome
                continue
            achieved, rate = _number(certificate.achieved[kind][name]), rates[kind][name]
            shares = _target_shares(fit, axes) if kind == "representation_rate" else None
            exactly, as_delivered = _met(wanted, achieved), _met(wanted, rate)
            gap = None if wanted is None or rate is None else wanted - rate
            if shares is not None:
                gap = _largest_error(shares, delivered.table, axes)
                exactly, as_delivered = (_has(shares, table, axes) for table in (certificate.table, delivered.table))
            rates_reached.append(
                Reached(
                    kind=kind,
                    grouping=measure.groups_of(name),
                    outcome=levels_compared(fit, axes) if kind == "statistical_rate" else None,
                    wanted=wanted,
                    from_target=shares is not None,
                    before=_number(certificate.before[kind][name]),
                    achieved=achieved,
                    delivered=rate,
                    interval=None if intervals is None else intervals[kind][name],
                    worst_before=_worst(fit, kind, axes, before),
                    met_exactly=exactly,
                    met=exactly and as_delivered,
                    gap=0.0 if as_delivered else gap,
                    rounded=rounded,
                    costly=name in costly,
                )
            )
    return tuple(rates_reached)


def is_targeted(fit: Fit, axes: tuple[int, ...]) -> bool:
    """Whether the user named the shares of a grouping's only column."""
    return len(axes) == 1 and fit.roles.names[axes[0]] in (fit.request.target or {})


def _target_shares(fit: Fit, axes: tuple[int, ...]) -> Reals | None:
    """The shares that the user named for a grouping; a column kept as it is has those of the data."""
    if not is_targeted(fit, axes):
        return None
    name, index = fit.roles.names[axes[0]], fit.roles.root[axes[0]]
    named = read_target(fit.roles, {name: (fit.request.target or {})[name]})[index]
    return group_shares(data_table(fit), axes) if named is None else named


def _has(shares: Reals, table: Reals, axes: tuple[int, ...]) -> bool:
    return _largest_error(shares, table, axes) <= _SLACK


def _largest_error(shares: Reals, table: Reals, axes: tuple[int, ...]) -> float:
    return float(np.abs(group_shares(table, axes) - shares).max())


def _is_rounded(fit: Fit, delivered: Delivered) -> bool:
    """Whether every combination of outcome and groups has its fair number of rows, up to one."""
    rows = delivered.rows + (fit.table.size if delivered.mode == "top-up" else 0)
    return delivered.mode != "weights" and bool(np.abs(delivered.table - fit.certificate.table).max() * rows < 1)


def _met(wanted: float | None, rate: float | None) -> bool | None:
    return None if wanted is None else rate is not None and rate >= wanted - _SLACK


def _worst(fit: Fit, kind: str, axes: tuple[int, ...], table: Reals) -> str:
    """Name the lowest and the highest group in the data."""
    measure = fit.certificate.measure
    if kind == "representation_rate":
        pair = representation_pair(measure.groups_compared(table, axes), axes, strata=measure.strata)
    else:
        compared = measure.outcomes_compared(table, axes)
        pair = statistical_pair(compared, axes, measure.favourable_of(axes), strata=measure.strata)
    lowest, highest = (group_label(fit, axes, group) for group in (pair.lowest, pair.highest))
    return f"{lowest} against {highest}{_about(fit, axes, pair)}"


def _about(fit: Fit, axes: tuple[int, ...], pair: WorstPair) -> str:
    outcome = fit.roles.attributes[outcome_axis(axes)]
    return "" if pair.outcome is None else f", {outcome.name} = {outcome.labels[pair.outcome]}"


def _number(rate: float | None) -> float:
    """Rates of a table always have a value; only wanted ones may be None."""
    return float("nan") if rate is None else rate


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
