"""``fairmaxent debias``: from a file to a fair one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.options import (
    DomainOptions,
    FitOptions,
    ReadingOptions,
    RoleOptions,
    data_argument,
    domain_options,
    fit_options,
    force_option,
    json_option,
    output_format_option,
    reading_options,
    role_options,
    taking,
)
from fairmaxent.cli.show import as_json, say, step
from fairmaxent.errors import ColumnError

if TYPE_CHECKING:
    from fairmaxent.cli.rates import Measured
    from fairmaxent.files import FileFormat, Staging, TableFile
    from fairmaxent.fit import Fit

Mode = Literal["rows", "weights", "top-up"]
_SHOWN = 12  # warnings before the rest is counted


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and where."""

    output: str | None
    output_format: FileFormat | None
    mode: Mode
    rows: int | None
    iid: bool
    weight_name: str
    model: str | None
    report: str | None
    force: bool
    as_json: bool

    @property
    def targets(self) -> list[str]:
        """Every file to be written."""
        return [target for target in (self.output, self.model, self.report) if target is not None]

    @property
    def data_on_stdout(self) -> bool:
        """Whether stdout carries the table."""
        return self.output == "-"

    def check(self) -> None:
        """Refuse, before any work, what cannot go together."""
        from fairmaxent.files import output_format

        if self.output is not None:
            output_format(self.output, self.output_format)
        if self.data_on_stdout and self.as_json:
            raise click.UsageError("--json and '-o -' both want stdout; write the table to a file")
        if self.mode != "rows" and (self.rows is not None or self.iid):
            raise click.UsageError(f"--rows and --iid are for --mode rows, not {self.mode}")
        if "-" in (self.model, self.report):
            raise click.UsageError("only the table goes to stdout; name a file for --model and --report")
        if self.report is not None:
            from fairmaxent.report.writer import check_path

            check_path(self.report)


@dataclass(frozen=True, eq=False)
class Result:
    """A fit, the table to write, and the rates of what is written."""

    fit: Fit
    source: TableFile
    frame: Any
    before: Measured
    after: Measured

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the data and the fit."""
        return (*self.source.notes, *self.fit.domain.notes, *self.fit.certificate.warnings)


output_options = taking(
    OutputOptions,
    "wanted",
    click.option("-o", "--output", type=click.Path(), help="Where the fair table goes; - is stdout."),
    output_format_option,
    click.option(
        "--mode",
        type=click.Choice(["rows", "weights", "top-up"]),
        default="rows",
        show_default=True,
        help="New rows; the rows you have with a column of weights; or only the rows to add to them.",
    ),
    click.option("--rows", type=int, help="How many new rows; by default as many as there are."),
    click.option("--iid", is_flag=True, help="Draw rows independently instead of by quota."),
    click.option("--weight-name", default="fair_weight", show_default=True, help="Column of --mode weights."),
    click.option("--model", type=click.Path(), help="Save the model, for 'fairmaxent sample'."),
    click.option("--report", type=click.Path(), help="Write a report on what was done."),
    force_option,
    json_option,
)


@click.command(epilog="Without -o, --model and --report nothing is written: only the rates before and after are shown.")
@data_argument
@role_options
@fit_options
@output_options
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: FitOptions,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Turn the table in the file DATA (- is stdin) into a fair one.

    \b
    fairmaxent debias census.csv --outcome income --protected sex,race -o fair.csv
    """
    from fairmaxent.files import Staging

    wanted.check()
    with Staging(wanted.targets, force=wanted.force) as staging:
        with step(f"reading {data}"):
            source = reading.read(data)
            roles.check(source.frame, data)
        with step(f"fitting {len(source.frame):,} rows"):
            fit = asked.fit(source.frame, roles, columns_as.domain(source.frame, roles.weight))
            result = _result(fit, source, roles, wanted)
        with step("writing"):
            _write(result, wanted, staging, command=ctx.find_root().obj or "")
    text = as_json(_record(result, wanted)) if wanted.as_json else _text(result, roles, wanted)
    say(text, data_on_stdout=wanted.data_on_stdout)


def _result(fit: Fit, source: TableFile, roles: RoleOptions, wanted: OutputOptions) -> Result:
    """Draw what is asked for, and measure it as whoever gets the file would."""
    import polars

    from fairmaxent.cli.rates import measure

    frame, domain = source.frame, fit.domain
    before = measure(frame, roles, domain, weight=roles.weight)
    if wanted.output is None:
        return Result(fit, source, None, before, measure(fit, roles, domain))
    if wanted.mode == "weights":
        weights = fit.weights()
        made = _with_weights(frame, wanted.weight_name, weights)
        return Result(fit, source, made, before, measure(frame, roles, domain, weight=weights))
    if wanted.mode == "top-up":
        made = fit.top_up()
        together = polars.concat([frame, made])
        return Result(fit, source, made, before, measure(together, roles, domain, weight=roles.weight))
    made = fit.sample(len(frame) if wanted.rows is None else wanted.rows, iid=wanted.iid)
    return Result(fit, source, made, before, measure(made, roles, domain))


def _with_weights(frame: Any, name: str, weights: Any) -> Any:
    import polars

    if name in frame.columns:
        raise ColumnError(f"the table has a column {name!r} already; name another one with --weight-name")
    return frame.with_columns(polars.Series(name, weights))


def _write(result: Result, wanted: OutputOptions, staging: Staging, *, command: str) -> None:
    """Write each file beside its target; the table last, as on stdout it cannot be taken back."""
    if wanted.model is not None:
        result.fit.save(staging.place(wanted.model))
    if wanted.report is not None:
        from fairmaxent.report import write_report

        drawn = result.frame if wanted.mode == "rows" else None
        place = staging.place(wanted.report)
        write_report(result.fit, place, data=result.source.frame, sample=drawn, command=command)
    if wanted.output is not None:
        staging.write_table(result.frame, wanted.output, format=wanted.output_format)


def _text(result: Result, roles: RoleOptions, wanted: OutputOptions) -> str:
    """The rates before and after, what to know, and what was written."""
    from fairmaxent.cli.rates import groups_table, rates_table

    notes = list(result.notes[:_SHOWN])
    if len(result.notes) > _SHOWN:
        notes.append(f"and {len(result.notes) - _SHOWN} more; --json shows them all")
    written = [f"wrote {target}" for target in wanted.targets if target != "-"]
    if result.frame is not None and wanted.output != "-":
        written[0] += f" ({len(result.frame):,} rows)"
    parts = [
        rates_table(result.fit.certificate.wanted, result.before, result.after),
        groups_table(result.before, result.after, roles.outcome),
        "\n".join(f"Note: {note}" for note in notes),
        "\n".join(written) if wanted.targets else "nothing was written; name a file with -o",
    ]
    return "\n\n".join(part for part in parts if part)


def _record(result: Result, wanted: OutputOptions) -> dict[str, Any]:
    """The same for machines."""
    return {
        "mode": wanted.mode,
        "rows": None if result.frame is None else len(result.frame),
        "files": wanted.targets,
        "before": result.before.to_dict(),
        "after": result.after.to_dict(),
        "notes": result.notes,
        "certificate": result.fit.certificate.to_dict(),
    }
