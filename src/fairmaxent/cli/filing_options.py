"""What a report is filed under, as `debias` and `report` take it."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.core import ParameterSource

from fairmaxent.cli.help import section
from fairmaxent.cli.option_types import FILE
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


def check_evaluated(mode: str, *, evaluate: bool) -> None:
    """Refuse to judge rows where none are drawn."""
    if evaluate and mode != "rows":
        raise click.UsageError(f"--evaluate judges new rows, so it is for --mode rows, not for --mode {mode}")


def refuse_without_report() -> None:
    """Refuse what is typed about a report if none is written; a config file may say it for other runs."""
    context = click.get_current_context()
    for name in ("title", "author", "purpose", "evaluate"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for a report, but none is written; add --report or --pdf")


filing_options = taking(
    FilingOptions,
    "filing",
    *section(
        "The report",
        click.option("--title", help="Title of the report; by default it says what the report is about."),
        click.option("--author", help="Who answers for the report."),
        click.option("--purpose", help="What the result is for."),
    ),
)
evaluate_option = click.option(
    "--evaluate",
    is_flag=True,
    help="Also say in the report what the rows give away about people: fit again without a fifth of the table, and "
    "attack the new rows.",
)
pdf_option = click.option(
    "--pdf", type=FILE, help="Print the report to this PDF, if Chromium, Chrome or Edge is installed."
)
