"""The trade-off: the same fit with other shares of the base and other rates, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairmaxent.errors import FairMaxEntError
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.pipeline import refit
from fairmaxent.report.copies import seen_mass

Varied = Literal["base_share", "rates"]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATES = (0.25, 0.5, 0.8, 1.0)
# By size and not by the clock, so that the same fit gives the same report on any machine.
LARGEST_TABLE = 1_000_000
LARGEST_WIDTH = 500  # levels of all columns: a fit solves equations in that many unknowns
_ASKED = ("representation_rate", "statistical_rate")


@dataclass(frozen=True)
class Point:
    """One fit: which option was varied, and what came of it; `problem` says why there is none."""

    varied: Varied
    value: float
    is_own: bool  # the fit that the report is about
    distance: float | None  # KL(data‖p*)
    effective_rows: float | None
    seen: float | None  # p* of the combinations of levels that the data have
    problem: str | None


@dataclass(frozen=True)
class TradeOff:
    """The points, or why there are none."""

    points: tuple[Point, ...]
    skipped: str | None


def trade_off(fit: Fit) -> TradeOff:
    """Fit again with a handful of other options."""
    if "base_share" not in fit.options:
        return TradeOff((), "the fit is one of the paper's own configurations, which has other options")
    size, width = fit.distinct_rows.codes.size, fit.roles.blocks.width
    if size > LARGEST_TABLE:
        return TradeOff((), f"the table is large ({size:,} values, over {LARGEST_TABLE:,}): each point is a fit")
    if width > LARGEST_WIDTH:
        return TradeOff((), f"the columns have many levels ({width:,}, over {LARGEST_WIDTH:,}): each point is a fit")
    return TradeOff(tuple(_point(fit, *case) for case in _cases(fit.options)), None)


def _cases(options: Mapping[str, Any]) -> Iterator[tuple[Varied, float, Mapping[str, Any]]]:
    for share in sorted({*SHARES, float(options["base_share"])}):
        yield "base_share", share, {**options, "base_share": share}
    own = _own_rate(options)
    if any(_with_rate(options[name], 1.0) != _with_rate(options[name], 0.5) for name in _ASKED):
        for rate in sorted({*RATES, *([] if own is None else [own])}):
            yield "rates", rate, {**options, **{name: _with_rate(options[name], rate) for name in _ASKED}}


def _own_rate(options: Mapping[str, Any]) -> float | None:
    """The one rate that was asked for, None where there are several."""
    given = [options[name] for name in _ASKED]
    asked = {rate for own in given for rate in (own.values() if isinstance(own, Mapping) else [own])} - {None}
    return float(asked.pop()) if len(asked) == 1 else None


def _with_rate(asked: Any, rate: float) -> Any:
    """Put another rate in the place of each one that was asked for."""
    if isinstance(asked, Mapping):
        return {name: None if own is None else rate for name, own in asked.items()}
    return None if asked is None else rate


def _point(fit: Fit, varied: Varied, value: float, options: Mapping[str, Any]) -> Point:
    own = options == dict(fit.options)
    try:
        other = fit if own else refit(fit, options)
    except FairMaxEntError as problem:
        return Point(varied, value, own, None, None, None, str(problem))
    distance = other.certificate.distance["from_data"]
    known = distance if math.isfinite(distance) else None
    return Point(varied, value, own, known, other.certificate.effective_rows, seen_mass(other), None)
