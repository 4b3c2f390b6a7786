"""The report: every number that is shown, as plain Python values, and the sentences that both of its parts have."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from fairmaxent.data.frames import open_frame
from fairmaxent.data.shareable import shareable
from fairmaxent.errors import InputError, LevelError, Option
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.remarks import cost_remarks, less_fair, other_remarks, remedy_remark
from fairmaxent.fit.statements import changed_lines, copies_of, mean_lines, promise
from fairmaxent.options import with_options_of
from fairmaxent.plain_text import plain_json
from fairmaxent.privacy.refusals import no_rows
from fairmaxent.report.delivered import (
    Copies,
    DeliveredCosts,
    Mode,
    absences,
    check_data,
    copies,
    deliver,
    delivered_costs,
)
from fairmaxent.report.evaluated import Evaluated, evaluated
from fairmaxent.report.rates import Counting, Reached, counting, outcomes_compared, reached, wishes
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
from fairmaxent.report.source import Filing, FrontDoor, Source, call, filed
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
    delivered = deliver(fit, request.delivered, mode=mode, iid=iid, seed=request.seed)
    source = Source() if request.source is None else request.source
    door, columns, missing = source.front_door, marginals(fit), certificate.not_estimated
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
        costs=delivered_costs(fit, delivered, data),
        counting=counting(fit, delivered.table),
        wishes=tuple(wishes(fit)),
        rates=tuple(reached(fit, delivered)),
        means=tuple(mean_lines(certificate.means, fit.roles)),
        warnings=(*absences(fit, delivered.table), *map(door.said, other_remarks(certificate))),
        certificate=certificate,
        groupings=groupings(fit),
        moves=largest_moves(columns),
        marginals=columns,
        associations=associations(fit),
        trade_off=trade_off(fit, spell=door.spell) if request.trade_off else TradeOff((), "it was not asked for"),
        mode=mode,
        relabelled=fit.soft is not None,
        iid=iid,
        new_rows=delivered.rows,
        for_report=request.delivered is None,
        copies=None if certificate.privacy is not None else copies(fit, delivered, data),
        evaluation=evaluated(fit, data, mode=mode, iid=iid, spell=door.spell) if request.evaluate else None,
        seed=delivered.seed,
        source=source,
        advice=_advice(certificate, door),
        not_estimated=None if missing is None or not missing.why else door.said(missing.why),
        promise=None if certificate.privacy is None else promise(certificate.privacy),
        call=call(fit, delivered, source),
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


def _versions(fit: Fit) -> dict[str, str]:
    """Versions of what took part."""
    libraries = sorted({"fairmaxent", "numpy", "narwhals", "scipy", fit.domain.library})
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in libraries}


FILLED = "{} of the result has a combination of outcome and groups that nobody in the data has."
COSTS_UNKNOWN = "What the result costs each group is not known for this fit."
DELIVERED_NAMES = {"rows": "Drawn rows", "weights": "Weighted rows", "top-up": "Old and added rows"}


def summary(report: Report) -> str:
    """Say what was done, what was delivered, and what sharing it means."""
    about = "A table of" if report.promise is None else "A table of about"
    head = f"{about} {report.rows:,} rows and {report.columns} columns was turned into a fair distribution."
    return " ".join(filter(None, [head, _delivery(report), _sharing(report)]))


def _delivery(report: Report) -> str:
    if report.mode == "weights":
        each = " and each of its outcomes" if report.relabelled else ""
        return f"Delivered: a weight for each of the {report.rows:,} rows{each}; no row is new."
    if report.mode == "top-up":
        return f"Delivered: {report.new_rows:,} rows to be added to the {report.rows:,}."
    how = "independently" if report.iid else "by quota"
    if report.for_report:
        return f"For this report, {report.new_rows:,} rows were drawn from it {how}."
    return f"Delivered: {report.new_rows:,} new rows, drawn {how}."


def _sharing(report: Report) -> str:
    """Say what a private fit promises, or how many of the new rows are copies of real ones."""
    if report.promise is not None:
        return f"It is {report.promise}. Counts, and all numbers before, are noisy estimates."
    share = report.certificate.copied_share
    if not share or report.mode != "rows":
        return ""
    copies = copies_of(redrawn=report.certificate.redrawn is not None)
    return f"About {round(share * report.new_rows):,} of them are copies of {copies.are}: {copies.mean}."


def verdict(report: Report) -> str:
    """Say what was reached; a rate that stands on too few people is not met without a reminder of that."""
    asked = [rate for rate in report.rates if rate.met is not None]
    met, exactly = (sum(getattr(rate, kind) is True for rate in asked) for kind in ("met", "met_exactly"))
    if not asked:
        return "No rate was asked for."
    which = {1: "The rate asked for is", 2: "Both rates asked for are"}.get(len(asked), f"All {len(asked)} rates are")
    reminder = ", but at the cost named in the warning above" if report.alerts else ""
    if met == len(asked):
        return f"{which} met{reminder}."
    rows = DELIVERED_NAMES[report.mode].lower()
    if exactly < len(asked):
        return f"{exactly} of {len(asked)} rates asked for are met by the distribution, {met} by the {rows}{reminder}."
    short = [rate for rate in asked if not rate.met]
    gap = f"{max(rate.gap or 0.0 for rate in short):.4f}"
    why = ", because a row cannot be split" if short[0].rounded else ""
    if all(rate.nearly_met for rate in short):
        return f"{which} met: exactly by the distribution, and to within {gap} by the {rows}{why}{reminder}."
    is_one_number = not any(rate.from_target or rate.gap is None for rate in short)
    count = f"meet {met or 'none'} of {len(asked)}" if met or not is_one_number else ""
    fall = f"fall short by up to {gap}{why}" if is_one_number else ""
    return f"{which} met by the distribution, but the {rows} {' and '.join(filter(None, [count, fall]))}{reminder}."


def state(report: Report, rate: Reached) -> tuple[str, str]:
    """Whether a rate was met, as a class of the page and in words; a tick only if the delivered rows meet it too.

    A row cannot be split, so a rate that the distribution has exactly may differ in the last digits among them.
    """
    if rate.met is None:
        return "", "not asked for"
    if rate.met or rate.nearly_met:
        met = "✓ met" if rate.met else "✓ met, rounded to whole rows"
        return ("short", f"{met}, but see the warning") if rate.costly else ("good", met)
    if not rate.met_exactly:
        return "bad", "✗ not met"
    what = {"rows": "these rows", "weights": "the weights", "top-up": "old and added rows"}[report.mode]
    by = "cannot be compared" if rate.gap is None else f"are {'off' if rate.from_target else 'short'} by {rate.gap:.4f}"
    return "short", f"met by the distribution, but {what} {by}"


def wanted_text(rate: Reached) -> str:
    """Write what was asked for."""
    shown = "any" if rate.wanted is None else f"{rate.wanted:.4f}"
    return f"{shown} (target)" if rate.from_target and rate.wanted is not None else shown


def last_costs(report: Report) -> str:
    """What is known of one person in a group."""
    copies = "most copies" if report.costs.counted else "expected copies"
    return "largest weight" if report.mode == "weights" else copies


def copies_note(report: Report) -> str:
    """Say which rows were counted, and what could not be."""
    if report.promise is not None:
        return (
            "No row of the data was used to draw the new rows, only noisy counts. A new row that equals a real one "
            "does so by chance, and that cannot be told without the data."
        )
    if report.copies is None:
        reason = "only weights were added" if report.mode == "weights" else "none had to be added"
        if report.mode == "weights" and report.relabelled:
            reason = "each appears once per outcome, with a weight"
        return f"All rows are real: {reason}. Sharing them means sharing the data."
    seed = "" if report.seed is None else f", with seed {report.seed}"
    drawn = f"The rows were drawn for this report{seed}." if report.for_report else "Counted in the delivered rows."
    if report.mode == "rows" and report.copies.rows < report.new_rows:
        drawn = f"{drawn} Of {report.new_rows:,} rows, the first {report.copies.rows:,} were checked."
    if report.copies.same_values is not None:
        return drawn
    return f"{drawn} Raw values were not compared, because the table itself was not available; a fit keeps only levels."


def not_estimated(report: Report) -> str:
    """Say how to learn what a model will do."""
    asked = Option("estimate", "weights" if report.mode == "weights" else "rows")
    parts = ("This was not estimated for this fit. To estimate it, fit again with ", asked, ".")
    return report.source.front_door.said(parts)
