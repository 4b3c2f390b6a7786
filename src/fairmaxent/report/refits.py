"""What more fits of the same table show: the trade-off, and rows judged by attacks."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.levels import Notes
from fairmaxent.data.table import Names
from fairmaxent.document import Blocks, Note, Paragraph, Table
from fairmaxent.document.words import percent
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.errors import BASE_SHARE, FairMaxEntError, Spell
from fairmaxent.evaluation.evaluation import evaluate
from fairmaxent.evaluation.result import (
    ATTACKS,
    Evaluation,
    fidelity_table,
    risk_table,
    utility_table,
    verdict,
)
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.pipeline import fit_frame, refit
from fairmaxent.fit.request import Request
from fairmaxent.fit.wanted_rates import RateOption, rates_in
from fairmaxent.report.delivered import seen_mass
from fairmaxent.report.source import FrontDoor
from fairmaxent.telling.rates import rate_text

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATES = (0.25, 0.5, 0.8, 1.0)
# By size and not by the clock, so that the same fit gives the same report on any
# machine.
LARGEST_TABLE = 1_000_000
# levels of all columns: a fit solves equations in that many unknowns
LARGEST_WIDTH = 500
_ABOUT_TRADE_OFF = (
    "The same request with other shares of the base (",
    BASE_SHARE,
    (
        "), which makes combinations possible that no row has, and with other rates"
        " instead of the ones asked for. Distance is KL(data‖fair): the information in"
        " nats (1 nat is 1.44 bits) that is lost on average when the fair distribution"
        " replaces the data; 0 means none. Effective rows is the number of equally"
        " weighted rows that carry as much information as the fair weights; if there"
        " are few, small groups count many times over. Seen combinations is the"
        " probability that a drawn row has a combination of levels that one of the rows"
        " fitted has."
    ),
)
# of the rows, for attacks need people who were not in the table; the rest is fitted
# again
SET_ASIDE = 0.2
FEWEST = 100  # rows
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 20_251_116


@dataclass(frozen=True)
class TradeOffPoint:
    """One fit: which option was varied, and the result, or why there is none."""

    varied: str  # base_share, or rates
    value: float
    is_this_fit: bool  # the fit that the report is about
    distance: float | None = None  # KL(data‖p*)
    effective_rows: float | None = None
    seen: float | None = None  # p* of the combinations of levels that the data have
    problem: str | None = None


@dataclass(frozen=True)
class TradeOff:
    """The points, or why there are none."""

    points: tuple[TradeOffPoint, ...]
    skipped: str | None


def trade_off(fit: Certified, *, spell: Spell = str) -> TradeOff:
    """Fit again with a handful of other options; ``spell`` names them if it fails."""
    if not isinstance(fit.request, Request):
        return TradeOff(
            (), "the fit is one of the paper's configurations, which have other options"
        )
    size = fit.table.distinct * len(fit.blocks.levels)
    width = fit.blocks.width
    if size > LARGEST_TABLE or width > LARGEST_WIDTH:
        return TradeOff(
            (),
            f"each point takes another fit, and the table is large ({size:,} values,"
            f" {width:,} levels)",
        )
    points = []
    for varied, value, request in _cases(fit.request):
        point = TradeOffPoint(varied, value, request == fit.request)
        other = fit
        try:
            if not point.is_this_fit:
                other = refit(fit, request)
        except FairMaxEntError as problem:
            points.append(replace(point, problem=problem.spelled(spell)))
            continue
        distance = other.certificate.distance["from_data"]
        points.append(
            replace(
                point,
                distance=distance if math.isfinite(distance) else None,
                effective_rows=other.certificate.effective_rows,
                seen=seen_mass(other),
            )
        )
    return TradeOff(tuple(points), None)


def _cases(request: Request) -> Iterator[tuple[str, float, Request]]:
    if request.provenance.has_real_rows and not (request.release or request.likely):
        for share in sorted({*SHARES, float(request.base_share)}):
            yield "base_share", share, replace(request, base_share=share)
    options = (request.representation_rate, request.statistical_rate)
    asked = {float(rate) for option in options for rate in rates_in(option)}
    if not asked or request.training is not None:
        return  # with other rates, a model would have to be trained again and again
    tried = {*RATES, *asked} if len(asked) == 1 else RATES
    for rate in sorted(tried):
        other = replace(
            request,
            representation_rate=_with_rate(request.representation_rate, rate),
            statistical_rate=_with_rate(request.statistical_rate, rate),
        )
        yield "rates", rate, other


def _with_rate(asked: RateOption, rate: float) -> RateOption:
    """Replace each rate that was asked for."""
    if isinstance(asked, Mapping):
        return {name: None if old is None else rate for name, old in asked.items()}
    return None if asked is None else rate


def trade_off_blocks(trade_off: TradeOff, door: FrontDoor) -> Blocks:
    """What other options would have cost, or why that is not known."""
    if trade_off.skipped is not None:
        yield Paragraph(f"The trade-off was not computed: {trade_off.skipped}.")
        return
    yield Paragraph(door.text_of(_ABOUT_TRADE_OFF))
    varied = {"base_share": door.spell(BASE_SHARE), "rates": "rates asked for"}
    heads = ["Varied", "Distance", "Effective rows", "Seen combinations"]
    if any(point.problem is not None for point in trade_off.points):
        heads.append("Note")
    rows = [_trade_off_row(point, varied[point.varied]) for point in trade_off.points]
    shown = tuple(row[: len(heads)] for row in rows)
    yield Table("Trade-off", tuple(heads), shown)


def _trade_off_row(point: TradeOffPoint, option: str) -> Notes:
    name = f"{option}: {point.value:g}"
    if point.is_this_fit:
        name += " (this fit)"
    worth = "–"
    if point.effective_rows is not None:
        worth = f"{point.effective_rows:,.0f}"
    note = "possible"
    if point.problem is not None:
        note = f"not possible: {point.problem}"
    return name, rate_text(point.distance), worth, percent(point.seen), note


@dataclass(frozen=True)
class Evaluated:
    """What was judged, or why nothing was."""

    evaluation: Evaluation | None
    verdict: Notes  # sentences, the answer first
    flagged: Names
    skipped: str | None


def evaluated(
    fit: Certified,
    data: Any,
    *,
    iid: bool,
    spell: Spell = str,
) -> Evaluated:
    """Judge rows that are drawn from a fit as this one's are, or say why not."""
    if not isinstance(fit.request, Request):
        reason = (
            "the fit is one of the paper's configurations, which have other options"
        )
    elif open_lazy(data) is not None:
        reason = "the table is not in memory; judge the rows with 'fairmaxent evaluate'"
    elif fit.table.size < FEWEST:
        reason = (
            f"the table has {fit.table.size:,} rows, too few to set some aside (at"
            f" least {FEWEST})"
        )
    else:
        try:
            result = _judged(fit.request, frames.open_frame(data), iid=iid)
        # a part of a small table may lack what the whole has
        except FairMaxEntError as problem:
            reason = problem.spelled(spell)
        else:
            return Evaluated(result, tuple(verdict(result)), result.flagged, None)
    return Evaluated(None, (), (), reason)


def _judged(request: Any, table: nw.DataFrame[Any], *, iid: bool) -> Evaluation:
    order = np.random.default_rng(_STREAM).permutation(len(table))
    aside = round(SET_ASIDE * len(table))
    control = table[np.sort(order[:aside])]
    real = table[np.sort(order[aside:])]
    fit = fit_frame(real.to_native(), replace(request, estimate=None, progress=None))
    new = frames.open_frame(fit.sample(len(real), iid=iid))
    weight = [] if request.weight is None else [request.weight]
    return evaluate(
        real.drop(weight).to_native(),
        new.drop(weight).to_native(),
        control=control.drop(weight).to_native(),
        outcome=request.outcome_name,
        protected=request.protected_names,
        favourable=request.favourable,
    )


def evaluation_blocks(judged: Evaluated | None) -> Blocks:
    """What the rows give away and teach, and how faithful they are, if it was asked."""
    if judged is None:
        return
    evaluation = judged.evaluation
    if evaluation is None:
        yield Paragraph(f"The rows were not judged: {judged.skipped or ''}.")
        return
    answer, *reasons = judged.verdict
    yield Note(answer, tuple(reasons))
    yield Paragraph(
        f"{evaluation.control_rows:,} of the rows were set aside, and the fit was made"
        f" again from the other {evaluation.real_rows:,}. As many rows were drawn from"
        " it and attacked. A risk of 0 means that an attack does no better on people"
        " in the table than on those set aside, and 1 that it always succeeds."
    )
    risks = risk_table(evaluation)
    about = {name: success for name, (_, success) in ATTACKS.items()}
    heads = (
        "Attack",
        "Risk",
        risks.heads[2],
        "Succeeds",
        "On those set aside",
        "Judged",
        "It succeeds if",
    )
    others = "the same, for the column at the greatest risk"
    rows = tuple(
        (*row, about.get(row[0].partition(",")[0], others)) for row in risks.rows
    )
    yield replace(risks, heads=heads, rows=rows)
    record = evaluation.risks.closest_record
    yield Paragraph(
        f"Median distance of a new row to the closest real row: {record.new:.3f}; of"
        f" those set aside: {record.others or 0:.3f}. {record.why_not}"
    )
    if evaluation.utility is not None:
        yield Paragraph(
            "The same model trained on the new and on the real rows, judged on the"
            " people set aside."
        )
        yield utility_table(evaluation, evaluation.utility)
    yield Paragraph(
        "The share of rows that would have to change. By chance: the same for rows"
        " drawn at random from the real ones. A fair table differs on purpose, in the"
        " outcome and in what goes with it."
    )
    yield fidelity_table(evaluation)
