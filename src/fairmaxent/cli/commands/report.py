"""``fairmaxent report``: what a saved model did, for readers who did not run the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import next_step
from fairmaxent.cli.options import ReadingOptions, force_option, reading_options, source_of
from fairmaxent.cli.text import cell_text, say, step

if TYPE_CHECKING:
    from fairmaxent.report.delivered import Mode


@click.command()
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    help="Where to write the report: .html, .md or .json.",
)
@click.option("--data", type=click.Path(), help="The table that the model was made from, to count copies exactly.")
@click.option("--sample", type=click.Path(), help="The rows that were drawn or added; by default new ones are drawn.")
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
@force_option
@reading_options
def command(
    model: str,
    output: str,
    data: str | None,
    sample: str | None,
    mode: Mode,
    trade_off: bool,  # noqa: FBT001 (click passes it by name)
    force: bool,  # noqa: FBT001
    reading: ReadingOptions,
) -> None:
    """Write a report on MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \b
    fairmaxent report model.fme --data census.csv -o report.html
    """
    from fairmaxent.files.staging import Staging
    from fairmaxent.fit.fit import load
    from fairmaxent.report import write_report
    from fairmaxent.report.writer import check_path

    check_path(output)
    refuse_overwriting([model, data, sample], [output])
    if mode == "weights" and sample is not None:
        raise click.UsageError("--mode weights draws no rows; leave --sample out")
    with Staging([output], force=force, readable=[output]) as staging:
        with step(f"reading {model}"):
            fit = load(model)
            drawn = None if sample is None else reading.read(sample).frame
            # If an engine counted the rows, it also looks for copies.
            scanned = None if data is None or fit.table.keeps_rows else reading.scan(data)
            real = None if data is None else (scanned or reading.read(data)).frame
        with step("writing"):
            origin = None if data is None else source_of(data, reading, None, None)
            staged = staging.path_for(output)
            write_report(fit, staged, data=real, delivered=drawn, mode=mode, source=origin, trade_off=trade_off)
    say(f"wrote {cell_text(output)}", data_on_stdout=False)
    say(f"\n{next_step(f'open {output} and read its first page before you use the result')}", data_on_stdout=False)
