"""The command line that repeats a run by itself: it includes the options of a config file, and the seed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

import click
from click.core import ParameterSource

from fairmaxent.cli.option_types import Value


def resolved(ctx: click.Context, *, seed: int | None) -> str:
    """What was typed, with the options of a config file instead of its name if they can be typed, and the seed."""
    typed: Sequence[str] = ctx.find_root().obj or [ctx.command_path]
    said = list(options_from(ctx, ParameterSource.DEFAULT_MAP))
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


def options_from(
    ctx: click.Context, source: ParameterSource, names: Collection[str] | None = None
) -> Iterator[str | None]:
    """Options that were given in one way, with their values as they are typed; None for one that cannot be.

    ``names`` are the only ones of interest, if given.
    """
    for option in ctx.command.params:
        name = option.name or ""
        if option.expose_value and ctx.get_parameter_source(name) is source and (names is None or name in names):
            value = ctx.params[name]
            if value is False:
                yield from option.secondary_opts[:1]
            else:
                for one in value if option.multiple else [value]:
                    yield option.opts[0]
                    if one is not True:
                        yield option.type.written(one) if isinstance(option.type, Value) else str(one)
