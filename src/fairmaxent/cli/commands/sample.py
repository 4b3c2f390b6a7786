"""``fairmaxent sample``: rows from a saved model."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import click

from fairmaxent.cli import option_types
from fairmaxent.cli.inputs import refuse_overwriting
from fairmaxent.cli.next_step import free_name, next_step
from fairmaxent.cli.options import force_option, output_format_option, readable_option
from fairmaxent.cli.role_options import typed_level
from fairmaxent.cli.text import cell_text, counted, say, step

if TYPE_CHECKING:
    from fairmaxent.data.attribute import Attribute
    from fairmaxent.data.domain import Domain
    from fairmaxent.files.formats import FileFormat


@click.command()
@click.argument("model", type=option_types.FILE, metavar="MODEL")
@click.option("-n", "--rows", type=click.IntRange(1), required=True, help="How many rows.")
@click.option(
    "--given",
    multiple=True,
    type=option_types.PAIRS,
    help="Fix columns exactly: sex=Female, or numbers in a range: age=18..65 (from 18, below 65). Repeat a column to "
    "allow another value.",
)
@click.option("-o", "--output", type=option_types.FILE, default="-", help="Where to write the rows; stdout by default.")
@output_format_option
@click.option("--iid", is_flag=True, help="Draw rows independently instead of by quota.")
@click.option(
    "--seed",
    "--random-state",
    "random_state",
    type=int,
    help="The same seed gives the same rows; by default they differ each time, whatever the seed of the model.",
)
@readable_option
@force_option
def command(
    model: str,
    rows: int,
    given: tuple[dict[str, str], ...],
    output: str,
    output_format: FileFormat | None,
    iid: bool,  # noqa: FBT001 (click passes it by name)
    random_state: int | None,
    readable_by_others: bool,  # noqa: FBT001
    force: bool,  # noqa: FBT001
) -> None:
    """Draw rows from MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \b
    fairmaxent sample model.fme -n 1000 --given sex=Female -o women.csv
    """
    from fairmaxent.cli.formulas import domain_columns, formula_notes
    from fairmaxent.cli.progress import bar
    from fairmaxent.cli.streaming import write_drawn
    from fairmaxent.files.formats import output_format as check_format
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.fit import load

    refuse_overwriting([model], [output])
    check_format(output, output_format)
    with Staging([output], force=force, readable=[output] if readable_by_others else []) as staging:
        with step(f"reading {model}"):
            fit = load(model)
        with bar(f"drawing {counted(rows, 'row')}") as progress:
            write_drawn(
                fit,
                rows,
                staging,
                output,
                format=output_format,
                given=_evidence(given, fit.domain) or None,
                # Otherwise the seed of the model would draw the rows of 'debias' again.
                random_state=secrets.randbelow(2**32) if random_state is None else random_state,
                iid=iid,
                progress=progress,
            )
    if output != "-":
        for note in formula_notes(domain_columns(fit.domain), output, output_format):
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
