"""``fairmaxent compare``: fairmaxent and other methods on a table, and which to choose."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fairmaxent.cli.config import config_option
from fairmaxent.cli.debias_result import good_outcome_notes
from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.inputs import CONFIG
from fairmaxent.cli.next_step import next_step, options_from, outputs
from fairmaxent.cli.options import taking
from fairmaxent.cli.output_options import json_field
from fairmaxent.cli.reading_options import (
    DomainOptions,
    ReadingOptions,
    data_argument,
    domain_options,
    reading_options,
)
from fairmaxent.cli.request_options import AskedOptions, RoleOptions, request_options, role_options
from fairmaxent.cli.streams import echo
from fairmaxent.cli.text import as_json, bar, cell_text
from fairmaxent.fit.option_values import Relabel
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.baselines.comparison import Comparison
    from fairmaxent.baselines.cross_validation import ClassifierName, Compared
    from fairmaxent.files.reading import TableForm

# The options of 'debias' that choose a method of fairmaxent.
_CHOOSING: dict[str, list[str]] = {
    "fairmaxent, rows": [],
    "fairmaxent, weights": ["--mode", "weights"],
    "relabel, probabilities": ["--relabel", "probabilities", "--mode", "weights"],
    "relabel, predictions": ["--relabel", "predictions", "--mode", "weights"],
}


@dataclass(frozen=True)
class CompareOptions:
    """How methods are compared."""

    folds: int = option(3, text="whole", least=2, most=100, help="Folds of the cross-validation.")
    classifier: ClassifierName = option(
        "tree",
        choices=("tree", "logistic"),
        help="Classifier trained on each method's rows and tested on your rows.",
    )
    as_json: bool = json_field()


@click.command()
@data_argument
@role_options
@request_options
@taking(CompareOptions, "wanted")
@domain_options
@reading_options
@config_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: CompareOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Compare fairmaxent with other methods on the table in the file DATA (- is stdin), and say which to choose.

    Each method learns from all folds but one. A classifier trained on its result is tested on the original rows of the
    fold left out. Methods that give weights are tried with weights on the original rows; 'relabel' is fairmaxent with
    --relabel, once for each kind. What you ask for applies to fairmaxent only; the other methods have goals of their
    own, and always compare the intersections of the protected columns. Without --seed, the seed is 0. Most of the time
    goes into relabelling, which trains many models.

    \b
    fairmaxent compare census.csv --outcome income --protected sex --favourable '>50K'
    """
    from fairmaxent.baselines.comparison import compared, comparison_text, methods_table, new_comparison
    from fairmaxent.data.domain import Domain

    asked.check(ctx, roles, always_relabels=True)
    if roles.weight is not None:
        raise click.UsageError("the other methods do not support design weights; leave --weight out")
    table = reading.read(data, texts=columns_as.texts)
    roles = roles.checked(table, data)
    domain = columns_as.domain(table.frame, None) or Domain.infer(table.frame)
    request = replace(asked.with_columns_of(table).request(roles, domain), relabel=asked.relabelling())
    results: list[Compared] = []
    try:
        with bar("comparing") as progress:
            runs = compared(table.frame, request, folds=wanted.folds, classifier=wanted.classifier, progress=progress)
            results.extend(runs)  # one by one: those that are done stay if it is interrupted
    except KeyboardInterrupt:
        if results and not wanted.as_json:  # what took long is not lost
            echo(methods_table(results))
        raise
    if wanted.as_json:
        echo(as_json([_record(result) for result in results]))
        return
    comparison = new_comparison(table.frame, request, wanted.classifier, results)
    refused = [(one.method, str(_reason(one))) for one in results if one.refused is not None]
    notes = [f"Note: {cell_text(note)}" for note in good_outcome_notes(roles.favoured, domain.attribute(roles.outcome))]
    if not comparison.verdict.of_decisions:
        notes.append("Note: accuracy and decisions need scikit-learn; pip install scikit-learn")
    parts = [
        comparison_text(comparison, refused),
        "\n".join(notes),
        _next_step(ctx, data, comparison, table.form),
    ]
    echo("\n\n".join(part for part in parts if part))


def _next_step(ctx: click.Context, data: str, comparison: Comparison, form: TableForm) -> str:
    """Make the table fair by the method to choose."""
    from fairmaxent.baselines.cross_validation import python_name

    method = comparison.verdict.method
    if method is None:
        return next_step("see what the table itself would gain", _debias(ctx, data, "fairmaxent, rows", form))
    if method not in _CHOOSING:
        return next_step(f"use it in Python: fairmaxent.baselines.{python_name(method)}(frame, outcome, protected)")
    return next_step("use it on the whole table", _debias(ctx, data, method, form))


def _debias(ctx: click.Context, data: str, method: str, form: TableForm) -> list[str | None]:
    """The same options for 'debias', with those that choose a method."""
    chosen = _CHOOSING[method]
    own = {field.name for field in fields(CompareOptions)}
    unused = own if "--relabel" in chosen else own | {field.name for field in fields(Relabel)}
    names = {option.name or "" for option in ctx.command.params} - unused
    given = list(options_from(ctx, ParameterSource.COMMANDLINE, names - {"data"}))
    config = ["--config", str(ctx.meta[CONFIG])] if CONFIG in ctx.meta else []
    return ["fairmaxent", "debias", data, *given, *config, *chosen, *outputs(data, form)]


def _record(result: Compared) -> dict[str, object]:
    return {"method": result.method, "refused": _reason(result), **(vars(result.scores) if result.scores else {})}


def _reason(result: Compared) -> str | None:
    return None if result.refused is None else result.refused.spelled(as_typed)
