"""Rates before and after, side by side, computed by the same functions as in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairmaxent.cli.text import text_table
from fairmaxent.data.arrays import Reals
from fairmaxent.fairness.measure import Rates
from fairmaxent.fairness.rates import group_shares, outcome_rates
from fairmaxent.fit.fit import Fit
from fairmaxent.report.delivered import absences, data_table, delivered_rates, known_groups

Line = tuple[tuple[str, str], float | None]


@dataclass(frozen=True)
class Measured:
    """Both rates of each grouping, each group's rates, and which groups and outcomes have no row."""

    rates: Rates
    groups: Mapping[tuple[str, str], float | None]  # by group and by what is measured
    absences: tuple[str, ...]


def measure_data(fit: Fit) -> Measured:
    """Take the rates of the rows that were fitted."""
    return Measured(fit.certificate.before, dict(_groups(fit, data_table(fit))), ())


def measure(fit: Fit, table: Reals) -> Measured:
    """Take the rates of a table of outcome and protected columns, whose cells sum to one."""
    return Measured(delivered_rates(fit, table), dict(_groups(fit, table)), tuple(absences(fit, table)))


def _groups(fit: Fit, table: Reals) -> Iterator[Line]:
    """Each group's rate of each favourable outcome; None where it has no row."""
    outcome = fit.roles.attributes[0]
    for axes in fit.certificate.measure.groupings:
        rates = outcome_rates(table, axes)
        for level in fit.certificate.measure.favourable:
            for group, name in _names(fit, table, axes):
                rate = float(rates[level][group])
                yield (name, f"{outcome.name} = {outcome.labels[level]}"), None if np.isnan(rate) else rate


def _names(fit: Fit, table: Reals, axes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The groups that the table or the fitted distribution has, by their levels and by name."""
    for cell in np.argwhere(known_groups(fit, axes) | (group_shares(table, axes) > 0)):
        group = tuple(int(level) for level in cell)
        yield group, fit.roles.describe_group(axes, group)


def rates_table(wanted: Mapping[str, Mapping[str, float | None]], before: Measured, after: Measured) -> str:
    """The rates wanted, before and after."""
    rows = [
        [
            f"{kind.replace('_', ' ')} of {name}",
            "any" if rate is None else f"{rate:.4f}",
            before.rates[kind][name],
            after.rates[kind][name],
        ]
        for kind, names in wanted.items()
        for name, rate in names.items()
    ]
    return text_table(["", "wanted", "before", "after"], rows)


def groups_table(before: Measured, after: Measured) -> str:
    """Each group's rates, before and after."""
    rows = [[*key, before.groups.get(key), after.groups.get(key)] for key in {**before.groups, **after.groups}]
    return text_table(["group", "", "before", "after"], rows)
