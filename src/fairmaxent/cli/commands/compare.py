"""``fairmaxent compare``: fairmaxent and other methods on a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.exit_codes import as_typed
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
from fairmaxent.cli.streams import echo
from fairmaxent.cli.text import as_json as to_json
from fairmaxent.cli.text import cell_text, step

if TYPE_CHECKING:
    from fairmaxent.baselines.comparison import ClassifierName, Compared


@click.command()
@data_argument
@role_options
@request_options
@click.option(
    "--folds", type=click.IntRange(2, 100), default=3, show_default=True, help="Folds of the cross-validation."
)
@click.option(
    "--classifier",
    type=click.Choice(["tree", "logistic"]),
    default="tree",
    show_default=True,
    help="Classifier trained on each method's rows and tested on your rows.",
)
@json_option
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
    folds: int,
    classifier: ClassifierName,
    as_json: bool,  # noqa: FBT001 (click passes it by name)
) -> None:
    """Compare fairmaxent with other methods on the table in the file DATA (- is stdin).

    Each method learns from all folds but one. A classifier trained on its result is tested on the original rows of the
    fold left out. Methods that give weights are tried with weights on the original rows; 'relabel' is fairmaxent with
    --relabel, once for each kind. What you ask for applies to fairmaxent only; the other methods have goals of their
    own, and always compare the intersections of the protected columns. Without --seed, the seed is 0.

    \b
    fairmaxent compare census.csv --outcome income --protected sex --favourable '>50K'
    """
    from fairmaxent.baselines.comparison import Comparison
    from fairmaxent.data.domain import Domain

    asked.check(ctx, roles, always_relabels=True)
    if roles.weight is not None:
        raise click.UsageError("the other methods do not support design weights; leave --weight out")
    table = reading.read(data)
    roles = roles.checked(table, data)
    if len(table.frame) < 2 * folds:
        raise click.UsageError(f"{len(table.frame)} rows are too few for {folds} folds")
    domain = columns_as.domain(table.frame, None) or Domain.infer(table.frame)
    results: list[Compared] = []
    runs = Comparison(table.frame, asked.request(roles, domain), folds, classifier).run()
    while True:
        with step(f"{len(results)} methods tried"):
            one = next(runs, None)
        if one is None:
            break
        if not as_json:  # a method may take long: each line is shown as soon as it is known
            echo(_line(one) if results else f"{_row(_HEAD)}\n{_line(one)}")
        results.append(one)
    if as_json:
        echo(to_json([_record(result) for result in results]))
    elif any(result.scores and result.scores.accuracy is None for result in results):
        echo("Note: accuracy needs scikit-learn; pip install scikit-learn")


_HEAD = ("method", "representation rate", "statistical rate", "accuracy", "rate of its predictions", "CPU s")
_METHOD = 22  # characters


def _line(result: Compared) -> str:
    scores = result.scores
    if scores is None:
        return f"{result.method} refused: {cell_text(_reason(result))}"
    rates = (scores.representation_rate, scores.statistical_rate, scores.accuracy, scores.predicted_rate)
    return _row((result.method, *map(cell_text, rates), f"{scores.seconds:.2f}"))


def _row(cells: Sequence[str]) -> str:
    """Cells as wide as the head, which is all that is known before the methods have run."""
    numbers = (cell.rjust(max(len(head), 6)) for cell, head in zip(cells[1:], _HEAD[1:], strict=True))
    return "  ".join([cells[0].ljust(_METHOD), *numbers])


def _record(result: Compared) -> dict[str, object]:
    return {"method": result.method, "refused": _reason(result), **(vars(result.scores) if result.scores else {})}


def _reason(result: Compared) -> str | None:
    return None if result.refused is None else result.refused.spelled(as_typed)
