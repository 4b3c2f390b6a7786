"""``fairmaxent sample``: rows from a saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairmaxent.cli import values
from fairmaxent.cli.options import force_option, output_format_option
from fairmaxent.cli.show import say, step

if TYPE_CHECKING:
    from fairmaxent.domain import Attribute, Domain
    from fairmaxent.files import FileFormat


@click.command()
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.option("-n", "--rows", type=int, required=True, help="How many rows.")
@click.option(
    "--given",
    multiple=True,
    type=values.PAIRS,
    help="Fix columns, exactly: sex=Female; the same column again allows another value.",
)
@click.option("-o", "--output", type=click.Path(), default="-", help="Where the rows go; stdout by default.")
@output_format_option
@click.option("--iid", is_flag=True, help="Draw rows independently instead of by quota.")
@click.option("--seed", "--random-state", "random_state", type=int, help="Same seed, same rows.")
@force_option
def command(
    model: str,
    rows: int,
    given: tuple[dict[str, str], ...],
    output: str,
    output_format: FileFormat | None,
    iid: bool,  # noqa: FBT001 (click passes it by name)
    random_state: int | None,
    force: bool,  # noqa: FBT001
) -> None:
    """Draw rows from MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    \\b
    fairmaxent sample model.fme -n 1000 --given sex=Female -o women.csv
    """
    from fairmaxent import files
    from fairmaxent.fit import load

    files.output_format(output, output_format)
    with files.Staging([output], force=force) as staging:
        with step(f"reading {model}"):
            fit = load(model)
        with step(f"drawing {rows:,} rows"):
            drawn = fit.sample(rows, given=_evidence(given, fit.domain) or None, random_state=random_state, iid=iid)
            staging.write_table(files.as_polars(drawn), output, format=output_format)
    if output != "-":
        say(f"wrote {output} ({rows:,} rows)", data_on_stdout=False)


def _evidence(given: tuple[dict[str, str], ...], domain: Domain) -> dict[str, object]:
    """Join what was given for the same column."""
    joined: dict[str, list[object]] = {}
    for pairs in given:
        for column, text in pairs.items():
            joined.setdefault(column, []).append(_value(text, domain.attribute(column)))
    return {column: found[0] if len(found) == 1 else found for column, found in joined.items()}


def _value(text: str, attribute: Attribute) -> object:
    """A level by its label, else a number where the column holds numbers."""
    if attribute.kind != "numeric" or text in attribute.labels:
        return text
    try:
        return float(text)
    except ValueError:
        return text
