"""What was asked for and reached."""

from collections.abc import Iterator

import numpy as np

from fairmaxent.data.table import Reals
from fairmaxent.facts.output import Reached
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
from fairmaxent.report.delivered import Delivered, delivered_rates
from fairmaxent.telling.rates import REACHED
from fairmaxent.telling.wishes import levels_compared


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
        costly = {
            measure.groups_of(group.grouping) for group in groups if group.beyond_line
        }
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
            outcome=_outcomes(fit, kind, axes),
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
            costly=measure.groups_of(name) in costly,
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
    """The shares that the user named for a grouping's only column, if any."""
    if len(axes) > 1:
        return None
    return fit.problem.root_targets.get(axes[0])


def _outcomes(fit: Certified, kind: str, axes: Grouping) -> str | None:
    """The outcomes that a statistical rate compares, in words."""
    if kind != "statistical_rate":
        return None
    return levels_compared(fit.certificate.measure, fit.roles, axes)


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
