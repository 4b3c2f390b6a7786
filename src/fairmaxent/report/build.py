"""The report: every number that is shown, as plain Python values."""

from __future__ import annotations

import importlib.metadata
import math
import platform
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from fairmaxent.data.frames import open_frame
from fairmaxent.data.shareable import shareable
from fairmaxent.errors import InputError, LevelError
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.cost_remarks import cost_remarks
from fairmaxent.fit.cost_text import changed_lines
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.mean_text import mean_lines
from fairmaxent.fit.remarks import less_fair, other_remarks, remedy_remark
from fairmaxent.fit.sharing_text import promise
from fairmaxent.privacy.refusals import no_rows
from fairmaxent.report.associations import Associations, associations
from fairmaxent.report.compared_outcomes import outcomes_compared
from fairmaxent.report.copies import Copies, check_data, copies
from fairmaxent.report.counting import Counting, counting
from fairmaxent.report.delivered import Mode, absences, deliver
from fairmaxent.report.delivered_costs import DeliveredCosts, delivered_costs
from fairmaxent.report.evaluated import Evaluated, evaluated
from fairmaxent.report.filing import Filing, filed
from fairmaxent.report.front_door import FrontDoor
from fairmaxent.report.rates import Reached, reached
from fairmaxent.report.repeat_call import call
from fairmaxent.report.request_text import wishes
from fairmaxent.report.shares import Grouping, Marginal, Move, groupings, largest_moves, marginals
from fairmaxent.report.source import Source
from fairmaxent.report.trade_off import TradeOff, trade_off


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
    certificate: dict[str, Any]
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
        plain: dict[str, Any] = _plain(asdict(self) | {"source": self.source.to_dict()})
        return plain


def build_report(
    fit: Fit,
    *,
    data: Any = None,
    delivered: Any = None,
    mode: Mode = "rows",
    iid: bool = False,
    seed: int | None = None,
    source: Source | None = None,
    trade_off: bool = True,
    evaluate: bool = False,
    title: str | None = None,
    author: str | None = None,
    purpose: str | None = None,
    date: datetime | None = None,
) -> Report:
    """Compute everything a report shows; the options are those of :func:`write_report`."""
    if not isinstance(fit, Fit):
        raise InputError(f"a report is about a fit, not a {type(fit).__name__}; pass what debias() or load() returned")
    filing = filed(title=title, author=author, purpose=purpose, date=date)
    data = _known_data(fit, data)
    made = deliver(fit, delivered, mode=mode, iid=iid, seed=seed)
    origin = Source() if source is None else source
    door = origin.front_door
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
        alerts=tuple(map(door.said, cost_remarks(fit.certificate))),
        changed=() if fit.certificate.costs is None else tuple(changed_lines(fit.certificate.costs)),
        costs=delivered_costs(fit, made, data),
        counting=counting(fit, made.table),
        wishes=wishes(fit),
        rates=reached(fit, made),
        means=tuple(mean_lines(fit)),
        warnings=(*absences(fit, made.table), *map(door.said, other_remarks(fit.certificate))),
        certificate=fit.certificate.to_dict(),
        groupings=groupings(fit),
        moves=largest_moves(columns),
        marginals=columns,
        associations=associations(fit),
        trade_off=_trade_off(fit, door, wanted=trade_off),
        mode=mode,
        relabelled=fit.soft is not None,
        iid=iid,
        new_rows=made.rows,
        for_report=delivered is None,
        copies=None if fit.certificate.privacy is not None else copies(fit, made, data),
        evaluation=evaluated(fit, data, mode=mode, iid=iid, spell=door.spell) if evaluate else None,
        seed=made.seed,
        source=origin,
        advice=_advice(fit.certificate, door),
        not_estimated=_not_estimated(fit.certificate, door),
        promise=None if fit.certificate.privacy is None else promise(fit.certificate.privacy),
        call=call(fit, made, origin),
        versions=_versions(fit),
    )


def _known_data(fit: Fit, data: Any) -> Any:
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


def _trade_off(fit: Fit, door: FrontDoor, *, wanted: bool) -> TradeOff:
    return trade_off(fit, spell=door.spell) if wanted else TradeOff((), "it was not asked for")


def _advice(certificate: Certificate, door: FrontDoor) -> str | None:
    """What to try if a model's decisions are expected to stay less fair than wanted."""
    known = certificate.estimate
    unfair = [] if known is None else less_fair(known.after, certificate.wanted_of_decisions)
    if known is None or not unfair:
        return None
    remedy = door.said(remedy_remark(known, unfair[0]))
    return f"Its decisions for {unfair[0]} are expected to be less fair than wanted{remedy}."


def _not_estimated(certificate: Certificate, door: FrontDoor) -> str | None:
    missing = certificate.not_estimated
    return None if missing is None or not missing.why else door.said(missing.why)


def _versions(fit: Fit) -> dict[str, str]:
    """Versions of what took part."""
    libraries = sorted({"fairmaxent", "numpy", "narwhals", "scipy", fit.domain.library})
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in libraries}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
