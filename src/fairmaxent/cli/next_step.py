"""Commands that can be typed as they stand: the one that repeats a run by itself, and the next sensible step."""

from __future__ import annotations

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

from fairmaxent.cli import option_types
from fairmaxent.cli.inputs import CONFIG, CONFIG_KEYS, would_be_read
from fairmaxent.cli.option_types import Value
from fairmaxent.cli.quoting import quoted
from fairmaxent.cli.reading_options import DomainOptions, ReadingOptions
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


# Options that are repeated as they were given: how the file is read, and how columns are compared.
_READING = frozenset(field.name for kind in (ReadingOptions, DomainOptions) for field in fields(kind))
_REPEATED = _READING | {"groups", "weight"}


_CHOICES = 6  # columns that are named to choose from

NEXT = "fairmaxent.next"  # where a context keeps what a command says instead, if another one runs it


def next_step(why: str, command: Sequence[str | None] = ()) -> str:
    """Say what to do next, and the command for it, which begins with fairmaxent, on a line of its own."""
    if not command:
        return f"Next: {visible(why)}"
    typed = shlex.join([*_program(), *(token for token in command[1:] if token is not None)])
    if None in command or visible(typed) != typed or "\n" in typed:
        return (
            f"Next: {visible(why)}. (Some names cannot be typed; 'fairmaxent inspect --write-config' writes them down.)"
        )
    return f"Next: {visible(why)}:\n  {typed}"


def _program() -> list[str]:
    """How this program was called, unless its name is enough: it may be in an environment that is not active."""
    called = sys.argv[0]
    if os.path.basename(called) == "__main__.py" and os.path.dirname(called).endswith("fairmaxent"):
        return [_shortest(sys.executable), "-m", "fairmaxent"]
    return [_shortest(called)] if os.path.basename(called) == "fairmaxent" else ["fairmaxent"]


def _shortest(path: str) -> str:
    """A program by its name if the shell finds it by that, or else by its path from here or from the root."""
    name = os.path.basename(path)
    if os.path.realpath(shutil.which(name) or "") == os.path.realpath(path):
        return name
    return min(os.path.relpath(path), path, key=len)


# ---------------------------------------------------------------- from inspect to debias


def after_inspection(
    ctx: click.Context, data: str, inspection: Inspection, *, config: str | None, form: TableForm
) -> str:
    """What to do after an inspection: choose what is not known yet, or make the table fair."""
    if inspection.outcome is None:
        return _choose(ctx, data, inspection, inspection.proposed("outcome"), "outcome")
    if not inspection.protected:
        candidates = [*inspection.proposed("protected"), *_small_columns(inspection)]
        return _choose(ctx, data, inspection, candidates, "protected")
    if config is not None:
        options: list[str | None] = ["--config", config]
    else:
        options = [*_roles(ctx, inspection), *_rates(ctx, inspection), *_given(ctx)]
    command = ["fairmaxent", "debias", _argument(data), *options, *outputs(data, form)]
    piped = ", with the same table on stdin" if data == STANDARD else ""
    sizes = ""
    if "--representation-rate" in options:
        sizes = " (this also makes groups equally large; to keep their sizes, leave out --representation-rate)"
    return next_step(f"make the table fair, with a report{piped}{sizes}", command)


def without_last_row(ctx: click.Context, data: str) -> str:
    """Look again without a row that may be a sum: as data, it would be a person in a group of its own."""
    again = ["fairmaxent", "inspect", _argument(data), *_typed_roles(ctx), *_given(ctx), "--skip-last", "1"]
    return next_step("if the last row is a sum or a remark, look again without it", again)


def _choose(ctx: click.Context, data: str, inspection: Inspection, candidates: Sequence[Proposal], role: str) -> str:
    """Inspect again with a role chosen, for example the first candidate that can be typed."""
    why = f"choose the {'outcome' if role == 'outcome' else 'groups to compare'} with --{role}"
    if len(candidates) > 1:
        why += f" ({', '.join(str(one.value) for one in candidates[:_CHOICES])}{', …' * (len(candidates) > _CHOICES)})"
    for one in candidates:
        cut = None if one.edges is None else option_types.BINS.written((str(one.value), list(one.edges)))
        if one.edges is None or cut is not None:
            chosen = [f"--{role}", str(one.value), *(() if cut is None else ("--bins", cut))]
            known = [*_roles(ctx, inspection), *_given(ctx)]
            return next_step(f"{why}, for example", ["fairmaxent", "inspect", _argument(data), *known, *chosen])
    return next_step(why)


def _small_columns(inspection: Inspection) -> Iterator[Proposal]:
    """Columns with a few groups, those of texts first: numbers rarely name groups of people."""
    from fairmaxent.inspection.proposals import Proposal

    for column in sorted(inspection.columns, key=lambda column: column.kind == "numeric"):
        if 2 <= column.levels <= 10 and column.name != inspection.outcome and not column.identifier:
            yield Proposal("protected", column.name, "", "candidate")


def _roles(ctx: click.Context, inspection: Inspection) -> Iterator[str | None]:
    """The roles that are known, but for those that the config file has."""
    if inspection.outcome is not None and not _is_in_config(ctx, "outcome"):
        yield from ("--outcome", inspection.outcome)
    for level in inspection.favourable if not _is_in_config(ctx, "favourable") else ():
        yield from ("--favourable", value_text(level))
    if inspection.protected and not _is_in_config(ctx, "protected"):
        has_comma = any("," in name for name in inspection.protected)
        for names in inspection.protected if has_comma else [",".join(inspection.protected)]:
            yield from ("--protected", names)


def _typed_roles(ctx: click.Context) -> Iterator[str | None]:
    yield from options_from(ctx, ParameterSource.COMMANDLINE, frozenset({"outcome", "favourable", "protected"}))


def _rates(ctx: click.Context, inspection: Inspection) -> Iterator[str]:
    """Equal group sizes, but not for columns that have tiny groups."""
    rate = inspection.representation_rate
    if rate is None or _is_in_config(ctx, "representation_rate"):
        return
    if not isinstance(rate, Mapping):
        yield from ("--representation-rate", value_text(rate))
        return
    if any(rate.values()):
        typed = {column: option_types.NOTHING if one is None else value_text(one) for column, one in rate.items()}
        yield from ("--representation-rate", ",".join(f"{quoted(column)}={one}" for column, one in typed.items()))


def _given(ctx: click.Context) -> Iterator[str | None]:
    """The options that were typed and matter for the next command, too."""
    yield from options_from(ctx, ParameterSource.COMMANDLINE, _REPEATED)
    if CONFIG in ctx.meta:
        yield from ("--config", str(ctx.meta[CONFIG]))


def _is_in_config(ctx: click.Context, name: str) -> bool:
    typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    return name in ctx.meta.get(CONFIG_KEYS, ()) and not typed


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
        reads = data != STANDARD and would_be_read(name, data)
        if not reads and not os.path.lexists(name):
            return _argument(name)
    return _argument(name)


def _suffix(data: str) -> str:
    """The suffix of a table like the input; Parquet for several files, CSV for what cannot be written."""
    if data == STANDARD:
        return ".csv"
    if is_pattern(data) or os.path.isdir(data):
        return ".pq"  # not the usual suffix, which a pattern may end in
    suffix = _suffix_of(Path(data))
    try:
        output_format(f"table{suffix}")
    except InputError:
        return ".csv"
    return suffix or ".csv"


def _suffix_of(path: Path) -> str:
    """The suffix of a file, with the one before it if the last stands for compression."""
    last = path.suffix
    return Path(path.stem).suffix + last if last.lower() in COMPRESSED else last


def _argument(name: str) -> str:
    """A file's name as an argument; one that begins like an option gets a folder."""
    return f"./{name}" if name.startswith("-") and name != STANDARD else name
