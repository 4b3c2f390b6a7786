"""Writing a report on a fit, a raking or an inspection, in the form a suffix names."""

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairmaxent.document import Code, Document, Listing, Note, Section, Table
from fairmaxent.document.html import to_page
from fairmaxent.document.text import to_markdown
from fairmaxent.document.words import capital
from fairmaxent.errors import StorageError
from fairmaxent.files.reading import Name
from fairmaxent.files.write import write_whole
from fairmaxent.fit.certified import Certified
from fairmaxent.inspection.findings import (
    Inspection,
    answers,
    cautions,
    inspection_sections,
)
from fairmaxent.plain_text import Values, json_text
from fairmaxent.raking.certificate import MarginResult, RakingCertificate
from fairmaxent.raking.raking import Raking
from fairmaxent.report.report import Report, build_report
from fairmaxent.report.sections import report_document
from fairmaxent.report.source import Source, filed

_LEVELS = 33  # characters of a column's levels that a line on a sheet has room for
_MARGIN_HEADS = ("Level", "Rows", "Before", "Wanted", "After", "Effective rows")
# By the suffix of a path: what is written, given a document and the numbers that it is
# made from, at full precision.
_FORMS: dict[str, Callable[[Document, Values], str]] = {
    ".html": lambda document, _: to_page(document),
    ".md": lambda document, _: to_markdown(document),
    ".json": lambda _, numbers: json_text(numbers) + "\n",
}


def write_report(fit: Certified, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a report on a fit, which `debias` or `load` returned.

    It is for readers who did not run the fit. The first page answers what most of them
    ask; an appendix has the details. The same arguments and the same date give the same
    bytes.

    The path ends in ``.html`` (one file, which any browser prints, with the first page
    on one sheet), ``.md`` or ``.json``; an existing file is replaced. The options are
    those of :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    save_report(build_report(fit, **options), path)


def save_report(report: Report, path: Name) -> None:
    """Write a report that was built; as JSON, with the first page as it is shown."""
    document = report_document(report)
    shown = {"first_page": replace(document, appendix=())}
    _save(path, document, {**shown, **report.to_dict()})


def write_raking_report(
    raking: Raking,
    path: str | os.PathLike[str],
    *,
    source: Source | None = None,
    **filing: Any,
) -> None:
    """Write a report on a raking, which :func:`fairmaxent.rake` returned.

    The path, the source, and title, author, purpose and date mean the same as in a
    report on a fit, see :class:`fairmaxent.report.ReportRequest`.
    """
    check_path(path)
    source = source or Source()
    certificate = raking.certificate
    warnings = [*map(source.front_door.text_of, certificate.few_rows())]
    costs = Listing(tuple(f"{capital(line)}." for line in certificate.summary()))
    margins = [
        _margin(number, margin) for number, margin in enumerate(certificate.margins)
    ]
    page = Document(
        kind="Raking report",
        title="Weights for known margins",
        summary=_raking_summary(certificate),
        first_page=(
            Section("costs", "What the weights cost", "Costs", (costs,)),
            *margins,
        ),
    )
    notes = Note(
        "What you should know about these weights:", (*warnings, *certificate.notes)
    )
    numbers = {"certificate": certificate.to_dict() | {"warnings": warnings}}
    _save_page(path, page, notes, numbers, source, filing)


def write_inspection_report(
    inspection: Inspection,
    path: str | os.PathLike[str],
    *,
    source: Source | None = None,
    **filing: Any,
) -> None:
    """Write a report on an inspection, which :func:`fairmaxent.inspect` returned.

    The options are those of a report on a raking.
    """
    check_path(path)
    source = source or Source()
    spell = source.front_door.spell
    sections = inspection_sections(inspection, spell, _LEVELS)
    page = Document(
        kind="Inspection report",
        title="Is this table fair?",
        summary=" ".join(answers(inspection, spell)),
        first_page=tuple(section.titled() for section in sections),
    )
    notes = Note("What to watch out for:", cautions(inspection, spell))
    numbers = {"inspection": inspection.to_dict(spell)}
    _save_page(path, page, notes, numbers, source, filing)


def check_path(path: Name) -> None:
    """Refuse, before any work, a path that names no form of a report."""
    if not isinstance(path, str | os.PathLike):
        raise StorageError(
            f"path is a {type(path).__name__}; pass the name of a file, e.g."
            " 'report.html'"
        )
    suffix = Path(path).suffix.lower()
    if suffix == ".pdf":
        raise StorageError(
            f"{path}: a report is not written as PDF; write an .html one, which prints"
            " well from any browser"
        )
    if suffix not in _FORMS:
        raise StorageError(
            f"{path}: a report can be {', '.join(_FORMS)}; end the name with one of"
            " these"
        )


def _save_page(
    path: Name,
    page: Document,
    notes: Note,
    numbers: Values,
    source: Source,
    filing: Values,
) -> None:
    """Save a page with what it is filed under, where it comes from, and the command.

    A page has no appendix.
    """
    own = filed(**filing)
    own = replace(own, title=own.title or page.title)
    pairs = own.pairs
    if not filing:  # nobody could say who wrote it, and what for
        pairs = own.pairs[1:2]
    sections = [*page.first_page]
    if notes.items:
        sections.insert(0, Section("warning", "Note", "Note", (notes,)))
    record = source.section({"fairmaxent": version("fairmaxent")})
    if source.command is not None:
        record = replace(record, blocks=(*record.blocks, Code(source.command)))
    document = replace(
        page,
        title=own.title or "",
        filing=pairs,
        first_page=(*sections, record),
    )
    stated = {
        **asdict(own),
        "version": version("fairmaxent"),
        "source": source.to_dict(),
        **numbers,
    }
    _save(path, document, stated)


def _save(path: Name, document: Document, numbers: Values) -> None:
    content = _FORMS[Path(path).suffix.lower()](document, numbers)
    write_whole(Path(path), content.encode(), readable=True)


def _raking_summary(certificate: RakingCertificate) -> str:
    names = ", ".join(margin.name for margin in certificate.margins)
    if certificate.missed:
        missed = ", ".join(certificate.missed)
        return (
            f"Known margins are missed ({missed}): {certificate.conflict}. The"
            f" {certificate.rows:,} rows have the weights that come closest to them."
        )
    within = "" if certificate.bounds is None else " within the bounds"
    return (
        f"The {certificate.rows:,} rows were given weights so that the table has the"
        f" known margins ({names}). Of all such weights{within}, these change the table"
        " least."
    )


def _margin(number: int, margin: MarginResult) -> Section:
    rows = tuple(
        (
            level.level,
            f"{level.rows:,}",
            f"{100 * level.before:.2f}%",
            f"{100 * level.wanted:.2f}%",
            f"{100 * level.achieved:.2f}%",
            f"{level.effective_rows:,.0f}",
        )
        for level in margin.levels
    )
    table = Table(
        margin.name,
        _MARGIN_HEADS,
        rows,
        shares=tuple((level.before, level.achieved) for level in margin.levels),
        about="share of the total",
    )
    return Section(f"margin-{number}", margin.name, margin.name, (table,))
