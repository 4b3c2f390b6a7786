"""``fairmaxent debias``: from a file to a fair one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.next_step import NEXT, resolved
from fairmaxent.cli.options import SectionedCommand, taking
from fairmaxent.cli.output import FilingOptions, OutputOptions, filing_options, formula_notes, write_drawn
from fairmaxent.cli.reading import DomainOptions, ReadingOptions, source_of, table_command, unchanged
from fairmaxent.cli.request import AskedOptions, RoleOptions, request_options, role_options
from fairmaxent.cli.terminal import as_json, bar, echo
from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError, StorageError, first_line
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.progress import Progress, silent

if TYPE_CHECKING:
    from fairmaxent.cli.result import Result
    from fairmaxent.fit.fit import Fit
    from fairmaxent.report import Source

_PATIENCE = 10  # seconds to wait for a scheduler, and for its first worker


@table_command(
    role_options,
    request_options,
    taking(OutputOptions, "wanted"),
    filing_options,
    cls=SectionedCommand,
    epilog="Without -o, --model, --report and --pdf nothing is written; the rates before and after are shown.",
)
def debias_command(
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
    from fairmaxent.cli.result import after_debias, result_record, result_text
    from fairmaxent.fit.pipeline import fit_frame

    wanted.check(data)
    asked.check(ctx, roles)
    _check(asked, wanted)
    asked = asked if wanted.mode == "weights" else asked.with_seed()
    repeat = resolved(ctx, seed=asked.random_state)
    on_cluster = wanted.scheduler is not None
    folders = [wanted.output] if on_cluster and wanted.output is not None else []
    files = [target for target in wanted.targets if target not in folders]
    with (
        Staging(files, folders=folders, force=wanted.force, readable=wanted.readable) as staging,
        _connected(wanted.scheduler),
    ):
        origin = source_of(data, columns_as, repeat) if wanted.reports else None
        with bar(f"reading {data}"):
            source, is_scanned = _opened(data, asked, wanted, columns_as, reading)
        with unchanged(data) if is_scanned else contextlib.nullcontext():
            roles, wanted = roles.checked(source, data), wanted.in_form(source)
            with bar(f"fitting {data}") as progress:
                domain = columns_as.declaration or columns_as.domain(source.frame, roles.weight)
                request = asked.request(roles, domain, progress)
                if wanted.estimate is not None and wanted.estimate != "none":
                    request = replace(request, estimate=asked.trial_of(wanted.estimate))
                fit = fit_frame(source.frame, request)
            with bar("writing") as progress:
                result = make_result(fit, source, wanted, staging, progress)
        with bar("writing"):
            if on_cluster:
                _ = result.before  # it asks the rows, which are out of reach once the client is closed
            make_report(result, wanted, filing, staging, origin)
            if wanted.output == STANDARD and result.frame is not None:  # last, because stdout cannot be taken back
                wanted.write(result.frame, source, staging)
    if not on_cluster:
        table = fit.domain if result.frame is None else result.frame
        formulas = formula_notes(table, wanted.output, wanted.output_format)
        result = replace(result, written_notes=(*result.written_notes, *formulas))
    if wanted.as_json:
        echo(as_json(result_record(result, wanted)))
    else:
        following = ctx.meta.get(NEXT) or after_debias(data, wanted, repeat, result)
        echo(result_text(result, wanted, following), err=wanted.output == STANDARD)


def _check(asked: AskedOptions, wanted: OutputOptions) -> None:
    """Refuse outputs that do not go with what was asked for, before any work is done."""
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
    if wanted.scheduler is not None and (asked.private or asked.relabels):
        raise click.UsageError(
            "--epsilon and --relabel need the rows in memory, but with --scheduler they stay on the cluster"
        )


def _opened(
    data: str, asked: AskedOptions, wanted: OutputOptions, columns_as: DomainOptions, reading: ReadingOptions
) -> tuple[TableFile, bool]:
    """The table, and whether it stays on disk."""
    from fairmaxent.privacy.refusals import about_exact_rows

    if wanted.scheduler is not None:
        return reading.without_dropped(_open_parquet(data)), False
    # Relabelling writes each row several times, so all of them must be in memory.
    relabelled = asked.relabels and wanted.mode == "weights"
    scanned = None if relabelled or (asked.releases and columns_as.declared is None) else reading.scan(data)
    if scanned is not None:
        return scanned, True
    with about_exact_rows() if asked.private else contextlib.nullcontext():
        return reading.read(data, texts=columns_as.texts), False


def make_result(
    fit: Fit, source: TableFile, wanted: OutputOptions, staging: Staging, progress: Progress = silent
) -> Result:
    """Write the model and the table; new rows of one that stays on disk or on a cluster are written as they are drawn.

    A table for stdout is returned. What is made is measured the way the reader of the file would.
    """
    from fairmaxent.cli.result import Result
    from fairmaxent.report.delivered import DrawnBatches, deliver

    if wanted.model is not None:
        fit.save(staging.path_for(wanted.model))
    if wanted.output is None:
        return Result(fit, source, fit.distribution.root_table)
    count = fit.table.size if wanted.rows is None else wanted.rows  # of a private table, not even that is exact
    seed, is_lazy = fit.request.random_state, source.frame.__class__.__name__ == "LazyFrame"
    if wanted.scheduler is not None:
        folder, readable = staging.path_for(wanted.output), wanted.readable_by_others
        fit.write_sample(count, folder, iid=wanted.iid, readable_by_others=readable, progress=progress)
        drawn = DrawnBatches(fit)
        for part in sorted(folder.glob("*.parquet")):
            drawn.add(load_library("pandas").read_parquet(part, columns=list(fit.roles.names)))
        return Result(fit, source, drawn.table, count)
    if is_lazy and wanted.mode == "rows":
        drawn, form = DrawnBatches(fit), wanted.output_format
        write_drawn(fit, count, staging, wanted.output, format=form, drawn=drawn, progress=progress, iid=wanted.iid)
        made = drawn.delivered(iid=wanted.iid, seed=seed)
        return Result(fit, source, made.table, made.rows, delivered=made)
    given = None
    if wanted.mode == "weights":
        frame = fit.weigh(source.frame if source.whole is None else source.whole, name=wanted.weight_name)
    else:
        given = frame = fit.top_up() if wanted.mode == "top-up" else fit.sample(count, iid=wanted.iid)
    made = deliver(fit, given, mode=wanted.mode, iid=wanted.iid, seed=seed)
    notes = () if wanted.output == STANDARD and not is_lazy else wanted.write(frame, source, staging)
    rows = fit.table.size if is_lazy and given is None else len(frame)
    return Result(fit, source, made.table, rows, None if is_lazy else frame, made, written_notes=notes)


def make_report(
    result: Result, wanted: OutputOptions, filing: FilingOptions, staging: Staging, origin: Source | None
) -> None:
    """Write the report, if one is asked for; the other files are there, so that it can name their digests."""
    from fairmaxent.report import build_report
    from fairmaxent.report.source import written_file
    from fairmaxent.report.writer import save_report

    if origin is None:
        return
    files = {"Fair table": wanted.output, "Model": wanted.model}
    written = tuple(
        written_file(what, staging.path_for(path), name=path)
        for what, path in files.items()
        if path not in (None, STANDARD)
    )
    # The report on a private fit says nothing about the file's content.
    exact = {"sha256": None} if result.private else {"reading": result.source.notes_spelled(origin.front_door.spell)}
    report = build_report(
        result.fit,
        data=None if result.private else result.source.frame,
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


# ---------------------------------------------------------------- on a Dask cluster, whose workers do the work


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Work on the cluster at an address, whose client is the active one inside."""
    if address is None:
        yield
        return
    import fairmaxent.engines.cluster_tasks as tasks

    distributed = load_library("distributed")
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except Exception as problem:  # its transports raise whatever they like, e.g. TypeError without certificates
        raise InputError(
            f"no Dask scheduler answers at {address} ({first_line(problem)}); check the address, or start one there: "
            "dask scheduler"
        ) from problem
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)  # the tracebacks that Dask logs: what goes wrong is said in one line
    try:
        with tasks.cluster_errors(), client:
            try:
                client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError as problem:
                raise InputError(
                    f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
                ) from problem
            yield
    finally:
        logging.disable(before)


def _open_parquet(path: str) -> TableFile:
    """Open Parquet files, which the workers then read."""
    import narwhals

    dask = load_library("dask.dataframe")
    try:
        return TableFile(narwhals.from_native(dask.read_parquet(path)), ())
    except Exception as problem:  # whatever its readers raise
        behind = problem.__cause__ if isinstance(problem.__cause__, Exception) else problem
        raise StorageError(
            f"cannot read {path} as parquet ({first_line(behind)}); with --scheduler a table is a Parquet file or a "
            "folder of them, at a path that the workers see too"
        ) from problem
