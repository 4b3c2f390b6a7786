"""``fairmaxent compare``: ours and the other methods on a table."""

from __future__ import annotations

from collections.abc import Sequence
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
from fairmaxent.cli.request_options import AskedOptions, request_options
from fairmaxent.cli.text import as_json as to_json
from fairmaxent.cli.text import cell_text, step

if TYPE_CHECKING:
    from fairmaxent.baselines.comparison import ClassifierName, Compared


@click.command()
@data_argument
@role_options
@request_options
@click.option("--folds", type=click.IntRange(2, 100), default=3, show_default=True, help="Of the cross-validation.")
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
    asked: AskedOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
    folds: int,
    classifier: ClassifierName,
    as_json: bool,  # noqa: FBT001 (click passes it by name)
) -> None:
    """Try this and other methods on the table in the file DATA (- is stdin).

    Each method learns from all folds but one; a classifier trained on what it makes is tested on the rows left out, as
    they are. Methods that give weights are tried with them on the rows there are; 'relabel' is ours with --absorb
    relabel, for both kinds of --parity. The wishes are for ours; others have
    their own, and compare the intersections of the protected columns. Without --seed it is 0.

    \b
    fairmaxent compare census.csv --outcome income --protected sex --favourable '>50K'
    """
    from fairmaxent.baselines.comparison import Comparison
    from fairmaxent.data.domain import Domain

    if roles.weight is not None:
        raise click.UsageError("the other methods know no design weights; leave --weight out")
    table = reading.read(data)
    roles = roles.checked(table, data)
    if len(table.frame) < 2 * folds:
        raise click.UsageError(f"{len(table.frame)} rows are too few for {folds} folds")
    domain = columns_as.domain(table.frame, None) or Domain.infer(table.frame)
    found: list[Compared] = []
    runs = Comparison(table.frame, asked.request(roles, domain), folds, classifier).run()
    while True:
        with step(f"{len(found)} methods tried"):
            one = next(runs, None)
        if one is None:
            break
        if not as_json:  # a method may take long: each line is shown as soon as it is known
            click.echo(_line(one) if found else f"{_row(_HEAD)}\n{_line(one)}")
        found.append(one)
    if as_json:
        click.echo(to_json([_record(own) for own in found]))
    elif any(own.scores and own.scores.accuracy is None for own in found):
        click.echo("Note: accuracy needs scikit-learn; pip install scikit-learn")


_HEAD = ("method", "representation rate", "statistical rate", "accuracy", "rate of its predictions", "CPU s")
_METHOD = 22  # characters


def _line(own: Compared) -> str:
    scores = own.scores
    if scores is None:
        return f"{own.method} refused: {own.refused}"
    rates = (scores.representation_rate, scores.statistical_rate, scores.accuracy, scores.predicted_rate)
    return _row((own.method, *map(cell_text, rates), f"{scores.seconds:.2f}"))


def _row(cells: Sequence[str]) -> str:
    """Cells as wide as the head, which is all that is known before the methods have run."""
    numbers = (cell.rjust(max(len(head), 6)) for cell, head in zip(cells[1:], _HEAD[1:], strict=True))
    return "  ".join([cells[0].ljust(_METHOD), *numbers])


def _record(own: Compared) -> dict[str, object]:
    return {"method": own.method, "refused": own.refused, **(vars(own.scores) if own.scores else {})}
