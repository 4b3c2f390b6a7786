"""What was reached: each rate as wanted, in the data, in the fitted distribution, and in drawn rows."""

from __future__ import annotations

from dataclasses import dataclass

from fairmaxent.fit import Fit
from fairmaxent.rates import WorstPair, representation_pair, statistical_pair
from fairmaxent.report.shifts import root_table
from fairmaxent.table import Codes, Reals

# Solvers stop a little short of an exact rate.
_SLACK = 1e-6


@dataclass(frozen=True)
class Reached:
    """One rate of one grouping. `achieved` is exact; `interval` is where independent draws fall, 95 % of the time."""

    kind: str
    grouping: str
    wanted: float | None
    before: float
    achieved: float
    drawn: float
    interval: tuple[float, float]
    worst_before: str
    met: bool | None


def reached(fit: Fit, drawn: Codes) -> tuple[Reached, ...]:
    """Compare the rates; ``drawn`` are the drawn rows as block codes."""
    certificate, measure = fit.certificate, fit.certificate.measure
    rates = measure.rates(root_table(fit.roles.blocks, drawn, None))
    intervals = certificate.interval(len(drawn), iid=True)
    before = root_table(fit.roles.blocks, fit.table.codes, fit.table.counts)
    return tuple(
        Reached(
            kind=kind,
            grouping=name,
            wanted=certificate.wanted[kind][name],
            before=_number(certificate.before[kind][name]),
            achieved=_number(certificate.achieved[kind][name]),
            drawn=_number(rates[kind][name]),
            interval=intervals[kind][name],
            worst_before=_worst(fit, kind, axes, before),
            met=_met(certificate.wanted[kind][name], _number(certificate.achieved[kind][name])),
        )
        for kind in certificate.wanted
        for name, axes in zip(measure.names, measure.groupings, strict=True)
    )


def _met(wanted: float | None, achieved: float) -> bool | None:
    return None if wanted is None else achieved >= wanted - _SLACK


def _worst(fit: Fit, kind: str, axes: tuple[int, ...], table: Reals) -> str:
    """Name the lowest and the highest group in the data."""
    if kind == "representation_rate":
        pair = representation_pair(table, axes)
    else:
        pair = statistical_pair(table, axes, fit.certificate.measure.favourable)
    lowest, highest = (_group(fit, axes, group) for group in (pair.lowest, pair.highest))
    return f"{lowest} against {highest}{_about(fit, pair)}"


def _group(fit: Fit, axes: tuple[int, ...], group: tuple[int, ...]) -> str:
    return " × ".join(fit.roles.attributes[axis].labels[level] for axis, level in zip(axes, group, strict=True))


def _about(fit: Fit, pair: WorstPair) -> str:
    own = fit.roles.attributes[0]
    return "" if pair.outcome is None else f", {own.name} = {own.labels[pair.outcome]}"


def _number(rate: float | None) -> float:
    """Rates of a table always have a value; only wanted ones may be None."""
    return float("nan") if rate is None else rate
