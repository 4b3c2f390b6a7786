"""What is refused: options that contradict each other, or what is made of a fit.

A record lists its pairs beside its fields, as `REFUSED`. A new one is one `Refused`
there, and nothing else: `refuse`, which Python calls in ``__post_init__`` and a front
door for all its records together, reads these rows, the page greys out by them, and the
reference page prints them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from fairmaxent.errors import Option, RefusedError
from fairmaxent.options import TypedOption, is_default
from fairmaxent.plain_text import Values

GIVEN = "given"  # anything but nothing, or the default
MISSING = "missing"  # nothing, or the default
# or one of these values, or one for which a function says so; none is a default
Pattern = str | tuple[str, ...] | Callable[[Any], bool]
Parts = str | tuple[object, ...]  # a text, or texts and options
NEEDED = "it says more about that"  # why an option needs the record that it is in


@dataclass(frozen=True)
class Refused:
    """A pair that is refused: an option, and another option or an output.

    Both are named as in Python; an output is a ``mode``. On the page the first gives
    way to the other.
    """

    option: str
    other: str
    why: Parts
    instead: Parts = ""  # by default, that one of them is left out, or added
    value: Pattern = GIVEN  # of the option
    beside: Pattern = GIVEN  # of the other
    # Whether it is refused, if the record decides; or the column that it is about.
    when: Callable[[Any], object] | None = None

    def error(self, values: Values, column: object = None) -> RefusedError:
        """What is said of these values: both options, why, and what to do."""
        first = _named(self.option, self.value, values)
        other = _named(self.other, self.beside, values)
        if isinstance(column, str):
            first = Option(self.option, column=column)
        together = " cannot go together with "
        instead: Parts = "leave one of them out"
        if self.beside == MISSING:
            together = " needs "
            instead = ("add ", other, ", or leave ", first, " out")
        return RefusedError(
            first, together, other, ": ", self.why, "; ", self.instead or instead
        )


def _named(name: str, pattern: Pattern, values: Values) -> Option:
    """An option, with its value if it is the value that is refused."""
    if isinstance(pattern, tuple):
        return Option(name, values.get(name, ...))
    return Option(name)


def refuse(*records: Any, **beside: Any) -> None:
    """Refuse the first pair in the rows of records; ``beside`` is what is made of them.

    Of two records with an option of one name, the first counts.
    """
    values = beside
    for record in records:
        values = {**_given(record), **values}
    for record in records:
        refuse_pairs(record.REFUSED, values, record)


def refuse_pairs(rows: Iterable[Refused], values: Values, record: Any = None) -> None:
    """Refuse the first pair among values by name; None: an option was not given."""
    for row in rows:
        is_asked = matches(values, row.option, row.value)
        if is_asked and matches(values, row.other, row.beside):
            found = row.when is None or row.when(record)
            if found:
                raise row.error(values, found)


def matches(values: Values, name: str, pattern: Pattern) -> bool:
    """Whether an option is as a pattern says; one that is unknown here is not."""
    value = values.get(name)
    if pattern == MISSING:
        return name in values and value is None
    if isinstance(pattern, tuple):
        return isinstance(value, str) and value in pattern
    return value is not None and (not callable(pattern) or pattern(value))


def _given(record: Any) -> Values:
    """The options of a record by name; None: it is the default, or asks for nothing."""
    values: Values = {}
    for field in fields(record):
        value = getattr(record, field.name)
        is_empty = isinstance(value, str | list | tuple | dict) and not value
        if is_empty or is_default(value, field.default):
            value = None
        values[field.name] = value
    return values


def by_name(sources: Iterable[TypedOption]) -> dict[str, TypedOption]:
    """Typed options by their names in Python.

    The first of a record in a record is typed for it, if nothing else is.
    """
    named: dict[str, TypedOption] = {}
    for source in sources:
        for name in filter(None, (source.field.name, source.owner)):
            named.setdefault(name, source)
    return named
