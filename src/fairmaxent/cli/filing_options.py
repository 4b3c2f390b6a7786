"""What a report is filed under, as `debias` and `report` take it."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.core import ParameterSource

from fairmaxent.cli.help import section
from fairmaxent.cli.options import taking


@dataclass(frozen=True)
class FilingOptions:
    """Title, author and purpose of the report."""

    title: str | None
    author: str | None
    purpose: str | None


def check_reports(report: str | None, pdf: str | None) -> None:
    """Refuse, before any work, reports that cannot be written."""
    if pdf is not None and not pdf.lower().endswith(".pdf"):
        raise click.UsageError(f"--pdf is {pdf}; end the name with .pdf")
    for path in (report, pdf):
        if path is not None:
            from fairmaxent.report.writer import check_path

            check_path(path)


def refuse_without_report() -> None:
    """Refuse what is typed about a report if none is written; a config file may say it for other runs."""
    context = click.get_current_context()
    for name in ("title", "author", "purpose"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for a report, but none is written; add --report or --pdf")


filing_options = taking(
    FilingOptions,
    "filing",
    *section(
        "The report",
        click.option("--title", help="Title of the report; by default it names the outcome and the groups."),
        click.option("--author", help="Who answers for the report."),
        click.option("--purpose", help="What the result is for."),
    ),
)
pdf_option = click.option(
    "--pdf", type=click.Path(), help="Print the report to this PDF, if Chromium, Chrome or Edge is installed."
)
