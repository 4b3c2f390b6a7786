"""Writing a report on a fit, a raking or an inspection to a file; the suffix says in
which form.

A PDF is printed by a Chromium on this computer: alone, offline, and with nothing left
behind.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairmaxent.document import Code, Document, Listing, Note, Section, Table
from fairmaxent.document.html import to_page
from fairmaxent.document.text import to_markdown
from fairmaxent.errors import DependencyError, StorageError, cut
from fairmaxent.files.write import write_whole
from fairmaxent.fit.fit import Fit
from fairmaxent.inspection.findings import (
    Inspection,
    answers,
    cautions,
    inspection_sections,
)
from fairmaxent.plain_text import json_text
from fairmaxent.raking.certificate import MarginResult, RakingCertificate
from fairmaxent.raking.raking import Raking
from fairmaxent.report.report import Report, build_report
from fairmaxent.report.sections import report_document
from fairmaxent.report.source import Source, filed

# Those that are packaged as snaps, which cannot read temporary files, come last.
_NAMES = (
    *(
        "google-chrome",
        "google-chrome-stable",
        "chrome",
        "microsoft-edge",
        "microsoft-edge-stable",
        "msedge",
    ),
    *("chromium", "chromium-browser"),
)
# Where browsers are on systems that do not put them on the path.
_PATHS = (
    *(
        f"/Applications/{name}.app/Contents/MacOS/{name}"
        for name in ("Google Chrome", "Chromium", "Microsoft Edge")
    ),
    *(
        rf"C:\Program Files{each}\Google\Chrome\Application\chrome.exe"
        for each in ("", " (x86)")
    ),
    *(
        rf"C:\Program Files{each}\Microsoft\Edge\Application\msedge.exe"
        for each in (" (x86)", "")
    ),
)
_OPTIONS = (
    *(
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--no-default-browser-check",
    ),
    "--no-pdf-header-footer",
    # The page asks for nothing; neither may the browser, e.g. for updates.
    *(
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--disable-background-networking",
        "--disable-component-update",
    ),
    *(
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-breakpad",
    ),
    "--disable-crash-reporter",
)
_PAGE = re.compile(rb"/Type\s*/Page\b")
# characters of a folder in which a browser can still make a socket, whose path may have
# 104
_LONGEST_FOLDER = 50
_LEVELS = 33  # characters of a column's levels that a line on a sheet has room for
_INSTEAD = "write an .html report and print it from any browser"
# By the suffix of a path: what is written, given a document and the numbers that it is
# made from, at full precision.
_FORMS: dict[str, Callable[[Document, Mapping[str, Any]], str | bytes]] = {
    ".html": lambda document, _: to_page(document),
    ".md": lambda document, _: to_markdown(document),
    ".json": lambda _, numbers: json_text(numbers) + "\n",
    ".pdf": lambda document, _: _printed(document),
}


def find_browser() -> str:
    """Return the path of a Chromium, or refuse with what to do."""
    found = [
        *filter(None, map(shutil.which, _NAMES)),
        *(path for path in _PATHS if os.access(path, os.X_OK)),
    ]
    if not found:
        raise DependencyError(
            "a PDF is printed by Chromium, Chrome or Edge, and none of them is on the"
            f" PATH; install one, e.g. with 'apt install chromium', or {_INSTEAD}"
        )
    return found[0]


# a report takes one to three
def print_pdf(page: str, *, seconds: float = 120.0) -> bytes:
    """Print a page to a PDF; the browser sees only temporary files, whose names we
    choose.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(
        prefix="fairmaxent-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name).resolve()
        source = folder / "report.html"
        target = folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        # It refuses to run as root otherwise; the page has no script.
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            as_root = ["--no-sandbox"]
        else:
            as_root = []
        options = [
            *_OPTIONS,
            f"--user-data-dir={folder / 'profile'}",
            *as_root,
            f"--print-to-pdf={target}",
        ]
        reason = _run([browser, *options, source.as_uri()], folder, seconds)
        if target.is_file():
            content = target.read_bytes()
        else:
            content = b""
    if not content.startswith(b"%PDF-") or b"%%EOF" not in content[-64:]:
        if reason:
            because = f" ({cut(reason, 200)})"
        else:
            because = ""
        raise StorageError(f"{browser} did not print a PDF{because}; {_INSTEAD}")
    return content


def _run(command: list[str], folder: Path, seconds: float) -> str:
    """Run a browser until it is done or time is up, and return the last line of what it
    said if it failed.
    """
    kept = {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    if len(str(folder)) <= _LONGEST_FOLDER:
        kept["TMPDIR"] = str(folder)  # so that nothing stays if it has to be ended
    # What it says goes to a file: a child that outlives it would keep a pipe open. None
    # of its processes stays.
    with open(folder / "output", "w+b") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **kept},
                cwd=folder,
                # so that Ctrl-C reaches us alone, and its children end with it
                start_new_session=True,
            )
        except OSError as problem:
            raise StorageError(
                f"{command[0]} cannot be run: {problem.strerror}; {_INSTEAD}"
            ) from problem
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as problem:
            raise StorageError(
                f"{command[0]} did not print within {seconds:g} seconds; {_INSTEAD}"
            ) from problem
        finally:
            with contextlib.suppress(OSError):
                (
                    os.killpg(process.pid, signal.SIGKILL)
                    if hasattr(os, "killpg")
                    else process.kill()
                )
            process.wait()
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
        if lines and process.returncode:
            return lines[-1]
        return ""


def _printed(document: Document) -> bytes:
    """A PDF: of a document with an appendix, one sheet with the first page, in smaller
    print if it needs that.
    """
    more = (
        " The appendix is in the other forms of this report, such as HTML."
        if document.appendix
        else ""
    )
    # what has no appendix may take more sheets, but not for a few lines
    if more:
        smaller = (0.8, 0.7, 0.6, 0.5)
    else:
        smaller = ()
    for size in (1.0, 0.9, *smaller):
        sheet = replace(
            document, appendix=(), footer=f"{document.footer}{more}", print_size=size
        )
        content = print_pdf(to_page(sheet, paper="A4"))
        if len(_PAGE.findall(content)) <= 1:
            break
    return content


def write_report(fit: Fit, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a report on a fit, which `debias` or `load` returned, for readers who did
    not run it.

    The first page answers what most readers ask; an appendix has the details. The same
    arguments and the same date give the same bytes, except in a PDF, in which the
    browser notes when it was printed.

    The path ends in ``.html`` (one file), ``.pdf`` (the first page; needs Chromium,
    Chrome or Edge), ``.md`` or ``.json``; an existing file is replaced. The options are
    those of :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    save_report(build_report(fit, **options), path)


def write_raking_report(
    raking: Raking,
    path: str | os.PathLike[str],
    *,
    source: Source | None = None,
    **filing: Any,
) -> None:
    """Write a report on a raking, which :func:`fairmaxent.rake` returned, for readers
    who did not run it.

    The path, the source, and title, author, purpose and date mean the same as in a
    report on a fit, see :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    source = source or Source()
    certificate = raking.certificate
    warnings = [*map(source.front_door.text_of, certificate.few_rows())]
    notes = Note(
        "What you should know about these weights:", (*warnings, *certificate.notes)
    )
    costs = Listing(
        tuple(f"{line[:1].upper()}{line[1:]}." for line in certificate.summary())
    )
    sections = [Section("costs", "What the weights cost", "Costs", (costs,))]
    sections += [
        _margin(number, margin) for number, margin in enumerate(certificate.margins)
    ]
    page = (
        "Raking report",
        "Weights for known margins",
        _summary(certificate),
        notes,
        sections,
    )
    _save_short(
        path,
        page,
        source,
        filing,
        {"certificate": certificate.to_dict() | {"warnings": warnings}},
    )


def write_inspection_report(
    inspection: Inspection,
    path: str | os.PathLike[str],
    *,
    source: Source | None = None,
    **filing: Any,
) -> None:
    """Write a report on an inspection, which :func:`fairmaxent.inspect` returned, with
    the options for a raking.
    """
    check_path(path)
    source = source or Source()
    spell = source.front_door.spell
    summary = " ".join(answers(inspection, spell))
    notes = Note("What to watch out for:", cautions(inspection, spell))
    sections = [
        section.titled() for section in inspection_sections(inspection, spell, _LEVELS)
    ]
    page = "Inspection report", "Is this table fair?", summary, notes, sections
    _save_short(path, page, source, filing, {"inspection": inspection.to_dict(spell)})


def save_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report that was built; the JSON form has the first page as it is shown,
    too.
    """
    document = report_document(report)
    _save(
        path,
        document,
        {"first_page": replace(document, appendix=()), **report.to_dict()},
    )


def _save(
    path: str | os.PathLike[str], document: Document, numbers: Mapping[str, Any]
) -> None:
    content = _FORMS[Path(path).suffix.lower()](document, numbers)
    write_whole(
        Path(path),
        content.encode() if isinstance(content, str) else content,
        readable=True,
    )


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a path whose suffix names no form of a report, and a PDF
    without a browser.
    """
    if not isinstance(path, str | os.PathLike):
        raise StorageError(
            f"path is a {type(path).__name__}; pass the name of a file, e.g."
            " 'report.html'"
        )
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise StorageError(
            f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of"
            " these"
        )
    if suffix == ".pdf":
        find_browser()


def _save_short(
    path: str | os.PathLike[str],
    page: Sequence[Any],
    source: Source,
    filing: Mapping[str, Any],
    numbers: Mapping[str, Any],
) -> None:
    """Save a report of one page: its kind, title, summary, notes and sections, where it
    comes from, and the command.
    """
    kind, title, summary, notes, sections = page
    own = filed(**filing)
    record = source.section({"fairmaxent": version("fairmaxent")})
    own = replace(own, title=own.title or title)
    record = replace(
        record,
        blocks=(
            *record.blocks,
            *([] if source.command is None else [Code(source.command)]),
        ),
    )
    if notes.items:
        warning = [Section("warning", "Note", "Note", (notes,))]
    else:
        warning = []
    # not who, if nobody could say it
    footer = "Written by fairmaxent."
    if filing:
        pairs = own.pairs
    else:
        pairs = own.pairs[1:2]
    document = Document(
        kind, own.title or "", pairs, summary, (*warning, *sections, record), (), footer
    )
    _save(
        path,
        document,
        {
            **asdict(own),
            "version": version("fairmaxent"),
            "source": source.to_dict(),
            **numbers,
        },
    )


def _summary(certificate: RakingCertificate) -> str:
    names = ", ".join(margin.name for margin in certificate.margins)
    if certificate.missed:
        return (
            f"Known margins are missed ({names}): {certificate.conflict}. The"
            f" {certificate.rows:,} rows have the weights that come closest to them;"
            f" the largest error of a share is {100 * certificate.largest_error:.2g}"
            " percentage points."
        )
    within = "" if certificate.bounds is None else " within the bounds"
    return (
        f"The {certificate.rows:,} rows were given weights so that the table has the"
        f" known margins ({names}). Of all such weights{within}, these change the table"
        " least."
    )


def _margin(number: int, margin: MarginResult) -> Section:
    rows = []
    shares = []
    for level in margin.levels:
        percents = (
            f"{100 * share:.2f}%"
            for share in (level.before, level.wanted, level.achieved)
        )
        rows.append(
            (level.level, f"{level.rows:,}", *percents, f"{level.effective_rows:,.0f}")
        )
        shares.append((level.before, level.achieved))
    heads = ("Level", "Rows", "Before", "Wanted", "After", "Effective rows")
    table = Table(
        margin.name,
        heads,
        tuple(rows),
        shares=tuple(shares),
        about="share of the total",
    )
    return Section(f"margin-{number}", margin.name, margin.name, (table,))
