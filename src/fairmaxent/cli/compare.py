"""``fairmaxent compare``: ours and the other methods on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.options import (
    DomainOptions,
    ReadingOptions,
    RoleOptions,
    data_argument,
    domain_options,
    json_option,
    reading_options,
    role_options,
)
from fairmaxent.cli.show import as_json as to_json
from fairmaxent.cli.show import step, text_table

if TYPE_CHECKING:
    from fairmaxent.cli.comparison import ClassifierName, Compared


@click.command()
@data_argument
@role_options
@click.option("--folds", type=click.IntRange(2, 100), default=3, show_default=True, help="Of the cross-validation.")
@click.option("--seed", "--random-state", "random_state", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--classifier",
    type=click.Choice(["tree", "logistic"]),
    default="tree",
    show_default=True,
    help="Trained on each method's rows, tested on rows of yours.",
)
@json_option
@domain_options
@reading_options
@config_option
def command(
    data: str,
    roles: RoleOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
    folds: int,
    random_state: int,
    classifier: ClassifierName,
    as_json: bool,  # noqa: FBT001 (click passes it by name)
) -> None:
    """Try this and other methods on the table in the file DATA (- is stdin).

    Each method learns from all folds but one; a classifier trained on what it makes is tested on the rows left out, as
    they are. Other methods compare the intersections of the protected columns.

    \b
    fairmaxent compare census.csv --outcome income --protected sex --favourable '>50K'
    """
    from fairmaxent.cli.comparison import Comparison
    from fairmaxent.domain import Domain

    if roles.weight is not None:
        raise click.UsageError("the other methods know no design weights; leave --weight out")
    table = reading.read(data)
    roles.check(table.frame, data)
    if len(table.frame) < 2 * folds:
        raise click.UsageError(f"{len(table.frame)} rows are too few for {folds} folds")
    domain = columns_as.domain(table.frame, None) or Domain.infer(table.frame)
    found: list[Compared] = []
    runs = Comparison(table.frame, roles, domain, folds, random_state, classifier).run()
    while True:
        with step(f"{len(found)} methods tried"):
            one = next(runs, None)
        if one is None:
            break
        found.append(one)
    click.echo(to_json([_record(own) for own in found]) if as_json else _text(found))


def _text(found: list[Compared]) -> str:
    rows = [
        [
            own.method,
            scores.representation_rate,
            scores.statistical_rate,
            scores.accuracy,
            scores.predicted_rate,
            f"{scores.seconds:.2f}",
        ]
        for own in found
        if (scores := own.scores)
    ]
    head = ["method", "representation rate", "statistical rate", "accuracy", "its statistical rate", "CPU s"]
    lines = [text_table(head, rows), *(f"{own.method} refused: {own.refused}" for own in found if own.refused)]
    if any(own.scores and own.scores.accuracy is None for own in found):
        lines.append("Note: accuracy needs scikit-learn; pip install scikit-learn")
    return "\n".join(lines)


def _record(own: Compared) -> dict[str, object]:
    return {"method": own.method, "refused": own.refused, **(vars(own.scores) if own.scores else {})}
