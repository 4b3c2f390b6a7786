"""What `debias` writes and where, and what a report is filed under."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from click.core import ParameterSource

from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.options import taking
from fairmaxent.files.formats import FORMATS, FileFormat
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.files.formats import FileFormat
    from fairmaxent.files.reading import TableFile
    from fairmaxent.report.delivered import Mode

EstimateChoice = Literal["auto", "rows", "weights", "none"]
WEIGHT_NAME = "fair_weight"
MODES = ("rows", "weights", "top-up")
REPORT_HELP = "Write a report to this file (.html, .md, .json or .pdf)."


# ---------------------------------------------------------------- fields that several records have


def format_field() -> Any:
    """The format of a table that is written."""
    return option(None, choices=tuple(FORMATS), help="Format of the output; by default its suffix decides.")


def like_input_field() -> Any:
    """Whether a table is written in the form of the one that was read."""
    return option(
        False,
        text="flag",
        help="Write the table in the form of DATA: its format, and the separator, decimal mark and encoding of a CSV.",
    )


def pdf_field() -> Any:
    """Where the report is printed."""
    return option(
        None,
        text="file",
        in_files=False,
        label="Also as PDF",
        page_help="If Chromium, Chrome or Edge is installed.",
        help="Print the report to this PDF, if Chromium, Chrome or Edge is installed.",
    )


def evaluate_field() -> Any:
    """Whether the report judges the rows."""
    return option(
        False,
        text="flag",
        label="Judge the rows in the report",
        only_if={"mode": (None, "rows"), "epsilon": (None,)},
        help="Also say in the report what the rows give away about people: fit again without a fifth of the table, and "
        "attack the new rows.",
        page_help="The report then also says what the new rows give away about people. This takes a while.",
    )


def readable_field() -> Any:
    """Who may read the files."""
    return option(
        False,
        text="flag",
        in_files=False,
        help="Let other users of this computer read the files, if your umask allows. By default only you can; a file "
        "that is replaced keeps its permissions.",
    )


def force_field() -> Any:
    """Whether files are replaced."""
    return option(False, text="flag", in_files=False, help="Replace existing files.")


def json_field(*, main: bool = False) -> Any:
    """Whether a program reads the answer."""
    return option(False, main=main, text="flag", in_files=False, flags=("--json",), help="Print JSON, for programs.")


# ---------------------------------------------------------------- of debias


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    HEADING = "What is written"

    output: str | None = option(
        None,
        main=True,
        flags=("-o", "--output"),
        text="file",
        in_files=False,
        help="Where to write the fair table; - is stdout.",
    )
    output_format: FileFormat | None = format_field()
    like_input: bool = like_input_field()
    mode: Mode = option(
        "rows",
        main=True,
        choices=MODES,
        label="What to take",
        only_if={"epsilon": (None,), "release": (None,)},  # then nobody's row may be handed on
        choice_labels={
            "rows": "new rows",
            "weights": "your rows with weights",
            "top-up": "only the rows to add to yours",
        },
        choice_help={
            "rows": "To train on instead of yours.",
            "weights": "For learners that take sample weights.",
            "top-up": "To train on both.",
        },
        help="rows: new rows. weights: your rows with a column of weights. top-up: only the rows to add to yours.",
    )
    rows: int | None = option(
        None,
        main=True,
        text="whole",
        least=1,
        label="How many rows",
        only_if={"mode": (None, "rows")},
        page_help="If this is empty, as many as in the data.",
        help="How many new rows; by default as many as in the data (of a private fit: about as many).",
    )
    iid: bool = option(
        False,
        text="flag",
        label="Draw rows independently",
        only_if={"mode": (None, "rows")},
        help="Draw rows independently instead of by quota.",
        page_help="Their rates then vary by chance.",
    )
    weight_name: str = option(
        WEIGHT_NAME,
        label="Name of the weights",
        only_if={"mode": ("weights",)},
        help="Name of the column that --mode weights adds; it includes the design weights of --weight.",
        page_help="The name of the column of weights in the file.",
    )
    estimate: EstimateChoice = option(
        "auto",
        choices=get_args(EstimateChoice),
        label="Estimate what a model will do",
        help="Estimate how a model trained on the rows or weights will treat people; auto: on what is written, if that "
        "is quick.",
    )
    model: str | None = option(
        None,
        main=True,
        text="file",
        in_files=False,
        help="Save the model to this file, for 'fairmaxent sample' and 'fairmaxent report'.",
    )
    report: str | None = option(None, main=True, text="file", in_files=False, help=REPORT_HELP)
    pdf: str | None = pdf_field()
    evaluate: bool = evaluate_field()
    scheduler: str | None = option(
        None,
        metavar="ADDRESS",
        in_files=False,  # whoever runs it can run code here
        help="Address (tcp://HOST:PORT) of a Dask cluster, which reads the Parquet files DATA and writes Parquet files "
        "into the folder -o.",
    )
    readable_by_others: bool = readable_field()
    force: bool = force_field()
    as_json: bool = json_field()

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


# ---------------------------------------------------------------- the report


@dataclass(frozen=True)
class FilingOptions:
    """Title, author and purpose of the report."""

    HEADING = "The report"

    title: str | None = option(
        None, label="Title", help="Title of the report; by default it says what the report is about."
    )
    author: str | None = option(None, label="Author", help="Who answers for the report.")
    purpose: str | None = option(None, label="Purpose", help="What the result is for.")


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


output_options = taking(OutputOptions, "wanted")
filing_options = taking(FilingOptions, "filing")
