"""Commands that can be typed as they stand: the one that repeats a run by itself, and the next sensible step."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from fairmaxent.cli.config import CONFIG
from fairmaxent.cli.values import Value
from fairmaxent.files.parquet import is_pattern
from fairmaxent.files.reading import STANDARD, TableForm
from fairmaxent.plain_text import visible

Tokens = Sequence[str | None]  # the words of a command; None stands for one that cannot be typed

NEXT = "fairmaxent.next"  # where a context keeps what a command says instead, if another one runs it


def resolved(ctx: click.Context, *, seed: int | None) -> str:
    """What was typed, with the seed."""
    typed: list[str] = list(ctx.find_root().obj or [ctx.command_path])
    if seed is not None and ctx.get_parameter_source("random_state") is ParameterSource.DEFAULT:
        typed += ["--seed", str(seed)]
    return shlex.join(typed)


def options_from(
    ctx: click.Context, source: ParameterSource, names: Collection[str] | None = None
) -> Iterator[str | None]:
    """Options that were given in one way, with their values as they are typed; None for one that cannot be.

    ``names`` are the only ones of interest, if given.
    """
    for option in ctx.command.params:
        name = option.name or ""
        if not option.expose_value or ctx.get_parameter_source(name) is not source or name not in (names or [name]):
            continue
        value = ctx.params[name]
        if isinstance(value, bool):
            yield from option.opts[:1] if value else option.secondary_opts[:1]
            continue
        texts: Tokens | None = [str(item) for item in (value if option.multiple else [value])]
        if isinstance(option.type, Value):
            texts = option.type.typed(value)
        yield from repeated(option.opts[0], texts)


def repeated(flag: str, texts: Tokens | None) -> Iterator[str | None]:
    """An option once for each text."""
    for text in [None] if texts is None else texts:
        yield from (flag, text)


def command_line(tokens: Tokens) -> str | None:
    """A command on one line; None if a part of it cannot be typed."""
    text = shlex.join(token for token in tokens if token is not None)
    return None if None in tokens or visible(text) != text or "\n" in text else text


def next_step(why: str, command: Tokens = ()) -> str:
    """Say what to do next, and the command for it, without the name of the program, on a line of its own."""
    typed = command_line(["fairmaxent", *command])
    if typed is None:
        why += ". (Some names cannot be typed; 'fairmaxent inspect --write-config' writes them down.)"
    return f"Next: {visible(why)}" + (f":\n  {typed}" if typed and command else "")


def given_options(ctx: click.Context, names: Collection[str]) -> Iterator[str | None]:
    """The options that were typed and matter for the next command, too, and the config file."""
    yield from options_from(ctx, ParameterSource.COMMANDLINE, names)
    if CONFIG in ctx.meta:
        yield from ("--config", str(ctx.meta[CONFIG]))


def outputs(data: str, form: TableForm) -> list[str]:
    """The options that write a fair table of the same form, which the reader saw in the file, and a report."""
    suffix = ".pq" if is_pattern(data) else f".{form.format}"  # not the usual suffix, which a pattern may end in
    alike = ["--like-input"] if form.is_office else []
    return ["-o", name_for(data, f"fair{suffix}"), *alike, "--report", name_for(data, "report.html")]


def name_for(data: str, what: str) -> str:
    """A name for what is made of a table or a model."""
    is_named = data != STANDARD and not is_pattern(data)
    return f"{Path(data).stem.removesuffix('.csv') if is_named else 'table'}-{what}"
