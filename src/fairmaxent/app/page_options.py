"""Options on the page: their labels and controls, and the records of what it sends."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from fairmaxent.cli.options import repeated
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions, ReadingOptions
from fairmaxent.cli.request import ASKED, ROLES
from fairmaxent.cli.values import as_typed
from fairmaxent.data.table import Names
from fairmaxent.errors import (
    KEEP_COLUMNS,
    InputError,
    Option,
    did_you_mean,
    shown,
    unfit,
)
from fairmaxent.fit.models import Model
from fairmaxent.fit.request import Request
from fairmaxent.options import NOTHING, OptionInfo, TypedOption, typed_options
from fairmaxent.options.refusals import by_name
from fairmaxent.options.values import has_null, value_of
from fairmaxent.plain_text import Values
from fairmaxent.report.source import FrontDoor

_BESIDE_REQUEST = Model.REFUSED + OutputOptions.REFUSED + DomainOptions.REFUSED
_TYPED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
Record = TypeVar("Record")
KEPT = KEEP_COLUMNS.name
READING_NAMES = tuple(
    field.name for field in fields(ReadingOptions) if field.name != "drop"
)
FILING_NAMES = ("title", "author", "purpose")
_CHANGE = (
    "model",
    "hide_protected",
    "parity",
    "threshold",
    "decided",
    "largest_weight",
    "base_share",
)
_FORMS = {
    # Levels are those of columns.
    "reading": [name for name in READING_NAMES if name != "levels"],
    "columns": ("max_levels",),
    "kept": (KEPT,),
    "groups": ("groups",),
    "likely": ("likely", "told_by", "known_groups", "recalibrated", "slack"),
    "rates": ("statistical_rate", "representation_rate"),
    "change": _CHANGE,
    "wishes": (
        "forbid",
        "equal_means",
        "compare_missing",
        "smallest_group",
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
    "report": FILING_NAMES,
}


@cache
def _named() -> dict[str, TypedOption]:
    """The options that the page may have, by their names here and in Python."""
    controls = _controls()
    named = by_name(controls.values())
    return {**controls, **named}


def as_labelled(option: Option) -> str:
    """Spell an option by its label, or as it is typed if the page does not have it.

    >>> as_labelled(Option("base_share")), as_labelled(Option("force"))
    ('“New combinations”', '--force on the command line')
    >>> as_labelled(Option("mode", "weights"))
    '“What to take: your rows with weights”'
    >>> as_labelled(Option("statistical_rate", {"sex": None, "race": 1.0}))
    '“Equal outcomes” not ticked for sex'
    """
    source = _named().get(option.name)
    if source is None or source.info.label is None:
        return f"{as_typed(option)} on the command line"
    info = source.info
    label = f"“{info.label}”"
    value = option.value
    if option.column is not None:
        return f"{label} for {option.column!r}"
    if info.text == "rate" and value is None:
        return f"{label} not ticked"
    if info.text == "rate" and isinstance(value, Mapping):
        unticked = [column for column, wanted in value.items() if wanted is None]
        if unticked:
            return f"{label} not ticked for {', '.join(unticked)}"
        return label
    choice = info.choice_labels.get(str(value))
    if choice is None:
        return label
    return f"“{info.label}: {choice}”"


IN_APP = FrontDoor("in the app", as_labelled)


def labelled(text: str) -> str:
    """Say a text of the command line in the words of the page.

    >>> labelled("--delta is for a private fit; add --epsilon, or --force")
    '“Privacy slack δ” is for a private fit; add “Privacy budget ε”, or --force'
    """
    labels = {
        flag: f"“{source.info.label}”"
        for source in _controls().values()
        for flag in source.flags
        if source.info.label is not None
    }
    return _TYPED.sub(lambda match: labels.get(match[0], match[0]), text)


@dataclass(frozen=True, eq=False)
class PageOptions:
    """What the page sent, as the records of a command hold it."""

    values: Values  # by name; those that were not given have their defaults
    # How they are typed, without those at their defaults; None: it cannot be.
    typed: tuple[str | None, ...]
    wishes: dict[str, str]  # the same by their labels

    def record(self, kind: type[Record]) -> Record:
        """The options that a dataclass of the command line holds."""
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        given = {name: self.values[name] for name in names if name in self.values}
        return kind(**given)

    @property
    def drop(self) -> Names:
        """The columns that are left out."""
        return tuple(self.values["drop"] or ())


@cache
def _controls() -> dict[str, TypedOption]:
    """The options that the page may have, in the order in which they are typed."""
    controls = {}
    for sources in (
        ROLES,
        ASKED,
        typed_options(OutputOptions),
        typed_options(DomainOptions),
        typed_options(ReadingOptions),
    ):
        # those under a heading of their own come last, as in a command
        for source in sorted(sources, key=lambda source: bool(source.info.heading)):
            controls[source.name] = source
    return controls


def page_options(sent: object, *, names: Collection[str]) -> PageOptions:
    """Read what the page sent; ``names`` are those of the options that it may set.

    Paths are none of them, so that nothing from a browser is ever opened.
    """
    if not isinstance(sent, dict):
        raise InputError(
            "the page sent something that is not a set of options; reload it"
        )
    for name in sent:
        if name not in names:
            raise InputError(
                f"the page sent an unknown option, {shown(name)}; reload it"
            )
    values: Values = {}
    typed: list[str | None] = []
    wishes: dict[str, str] = {}
    for name, source in _controls().items():
        values[name] = source.default
        if source.usual == NOTHING:
            values[name] = _read(source, NOTHING)
        if not _is_given(source, sent):
            continue
        value = _read(source, sent[name])
        is_usual = source.usual is not None and value == values[name]
        if is_usual:
            continue
        values[name] = value
        flag = source.flags[0]
        label = source.info.label or flag
        if value is True:
            typed.append(flag)
            wishes[label] = "yes"
            continue
        texts = value_of(source.info).typed(value)
        if texts is not None:
            # what the command would get, to the last digit
            values[name] = value_of(source.info).read(texts)
        typed += repeated(flag, texts)
        wishes[label] = ", ".join(texts or ()) or "yes"
    return PageOptions(values, tuple(typed), wishes)


def _is_given(source: TypedOption, sent: Values) -> bool:
    if source.name not in sent:
        return False
    value = sent[source.name]
    if value is None:
        return source.info.text == "rate"  # for which nothing is a value, too
    return value is not False and value not in ([], {})


def _read(source: TypedOption, value: Any) -> Any:
    """What an option takes of what the page sent; a text is read as if typed."""
    info = source.info
    if value is None:
        value = NOTHING
    is_typed = isinstance(value, str) and info.text != "flag" and not has_null(value)
    try:
        if is_typed:
            value = value_of(info).read([value])
        else:
            value = value_of(info).taken(value)
    except ValueError as problem:
        between = ": " if is_typed else " "
        raise InputError(Option(source.name), f"{between}{problem}") from problem
    choices = _choices(info)
    if choices and value not in choices:
        raise unfit(source.name, value, did_you_mean(value, choices))
    if info.least is not None and value < info.least:
        raise unfit(source.name, value, f"it takes a whole number from {info.least} on")
    return value


def _choices(info: OptionInfo) -> list[str]:
    if info.has_none and info.choices:
        return [NOTHING, *info.choices]
    return list(info.choices)


@cache
def forms() -> dict[str, list[Values]]:
    """The controls of each part of the page, in their order."""
    controls = _controls()
    return {
        part: [_drawn(controls[name]) for name in names]
        for part, names in _FORMS.items()
    }


def _drawn(source: TypedOption) -> Values:
    """What the page needs to draw a control for an option."""
    info = source.info
    default = source.usual
    if isinstance(default, bool) or not isinstance(default, str | int | float):
        default = None
    return {
        "name": source.name,
        "label": info.label,
        "help": info.page_help or labelled(info.help),
        "default": default,
        # it is not there unless this is given, too
        "part_of": _named().get(source.owner or "", source).name,
        "refused": [*_greyed(source)],
        **_kind(source),
    }


def _greyed(source: TypedOption) -> Iterator[Values]:
    """When the page greys a control out, and what it says then."""
    for row in (*Request.REFUSED, *_BESIDE_REQUEST):
        other = _named().get(row.other)
        if _named().get(row.option) is source and other and row.when is None:
            yield {
                "other": other.name,
                "is": row.beside,
                "default": other.usual,
                "why": row.error({}).spelled(as_labelled),
            }


def _kind(source: TypedOption) -> Values:
    """Which control the page draws, and what that needs."""
    info = source.info
    if info.slider is not None:
        usual: Any = source.field.default
        least, most, step, *start = info.slider
        if usual is not None:
            start = [usual]
        return {
            "kind": "slider",
            "least": least,
            "most": most,
            "step": step,
            "optional": usual is None,
            "start": [*start, most][0],
        }
    if info.text in ("flag", "file", "target"):  # the page names the files
        return {"kind": "flag"}
    if info.choices:
        choices = [
            (choice, info.choice_labels.get(choice, choice))
            for choice in _choices(info)
        ]
        return {
            "kind": "choice",
            "choices": choices,
            "helps": dict(info.choice_help),
        }
    if info.text == "whole":
        return {"kind": "whole", "least": info.least}
    if info.text in ("number", "pairs"):
        return {"kind": info.text}
    if value_of(info).join is not None and info.text != "names":
        return {"kind": "texts"}
    return {"kind": "text"}
