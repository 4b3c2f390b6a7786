"""``fairmaxent demo``: the shipped census table, from start to finish."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairmaxent.cli.next_step import NEXT, next_step
from fairmaxent.cli.streams import echo
from fairmaxent.errors import Option, StorageError

_ASKED = "What is asked for: as many women as men, and the same share of each with a high income."
_FILES = ("adult.csv", "fair.csv", "model.fme", "report.html")


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the files.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.pass_context
def command(ctx: click.Context, out: Path, force: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Make the census table Adult, which comes with the package, fair to women and men.

    Leaves adult.csv (the data), fair.csv (new rows), model.fme (the model) and report.html in the folder.
    """
    from fairmaxent import datasets
    from fairmaxent.cli.commands.debias import command as debias
    from fairmaxent.files.write import write_table

    for name in _FILES:
        if (out / name).exists() and not force:
            raise StorageError(f"{out / name} exists; use ", Option("force"), " to replace it, or name another folder")
    adult = datasets.load("adult", library="polars")
    out.mkdir(parents=True, exist_ok=True)
    table = out / "adult.csv"
    write_table(adult.frame, table, force=force)
    arguments = [str(table), "--outcome", adult.outcome, "--protected", "sex"]
    arguments += ["--favourable", str(adult.favourable), "--representation-rate", "1"]
    arguments += ["--seed", "0", *(["--force"] if force else [])]
    arguments += ["-o", str(out / "fair.csv"), "--model", str(out / "model.fme"), "--report", str(out / "report.html")]
    typed = ["fairmaxent", "debias", *arguments]
    echo(f"{adult.description}\n\n{_ASKED}\n\n$ {shlex.join(typed)}\n")
    ctx.find_root().obj = typed  # what the report says to repeat
    why = f"open {out / 'report.html'} in a browser. Then begin with a table of yours; each command names the next"
    live = next_step("move what is asked for, and see live who gains", ["fairmaxent", "app", str(table)])
    ctx.meta[NEXT] = f"{live}\n\n{next_step(why, ['fairmaxent', 'inspect', 'your-table.csv'])}"
    with debias.make_context("debias", arguments, parent=ctx) as context:
        debias.invoke(context)
