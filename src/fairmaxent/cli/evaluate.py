"""``fairmaxent evaluate``: judge new rows before they are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.options import SectionedCommand, next_step, taking
from fairmaxent.cli.output import JSON, SEED
from fairmaxent.cli.reading import ReadingOptions, check_dropped, reading_options
from fairmaxent.cli.request import RoleOptions
from fairmaxent.cli.terminal import as_json, bar, echo
from fairmaxent.cli.values import FILE, as_typed
from fairmaxent.errors import BASE_SHARE
from fairmaxent.files.reading import STANDARD
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.evaluation.result import Evaluation
    from fairmaxent.files.reading import TableFile


@dataclass(frozen=True)
class EvaluateOptions:
    """What the new rows are judged by."""

    HEADING = "Options"

    control: str | None = option(
        None,
        text="file",
        metavar="FILE",
        label="Rows of other people",
        help="Rows of other people, not used to make the new rows. Without them, risks can only be bounded.",
    )
    outcome: str | None = option(
        None,
        metavar="COLUMN",
        help="Outcome column: a model is trained on the new rows and judged on real people.",
    )
    protected: list[str] | None = option(
        None, text="columns", help="Columns whose groups that model is judged by, e.g. sex,race; repeatable."
    )
    favourable: list[object] | None = option(
        None, flags=("--favourable", "--favorable"), text="level", help="The good outcome; repeatable."
    )
    secrets: list[str] | None = option(
        None,
        text="columns",
        label="Columns that an attacker wants to know",
        help="Columns that an attacker wants to know, who knows all others; repeatable. By default every column.",
    )
    attacks: int = option(
        2000,
        text="whole",
        least=1,
        label="Tries of each attack",
        help="How many people, or guesses, each attack is tried on; more make the intervals narrower.",
    )
    random_state: int = option(
        0,
        least=0,
        help="Seed of everything that is drawn.",
        page_help="The same seed gives the same result.",
        **SEED,
    )
    as_json: bool = option(False, **JSON)


@click.command(
    cls=SectionedCommand,
    epilog="Nothing is written. The exit code is 0 whatever the verdict; --json lists what was 'flagged'.",
)
@click.argument("real", type=FILE, metavar="REAL")
@click.argument("new", type=FILE, metavar="NEW")
@taking(EvaluateOptions, "wanted")
@reading_options
@config_option
def evaluate_command(real: str, new: str, wanted: EvaluateOptions, reading: ReadingOptions) -> None:
    """Judge the rows in the file NEW, which were made from the table in the file REAL (- is stdin).

    Fidelity: how much the tables differ. Utility: what a model learns from the new rows. Risk: what the new rows give
    away about people of the real table: copies, and attacks that single people out, link tables, guess columns and tell
    who was in the table.

    \b
    fairmaxent evaluate census.csv fair.csv --control others.csv --outcome income
    """
    from fairmaxent.evaluation.evaluation import evaluate
    from fairmaxent.evaluation.result import evaluation_text

    paths = {"real": real, "new": new} | ({} if wanted.control is None else {"control": wanted.control})
    if list(paths.values()).count(STANDARD) > 1:
        raise click.UsageError("only one table can be read from stdin; name files for the others")
    tables = _read(paths, reading)
    if wanted.protected and not wanted.outcome:
        raise click.UsageError("--protected compares groups by an outcome; name that with --outcome, too")
    asked = RoleOptions(wanted.outcome or "", tuple(wanted.protected or ()), tuple(wanted.favourable or ()))
    roles = asked.checked(tables["real"], real)
    with bar("evaluating") as progress:
        evaluation = evaluate(
            tables["real"].frame,
            tables["new"].frame,
            control=tables["control"].frame if "control" in tables else None,
            outcome=roles.outcome or None,
            protected=roles.protected or None,
            favourable=roles.favoured,
            secrets=wanted.secrets,
            attacks=wanted.attacks,
            random_state=wanted.random_state,
            progress=progress,
        )
    notes = [f"{paths[name]}: {note}" for name, table in tables.items() for note in table.notes_spelled(as_typed)]
    if wanted.as_json:
        echo(as_json({**evaluation.to_dict(), "notes": notes}))
    else:
        echo(f"{evaluation_text(evaluation, notes)}\n\n{next_step(_next(evaluation))}")


def _read(paths: Mapping[str, str], reading: ReadingOptions) -> dict[str, TableFile]:
    """Read all tables in the same way; a column to drop may be in only some of them."""
    tables = {}
    for name, path in paths.items():
        with bar(f"reading {path}"):
            tables[name] = replace(reading, drop=None).read(path)
    names = {name: table.frame.collect_schema().names() for name, table in tables.items()}
    dropped = reading.drop or ()
    check_dropped(dropped, list(dict.fromkeys(column for columns in names.values() for column in columns)))
    return {
        name: replace(reading, drop=[column for column in dropped if column in names[name]]).without_dropped(table)
        for name, table in tables.items()
    }


def _next(evaluation: Evaluation) -> str:
    """Make better rows, find out more, or share them."""
    if evaluation.flagged and "copies" not in evaluation.flagged:
        return "round or drop columns with rare values, make new rows and evaluate those"
    if evaluation.flagged:
        wanted = as_typed(replace(BASE_SHARE, value=1))
        return f"make rows that copy nobody, and evaluate those: 'fairmaxent debias' with {wanted}"
    if not evaluation.control_rows:
        return "set rows aside before you make new ones; pass them with --control"
    return "share the rows together with this evaluation (or with --json)"
