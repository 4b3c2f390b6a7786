"""Options on the page: their labels and controls, and what it sends, read by the
records of the commands.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fairmaxent.cli.config import option_values
from fairmaxent.cli.debias import debias_command as debias
from fairmaxent.cli.group import group
from fairmaxent.cli.options import RecordOption, goes_with, options_from
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions, ReadingOptions
from fairmaxent.cli.values import FILE, NOTHING, RATE, as_typed
from fairmaxent.errors import KEEP_COLUMNS, InputError, Option, shown
from fairmaxent.fit.request import Request
from fairmaxent.options import OptionInfo, typed_options
from fairmaxent.report.source import FrontDoor

# The first that has an option of a name counts.
_RECORDS = (Request, OutputOptions, ReadingOptions, DomainOptions)
_TYPED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
Record = TypeVar("Record")
KEPT = KEEP_COLUMNS.name
READING_NAMES = tuple(
    field.name for field in fields(ReadingOptions) if field.name != "drop"
)
FILING_NAMES = ("title", "author", "purpose")
_CHANGE = (
    "train",
    "hide_protected",
    "parity",
    "threshold",
    "decided",
    "largest_weight",
    "base_share",
)
_FORMS = {
    # which columns have
    "reading": [name for name in READING_NAMES if name != "levels"],
    "columns": ("max_levels",),
    "kept": (KEPT,),
    "groups": ("groups",),
    "rates": ("statistical_rate", "representation_rate"),
    "change": _CHANGE,
    "wishes": (
        "forbid",
        "equal_means",
        "compare_missing",
        "base",
        "detail",
        "random_state",
    ),
    "privacy": (
        "release",
        "epsilon",
        "delta",
        "rows_per_person",
        "budget",
        "undeclared",
    ),
    "take": ("mode", "rows", "iid", "weight_name", "evaluate"),
    "report": (*FILING_NAMES, "pdf"),
}


@cache
def _infos() -> dict[str, OptionInfo]:
    """What is known about each option, by how it is typed and by its names; one with a
    record is named by its first.
    """
    infos: dict[str, OptionInfo] = {}
    for source in (each for record in _RECORDS for each in typed_options(record)):
        names = [flag.strip("-").replace("-", "_") for flag in source.flags]
        for name in (*source.flags, source.field.name, source.owner or "", *names):
            infos.setdefault(name, source.info)
    return {**infos, "missing_text": infos["--missing"]}


def as_labelled(option: Option) -> str:
    """Spell an option by its label on the page; one that the page does not have, as it
    is typed.

    >>> as_labelled(Option("base_share")), as_labelled(Option("force"))
    ('“New combinations”', '--force on the command line')
    >>> as_labelled(Option("mode", "weights")), as_labelled(Option("statistical_rate", {"sex": None, "race": 1.0}))
    ('“What to take: your rows with weights”', '“Equal outcomes” not ticked for sex')
    """
    info = _infos().get(option.name)
    value = option.value
    if info is None or info.label is None:
        return f"{as_typed(option)} on the command line"
    if option.column is not None:
        return f"“{info.label}” for {option.column!r}"
    if info.text == "rate" and isinstance(value, Mapping):
        columns = ", ".join(
            column for column, wanted in value.items() if wanted is None
        )
        if columns:
            return f"“{info.label}” not ticked for {columns}"
        return f"“{info.label}”"
    if info.text == "rate" and value is None:
        return f"“{info.label}” not ticked"
    choice = info.choice_labels.get(str(value))
    if choice is None:
        return f"“{info.label}”"
    return f"“{info.label}: {choice}”"


IN_APP = FrontDoor("in the app", as_labelled)


def labelled(text: str) -> str:
    """Say a text of the command line in the words of the page.

    >>> labelled("--delta is for a private fit; add --epsilon, or --force")
    '“Privacy slack δ” is for a private fit; add “Privacy budget ε”, or --force'
    """
    labels = {
        flag: f"“{info.label}”"
        for flag, info in _infos().items()
        if info.label is not None
    }
    return _TYPED.sub(lambda match: labels.get(match[0], match[0]), text)


@dataclass(frozen=True, eq=False)
class PageOptions:
    """The options of a command, as the command itself would get them."""

    context: click.Context
    typed: tuple[str | None, ...]
    """How they are typed; None stands for what cannot be. Those at their defaults are
    left out.
    """
    wishes: dict[str, str]
    """The same by their labels."""

    def record(self, kind: type[Record]) -> Record:
        """The options that a dataclass of the command line holds."""
        return kind(
            **{field.name: self.context.params[field.name] for field in fields(kind)}
        )  # type: ignore[arg-type]

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns that are left out."""
        return tuple(self.context.params["drop"] or ())


def page_options(
    command: click.Command,
    arguments: Sequence[str],
    values: object,
    *,
    names: Collection[str],
) -> PageOptions:
    """Read the options of a command; ``names`` are those that the page may set.

    Paths are none of them, so that nothing from a browser is ever opened.
    """
    if not isinstance(values, Mapping):
        raise InputError(
            "the page sent something that is not a set of options; reload it"
        )
    for name in values:
        if name not in names:
            raise InputError(
                f"the page sent an unknown option, {shown(name)}; reload it"
            )
    # for which nothing is a value, too
    rates = [option.name for option in command.params if option.type is RATE]
    given = {
        name: NOTHING if value is None and name in rates else value
        for name, value in values.items()
    }
    given = {
        name: value
        for name, value in given.items()
        if value is not False and value not in (None, [], {})
    }
    context = _context(
        command, arguments, default_map=option_values(command, given, "the page")
    )
    words = {
        option: list(_typed(option, context)) for option in _controls(command).values()
    }
    typed = tuple(word for option in words.values() for word in option)
    wishes = {
        option.info.label or option.opts[0]: ", ".join(
            word or "" for word in each[1::2]
        )
        or "yes"
        for option, each in words.items()
        if each
    }
    texts = [word for word in typed if word is not None]
    # then it is what the command would get, to the last digit
    if len(texts) == len(typed):
        context = _context(command, [*arguments, *texts])
    return PageOptions(context, typed, wishes)


def _context(
    command: click.Command, words: Sequence[str], **more: Any
) -> click.Context:
    """The command as it is called: below the group, whose settings it takes and
    keeps.
    """
    parent = group.make_context("fairmaxent", [], resilient_parsing=True)
    return command.make_context(command.name, list(words), parent=parent, **more)


def _controls(command: click.Command) -> dict[str, RecordOption]:
    return {
        option.name or "": option
        for option in command.params
        if isinstance(option, RecordOption)
    }


def _typed(option: RecordOption, context: click.Context) -> Iterator[str | None]:
    """How an option is typed, if it was given something else than its default."""
    name = option.name or ""
    usual = _default(option)
    if usual is None or context.params.get(name) != option.type_cast_value(
        context, usual
    ):
        yield from options_from(context, ParameterSource.DEFAULT_MAP, [name])


def _default(option: click.Parameter) -> str | int | float | None:
    default = option.default
    return (
        default
        if isinstance(default, str | int | float) and not isinstance(default, bool)
        else None
    )


def meaningful(command: click.Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the page sent, without options that mean nothing beside the others: their
    controls keep what was chosen.
    """
    options = _controls(command)
    return {
        name: value
        for name, value in values.items()
        if name not in options
        or all(
            goes_with(options[name].info, other, values.get(other))
            for other in options[name].info.only_if
        )
    }


@cache
def forms() -> dict[str, list[dict[str, Any]]]:
    """The controls of each part of the page, in their order."""
    options = _controls(debias)
    return {
        part: [_drawn(options[name]) for name in names]
        for part, names in _FORMS.items()
    }


def _drawn(option: RecordOption) -> dict[str, Any]:
    """What the page needs to draw a control for an option."""
    info = option.info
    about = {
        "name": option.name,
        "label": info.label,
        "help": info.page_help or labelled(option.help or ""),
    }
    return {
        **about,
        "default": _default(option),
        "only_if": dict(info.only_if),
        **_kind(option),
    }


def _kind(option: RecordOption) -> dict[str, Any]:
    info = option.info
    if info.slider is not None:
        (least, most, step, *start), usual = info.slider, option.source.field.default
        drawn = {
            "kind": "slider",
            "least": least,
            "most": most,
            "step": step,
            "optional": usual is None,
        }
        return {**drawn, "start": [*start, most][0] if usual is None else usual}
    if option.is_flag or option.type is FILE:  # the page names the files
        return {"kind": "flag"}
    if isinstance(option.type, click.Choice):
        choices = [
            (choice, info.choice_labels.get(choice, choice))
            for choice in option.type.choices
        ]
        return {"kind": "choice", "choices": choices, "helps": dict(info.choice_help)}
    if isinstance(option.type, click.types.IntParamType):
        return {"kind": "whole", "least": getattr(option.type, "min", None)}
    if isinstance(option.type, click.types.FloatParamType):
        return {"kind": "number"}
    return {
        "kind": (
            info.text
            if info.text == "pairs"
            else "texts"
            if option.multiple
            else "text"
        )
    }
