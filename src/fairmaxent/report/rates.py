"""What was asked for and reached."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.fairness.rates import (
    Grouping,
    group_shares,
    group_table,
    outcome_axis,
    statistical_pair,
    worst_pair,
)
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import group_label
from fairmaxent.fit.option_values import read_target
from fairmaxent.fit.statements import REACHED
from fairmaxent.metrics.intervals import Interval
from fairmaxent.report.delivered import Delivered, delivered_rates

# how the words for several outcomes begin
_EACH_LEVEL = "each level of "
_EACH_OF = "each of "
_OUTCOMES = 3  # outcome levels named before the rest is counted
_SMALL_GAP = 0.005  # at which two digits of a rate are still as wanted


def outcomes_compared(fit: Certified) -> str:
    """Name the levels that the statistical rates compare, of each outcome column."""
    measure = fit.certificate.measure
    return " and ".join(
        _levels_compared(fit, axes)
        for axes in measure.groupings[:: len(measure.of_first_outcome)]
    )


def _levels_compared(fit: Certified, axes: Grouping) -> str:
    """Name the levels of the outcome that the rate of a grouping compares."""
    outcome = fit.roles.attributes[outcome_axis(axes)]
    levels = fit.certificate.measure.favourable_of(axes)
    possible = set(range(outcome.size)) - {outcome.missing}
    if len(levels) > 1 and possible <= set(levels):
        return f"{_EACH_LEVEL}{outcome.name}"
    shown = ", ".join(outcome.describe(level) for level in levels[:_OUTCOMES])
    if len(levels) == 1:
        return shown
    if len(levels) > _OUTCOMES:
        shown += f" and {len(levels) - _OUTCOMES} more levels"
    return f"{_EACH_OF}{shown}"


def wishes(fit: Certified) -> Iterator[str]:
    """What was asked for, one sentence each."""
    certificate = fit.certificate
    measure = certificate.measure
    axes_of = dict(measure.named_groupings)
    for kind, name in certificate.rates_shown:
        rate = certificate.wanted[kind][name]
        if rate is None:
            continue
        if kind == "statistical_rate":
            outcomes = _levels_compared(fit, axes_of[name])
            yield _equal_outcomes(outcomes, measure.groups_of(name), rate)
        elif _target_shares(fit, axes_of[name]) is None:
            yield _equal_sizes(measure.groups_of(name), rate)
    yield from fit.request.words()


def _equal_sizes(groups: str, rate: float) -> str:
    if rate == 1:
        return f"All groups of {groups} have the same size."
    return (
        f"The smallest group of {groups} is at least {rate:.3g} times as large as the"
        " largest."
    )


def _equal_outcomes(outcomes: str, groups: str, rate: float) -> str:
    # A sentence begins with a capital letter, but the name of a column stays as it is.
    if outcomes.startswith((_EACH_LEVEL, _EACH_OF)):
        outcomes = f"E{outcomes[1:]}"
    if rate == 1:
        return f"{outcomes} is equally common in all groups of {groups}."
    return (
        f"{outcomes} is at least {rate:.3g} times as common in each group of {groups}"
        " as in any other."
    )


@dataclass(frozen=True)
class Reached:
    """One rate of one grouping.

    The same number of independent draws falls into `interval` 95 % of the time.
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
    interval: Interval | None  # None: no rows were drawn
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
    def name(self) -> str:
        """What it compares, in words."""
        if self.outcome is None:
            return (
                f"How equal in size the groups of {self.grouping} are (representation"
                " rate)"
            )
        return (
            f"How equally common {self.outcome} is in the groups of {self.grouping}"
            " (statistical rate)"
        )

    @property
    def nearly_met(self) -> bool:
        """Whether only rounding to whole rows keeps what was delivered from it."""
        is_small = self.gap is not None and self.gap < _SMALL_GAP
        is_rounding = self.rounded and is_small
        return bool(self.met_exactly) and self.met is False and is_rounding

    @property
    def interval_text(self) -> str:
        """Where independent draws would fall, as it is shown."""
        if self.interval is None:
            return "–"
        return "{:.3f} – {:.3f}".format(*self.interval)

    @property
    def wanted_text(self) -> str:
        """What was asked for, as it is shown."""
        if self.wanted is None:
            return "any"
        target = " (target)" if self.from_target else ""
        return f"{self.wanted:.4f}{target}"


def reached(fit: Certified, delivered: Delivered) -> Iterator[Reached]:
    """Compare the rates."""
    certificate = fit.certificate
    measure = certificate.measure
    rates = delivered_rates(fit, delivered.table)
    intervals = None
    if delivered.mode == "rows":
        intervals = certificate.interval(delivered.rows, iid=True)
    costly = set()
    if certificate.costs is not None:
        groups = certificate.costs.groups
        costly = {group.grouping for group in groups if group.beyond_line}
    axes_of = dict(measure.named_groupings)
    for kind, name in certificate.rates_shown:
        axes = axes_of[name]
        wanted = certificate.wanted[kind][name]
        rate = rates[kind][name]
        # only wanted rates may be None
        achieved = certificate.achieved[kind][name] or 0.0
        shares = None
        if kind == "representation_rate":
            shares = _target_shares(fit, axes)
        gaps: list[float | None] = [None, None]
        if shares is not None:
            gaps = [
                float(np.abs(group_shares(table, axes) - shares).max())
                for table in (certificate.table, delivered.table)
            ]
        elif wanted is not None:
            gaps = [None if one is None else wanted - one for one in (achieved, rate)]
        met = [gap is not None and gap <= REACHED for gap in gaps]
        asked = gaps[0] is not None
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
            worst_before=_worst(fit, kind, axes, fit.problem.data_table),
            met_exactly=met[0] if asked else None,
            met=all(met) if asked else None,
            gap=0.0 if met[1] else gaps[1],
            rounded=_is_rounded(fit, delivered, axes),
            costly=name in costly,
        )


def _is_rounded(fit: Certified, delivered: Delivered, axes: Grouping) -> bool:
    """Whether every group has its fair rows, up to one, also with each outcome."""
    rows = delivered.rows
    if delivered.mode == "weights":
        return False
    if delivered.mode == "top-up":
        rows += fit.table.size
    off = group_table(delivered.table - fit.certificate.table, axes) * rows
    return bool((np.abs(off) < 1).all() and (np.abs(off.sum(axis=0)) < 1).all())


def _target_shares(fit: Certified, axes: Grouping) -> Reals | None:
    """The shares that the user named for a grouping's only column, if any.

    A column that is kept as it is has those of the data.
    """
    name = fit.roles.names[axes[0]]
    targets = fit.request.target or {}
    if len(axes) > 1 or name not in targets:
        return None
    named = read_target(fit.roles, {name: targets[name]})[fit.roles.root[axes[0]]]
    if named is None:
        return group_shares(fit.problem.data_table, axes)
    return named


def _worst(
    fit: Certified,
    kind: str,
    axes: Grouping,
    table: Reals,
) -> str:
    """Name the lowest and the highest group in the data."""
    measure = fit.certificate.measure
    if kind == "representation_rate":
        shares = measure.shares_compared(table, axes)
        pair = worst_pair(shares, strata=measure.strata)
    else:
        rates = measure.rates_compared(table, axes)
        levels = measure.favourable_of(axes)
        pair = statistical_pair(rates, levels, strata=measure.strata)
    lowest = group_label(fit, axes, pair.lowest)
    highest = group_label(fit, axes, pair.highest)
    if pair.outcome is None:
        return f"{lowest} against {highest}"
    outcome = fit.roles.attributes[outcome_axis(axes)]
    return f"{lowest} against {highest}, {outcome.describe(pair.outcome)}"
