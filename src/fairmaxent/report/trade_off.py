"""The trade-off: what the same fit costs with other shares of the base and with other rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fairmaxent.errors import FairMaxEntError, Option
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.option_values import RateOption
from fairmaxent.fit.pipeline import refit
from fairmaxent.fit.request import Request
from fairmaxent.progress import Progress, silent
from fairmaxent.report.copies import seen_mass

Varied = Literal["base_share", "rates"]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATES = (0.25, 0.5, 0.8, 1.0)
# By size and not by the clock, so that the same fit gives the same report on any machine.
LARGEST_TABLE = 1_000_000
LARGEST_WIDTH = 500  # levels of all columns: a fit solves equations in that many unknowns


@dataclass(frozen=True)
class TradeOffPoint:
    """One fit: which option was varied, and the result; `problem` says why there is none."""

    varied: Varied
    value: float
    is_this_fit: bool  # the fit that the report is about
    distance: float | None  # KL(data‖p*)
    effective_rows: float | None
    seen: float | None  # p* of the combinations of levels that the data have
    problem: str | None


@dataclass(frozen=True)
class TradeOff:
    """The points, or why there are none."""

    points: tuple[TradeOffPoint, ...]
    skipped: str | None


def trade_off(fit: Fit, *, progress: Progress = silent, spell: Callable[[Option], str] = str) -> TradeOff:
    """Fit again with a handful of other options; ``progress`` is called before each fit.

    ``spell`` spells the options in the reason why a fit is not possible.
    """
    if not isinstance(fit.request, Request):
        return TradeOff((), "the fit is one of the paper's configurations, which have other options")
    size, width = fit.distinct_rows.codes.size, fit.roles.blocks.width
    if size > LARGEST_TABLE:
        return TradeOff(
            (), f"the table is large ({size:,} values, over {LARGEST_TABLE:,}), and each point takes another fit"
        )
    if width > LARGEST_WIDTH:
        return TradeOff(
            (), f"the columns have many levels ({width:,}, over {LARGEST_WIDTH:,}), and each point takes another fit"
        )
    cases, points = list(_cases(fit.request)), []
    for number, case in enumerate(cases):
        progress("trade-off", number / len(cases))
        points.append(_point(fit, *case, spell))
    return TradeOff(tuple(points), None)


def _cases(request: Request) -> Iterator[tuple[Varied, float, Request]]:
    pinned = request.privacy is not None or request.release
    for share in () if pinned else sorted({*SHARES, float(request.base_share)}):
        yield "base_share", share, replace(request, base_share=share)
    asked, plan = _asked_rate(request), request.relabelling
    if plan is not None and plan.parity == "predictions":
        return  # with other rates, a student would have to be tried out again and again
    if _with_rates(request, 1.0) != _with_rates(request, 0.5):
        for rate in sorted({*RATES, *([] if asked is None else [asked])}):
            yield "rates", rate, _with_rates(request, rate)


def _asked_rate(request: Request) -> float | None:
    """The one rate that was asked for, None if there are several."""
    options = (request.representation_rate, request.statistical_rate)
    rates = {rate for option in options for rate in (option.values() if isinstance(option, Mapping) else [option])}
    asked = rates - {None}
    return float(asked.pop() or 0) if len(asked) == 1 else None


def _with_rates(request: Request, rate: float) -> Request:
    return replace(
        request,
        representation_rate=_with_rate(request.representation_rate, rate),
        statistical_rate=_with_rate(request.statistical_rate, rate),
    )


def _with_rate(asked: RateOption, rate: float) -> RateOption:
    """Replace each rate that was asked for."""
    if isinstance(asked, Mapping):
        return {name: None if old is None else rate for name, old in asked.items()}
    return None if asked is None else rate


def _point(fit: Fit, varied: Varied, value: float, request: Request, spell: Callable[[Option], str]) -> TradeOffPoint:
    is_this_fit = request == fit.request
    try:
        other = fit if is_this_fit else refit(fit, request)
    except FairMaxEntError as problem:
        return TradeOffPoint(varied, value, is_this_fit, None, None, None, problem.spelled(spell))
    distance = other.certificate.distance["from_data"]
    known = distance if math.isfinite(distance) else None
    return TradeOffPoint(varied, value, is_this_fit, known, other.certificate.effective_rows, seen_mass(other), None)
