"""``fairmaxent inspect``: what a table looks like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.config import config_option
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.options import (
    DomainOptions,
    ReadingOptions,
    RoleOptions,
    data_argument,
    domain_options,
    force_option,
    json_option,
    reading_options,
    role_options,
)
from fairmaxent.cli.streams import echo
from fairmaxent.cli.text import as_json as to_json
from fairmaxent.cli.text import cell_text, say, step, text_table
from fairmaxent.data.domain import count_text
from fairmaxent.data.levels import value_text
from fairmaxent.files.atomic import write_private
from fairmaxent.plain_text import escaped_toml

if TYPE_CHECKING:
    from fairmaxent.inspection import ColumnSummary, Inspection
    from fairmaxent.metrics.group_rates import Rate
    from fairmaxent.metrics.intervals import Interval

_PROXIES = 5  # shown for each protected column
_CELLS = 10
_LEVELS = 60  # characters


@click.command()
@data_argument
@role_options
@json_option
@click.option("--write-config", type=click.Path(), metavar="FILE", help="Write a TOML file to edit, for 'debias'.")
@force_option
@domain_options
@reading_options
@config_option
def command(
    data: str,
    roles: RoleOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
    as_json: bool,  # noqa: FBT001 (click passes it by name)
    write_config: str | None,
    force: bool,  # noqa: FBT001
) -> None:
    """Look at the table in the file DATA (- is stdin). Changes nothing.

    \b
    fairmaxent inspect census.csv --outcome income --protected sex,race
    """
    from fairmaxent.files.staging import Staging
    from fairmaxent.inspection import inspect

    if write_config == "-":
        raise click.UsageError("--write-config needs the name of a file, not -")
    written = [write_config] if write_config else []
    refuse_overwriting([data], written)
    with Staging(written, force=force, readable=written) as staging:
        with step(f"reading {data}"):
            table = reading.read(data)
            roles = roles.checked(table, data)
        with step("looking"):
            inspection = inspect(
                table.frame,
                roles.outcome,
                roles.protected,
                favourable=roles.favoured,
                groups=roles.groups,
                weight=roles.weight,
                domain=columns_as.domain(table.frame, roles.weight),
            )
        if write_config:
            config = _config(inspection, roles, reading, columns_as)
            write_private(staging.path_for(write_config), config.encode())
    if as_json:
        echo(to_json({**inspection.to_dict(), "reading": table.notes}))
    else:
        echo(_text(inspection, table.notes))
    if write_config:
        say(f"wrote {cell_text(write_config)}", data_on_stdout=as_json)


def _text(inspection: Inspection, notes: tuple[str, ...]) -> str:
    parts = [
        f"{inspection.rows:,} rows, {len(inspection.columns)} columns",
        _columns(inspection),
        *(_rates(grouping.name, grouping.representation, grouping.statistical) for grouping in inspection.groupings),
        _proxies(inspection),
        _warnings(inspection, notes),
        f"Cost of a fit: {inspection.cost.words} ({inspection.cost.distinct_rows:,} distinct rows, "
        f"{inspection.cost.features:,} features, {count_text(inspection.cost.domain_size)} possible rows).",
    ]
    return "\n\n".join(part for part in parts if part)


def _columns(inspection: Inspection) -> str:
    def role(column: ColumnSummary) -> str:
        return "outcome" if column.name == inspection.outcome else "protected" * (column.name in inspection.protected)

    rows = [
        [column.name, column.kind, column.values, column.levels, column.missing, role(column), _levels(column)]
        for column in inspection.columns
    ]
    return text_table(["column", "kind", "values", "levels", "missing", "role", ""], rows)


def _levels(column: ColumnSummary) -> str:
    if column.identifier:
        return "(looks like an identifier; not shown)"
    shown = ", ".join(column.shown)
    return shown if len(shown) <= _LEVELS else shown[:_LEVELS].rsplit(", ", 1)[0] + ", …"


def _rates(name: str, representation: Rate, statistical: Rate) -> str:
    shares = {group.group: group for group in representation.groups}
    rows = [
        [
            " × ".join(map(value_text, group.group)),
            shares[group.group].count,
            shares[group.group].rate,
            value_text(group.outcome),
            group.rate,
            _interval(group.interval),
        ]
        for group in statistical.groups
    ]
    table = text_table([name, "rows", "share", "outcome", "rate", "95 % interval"], rows)
    return f"{table}\nRepresentation rate {representation}\nStatistical rate {statistical}"


def _interval(ends: Interval | None) -> str:
    return "" if ends is None else f"{ends[0]:.4f} … {ends[1]:.4f}"


def _proxies(inspection: Inspection) -> str:
    from fairmaxent.inspection import NOTABLE

    rows = []
    for name in inspection.protected:
        notable = [proxy for proxy in inspection.proxies if proxy.protected == name and proxy.strength >= NOTABLE]
        rows += [[name, proxy.column, f"{proxy.strength:.0%}"] for proxy in notable[:_PROXIES]]
    if not rows:
        return "No column predicts a protected column."
    return text_table(["protected", "predicted by", "how well"], rows)


def _warnings(inspection: Inspection, notes: tuple[str, ...]) -> str:
    lines = [*notes, *inspection.notes]
    empty = inspection.empty_cells
    if empty:
        more = f" and {len(empty) - _CELLS} more" if len(empty) > _CELLS else ""
        lines.append(f"no row has {'; '.join(empty[:_CELLS])}{more}")
    if inspection.identifiers:
        lines.append(
            "these columns look like identifiers, so 'fairmaxent debias' leaves them out unless you add "
            f"--keep {','.join(inspection.identifiers)}"
        )
    return "\n".join(f"Note: {cell_text(line)}" for line in lines)


_HEAD = """\
# Options of 'fairmaxent debias', with the same names. Rates may be "none", or by column in a section:
# [representation_rate]
# sex = 0.9
# A protected column has a representation_rate or a target, not both:
# [target.sex]
# Female = 0.6"""


def _config(inspection: Inspection, roles: RoleOptions, reading: ReadingOptions, columns_as: DomainOptions) -> str:
    """A TOML file with the options that 'debias' would use, to be edited."""
    options = {
        **vars(roles),
        "representation_rate": 1.0 if inspection.bears_equal_groups else option_types.NOTHING,
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
        "bins": [(column, bins) for column, bins in columns_as.bins if column is not None],
        "order": columns_as.order,
        "kinds": [
            (column.name, column.kind) for column in inspection.columns if column.name not in inspection.identifiers
        ],
    }
    lines = [_HEAD, *(f"{name} = {_toml(value)}" for name, value in options.items() if value not in (None, [], ()))]
    if inspection.identifiers:
        lines += ["# To keep columns that look like identifiers:", f"# keep = {_toml(list(inspection.identifiers))}"]
    for name, items in sections.items():
        if items:
            lines += ["", f"[{name}]", *(f"{_toml(column)} = {_toml(value)}" for column, value in items)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A text, a number, or a list of them: TOML writes these as JSON does."""
    return escaped_toml(json.dumps(value, ensure_ascii=False, default=str))
