"""``fairmaxent evaluate`` and ``compare``: judge new rows, and methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.options import (
    SectionedCommand,
    given_options,
    name_for,
    next_step,
    taking,
)
from fairmaxent.cli.output import JSON, SEED
from fairmaxent.cli.reading import (
    DomainOptions,
    ReadingOptions,
    check_files,
    reading_options,
    table_command,
)
from fairmaxent.cli.request import (
    ROLES,
    AskedOptions,
    RoleOptions,
    comparison_options,
    role_options,
)
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import FILE, as_typed
from fairmaxent.document.text import on_one_line
from fairmaxent.errors import Option
from fairmaxent.options import option

if TYPE_CHECKING:
    from fairmaxent.evaluation.result import Evaluation

# The options of 'debias' that choose a method of fairmaxent.
_CHOOSING = {
    "fairmaxent, rows": "",
    "fairmaxent, weights": " --mode weights",
    "relabel, probabilities": (
        " --model boosting --parity probabilities --mode weights"
    ),
    "model": " --model MODEL --mode weights",
}


@dataclass(frozen=True)
class EvaluateOptions:
    """What the new rows are judged by."""

    HEADING = "Options"

    control: str | None = option(
        None,
        text="file",
        help=(
            "Rows of other people, not used to make NEW. Without them, risks can only"
            " be bounded."
        ),
    )
    secrets: list[str] | None = option(
        None,
        text="columns",
        help=(
            "Columns that an attacker wants to know, who knows all others; repeatable."
            " By default every column."
        ),
    )
    attacks: int = option(
        2000,
        text="whole",
        least=1,
        help="People or guesses of each attack; more make the intervals narrower.",
    )
    random_state: int = option(
        0,
        least=0,
        help="Seed of everything that is drawn.",
        **SEED,
    )
    json: bool = option(False, **JSON)


@click.command(
    cls=SectionedCommand,
    epilog=(
        "Nothing is written. The exit code is 0 whatever the verdict; --json lists what"
        " was 'flagged'."
    ),
)
@click.argument("real", type=FILE, metavar="REAL")
@click.argument("new", type=FILE, metavar="NEW")
@taking(
    RoleOptions,
    "roles",
    [source for source in ROLES if source.name not in ("groups", "weight")],
    required=False,
)
@taking(EvaluateOptions, "wanted")
@reading_options
@config_option
@click.pass_context
def evaluate_command(
    ctx: click.Context,
    real: str,
    new: str,
    roles: RoleOptions,
    wanted: EvaluateOptions,
    reading: ReadingOptions,
) -> None:
    """Judge the rows in the file NEW, which were made from the table in the file REAL
    (- is stdin).

    Fidelity: how much the tables differ. Utility: what a model of --outcome, trained on
    the new rows, does with real people, and groups of --protected. Risk: what the new
    rows give away about people of the real table: copies, and attacks that single
    people out, link tables, guess columns and tell who was in the table.

    \b
    fairmaxent evaluate census.csv fair.csv --control others.csv --outcome income
    """
    from fairmaxent.evaluation.evaluation import evaluate
    from fairmaxent.evaluation.result import evaluation_text

    paths = {"real": real, "new": new}
    if wanted.control is not None:
        paths["control"] = wanted.control
    check_files([])
    tables = {}
    for name, path in paths.items():
        with bar(f"reading {path}"):
            tables[name] = replace(reading, drop=None).read(path)
    columns = [column for table in tables.values() for column in table.frame.columns]
    tables = {
        name: reading.without_dropped(table, beside=columns)
        for name, table in tables.items()
    }
    roles = roles.checked(tables["real"], real)
    read = {name: table.frame for name, table in tables.items()}
    judging = {
        name: getattr(wanted, name) for name in ("secrets", "attacks", "random_state")
    }
    with bar("evaluating") as progress:
        evaluation = evaluate(
            **read,
            **roles.named,
            **judging,
            progress=progress,
        )
    notes = [
        f"{paths[name]}: {note}"
        for name, table in tables.items()
        for note in table.notes_spelled(as_typed)
    ]
    if wanted.json:
        echo(json_record({**evaluation.to_dict(), "notes": notes}))
        return
    following = _after_evaluation(ctx, real, new, evaluation, roles)
    echo(f"{evaluation_text(evaluation, notes)}\n\n{following}")


def _after_evaluation(
    ctx: click.Context,
    real: str,
    new: str,
    evaluation: Evaluation,
    roles: RoleOptions,
) -> str:
    """What to do with rows that were judged so."""
    copies = evaluation.risks.copies
    if copies.risk.low > 0 and copies.judged() != "low":
        why = "make rows that copy nobody, and evaluate those"
        unlike = as_typed(Option("release", value=True))
        if not (roles.outcome and roles.protected):
            return next_step(f"{why}: 'fairmaxent debias' with {unlike}")
        own = {field.name for field in fields(EvaluateOptions)}
        names = {option.name or "" for option in ctx.command.params} - own
        typed = given_options(ctx, names - {"real", "new"})
        target = name_for(new, "uncopied.csv")
        return next_step(why, ["debias", real, *typed, unlike, "-o", target])
    if evaluation.flagged:
        return next_step(
            "round or drop columns with rare values, make new rows and evaluate those"
        )
    if not evaluation.control_rows:
        return next_step(
            "set rows aside before you make new ones; pass them with --control"
        )
    if evaluation.risks.judged_as("uncertain"):
        return next_step(
            "it is too close to call, so do not share the rows for this alone; evaluate"
            " again with more rows, or with more --attacks"
        )
    return next_step("share the rows together with this evaluation (or with --json)")


@dataclass(frozen=True)
class CompareOptions:
    """How methods are compared."""

    folds: int = option(
        3,
        text="whole",
        least=2,
        most=100,
        help="Folds of the cross-validation.",
    )
    classifier: Literal["tree", "logistic"] = option(
        "tree",
        choices=("tree", "logistic"),
        help="Classifier trained on each method's rows and tested on your rows.",
    )
    truth: str | None = option(
        None,
        help=(
            "Column with what really happened, in the outcome's values, empty if"
            " unknown. No model sees it, and accuracy is measured against it too."
        ),
    )
    json: bool = option(False, **JSON)


@table_command(role_options, comparison_options, taking(CompareOptions, "wanted"))
def compare_command(
    ctx: click.Context,
    data: str,
    roles: RoleOptions,
    asked: AskedOptions,
    wanted: CompareOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Compare fairmaxent with other methods on the table in the file DATA (- is stdin),
    and say which to choose, or which cannot be told apart.

    Each method learns from all folds but one. A classifier trained on its result is
    tested on the original rows of the fold left out. Methods that give weights are
    tried with weights on the original rows; 'relabel' is fairmaxent with --model
    boosting --parity probabilities, and 'model' with the table made for the classifier
    (--model). What you ask for applies to fairmaxent only; the other methods have goals
    of their own, and always compare the intersections of the protected columns.
    Those of fairlearn and OxonFair are tried where these are installed. All classifiers
    see the protected columns; what one that does not will decide, 'fairmaxent debias
    --model MODEL --hide-protected' says. Most of the time goes into methods that train
    many models.

    \b
    fairmaxent compare census.csv --outcome income --protected sex --favourable '>50K'
    """
    from fairmaxent.baselines.comparison import compared, comparison_text
    from fairmaxent.cli.result import good_outcome_notes
    from fairmaxent.data.domain import Domain

    check_files([asked.values["ledger"]] if asked.has("ledger") else [])
    table = reading.read(data, columns_as.declaration)
    roles = roles.checked(table, data)
    domain = columns_as.domain_of(table.frame, None) or Domain.infer(table.frame)
    request = asked.request(roles, domain)
    with bar("comparing") as progress:
        comparison = compared(
            table.frame,
            request,
            wanted.folds,
            wanted.classifier,
            progress,
            wanted.truth,
        )
    refused = {
        run.method: run.refused.spelled(as_typed)
        for run in comparison.results
        if run.refused is not None
    }
    if wanted.json:
        records = []
        for run in comparison.results:
            record = {"method": run.method, "refused": refused.get(run.method)}
            if run.scores:
                record |= vars(run.scores)
            records.append(record)
        echo(json_record(records))
        return
    good = good_outcome_notes(roles.favoured, domain.attribute(roles.outcome))
    notes = [f"Note: {on_one_line(note)}" for note in good]
    if not any(run.scores and run.scores.accuracy for run in comparison.results):
        notes.append(
            "Note: accuracy and decisions need scikit-learn; pip install scikit-learn"
        )
    parts = [
        comparison_text(comparison, refused),
        "\n".join(notes),
        next_step(_after_comparison(comparison.verdict.methods)),
    ]
    echo("\n\n".join(filter(None, parts)))


def _after_comparison(methods: Sequence[str]) -> str:
    from fairmaxent.baselines.cross_validation import RAW, python_name

    if len(methods) > 1:
        return (
            "take the one that fits your work, as the table does not say which is"
            " better; more people, or more --folds, may"
        )
    method = next(iter(methods), RAW)
    if method == RAW:
        return (
            "see what the table itself would gain: 'fairmaxent debias', with the same"
            " options and -o FILE"
        )
    if method in _CHOOSING:
        return (
            f"use it on the whole table: 'fairmaxent debias{_CHOOSING[method]}', with"
            " the same options and -o FILE"
        )
    return f"use it in Python: {python_name(method)}"
