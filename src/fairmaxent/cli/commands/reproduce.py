"""``fairmaxent reproduce``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from fairmaxent.cli.exit_codes import INTERRUPTED
from fairmaxent.cli.next_step import next_step
from fairmaxent.cli.streams import echo


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
def command(*, quick: bool, out: Path, workers: int | None, download: bool) -> None:
    """Repeat the experiments of the paper: Table 2 and every figure.

    Writes table2.csv, curves.csv, runtimes.csv, the figures (SVG and PNG) and index.html, which shows the numbers of
    the paper, of the authors' code and of fairmaxent side by side. You can stop it at any time: the same command
    continues where it stopped. COMPAS large needs two files that are not shipped; without --download, or a folder of
    yours that has them, it is left out, and you are told what to do.
    """
    from fairmaxent.experiments.reproduce import reproduce

    try:
        with _bar("Cells") as show:
            result = reproduce(out, quick=quick, workers=workers, download=download, progress=show)
    except KeyboardInterrupt:
        echo(f"Stopped. Finished work is kept in {out}; the same command continues from there.", err=True)
        sys.exit(INTERRUPTED)
    for reason in result.left_out:
        echo(f"Left out: {reason}", err=True)
    echo(f"Wrote {result.page}")
    echo(f"\n{next_step(f'open {result.page} in a browser')}")


@contextlib.contextmanager
def _bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show how much is done: a bar with the time left on a terminal, else a line for every tenth."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _tenths(what)
        return
    with Progress(console=console) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _tenths(what: str) -> Callable[[float], None]:
    shown = 0

    def show(share: float) -> None:
        nonlocal shown
        if int(share * 10) > shown:
            shown = int(share * 10)
            echo(f"{what}: {shown}0 %", err=True)

    return show
