"""``fairmaxent sample``: rows from a saved model."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import free_name, next_step
from fairmaxent.cli.options import taking
from fairmaxent.cli.output_options import force_field, format_field, readable_field
from fairmaxent.cli.request_options import typed_level
from fairmaxent.cli.text import cell_text, counted, say, step
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.data.attribute import Attribute
    from fairmaxent.data.domain import Domain
    from fairmaxent.files.formats import FileFormat


@dataclass(frozen=True)
class SampleOptions:
    """Which rows are drawn, and where they go."""

    rows: int = option(flags=("-n", "--rows"), text="whole", least=1, required=True, help="How many rows.")
    given: tuple[dict[str, str], ...] = option(
        (),
        text="pairs",
        help="Fix columns exactly: sex=Female, or numbers in a range: age=18..65 (from 18, below 65). Repeat a column "
        "to allow another value.",
    )
    output: str = option(
        "-",
        flags=("-o", "--output"),
        text="file",
        shows_default=False,
        help="Where to write the rows; stdout by default.",
    )
    output_format: FileFormat | None = format_field()
    iid: bool = option(False, text="flag", help="Draw rows independently instead of by quota.")
    random_state: int | None = option(
        None,
        flags=("--seed", "--random-state"),
        text="whole",
        help="The same seed gives the same rows; by default they differ each time, whatever the seed of the model.",
    )
    readable_by_others: bool = readable_field()
    force: bool = force_field()


@click.command()
@click.argument("model", type=option_types.FILE, metavar="MODEL")
@taking(SampleOptions, "wanted")
def command(model: str, wanted: SampleOptions) -> None:
    """Draw rows from MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \b
    fairmaxent sample model.fme -n 1000 --given sex=Female -o women.csv
    """
    from fairmaxent.cli.formulas import domain_columns, formula_notes
    from fairmaxent.cli.streaming import write_drawn
    from fairmaxent.cli.text import bar
    from fairmaxent.files.formats import output_format as check_format
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.fit import load

    rows, output = wanted.rows, wanted.output
    refuse_overwriting([model], [output])
    check_format(output, wanted.output_format)
    with Staging([output], force=wanted.force, readable=[output] if wanted.readable_by_others else []) as staging:
        with step(f"reading {model}"):
            fit = load(model)
        with bar(f"drawing {counted(rows, 'row')}") as progress:
            write_drawn(
                fit,
                rows,
                staging,
                output,
                format=wanted.output_format,
                given=_evidence(wanted.given, fit.domain) or None,
                # Otherwise the seed of the model would draw the rows of 'debias' again.
                random_state=secrets.randbelow(2**32) if wanted.random_state is None else wanted.random_state,
                iid=wanted.iid,
                progress=progress,
            )
    if output != "-":
        for note in formula_notes(domain_columns(fit.domain), output, wanted.output_format):
            say(f"Note: {cell_text(note)}", data_on_stdout=False)
        say(f"wrote {cell_text(output)} ({counted(rows, 'row')})", data_on_stdout=False)
        command = ["fairmaxent", "report", model, "--sample", output, "-o", free_name(model, "report", ".html")]
        say(f"\n{next_step('write a report on these rows', command)}", data_on_stdout=False)


def _evidence(given: tuple[dict[str, str], ...], domain: Domain) -> dict[str, object]:
    """Join what was given for the same column."""
    joined: dict[str, list[object]] = {}
    for pairs in given:
        for column, text in pairs.items():
            joined.setdefault(column, []).append(_value(text, domain.attribute(column)))
    return {column: values[0] if len(values) == 1 else values for column, values in joined.items()}


def _value(text: str, attribute: Attribute) -> object:
    """A level by its label, or else a boolean, number or range of numbers, as the column holds it."""
    low, dots, high = text.partition("..")
    if dots and attribute.kind == "numeric" and text not in attribute.labels:
        return slice(*(option_types.number_of(end) if end.strip() else None for end in (low, high)))
    return text if text in attribute.labels else typed_level(text, attribute.values.dtype)
