"""Progress on a terminal; a pipe or a file stays as it is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from fairmaxent.cli.text import cell_text
from fairmaxent.progress import Progress, silent


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
