"""What commands write and where, and what a report is filed under."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from click.core import ParameterSource

from fairmaxent.cli.options import taking
from fairmaxent.cli.reading import refuse_overwriting
from fairmaxent.data.frames import load_library
from fairmaxent.files.excel_writer import check_sheet_rows
from fairmaxent.files.formats import FORMATS, FileFormat, as_polars, output_format
from fairmaxent.files.parquet import as_lazy, with_categories
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.options import option
from fairmaxent.progress import Progress, silent

if TYPE_CHECKING:
    from typing import Self

    from fairmaxent.data.domain import Domain
    from fairmaxent.fit.fit import Fit
    from fairmaxent.report.delivered import DrawnBatches, Mode

EstimateChoice = Literal["rows", "weights", "none"]
WEIGHT_NAME = "fair_weight"
MODES = ("rows", "weights", "top-up")

# ---------------------------------------------------------------- what several commands have

FORMAT: dict[str, Any] = {"choices": tuple(FORMATS), "help": "Format of the output; by default its suffix decides."}
PDF: dict[str, Any] = {
    "text": "file",
    "in_files": False,
    "label": "Also as PDF",
    "help": "Print the report to this PDF, if Chromium, Chrome or Edge is installed.",
    "page_help": "If Chromium, Chrome or Edge is installed.",
}
EVALUATE: dict[str, Any] = {
    "text": "flag",
    "label": "Judge the rows in the report",
    "only_if": {"mode": (None, "rows"), "epsilon": (None,)},
    "help": "Also say in the report what the rows give away about people: fit again without a fifth of the table, and "
    "attack the new rows.",
    "page_help": "The report then also says what the new rows give away about people. This takes a while.",
}
READABLE: dict[str, Any] = {
    "text": "flag",
    "in_files": False,
    "help": "Let other users of this computer read the files, if your umask allows. By default only you can; a file "
    "that is replaced keeps its permissions.",
}
FORCE: dict[str, Any] = {"text": "flag", "in_files": False, "help": "Replace existing files."}
JSON: dict[str, Any] = {"text": "flag", "in_files": False, "flags": ("--json",), "help": "Print JSON, for programs."}
SEED: dict[str, Any] = {"text": "whole", "flags": ("--seed", "--random-state"), "label": "Seed"}


@dataclass(frozen=True)
class FileOptions:
    """Where a table and a report on it are written."""

    HEADING = "What is written"

    output: str | None = option(
        None,
        main=True,
        flags=("-o", "--output"),
        text="file",
        in_files=False,
        help="Where to write the table; - is stdout.",
    )
    output_format: FileFormat | None = option(None, **FORMAT)
    like_input: bool = option(
        False,
        text="flag",
        help="Write the table in the form of DATA: its format, and the separator, decimal mark and encoding of a CSV.",
    )
    report: str | None = option(
        None, main=True, text="file", in_files=False, help="Write a report to this file (.html, .md, .json or .pdf)."
    )
    pdf: str | None = option(None, **PDF)
    readable_by_others: bool = option(False, **READABLE)
    force: bool = option(False, **FORCE)
    as_json: bool = option(False, **JSON)

    @property
    def targets(self) -> list[str]:
        """Every file to be written."""
        paths = (self.output, getattr(self, "model", None), *self.reports)
        return [path for path in paths if path is not None]

    @property
    def reports(self) -> list[str]:
        """The files that the report is written to."""
        return [path for path in (self.report, self.pdf) if path is not None]

    @property
    def readable(self) -> list[str]:
        """The files that other users may read: the report, which holds no rows, and the others if asked."""
        return self.targets if self.readable_by_others else self.reports

    def in_form(self, source: TableFile) -> Self:
        """The same, with the format of the input if the result is to be like it; refuse a name that means another."""
        if not self.like_input or self.output is None:
            return self
        return replace(self, output_format=output_format(self.output, self.output_format, source.form)[0])

    def write(self, frame: Any, source: TableFile, staging: Staging) -> tuple[str, ...]:
        """Write the table, and return what to know about the file."""
        form = source.form if self.like_input else None
        return staging.write_table(frame, self.output or "", format=self.output_format, form=form)

    def check_files(self, read: Sequence[str], *, is_folder: bool = False) -> None:
        """Refuse, before any work, what cannot go together."""
        refuse_overwriting(read, self.targets)
        if self.output is not None and not is_folder:
            output_format(self.output, self.output_format)
        if self.like_input and self.output is None:
            raise click.UsageError("--like-input is about the table that is written; name a file for it with -o")
        if self.output == STANDARD and self.as_json:
            raise click.UsageError("--json and '-o -' both write to stdout; write the table to a file")
        if STANDARD in self.targets[self.output is not None :]:
            raise click.UsageError(
                "only the table can be written to stdout; name a file for --model, --report and --pdf"
            )
        check_reports(self.report, self.pdf)
        context = click.get_current_context()
        for name in () if self.reports else ("title", "author", "purpose", "evaluate"):
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:  # a file may say it for other runs
                raise click.UsageError(f"--{name} is for a report, but none is written; add --report or --pdf")


def check_reports(*paths: str | None) -> None:
    """Refuse, before any work, reports that cannot be written; the last is a PDF."""
    from fairmaxent.report.writer import check_path

    if paths[-1] is not None and not paths[-1].lower().endswith(".pdf"):
        raise click.UsageError(f"--pdf is {paths[-1]}; end the name with .pdf")
    for path in paths:
        if path is not None:
            check_path(path)


def check_evaluated(mode: str, *, evaluate: bool) -> None:
    """Refuse to judge rows where none are drawn."""
    if evaluate and mode != "rows":
        raise click.UsageError(f"--evaluate judges new rows, so it is for --mode rows, not for --mode {mode}")


@dataclass(frozen=True)
class FilingOptions:
    """Title, author and purpose of the report."""

    HEADING = "The report"

    title: str | None = option(
        None, label="Title", help="Title of the report; by default it says what the report is about."
    )
    author: str | None = option(None, label="Author", help="Who answers for the report.")
    purpose: str | None = option(None, label="Purpose", help="What the result is for.")


# ---------------------------------------------------------------- of debias


@dataclass(frozen=True)
class OutputOptions(FileOptions):
    """What is written, and where."""

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
    estimate: EstimateChoice | None = option(
        None,
        choices=get_args(EstimateChoice),
        label="Estimate what a model will do",
        help="Estimate how a model trained on the rows or weights will treat people, which takes seconds to minutes.",
    )
    model: str | None = option(
        None,
        main=True,
        text="file",
        in_files=False,
        help="Save the model to this file, for 'fairmaxent sample' and 'fairmaxent report'.",
    )
    evaluate: bool = option(False, **EVALUATE)
    scheduler: str | None = option(
        None,
        metavar="ADDRESS",
        in_files=False,  # whoever runs it can run code here
        help="Address (tcp://HOST:PORT) of a Dask cluster, which reads the Parquet files DATA and writes Parquet files "
        "into the folder -o.",
    )

    def check(self, data: str) -> None:
        """Refuse, before any work, what cannot go together."""
        if self.scheduler is not None:
            self._check_scheduler()
        self.check_files([data], is_folder=self.scheduler is not None)
        if self.mode != "weights" and self.weight_name != WEIGHT_NAME:
            raise click.UsageError(f"--weight-name is for --mode weights, not for --mode {self.mode}")
        if self.mode != "rows" and (self.rows is not None or self.iid):
            raise click.UsageError(f"--rows and --iid are for --mode rows, not for --mode {self.mode}")
        check_evaluated(self.mode, evaluate=self.evaluate)

    def _check_scheduler(self) -> None:
        """Refuse what workers do not do."""
        in_memory = {
            "--estimate": self.estimate in ("rows", "weights"),
            "--report": self.report is not None,
            "--pdf": self.pdf is not None,
        }
        for name in (name for name, is_given in in_memory.items() if is_given):
            raise click.UsageError(
                f"{name} needs the rows in memory, but with --scheduler they stay on the cluster; leave one out"
            )
        if self.like_input:
            raise click.UsageError("--like-input is not needed with --scheduler, whose workers read and write Parquet")
        if self.mode != "rows":
            raise click.UsageError(
                f"--scheduler only works with --mode rows, not with --mode {self.mode}; for weights, use fit.weigh() "
                "in Python"
            )
        if self.output == STANDARD or self.output_format not in (None, "parquet"):
            raise click.UsageError("with --scheduler the workers write Parquet files; name a folder for them with -o")


filing_options = taking(FilingOptions, "filing")


# ---------------------------------------------------------------- writing rows


def write_drawn(
    fit: Fit,
    n: int,
    staging: Staging,
    target: str,
    *,
    format: FileFormat | None,
    drawn: DrawnBatches | None = None,
    progress: Progress = silent,
    **drawing: Any,
) -> None:
    """Draw rows and write them as they are drawn, in a table that may be larger than memory.

    Parquet takes texts as categories. ``drawing`` are options of `Fit.sample_batches`.
    """

    def watched(batches: Iterable[Any]) -> Iterator[Any]:
        done = 0
        for batch in batches:
            if drawn is not None:
                drawn.add(batch)
            yield batch
            done += len(batch)
            progress("rows", done / n)

    source, schema = fit, None
    kind = output_format(target, format)[0]
    if kind == "xlsx":
        check_sheet_rows(n)
    if kind == "parquet":
        schema = as_polars(fit.sample(1)).schema
        source = replace(fit, distribution=replace(fit.distribution, domain=with_categories(fit.domain)))
    batches = map(as_polars, source.sample_batches(n, **drawing))
    staging.write_table(as_lazy(watched(batches)), target, format=format, schema=schema)


_FORMULA = r"^[=+\-@\t\r]."  # a lone sign is none
_NUMBER = r"^[+\-]?[\d\s.,]+(?:[eE][+\-]?\d+)?\s*%?$"
_NAMED = 3  # names of columns


def formula_notes(table: Any, target: str | None, format: FileFormat | None) -> tuple[str, ...]:
    """Say if the table that was written is text, and a spreadsheet would take some of its cells for formulas.

    It is a polars table, or the domain that rows were drawn from.
    """
    if target in (None, STANDARD) or "delimiter" not in FORMATS[output_format(target or "", format)[0]].options:
        return ()
    names = formula_columns(table)
    if not names:
        return ()
    shown = ", ".join(repr(name) for name in names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
    return (
        f"{target} has cells that begin with =, +, - or @, in {shown}; a spreadsheet may run them as formulas, so "
        "import these columns as text",
    )


def formula_columns(table: Any) -> list[str]:
    """Return the names of the columns that have such a cell, or such a name.

    >>> import polars
    >>> table = polars.DataFrame({"a": ["=1+1", "x"], "b": ["-5,1", "-"], "c": ["-cmd|' /C calc'!A0", None]})
    >>> formula_columns(table)
    ['a', 'c']
    """
    polars = load_library("polars")
    texts = (polars.String, polars.Categorical, polars.Enum)
    domain: Domain | None = None if isinstance(table, polars.DataFrame) else table
    columns = table if domain is None else [each.values.to_polars().rename(each.name) for each in domain.attributes]

    def runs(column: Any) -> bool:
        values = polars.Series([column.name])
        if isinstance(column.dtype, texts):
            values = values.append(column.drop_nulls().cast(polars.String).rename(""))
        return bool((values.str.contains(_FORMULA) & ~values.str.contains(_NUMBER)).any())

    return [column.name for column in columns if runs(column)]
