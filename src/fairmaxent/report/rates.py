"""What was asked for and reached: each rate in the data, fitted and delivered; who
counts more, and who less.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.fairness.rates import (
    group_shares,
    group_table,
    outcome_axis,
    representation_pair,
    statistical_pair,
)
from fairmaxent.fit.fitted import Fitted
from fairmaxent.fit.groups import group_label
from fairmaxent.fit.option_values import read_target
from fairmaxent.fit.statements import REACHED
from fairmaxent.report.delivered import Delivered, delivered_rates

_EACH = ("each level of ", "each of ")  # how the words for several outcomes begin
_OUTCOMES = 3  # outcome levels named before the rest is counted
_SMALL_GAP = 0.005  # at which two digits of a rate are still as wanted


def outcomes_compared(fit: Fitted) -> str:
    """Name the outcomes that the statistical rates compare: one, several, or each
    level; of each outcome column.
    """
    measure = fit.certificate.measure
    return " and ".join(
        _levels_compared(fit, axes)
        for axes in measure.groupings[:: len(measure.of_first_outcome)]
    )


def _levels_compared(fit: Fitted, axes: tuple[int, ...]) -> str:
    """Name the levels of the outcome that the rate of a grouping compares."""
    outcome = fit.roles.attributes[outcome_axis(axes)]
    levels = fit.certificate.measure.favourable_of(axes)
    if (
        len(levels)
        == outcome.size
        - (outcome.missing is not None and outcome.missing not in levels)
        > 1
    ):
        return f"{_EACH[0]}{outcome.name}"
    shown = ", ".join(
        f"{outcome.name} = {outcome.labels[level]}" for level in levels[:_OUTCOMES]
    )
    if len(levels) == 1:
        return shown
    return f"{_EACH[1]}{shown}{'' if len(levels) <= _OUTCOMES else f' and {len(levels) - _OUTCOMES} more levels'}"


def wishes(fit: Fitted) -> Iterator[str]:
    """What was asked for, one sentence each."""
    measure = fit.certificate.measure
    certificate = fit.certificate
    axes_of = dict(zip(measure.names, measure.groupings, strict=True))
    for kind, name in certificate.rates_shown:
        rate = certificate.wanted[kind][name]
        axes = axes_of[name]
        groups = measure.groups_of(name)
        if rate is None or (
            kind == "representation_rate" and _target_shares(fit, axes) is not None
        ):
            continue
        if kind == "representation_rate":
            least = (
                f"The smallest group of {groups} is at least {rate:.3g} times as large"
                " as the largest."
            )
            yield f"All groups of {groups} have the same size." if rate == 1 else least
        else:
            outcomes = _levels_compared(fit, axes)
            # A sentence begins with a capital letter, but the name of a column stays as
            # it is.
            if outcomes.startswith(_EACH):
                outcomes = f"E{outcomes[1:]}"
            least = (
                f"is at least {rate:.3g} times as common in each group of {groups} as"
                " in any other."
            )
            yield (
                f"{outcomes}"
                f" {f'is equally common in all groups of {groups}.' if rate == 1 else least}"
            )
    yield from fit.request.words()


@dataclass(frozen=True)
class Reached:
    """One rate of one grouping; the same number of independent draws falls into
    `interval` 95 % of the time.
    """

    kind: str
    grouping: str
    outcome: str | None  # the outcomes that a statistical rate compares, in words
    wanted: float | None
    from_target: bool  # what is wanted follows from shares that the user named
    before: float
    achieved: float  # exactly, by the fitted distribution
    # measured on what was delivered; None: there is nothing to compare
    delivered: float | None
    interval: tuple[float, float] | None  # None: no rows were drawn
    worst_before: str
    met_exactly: bool | None  # by the fitted distribution; None: nothing was asked for
    met: bool | None  # by it, and by what was delivered
    # how far what was delivered falls short, of named shares the largest error; None:
    # not known
    gap: float | None
    # each group is within one row of the fitted distribution, so a gap is one of
    # rounding
    rounded: bool
    # a group of this grouping rests on too few people, or one of them counts too often
    costly: bool

    @property
    def nearly_met(self) -> bool:
        """Whether only rounding to whole rows keeps what was delivered from the wanted
        rate, and by very little.
        """
        small = self.gap is not None and self.gap < _SMALL_GAP
        return bool(self.met_exactly) and self.met is False and self.rounded and small

    @property
    def wanted_text(self) -> str:
        """What was asked for, as it is shown."""
        if self.wanted is None:
            return "any"
        return f"{self.wanted:.4f}{' (target)' if self.from_target else ''}"


def reached(fit: Fitted, delivered: Delivered) -> Iterator[Reached]:
    """Compare the rates."""
    measure = fit.certificate.measure
    certificate = fit.certificate
    rates = delivered_rates(fit, delivered.table)
    intervals = None
    if delivered.mode == "rows":
        intervals = certificate.interval(delivered.rows, iid=True)
    before = fit.problem.data_table
    if certificate.costs is None:
        groups = ()
    else:
        groups = certificate.costs.groups
    costly = {group.grouping for group in groups if group.beyond_line}
    rows = delivered.rows + (fit.table.size if delivered.mode == "top-up" else 0)
    axes_of = dict(zip(measure.names, measure.groupings, strict=True))
    for kind, name in certificate.rates_shown:
        axes = axes_of[name]
        wanted = certificate.wanted[kind][name]
        rate = rates[kind][name]
        # only wanted rates may be None
        achieved = certificate.achieved[kind][name] or 0.0
        shares = None
        if kind == "representation_rate":
            shares = _target_shares(fit, axes)
        if shares is None:
            met = [
                wanted is not None and value is not None and value >= wanted - REACHED
                for value in (achieved, rate)
            ]
            gap = None
            if not (wanted is None or rate is None):
                gap = wanted - rate
        else:
            tables = (certificate.table, delivered.table)
            errors = [
                float(np.abs(group_shares(table, axes) - shares).max())
                for table in tables
            ]
            met = [error <= REACHED for error in errors]
            gap = errors[1]
        asked = wanted is not None or shares is not None
        # Whether every group of this grouping has its fair number of rows, up to one,
        # also with each outcome.
        off = group_table(delivered.table - certificate.table, axes) * rows
        rounded = bool((np.abs(off) < 1).all() and (np.abs(off.sum(axis=0)) < 1).all())
        yield Reached(
            kind=kind,
            grouping=measure.groups_of(name),
            outcome=_levels_compared(fit, axes) if kind == "statistical_rate" else None,
            wanted=wanted,
            from_target=shares is not None,
            before=certificate.before[kind][name] or 0.0,
            achieved=achieved,
            delivered=rate,
            interval=None if intervals is None else intervals[kind][name],
            worst_before=_worst(fit, kind, axes, before),
            met_exactly=met[0] if asked else None,
            met=all(met) if asked else None,
            gap=0.0 if met[1] else gap,
            rounded=delivered.mode != "weights" and rounded,
            costly=name in costly,
        )


def _target_shares(fit: Fitted, axes: tuple[int, ...]) -> Reals | None:
    """The shares that the user named for a grouping's only column, if any; one kept as
    it is has those of the data.
    """
    name = fit.roles.names[axes[0]]
    targets = fit.request.target or {}
    if len(axes) > 1 or name not in targets:
        return None
    named = read_target(fit.roles, {name: targets[name]})[fit.roles.root[axes[0]]]
    if named is None:
        return group_shares(fit.problem.data_table, axes)
    return named


def _worst(fit: Fitted, kind: str, axes: tuple[int, ...], table: Reals) -> str:
    """Name the lowest and the highest group in the data."""
    measure = fit.certificate.measure
    outcome = fit.roles.attributes[outcome_axis(axes)]
    if kind == "representation_rate":
        pair = representation_pair(
            measure.groups_compared(table, axes), axes, strata=measure.strata
        )
    else:
        compared = measure.outcomes_compared(table, axes)
        pair = statistical_pair(
            compared, axes, measure.favourable_of(axes), strata=measure.strata
        )
    lowest, highest = (
        group_label(fit, axes, group) for group in (pair.lowest, pair.highest)
    )
    if pair.outcome is None:
        about = ""
    else:
        about = f", {outcome.name} = {outcome.labels[pair.outcome]}"
    return f"{lowest} against {highest}{about}"


@dataclass(frozen=True)
class CellCount:
    """A combination of outcome and groups: how many times its share of the data it has
    of what was delivered.
    """

    name: str
    times: float


Counting = dict[str, CellCount]


def counting(fit: Fitted, table: Reals) -> Counting:
    """The cells that count most and least, by a comparison of the data with the table
    of what was delivered.
    """
    before = fit.problem.data_table
    cells = [cell for cell in np.ndindex(before.shape) if before[cell] > 0]
    # Rounded, so that ties stay in the order of the cells whatever the last bit says.
    counted = [
        CellCount(
            fit.roles.describe_cell(cell), round(float(table[cell] / before[cell]), 12)
        )
        for cell in cells
    ]
    return {
        name: end(counted, key=lambda cell: cell.times)
        for name, end in (("most", max), ("least", min))
    }
