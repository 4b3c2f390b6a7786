"""Rates before and after, side by side, computed by the same functions as in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.document import Table
from fairmaxent.fairness.rates import Rates, group_shares, outcome_axis, outcome_rates, worst_ratio
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.statements import RateLine, rate_text, rates_table
from fairmaxent.report.delivered import absences, data_table, delivered_rates, known_groups

Line = tuple[tuple[str, str], float | None]
_FEW_LEVELS = 3  # outcomes that each have a line of their own


@dataclass(frozen=True)
class Measured:
    """Both rates of each grouping, each group's rates, and which groups and outcomes have no row."""

    rates: Rates
    levels: Mapping[str, Mapping[str, float | None]]  # the statistical rate of each favourable outcome, by grouping
    groups: Mapping[tuple[str, str], float | None]  # by group and by what is measured
    absences: tuple[str, ...]


def measure_data(fit: Fit) -> Measured:
    """Take the rates of the rows that were fitted."""
    table = data_table(fit)
    return Measured(fit.certificate.before, _levels(fit, table), dict(_groups(fit, table)), ())


def measure(fit: Fit, table: Reals) -> Measured:
    """Take the rates of a table of outcome and protected columns, whose cells sum to one."""
    rates, groups = delivered_rates(fit, table), dict(_groups(fit, table))
    return Measured(rates, _levels(fit, table), groups, tuple(absences(fit, table)))


def about(fit: Fit, level: int, axes: tuple[int, ...] = ()) -> str:
    """Name an outcome that rates are about; of several columns, the one that a grouping is about."""
    outcome = fit.roles.attributes[outcome_axis(axes)]
    return f"{outcome.name} = {outcome.labels[level]}"


def _levels(fit: Fit, table: Reals) -> dict[str, dict[str, float | None]]:
    """The statistical rate of each favourable outcome by itself."""
    measure = fit.certificate.measure
    named = list(zip(measure.names, measure.groupings, strict=True))
    return {
        name: {
            about(fit, level, axes): _ratio(measure.outcomes_compared(table, axes), axes, level, measure.strata)
            for level in measure.favourable_of(axes)
        }
        for name, axes in named
    }


def _ratio(table: Reals, axes: tuple[int, ...], level: int, strata: int) -> float | None:
    ratio = worst_ratio(outcome_rates(table, axes)[level], strata, if_all_zero=np.nan)
    return None if np.isnan(ratio) else ratio


def _groups(fit: Fit, table: Reals) -> Iterator[Line]:
    """Each group's rate of each favourable outcome; None where it has no row."""
    for axes in fit.certificate.measure.groupings:
        rates = outcome_rates(fit.certificate.measure.with_outcome(table, axes), axes)
        for level in fit.certificate.measure.favourable_of(axes):
            for group, name in _names(fit, table, axes):
                rate = float(rates[level][group])
                yield (name, about(fit, level, axes)), None if np.isnan(rate) else rate


def _names(fit: Fit, table: Reals, axes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The groups that the table or the fitted distribution has, by their levels and by name."""
    for cell in np.argwhere(known_groups(fit, axes) | (group_shares(table, axes) > 0)):
        group = tuple(int(level) for level in cell)
        yield group, fit.roles.describe_group(axes, group)


def rates(certificate: Certificate, before: Measured, after: Measured) -> Table:
    """The rates wanted, before and after; each statistical rate with the outcome that it is about."""
    lines = [
        RateLine(label, certificate.wanted[kind][name], old, new)
        for kind, name in certificate.rates_shown
        for label, old, new in _lines(certificate.measure.rate_name(kind, name), kind, name, before, after)
    ]
    return rates_table(lines, ("wanted", "before", "after"))


def _lines(
    what: str, kind: str, name: str, before: Measured, after: Measured
) -> Iterator[tuple[str, float | None, float | None]]:
    """One rate of a grouping; a line for each of a few outcomes, so that no rate is about nobody knows what."""
    levels = before.levels[name]
    worst = before.rates[kind][name], after.rates[kind][name]
    if kind == "representation_rate":
        yield what, *worst
    elif len(levels) == 1:
        yield f"{what}, {next(iter(levels))}", *worst
    elif len(levels) > _FEW_LEVELS:
        yield f"{what}, worst of {len(levels)} outcomes", *worst
    else:
        for level, rate in levels.items():
            yield f"{what}, {level}", rate, after.levels[name][level]


def groups(before: Measured, after: Measured) -> Table:
    """Each group's rates, before and after."""
    rows = tuple(
        (*key, rate_text(before.groups.get(key)), rate_text(after.groups.get(key)))
        for key in {**before.groups, **after.groups}
    )
    return Table("Groups", ("group", "", "before", "after"), rows)
