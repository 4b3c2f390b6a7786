"""Writing a report to a file; the suffix says in which form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from fairmaxent.errors import StorageError
from fairmaxent.files.write import write_whole
from fairmaxent.fit.fit import Fit
from fairmaxent.report.browser import find_browser
from fairmaxent.report.build import Report, build_report
from fairmaxent.report.delivered import Mode
from fairmaxent.report.html import to_html
from fairmaxent.report.json import to_json
from fairmaxent.report.markdown import to_markdown
from fairmaxent.report.pdf import to_pdf
from fairmaxent.report.source import Source

_PDF = ".pdf"
_FORMS: dict[str, Callable[[Report], str | bytes]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".json": to_json,
    _PDF: to_pdf,
}


def write_report(
    fit: Fit,
    path: str | PathLike[str],
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
) -> None:
    """Write a report on a fit, for readers who did not run it.

    The first page answers what most readers ask; an appendix has the details. The same arguments and the same date
    give the same bytes, except in a PDF, in which the browser notes when it was printed.

    Parameters
    ----------
    fit
        What :func:`fairmaxent.debias` or :func:`fairmaxent.load` returned.
    path
        Where to write: ``.html`` (one file, needs jinja2), ``.pdf`` (also needs Chromium, Chrome or Edge), ``.md`` or
        ``.json``. An existing file is replaced.
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
    check_path(path)
    report = build_report(
        fit,
        data=data,
        delivered=delivered,
        mode=mode,
        iid=iid,
        seed=seed,
        source=source,
        trade_off=trade_off,
        evaluate=evaluate,
        title=title,
        author=author,
        purpose=purpose,
        date=date,
    )
    save_report(report, path)


def save_report(report: Report, path: str | PathLike[str]) -> None:
    """Write a report that was built; the suffix of the path says in which form."""
    content = _form(path)(report)
    write_whole(_path(path), content.encode() if isinstance(content, str) else content, readable=True)


def check_path(path: str | PathLike[str]) -> None:
    """Refuse, before any work, a path whose suffix names no form of a report, and a PDF without a browser."""
    _form(path)
    if _path(path).suffix.lower() == _PDF:
        find_browser()


def _path(path: str | PathLike[str]) -> Path:
    if not isinstance(path, str | PathLike):
        raise StorageError(f"path is a {type(path).__name__}; pass the name of a file, e.g. 'report.html'")
    return Path(path)


def _form(path: str | PathLike[str]) -> Callable[[Report], str | bytes]:
    suffix = _path(path).suffix.lower()
    if suffix not in _FORMS:
        raise StorageError(f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of these")
    return _FORMS[suffix]
