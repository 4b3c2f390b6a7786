"""The report: every number that is shown, as plain Python values."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from fairmaxent.data.domain import shareable
from fairmaxent.data.frames import open_frame
from fairmaxent.errors import InputError, LevelError
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.remarks import cost_remarks, less_fair, other_remarks, remedy_remark
from fairmaxent.fit.statements import changed_lines, mean_lines, promise
from fairmaxent.options import with_options_of
from fairmaxent.plain_text import plain_json
from fairmaxent.privacy.refusals import no_rows
from fairmaxent.report.delivered import Mode, absences, deliver
from fairmaxent.report.delivered_costs import Copies, DeliveredCosts, check_data, copies, delivered_costs
from fairmaxent.report.evaluated import Evaluated, evaluated
from fairmaxent.report.rates import Counting, Reached, counting, outcomes_compared, reached
from fairmaxent.report.repeat_call import call
from fairmaxent.report.request_text import wishes
from fairmaxent.report.shares import (
    Associations,
    Grouping,
    Marginal,
    Move,
    associations,
    groupings,
    largest_moves,
    marginals,
)
from fairmaxent.report.source import Filing, FrontDoor, Source, filed
from fairmaxent.report.trade_off import TradeOff, trade_off


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What a report is asked for.

    Parameters
    ----------
    data
        The table that the fit was made from, or a polars LazyFrame of it. A fit keeps levels, not raw values, so
        copies of real rows can only be counted exactly with the table.
    delivered
        What was delivered, so that its rates are measured too: the drawn rows, the rows to add, or the weights. By
        default, the same number of new rows as in the data is drawn for the report.
    mode
        What that is: ``"rows"`` (:meth:`Fit.sample`), ``"weights"`` or ``"top-up"``.
    iid, seed
        How the rows were drawn, to say how to repeat it; without ``delivered`` they are drawn this way, by default with
        the fit's seed.
    source
        Where the fit came from: its file, the command line, how the columns were read.
    trade_off
        Whether to fit a few more times, to show what other options would cost.
    evaluate
        Whether to judge what the drawn rows give away, as :func:`fairmaxent.evaluate` does; needs ``data``. A fifth of
        the rows is set aside for that, and the fit made again from the rest, which takes some seconds.
    title, author, purpose
        What the report is filed under. By default, the title names the outcome and the groups.
    date
        When it was written, with a time zone; by default now, or what the environment variable SOURCE_DATE_EPOCH says.
    """

    data: Any = None
    delivered: Any = None
    mode: Mode = "rows"
    iid: bool = False
    seed: int | None = None
    source: Source | None = None
    trade_off: bool = True
    evaluate: bool = False
    title: str | None = None
    author: str | None = None
    purpose: str | None = None
    date: datetime | None = None


@dataclass(frozen=True)
class Report:
    """What was asked for, what was reached, what changed, what it costs, and how to repeat it."""

    filing: Filing
    outcome: str
    favourable: str  # the outcomes that the statistical rate compares, in words
    protected: tuple[str, ...]
    rows: int
    distinct_rows: int  # as combinations of levels
    columns: int
    points: int  # |Ω|, all combinations of levels
    alerts: tuple[str, ...]  # costs beyond the line, with their remedies: the first thing that is said
    changed: tuple[str, ...]  # for how many people of each group the outcome was changed, and in which direction
    costs: DeliveredCosts
    counting: Counting
    wishes: tuple[str, ...]
    rates: tuple[Reached, ...]
    means: tuple[str, ...]  # how far group means of the outcome are apart; none: nobody asked for equal ones
    warnings: tuple[str, ...]  # everything else that a careful reader should know
    certificate: Certificate
    groupings: tuple[Grouping, ...]
    moves: tuple[Move, ...]
    marginals: tuple[Marginal, ...]
    associations: Associations
    trade_off: TradeOff
    mode: Mode
    relabelled: bool  # rows got other outcomes in part, and not only other weights
    iid: bool
    new_rows: int  # drawn, or added
    for_report: bool  # drawn for this report and not handed over
    copies: Copies | None  # None: no row is new
    evaluation: Evaluated | None  # None: nobody asked
    seed: int | None  # of the new rows; None: not known, or nothing is random
    source: Source
    advice: str | None  # what to try if a model's decisions are expected to stay less fair than wanted
    not_estimated: str | None  # why it is not known how a model will decide; None: it is known, or nobody asked
    promise: str | None  # of a private fit; None: there is no such promise
    call: str
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON; a number that is not finite is None."""
        own = {"source": self.source.to_dict(), "certificate": self.certificate.to_dict()}
        values = {field.name: own.get(field.name, getattr(self, field.name)) for field in fields(self)}
        plain: dict[str, Any] = plain_json(values)
        return plain


@with_options_of(ReportRequest)
def build_report(fit: Fit, request: ReportRequest) -> Report:
    """Compute everything a report shows; the options are those of :class:`ReportRequest`."""
    if not isinstance(fit, Fit):
        raise InputError(f"a report is about a fit, not a {type(fit).__name__}; pass what debias() or load() returned")
    filing = filed(title=request.title, author=request.author, purpose=request.purpose, date=request.date)
    mode, iid, certificate = request.mode, request.iid, fit.certificate
    data = _checked_data(fit, request.data)
    made = deliver(fit, request.delivered, mode=mode, iid=iid, seed=request.seed)
    source = Source() if request.source is None else request.source
    door = source.front_door
    columns = marginals(fit)
    return Report(
        filing=filing,
        outcome=", ".join(fit.roles.outcome_names),
        favourable=outcomes_compared(fit),
        protected=fit.roles.protected_names,
        rows=fit.table.size,
        distinct_rows=fit.table.distinct,
        columns=len(fit.domain.names),
        points=fit.domain.size,
        alerts=tuple(map(door.said, cost_remarks(certificate))),
        changed=tuple(changed_lines(certificate.costs)),
        costs=delivered_costs(fit, made, data),
        counting=counting(fit, made.table),
        wishes=wishes(fit),
        rates=reached(fit, made),
        means=tuple(mean_lines(certificate.means, fit.roles)),
        warnings=(*absences(fit, made.table), *map(door.said, other_remarks(certificate))),
        certificate=certificate,
        groupings=groupings(fit),
        moves=largest_moves(columns),
        marginals=columns,
        associations=associations(fit),
        trade_off=trade_off(fit, spell=door.spell) if request.trade_off else TradeOff((), "it was not asked for"),
        mode=mode,
        relabelled=fit.soft is not None,
        iid=iid,
        new_rows=made.rows,
        for_report=request.delivered is None,
        copies=None if certificate.privacy is not None else copies(fit, made, data),
        evaluation=evaluated(fit, data, mode=mode, iid=iid, spell=door.spell) if request.evaluate else None,
        seed=made.seed,
        source=source,
        advice=_advice(certificate, door),
        not_estimated=_not_estimated(certificate, door),
        promise=None if certificate.privacy is None else promise(certificate.privacy),
        call=call(fit, made, source),
        versions=_versions(fit),
    )


def _checked_data(fit: Fit, data: Any) -> Any:
    """The table that the fit was made from, checked, in the form in which the fit saw it."""
    if data is None:
        return None
    if fit.certificate.privacy is not None:
        raise no_rows("a comparison with the data", private=True)
    try:
        check_data(fit, data)
    except LevelError:
        if not fit.request.release:
            raise
        data = shareable(open_frame(data), fit.roles.names, (), fit.request.weight)[0].to_native()
        check_data(fit, data)
    return data


def _advice(certificate: Certificate, door: FrontDoor) -> str | None:
    """What to try if a model's decisions are expected to stay less fair than wanted."""
    estimate = certificate.estimate
    unfair = [] if estimate is None else less_fair(estimate.after, certificate.wanted_of_decisions)
    if estimate is None or not unfair:
        return None
    remedy = door.said(remedy_remark(estimate, unfair[0]))
    return f"Its decisions for {unfair[0]} are expected to be less fair than wanted{remedy}."


def _not_estimated(certificate: Certificate, door: FrontDoor) -> str | None:
    missing = certificate.not_estimated
    return None if missing is None or not missing.why else door.said(missing.why)


def _versions(fit: Fit) -> dict[str, str]:
    """Versions of what took part."""
    libraries = sorted({"fairmaxent", "numpy", "narwhals", "scipy", fit.domain.library})
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in libraries}
