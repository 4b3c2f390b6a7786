"""Options on the command line, made from the fields of records: each command gets their values as records.

The help begins with the options that most people need, and lists the rest under headings.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import click
from click.core import ParameterSource

from fairmaxent.cli import option_types
from fairmaxent.options import OptionInfo, TypedOption, typed_options

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

OTHERS = "Other options"


class RecordOption(click.Option):
    """An option of the command line that knows the field it came from.

    One that takes a list of columns may be repeated; a TOML file holds the names as they are.
    """

    source: TypedOption

    @property
    def info(self) -> OptionInfo:
        """What is known about it."""
        return self.source.info

    @property
    def _joins_columns(self) -> bool:
        return self.type is option_types.NAMES

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser collect what is typed."""
        is_multiple = self.multiple
        self.multiple = is_multiple or self._joins_columns
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.multiple = is_multiple

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Join the lists of columns that were typed."""
        is_typed = ctx.get_parameter_source(self.name or "") is ParameterSource.COMMANDLINE
        if self._joins_columns and isinstance(value, list) and is_typed:
            return [name for text in value for name in option_types.NAMES.convert(text, self, ctx)]
        return super().type_cast_value(ctx, value)


def click_option(source: TypedOption, *, help: str | None = None, required: bool | None = None) -> Decorator:
    """The option of the command line for a field of a record."""
    info = source.info
    settings: dict[str, Any] = {
        "help": info.help if help is None else help,
        "required": info.required if required is None else required,
        "metavar": info.metavar,
    }
    default = option_types.NOTHING if source.default is None and info.has_none else source.default
    if info.text == "flag":
        settings |= {"is_flag": True, "default": default, "show_default": "/" in source.flags[0]}
    else:
        settings["type"] = _type(info)
        if info.text in ("texts", "files") or getattr(settings["type"], "several", False):
            settings["multiple"] = True
        elif default is not None:  # None would count as a value, also of an option that is required
            settings |= {"default": default, "show_default": info.shows_default}
    names = [source.param, *source.flags]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        decorated = click.option(*names, cls=RecordOption, **settings)(function)
        params: list[Any] = decorated.__click_params__  # type: ignore[attr-defined]
        params[-1].source = source
        return decorated

    return decorate


def _type(info: OptionInfo) -> click.ParamType[Any] | type:
    if info.choices:
        return click.Choice([*([option_types.NOTHING] if info.has_none else []), *info.choices])
    if info.text == "whole":
        return int if info.least is None else click.IntRange(info.least, info.most)
    plain: dict[str, Any] = {
        "number": float,
        "text": str,
        "texts": str,
        "file": option_types.FILE,
        "files": option_types.FILE,
    }
    return plain[info.text] if info.text in plain else option_types.TEXTS[info.text]


def taking(
    kind: Callable[..., Any],
    name: str,
    options: Iterable[TypedOption] | None = None,
    *,
    help: Mapping[str, str] | None = None,
    required: bool | None = None,
) -> Decorator:
    """Add options to a command, which gets their values as one record, made by ``kind``.

    They are those of the record's own fields, unless others are named; ``help`` replaces that of some, by name.
    """
    sources = list(typed_options(kind) if options is None and isinstance(kind, type) else options or ())

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def collected(*args: Any, **params: Any) -> None:
            values = {source.param: params.pop(source.param) for source in sources}
            function(*args, **{**params, name: kind(**values)})

        decorated: Callable[..., None] = collected
        for source in reversed(sources):
            decorated = click_option(source, help=(help or {}).get(source.param), required=required)(decorated)
        return decorated

    return decorate


def named_like(record: type, others: type) -> list[TypedOption]:
    """The options of one record that have the names of another's fields."""
    names = [field.name for field in fields(record)]
    return [source for source in typed_options(others) if source.param in names]


class SectionedCommand(click.Command):
    """A command whose help begins with the main options of its records."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the main options, then each section, then the rest."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if line is not None:
                sections.setdefault(_heading(parameter), []).append(line)
        rest = sections.pop(OTHERS, [])
        for heading, lines in (*sections.items(), (OTHERS, rest)):
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


def _heading(parameter: click.Parameter) -> str:
    if not isinstance(parameter, RecordOption):
        return getattr(parameter, "heading", OTHERS)
    return "Options" if parameter.info.main else parameter.source.heading
