"""TOML files: options by the names of the command line, and declared domains."""

import datetime
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from fairmaxent.cli.options import CONFIG, RecordOption
from fairmaxent.cli.values import FILE, TypedValue
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.table import NameList
from fairmaxent.errors import InputError, StorageError, did_you_mean
from fairmaxent.files.content import reason_of
from fairmaxent.options import option_hint
from fairmaxent.options.values import has_null, value_of
from fairmaxent.plain_text import Values, escaped_toml

_DEEPEST = 100  # a.b.c… takes memory by the square of its length
_HEAD = """\
# The values that each column can have, for 'fairmaxent debias --epsilon 1 --domain'. This is a draft, made from your
# table, and no part of it is protected: anyone who sees a private result may learn everything in this file. So each
# level and each edge must be something that everybody may know. Take out levels that only your table shows, add those
# that others could have, and choose edges that suit you."""  # noqa: E501 (a file)
_DRAFT = """
# A private fit refuses a draft. Once you have read all of this, and it is public knowledge, remove the next line.
draft = true"""  # noqa: E501 (a file)


def use_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Make a TOML file's values the defaults of the options."""
    if path is None:
        return
    ctx.meta[CONFIG] = path
    values = _toml_values(_text(path, "config file"), path)
    ctx.default_map = option_values(ctx.command, values, path)


def option_values(
    command: click.Command, values: Mapping[str, Any], where: str
) -> Values:
    """Values from a file (``where``) as a command takes them; others are left out."""
    options = _options(command)
    taken = {}
    for name, value in values.items():
        option = options.get(name) or _others().get(name)
        if option is None:
            raise InputError(
                f"{where} has the unknown key {name!r};"
                f" {option_hint(name, config_keys())}"
            )
        if not (isinstance(option, RecordOption) and option.info.in_files):
            raise InputError(
                f"{where}: {name!r} cannot be set in a config file; pass"
                f" {option.opts[-1]} on the command line"
            )
        if name in options:
            taken[option.name or ""] = _taken(option, value, where)
    return taken


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their names, and as they are typed."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    typed = {
        flag.lstrip("-").replace("-", "_"): option
        for option in options
        for flag in option.opts
    }
    return typed | {option.name or "": option for option in options}


@cache
def _others() -> dict[str, click.Option]:
    """The options of all commands: one file serves all of them."""
    from fairmaxent.cli.group import group

    context = click.Context(group)
    options: dict[str, click.Option] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command:
            options = {**_options(command), **options}
    return options


def config_keys() -> list[str]:
    """What a file may hold, for whatever command."""
    return list(
        {
            option.name or "": None
            for option in _others().values()
            if isinstance(option, RecordOption) and option.info.in_files
        }
    )


def _taken(option: RecordOption, value: Any, path: str) -> Any:
    """What an option takes of a value of TOML; a text is read as if it were typed."""
    if isinstance(value, str) and not has_null(value):
        if option.multiple and not isinstance(option.type, TypedValue):
            return [value]
        return value
    try:
        return value_of(option.info).taken(value)
    except ValueError as problem:
        raise click.UsageError(f"{path}: {option.name} {problem}") from problem


def _text(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        reason = reason_of(problem)
        raise StorageError(
            f"cannot read the {what} {path}: {reason}; check the path and its"
            " permissions"
        ) from problem


def _toml_values(text: str, path: str) -> Values:
    """Read a text of TOML; ``path`` is how messages name it."""
    try:
        if any(part.count(".") > _DEEPEST for part in re.split("[=,\n]", text)):
            raise RecursionError
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(
            f"{path} is not valid TOML: {problem}; check that line"
        ) from problem
    except RecursionError as problem:
        raise InputError(
            f"{path} is nested too deeply; list options and values as 'inspect' writes"
            " them"
        ) from problem


config_option = click.option(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=use_config,
    help=(
        "TOML file with options by the same names (underscores for dashes); the command"
        " line takes precedence."
    ),
)


def toml_section(name: str, values: Mapping[str, Any]) -> list[str]:
    """A section; nothing if it would be empty."""
    if not values:
        return []
    lines = [f"{toml(column)} = {toml(value)}" for column, value in values.items()]
    return ["", f"[{name}]", *lines]


def toml(value: object) -> str:
    """A value as TOML: dates bare, the rest as JSON writes it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return escaped_toml(json.dumps(value, ensure_ascii=False, default=str))


def read_domain(path: str) -> Declaration:
    """Read a declared domain."""
    return declared(_text(path, "domain"), path)


def declared(text: str, path: str) -> Declaration:
    """The domain that a text declares; ``path`` is how messages name it."""
    record = _toml_values(text, path)
    keys = ["draft", "levels", "edges", "missing", "decimal", "dates"]
    for name in record:
        if name not in keys:
            raise InputError(
                f"{path} has the unknown key {name!r}; {did_you_mean(name, keys)}"
            )
    draft = bool(record.pop("draft", False))
    try:
        return replace(
            Declaration.of(
                **{
                    "levels": {},
                    "edges": {},
                    "missing": (),
                    **record,
                }
            ),
            draft=draft,
        )
    except InputError as problem:
        raise InputError(f"{path}: ", problem) from problem


def domain_text(declaration: Declaration, left_out: NameList) -> str:
    """A declared domain as TOML, to be edited."""
    lines = [_HEAD]
    if left_out:
        names = ", ".join(map(toml, left_out))
        lines.append(
            "# Left out, because they look like identifiers (leave them out with"
            f" --drop, too): {names}"
        )
    if declaration.draft:
        lines.append(_DRAFT)
    forms = []
    if declaration.decimal != ".":
        forms.append(f"decimal = {toml(declaration.decimal)}")
    if declaration.dates is not None:
        forms.append(f"dates = {toml(declaration.dates)}")
    if forms:
        about = (
            "# How numbers and dates are written. Nothing else is: what is written"
            " otherwise was not declared."
        )
        lines += ["", about, *forms]
    if declaration.missing:
        lines += [
            "",
            "# Columns that can have missing values.",
            f"missing = {toml(declaration.missing)}",
        ]
    lines += [
        *toml_section("levels", declaration.levels),
        *toml_section("edges", declaration.edges),
    ]
    return "\n".join(lines) + "\n"
