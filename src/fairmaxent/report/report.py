"""The report: every number that is shown, and the sentences that all its parts have."""

import platform
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from typing import Any

from fairmaxent.data.levels import Notes
from fairmaxent.data.table import Names
from fairmaxent.errors import InputError
from fairmaxent.facts.groups import GroupChange
from fairmaxent.facts.output import Copies, DeliveredCosts, Mode, Reached
from fairmaxent.fit import refused
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import changes_by_column
from fairmaxent.fit.pipeline import with_estimate
from fairmaxent.fit.verification import checked_data
from fairmaxent.options import with_options_of
from fairmaxent.options.refusals import refuse
from fairmaxent.plain_text import Values, plain_json
from fairmaxent.report import shares
from fairmaxent.report.delivered import Delivered, copies, costs_of, deliver, output_of
from fairmaxent.report.rates import reached
from fairmaxent.report.refits import Evaluated, TradeOff, evaluated, trade_off
from fairmaxent.report.source import Filing, Source, call, filed
from fairmaxent.telling.case import Case
from fairmaxent.telling.costs import changed_lines
from fairmaxent.telling.entries import alerts, as_values, remarks
from fairmaxent.telling.sharing import promise_of
from fairmaxent.telling.wishes import outcomes_compared


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What a report is asked for.

    `data` is the table that the fit was made from, or a polars LazyFrame of it. A fit
    keeps levels, not raw values, so copies of real rows can only be counted exactly
    with the table.

    `result` is what was delivered, so that its rates are measured too, and `mode`
    what that is: drawn ``"rows"`` (:meth:`Fit.sample`), ``"weights"``, or rows to add
    (``"top-up"``). By default, as many new rows as in the data are drawn for the
    report. `iid` and `seed` say how rows were drawn, or are to be drawn, by default
    with the fit's seed.

    `source` is where the fit came from: its file, the command line, how the columns
    were read. With `trade_off`, a few more fits show what other options would cost.
    With `estimate`, it is estimated how a model trained on the fit's ``"rows"`` or
    ``"weights"`` will treat people; of a private fit, this spends nothing. With
    `evaluate`, which needs `data`, the report judges what drawn rows give away, as
    :func:`fairmaxent.evaluate` does: a fifth of the rows is set aside for that, and the
    fit made again from the rest, which takes some seconds.

    The report is filed under `title`, by default the outcome and the groups, `author`,
    `purpose` and `date`: when it was written, with a time zone; by default now, or what
    the environment variable SOURCE_DATE_EPOCH says.
    """

    REFUSED = refused.OUTPUTS

    data: Any = None
    result: Any = None
    mode: Mode = "rows"
    iid: bool = False
    seed: int | None = None
    source: Source | None = None
    trade_off: bool = True
    estimate: Any = None
    evaluate: bool = False
    title: str | None = None
    author: str | None = None
    purpose: str | None = None
    date: datetime | None = None


@dataclass(frozen=True)
class Report:
    """What was asked for and reached, what changed and costs, and how to repeat it."""

    filing: Filing
    outcome: str
    favourable: str  # the outcomes that the statistical rate compares, in words
    protected: Names
    rows: int
    distinct_rows: int  # as combinations of levels
    columns: int
    points: int  # |Ω|, all combinations of levels
    # costs beyond the line, with their remedies: the first thing that is said
    alerts: Notes
    # for how many people of each group the outcome was changed, and in which direction
    changed: Notes
    costs: DeliveredCosts
    wishes: Notes
    rates: tuple[Reached, ...]
    warnings: Notes  # everything else that a careful reader should know
    certificate: Certificate
    # as they were delivered; those of each protected column come first
    groups: tuple[GroupChange, ...]
    marginals: tuple[shares.Marginal, ...]
    associations: shares.Associations
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
    promise: str | None  # of a private fit; None: there is no such promise
    case: Case  # all that there is to say
    call: str
    versions: dict[str, str]

    def to_dict(self) -> Values:
        """Everything as plain values, for JSON; a number that is not finite is None."""
        stated = {key: value for key, value in vars(self).items() if key != "case"}
        values = stated | {
            "told": as_values(self.case),
            "source": self.source.to_dict(),
            "certificate": self.certificate.to_dict(),
        }
        return plain_json(values)

    @property
    def delivered_name(self) -> str:
        """What the rates of what was delivered are measured on."""
        assert self.case.output is not None
        return self.case.output.name

    def summary(self) -> str:
        """Say what was done, and what was delivered."""
        about = "about " if self.certificate.provenance.is_noisy else ""
        return (
            f"A table of {about}{self.rows:,} rows and {self.columns} columns was"
            f" turned into a distribution. {self._delivery()}"
        )

    def _delivery(self) -> str:
        if self.mode == "weights":
            each = " and each of its outcomes" if self.relabelled else ""
            return (
                f"Delivered: a weight for each of the {self.rows:,} rows{each}; no row"
                " is new."
            )
        if self.mode == "top-up":
            return (
                f"Delivered: {self.new_rows:,} rows to be added to the {self.rows:,}."
            )
        how = "independently" if self.iid else "by quota"
        if self.for_report:
            return f"For this report, {self.new_rows:,} rows were drawn from it {how}."
        return f"Delivered: {self.new_rows:,} new rows, drawn {how}."


@with_options_of(ReportRequest)
def build_report(fit: Certified, request: ReportRequest) -> Report:
    """Compute everything a report shows, as a :class:`ReportRequest` asks."""
    if not isinstance(fit, Certified):
        raise InputError(
            f"a report is about a fit, not a {type(fit).__name__}; pass what debias()"
            " or load() returned"
        )
    refuse(request, privacy=fit.certificate.privacy, likely=fit.request.likely)
    if request.estimate is not None:
        fit = with_estimate(fit, request.estimate)
    filing = filed(
        title=request.title,
        author=request.author,
        purpose=request.purpose,
        date=request.date,
    )
    data = checked_data(fit, request.data)
    delivered = deliver(
        fit,
        request.result,
        mode=request.mode,
        iid=request.iid,
        seed=request.seed,
    )
    return _collected(fit, request, filing, data, delivered)


def _collected(
    fit: Certified,
    request: ReportRequest,
    filing: Filing,
    data: Any,
    delivered: Delivered,
) -> Report:
    certificate = fit.certificate
    source = request.source or Source()
    spell = source.front_door.spell
    trades = TradeOff((), "it was not asked for")
    if request.trade_off:
        trades = trade_off(fit, spell=spell)
    evaluation = None
    if request.evaluate:
        evaluation = evaluated(fit, data, iid=request.iid, spell=spell)
    case = case_of(fit, request, delivered, data)
    assert case.output is not None
    return Report(
        filing=filing,
        outcome=", ".join(fit.roles.outcome_names),
        favourable=outcomes_compared(certificate.measure, fit.roles),
        protected=fit.roles.protected_names,
        rows=fit.table.size,
        distinct_rows=fit.table.distinct,
        columns=len(fit.domain.names),
        points=fit.domain.size,
        alerts=alerts(case),
        changed=tuple(changed_lines(certificate.costs)),
        costs=case.output.costs,
        wishes=case.wishes,
        rates=case.output.reached,
        warnings=remarks(case),
        certificate=certificate,
        groups=case.groups,
        marginals=shares.marginals(fit),
        associations=shares.associations(fit),
        trade_off=trades,
        mode=request.mode,
        relabelled=case.output.is_relabelled,
        iid=request.iid,
        new_rows=delivered.rows,
        for_report=request.result is None,
        copies=case.output.copies,
        evaluation=evaluation,
        seed=delivered.seed,
        source=source,
        promise=_promise(certificate),
        case=case,
        call=call(fit, delivered, source),
        versions=_versions(fit.domain.library),
    )


def _promise(certificate: Certificate) -> str | None:
    if certificate.privacy is None:
        return None
    return promise_of(certificate.privacy)


def case_of(
    fit: Certified, request: ReportRequest, delivered: Delivered, data: Any
) -> Case:
    """What there is to say of the fit and of what was delivered."""
    source = request.source or Source()
    output = replace(
        output_of(fit, delivered, costs_of(fit, delivered, data)),
        reached=tuple(reached(fit, delivered)),
        copies=copies(fit, delivered, data),
    )
    case = fit.case(
        output,
        estimable=request.mode,
        spell=source.front_door.spell,
        rest=" in the JSON report",
    )
    return replace(case, groups=changes_by_column(fit, delivered.table))


def _versions(library: str) -> dict[str, str]:
    libraries = sorted({"fairmaxent", "numpy", "narwhals", "scipy", library})
    versions = {name: version(name) for name in libraries}
    return {"python": platform.python_version(), **versions}
