"""The command line that repeats a run by itself: it includes the options of a config file, and the seed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import click
from click.core import ParameterSource

from fairmaxent.cli.option_types import Value


def resolved(ctx: click.Context, *, seed: int | None) -> str:
    """What was typed, with the options of a config file instead of its name if they can be typed, and the seed."""
    typed: Sequence[str] = ctx.find_root().obj or [ctx.command_path]
    said = list(_from_file(ctx))
    tokens = [*typed] if None in said else [*_without_config(typed), *filter(None, said)]
    if seed is not None and ctx.get_parameter_source("random_state") is ParameterSource.DEFAULT:
        tokens += ["--seed", str(seed)]
    return shlex.join(tokens)


def _without_config(typed: Sequence[str]) -> Iterator[str]:
    is_path = False
    for token in typed:
        if not is_path and token != "--config" and not token.startswith("--config="):
            yield token
        is_path = token == "--config"


def _from_file(ctx: click.Context) -> Iterator[str | None]:
    """Options with their values as they are typed; None for one that cannot be."""
    for option in ctx.command.params:
        if ctx.get_parameter_source(option.name or "") is ParameterSource.DEFAULT_MAP:
            value = ctx.params[option.name or ""]
            if value is not False:
                for one in value if option.multiple else [value]:
                    yield option.opts[0]
                    if one is not True:
                        yield option.type.written(one) if isinstance(option.type, Value) else str(one)
