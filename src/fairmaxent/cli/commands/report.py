"""``fairmaxent report``: what a saved model did, for readers who did not run the fit."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.filing_options import (
    FilingOptions,
    check_evaluated,
    check_reports,
    evaluate_option,
    filing_options,
    pdf_option,
)
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import next_step
from fairmaxent.cli.option_types import FILE
from fairmaxent.cli.options import ReadingOptions, force_option, reading_options, source_of
from fairmaxent.cli.text import cell_text, say, step

if TYPE_CHECKING:
    from fairmaxent.report.delivered import Mode

_DEFAULT = "report.html"


@click.command()
@click.argument("model", type=FILE, metavar="MODEL")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Where to write the report: .html, .md, .json or .pdf; report.html by default, unless --pdf is given.",
)
@pdf_option
@click.option("--data", type=FILE, help="The table that the model was made from, to count copies exactly.")
@click.option("--sample", type=FILE, help="The rows that were drawn or added; by default new ones are drawn.")
@click.option(
    "--mode",
    type=click.Choice(["rows", "weights", "top-up"]),
    default="rows",
    show_default=True,
    help="What was made from the model, as in 'fairmaxent debias'.",
)
@click.option(
    "--trade-off/--no-trade-off",
    default=True,
    show_default=True,
    help="Fit a few more times, to show what other options would cost.",
)
@evaluate_option
@filing_options
@force_option
@reading_options
def command(
    model: str,
    output: str | None,
    pdf: str | None,
    data: str | None,
    sample: str | None,
    mode: Mode,
    trade_off: bool,  # noqa: FBT001 (click passes it by name)
    evaluate: bool,  # noqa: FBT001
    filing: FilingOptions,
    force: bool,  # noqa: FBT001
    reading: ReadingOptions,
) -> None:
    """Write a report on MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \b
    fairmaxent report model.fme --data census.csv -o report.html
    """
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.fit import load
    from fairmaxent.report import build_report
    from fairmaxent.report.source import written_file
    from fairmaxent.report.writer import save_report

    output = _DEFAULT if output is None and pdf is None else output
    check_reports(output, pdf)
    targets = [path for path in (output, pdf) if path is not None]
    refuse_overwriting([model, data, sample], targets)
    if mode == "weights" and sample is not None:
        raise click.UsageError("--mode weights draws no rows; leave --sample out")
    if evaluate and data is None:
        raise click.UsageError("--evaluate needs the table that the model was made from; name it with --data")
    check_evaluated(mode, evaluate=evaluate)
    with Staging(targets, force=force, readable=targets) as staging:
        with step(f"reading {model}"):
            fit = load(model)
            drawn = None if sample is None else reading.read(sample).frame
            # If an engine counted the rows, it also looks for copies.
            scanned = None if data is None or fit.table.keeps_rows else reading.scan(data)
            table = None if data is None else scanned or reading.read(data)
        with step("writing"):
            files = {"Fair table": sample, "Model": model}
            written = [written_file(what, path) for what, path in files.items() if path and os.path.isfile(path)]
            origin = source_of(data, None, None)
            if table is not None:
                notes = table.notes_spelled(origin.front_door.spell)
                origin = replace(origin, dropped=table.dropped, reading=notes)
            report = build_report(
                fit,
                data=None if table is None else table.frame,
                delivered=drawn,
                mode=mode,
                source=replace(origin, written=tuple(written)),
                trade_off=trade_off,
                evaluate=evaluate,
                **asdict(filing),
            )
            for path in targets:
                save_report(report, staging.path_for(path))
    say("\n".join(f"wrote {cell_text(path)}" for path in targets), data_on_stdout=False)
    say(f"\n{next_step(f'open {targets[0]} and read its first page before you use the result')}", data_on_stdout=False)
