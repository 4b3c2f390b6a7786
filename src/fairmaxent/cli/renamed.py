"""Options that had another name before the first release: each is refused with the new spelling."""

from __future__ import annotations

from collections.abc import Callable

import click

from fairmaxent.cli.help import Decorator

RENAMED = {
    "absorb": "--relabel probabilities or --relabel predictions (without it, rows are reweighed)",
    "parity": "--relabel probabilities or --relabel predictions",
    "downstream": "--estimate",
}


def renamed_options(function: Callable[..., None]) -> Callable[..., None]:
    """Refuse the old options, and name the new ones."""
    for name in RENAMED:
        function = _refused(name)(function)
    return function


def _refused(name: str) -> Decorator:
    def refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"--{name} is no longer an option; use {RENAMED[name]}", ctx)

    return click.option(f"--{name}", hidden=True, expose_value=False, callback=refuse)
