"""The names of options on the page, and messages and help of the command line in these words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from fairmaxent.cli.evaluate import EvaluateOptions
from fairmaxent.cli.output import FilingOptions, OutputOptions
from fairmaxent.cli.rake import RakeOptions
from fairmaxent.cli.reading import DomainOptions, ReadingOptions
from fairmaxent.cli.values import as_typed
from fairmaxent.errors import Option
from fairmaxent.fit.request import Request
from fairmaxent.options import OptionInfo, TypedOption, typed_options
from fairmaxent.report.source import FrontDoor

# The first that has an option of a name counts.
_RECORDS = (Request, OutputOptions, FilingOptions, ReadingOptions, DomainOptions, RakeOptions, EvaluateOptions)
_TYPED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


@cache
def options_by_flag() -> dict[str, TypedOption]:
    """The options of all records, by how they are typed."""
    options: dict[str, TypedOption] = {}
    for record in _RECORDS:
        for source in typed_options(record):
            for flag in source.flags:
                options.setdefault(flag, source)
    return options


@cache
def _by_name() -> dict[str, OptionInfo]:
    """The same by their names in Python: a record that has options of its own is named by the first of them."""
    infos: dict[str, OptionInfo] = {"missing_text": options_by_flag()["--missing"].info}
    for flag, source in options_by_flag().items():
        for name in (source.field.name, source.owner, flag.strip("-").replace("-", "_")):
            infos.setdefault(name or "", source.info)
    return infos


def as_labelled(option: Option) -> str:
    """Spell an option by its label on the page; one that the page does not have, as it is typed.

    >>> as_labelled(Option("base_share")), as_labelled(Option("force"))
    ('“New combinations”', '--force on the command line')
    >>> as_labelled(Option("mode", "weights")), as_labelled(Option("statistical_rate", {"sex": None, "race": 1.0}))
    ('“What to take: your rows with weights”', '“Equal outcomes” not ticked for sex')
    """
    info = _by_name().get(option.name)
    if info is None or info.label is None:
        return f"{as_typed(option)} on the command line"
    if option.column is not None:
        return f"“{info.label}” for {option.column!r}"
    if info.text == "rate" and option.value is not ...:
        return f"“{info.label}”{_without_tick(option.value)}"
    choice = info.choice_labels.get(str(option.value))
    return f"“{info.label}”" if choice is None else f"“{info.label}: {choice}”"


def _without_tick(rate: object) -> str:
    """Say which boxes of a rate are not ticked."""
    columns = [column for column, wanted in rate.items() if wanted is None] if isinstance(rate, Mapping) else []
    return f" not ticked for {', '.join(columns)}" if columns else " not ticked" if rate is None else ""


IN_APP = FrontDoor("in the app", as_labelled)


def labelled(text: str) -> str:
    """Say a text of the command line in the words of the page.

    >>> labelled("--delta is for a private fit; add --epsilon, or --force")
    '“Privacy slack δ” is for a private fit; add “Privacy budget ε”, or --force'
    """

    def label(match: re.Match[str]) -> str:
        source = options_by_flag().get(match[0])
        return match[0] if source is None or source.info.label is None else f"“{source.info.label}”"

    return _TYPED.sub(label, text)
