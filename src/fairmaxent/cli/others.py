"""``fairmaxent app``, ``demo`` and ``reproduce``: the page in the browser, the shipped table, and the paper."""

import importlib
import shlex
import sys
from pathlib import Path

import click

from fairmaxent.cli.group import INTERRUPTED
from fairmaxent.cli.options import NEXT, next_step
from fairmaxent.cli.terminal import bar, echo
from fairmaxent.cli.values import FILE
from fairmaxent.errors import Option, StorageError


@click.command()
@click.argument("data", type=FILE, required=False, metavar="[DATA]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; by default a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address of the page, and do not open it.")
def app_command(data: str | None, port: int, no_browser: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Open a page in your browser: look at a table, move sliders, see who gains, and take the files.

    The page is served on this computer only, and works offline. Nothing leaves the computer. Without DATA, choose a
    file or an example on the page.

    \b
    fairmaxent app
    fairmaxent app census.csv
    """
    # The app is made from the commands, so it is a layer above, and found by name.
    importlib.import_module("fairmaxent.app").serve(data, port=port, browser=not no_browser, say=echo)


_DEMO = "What is asked for: as many women as men, and the same share of each with a high income."
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
def demo_command(ctx: click.Context, out: Path, force: bool) -> None:  # noqa: FBT001 (click passes it by name)
    """Make the census table Adult, which comes with the package, fair to women and men.

    Leaves adult.csv (the data), fair.csv (new rows), model.fme (the model) and report.html in the folder.
    """
    from fairmaxent import datasets
    from fairmaxent.cli.debias import debias_command as debias
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
    echo(f"{adult.description}\n\n{_DEMO}\n\n$ {shlex.join(typed)}\n")
    ctx.find_root().obj = typed  # what the report says to repeat
    why = f"open {out / 'report.html'} in a browser. Then begin with a table of yours; each command names the next"
    live = next_step("move what is asked for, and see live who gains", ["app", str(table)])
    ctx.meta[NEXT] = f"{live}\n\n{next_step(why, ['inspect', 'your-table.csv'])}"
    with debias.make_context("debias", arguments, parent=ctx) as context:
        debias.invoke(context)


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

    shown = 0
    try:
        with bar("reproducing") as progress:

            def show(share: float) -> None:
                nonlocal shown
                progress("cells", share)
                if int(share * 10) > shown and not sys.stderr.isatty():  # a line for every tenth
                    shown = int(share * 10)
                    echo(f"Cells: {shown}0 %", err=True)

            page, left_out = reproduce(out, quick=quick, workers=workers, download=download, progress=show)
    except KeyboardInterrupt:
        echo(f"Stopped. Finished work is kept in {out}; the same command continues from there.", err=True)
        sys.exit(INTERRUPTED)
    for reason in left_out:
        echo(f"Left out: {reason}", err=True)
    echo(f"Wrote {page}\n\n{next_step(f'open {page} in a browser')}")
