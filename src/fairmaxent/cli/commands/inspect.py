"""``fairmaxent inspect``: what a table looks like, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.config import config_option
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import after_inspection, without_last_row
from fairmaxent.cli.options import taking
from fairmaxent.cli.output_options import force_field, json_field
from fairmaxent.cli.reading_options import (
    DomainOptions,
    ReadingOptions,
    data_argument,
    domain_options,
    reading_options,
)
from fairmaxent.cli.request_options import RoleOptions, proposed_role_options
from fairmaxent.cli.streams import echo
from fairmaxent.cli.text import as_json, cell_text, say, step
from fairmaxent.errors import spelled
from fairmaxent.options import option
from fairmaxent.plain_text import escaped_toml

if TYPE_CHECKING:
    from fairmaxent.data.domain import Domain
    from fairmaxent.inspection import Inspection


@dataclass(frozen=True)
class InspectOptions:
    """What is written, and how the answer is given."""

    as_json: bool = json_field()
    write_config: str | None = option(
        None, text="file", in_files=False, metavar="FILE", help="Write a TOML file to edit, for 'debias'."
    )
    write_domain: str | None = option(
        None,
        text="file",
        in_files=False,
        metavar="FILE",
        help="Write a draft of a declared domain (TOML) to edit, for 'debias --epsilon'.",
    )
    force: bool = force_field()

    def checked(self, data: str) -> list[str]:
        """Refuse what cannot be written; return the files to be written."""
        for flag, path in (("--write-config", self.write_config), ("--write-domain", self.write_domain)):
            if path == "-":
                raise click.UsageError(f"{flag} needs the name of a file, not -")
        written = [path for path in (self.write_config, self.write_domain) if path is not None]
        refuse_overwriting([data], written)
        return written


@click.command()
@data_argument
@proposed_role_options
@taking(InspectOptions, "wanted")
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    wanted: InspectOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Look at the table in the file DATA (- is stdin). Changes nothing.

    Lists the columns, proposes the outcome, the good outcome and the protected columns if you do not name them, shows
    groups, rates and proxies, says what to watch out for, and prints the next command.

    \b
    fairmaxent inspect census.csv
    fairmaxent inspect census.csv --outcome income --protected sex,race
    """
    from fairmaxent.files.write import Staging, write_whole
    from fairmaxent.inspection.findings import inspection_text

    written = wanted.checked(data)
    with Staging(written, force=wanted.force, readable=written) as staging:
        with step(f"reading {data}"):
            table = reading.read(data, texts=columns_as.texts)
            roles = roles.checked(table, data)
        with step("looking"):
            domain = columns_as.domain(table.frame, roles.weight)
            inspection = inspected(table.frame, roles, domain)
        if wanted.write_config is not None:
            config = _config(inspection, roles, reading, columns_as)
            write_whole(staging.path_for(wanted.write_config), config.encode())
        if wanted.write_domain is not None:
            draft = domain_draft(table.frame, roles, domain)
            write_whole(staging.path_for(wanted.write_domain), draft.encode())
    notes = table.notes_spelled(as_typed)
    if wanted.as_json:
        echo(as_json({**_record(inspection), "reading": notes}))
    else:
        echo(inspection_text(inspection, as_typed, notes=notes))
    for path in written:
        say(f"wrote {cell_text(path)}", data_on_stdout=wanted.as_json)
    if wanted.write_domain is not None:
        say(
            f"Every level and edge in {cell_text(wanted.write_domain)} must be public knowledge: read it, edit it, and "
            "then remove the line 'draft = true'.",
            data_on_stdout=wanted.as_json,
        )
    if not wanted.as_json:
        if table.may_end_in_sum:
            echo(f"\n{without_last_row(ctx, data)}")
        echo(f"\n{after_inspection(ctx, data, inspection, config=wanted.write_config, form=table.form)}")


def inspected(frame: Any, roles: RoleOptions, domain: Domain | None) -> Inspection:
    """Look at a table with the roles that were chosen."""
    from fairmaxent.inspection import inspect

    return inspect(
        frame,
        roles.outcome or None,
        roles.protected or None,
        favourable=roles.favoured,
        groups=roles.groups,
        weight=roles.weight,
        domain=domain,
    )


def domain_draft(frame: Any, roles: RoleOptions, domain: Domain | None) -> str:
    """A declared domain to be edited; the columns with a role are in it even if they look like identifiers."""
    from fairmaxent.cli.config import domain_text
    from fairmaxent.data.domain import Domain

    named = [name for name in (roles.outcome, *roles.protected) if name]
    whole = domain or Domain.infer(frame if roles.weight is None else frame.drop(roles.weight))
    left_out = [name for name in whole.identifiers if name not in named]
    return domain_text(whole.without(left_out).draft(), left_out)


def _record(inspection: Inspection) -> dict[str, Any]:
    """The same for programs, with options as they are typed."""
    hints = [
        {"kind": hint.kind, "columns": hint.columns, "text": spelled(hint.parts, as_typed)} for hint in inspection.hints
    ]
    return {**inspection.to_dict(), "hints": hints}


_HEAD = """\
# Options of 'fairmaxent debias', with the same names. Rates may be "none", or by column in a section:
# [representation_rate]
# sex = 0.9
# A protected column has a representation_rate or a target, not both:
# [target.sex]
# Female = 0.6"""


def _config(inspection: Inspection, roles: RoleOptions, reading: ReadingOptions, columns_as: DomainOptions) -> str:
    """A TOML file with the options that 'debias' would use, to be edited."""
    known = replace(
        roles, outcome=inspection.outcome or "", protected=inspection.protected, favourable=inspection.favourable
    )
    rates = inspection.representation_rate
    by_column = rates if isinstance(rates, Mapping) else {}
    options = {
        **vars(known),
        "representation_rate": None if by_column else option_types.NOTHING if rates is None else rates,
        "statistical_rate": 1.0,
        "base": "tree",
        "base_share": 0.2,
        "random_state": 0,
        **vars(reading),
        "drop": reading.drop,
        "max_levels": columns_as.max_levels,
        "bins": next((bins for column, bins in columns_as.bins if column is None), None),
    }
    sections = {
        "representation_rate": [
            (column, option_types.NOTHING if rate is None else rate) for column, rate in by_column.items()
        ],
        "bins": [(column, bins) for column, bins in columns_as.bins if column is not None],
        "order": columns_as.order,
        "kinds": [
            (column.name, column.kind) for column in inspection.columns if column.name not in inspection.identifiers
        ],
    }
    lines = [_HEAD, *(f"{name} = {_toml(value)}" for name, value in options.items() if value not in (None, [], (), ""))]
    if inspection.identifiers:
        lines += [
            "# To keep columns that look like identifiers:",
            f"# keep_columns = {_toml(list(inspection.identifiers))}",
        ]
    for name, items in sections.items():
        if items:
            lines += ["", f"[{name}]", *(f"{_toml(column)} = {_toml(value)}" for column, value in items)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A text, a number, or a list of them: TOML writes these as JSON does."""
    return escaped_toml(json.dumps(value, ensure_ascii=False, default=str))
