"""``fairmaxent inspect``: what a table looks like, and what to do next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import narwhals as nw

from fairmaxent.cli.config import domain_text, toml, toml_section
from fairmaxent.cli.options import (
    CONFIG,
    Tokens,
    given_options,
    next_step,
    outputs,
    repeated,
    resolved,
    taking,
)
from fairmaxent.cli.output import FORCE, JSON, REPORT, TARGET, check_report, source_of
from fairmaxent.cli.reading import (
    DomainOptions,
    ReadingOptions,
    check_files,
    table_command,
)
from fairmaxent.cli.request import (
    ASKED,
    RoleOptions,
    proposed_role_options,
)
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import as_typed
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import value_text
from fairmaxent.data.likely import Likely
from fairmaxent.data.limits import memory_limit, memory_text
from fairmaxent.data.table import Names
from fairmaxent.document.text import on_one_line
from fairmaxent.engines.lazy_counts import foresee
from fairmaxent.errors import KEEP_COLUMNS, LimitError
from fairmaxent.fairness.compare import Compare
from fairmaxent.files.parquet import loaded, named_part, parts_of, scan_table
from fairmaxent.files.reading import STANDARD, TableFile, TableForm
from fairmaxent.files.write import Staging, write_whole
from fairmaxent.fit.wanted_rates import rates_in
from fairmaxent.inspection import Inspection, inspect
from fairmaxent.inspection.findings import inspection_text
from fairmaxent.inspection.hints import Hint
from fairmaxent.options import NOTHING, like, option
from fairmaxent.options.values import TEXTS
from fairmaxent.plain_text import Values
from fairmaxent.privacy.budget import Privacy

# Options that are repeated as they were given: how the file is read, and how columns
# are compared.
_REPEATED = {
    field.name for kind in (ReadingOptions, DomainOptions) for field in fields(kind)
} | {"groups", "weight", "within", "smallest_group", "epsilon"}
_LIKELY = [source for source in ASKED if "likely" in {source.name, source.owner}]
_REPEATED |= {source.name for source in _LIKELY}
_NAMES = TEXTS["names"]
_CHOICES = 6  # columns that are named to choose from
_WORKERS = 10  # of a cluster whose memory is foreseen
_MUST_BE_PUBLIC = (
    ": every level and edge in it must be public knowledge, so read it and edit it"
)
_CONFIG = """\
# Options of 'fairmaxent debias', with the same names. Rates may be "none", or by column in a section:
# [representation_rate]
# sex = 0.9
# A protected column has a representation_rate or a target, not both:
# [target.sex]
# Female = 0.6"""  # noqa: E501 (a file)


@dataclass(frozen=True)
class InspectOptions:
    """How groups are compared, what is written, and how the answer is given."""

    within: Any = like(
        Compare,
        "within",
        help=(
            "Compare groups within the strata of these columns, e.g. department: the"
            " answer is the ratio over all strata together. label=yes compares within"
            " that level only."
        ),
    )
    cluster: str | None = like(Compare, "cluster")
    json: bool = option(False, **JSON)
    report: str | None = option(None, **REPORT)
    smallest_group: Any = like(Compare, "smallest_group")
    reference: Any = like(Compare, "reference")
    write_config: str | None = option(
        None, **TARGET, help="Write a TOML file to edit, for 'debias'."
    )
    write_domain: str | None = option(
        None,
        **TARGET,
        help="Write a draft domain (TOML) to edit, for 'debias --epsilon'.",
    )
    epsilon: float | None = option(
        None,
        text="number",
        help=(
            "Say how far off a private fit with this ε would be, before anything is"
            " spent; needs --domain."
        ),
    )
    force: bool = option(False, **FORCE)

    @property
    def targets(self) -> list[str]:
        """Every file to be written; refuse stdout, where the answer goes."""
        files = {"config": self.write_config, "domain": self.write_domain}
        for what, path in files.items():
            if path == STANDARD:
                raise click.UsageError(
                    f"--write-{what} needs the name of a file, not -"
                )
        paths = (self.write_config, self.write_domain, self.report)
        return [path for path in paths if path is not None]


@table_command(
    proposed_role_options,
    taking(dict, "likely", _LIKELY, required=False),
    taking(InspectOptions, "wanted"),
)
def inspect_command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    likely: Values,
    wanted: InspectOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Look at the table in the file DATA (- is stdin). Changes nothing.

    Says whether it is fair and how sure that is, lists the columns, proposes the
    outcome, the good outcome and the protected columns if you do not name them, shows
    groups, rates and proxies, and prints the next command.

    \b
    fairmaxent inspect census.csv
    fairmaxent inspect census.csv --outcome income --protected sex,race --report report.html
    fairmaxent inspect hired.csv --outcome hired --protected sex --within department
    """  # noqa: E501 (a command, to be copied)
    written = wanted.targets
    check_files(written)
    check_report(wanted.report)
    with Staging(written, force=wanted.force, readable=written) as staging:
        with bar(f"reading {data}"):
            table, foreseen = _read(data, roles.weight, columns_as, reading)
            roles = roles.checked(table, data)
        with bar("looking"):
            domain = columns_as.domain_of(table.frame, roles.weight)
            promise = None
            if wanted.epsilon is not None:
                promise = Privacy(epsilon=wanted.epsilon)
            inspection = inspected(
                table.frame,
                roles,
                columns_as.declaration or domain,
                likely=Likely.among(dict(likely)),
                within=wanted.within,
                cluster=wanted.cluster,
                smallest_group=wanted.smallest_group,
                reference=wanted.reference,
                privacy=promise,
            )
        if wanted.write_config is not None:
            config = _config(inspection, roles, wanted.within, reading, columns_as)
            write_whole(staging.path_for(wanted.write_config), config.encode())
        if wanted.write_domain is not None:
            draft = domain_draft(table.form, table.frame, roles, domain)
            write_whole(staging.path_for(wanted.write_domain), draft.encode())
        notes = (*table.notes_spelled(as_typed), *foreseen)
        if wanted.report is not None:
            from fairmaxent.report.writer import write_inspection_report

            source = source_of(data, columns_as, resolved(ctx, seed=None))
            write_inspection_report(
                inspection,
                staging.path_for(wanted.report),
                source=replace(source, reading=notes),
            )
    if wanted.json:
        echo(json_record({**inspection.to_dict(as_typed), "reading": notes}))
    else:
        echo(inspection_text(inspection, as_typed, notes=notes))
    for path in written:
        about = _MUST_BE_PUBLIC if path == wanted.write_domain else ""
        echo(f"wrote {on_one_line(path)}{about}", err=wanted.json)
    if not wanted.json:
        echo(f"\n{_next(ctx, data, inspection, wanted, table.form)}")


def _read(
    data: str,
    weight: str | None,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> tuple[TableFile, Names]:
    """The table, and if it is in parts, what it takes to make it fair."""
    parts = parts_of(data)
    with named_part(data):
        scanned = None if parts is None else reading.scan(data)
        if parts is None or scanned is None:
            return reading.read(data, columns_as.declaration), ()
        expected = _foreseen(scanned.frame.drop(weight or (), strict=False), parts)
        try:
            return replace(scanned, frame=loaded(scanned.frame, data)), (expected,)
        except LimitError as problem:
            raise LimitError(*problem.parts, f". {expected}") from problem


def _foreseen(lazy: Any, parts: list[Path]) -> str:
    """What a fit reads and holds, and who should do it."""
    found = foresee(nw.from_native(lazy))
    sizes = {part: part.stat().st_size for part in parts}
    largest: Any = scan_table(max(sizes, key=sizes.__getitem__))
    rows = int(nw.from_native(largest).select(nw.len()).collect().item())
    read = found.passes * sum(sizes.values())
    advice = "polars on this machine is the cheapest way"
    if found.memory > memory_limit():
        advice = (
            "that is more than there is here, so let a Dask cluster do it"
            " (--scheduler), whose workers share them"
        )
    return (
        "To make the table fair, 'debias' does not load it, but reads it twice"
        f" ({memory_text(read)} in all), and once more for weights. It"
        f" then holds about {found.distinct:,} distinct rows, which"
        f" takes about {memory_text(found.memory)}: {advice}. The client of a"
        f" cluster would take about {memory_text(found.client)}, and each of"
        f" {_WORKERS} workers {memory_text(found.worker(_WORKERS, rows))}"
    )


def inspected(
    frame: Any,
    roles: RoleOptions,
    domain: Domain | Declaration | None,
    **compared: Any,
) -> Inspection:
    """Look at a table with the roles that were chosen.

    ``compared`` are the options by which groups are compared.
    """
    return inspect(
        frame,
        **roles.named,
        groups=roles.groups,
        weight=roles.weight,
        domain=domain,
        **compared,
    )


def domain_draft(
    form: TableForm,
    frame: Any,
    roles: RoleOptions,
    domain: Domain | None,
) -> str:
    """A declared domain to be edited.

    Columns with a role are in it even if they look like identifiers.
    """
    weights = [] if roles.weight is None else [roles.weight]
    whole = domain or Domain.infer(frame.drop(weights))
    left_out = [
        name
        for name in whole.identifiers
        if name not in (roles.outcome, *roles.protected)
    ]
    drafted = whole.without(left_out).draft()
    drafted = replace(drafted, decimal=form.decimal, dates=form.dates)  # type: ignore[arg-type]
    return domain_text(drafted, left_out)


def _private_next(
    ctx: click.Context,
    data: str,
    inspection: Inspection,
    domain: str,
    form: TableForm,
) -> str:
    """The private fit with the domain that was drafted, once somebody has read that."""
    names = {field.name for field in fields(ReadingOptions)}
    given = [*_roles(ctx, inspection), *given_options(ctx, names | {"groups"})]
    for name, value in form.found:
        flag = f"--{name.replace('_', '-')}"
        if flag not in given:
            given += [flag, value]
    named = (inspection.outcome, *inspection.protected)
    left_out = [
        name
        for name in (*inspection.identifiers, ctx.params["weight"])
        if name and name not in named
    ]
    if left_out:
        given += repeated("--drop", TEXTS["columns"].typed(left_out))
    private = ["--domain", domain, "--epsilon", "1"]
    return next_step(
        "read the draft, change what is not public, and remove its line 'draft = true';"
        " 'inspect' with --domain and --epsilon 1 then says what a private fit would be"
        " worth, and spends nothing. To make the table fair and private, with a report",
        ["debias", data, *given, *private, *outputs(data, form, is_private=True)],
    )


def _config(
    inspection: Inspection,
    roles: RoleOptions,
    within: Any,
    reading: ReadingOptions,
    columns_as: DomainOptions,
) -> str:
    """A TOML file with the options that 'debias' would use, to be edited."""
    chosen = replace(
        roles,
        outcome=inspection.outcome or "",
        protected=inspection.protected,
        favourable=inspection.favourable,
    )
    rates = _without_none(inspection.representation_rate)
    options = {
        **vars(chosen),
        "within": _levels_within(within),
        "representation_rate": rates,
        "statistical_rate": 1.0,
        "base": "tree",
        "base_share": 0.2,
        "random_state": 0,
        **vars(reading),
        "max_levels": columns_as.max_levels,
        "bins": columns_as.bins,
    }
    kinds = {
        column.name: column.kind
        for column in inspection.columns
        if column.name not in inspection.identifiers
    }
    lines = [_CONFIG]
    sections = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            sections[name] = value
        elif value not in (None, [], (), ""):
            lines.append(f"{name} = {toml(value)}")
    if inspection.identifiers:
        kept = f"{KEEP_COLUMNS.name} = {toml(inspection.identifiers)}"
        lines += ["# To keep columns that look like identifiers:", f"# {kept}"]
    sections["order"] = columns_as.order or {}
    sections["kinds"] = kinds
    for name, values in sections.items():
        lines += toml_section(name, values)
    return "\n".join(lines) + "\n"


def _levels_within(within: Any) -> Any:
    """Strata as TOML holds them: no levels of a column are all of them."""
    if isinstance(within, Mapping):
        return {column: levels or [] for column, levels in within.items()}
    return within


def _without_none(rate: Any) -> Any:
    """A rate, or one for each column, as TOML holds it, which has no None."""
    if isinstance(rate, Mapping):
        return {column: _without_none(each) for column, each in rate.items()}
    return NOTHING if rate is None else rate


def _doubt(inspection: Inspection) -> str:
    """Why the table need not be made fair, if nothing shows that it is unfair."""
    verdicts = inspection.verdicts
    if verdicts and all(verdict.gap is None for verdict in verdicts):
        return "groups are too small to compare; if you want none to differ, "
    if not inspection.likely and all(verdict.most == 1 for verdict in verdicts):
        return "no gap here is clearly more than chance; if you want none at all, "
    return ""


def _next(
    ctx: click.Context,
    data: str,
    inspection: Inspection,
    wanted: InspectOptions,
    form: TableForm,
) -> str:
    """What to do after an inspection: choose what is not known, or make it fair."""
    domain = wanted.write_domain
    if domain is not None and inspection.outcome and inspection.protected:
        return _private_next(ctx, data, inspection, domain, form)
    merged = one_name(inspection)
    # whoever named levels knows them
    if merged and not (ctx.params["levels"] or ctx.params["favourable"]):
        typed = given_options(ctx, _REPEATED | {"outcome", "protected"})
        return next_step(
            "if levels are only written differently, look again with one name for each",
            ["inspect", data, *typed, *repeated("--levels", _NAMES.typed(merged))],
        )
    options = [*_roles(ctx, inspection), *given_options(ctx, _REPEATED)]
    looking = ["inspect", data, *options, *given_options(ctx, {"cluster"})]
    if not inspection.outcome:
        names = _proposed(inspection, "outcome")
        return _choose("outcome with --outcome", names, names[:1], looking)
    if not (inspection.protected or inspection.likely):
        for hint in inspection.hints:
            if hint.kind == "probabilities":
                return _likely_next(hint, looking)
        names = _proposed(inspection, "protected")
        # Columns of a few texts first: numbers rarely name groups of people.
        names += [
            column.name
            for column in sorted(
                inspection.columns, key=lambda column: column.kind == "numeric"
            )
            if 2 <= column.levels <= 10 and not column.identifier
        ]
        names = [name for name in names if name != inspection.outcome]
        example = TEXTS["columns"].typed(names[:1])
        return _choose("groups to compare with --protected", names, example, looking)
    why = "make the table fair, with a report"
    is_private = wanted.epsilon is not None
    if is_private:
        why = "make the table fair and private, with a report"
    elif wanted.write_config is not None:  # which declares nothing
        options = ["--config", wanted.write_config]
    why = _doubt(inspection) + why
    if data == STANDARD:
        why += ", with the same table on stdin"
    if "--representation-rate" in options:
        why += (
            " (a --representation-rate of 1 also makes groups equally large; to keep"
            " their sizes, leave it out)"
        )
    files = outputs(data, form, is_private=is_private)
    return next_step(why, ["debias", data, *options, *files])


def _likely_next(hint: Hint, looking: Tokens) -> str:
    option = hint.option
    asked = repeated(f"--{option.name}", _NAMES.typed(option.value))
    return next_step(
        "if these are probabilities of groups, look at the groups; say what tells them",
        [*looking, *asked, "--told-by", "names"],
    )


def one_name(inspection: Inspection) -> Values:
    """One name for levels that are probably the same, of columns with a role."""
    names: Values = {}
    for hint in inspection.hints:
        if hint.kind == "similar levels" and inspection.role_of(hint.columns[0]):
            names |= hint.option.value
    return names


def _proposed(inspection: Inspection, role: str) -> list[str]:
    return [str(proposal.value) for proposal in inspection.proposed(role)]


def _choose(
    what: str,
    names: list[str],
    example: Tokens | None,
    looking: Tokens,
) -> str:
    """Say which role is to be chosen, from which columns, and how for the first."""
    why = f"choose the {what}"
    if not names:
        return next_step(why)
    if len(names) > 1:
        listed = ", ".join(names[:_CHOICES])
        if len(names) > _CHOICES:
            listed += ", …"
        why += f" ({listed})"
    flag = what.split()[-1]
    return next_step(f"{why}, for example", [*looking, *repeated(flag, example)])


def _roles(ctx: click.Context, inspection: Inspection) -> Iterator[str | None]:
    """The roles, and equal group sizes but for columns that have tiny groups.

    A config file says itself how large groups are to be.
    """
    if inspection.outcome is not None:
        yield from repeated("--outcome", [inspection.outcome])
    levels = [value_text(level) for level in inspection.favourable]
    yield from repeated("--favourable", levels)
    if not inspection.protected:
        return
    yield from repeated(
        "--protected", TEXTS["columns"].typed(list(inspection.protected))
    )
    rate = inspection.representation_rate
    is_told = CONFIG not in ctx.meta and inspection.outcome is not None
    if is_told and rates_in(rate):
        yield from repeated("--representation-rate", TEXTS["rate"].typed(rate))
