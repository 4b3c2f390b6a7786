"""``fairmaxent debias``: from a file to a fair one."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.debias_result import Result, after_debias, result_record, result_text
from fairmaxent.cli.inputs import unchanged
from fairmaxent.cli.next_step import NEXT, next_step, resolved
from fairmaxent.cli.options import SectionedCommand
from fairmaxent.cli.output_options import FilingOptions, OutputOptions, filing_options, output_options
from fairmaxent.cli.reading_options import (
    DomainOptions,
    ReadingOptions,
    data_argument,
    domain_options,
    reading_options,
    source_of,
)
from fairmaxent.cli.request_options import AskedOptions, RoleOptions, request_options, role_options
from fairmaxent.cli.text import as_json, say, step
from fairmaxent.files.reading import STANDARD

if TYPE_CHECKING:
    from fairmaxent.files.reading import TableFile
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.fit import Fit
    from fairmaxent.progress import Progress
    from fairmaxent.report import Source
    from fairmaxent.report.delivered import Delivered


@click.command(
    cls=SectionedCommand,
    epilog="Without -o, --model, --report and --pdf nothing is written; the rates before and after are shown.",
)
@data_argument
@role_options
@request_options
@output_options
@filing_options
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: OutputOptions,
    filing: FilingOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Turn the table in the file DATA (- is stdin) into a fair one.

    \b
    fairmaxent debias census.csv --outcome income --protected sex,race -o fair.csv
    """
    from fairmaxent.cli.debias_result import with_outlook
    from fairmaxent.cli.formulas import domain_columns, formula_notes
    from fairmaxent.files.write import Staging
    from fairmaxent.privacy.refusals import about_exact_rows
    from fairmaxent.progress import silent

    wanted.check(data)
    asked.check(ctx, roles)
    if (asked.private or asked.releases) and wanted.mode != "rows":
        raise click.UsageError(
            f"--mode {wanted.mode} is about your own rows; with --epsilon or --release, draw new ones"
        )
    if asked.private and wanted.evaluate:
        raise click.UsageError(
            "--evaluate compares with your rows without noise, so a private report cannot have it; judge the drawn "
            "rows with 'fairmaxent evaluate', and keep the answer to yourself"
        )
    if asked.private and wanted.like_input:
        raise click.UsageError(
            "--like-input copies the form of your file, such as its encoding, which a private table cannot have; leave "
            "it out"
        )
    if asked.private and not wanted.targets:
        raise click.UsageError(
            "a private fit spends its budget each time; name what to keep with -o, --model or --report"
        )
    asked = asked if wanted.mode == "weights" else asked.with_seed()
    if wanted.scheduler is not None:
        if asked.private:
            raise click.UsageError("--epsilon draws its rows in memory; leave --scheduler out")
        if asked.relabels:
            raise click.UsageError("--relabel needs the rows in memory, but with --scheduler they stay on the cluster")
        result = _distributed(data, roles, asked, wanted, columns_as, reading)
        following = "" if wanted.targets else next_step("name a folder with -o, where the workers write the table")
        say(
            as_json(result_record(result, wanted)) if wanted.as_json else result_text(result, wanted, following),
            data_on_stdout=False,
        )
        return
    repeat = resolved(ctx, seed=asked.random_state)
    with Staging(wanted.targets, force=wanted.force, readable=wanted.readable) as staging:
        origin = source_of(data, columns_as, repeat) if wanted.reports else None
        # Relabelling writes each row several times, so all of them must be in memory.
        relabelled = asked.relabels and wanted.mode == "weights"
        scanned = None if relabelled or (asked.releases and columns_as.declared is None) else reading.scan(data)
        if scanned is not None:
            with unchanged(data):
                result = _streamed(scanned, data, roles, asked, wanted, columns_as, staging)
            make_report(result, wanted, filing, staging, origin)
        else:
            with step(f"reading {data}"):
                with about_exact_rows() if asked.private else nullcontext():
                    source = reading.read(data, texts=columns_as.texts)
                roles = roles.checked(source, data)
                wanted = wanted.in_form(source)
            with step("fitting" if asked.private else f"fitting {len(source.frame):,} rows"):
                fit = _fit(source, roles, asked, columns_as)
                fit, unknown = with_outlook(fit, wanted.estimate, wanted.mode, asked.trial_of, silent)
                result = replace(make_result(fit, source, wanted), not_estimated=unknown)
            with step("writing"):
                result = replace(result, written_notes=write_files(result, wanted, staging))
                make_report(result, wanted, filing, staging, origin)
                if wanted.data_on_stdout:  # last, because stdout cannot be taken back
                    _write_table(result, wanted, staging)
    columns = domain_columns(result.fit.domain) if result.frame is None else result.frame
    formulas = formula_notes(columns, wanted.output, wanted.output_format)
    result = replace(result, written_notes=(*result.written_notes, *formulas))
    following = "" if wanted.as_json else ctx.meta.get(NEXT) or after_debias(data, wanted, repeat, result)
    text = as_json(result_record(result, wanted)) if wanted.as_json else result_text(result, wanted, following)
    say(text, data_on_stdout=wanted.data_on_stdout)


def _fit(
    source: TableFile,
    roles: RoleOptions,
    asked: AskedOptions,
    columns_as: DomainOptions,
    progress: Progress | None = None,
) -> Fit:
    """Fit the table as asked."""
    from fairmaxent.fit.pipeline import fit_frame

    domain = columns_as.declaration or columns_as.domain(source.frame, roles.weight)
    return fit_frame(source.frame, asked.with_columns_of(source).request(roles, domain, progress))


def _streamed(
    source: TableFile,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    staging: Staging,
) -> Result:
    """Fit a table that stays on disk, and write what is asked for in pieces."""
    from fairmaxent.cli.before_after import measure, measure_data
    from fairmaxent.cli.debias_result import with_outlook
    from fairmaxent.cli.text import bar

    roles = roles.checked(source, data)
    wanted = wanted.in_form(source)
    with bar(f"fitting {data}") as progress:
        fit = _fit(source, roles, asked, columns_as, progress)
        fit, unknown = with_outlook(fit, wanted.estimate, wanted.mode, asked.trial_of, progress)
    before = measure_data(fit)
    if wanted.model is not None:
        fit.save(staging.path_for(wanted.model))
    if wanted.output is None:
        fair = measure(fit, fit.distribution.root_table)
        return Result(fit, source, None, None, before, fair, not_estimated=unknown)
    with bar(f"writing {wanted.output}") as progress:
        made = stream_table(fit, source, wanted, staging, progress)
    rows = fit.table.size if wanted.mode == "weights" else made.rows
    return Result(fit, source, rows, None, before, measure(fit, made.table), made, unknown)


def _distributed(
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> Result:
    """Fit a table on a Dask cluster, whose workers write what is asked for."""
    from fairmaxent.cli.before_after import measure, measure_data
    from fairmaxent.cli.scheduler import connected, open_parquet, write_parts
    from fairmaxent.cli.text import bar
    from fairmaxent.files.write import Staging

    saved = [] if wanted.model is None else [wanted.model]
    folders = [] if wanted.output is None else [wanted.output]
    staging = Staging(saved, folders=folders, force=wanted.force, readable=wanted.readable)
    with staging, connected(wanted.scheduler or ""):
        source = reading.without_dropped(open_parquet(data))
        roles = roles.checked(source, data)
        with bar(f"fitting {data}") as progress:
            fit = _fit(source, roles, asked, columns_as, progress)
        before, rows, table = measure_data(fit), None, fit.distribution.root_table
        if wanted.model is not None:
            fit.save(staging.path_for(wanted.model))
        if wanted.output is not None:
            rows = fit.table.size if wanted.rows is None else wanted.rows
            with bar(f"writing {wanted.output}") as progress:
                table = write_parts(fit, rows, staging.path_for(wanted.output), wanted, progress=progress)
        return Result(fit, source, rows, None, before, measure(fit, table))


def stream_table(fit: Fit, source: TableFile, wanted: OutputOptions, staging: Staging, progress: Progress) -> Delivered:
    """Write the table while it is made."""
    from fairmaxent.cli.streaming import write_drawn
    from fairmaxent.report.delivered import DrawnBatches, deliver

    target, form, seed = wanted.output or "", wanted.output_format, fit.request.random_state
    if wanted.mode == "weights":
        whole = source.frame if source.whole is None else source.whole
        staging.write_table(fit.weigh(whole, name=wanted.weight_name), target, format=form)
        return deliver(fit, None, mode="weights", iid=False, seed=None)
    if wanted.mode == "top-up":
        added = fit.top_up()
        staging.write_table(added, target, format=form)
        return deliver(fit, added, mode="top-up", iid=False, seed=seed)
    drawn, rows = DrawnBatches(fit), fit.table.size if wanted.rows is None else wanted.rows
    write_drawn(fit, rows, staging, target, format=form, iid=wanted.iid, drawn=drawn, progress=progress)
    return drawn.delivered(iid=wanted.iid, seed=seed)


def make_result(fit: Fit, source: TableFile, wanted: OutputOptions) -> Result:
    """Draw what is asked for, and measure it the way the reader of the file would."""
    from fairmaxent.cli.before_after import measure, measure_data
    from fairmaxent.report.delivered import deliver

    before = measure_data(fit)
    if wanted.output is None:
        return Result(fit, source, None, None, before, measure(fit, fit.distribution.root_table))
    if wanted.mode == "weights":
        given = fit.weights()
        table = fit.weigh(source.frame if source.whole is None else source.whole, name=wanted.weight_name)
    elif wanted.mode == "top-up":
        given = table = fit.top_up()
    else:
        # Of a private table, not even the number of rows is known exactly.
        given = table = fit.sample(fit.table.size if wanted.rows is None else wanted.rows, iid=wanted.iid)
    made = deliver(fit, given, mode=wanted.mode, iid=wanted.iid, seed=fit.request.random_state)
    return Result(fit, source, len(table), table, before, measure(fit, made.table), made)


def make_report(
    result: Result, wanted: OutputOptions, filing: FilingOptions, staging: Staging, origin: Source | None
) -> None:
    """Write the report, if one is asked for; the other files are there, so that it can name their digests."""
    from fairmaxent.report import build_report
    from fairmaxent.report.source import written_file
    from fairmaxent.report.writer import save_report

    if origin is None:
        return
    private = result.fit.certificate.privacy is not None  # then the report says nothing about the file's content
    files = {"Fair table": wanted.output, "Model": wanted.model}
    written = tuple(
        written_file(what, staging.path_for(path), name=path)
        for what, path in files.items()
        if path not in (None, STANDARD)
    )
    exact = {"sha256": None} if private else {"reading": result.source.notes_spelled(origin.front_door.spell)}
    report = build_report(
        result.fit,
        data=None if private else result.source.frame,
        delivered=result.delivered,
        mode=wanted.mode,
        iid=wanted.iid,
        seed=result.fit.request.random_state,
        source=replace(origin, written=written, dropped=result.source.dropped, **exact),
        evaluate=wanted.evaluate,
        **asdict(filing),
    )
    for path in wanted.reports:
        save_report(report, staging.path_for(path))


def write_files(result: Result, wanted: OutputOptions, staging: Staging) -> tuple[str, ...]:
    """Write the files beside their targets. Return what to know about them."""
    if wanted.model is not None:
        result.fit.save(staging.path_for(wanted.model))
    return () if wanted.output in (None, STANDARD) else _write_table(result, wanted, staging)


def _write_table(result: Result, wanted: OutputOptions, staging: Staging) -> tuple[str, ...]:
    assert wanted.output is not None
    form = result.source.form if wanted.like_input else None
    return staging.write_table(result.frame, wanted.output, format=wanted.output_format, form=form)
