"""The trade-off: what the same fit costs with other shares of the base and with other rates."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fairmaxent.document import Block, Paragraph, Picture, Table
from fairmaxent.document.html import curve
from fairmaxent.document.words import percent
from fairmaxent.errors import BASE_SHARE, FairMaxEntError, Option
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.option_values import RateOption
from fairmaxent.fit.pipeline import refit
from fairmaxent.fit.request import Request
from fairmaxent.fit.statements import rate_text
from fairmaxent.progress import Progress, silent
from fairmaxent.report.delivered import seen_mass
from fairmaxent.report.source import FrontDoor

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
    """Fit again with a handful of other options; ``spell`` spells those in the reason why a fit is not possible."""
    if not isinstance(fit.request, Request):
        return TradeOff((), "the fit is one of the paper's configurations, which have other options")
    size, width = fit.distinct_rows.codes.size, fit.roles.blocks.width
    for text, number, most in (
        (f"the table is large ({size:,} values", size, LARGEST_TABLE),
        (f"the columns have many levels ({width:,}", width, LARGEST_WIDTH),
    ):
        if number > most:
            return TradeOff((), f"{text}, over {most:,}), and each point takes another fit")
    cases, points = list(_cases(fit.request)), []
    for number, case in enumerate(cases):
        progress("trade-off", number / len(cases))
        points.append(_point(fit, *case, spell))
    return TradeOff(tuple(points), None)


def _cases(request: Request) -> Iterator[tuple[Varied, float, Request]]:
    pinned = request.privacy is not None or request.release
    for share in () if pinned else sorted({*SHARES, float(request.base_share)}):
        yield "base_share", share, replace(request, base_share=share)
    options = (request.representation_rate, request.statistical_rate)
    rates = {rate for option in options for rate in (option.values() if isinstance(option, Mapping) else [option])}
    asked, plan = {float(rate) for rate in rates if rate is not None}, request.relabelling
    if not asked or (plan is not None and plan.parity == "predictions"):
        return  # with other rates, a student would have to be tried out again and again
    for rate in sorted({*RATES, *(asked if len(asked) == 1 else ())}):
        group_rate, outcome_rate = (_with_rate(option, rate) for option in options)
        yield "rates", rate, replace(request, representation_rate=group_rate, statistical_rate=outcome_rate)


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
    finite = distance if math.isfinite(distance) else None
    return TradeOffPoint(varied, value, is_this_fit, finite, other.certificate.effective_rows, seen_mass(other), None)


# ---------------------------------------------------------------- what is said about it


def trade_off_blocks(trade_off: TradeOff, door: FrontDoor) -> Iterator[Block]:
    """What other options would have cost, or why that is not known."""
    if trade_off.skipped is not None:
        yield Paragraph(f"The trade-off was not computed: {trade_off.skipped}.")
        return
    parts = (
        "The same request with other shares of the base (",
        BASE_SHARE,
        "), which makes combinations possible that no row has, and with other rates instead of the ones asked for. "
        "Distance is KL(data‖fair): the information in nats (1 nat is 1.44 bits) that is lost on average when the fair "
        "distribution replaces the data; 0 means none. Effective rows is the number of equally weighted rows that "
        "carry as much information as the fair weights; if there are few, small groups count many times over. Seen "
        "combinations is the probability that a drawn row has a combination of levels that is in the data.",
    )
    yield Paragraph(f"{door.said(parts)} The open point of a picture is this fit.")
    varied = {"base_share": door.spell(BASE_SHARE), "rates": "rates asked for"}
    for option, across in varied.items():
        fitted = [point for point in trade_off.points if point.varied == option and point.problem is None]
        this_fit = next((point.value for point in fitted if point.is_this_fit), None)
        for heading, quantity, scale, unit in _CURVES[option]:
            values = [(point.value, getattr(point, quantity)) for point in fitted]
            drawn = [(share, scale * value) for share, value in values if value is not None]
            title = f"{heading} over {across}"
            if len(drawn) > 1:
                yield Picture(title, curve(drawn, this_fit, title=title, across=across, unit=unit))
    heads = ("Varied", "Distance", "Effective rows", "Seen combinations", "Note")
    shown = len(heads) if any(point.problem is not None for point in trade_off.points) else len(heads) - 1
    rows = tuple(_row(point, varied[point.varied])[:shown] for point in trade_off.points)
    yield Table("Trade-off", heads[:shown], rows)


_DISTANCE = ("Distance from the data", "distance", 1, "")
_CURVES = {
    "base_share": (_DISTANCE, ("Seen combinations", "seen", 100, " %")),
    "rates": (_DISTANCE, ("Effective rows", "effective_rows", 1, "")),
}


def _row(point: TradeOffPoint, varied: str) -> tuple[str, ...]:
    name = f"{varied}: {point.value:g}{' (this fit)' if point.is_this_fit else ''}"
    if point.effective_rows is None:
        return name, "–", "–", "–", f"not possible: {point.problem}"
    return name, rate_text(point.distance), f"{point.effective_rows:,.0f}", percent(point.seen), "possible"
