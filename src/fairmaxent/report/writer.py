"""Writing a report to a file; the suffix says in which form."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from fairmaxent.document.html import to_page
from fairmaxent.document.markdown import to_markdown
from fairmaxent.errors import StorageError
from fairmaxent.files.write import write_whole
from fairmaxent.fit.fit import Fit
from fairmaxent.plain_text import json_text
from fairmaxent.report.browser import find_browser, print_pdf
from fairmaxent.report.facts import Report, build_report
from fairmaxent.report.first_page import first_page
from fairmaxent.report.sections import report_document
from fairmaxent.report.shares import PAGE

PDF = ".pdf"
Facts = TypeVar("Facts")
Forms = dict[str, Callable[[Facts], str | bytes]]


def html_report(report: Report, *, paper: str | None = None) -> str:
    """The report as one HTML file."""
    return to_page(report_document(report, PAGE), paper=paper)


def markdown_report(report: Report) -> str:
    """The same numbers, for a repository or a wiki."""
    return to_markdown(report_document(report))


def json_report(report: Report) -> str:
    """The first page as it is shown, then every number of the report at full precision."""
    return json_text({"first_page": first_page(report), **report.to_dict()}) + "\n"


_FORMS: Forms[Report] = {
    ".html": html_report,
    ".md": markdown_report,
    ".json": json_report,
    PDF: lambda report: print_pdf(html_report(report, paper="A4")),
}


def write_report(fit: Fit, path: str | PathLike[str], **options: Any) -> None:
    """Write a report on a fit, for readers who did not run it.

    The first page answers what most readers ask; an appendix has the details. The same arguments and the same date
    give the same bytes, except in a PDF, in which the browser notes when it was printed.

    Parameters
    ----------
    fit
        What :func:`fairmaxent.debias` or :func:`fairmaxent.load` returned.
    path
        Where to write: ``.html`` (one file), ``.pdf`` (needs Chromium, Chrome or Edge), ``.md`` or ``.json``. An
        existing file is replaced.
    options
        Those of :class:`fairmaxent.report.ReportRequest`: ``data``, ``delivered``, ``mode``, ``title`` and others.
    """
    check_path(path)
    save_report(build_report(fit, **options), path)


def save_report(report: Report, path: str | PathLike[str]) -> None:
    """Write a report that was built; the suffix of the path says in which form."""
    save_as(_FORMS, report, path)


def save_as(forms: Forms[Facts], facts: Facts, path: str | PathLike[str]) -> None:
    """Write facts in one of several forms, by the suffix of the path."""
    content = form_of(forms, path)(facts)
    write_whole(Path(path), content.encode() if isinstance(content, str) else content, readable=True)


def check_path(path: str | PathLike[str]) -> None:
    """Refuse, before any work, a path whose suffix names no form of a report, and a PDF without a browser."""
    form_of(_FORMS, path)
    if Path(path).suffix.lower() == PDF:
        find_browser()


def form_of(forms: Forms[Facts], path: str | PathLike[str]) -> Callable[[Facts], str | bytes]:
    """The form that the suffix of a path names."""
    if not isinstance(path, str | PathLike):
        raise StorageError(f"path is a {type(path).__name__}; pass the name of a file, e.g. 'report.html'")
    suffix = Path(path).suffix.lower()
    if suffix not in forms:
        raise StorageError(f"{path}: a report can be {', '.join(forms)}; end the name with one of these")
    return forms[suffix]
