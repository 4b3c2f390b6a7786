"""Writing a report to a file; the suffix says in which form."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from fairmaxent.errors import StorageError
from fairmaxent.files.atomic import write_whole
from fairmaxent.fit.fit import Fit
from fairmaxent.report.build import build_report
from fairmaxent.report.delivered import Mode
from fairmaxent.report.html import to_html
from fairmaxent.report.json import to_json
from fairmaxent.report.markdown import to_markdown
from fairmaxent.report.source import Source

_FORMS = {".html": to_html, ".md": to_markdown, ".json": to_json}


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
) -> None:
    """Write a report on a fit, for readers who did not run it; the same arguments give the same bytes.

    Parameters
    ----------
    fit
        What :func:`fairmaxent.debias` or :func:`fairmaxent.load` returned.
    path
        Where to write: ``.html`` (one file, needs jinja2), ``.md`` or ``.json``. An existing file is replaced.
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
    """
    target, render = _path(path), _form(path)
    report = build_report(
        fit, data=data, delivered=delivered, mode=mode, iid=iid, seed=seed, source=source, trade_off=trade_off
    )
    write_whole(target, render(report).encode(), readable=True)


def check_path(path: str | PathLike[str]) -> None:
    """Refuse a path whose suffix names no form of a report, before any work."""
    _form(path)


def _path(path: str | PathLike[str]) -> Path:
    if not isinstance(path, str | PathLike):
        raise StorageError(f"path is a {type(path).__name__}; pass the name of a file, e.g. 'report.html'")
    return Path(path)


def _form(path: str | PathLike[str]) -> Any:
    suffix = _path(path).suffix.lower()
    if suffix not in _FORMS:
        raise StorageError(f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of these")
    return _FORMS[suffix]
