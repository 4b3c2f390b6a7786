"""What commands write and where, and what a report is filed under."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import click

from fairmaxent.cli.reading import DomainOptions, check_files
from fairmaxent.cli.values import as_typed
from fairmaxent.data.frames import load_library
from fairmaxent.data.levels import Notes
from fairmaxent.document.words import counted
from fairmaxent.errors import Option
from fairmaxent.files.content import file_sha256
from fairmaxent.files.excel_writer import check_sheet_rows
from fairmaxent.files.formats import FORMATS, FileFormat, as_polars, output_format
from fairmaxent.files.parquet import as_lazy, with_categories
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.fit.refused import OLD_ROWS
from fairmaxent.options import Settings, option
from fairmaxent.options.refusals import GIVEN, MISSING, Pattern, Refused
from fairmaxent.progress import Progress, silent

if TYPE_CHECKING:
    from fairmaxent.fit.certified import Certified
    from fairmaxent.report.delivered import DrawnBatches
    from fairmaxent.report.source import Source

TrainedOn = Literal["rows", "weights"]
EstimateChoice = Literal[TrainedOn, "none"]
Mode = Literal["rows", "weights", "top-up"]

# ---------------------------------------------------------------- in several commands

FORMAT: Settings = {
    "choices": tuple(FORMATS),
    "help": "Format of the output; by default its suffix decides.",
}
EVALUATE: Settings = {
    "text": "flag",
    "label": "Judge the rows in the report",
    "help": (
        "Also say in the report what the rows give away about people: fit again without"
        " a fifth of the table, and attack the new rows."
    ),
    "page_help": (
        "The report then also says what the new rows give away about people. This takes"
        " a while."
    ),
}
TARGET: Settings = {"text": "target", "in_files": False}
READABLE: Settings = {
    "text": "flag",
    "in_files": False,
    "help": (
        "Let other users of this computer read the files, if your umask allows. By"
        " default only you can; a file that is replaced keeps its permissions."
    ),
}
FORCE: Settings = {
    "text": "flag",
    "in_files": False,
    "help": "Replace existing files.",
}
JSON: Settings = {
    "text": "flag",
    "in_files": False,
    "help": "Print JSON, for programs.",
}
REPORT: Settings = {
    **TARGET,
    "help": "Write a report to this file (.html, .md or .json).",
}
_REPORT = "The report"
_IN_MEMORY = "that needs the rows in memory, but they stay on the cluster"
_NO_PARQUET: dict[str, Pattern] = {
    "like_input": GIVEN,
    "output_format": tuple(name for name in FORMATS if name != "parquet"),
    "output": (STANDARD,),
}
SEED: Settings = {
    "text": "whole",
    "flags": ("--seed", "--random-state"),
    "label": "Seed",
}
_FORMULA = r"^[=+\-@\t\r]."  # a lone sign is none
_NUMBER = r"^[+\-]?[\d\s.,]+(?:[eE][+\-]?\d+)?\s*%?$"


def _is_typed(name: str, _: FileOptions) -> bool:
    """Unless a config file says it, for other runs."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


@dataclass(frozen=True)
class FilingOptions:
    """What a report is filed under."""

    title: str | None = option(
        None,
        label="Title",
        heading=_REPORT,
        help="Title of the report; by default it says what the report is about.",
    )
    author: str | None = option(
        None,
        label="Author",
        heading=_REPORT,
        help="Who answers for the report.",
    )
    purpose: str | None = option(
        None,
        label="Purpose",
        heading=_REPORT,
        help="What the result is for. The documentation has a page on the law.",
    )
    force: bool = option(False, **FORCE)

    @property
    def filing(self) -> Settings:
        """Title, author and purpose."""
        return {
            "title": self.title,
            "author": self.author,
            "purpose": self.purpose,
        }


@dataclass(frozen=True)
class FileOptions(FilingOptions):
    """Where a table and a report on it are written."""

    HEADING = "What is written"
    REFUSED: ClassVar[tuple[Refused, ...]] = (
        Refused("like_input", "output", "no table is written", beside=MISSING),
        Refused(
            "like_input",
            "privacy",
            "a private table cannot have the form of your file, such as its encoding",
        ),
        Refused(
            "json",
            "output",
            "both write to stdout",
            "write the table to a file",
            beside=(STANDARD,),
        ),
        *(
            Refused(
                name,
                "report",
                "none is written",
                beside=MISSING,
                when=partial(_is_typed, name),
            )
            for name in ("title", "author", "purpose", "evaluate")
        ),
    )

    output: str | None = option(
        None,
        main=True,
        flags=("-o", "--output"),
        **TARGET,
        help="File for the table; - is stdout.",
    )
    output_format: FileFormat | None = option(None, **FORMAT)
    like_input: bool = option(
        False,
        text="flag",
        help=(
            "Write the table in the form of DATA: its format, and the separator,"
            " decimal mark and encoding of a CSV."
        ),
    )
    report: str | None = option(None, main=True, **REPORT)
    readable_by_others: bool = option(False, **READABLE)
    json: bool = option(False, **JSON)

    @property
    def targets(self) -> list[str]:
        """Every file to be written."""
        paths = (self.output, getattr(self, "save", None), self.report)
        return [path for path in paths if path is not None]

    @property
    def readable(self) -> list[str]:
        """The files that other users may read.

        The report, which holds no rows, and the others if asked.
        """
        if self.readable_by_others:
            return self.targets
        return [] if self.report is None else [self.report]

    def written(self, rows: int | None, contents: str = "") -> list[str]:
        """Say which files were written, with how many rows, and what a fit holds."""
        about = {self.output: "" if rows is None else f" ({counted(rows, 'row')})"}
        about |= {getattr(self, "save", None): f" (it holds {contents})"}
        named = [
            f"wrote {target}{about.get(target, '')}"
            for target in self.targets
            if target != STANDARD
        ]
        if self.targets:
            return named
        return ["Nothing was written."]

    def in_form(self, source: TableFile) -> Self:
        """The same, with the format of the input if the result is to be like it.

        A name that means another one is refused.
        """
        if not self.like_input or self.output is None:
            return self
        format, _ = output_format(self.output, self.output_format, source.form)
        return replace(self, output_format=format)

    def write(
        self,
        frame: Any,
        source: TableFile,
        staging: Staging,
    ) -> Notes:
        """Write the table, and return what to know about the file."""
        target = self.output or ""
        form = source.form if self.like_input else None
        notes = staging.write_table(
            frame,
            target,
            format=self.output_format,
            form=form,
        )
        is_lazy = not hasattr(frame, "iter_columns")
        if is_lazy:
            return notes
        return notes + formula_notes(frame.iter_columns(), target, self.output_format)

    def check(self, ledger: str | None = None) -> None:
        """Refuse, before any work, to overwrite inputs, and files of no known form."""
        kept = [] if ledger is None else [ledger]
        check_files([*self.targets, *kept])
        if getattr(self, "scheduler", None) is None and self.output is not None:
            output_format(self.output, self.output_format)
        if STANDARD in self.targets[self.output is not None :]:
            raise click.UsageError(
                "only the table goes to stdout; name a file for --save and --report"
            )
        check_report(self.report)


def check_report(path: str | None) -> None:
    """Refuse, before any work, a report that cannot be written."""
    from fairmaxent.report.writer import check_path

    if path is not None:
        check_path(path)


def source_of(
    data: str | None, columns_as: DomainOptions | None, command: str | None
) -> Source:
    """Say, for a report, where its data came from; None: the report has no data."""
    from fairmaxent.report.source import FrontDoor, Source

    source = Source(
        command=command,
        domain=columns_as.given if columns_as else {},
        front_door=FrontDoor("on the command line", as_typed),
    )
    if data is None:
        return source
    if data == STANDARD:
        return replace(source, file="stdin")
    digest = file_sha256(data) if os.path.isfile(data) else None
    return replace(source, file=os.path.basename(data), sha256=digest)


@dataclass(frozen=True)
class OutputOptions(FileOptions):
    """What is written, and where."""

    REFUSED = (
        *FileOptions.REFUSED,
        Refused("rows", "mode", "only new rows are drawn", beside=OLD_ROWS),
        Refused(
            "weight_name",
            "mode",
            "it names a column of weights",
            ("add ", Option("mode", "weights")),
            beside=MISSING,
        ),
        Refused("weight_name", "mode", "there are no weights", beside=("top-up",)),
        Refused("resume", "output", "counts are kept beside it", beside=MISSING),
        Refused("resume", "model", "its rows are in memory, and counted at once"),
        Refused("resume", "likely", "its probabilities are those of single rows"),
        Refused("resume", "privacy", "the counts would be kept without noise"),
        *(
            Refused("scheduler", name, _IN_MEMORY)
            for name in ("privacy", "likely", "model", "estimate", "evaluate")
        ),
        *(
            Refused("scheduler", name, "its workers write Parquet", beside=pattern)
            for name, pattern in _NO_PARQUET.items()
        ),
    )

    mode: Mode = option(
        "rows",
        main=True,
        choices=get_args(Mode),
        label="What to take",
        choice_labels={
            "rows": "new rows",
            "weights": "your rows with weights",
            "top-up": "only the rows to add to yours",
        },
        choice_help={
            "rows": "To train on, in place of your rows.",
            "weights": "For learners that take sample weights.",
            "top-up": "To train on both.",
        },
        help=(
            "rows: new rows. weights: your rows with a column of weights. top-up: only"
            " the rows to add to yours."
        ),
    )
    rows: int | None = option(
        None,
        main=True,
        text="whole",
        least=1,
        label="How many rows",
        page_help="If this is empty, as many as in the data.",
        help=(
            "How many new rows; by default as many as in the data (of a private fit:"
            " about as many)."
        ),
    )
    iid: bool = option(
        False,
        text="flag",
        label="Draw rows independently",
        help="Draw rows independently instead of by quota.",
        page_help="Their rates then vary by chance.",
    )
    weight_name: str = option(
        "fair_weight",
        label="Name of the weights",
        help=(
            "Name of the column that --mode weights adds; it includes the design"
            " weights of --weight."
        ),
        page_help="The name of the column of weights in the file.",
    )
    estimate: EstimateChoice | None = option(
        None,
        choices=get_args(EstimateChoice),
        label="Estimate what a model will do",
        help=(
            "Estimate how a model trained on the rows or weights will treat people,"
            " which takes seconds to minutes."
        ),
    )
    save: str | None = option(
        None,
        main=True,
        **TARGET,
        help=(
            "Save the fit to this file, for 'fairmaxent sample' and 'fairmaxent"
            " report'. A private fit always does: by default to the name of the table,"
            " or else of the report, with the suffix .fme."
        ),
    )
    evaluate: bool = option(False, **EVALUATE)
    scheduler: str | None = option(
        None,
        metavar="ADDRESS",
        in_files=False,  # whoever runs it can run code here
        help=(
            "Address (tcp://HOST:PORT) of a Dask cluster, which reads the Parquet files"
            " DATA and writes Parquet files into the folder -o."
        ),
    )

    resume: bool = option(
        False,
        text="flag",
        in_files=False,
        help=(
            "Keep the counts of a Parquet table in a folder beside -o until all is"
            " written, and begin with them if a run before this one did not end."
        ),
    )

    @property
    def estimated_on(self) -> TrainedOn | None:
        """What the model of an estimate is trained on, if one is asked for."""
        return None if self.estimate == "none" else self.estimate

    def staging(self) -> Staging:
        """Where the files are made before they get their names."""
        folders = []
        if self.scheduler is not None and self.output is not None:
            folders = [self.output]  # which workers write into
        return Staging(
            [target for target in self.targets if target not in folders],
            folders=folders,
            force=self.force,
            readable=self.readable,
        )

    def keeping_fit(self) -> Self:
        """The same, with a file for the fit.

        Rows and reports can be made of it, and nothing is paid for twice.
        """
        if self.save is not None:
            return self
        for beside in (self.output, self.report):
            if beside not in (None, STANDARD):
                stem = os.path.splitext(beside)[0].removesuffix(".csv")
                return replace(self, save=f"{stem}.fme")
        raise click.UsageError(
            "a private fit spends its budget each time, so it is always saved;"
            " name a file for it with --save, or for the table with -o"
        )


# ---------------------------------------------------------------- writing rows


def write_drawn(
    fit: Certified,
    n: int,
    staging: Staging,
    target: str,
    *,
    format: FileFormat | None,
    drawn: DrawnBatches | None = None,
    progress: Progress = silent,
    **drawing: Any,  # options of `Fit.sample_batches`
) -> Notes:
    """Write rows as they are drawn; return what to know about the file.

    The table may be larger than memory.
    """

    def watched(batches: Iterable[Any]) -> Iterator[Any]:
        done = 0
        for batch in batches:
            if drawn is not None:
                drawn.add(batch)
            yield batch
            done += len(batch)
            progress("rows", done / n)

    source = fit
    schema = None
    kind = output_format(target, format)[0]
    if kind == "xlsx":
        check_sheet_rows(n)
    if kind == "parquet":  # which takes texts as categories
        schema = as_polars(fit.sample(1)).schema
        source = replace(
            fit,
            distribution=replace(fit.distribution, domain=with_categories(fit.domain)),
        )
    batches = map(as_polars, source.sample_batches(n, **drawing))
    staging.write_table(
        as_lazy(watched(batches)),
        target,
        format=format,
        schema=schema,
    )
    levels = [
        attribute.values.to_polars().rename(attribute.name)
        for attribute in fit.domain.attributes
    ]
    return formula_notes(levels, target, format)


def formula_notes(
    columns: Iterable[Any], target: str, format: FileFormat | None
) -> Notes:
    """Say if a spreadsheet would take cells, or names, of a text file for formulas."""
    polars = load_library("polars")
    if target == STANDARD:
        return ()
    kind, _ = output_format(target, format)
    if "delimiter" not in FORMATS[kind].options:
        return ()

    def runs(column: Any) -> bool:
        texts = polars.Series([column.name])
        if isinstance(column.dtype, (polars.String, polars.Categorical, polars.Enum)):
            texts.append(column.drop_nulls().cast(polars.String))
        return bool((texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)).any())

    names = [column.name for column in columns if runs(column)]
    if not names:
        return ()
    listed = ", ".join(map(repr, names[:3]))
    if len(names) > 3:
        listed += " and others"
    note = (
        f"{target} has cells that begin with =, +, - or @, in {listed}; a spreadsheet"
        " may run them as formulas, so import these columns as text"
    )
    return (note,)
