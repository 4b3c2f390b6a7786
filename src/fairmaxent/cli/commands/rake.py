"""``fairmaxent rake``: weights for known margins."""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.config import config_option
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import next_step, resolved
from fairmaxent.cli.options import SectionedCommand, taking
from fairmaxent.cli.output_options import (
    REPORT_HELP,
    FilingOptions,
    filing_options,
    force_field,
    format_field,
    json_field,
    like_input_field,
    pdf_field,
    readable_field,
    refuse_without_report,
)
from fairmaxent.cli.reading_options import (
    DomainOptions,
    ReadingOptions,
    data_argument,
    domain_options,
    reading_options,
    source_of,
)
from fairmaxent.cli.text import as_json, cell_text, say, step
from fairmaxent.document.text import table_lines
from fairmaxent.errors import spelled
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.files.formats import FileFormat
    from fairmaxent.files.reading import TableFile
    from fairmaxent.files.write import Staging
    from fairmaxent.raking.certificate import RakingCertificate
    from fairmaxent.raking.raking import Raking
    from fairmaxent.report import Source

WEIGHT_NAME = "raked_weight"
_SHOWN = 60  # levels before the rest is counted


@dataclass(frozen=True)
class RakeOptions:
    """What is known, and how it is to be reached."""

    HEADING = "What is written"

    margins: tuple[str, ...] = option(
        main=True,
        text="files",
        required=True,
        metavar="FILE",
        help="Table of known shares or totals, in its column 'value', beside 'columns' and 'level', or beside columns "
        "of the data; repeatable.",
    )
    weight: str | None = option(
        None,
        main=True,
        metavar="COLUMN",
        label="Design weights",
        help="Column of design weights; the new weights stay close to them.",
    )
    bounds: tuple[float | None, float | None] | None = option(
        None,
        main=True,
        text="bounds",
        label="Limit how much a weight may change",
        help="Smallest and largest factor by which a weight may change: 0.3,3. 'none' leaves a side open.",
    )
    relax: tuple[list[str], ...] = option(
        (),
        main=True,
        text="several columns",
        label="Come as close as possible",
        help="If margins contradict each other, come as close as possible: 'all', or the columns of a margin that may "
        "be missed; repeatable.",
    )
    replicates: int = option(
        0,
        main=True,
        text="whole",
        least=0,
        shows_default=False,
        label="Replicate weights",
        help="Also write this many columns of bootstrap replicate weights, each raked to the same margins.",
    )
    random_state: int | None = option(
        None,
        main=True,
        flags=("--seed", "--random-state"),
        text="whole",
        least=0,
        label="Seed",
        help="The same seed gives the same replicates; chosen at random by default, and shown.",
        page_help="The same seed gives the same result.",
    )
    output: str | None = option(
        None,
        main=True,
        flags=("-o", "--output"),
        text="file",
        in_files=False,
        help="Where to write the weighted table; - is stdout.",
    )
    output_format: FileFormat | None = format_field()
    like_input: bool = like_input_field()
    weight_name: str = option(
        WEIGHT_NAME,
        label="Name of the weights",
        help="Name of the column of weights.",
        page_help="The name of the column of weights in the file.",
    )
    report: str | None = option(None, main=True, text="file", in_files=False, help=REPORT_HELP)
    pdf: str | None = pdf_field()
    readable_by_others: bool = readable_field()
    force: bool = force_field()
    as_json: bool = json_field()

    @property
    def targets(self) -> list[str]:
        """Every file to be written."""
        return [target for target in (self.output, *self.reports) if target is not None]

    @property
    def reports(self) -> list[str]:
        """The files that the report is written to."""
        return [target for target in (self.report, self.pdf) if target is not None]

    @property
    def readable(self) -> list[str]:
        """The files that other users may read: the report, which holds no rows, and the table if asked."""
        return self.targets if self.readable_by_others else self.reports

    @property
    def relaxed(self) -> str | list[tuple[str, ...]] | None:
        """The margins that may be missed, as `rake` takes them."""
        if ["all"] in self.relax:
            return "all"
        return [tuple(columns) for columns in self.relax] or None

    def check(self, data: str) -> None:
        """Refuse, before any work, what cannot go together."""
        from fairmaxent.files.formats import output_format

        refuse_overwriting([data, *self.margins], self.targets)
        if [data, *self.margins].count("-") > 1:
            raise click.UsageError("only one table can be read from stdin; name files for the others")
        if self.output is not None:
            output_format(self.output, self.output_format)
        if self.output == "-" and self.as_json:
            raise click.UsageError("--json and '-o -' both write to stdout; write the table to a file")
        if self.like_input and self.output is None:
            raise click.UsageError("--like-input is about the table that is written; name a file for it with -o")
        if self.pdf is not None and not self.pdf.lower().endswith(".pdf"):
            raise click.UsageError(f"--pdf is {self.pdf}; end the name with .pdf")
        for path in self.reports:
            from fairmaxent.report.writer import check_path

            check_path(path)
        if not self.reports:
            refuse_without_report()


@click.command(
    cls=SectionedCommand,
    epilog="Without -o, --report and --pdf nothing is written; the margins before and after are always shown.",
)
@data_argument
@taking(RakeOptions, "wanted")
@filing_options
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    wanted: RakeOptions,
    filing: FilingOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Add weights to the table in the file DATA (- is stdin) that give it known margins.

    Margins are shares or totals of a column, or of crossed columns. Exit code 4: they contradict each other, and the
    message names the smallest set that does.

    \b
    fairmaxent rake survey.csv --margins known.csv --bounds 0.3,3 -o weighted.csv
    """
    from fairmaxent.cli.formulas import formula_notes
    from fairmaxent.files.formats import output_format
    from fairmaxent.files.write import Staging

    wanted.check(data)
    if wanted.replicates and wanted.random_state is None:
        wanted = replace(wanted, random_state=secrets.randbelow(2**32))
    repeat = resolved(ctx, seed=wanted.random_state if wanted.replicates else None)
    with Staging(wanted.targets, force=wanted.force, readable=wanted.readable) as staging:
        with step(f"reading {data}"):
            margins = [_read_margins(path) for path in wanted.margins]
            scanned = None if wanted.replicates else reading.scan(data)
            source = reading.read(data, texts=columns_as.texts) if scanned is None else scanned
            if wanted.like_input and wanted.output is not None:
                alike = output_format(wanted.output, wanted.output_format, source.form)[0]
                wanted = replace(wanted, output_format=alike)
            names = source.frame.collect_schema().names()
            wanted = replace(wanted, relax=tuple(option_types.joined(columns, names) for columns in wanted.relax))
        with step("raking"):
            raking = _raked(source, margins, wanted, columns_as)
        notes = [note for table in (source, *margins) for note in table.notes_spelled(as_typed)]
        notes += raking.certificate.notes
        if wanted.output is not None:
            with step("writing"):
                weighed = raking.weigh(source.frame if source.whole is None else source.whole, name=wanted.weight_name)
                form = source.form if wanted.like_input else None
                notes += staging.write_table(weighed, wanted.output, format=wanted.output_format, form=form)
                if scanned is None:
                    notes += formula_notes(weighed, wanted.output, wanted.output_format)
        if wanted.reports:
            make_report(raking, wanted, filing, staging, source_of(data, columns_as, repeat), source)
    text = as_json(_record(raking, wanted, notes)) if wanted.as_json else _text(raking.certificate, wanted, notes)
    say(text, data_on_stdout=wanted.output == "-")


def _read_margins(path: str) -> TableFile:
    """Read a table of margins: its cells are those of a CSV with a header, or of a typed format."""
    from fairmaxent.cli.streams import check_stdin
    from fairmaxent.files.formats import read_table

    if path == "-":
        check_stdin()
    return read_table(path)


def _raked(source: TableFile, margins: list[TableFile], wanted: RakeOptions, columns_as: DomainOptions) -> Raking:
    from fairmaxent.raking.raking import rake

    return rake(
        source.frame,
        [table.frame for table in margins],
        weight=wanted.weight,
        bounds=wanted.bounds,
        relax=wanted.relaxed,
        replicates=wanted.replicates,
        domain=columns_as.domain(source.frame, wanted.weight),
        random_state=wanted.random_state,
    )


def make_report(
    raking: Raking,
    wanted: RakeOptions,
    filing: FilingOptions,
    staging: Staging,
    origin: Source,
    table: TableFile,
) -> None:
    """Write the report; the weighted table is there, so that its digest can be named."""
    from fairmaxent.report.source import written_file
    from fairmaxent.report.writer import write_raking_report

    files = [written_file("Margins", path) for path in wanted.margins if os.path.isfile(path)]
    if wanted.output not in (None, "-"):
        files.append(written_file("Weighted table", staging.path_for(wanted.output), name=wanted.output))
    notes = table.notes_spelled(origin.front_door.spell)
    origin = replace(origin, written=tuple(files), dropped=table.dropped, reading=notes)
    for path in wanted.reports:
        write_raking_report(raking, staging.path_for(path), source=origin, **asdict(filing))


def _text(certificate: RakingCertificate, wanted: RakeOptions, notes: list[str]) -> str:
    """Levels with too few rows, the margins before and after, what the weights cost, and what was written."""
    from fairmaxent.raking.certificate import few_rows_warnings

    levels = [(margin.name, level) for margin in certificate.margins for level in margin.levels]
    rows = [
        [
            f"{name} = {one.level}",
            *map(cell_text, (one.rows, one.before, one.wanted, one.achieved, round(one.effective_rows))),
        ]
        for name, one in levels[:_SHOWN]
    ]
    more = [f"and {len(levels) - _SHOWN:,} more levels; --json shows them all"] if len(levels) > _SHOWN else []
    table = table_lines(["margin", "rows", "before", "wanted", "after", "effective rows"], rows)
    seed = [f"seed of the replicates: {wanted.random_state}"] if wanted.replicates else []
    written = [
        f"wrote {cell_text(target)}" + (f" ({certificate.rows:,} rows)" if target == wanted.output else "")
        for target in wanted.targets
        if target != "-"
    ]
    warnings = [spelled(warning, as_typed) for warning in few_rows_warnings(certificate.margins)]
    parts = [
        "\n".join(f"Warning: {cell_text(warning)}" for warning in warnings),
        "\n".join([*table, *more]),
        "\n".join([*certificate.summary(), *seed]),
        "\n".join(f"Note: {cell_text(note)}" for note in notes),
        "\n".join(written) if wanted.targets else "Nothing was written.",
        next_step(_next(wanted)),
    ]
    return "\n\n".join(part for part in parts if part)


def _next(wanted: RakeOptions) -> str:
    if wanted.output is None:
        return "write the weighted table with -o FILE, and a report with --report FILE"
    return f"use the column {wanted.weight_name!r} as weights in every estimate"


def _record(raking: Raking, wanted: RakeOptions, notes: list[str]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "rows": raking.certificate.rows,
        "files": wanted.targets,
        "weight_name": wanted.weight_name,
        "replicates": wanted.replicates,
        "seed": wanted.random_state if wanted.replicates else None,
        "notes": notes,
        "certificate": raking.certificate.to_dict(),
    }
