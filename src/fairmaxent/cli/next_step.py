"""Commands that can be typed as they stand: the one that repeats a run by itself, and the next sensible step."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from fairmaxent.cli.config import CONFIG, CONFIG_KEYS
from fairmaxent.cli.reading import DomainOptions, ReadingOptions, would_be_read
from fairmaxent.cli.values import COLUMNS, RATE, Value, quoted
from fairmaxent.data.levels import value_text
from fairmaxent.errors import InputError
from fairmaxent.files.formats import COMPRESSED, output_format
from fairmaxent.files.parquet import is_pattern
from fairmaxent.files.reading import STANDARD
from fairmaxent.plain_text import visible

if TYPE_CHECKING:
    from fairmaxent.files.reading import TableForm
    from fairmaxent.inspection import Inspection
    from fairmaxent.inspection.proposals import Proposal

Tokens = Sequence[str | None]  # the words of a command; None stands for one that cannot be typed

# Options that are repeated as they were given: how the file is read, and how columns are compared.
_REPEATED = {field.name for kind in (ReadingOptions, DomainOptions) for field in fields(kind)} | {"groups", "weight"}
_CHOICES = 6  # columns that are named to choose from
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
        for text in [None] if texts is None else texts:
            yield from (option.opts[0], text)


def command_line(tokens: Tokens) -> str | None:
    """A command on one line; None if a part of it cannot be typed."""
    text = shlex.join(token for token in tokens if token is not None)
    return None if None in tokens or visible(text) != text or "\n" in text else text


def next_step(why: str, command: Tokens = ()) -> str:
    """Say what to do next, and the command for it, without the name of the program, on a line of its own."""
    if not command:
        return f"Next: {visible(why)}"
    typed = command_line([*_program(), *command])
    if typed is None:
        return (
            f"Next: {visible(why)}. (Some names cannot be typed; 'fairmaxent inspect --write-config' writes them down.)"
        )
    return f"Next: {visible(why)}:\n  {typed}"


def _program() -> list[str]:
    """How this program was called, unless its name is enough: it may be in an environment that is not active."""
    called = sys.argv[0]
    if Path(called).parts[-2:] == ("fairmaxent", "__main__.py"):
        return [sys.executable, "-m", "fairmaxent"]
    is_script = os.path.basename(called) == "fairmaxent"
    return [called] if is_script and shutil.which("fairmaxent") is None else ["fairmaxent"]


# ---------------------------------------------------------------- from inspect to debias


def after_inspection(
    ctx: click.Context, data: str, inspection: Inspection, *, config: str | None, form: TableForm
) -> str:
    """What to do after an inspection: choose what is not known yet, or make the table fair."""
    options: Tokens = [*_roles(ctx, inspection), *given_options(ctx, _REPEATED)]
    if inspection.outcome is None:
        return _choose(["inspect", data, *options], inspection.proposed("outcome"), "outcome")
    if not inspection.protected:
        candidates = [*inspection.proposed("protected"), *_small_columns(inspection)]
        return _choose(["inspect", data, *options], candidates, "protected")
    options = options if config is None else ["--config", config]
    piped = ", with the same table on stdin" if data == STANDARD else ""
    sizes = ""
    if "--representation-rate" in options:
        sizes = " (this also makes groups equally large; to keep their sizes, leave out --representation-rate)"
    return next_step(
        f"make the table fair, with a report{piped}{sizes}", ["debias", data, *options, *outputs(data, form)]
    )


def _choose(command: Tokens, candidates: Sequence[Proposal], role: str) -> str:
    """Inspect again with a role chosen, for example the first candidate."""
    why = f"choose the {'outcome' if role == 'outcome' else 'groups to compare'} with --{role}"
    names = [str(proposal.value) for proposal in candidates]
    if not names:
        return next_step(why)
    if len(names) > 1:
        why += f" ({', '.join(names[:_CHOICES])}{', …' * (len(names) > _CHOICES)})"
    return next_step(
        f"{why}, for example", [*command, f"--{role}", quoted(names[0]) if role == "protected" else names[0]]
    )


def _small_columns(inspection: Inspection) -> Iterator[Proposal]:
    """Columns with a few groups, those of texts first: numbers rarely name groups of people."""
    from fairmaxent.inspection.proposals import Proposal

    for column in sorted(inspection.columns, key=lambda column: column.kind == "numeric"):
        if 2 <= column.levels <= 10 and column.name != inspection.outcome and not column.identifier:
            yield Proposal("protected", column.name, "", "candidate")


def _roles(ctx: click.Context, inspection: Inspection) -> Iterator[str | None]:
    """The roles, and equal group sizes but for columns that have tiny groups; not those that the config file has."""
    rate = inspection.representation_rate
    has_rate = any(rate.values()) if isinstance(rate, Mapping) else rate is not None
    values = {
        "outcome": [] if inspection.outcome is None else [inspection.outcome],
        "favourable": [value_text(level) for level in inspection.favourable],
        "protected": COLUMNS.typed(list(inspection.protected)) if inspection.protected else [],
        "representation_rate": RATE.typed(rate) if has_rate and inspection.outcome and inspection.protected else [],
    }
    for name, texts in values.items():
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_typed or name not in ctx.meta.get(CONFIG_KEYS, ()):
            for text in [None] if texts is None else texts:
                yield from (f"--{name.replace('_', '-')}", text)


def given_options(ctx: click.Context, names: Collection[str]) -> Iterator[str | None]:
    """The options that were typed and matter for the next command, too, and the config file."""
    yield from options_from(ctx, ParameterSource.COMMANDLINE, names)
    if CONFIG in ctx.meta:
        yield from ("--config", str(ctx.meta[CONFIG]))


# ---------------------------------------------------------------- names of files


def outputs(data: str, form: TableForm) -> list[str]:
    """The options that write a fair table of the same form, and a report, both under names that are free.

    ``form`` is that of the table in its file, as the reader saw it.
    """
    alike = ["--like-input"] if form.is_office else []
    suffix = _suffix(data)
    if alike and output_format(f"table{suffix}")[0] != form.format:
        suffix = f".{form.format}"
    return ["-o", free_name(data, "fair", suffix), *alike, "--report", free_name(data, "report", ".html")]


def free_name(data: str, tag: str, suffix: str) -> str:
    """A name beside the table that is free, and that the next run would not read as data."""
    stem, folder = "table", ""
    if data != STANDARD and not is_pattern(data):
        path = Path(data)
        folder = os.path.dirname(data.rstrip("/"))
        stem = path.name.removesuffix(_suffix_of(path)) or stem
        folder = folder if os.access(folder or ".", os.W_OK) else ""
    for number in range(1, 1000):
        name = os.path.join(folder, f"{stem}-{tag}{'' if number == 1 else f'-{number}'}{suffix}")
        if not os.path.lexists(name) and (data == STANDARD or not would_be_read(name, data)):
            break
    return name


def _suffix(data: str) -> str:
    """The suffix of a table like the input; Parquet for several files, CSV for what cannot be written."""
    if is_pattern(data) or os.path.isdir(data):
        return ".pq"  # not the usual suffix, which a pattern may end in
    suffix = _suffix_of(Path(data))
    with contextlib.suppress(InputError):
        output_format(f"table{suffix}")
        return suffix or ".csv"
    return ".csv"


def _suffix_of(path: Path) -> str:
    """The suffix of a file, with the one before it if the last stands for compression."""
    return Path(path.stem).suffix + path.suffix if path.suffix.lower() in COMPRESSED else path.suffix
