"""Values on the command line: paths, what `values` reads, and back to text."""

import shlex
from collections.abc import Mapping
from typing import Any

import click

from fairmaxent.errors import Option
from fairmaxent.options import typed_options
from fairmaxent.options.refusals import by_name
from fairmaxent.options.values import TEXTS, Value, quoted, written

# Options of other records than the request that are not typed by their names.
_ELSEWHERE = {
    "output": "-o",
}


class _File(click.Path):
    """A path, or - for a stream of the process, whatever the system calls it."""

    name = "file"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Leave it to the reading to say what is wrong with a file."""
        if value in ("/dev/stdin", "/dev/stdout"):
            return "-"
        if not value:  # an empty variable of a shell, not the current folder
            self.fail("it is empty; name a file", param, ctx)
        return super().convert(value, param, ctx)


class TypedValue(click.ParamType[Any]):
    """A value that is read from all texts of an option together: see `RecordOption`."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self.name = value.metavar


FILE = _File(readable=False)  # that is read: see `reading.check_files`
TARGET = _File(readable=False)  # that is written


def as_typed(option: Option) -> str:
    """Spell an option the way it is typed on the command line.

    >>> as_typed(Option("base_share")), as_typed(Option("groups", "each"))
    ('--base-share', '--groups each')
    >>> as_typed(Option("statistical_rate", None)), as_typed(Option("release", True))
    ('--statistical-rate none', '--release')
    >>> as_typed(Option("target", column="sex"))
    "--target for 'sex'"
    >>> as_typed(Option("bins", {"age": [17.0, 40.0, 90.0]}))
    "--bins 'age: 17, 40, 90'"
    >>> as_typed(Option("mark", ("NA", "k. A.")))
    "--mark NA --mark 'k. A.'"
    """
    from fairmaxent.fit.request import Request

    source = by_name(typed_options(Request)).get(option.name)
    usual = f"--{option.name.replace('_', '-')}"
    flag = _ELSEWHERE.get(option.name, usual)
    is_flag = False
    if source is not None:
        flag = source.flags[0]
        # One of a record in the request is typed for it, which says its value, too.
        is_flag = source.info.text == "flag" or option.name == source.owner
    if option.column is not None:
        return f"{flag} for {option.column!r}"
    if isinstance(option.value, tuple):
        return " ".join(f"{flag} {shlex.quote(str(value))}" for value in option.value)
    if is_flag or option.value is ... or option.value is True:
        return flag
    return f"{flag} {shlex.quote(_text(option))}"


def _text(option: Option) -> str:
    if isinstance(option.value, str):
        return option.value
    if option.name == "bins" and isinstance(option.value, Mapping):
        from fairmaxent.data.levels import value_text

        return "; ".join(
            f"{quoted(column)}: {', '.join(map(value_text, edges))}"
            for column, edges in option.value.items()
        )
    if option.name in ("levels", "likely") and isinstance(option.value, Mapping):
        return TEXTS["names"].texts(option.value)[0]
    return written(option.value)
