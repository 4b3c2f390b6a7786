"""What `debias` writes, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import click

from fairmaxent.cli.filing_options import (
    check_evaluated,
    check_reports,
    evaluate_option,
    pdf_option,
    refuse_without_report,
)
from fairmaxent.cli.help import section
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.option_types import FILE
from fairmaxent.cli.options import (
    force_option,
    json_option,
    like_input_option,
    output_format_option,
    readable_option,
    taking,
)

if TYPE_CHECKING:
    from fairmaxent.files.formats import FileFormat
    from fairmaxent.files.reading import TableFile
    from fairmaxent.report.delivered import Mode


WEIGHT_NAME = "fair_weight"
EstimateChoice = Literal["auto", "rows", "weights", "none"]


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    output: str | None
    output_format: FileFormat | None
    like_input: bool
    mode: Mode
    rows: int | None
    iid: bool
    weight_name: str
    estimate: EstimateChoice
    model: str | None
    report: str | None
    pdf: str | None
    evaluate: bool
    scheduler: str | None
    readable_by_others: bool
    force: bool
    as_json: bool

    @property
    def targets(self) -> list[str]:
        """Every file to be written."""
        return [target for target in (self.output, self.model, *self.reports) if target is not None]

    @property
    def reports(self) -> list[str]:
        """The files that the report is written to."""
        return [target for target in (self.report, self.pdf) if target is not None]

    @property
    def readable(self) -> list[str]:
        """The files that other users may read: the report, which holds no rows, and the others if asked."""
        return self.targets if self.readable_by_others else self.reports

    @property
    def data_on_stdout(self) -> bool:
        """Whether stdout carries the table."""
        return self.output == "-"

    def in_form(self, source: TableFile) -> OutputOptions:
        """The same, with the format of the input if the result is to be like it; refuse a name that means another."""
        if not self.like_input or self.output is None:
            return self
        from fairmaxent.files.formats import output_format

        return replace(self, output_format=output_format(self.output, self.output_format, source.form)[0])

    def check(self, data: str) -> None:
        """Refuse, before any work, what cannot go together."""
        from fairmaxent.files.formats import output_format

        refuse_overwriting([data], self.targets)
        if self.scheduler is not None:
            _check_scheduler(self)
        elif self.output is not None:
            output_format(self.output, self.output_format)
        if self.like_input and self.output is None:
            raise click.UsageError("--like-input is about the table that is written; name a file for it with -o")
        if self.data_on_stdout and self.as_json:
            raise click.UsageError("--json and '-o -' both write to stdout; write the table to a file")
        if self.mode != "weights" and self.weight_name != WEIGHT_NAME:
            raise click.UsageError(f"--weight-name is for --mode weights, not for --mode {self.mode}")
        if self.mode != "rows" and (self.rows is not None or self.iid):
            raise click.UsageError(f"--rows and --iid are for --mode rows, not for --mode {self.mode}")
        if "-" in (self.model, *self.reports):
            raise click.UsageError(
                "only the table can be written to stdout; name a file for --model, --report and --pdf"
            )
        check_reports(self.report, self.pdf)
        check_evaluated(self.mode, evaluate=self.evaluate)
        if not self.reports:
            refuse_without_report()


def _check_scheduler(wanted: OutputOptions) -> None:
    """Refuse what workers do not do."""
    if wanted.like_input:
        raise click.UsageError("--like-input is not needed with --scheduler, whose workers read and write Parquet")
    if wanted.estimate in ("rows", "weights"):
        raise click.UsageError("--estimate needs the rows in memory, but with --scheduler they stay on the cluster")
    if wanted.mode != "rows":
        raise click.UsageError(
            f"--scheduler only works with --mode rows, not with --mode {wanted.mode}; for weights, use fit.weigh() "
            "in Python"
        )
    if wanted.reports:
        option = "--pdf" if wanted.report is None else "--report"
        raise click.UsageError(
            f"{option} needs the rows in memory, but with --scheduler they stay on the cluster; leave one out"
        )
    if wanted.data_on_stdout or wanted.output_format not in (None, "parquet"):
        raise click.UsageError("with --scheduler the workers write Parquet files; name a folder for them with -o")


output_options = taking(
    OutputOptions,
    "wanted",
    *section(
        "What is written",
        click.option("-o", "--output", type=FILE, help="Where to write the fair table; - is stdout."),
        output_format_option,
        like_input_option,
        click.option(
            "--mode",
            type=click.Choice(["rows", "weights", "top-up"]),
            default="rows",
            show_default=True,
            help="rows: new rows. weights: your rows with a column of weights. top-up: only the rows to add to yours.",
        ),
        click.option(
            "--rows",
            type=click.IntRange(1),
            help="How many new rows; by default as many as in the data (of a private fit: about as many).",
        ),
        click.option("--iid", is_flag=True, help="Draw rows independently instead of by quota."),
        click.option(
            "--weight-name",
            default=WEIGHT_NAME,
            show_default=True,
            help="Name of the column that --mode weights adds; it includes the design weights of --weight.",
        ),
        click.option(
            "--estimate",
            type=click.Choice(["auto", "rows", "weights", "none"]),
            default="auto",
            show_default=True,
            help="Estimate how a model trained on the rows or weights will treat people; auto: on what is written, "
            "if that is quick.",
        ),
        click.option(
            "--model",
            type=FILE,
            help="Save the model to this file, for 'fairmaxent sample' and 'fairmaxent report'.",
        ),
        click.option("--report", type=FILE, help="Write a report to this file (.html, .md, .json or .pdf)."),
        pdf_option,
        evaluate_option,
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Address (tcp://HOST:PORT) of a Dask cluster, which reads the Parquet files DATA and writes Parquet "
            "files into the folder -o.",
        ),
        readable_option,
        force_option,
        json_option,
    ),
)
