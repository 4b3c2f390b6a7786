"""``fairmaxent report``: what a saved model did, for readers who did not run the fit."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import next_step
from fairmaxent.cli.option_types import FILE
from fairmaxent.cli.options import taking
from fairmaxent.cli.output_options import (
    MODES,
    FilingOptions,
    check_evaluated,
    check_reports,
    evaluate_field,
    filing_options,
    force_field,
    pdf_field,
)
from fairmaxent.cli.reading_options import ReadingOptions, reading_options, source_of
from fairmaxent.cli.text import cell_text, say, step
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.report.delivered import Mode

_DEFAULT = "report.html"


@dataclass(frozen=True)
class ReportOptions:
    """What the report is about, and where it goes."""

    output: str | None = option(
        None,
        flags=("-o", "--output"),
        text="file",
        help="Where to write the report: .html, .md, .json or .pdf; report.html by default, unless --pdf is given.",
    )
    pdf: str | None = pdf_field()
    data: str | None = option(
        None, text="file", help="The table that the model was made from, to count copies exactly."
    )
    sample: str | None = option(
        None, text="file", help="The rows that were drawn or added; by default new ones are drawn."
    )
    mode: Mode = option("rows", choices=MODES, help="What was made from the model, as in 'fairmaxent debias'.")
    trade_off: bool = option(
        True,
        flags=("--trade-off/--no-trade-off",),
        text="flag",
        help="Fit a few more times, to show what other options would cost.",
    )
    evaluate: bool = evaluate_field()
    force: bool = force_field()

    def checked(self, model: str) -> tuple[str, ...]:
        """Refuse, before any work, what cannot go together; return the files to be written."""
        output = _DEFAULT if self.output is None and self.pdf is None else self.output
        check_reports(output, self.pdf)
        targets = tuple(path for path in (output, self.pdf) if path is not None)
        refuse_overwriting([model, self.data, self.sample], targets)
        if self.mode == "weights" and self.sample is not None:
            raise click.UsageError("--mode weights draws no rows; leave --sample out")
        if self.evaluate and self.data is None:
            raise click.UsageError("--evaluate needs the table that the model was made from; name it with --data")
        check_evaluated(self.mode, evaluate=self.evaluate)
        return targets


@click.command()
@click.argument("model", type=FILE, metavar="MODEL")
@taking(ReportOptions, "wanted")
@filing_options
@reading_options
def command(model: str, wanted: ReportOptions, filing: FilingOptions, reading: ReadingOptions) -> None:
    """Write a report on MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \b
    fairmaxent report model.fme --data census.csv -o report.html
    """
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.fit import load
    from fairmaxent.report import build_report
    from fairmaxent.report.source import written_file
    from fairmaxent.report.writer import save_report

    targets = wanted.checked(model)
    data, sample = wanted.data, wanted.sample
    with Staging(targets, force=wanted.force, readable=targets) as staging:
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
                mode=wanted.mode,
                source=replace(origin, written=tuple(written)),
                trade_off=wanted.trade_off,
                evaluate=wanted.evaluate,
                **asdict(filing),
            )
            for path in targets:
                save_report(report, staging.path_for(path))
    say("\n".join(f"wrote {cell_text(path)}" for path in targets), data_on_stdout=False)
    say(f"\n{next_step(f'open {targets[0]} and read its first page before you use the result')}", data_on_stdout=False)
