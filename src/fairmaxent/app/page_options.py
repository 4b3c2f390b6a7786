"""Options as the page sends them: read, checked and typed by the records of the command itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fairmaxent.app.labels import labelled, options_by_flag
from fairmaxent.cli.config import option_values
from fairmaxent.cli.group import group
from fairmaxent.cli.next_step import options_from
from fairmaxent.cli.options import RecordOption
from fairmaxent.cli.values import NOTHING, RATE
from fairmaxent.errors import InputError, shown

_WHERE = "the page"
Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class PageOptions:
    """The options of a command, as the command itself would get them."""

    context: click.Context
    typed: tuple[str | None, ...]
    """How they are typed; None stands for what cannot be. Those at their defaults are left out."""

    def record(self, kind: type[Record]) -> Record:
        """The options that a dataclass of the command line holds."""
        return kind(**{field.name: self.context.params[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def page_options(
    command: click.Command, arguments: Sequence[str], values: object, *, names: Collection[str]
) -> PageOptions:
    """Read the options of a command; ``names`` are those that the page may set.

    Paths are none of them, so that nothing from a browser is ever opened.
    """
    if not isinstance(values, Mapping):
        raise InputError("the page sent something that is not a set of options; reload it")
    for name in values:
        if name not in names:
            raise InputError(f"the page sent an unknown option, {shown(name)}; reload it")
    rates = [option.name for option in command.params if option.type is RATE]  # for which nothing is a value, too
    given = {name: NOTHING if value is None and name in rates else value for name, value in values.items()}
    taken = option_values(command, {name: value for name, value in given.items() if _is_given(value)}, _WHERE)
    context = _context(command, arguments, default_map=taken)
    differing = [option.name or "" for option in command.params if _differs(option, context)]
    typed = tuple(options_from(context, ParameterSource.DEFAULT_MAP, differing))
    words = [word for word in typed if word is not None]
    if len(words) == len(typed):  # then it is what the command would get, to the last digit
        context = _context(command, [*arguments, *words])
    return PageOptions(context, typed)


def _context(command: click.Command, words: Sequence[str], **more: Any) -> click.Context:
    """The command as it is called: below the group, whose settings it takes and keeps."""
    parent = group.make_context("fairmaxent", [], resilient_parsing=True)
    return command.make_context(command.name, list(words), parent=parent, **more)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], {})


def _differs(option: click.Parameter, context: click.Context) -> bool:
    """Whether it was given something else than its default, if it has one."""
    usual = _default(option)
    return usual is None or context.params.get(option.name or "") != option.type_cast_value(context, usual)


def _default(option: click.Parameter) -> str | int | float | None:
    default = option.default
    return default if isinstance(default, str | int | float) and not isinstance(default, bool) else None


def meaningful(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the page sent, without options that mean nothing beside the others: their controls keep what was chosen."""
    only_if = {flag.strip("-").replace("-", "_"): source.info.only_if for flag, source in options_by_flag().items()}
    return {name: value for name, value in values.items() if (means := only_if.get(name)) is None or means(values)}


def page_controls(command: click.Command, names: Sequence[str]) -> list[dict[str, Any]]:
    """What the page needs to draw a control for each of these options, in this order."""
    options = {option.name: option for option in command.params if isinstance(option, RecordOption)}
    return [
        {
            "name": name,
            "label": options[name].info.label,
            "help": options[name].info.page_help or labelled(options[name].help or ""),
            **_kind(options[name]),
        }
        for name in names
    ]


def _kind(option: click.Option) -> dict[str, Any]:
    default = _default(option)
    if option.is_flag:
        return {"kind": "flag"}
    if isinstance(option.type, click.Choice):
        return {"kind": "choice", "choices": list(option.type.choices), "default": default}
    if isinstance(option.type, click.types.IntParamType):
        return {"kind": "whole", "least": getattr(option.type, "min", None), "default": default}
    if isinstance(option.type, click.types.FloatParamType):
        return {"kind": "number", "default": default}
    return {"kind": "texts" if option.multiple else "text", "default": default}
