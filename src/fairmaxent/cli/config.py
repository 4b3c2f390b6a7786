"""TOML files: options by the same names as on the command line, which takes precedence, and declared domains."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli.inputs import CONFIG, CONFIG_KEYS
from fairmaxent.cli.option_types import BINS, FILE, KEEP, NOTHING, RATE, Value, is_number
from fairmaxent.cli.options import RecordOption
from fairmaxent.cli.text import cell_text
from fairmaxent.errors import InputError, StorageError, did_you_mean
from fairmaxent.plain_text import escaped_toml

if TYPE_CHECKING:
    from fairmaxent.data.declaration import Declaration


_LONGEST = 60  # characters of a value in a message
_DEEPEST = 100  # a.b.c… takes memory by the square of its length


def use_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Make a TOML file's values the defaults of the options."""
    if path is None:
        return
    ctx.meta[CONFIG] = path
    values = {_name(ctx.command, key): value for key, value in _read(path).items()}
    ctx.default_map = option_values(ctx.command, values, path)
    ctx.meta[CONFIG_KEYS] = frozenset(values)


def option_values(command: click.Command, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Values from a file, or from the page of the app, as a command takes them; those of other commands are left out.

    ``where`` they are from begins each message.
    """
    options = _options(command)
    taken = {}
    for name, value in values.items():
        option = options.get(name) or _others().get(name)
        if option is None:
            raise InputError(f"{where} has the unknown key {name!r}; {did_you_mean(name, config_keys())}")
        if not _is_in_files(option):
            raise InputError(
                f"{where}: {name!r} cannot be set in a config file; pass {option.opts[-1]} on the command line"
            )
        if name in options:
            taken[name] = _as_option(option, value, where)
            _check_kind(option, value, taken[name], where)
    return taken


def _name(command: click.Command, key: str) -> str:
    """The name of the option that a key spells: ``seed`` is ``random_state``."""
    if key in _options(command) or "-" in key:  # names have underscores here, so that one file has one spelling
        return key
    for options in (_options(command), _others()):
        for name, option in options.items():
            if f"--{key.replace('_', '-')}" in option.opts:
                return name
    return key


def _options(command: click.Command) -> dict[str, click.Option]:
    return {option.name or "": option for option in command.params if isinstance(option, click.Option)}


def _is_in_files(option: click.Option) -> bool:
    return isinstance(option, RecordOption) and option.info.in_files


@cache
def _others() -> dict[str, click.Option]:
    """The options of all commands: one file serves all of them."""
    from fairmaxent.cli.group import group

    context = click.Context(group)
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    options: dict[str, click.Option] = {}
    for command in commands:
        options = {**_options(command), **options} if command else options
    return options


def config_keys() -> list[str]:
    """What a file may hold, for whatever command."""
    return [name for name, option in _others().items() if _is_in_files(option)]


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


def _as_option(option: click.Option, value: Any, path: str) -> Any:
    """Turn a value into what an option takes."""
    if option.type is RATE and isinstance(value, Mapping):
        return {column: None if rate == NOTHING else rate for column, rate in value.items()}
    if option.type is BINS and isinstance(value, int):
        return [(None, value)]
    if isinstance(option.type, Value) and option.type.by_column:
        if not isinstance(value, Mapping):
            raise InputError(f"{path}: {option.name} is {value!r}; set it by column, in a section [{option.name}]")
        return [(column, None if wanted == KEEP else wanted) for column, wanted in value.items()]
    return [value] if option.multiple and not isinstance(value, list) else value


def toml_values(text: str, path: str) -> dict[str, Any]:
    """Read a text of TOML; ``path`` is how messages name it."""
    try:
        if any(part.count(".") > _DEEPEST for part in re.split("[=,\n]", text)):
            raise RecursionError
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not valid TOML: {problem}; check that line") from problem
    except RecursionError as problem:
        raise InputError(f"{path} is nested too deeply; list options and values as 'inspect' writes them") from problem


config_option = click.option(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=use_config,
    metavar="FILE",
    help="TOML file with options by the same names (underscores for dashes); the command line takes precedence.",
)


_KEYS = ("draft", "levels", "edges", "missing")

_HEAD = """\
# The values that each column can have, for 'fairmaxent debias --epsilon 1 --domain'. This is a draft, made from your
# table, and no part of it is protected: anyone who sees a private result may learn everything in this file. So each
# level and each edge must be something that everybody may know. Take out levels that only your table shows, add those
# that others could have, and round the edges."""

_DRAFT = """
# A private fit refuses a draft. Once you have read all of this, and it is public knowledge, remove the next line.
draft = true"""


def read_domain(path: str) -> Declaration:
    """Read a declared domain."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or getattr(problem, "reason", None) or problem
        raise StorageError(f"cannot read the domain {path}: {reason}; check the path and its permissions") from problem
    return declared(text, path)


def declared(text: str, path: str) -> Declaration:
    """The domain that a text declares; ``path`` is how messages name it."""
    from fairmaxent.data.domain import Domain

    record = toml_values(text, path)
    for name in record:
        if name not in _KEYS:
            raise InputError(f"{path} has the unknown key {name!r}; {did_you_mean(name, _KEYS)}")
    missing = record.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(name, str) for name in missing):
        raise InputError(f"{path}: missing must be a list of columns, e.g. missing = ['age']")
    for name in ("levels", "edges"):
        columns = record.get(name, {})
        if not isinstance(columns, dict) or not all(isinstance(values, list) for values in columns.values()):
            raise InputError(f"{path}: [{name}] must have a list for each column, e.g. sex = ['Female', 'Male']")
    draft = record.get("draft", False)
    if not isinstance(draft, bool):
        raise InputError(f"{path}: draft must be true or false; remove the line once you have read the draft")
    try:
        declaration = Domain.declare(levels=record.get("levels"), edges=record.get("edges"), missing=missing)
        return replace(declaration, draft=draft)
    except InputError as problem:
        raise InputError(f"{path}: ", problem) from problem


def domain_text(declaration: Declaration, left_out: Sequence[str]) -> str:
    """A declared domain as TOML, to be edited."""
    lines = [_HEAD]
    if left_out:
        names = ", ".join(_toml(name) for name in left_out)
        lines.append(f"# Left out, because they look like identifiers (leave them out with --drop, too): {names}")
    if declaration.draft:
        lines.append(_DRAFT)
    if declaration.missing:
        lines += ["", "# Columns that can have missing values.", f"missing = {_toml(list(declaration.missing))}"]
    lines += _section("levels", declaration.levels)
    lines += _section("edges", declaration.edges)
    return "\n".join(lines) + "\n"


def _section(name: str, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    entries = [f"{_toml(column)} = [{', '.join(map(_toml, values))}]" for column, values in columns.items()]
    return ["", f"[{name}]", *entries] if entries else []


def _toml(value: object) -> str:
    """A value as TOML: dates bare, the rest as JSON writes it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return escaped_toml(json.dumps(value, ensure_ascii=False, default=str))
