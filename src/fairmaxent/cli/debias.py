"""``fairmaxent debias``, from a file to a fair one, ``demo``, and ``ledger``."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import narwhals

from fairmaxent.cli.options import (
    NEXT,
    SectionedCommand,
    chosen_seed,
    ledger_beside,
    next_step,
    resolved,
    taking,
)
from fairmaxent.cli.output import OutputOptions, source_of
from fairmaxent.cli.reading import (
    DomainOptions,
    ReadingOptions,
    states,
    table_command,
    unchanged,
)
from fairmaxent.cli.request import (
    ROLES,
    AskedOptions,
    RoleOptions,
    if_known,
    request_options,
)
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import FILE
from fairmaxent.data.frames import load_library
from fairmaxent.errors import (
    FairMaxEntError,
    InputError,
    Option,
    StorageError,
    first_line,
)
from fairmaxent.files.parquet import check_parts, named_part
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging, write_table
from fairmaxent.fit.request import Request
from fairmaxent.options import python_lines
from fairmaxent.options.refusals import refuse
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.refusals import about_exact_rows
from fairmaxent.privacy.spending import Spending, spent_so_far
from fairmaxent.progress import silent

if TYPE_CHECKING:
    from fairmaxent.fit.certified import Certified
    from fairmaxent.fit.storage import KeptCounts

_PATIENCE = 10  # seconds to wait for a scheduler, and for its first worker
_DEMO_FILES = ("census.csv", "fair.csv", "fit.fme", "report.html")
_NO_LEDGER = (
    "What this fit spent is in no ledger, as the table has no place for one; name a"
    " file with --ledger."
)


@table_command(
    taking(RoleOptions, "roles", map(if_known, ROLES)),
    request_options,
    taking(OutputOptions, "wanted"),
    cls=SectionedCommand,
    epilog=(
        "Without -o, --save and --report nothing is written; the rates before"
        " and after are shown."
    ),
)
def debias_command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Turn the table in the file DATA (- is stdin) into a fair one.

    \b
    fairmaxent debias census.csv --outcome income --protected sex,race -o fair.csv
    """
    from fairmaxent.cli import result as told

    _need_groups(ctx, roles, asked)
    if asked.has("epsilon"):
        wanted = wanted.keeping_fit()
    if wanted.mode != "weights":
        asked = _with_seed(asked)
    repeat = resolved(ctx, seed=asked.values["random_state"])
    ledger = _ledger(data, asked, wanted, repeat)
    request = asked.request(roles, None)
    refuse(request, wanted, columns_as, estimate=wanted.estimated_on)
    wanted.check(ledger)
    with (
        contextlib.ExitStack() as paid,
        wanted.staging() as staging,
        _connected(wanted.scheduler),
    ):
        origin = source_of(data, columns_as, repeat) if wanted.report else None
        with bar(f"reading {data}"):
            source, is_scanned = _opened(data, asked, wanted, columns_as, reading)
        with unchanged(data) if is_scanned else contextlib.nullcontext():
            roles = roles.checked(source, data, columns_as.declaration)
            wanted = wanted.in_form(source)
            with bar(f"fitting {data}") as progress:
                domain = columns_as.declaration or columns_as.domain_of(
                    source.frame, roles.weight
                )
                request = asked.request(roles, domain, progress)
                kept = _kept(data, request, wanted, columns_as, reading)
                fit = _fit(source.frame, request, wanted, staging, paid, kept)
            with bar("writing") as progress:
                result = told.make_result(fit, source, wanted, staging, progress)
        with bar("writing"):
            if origin is not None:
                told.make_report(result, wanted, staging, origin)
            # last, because stdout cannot be taken back
            if wanted.output == STANDARD and result.frame is not None:
                wanted.write(result.frame, source, staging)
        # Here, because it asks for rows, which are out of reach once the client of a
        # cluster is closed.
        following = ctx.meta.get(NEXT)
        if following is None:
            following = told.after_debias(data, wanted, repeat, result)
        if request.provenance.spends:
            following = f"{_spent(ledger, request.provenance.delta)}\n\n{following}"
        if wanted.json:
            text = json_record(told.result_record(result, wanted))
        else:
            text = told.result_text(result, wanted, following)
    echo(text, err=wanted.output == STANDARD)


def _need_groups(ctx: click.Context, roles: RoleOptions, asked: AskedOptions) -> None:
    """Refuse a call without groups to compare."""
    if not (roles.protected or asked.has("likely")):
        params = {param.name: param for param in ctx.command.params}
        raise click.MissingParameter(ctx=ctx, param=params["protected"])


def _with_seed(asked: AskedOptions) -> AskedOptions:
    """The same with a seed, so that a report can say how to repeat the draws."""
    seed = chosen_seed(asked.values["random_state"])
    return AskedOptions(asked.values | {"random_state": seed})


def _ledger(
    data: str, asked: AskedOptions, wanted: OutputOptions, repeat: str
) -> str | None:
    """The file that adds up private fits of a table, if this is one and it has a place.

    This one will pay there. A file that is written for something else is refused.
    """
    if not asked.has("epsilon"):
        return None
    beside = ledger_beside(data)
    ledger = asked.values["ledger"] or beside
    if ledger is None:
        return None
    place = os.path.realpath(ledger)
    if beside and place != beside and os.path.exists(beside):
        raise click.UsageError(
            f"{beside} has private fits of the same people, which another ledger would"
            " not add up; leave --ledger out, or move that file there"
        )
    if place in map(os.path.realpath, wanted.targets):
        raise click.UsageError(
            f"{ledger} is the ledger, and would be written twice; name another file"
            " with --ledger"
        )
    saved = str(Path(wanted.save or "").absolute())
    asked.values["ledger"] = Spending(ledger, repeat, saved)
    return ledger


def _fit(
    frame: Any,
    request: Request,
    wanted: OutputOptions,
    staging: Staging,
    paid: contextlib.ExitStack,
    kept: KeptCounts | None,
) -> Certified:
    """Fit, keep at once what was paid for, and estimate a model if asked."""
    from fairmaxent.fit.pipeline import fit_frame, with_estimate

    estimate = wanted.estimated_on
    if kept is not None:
        paid.enter_context(kept)
    fit = fit_frame(frame, request, kept)
    paid.enter_context(_keeping(fit, wanted, staging))
    if estimate is None:
        return fit
    return with_estimate(fit, estimate, progress=request.progress or silent)


def _kept(
    data: str,
    request: Request,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> KeptCounts | None:
    """Where the counts are kept for another try: beside the output."""
    if not wanted.resume:
        return None
    from fairmaxent.fit.storage import KeptCounts

    same = replace(request.kept(), random_state=None, domain=None)
    domain = (columns_as, columns_as.declaration)
    asked = repr((states(data), python_lines(same), domain, reading))
    digest = hashlib.sha256(asked.encode()).hexdigest()
    # workers are in other folders
    return KeptCounts(Path(f"{wanted.output}.counts").absolute(), digest)


def _spent(ledger: str | None, delta: float) -> str:
    if ledger is None:
        return _NO_LEDGER
    return f"{spent_so_far(ledger, delta)}; {ledger} keeps count."


@contextlib.contextmanager
def _keeping(fit: Certified, wanted: OutputOptions, staging: Staging) -> Iterator[None]:
    """Save a private fit at once.

    Whatever fails from now on, what was paid for is there, and said.
    """
    if fit.provenance.repeats_with_seed or wanted.save is None:
        yield
        return
    fit.save(staging.path_for(wanted.save))
    staging.publish(wanted.save)
    try:
        yield
    except FairMaxEntError as problem:
        raise type(problem)(
            *problem.parts,
            f"; what was paid for is in {wanted.save}: 'fairmaxent sample' and"
            " 'fairmaxent report' work from it, and spend nothing more",
        ) from problem


def _opened(
    data: str,
    asked: AskedOptions,
    wanted: OutputOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> tuple[TableFile, bool]:
    """The table, and whether it stays on disk."""
    if wanted.scheduler is not None:
        return reading.without_dropped(_on_cluster(data)), True
    # A model learns from each row, and rows to share depend on how rare each value is.
    whole = asked.has("model") or (asked.has("release") and columns_as.domain is None)
    whole |= asked.has("likely")  # the probabilities are those of each row
    with named_part(data):
        scanned = reading.scan(data, whole=whole)
    if wanted.resume and (whole or scanned is None):
        raise click.UsageError(
            f"{data} is read into memory at once, as these options need it, or as it is"
            " not in Parquet; leave out --resume"
        )
    if scanned is not None:
        return scanned, not whole
    with about_exact_rows() if asked.has("epsilon") else contextlib.nullcontext():
        return reading.read(data, asked.declared(columns_as.declaration)), False


def _on_cluster(data: str) -> TableFile:
    dask = load_library("dask.dataframe")
    check_parts(data)
    try:
        # pandas has no type of its own for some columns, nor one that it can read again
        # for Arrow's dictionaries
        frame = dask.read_parquet(data, dtype_backend="pyarrow")
        values = {
            name: f"{kind.pyarrow_dtype.value_type}[pyarrow]"
            for name, kind in frame.dtypes.items()
            if "dictionary" in str(kind)
        }
        return TableFile(narwhals.from_native(frame.astype(values)), ())
    except Exception as problem:  # whatever its readers raise
        reason = first_line(problem.__cause__ or problem)
        raise StorageError(
            f"cannot read {data} as parquet ({reason}); with --scheduler a"
            " table is a Parquet file or a folder of them, at a path that the workers"
            " see too"
        ) from problem


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
    # its transports raise whatever they like, e.g. TypeError without certificates
    except Exception as problem:
        raise InputError(
            f"no Dask scheduler answers at {address} ({first_line(problem)}); check the"
            " address, or start one there: dask scheduler"
        ) from problem
    before = logging.root.manager.disable
    # the tracebacks that Dask logs: what goes wrong is said in one line
    logging.disable(logging.ERROR)
    try:
        with tasks.cluster_errors(), client:
            try:
                client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError as problem:
                raise InputError(
                    f"the Dask scheduler at {address} has no workers; start some: dask"
                    f" worker {address}"
                ) from problem
            yield
    finally:
        logging.disable(before)


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the files.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.pass_context
def demo_command(ctx: click.Context, out: Path, force: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Make a census table that comes with the package fair to women and men.

    Leaves census.csv (the data), fair.csv (new rows), fit.fme (the fit) and
    report.html in the folder.
    """
    from fairmaxent import datasets

    for path in (out / name for name in _DEMO_FILES):
        if path.exists() and not force:
            raise StorageError(
                f"{path} exists; use ",
                Option("force"),
                " to replace it, or name another folder",
            )
    census = datasets.load("acs", library="polars")
    out.mkdir(parents=True, exist_ok=True)
    table = out / "census.csv"
    write_table(census.frame, table, force=force)
    arguments = [str(table), "--outcome", census.outcome, "--protected", "sex"]
    arguments += ["--favourable", str(census.favourable), "--representation-rate", "1"]
    arguments += ["--seed", "0"]
    if force:
        arguments.append("--force")
    arguments += ["-o", str(out / "fair.csv"), "--save", str(out / "fit.fme")]
    arguments += ["--report", str(out / "report.html")]
    typed = ["fairmaxent", "debias", *arguments]
    asked = (
        "What is asked for: as many women as men, and the same share of each with a"
        " high income."
    )
    echo(f"{census.description}\n\n{asked}\n\n$ {shlex.join(typed)}\n")
    ctx.find_root().obj = typed  # what the report says to repeat
    why = (
        f"open {out / 'report.html'} in a browser. Then begin with a table of yours;"
        " each command names the next"
    )
    live = next_step(
        "move what is asked for, and see live who gains", ["app", str(table)]
    )
    ctx.meta[NEXT] = f"{live}\n\n{next_step(why, ['inspect', 'your-table.csv'])}"
    with debias_command.make_context("debias", arguments, parent=ctx) as context:
        debias_command.invoke(context)


@click.command()
@click.argument("ledger", type=FILE, metavar="LEDGER")
@click.option(
    "--budget",
    type=float,
    help=(
        "From now on, all private fits together may spend this ε. It is written down"
        " with the date, beside those before it."
    ),
)
@click.option(
    "--delta",
    type=float,
    default=Privacy.delta,
    show_default=True,
    help="The δ that ε is stated with.",
)
def ledger_command(*, ledger: str, budget: float | None, delta: float) -> None:
    """Show what private fits have spent on the same people, or set their budget.

    LEDGER is the file that 'fairmaxent debias --epsilon' keeps beside the table.

    \b
    fairmaxent ledger census.csv.ledger.json
    fairmaxent ledger census.csv.ledger.json --budget 2
    """
    spending = Spending(ledger)
    if not os.path.lexists(ledger):
        raise StorageError(f"{ledger} does not exist; a private fit begins it")
    if budget is not None:
        spending.allow(Privacy(epsilon=budget, delta=delta))
    for line in spending.lines(Privacy(delta=delta).delta):
        echo(line)
