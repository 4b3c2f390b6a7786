"""The report on a raking: margins before and after, and what the weights cost; one HTML, Markdown or JSON file.

The HTML has no script and loads nothing; every name and value from the data is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from html import escape
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from fairmaxent.errors import StorageError
from fairmaxent.files.write import write_whole
from fairmaxent.plain_text import escaped_json, isolated
from fairmaxent.raking.certificate import MarginLevel, MarginResult, RakingCertificate, few_rows_warnings
from fairmaxent.raking.problem import Bounds
from fairmaxent.raking.raking import Raking
from fairmaxent.report.browser import find_browser, print_pdf
from fairmaxent.report.filing import Filing, filed
from fairmaxent.report.source import Source

_HEAD = ("Level", "Rows", "Before", "Wanted", "After", "Effective rows")
_STYLE = """
:root{color-scheme:light dark;--line:#8885;--old:#9aa5b1;--new:#0f766e}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{line-height:1.2}table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child{text-align:left;overflow-wrap:anywhere}.wrap{overflow-x:auto}
tbody td{white-space:nowrap}.plain td{white-space:normal;overflow-wrap:anywhere}
.bars{width:25%;min-width:6rem}.bar{display:block;height:.45rem;background:var(--old)}.new{background:var(--new)}
.key{display:inline-block;width:1.5rem;height:.45rem;background:var(--old)}.key.new{background:var(--new)}
.note{border-left:.3rem solid var(--new);padding-left:1rem}code{overflow-wrap:anywhere}
@media print{body{max-width:none;margin:0}tr{break-inside:avoid}.bar,.key{print-color-adjust:exact}}
"""


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
    """Write a report on a raking, for readers who did not run it; the same arguments and date give the same bytes.

    Parameters
    ----------
    raking
        What :func:`fairmaxent.rake` returned.
    path
        Where to write: ``.html``, ``.pdf`` (needs Chromium, Chrome or Edge), ``.md`` or ``.json``. An existing file is
        replaced.
    source
        Where the table came from: its file, and the command line.
    title, author, purpose
        What the report is filed under.
    date
        When it was written, with a time zone; by default now, or what the environment variable SOURCE_DATE_EPOCH says.
    """
    render = _form(path)
    filing = filed(title=title, author=author, purpose=purpose, date=date)
    content = render(raking.certificate, filing, Source() if source is None else source)
    write_whole(Path(path), content.encode() if isinstance(content, str) else content, readable=True)


def check_raking_path(path: str | PathLike[str]) -> None:
    """Refuse, before any work, a path whose suffix names no form of a report, and a PDF without a browser."""
    if _form(path) is _pdf:
        find_browser()


def _form(path: str | PathLike[str]) -> Callable[[RakingCertificate, Filing, Source], str | bytes]:
    if not isinstance(path, str | PathLike):
        raise StorageError(f"path is a {type(path).__name__}; pass the name of a file, e.g. 'report.html'")
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise StorageError(f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of these")
    return _FORMS[suffix]


# ---------------------------------------------------------------- what is said


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


def _notes(certificate: RakingCertificate, source: Source) -> list[str]:
    """What to know, the warnings first."""
    return [*map(source.front_door.said, few_rows_warnings(certificate.margins)), *certificate.notes]


def _title(filing: Filing) -> str:
    return filing.title or "Weights for known margins"


def _filing(filing: Filing) -> list[tuple[str, str]]:
    """What it is filed under, as far as that was given."""
    known = [("Author", filing.author), ("Purpose", filing.purpose), ("Date", filing.date)]
    return [(name, value) for name, value in known if value is not None]


def _facts(certificate: RakingCertificate) -> list[tuple[str, str]]:
    low, high = certificate.weights
    facts = [
        ("Largest error of a share", f"{certificate.largest_error:.1e}"),
        ("Total of the weights", f"{certificate.total:,.10g}"),
        ("Smallest and largest weight", f"{low:.4g} and {high:.4g}"),
        ("Factors by which weights changed", f"{certificate.factors[0]:.4g} to {certificate.factors[1]:.4g}"),
        ("Design effect (Kish)", f"{certificate.design_effect:.3f}"),
        ("Effective rows", f"{certificate.effective_rows:,.0f} of {certificate.rows:,}"),
    ]
    if certificate.bounds is not None:
        facts.append(("Factors that were allowed", Bounds(*certificate.bounds).text))
        facts.append(("Rows whose factor is a bound", f"{certificate.rows_at_bounds:,}"))
    return facts


def _origin(source: Source) -> list[tuple[str, str]]:
    made = [("Made by", f"fairmaxent {version('fairmaxent')}; {source.front_door.note}")]
    known = [("File", source.file), ("SHA-256 of the file", source.sha256)]
    known += [(written.what, f"{written.name}, SHA-256 {written.sha256}") for written in source.written]
    known += [("How it was read", note) for note in source.reading] + [("Command", source.command)]
    return [(name, value) for name, value in known if value is not None] + made


def _cells(level: MarginLevel) -> list[str]:
    shares = (level.before, level.wanted, level.achieved)
    return [f"{level.rows:,}", *(f"{100 * share:.2f}%" for share in shares), f"{level.effective_rows:,.0f}"]


# ---------------------------------------------------------------- forms


def _html(certificate: RakingCertificate, filing: Filing, source: Source) -> str:
    title = _title(filing)
    notes = "".join(f"<li>{_safe(note)}</li>" for note in _notes(certificate, source))
    parts = [
        f"<h1>{_safe(title)}</h1>\n{_pairs(_filing(filing))}\n<p>{_safe(_summary(certificate))}</p>",
        f'<div class="note"><ul>{notes}</ul></div>' if notes else "",
        "<h2>What the weights cost</h2>",
        _pairs(_facts(certificate)),
        "<p>Effective rows: how many equally weighted rows would carry as much information.</p>",
        '<p>Bars: share of the total <span class="key"></span> before, and <span class="key new"></span> after.</p>',
        *(_margin_html(margin) for margin in certificate.margins),
        "<h2>Where this comes from</h2>",
        _pairs(_origin(source)),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{_safe(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _margin_html(margin: MarginResult) -> str:
    longest = max(max(level.before, level.achieved) for level in margin.levels) or 1.0
    head = "".join(f'<th scope="col">{name}</th>' for name in _HEAD)
    rows = []
    for level in margin.levels:
        bars = "".join(
            f'<span class="bar{kind}" style="width:{100 * share / longest:.1f}%"></span>'
            for kind, share in (("", level.before), (" new", level.achieved))
        )
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(level))
        rows.append(
            f'<tr><th scope="row">{_safe(level.level)}</th>{cells}<td class="bars" aria-hidden="true">{bars}</td></tr>'
        )
    table = f"<table>\n<thead><tr>{head}<td></td></tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>"
    return f'<h2>{_safe(margin.name)}</h2>\n<div class="wrap">\n{table}\n</div>'


def _pairs(pairs: list[tuple[str, str]]) -> str:
    rows = "\n".join(f'<tr><th scope="row">{_safe(name)}</th><td>{_safe(value)}</td></tr>' for name, value in pairs)
    return f'<table class="plain">\n<tbody>\n{rows}\n</tbody>\n</table>'


def _safe(text: str) -> str:
    return escape(isolated(text))


def _pdf(certificate: RakingCertificate, filing: Filing, source: Source) -> bytes:
    return print_pdf(_html(certificate, filing, source).replace("</style>", "@page{size:A4}</style>", 1))


def _markdown(certificate: RakingCertificate, filing: Filing, source: Source) -> str:
    notes = _notes(certificate, source)
    lines = [f"# {_plain(_title(filing))}", ""]
    lines += [f"{name}: {_plain(value)}  " for name, value in _filing(filing)] + [""]
    lines += [_plain(_summary(certificate)), ""]
    lines += [f"- {_plain(note)}" for note in notes] + [""] * bool(notes)
    lines += ["## What the weights cost", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_plain(value)} |" for name, value in _facts(certificate)]
    for margin in certificate.margins:
        lines += ["", f"## {_plain(margin.name)}", "", f"| {' | '.join(_HEAD)} |", f"|---{'|---:' * (len(_HEAD) - 1)}|"]
        lines += [f"| {' | '.join([_plain(level.level), *_cells(level)])} |" for level in margin.levels]
    lines += ["", "## Where this comes from", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_plain(value)} |" for name, value in _origin(source)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Write text on one line in which no character is markup."""
    joined = " ".join(isolated(text).split())
    return "".join(f"\\{mark}" if mark in "\\`*_[]<>#|&!" else mark for mark in joined)


def _json(certificate: RakingCertificate, filing: Filing, source: Source) -> str:
    record = {
        **asdict(filing),
        "title": _title(filing),
        "version": version("fairmaxent"),
        "source": source.to_dict(),
        "certificate": certificate.to_dict()
        | {"warnings": [*map(source.front_door.said, few_rows_warnings(certificate.margins))]},
    }
    if certificate.bounds is not None and certificate.bounds[1] == float("inf"):
        record["certificate"] |= {"bounds": (certificate.bounds[0], None)}
    return escaped_json(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


_FORMS: dict[str, Callable[[RakingCertificate, Filing, Source], str | bytes]] = {
    ".html": _html,
    ".md": _markdown,
    ".json": _json,
    ".pdf": _pdf,
}
