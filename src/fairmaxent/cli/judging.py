"""``fairmaxent evaluate``, ``compare`` and ``reproduce``: judge new rows, methods, and what the paper says."""

import sys
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from fairmaxent.cli.config import config_option
from fairmaxent.cli.group import INTERRUPTED
from fairmaxent.cli.options import SectionedCommand, given_options, next_step, outputs, taking
from fairmaxent.cli.output import JSON, SEED
from fairmaxent.cli.reading import DomainOptions, ReadingOptions, reading_options, table_command
from fairmaxent.cli.request import ROLES, AskedOptions, RoleOptions, comparison_options, role_options
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import FILE, as_typed
from fairmaxent.document.text import on_one_line
from fairmaxent.errors import BASE_SHARE
from fairmaxent.files.reading import STANDARD
from fairmaxent.fit.option_values import Relabel
from fairmaxent.options import option


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
        0, least=0, help="Seed of everything that is drawn.", page_help="The same seed gives the same result.", **SEED
    )
    as_json: bool = option(False, **JSON)


@click.command(
    cls=SectionedCommand,
    epilog="Nothing is written. The exit code is 0 whatever the verdict; --json lists what was 'flagged'.",
)
@click.argument("real", type=FILE, metavar="REAL")
@click.argument("new", type=FILE, metavar="NEW")
@taking(
    RoleOptions,
    "roles",
    [source for source in ROLES if source.param in ("outcome", "protected", "favourable")],
    required=False,
)
@taking(EvaluateOptions, "wanted")
@reading_options
@config_option
def evaluate_command(real: str, new: str, roles: RoleOptions, wanted: EvaluateOptions, reading: ReadingOptions) -> None:
    """Judge the rows in the file NEW, which were made from the table in the file REAL (- is stdin).

    Fidelity: how much the tables differ. Utility: what a model of --outcome, trained on the new rows, does with real
    people, and groups of --protected. Risk: what the new rows give
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
    tables = {}
    for name, path in paths.items():
        with bar(f"reading {path}"):
            tables[name] = replace(reading, drop=None).read(path)
    columns = [column for table in tables.values() for column in table.frame.columns]
    tables = {name: reading.without_dropped(table, beside=columns) for name, table in tables.items()}
    if roles.protected and not roles.outcome:
        raise click.UsageError("--protected compares groups by an outcome; name that with --outcome, too")
    roles = roles.checked(tables["real"], real)
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
        echo(json_record({**evaluation.to_dict(), "notes": notes}))
        return
    following = "share the rows together with this evaluation (or with --json)"
    if "copies" in evaluation.flagged:
        unlike = as_typed(replace(BASE_SHARE, value=1))
        following = f"make rows that copy nobody, and evaluate those: 'fairmaxent debias' with {unlike}"
    elif evaluation.flagged:
        following = "round or drop columns with rare values, make new rows and evaluate those"
    elif not evaluation.control_rows:
        following = "set rows aside before you make new ones; pass them with --control"
    echo(f"{evaluation_text(evaluation, notes)}\n\n{next_step(following)}")


# The options of 'debias' that choose a method of fairmaxent.
_ROWS = "fairmaxent, rows"
_CHOOSING: dict[str, list[str]] = {
    _ROWS: [],
    "fairmaxent, weights": ["--mode", "weights"],
    "relabel, probabilities": ["--relabel", "probabilities", "--mode", "weights"],
    "relabel, predictions": ["--relabel", "predictions", "--mode", "weights"],
}


@dataclass(frozen=True)
class CompareOptions:
    """How methods are compared."""

    folds: int = option(3, text="whole", least=2, most=100, help="Folds of the cross-validation.")
    classifier: Literal["tree", "logistic"] = option(
        "tree", choices=("tree", "logistic"), help="Classifier trained on each method's rows and tested on your rows."
    )
    as_json: bool = option(False, **JSON)


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
    from fairmaxent.baselines.cross_validation import python_name
    from fairmaxent.cli.result import good_outcome_notes
    from fairmaxent.data.domain import Domain

    asked.check(ctx, roles)
    if roles.weight is not None:
        raise click.UsageError("the other methods do not support design weights; leave --weight out")
    table = reading.read(data, texts=columns_as.texts)
    roles = roles.checked(table, data)
    domain = columns_as.domain(table.frame, None) or Domain.infer(table.frame)
    request = replace(asked.request(roles, domain), relabel=asked.relabelling())
    results: list[Any] = []
    try:
        with bar("comparing") as progress:
            runs = compared(table.frame, request, folds=wanted.folds, classifier=wanted.classifier, progress=progress)
            results.extend(runs)  # one by one: those that are done stay if it is interrupted
    except KeyboardInterrupt:
        if results and not wanted.as_json:  # what took long is not lost
            echo(methods_table(results))
        raise
    refused = {result.method: result.refused.spelled(as_typed) for result in results if result.refused is not None}
    if wanted.as_json:
        scores = [vars(result.scores) if result.scores else {} for result in results]
        own = [{"method": result.method, "refused": refused.get(result.method)} for result in results]
        echo(json_record([{**each, **more} for each, more in zip(own, scores, strict=True)]))
        return
    comparison = new_comparison(table.frame, request, wanted.classifier, results)
    notes = [
        f"Note: {on_one_line(note)}" for note in good_outcome_notes(roles.favoured, domain.attribute(roles.outcome))
    ]
    if not comparison.verdict.of_decisions:
        notes.append("Note: accuracy and decisions need scikit-learn; pip install scikit-learn")
    method = comparison.verdict.method
    if method is not None and method not in _CHOOSING:
        following = next_step(
            f"use it in Python: fairmaxent.baselines.{python_name(method)}(frame, outcome, protected)"
        )
    else:
        why = "see what the table itself would gain" if method is None else "use it on the whole table"
        chosen = _CHOOSING[method or _ROWS]
        unused = {"data", *(field.name for field in fields(CompareOptions))}
        unused |= set() if "--relabel" in chosen else {field.name for field in fields(Relabel)}
        names = {option.name or "" for option in ctx.command.params} - unused
        command = ["debias", data, *given_options(ctx, names), *chosen, *outputs(data, table.form)]
        following = next_step(why, command)
    echo("\n\n".join(filter(None, [comparison_text(comparison, list(refused.items())), "\n".join(notes), following])))


@click.command()
@click.option("--quick", is_flag=True, help="Run fewer repetitions, which takes a few minutes.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for tables, figures, the page, and finished cells.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Number of parallel processes.  [default: one per core]")
@click.option("--download", is_flag=True, help="Fetch the files of COMPAS large, which is not shipped.")
def reproduce_command(*, quick: bool, out: Path, workers: int | None, download: bool) -> None:
    """Repeat the experiments of the paper: Table 2 and every figure.

    Writes table2.csv, curves.csv, runtimes.csv, the figures (SVG and PNG) and index.html, which shows the numbers of
    the paper, of the authors' code and of fairmaxent side by side. You can stop it at any time: the same command
    continues where it stopped. COMPAS large needs two files that are not shipped; without --download, or a folder of
    yours that has them, it is left out, and you are told what to do.
    """
    from fairmaxent.experiments.reproduce import reproduce

    try:
        with bar("reproducing") as progress:
            show = partial(progress, "cells")
            page, left_out = reproduce(out, quick=quick, workers=workers, download=download, progress=show)
    except KeyboardInterrupt:
        echo(f"Stopped. Finished work is kept in {out}; the same command continues from there.", err=True)
        sys.exit(INTERRUPTED)
    for reason in left_out:
        echo(f"Left out: {reason}", err=True)
    echo(f"Wrote {page}\n\n{next_step(f'open {page} in a browser')}")
