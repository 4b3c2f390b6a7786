"""A TOML file of options: the same names as on the command line, which takes precedence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from fairmaxent.cli.filing_options import FilingOptions
from fairmaxent.cli.inputs import CONFIG, CONFIG_KEYS
from fairmaxent.cli.option_types import FILE, KEEP, NOTHING, Value, is_number
from fairmaxent.cli.options import DomainOptions, ReadingOptions
from fairmaxent.cli.output_options import OutputOptions
from fairmaxent.cli.request_options import REQUEST_NAMES
from fairmaxent.cli.role_options import RoleOptions
from fairmaxent.cli.text import cell_text
from fairmaxent.cli.toml_values import toml_values
from fairmaxent.errors import InputError, StorageError, did_you_mean

# What a run is for, where its results go, what the machine can bear and whom it trusts must be typed each time.
_NOT_IN_A_FILE = (
    "config",
    "output",
    "model",
    "report",
    "pdf",
    "force",
    "readable_by_others",
    "as_json",
    "help",
    "write_config",
    "max_memory",
    "scheduler",  # whoever runs it can run code here
)
_BY_COLUMN = ("target", "bins", "kinds", "order")
_SEVERAL = ("protected", "favourable", "also", "within", "forbid", "margins", "missing", "relax")
_LONGEST = 60  # characters of a value in a message
_RATES = ("representation_rate", "statistical_rate")


def use_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Make a TOML file's values the defaults of the options."""
    if path is None:
        return
    ctx.meta[CONFIG] = path
    values = {_SPELLINGS.get(name, name): value for name, value in _read(path).items()}
    ctx.default_map = option_values(ctx.command, values, path)
    ctx.meta[CONFIG_KEYS] = frozenset(values)


def option_values(command: click.Command, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Values from a file, or from the page of the app, as a command takes them; those of other commands are left out.

    ``where`` they are from begins each message.
    """
    accepted = _keys(command)
    for name in values:
        if name in _NOT_IN_A_FILE:
            option = name.replace("as_", "").replace("_", "-")
            raise InputError(f"{where}: {name!r} cannot be set in a config file; pass --{option} on the command line")
        if name not in (*accepted, *_KEYS):
            raise InputError(f"{where} has the unknown key {name!r}; {did_you_mean(name, _KEYS)}")
    taken = {name: _as_option(name, value, where) for name, value in values.items() if name in accepted}
    for name, value in taken.items():
        _check_kind(accepted[name], values[name], value, where)
    return taken


def _keys(command: click.Command) -> dict[str, click.Option]:
    """The options of a command that a file may set."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {option.name: option for option in options if option.name and option.name not in _NOT_IN_A_FILE}


def _check_kind(option: click.Option, written: object, value: Any, path: str) -> None:
    """Refuse a value of another kind than the option takes: TOML has more kinds than a command line."""
    what, accepts = _kind_of(option)
    values = value if option.multiple else [value]
    if not all(isinstance(one, str) or accepts(one) for one in values):  # a text is read as if it were typed
        shown = cell_text(repr(written))
        shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
        raise click.UsageError(f"{path}: {option.name} is {shown}; it takes {what}")
    if any(isinstance(one, str) and "\0" in one for one in values):  # which cannot be typed, either
        raise click.UsageError(f"{path}: {option.name} has a null character; remove it")


def _kind_of(option: click.Option) -> tuple[str, Callable[[Any], bool]]:
    """What an option takes, in words and as a check."""
    if isinstance(option.type, Value):
        return option.type.words, option.type.accepts
    if option.is_flag:
        return "true or false", lambda value: isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return "a whole number", lambda value: is_number(value) and isinstance(value, int)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", is_number
    return "a text in quotes", lambda value: False


# Other names of options on the command line.
_SPELLINGS = {"seed": "random_state", "favorable": "favourable", "domain": "declared"}

# One file serves all commands: what any of them may read there.
_KEYS = [
    *REQUEST_NAMES,
    *("folds", "classifier"),  # of compare
    *("margins", "bounds", "relax", "replicates"),  # of rake
    *("control", "secrets", "attacks"),  # of evaluate
    *(
        field.name
        for kind in (RoleOptions, OutputOptions, FilingOptions, DomainOptions, ReadingOptions)
        for field in fields(kind)
        if field.name not in _NOT_IN_A_FILE
    ),
]


def _read(path: str) -> dict[str, Any]:
    try:
        return toml_values(Path(path).read_text(encoding="utf-8"), path)
    except (OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        reason = getattr(problem, "strerror", None) or getattr(problem, "reason", None) or problem
        raise StorageError(
            f"cannot read the config file {path}: {reason}; check the path and its permissions"
        ) from problem


def _as_option(name: str, value: Any, path: str) -> Any:
    """Turn a value into what the option of that name takes."""
    if name in _RATES and isinstance(value, Mapping):
        return {column: None if rate == NOTHING else rate for column, rate in value.items()}
    if name == "bins" and isinstance(value, int):
        return [(None, value)]
    if name in _BY_COLUMN:
        if not isinstance(value, Mapping):
            raise InputError(f"{path}: {name} is {value!r}; set it by column, in a section [{name}]")
        return [(column, None if wanted == KEEP else wanted) for column, wanted in value.items()]
    return [value] if name in _SEVERAL and not isinstance(value, list) else value


config_option = click.option(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=use_config,
    metavar="FILE",
    help="TOML file with options by the same names (underscores for dashes); the command line takes precedence.",
)
