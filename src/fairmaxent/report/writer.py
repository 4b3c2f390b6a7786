"""Writing a report on a fit or on a raking to a file; the suffix says in which form."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from fairmaxent.document import Code, Document, Listing, Note, Section, Table
from fairmaxent.document.html import to_page
from fairmaxent.document.text import to_markdown
from fairmaxent.errors import StorageError
from fairmaxent.files.write import write_whole
from fairmaxent.fit.fit import Fit
from fairmaxent.plain_text import json_text
from fairmaxent.raking.certificate import MarginResult, RakingCertificate, few_rows_warnings
from fairmaxent.raking.raking import Raking
from fairmaxent.report.browser import find_browser, print_pdf
from fairmaxent.report.first_page import first_page
from fairmaxent.report.report import Report, build_report
from fairmaxent.report.sections import report_document
from fairmaxent.report.source import Filing, Source, filed


@dataclass(frozen=True)
class RakingReport:
    """What a report on a raking is made from."""

    certificate: RakingCertificate
    filing: Filing
    source: Source

    @property
    def title(self) -> str:
        """The title that was given, or what such a report is about."""
        return self.filing.title or "Weights for known margins"

    @property
    def warnings(self) -> list[str]:
        """Levels that rest on too few rows, with options spelled as readers know them."""
        return [*map(self.source.front_door.said, few_rows_warnings(self.certificate.margins))]


def html_report(report: Report | RakingReport, *, paper: str | None = None) -> str:
    """The report as one HTML file."""
    return to_page(_document(report), paper=paper)


def markdown_report(report: Report | RakingReport) -> str:
    """The same, for a repository or a wiki."""
    return to_markdown(_document(report))


def json_report(report: Report | RakingReport) -> str:
    """Every number at full precision; of a fit, first the first page as it is shown."""
    if isinstance(report, Report):
        return json_text({"first_page": first_page(report), **report.to_dict()}) + "\n"
    own = {"title": report.title, "version": version("fairmaxent"), "source": report.source.to_dict()}
    certificate = report.certificate.to_dict() | {"warnings": report.warnings}
    return json_text(asdict(report.filing) | own | {"certificate": certificate}) + "\n"


_FORMS: dict[str, Callable[[Report | RakingReport], str | bytes]] = {
    ".html": html_report,
    ".md": markdown_report,
    ".json": json_report,
    ".pdf": lambda report: print_pdf(html_report(report, paper="A4")),
}


def write_report(fit: Fit, path: str | PathLike[str], **options: Any) -> None:
    """Write a report on a fit, which `debias` or `load` returned, for readers who did not run it.

    The first page answers what most readers ask; an appendix has the details. The same arguments and the same date
    give the same bytes, except in a PDF, in which the browser notes when it was printed.

    The path ends in ``.html`` (one file), ``.pdf`` (needs Chromium, Chrome or Edge), ``.md`` or ``.json``; an existing
    file is replaced. The options are those of :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    save_report(build_report(fit, **options), path)


def write_raking_report(
    raking: Raking,
    path: str | PathLike[str],
    *,
    source: Source | None = None,
    title: str | None = None,
    author: str | None = None,
    purpose: str | None = None,
    date: datetime | None = None,
) -> None:
    """Write a report on a raking, which :func:`fairmaxent.rake` returned, for readers who did not run it.

    The path and the options mean the same as those of a report on a fit, see :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    filing = filed(title=title, author=author, purpose=purpose, date=date)
    save_report(RakingReport(raking.certificate, filing, Source() if source is None else source), path)


def save_report(report: Report | RakingReport, path: str | PathLike[str]) -> None:
    """Write a report that was built; the suffix of the path says in which form."""
    content = _FORMS[Path(path).suffix.lower()](report)
    write_whole(Path(path), content.encode() if isinstance(content, str) else content, readable=True)


def check_path(path: str | PathLike[str]) -> None:
    """Refuse, before any work, a path whose suffix names no form of a report, and a PDF without a browser."""
    if not isinstance(path, str | PathLike):
        raise StorageError(f"path is a {type(path).__name__}; pass the name of a file, e.g. 'report.html'")
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise StorageError(f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of these")
    if suffix == ".pdf":
        find_browser()


# ---------------------------------------------------------------- raking


def _document(report: Report | RakingReport) -> Document:
    if isinstance(report, Report):
        return report_document(report)
    certificate, source = report.certificate, report.source
    notes = (*report.warnings, *certificate.notes)
    costs = Listing(tuple(f"{line[:1].upper()}{line[1:]}." for line in certificate.summary()))
    record = source.section({"fairmaxent": version("fairmaxent")})
    command = [] if source.command is None else [Code(source.command)]
    return Document(
        kind="Raking report",
        title=report.title,
        filing=report.filing.pairs,
        summary=_summary(certificate),
        warning=Note("What you should know about these weights:", notes) if notes else None,
        first_page=(
            Section("costs", "What the weights cost", "Costs", (costs,)),
            *(_margin(number, margin) for number, margin in enumerate(certificate.margins)),
            replace(record, blocks=(*record.blocks, *command)),
        ),
        appendix=(),
        footer="Written by fairmaxent.",
    )


def _summary(certificate: RakingCertificate) -> str:
    names = ", ".join(margin.name for margin in certificate.margins)
    if certificate.missed:
        return (
            f"The known margins ({names}) contradict each other. The {certificate.rows:,} rows have the weights that "
            f"come closest to them; the largest error of a share is {100 * certificate.largest_error:.2g} percentage "
            "points."
        )
    within = "" if certificate.bounds is None else " within the bounds"
    return (
        f"The {certificate.rows:,} rows were given weights so that the table has the known margins ({names}). Of all "
        f"such weights{within}, these change the table least."
    )


def _margin(number: int, margin: MarginResult) -> Section:
    rows, shares = [], []
    for level in margin.levels:
        percents = (f"{100 * share:.2f}%" for share in (level.before, level.wanted, level.achieved))
        rows.append((level.level, f"{level.rows:,}", *percents, f"{level.effective_rows:,.0f}"))
        shares.append((level.before, level.achieved))
    heads = ("Level", "Rows", "Before", "Wanted", "After", "Effective rows")
    table = Table(margin.name, heads, tuple(rows), shares=tuple(shares), about="share of the total")
    return Section(f"margin-{number}", margin.name, margin.name, (table,))
