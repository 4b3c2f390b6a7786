"""What a command shows: tables, JSON, and progress on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from fairmaxent.cli.streams import echo
from fairmaxent.data.levels import cell_text as cell_text
from fairmaxent.data.levels import value_text
from fairmaxent.document.words import counted as counted
from fairmaxent.plain_text import json_text
from fairmaxent.progress import Progress, silent


def as_json(record: Any) -> str:
    """Plain JSON: what is no number (infinite, NaN) is null, what has no JSON form is its text."""
    return json_text(record, indent=2, text=value_text)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Say on a terminal what is being done; a pipe or a file stays as it is."""
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        yield
        return
    with Console(stderr=True).status(Text(cell_text(text))):  # not markup: a file may be called a[b].csv
        yield


def say(text: str, *, data_on_stdout: bool) -> None:
    """Print for people; to stderr if stdout carries the data."""
    echo(text, err=data_on_stdout)


@contextlib.contextmanager
def bar(text: str) -> Iterator[Progress]:
    """Show one bar, with the stage that is going on."""
    if not sys.stderr.isatty():
        yield silent
        return
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        yield silent
        return
    columns = (rich.TextColumn("{task.description}", markup=False), rich.BarColumn(), rich.TimeElapsedColumn())
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        text = cell_text(text)
        task = shown.add_task(text, total=1.0)

        def report(stage: str, share: float) -> None:
            # A share of zero may last: the bar then moves without end.
            shown.update(task, description=f"{text}: {stage}", completed=share, total=1.0 if share else None)

        yield report
