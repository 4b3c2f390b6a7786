"""What was reached: each rate as wanted, in the data, in the fitted distribution, and in what was delivered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.fairness.rates import WorstPair, group_shares, outcome_axis, representation_pair, statistical_pair
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.group_changes import group_label
from fairmaxent.fit.target import read_target
from fairmaxent.report.compared_outcomes import levels_compared
from fairmaxent.report.delivered import Delivered, data_table, delivered_rates

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
