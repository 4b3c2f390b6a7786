"""The report on a raking: margins before and after, and what the weights cost; one HTML, Markdown, JSON or PDF file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from os import PathLike

from fairmaxent.document import Block, Document, Note, Paragraph, Section, Table
from fairmaxent.document.html import to_page
from fairmaxent.document.markdown import to_markdown
from fairmaxent.plain_text import json_text
from fairmaxent.raking.certificate import MarginResult, RakingCertificate, few_rows_warnings
from fairmaxent.raking.problem import Bounds
from fairmaxent.raking.raking import Raking
from fairmaxent.report.browser import print_pdf
from fairmaxent.report.source import Filing, Source, filed
from fairmaxent.report.writer import PDF, Forms, form_of, save_as


@dataclass(frozen=True)
class RakingFacts:
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
    form_of(_FORMS, path)
    filing = filed(title=title, author=author, purpose=purpose, date=date)
    save_as(_FORMS, RakingFacts(raking.certificate, filing, Source() if source is None else source), path)


def _document(facts: RakingFacts) -> Document:
    filing, certificate = facts.filing, facts.certificate
    notes = (*facts.warnings, *certificate.notes)
    filed_under = (("Author", filing.author), ("Purpose", filing.purpose), ("Date", filing.date))
    margins = (
        Section(f"margin-{number}", margin.name, margin.name, (_margin_table(margin),))
        for number, margin in enumerate(certificate.margins)
    )
    return Document(
        kind="Raking report",
        title=facts.title,
        filing=tuple((name, value) for name, value in filed_under if value is not None),
        summary=_summary(certificate),
        warning=Note("What you should know about these weights:", notes) if notes else None,
        first_page=(
            Section("costs", "What the weights cost", "Costs", tuple(_costs(certificate))),
            *margins,
            Section(
                "origin", "Where this comes from", "Origin", (_pairs("Where this comes from", _origin(facts.source)),)
            ),
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


def _costs(certificate: RakingCertificate) -> Iterator[Block]:
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
    yield _pairs("What the weights cost", facts)
    yield Paragraph("Effective rows: how many equally weighted rows would carry as much information.")


def _margin_table(margin: MarginResult) -> Table:
    return Table(
        margin.name,
        ("Level", "Rows", "Before", "Wanted", "After", "Effective rows"),
        tuple(
            (
                level.level,
                f"{level.rows:,}",
                *(f"{100 * share:.2f}%" for share in (level.before, level.wanted, level.achieved)),
                f"{level.effective_rows:,.0f}",
            )
            for level in margin.levels
        ),
        shares=tuple((level.before, level.achieved) for level in margin.levels),
        about="share of the total",
    )


def _origin(source: Source) -> list[tuple[str, str]]:
    origin = [("File", source.file), ("SHA-256 of the file", source.sha256)]
    origin += [(written.what, f"{written.name}, SHA-256 {written.sha256}") for written in source.written]
    origin += [("How it was read", note) for note in source.reading] + [("Command", source.command)]
    origin.append(("Made by", f"fairmaxent {version('fairmaxent')}; {source.front_door.note}"))
    return [(name, value) for name, value in origin if value is not None]


def _pairs(label: str, pairs: list[tuple[str, str]]) -> Table:
    return Table(label, ("Quantity", "Value"), tuple(pairs))


def _json(facts: RakingFacts) -> str:
    record = {
        **asdict(facts.filing),
        "title": facts.title,
        "version": version("fairmaxent"),
        "source": facts.source.to_dict(),
        "certificate": facts.certificate.to_dict() | {"warnings": facts.warnings},
    }
    return json_text(record) + "\n"


_FORMS: Forms[RakingFacts] = {
    ".html": lambda facts: to_page(_document(facts)),
    ".md": lambda facts: to_markdown(_document(facts)),
    ".json": _json,
    PDF: lambda facts: print_pdf(to_page(_document(facts), paper="A4")),
}
